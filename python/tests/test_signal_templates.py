# SPDX-License-Identifier: MIT
"""match_templates against direct sums in double."""
import numpy as np
import pytest

from partita import signal
from partita._signal import templates as module


def direct(x, h, delays, weights, zero_mean):
    """Values from the first time on at which the earliest window exists, and this time."""
    read = np.flatnonzero(weights)
    length, first, last = h.shape[1], delays[read].min(), delays[read].max()
    times = np.arange(-first, x.shape[1] - length - last + 1)
    values = np.zeros(len(times))
    for c in read:
        windows = np.lib.stride_tricks.sliding_window_view(x[c].astype(float), length)[times + delays[c]]
        template = h[c].astype(float)
        if zero_mean:
            windows, template = windows - windows.mean(axis=1, keepdims=True), template - template.mean()
        norms = np.linalg.norm(windows, axis=1) * np.linalg.norm(template)
        constant = np.ptp(windows, axis=1) == 0 if zero_mean else norms == 0
        values += weights[c] * np.where(constant, 0, windows @ template / np.where(constant, 1, norms))
    return values, -first


def peaks(values, threshold, distance):
    """Values that reach the threshold and are the largest within the distance."""
    size = np.where(np.isnan(values), -1, np.abs(values))
    return [t for t in np.flatnonzero(size >= threshold)
            if size[t] == size[max(t - distance + 1, 0):t + distance].max()]


@pytest.mark.parametrize("seed", range(8))
def test_matches_are_direct_sums(seed):
    rng = np.random.default_rng(seed)
    channels, count = rng.integers(1, 4), rng.integers(1, 5)
    x = rng.standard_normal((channels, 6000)) + 50 * (seed % 2)
    templates = [rng.standard_normal((channels, rng.integers(20, 120))) for _ in range(count)]
    delays = rng.integers(-40, 41, (count, channels))
    weights = rng.uniform(0.5, 1, (count, channels)) * (rng.random((count, channels)) < 0.8)
    weights[:, 0] = 1
    for i, h in enumerate(templates):
        for c in range(channels):
            at = 1000 + 900 * i + delays[i, c]
            x[c, at:at + h.shape[1]] += 2 * (h[c] - h[c].mean())
    x[0, 5000] = np.nan
    x[-1, 5400:5600] = x[-1, 5400]
    zero_mean = bool(seed % 3) or bool(seed % 2)
    dtype = np.float32 if seed % 4 else float
    x, templates = x.astype(dtype), [h.astype(dtype) for h in templates]
    found = signal.match_templates(x, templates, mad=5, distance=90, delays=delays, weights=weights,
                                   zero_mean=zero_mean, values=True, threads=1 + seed % 2)
    assert found.dtype.names == ("template", "time", "value", "channels")
    for i in range(count):
        values, first = direct(x, templates[i], delays[i], weights[i], zero_mean)
        # Single precision: some 1e-7 of the norm of 4096 samples over that of 20.
        gate = 1e-7 * np.sqrt(4096 / 20) * np.log2(4096) * weights[i].sum()
        expected = peaks(values, 5 * np.median(np.abs(values[np.abs(values) > 0])), 90)
        mine = found[found["template"] == i]
        assert (mine["time"] - first).tolist() == expected and len(expected) > 0
        np.testing.assert_allclose(mine["value"], values[expected], rtol=0, atol=gate)
        np.testing.assert_allclose(mine["channels"] @ weights[i], mine["value"], rtol=0, atol=gate)


def test_units_threads_and_chunks_change_nothing():
    rng = np.random.default_rng(3)
    x, templates = rng.standard_normal((2, 20000)).astype("f4"), rng.standard_normal((3, 2, 100)).astype("f4")
    one = signal.match_templates(x, templates, threshold=0.2, threads=1)
    assert len(one) > 50
    for kwargs in ({"threads": 3}, {"chunk": 3000}, {"threads": 2, "chunk": 9000}):
        np.testing.assert_array_equal(one, signal.match_templates(x, templates, threshold=0.2, **kwargs))
    np.testing.assert_array_equal(one, signal.match_templates(x * 2.0**-30, templates * 2.0**20, threshold=0.2))


def archive():
    """A signal with gaps, and the arguments of a search for templates of several lengths with many matches."""
    rng = np.random.default_rng(12)
    x = rng.standard_normal((2, 40_000)).astype("f4")
    x[1, 9000:9100] = np.nan
    templates = [rng.standard_normal((2, m)) for m in (90, 30, 60, 90, 50)]
    return x, templates, {"delays": [[0, 40], [5, -30], [0, 0], [7, 7], [70, 0]], "threshold": 0.25, "values": True,
                          "weights": [[0.5, 0.5], [0.5, 0.4], [0, 1], [0.5, 0.5], [0.6, 0.5]]}


def test_pieces_have_the_matches_of_the_whole(monkeypatch):
    x, templates, search = archive()
    whole = signal.match_templates(x, templates, **search)
    monkeypatch.setattr(module, "_PIECE", 6000)
    windows = module._windows(x.shape[1], {"distance": 90, "chunk": 0}, 160)
    assert len(windows) == 8 and windows[1] == (4910, 5000, 10000, 10250) and windows[-1][2:] == (40_000, 40_250)
    found = signal.match_templates(x, templates, **search)
    np.testing.assert_array_equal(found[["template", "time"]], whole[["template", "time"]])
    edges = np.arange(5000, 40_000, 5000)
    assert (np.abs(found["time"][:, None] - edges) < 90).sum(axis=0).all() and set(found["template"]) == set(range(5))
    # As in test_matches_are_direct_sums, both err: their blocks begin at other samples.
    np.testing.assert_allclose(found["value"], whole["value"], rtol=0, atol=2e-7 * np.sqrt(4096 / 30) * 12)
    np.testing.assert_allclose(found["channels"], whole["channels"], rtol=0, atol=1e-12)
    assert len(module._windows(40_000, {"distance": 90, "chunk": 50_000}, 160)) == 1


def test_values_are_correlations_of_channels(monkeypatch):
    x, templates, search = archive()
    found = signal.match_templates(x, templates, **search)
    for template, time, _, channels in found[::29]:
        for c in range(2):
            if search["weights"][template][c] == 0:
                assert channels[c] == 0
                continue
            window = x[c, time + search["delays"][template][c]:][:templates[template].shape[1]]
            assert abs(np.corrcoef(window.astype(float), templates[template][c])[0, 1] - channels[c]) < 1e-14 * len(window)
    monkeypatch.setattr(module, "_GATHERED", 200)  # two matches at a time
    assert signal.match_templates(x, templates, **search).tobytes() == found.tobytes()


@pytest.mark.parametrize("scheduler, group", [("sync", 2), ("threads", 256), ("processes", 3)])
def test_dask(scheduler, group, monkeypatch):
    da = pytest.importorskip("dask.array", exc_type=ImportError)
    import dask

    from partita._dask import graph

    x, templates, search = archive()
    monkeypatch.setattr(module, "_PIECE", 6000)
    monkeypatch.setattr(graph, "GROUP", group)
    for options in (search, search | {"threshold": None, "mad": 3, "zero_mean": False}):
        expected = signal.match_templates(x, templates, **options)
        assert len(expected) > 200
        for chunks in ((2, 7000), (1, (100, 20_000, 19_900))):
            with dask.config.set(scheduler=scheduler):
                found = signal.match_templates(da.from_array(x, chunks=chunks), templates, **options)
            assert found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


def test_arrays_in_chunks():
    da = pytest.importorskip("dask.array", exc_type=ImportError)
    zarr = pytest.importorskip("zarr")
    x = np.random.default_rng(13).standard_normal(4000)
    stored = zarr.create_array({}, shape=x.shape, chunks=(700,), dtype="f8")
    stored[:] = x
    masked = da.ma.masked_array(da.from_array(x, chunks=900), da.arange(4000, chunks=900) == 750)
    for given, times in ((stored, [700]), (da.from_array(x, chunks=900), [700]), (masked, [])):
        assert signal.match_templates(given, [x[700:800]], threshold=0.9)["time"].tolist() == times
    assert len(signal.match_templates(da.from_array(x), [], threshold=0.9)) == 0
    assert len(signal.match_templates(da.zeros((2, 0)), [x[None, :9].repeat(2, 0)], threshold=0.9)) == 0
    y = da.from_array(x, chunks=900)
    for bad, error, text in ((y[y > 0], ValueError, r"signal has shape \(nan,\): \(n,\)"),
                             (y + 0j, TypeError, "signal has samples of complex128"),
                             (y.map_blocks(lambda block: block[1:], dtype="f8"), ValueError, r"has shape \([38]99,\)")):
        with pytest.raises(error, match=text):
            signal.match_templates(bad, [x[700:800]], threshold=0.9)


def test_one_channel_and_offsets():
    rng = np.random.default_rng(4)
    x, h = rng.standard_normal(5000), rng.standard_normal(80)
    x[3000:3080] = 2 * h
    found = signal.match_templates(x + 1e6, [h - 1e6], threshold=0.9)
    assert found["time"].tolist() == [3000] and abs(found["value"][0] - 1) < 1e-5
    assert len(signal.match_templates(x, [np.arange(6000.0)], threshold=0.1)) == 0
    assert len(signal.match_templates(x, [], threshold=0.1)) == 0
    assert len(signal.match_templates(x[:0], [h], threshold=0.1)) == 0


def test_tensors():
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(5).standard_normal((2, 4000)).astype("f4")
    found = signal.match_templates(torch.from_numpy(x), [torch.from_numpy(x[:, 700:800])], threshold=0.99)
    assert found["time"].tolist() == [700]


@pytest.mark.parametrize("kwargs, text", [
    ({}, "threshold or mad is needed"),
    ({"threshold": -1.0}, "threshold = -1"),
    ({"threshold": 0.5, "distance": 0}, "distance"),
    ({"threshold": 0.5, "delays": [[0, 1, 2]]}, r"delays has shape \(1, 3\)"),
    ({"threshold": 0.5, "weights": [[np.inf, 1]]}, "must be finite"),
    ({"threshold": 0.5, "weights": [[1, 1e39]]}, r"channel 1: .* weight to at most 2\*\*64"),
    ({"threshold": 0.5, "delays": [[0, 2**30]]}, "delays"),
    ({"mad": 8, "distance": 10**9}, "^distance = 1000000000: at most 16777216"),
    ({"threshold": 0}, "threshold = 0: a number above 0 is needed"),
    ({"mad": -8}, "mad = -8: a number above 0 is needed"),
    ({"threshold": 70}, "threshold = 70: no match has a magnitude above 1, the sum of its weights"),
])
def test_arguments(kwargs, text):
    x = np.random.default_rng(6).standard_normal((2, 500))
    with pytest.raises(ValueError, match=text):
        signal.match_templates(x, [x[:, :50]], **kwargs)


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "f2", ">f4", "i8"])
def test_types_of_samples(dtype):
    x = np.random.default_rng(8).integers(0, 2 if dtype == "?" else 100, (2, 9000)).astype(dtype)
    assert signal.match_templates(x, [x[:, 700:800]], threshold=0.99)["time"].tolist() == [700]


def test_masked_samples_are_gaps():
    x = np.random.default_rng(9).standard_normal((2, 3000))
    masked = np.ma.array(x, mask=False)
    masked[1, 750] = np.ma.masked
    assert signal.match_templates(masked, [x[:, 700:800], x[:, 800:900]], threshold=0.99)["time"].tolist() == [800]


def test_complex_operands_are_refused():
    x = np.random.default_rng(10).standard_normal((2, 500))
    with pytest.raises(TypeError, match="signal has samples of complex128: real ones"):
        signal.match_templates(x + 0j, [x[:, :50]], threshold=0.5)
    with pytest.raises(TypeError, match=r"templates\[0\] has samples of complex128: real ones"):
        signal.match_templates(x, [x[:, :50] + 0j], threshold=0.5)
    with pytest.raises(TypeError, match="weights must be real numbers"):
        signal.match_templates(x, [x[:, :50]], threshold=0.5, weights=1j)


def test_templates_are_checked():
    x = np.random.default_rng(7).standard_normal((2, 500))
    silent = np.stack([x[0, :50], np.zeros(50)])
    with pytest.raises(ValueError, match=r"templates\[1\], channel 1: must be finite and not constant"):
        signal.match_templates(x, [x[:, :50], silent], threshold=0.5)
    signal.match_templates(x, [x[:, :50], silent], threshold=0.5, weights=[[1, 1], [1, 0]])
    with pytest.raises(ValueError, match=r"templates\[0\] has shape \(50,\): \(2, length\)"):
        signal.match_templates(x, [x[0, :50]], threshold=0.5)
    for single in (x[:, :50], x[0, :50]):
        with pytest.raises(ValueError, match="a single template is given as"):
            signal.match_templates(x if single.ndim == 2 else x[0], single, threshold=0.5)
    with pytest.raises(TypeError, match="delays must be integers"):
        signal.match_templates(x, [x[:, :50]], threshold=0.5, delays=[[0, 0.5]])
    with pytest.raises(ValueError, match="signal has shape"):
        signal.match_templates(np.zeros((2, 2, 5)), [x[:, :50]], threshold=0.5)


def test_the_example_finds_events_in_miniseed(tmp_path, load_example):
    obspy = pytest.importorskip("obspy", exc_type=ImportError)
    example = load_example("find_events")
    begins = example.make(tmp_path, seconds=600)
    record = example.read(tmp_path / "record.mseed")
    assert record.get_gaps() and all(len(trace) == 60_000 for trace in record)
    paths = sorted((tmp_path / "events").iterdir())
    found = example.search(record, [example.read(path) for path in paths])
    assert [(paths[match["template"]].stem, time) for match, time in found] == begins
    assert begins[0][1] > obspy.UTCDateTime(2026, 1, 31)
    with pytest.raises(SystemExit, match="need the same channels and rate"):
        example.search(record[:2], [example.read(paths[0])])

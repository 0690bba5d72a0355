# SPDX-License-Identifier: MIT
"""correlate_pairs beside numpy.correlate, and stacks beside their definitions."""
import numpy as np
import pytest

from partita import signal


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def direct(x, pairs, reach, starts, window):
    """The correlations of each window of some signals of float64."""
    result = np.empty((len(starts), len(pairs), 2 * reach + 1))
    for w, start in enumerate(starts):
        for p, (i, j) in enumerate(pairs):
            a, b = x[i, start:start + window], np.pad(x[j, start:start + window], reach)
            result[w, p] = np.correlate(b, a, "valid")
    return result


def assert_close(y, expected, norm):
    """Errors of transforms and sums of blocks: some 8 u of the product of the norms of two windows, as partita/pairs.h says."""
    assert y.shape == expected.shape
    assert np.max(np.abs(y - expected), initial=0) <= 8 * np.finfo(y.dtype).eps * norm


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "i4", ">f4"])
@pytest.mark.parametrize(("samples", "reach", "window", "overlap"), [
    (1000, 20, None, 0), (1000, 7, 300, 100), (5000, 3, 640, 639 - 600), (30, 50, None, 0), (50, 0, 20, 19), (1, 2, None, 0),
])
def test_sums_are_numpys(dtype, samples, reach, window, overlap, rng):
    x = (100 * rng.normal(size=(5, samples))).astype(dtype)
    window_size = window or samples
    starts = range(0, samples - window_size + 1, window_size - overlap)
    kept = direct(x.astype(float), [(i, j) for i in range(5) for j in range(i, 5)], reach, starts, window_size)
    norm = np.max(np.sum(x.astype(float)**2, axis=1))
    y = signal.correlate_pairs(x, reach, window=window, overlap=overlap, stack=None)
    assert y.dtype == ("f8" if dtype in ("f8", "i4") else "f4")
    assert_close(y, kept, norm)
    assert_close(signal.correlate_pairs(x, reach, window=window, overlap=overlap), kept.mean(axis=0), norm)


def test_pairs_and_results_in_parts(rng, monkeypatch, tmp_path):
    """Lists of pairs, several passes over the signals, and reading in parts: the same bits."""
    from partita._signal import pairs as module

    x = rng.normal(size=(6, 4000)).astype("f4")
    listed = np.array([(4, 1), (0, 0), (0, 1), (0, 2), (0, 3), (5, 2), (1, 4)])
    y = signal.correlate_pairs(x, 9, pairs=listed, window=1500, overlap=300)
    assert_close(y, direct(x.astype(float), listed, 9, (0, 1200, 2400), 1500).mean(axis=0), 2000)
    every = signal.correlate_pairs(x, 9, window=1500, overlap=300)
    np.testing.assert_array_equal(every[:4], y[1:5])
    monkeypatch.setattr(module, "_CHUNK", 1)
    np.save(tmp_path / "x.npy", x)
    result = np.lib.format.open_memmap(tmp_path / "y.npy", "w+", "f4", y.shape)
    again = signal.correlate_pairs(np.load(tmp_path / "x.npy", "r"), 9, pairs=listed, window=1500, overlap=300, memory=1,
                                   threads=2, out=result)
    assert again is result
    np.testing.assert_array_equal(again, y)
    assert signal.correlate_pairs(x, 9, pairs=[]).shape == (0, 19)
    assert signal.correlate_pairs(x, 9, pairs=[], window=1000, stack=None).shape == (4, 0, 19)


def test_zarr(rng):
    zarr = pytest.importorskip("zarr")
    x = rng.normal(size=(4, 3000))
    stored = zarr.create_array({}, shape=x.shape, chunks=(2, 700), dtype="f8")
    stored[:] = x
    out = zarr.create_array({}, shape=(2, 10, 11), chunks=(1, 4, 11), dtype="f8")
    signal.correlate_pairs(stored, 5, window=1500, stack=None, out=out)
    np.testing.assert_array_equal(out[:], signal.correlate_pairs(x, 5, window=1500, stack=None))


def test_dask(rng):
    da = pytest.importorskip("dask.array", exc_type=ImportError)
    x = rng.normal(size=(4, 3000))
    for options in (dict(), dict(window=1500, overlap=200, normalise="zero-mean", stack="phase-weighted")):
        y = signal.correlate_pairs(da.from_array(x, chunks=(2, 700)), 5, **options)
        np.testing.assert_array_equal(y, signal.correlate_pairs(x, 5, **options))
    z = da.from_array(x, chunks=700)
    masked = da.ma.masked_where(z == x[1, 100], z)
    assert np.isnan(signal.correlate_pairs(masked, 5)).all(axis=1).tolist() == [0, 1, 0, 0, 1, 1, 1, 0, 0, 0]
    short = z.map_blocks(lambda block: block[:, 1:], dtype="f8")
    for bad, text in ((z[:, z[0] > 0], r"signals has shape \(4, nan\)"),
                      (short, r"samples 0 to 3000 have shape \(4, 2995\)")):
        with pytest.raises(ValueError, match=text):
            signal.correlate_pairs(bad, 5)


@pytest.mark.parametrize("normalise", [True, "zero-mean"])
def test_normalised_windows(normalise, rng):
    x = rng.normal(size=(4, 1200)) * [[1], [100], [0], [1]] + [[0], [1e4], [3], [0]]
    x[3, 400:800] = 0
    expected = x.reshape(4, 3, 400) - (x.reshape(4, 3, 400).mean(axis=2, keepdims=True) if normalise == "zero-mean" else 0)
    energy = np.sum(expected**2, axis=2, keepdims=True)
    expected = (expected / np.sqrt(np.where(energy > 0, energy, 1))).reshape(4, 1200)
    pairs = [(i, j) for i in range(4) for j in range(i, 4)]
    y = signal.correlate_pairs(x, 5, window=400, stack=None, normalise=normalise)
    # A mean of 100 deviations has its error in the deviations.
    assert_close(y, direct(expected, pairs, 5, (0, 400, 800), 400), 100)
    zeros = [p for p, pair in enumerate(pairs) if normalise == "zero-mean" and 2 in pair]
    assert not y[:, zeros].any() and not y[1, pairs.index((3, 3))].any()


@pytest.mark.parametrize("power", [1, 2])
def test_phase_weighted_stacks_are_their_definition(power, rng):
    x = rng.normal(size=(3, 2000))
    x[2] = 0
    kept = signal.correlate_pairs(x, 30, window=500, overlap=250, stack=None)
    spectrum = np.fft.fft(kept)
    spectrum[..., 1:31] *= 2
    spectrum[..., 31:] = 0
    analytic = np.fft.ifft(spectrum)
    size = np.abs(analytic)
    phasors = np.where(size > 0, analytic / np.where(size > 0, size, 1), 0)
    expected = kept.mean(axis=0) * np.abs(phasors.mean(axis=0))**power
    y = signal.correlate_pairs(x, 30, window=500, overlap=250, stack="phase-weighted", power=power)
    # Phases have errors of some u times the largest correlation of a window over the present one, which is larger than 1e-4.
    assert size[:, :2].min() > 1e-4
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-8)
    coherent = signal.correlate_pairs(np.tile(x[:, :500], 4), 30, window=500, stack="phase-weighted")
    np.testing.assert_allclose(coherent, signal.correlate_pairs(x[:, :500], 30), atol=1e-10)


def test_samples_that_are_not_finite_stay_with_their_pairs(rng):
    x = rng.normal(size=(4, 900))
    y = signal.correlate_pairs(x, 4, window=300, normalise=True)
    masked = np.ma.array(x.copy(), mask=False)
    masked[2, 450] = np.ma.masked
    x[2, 450] = np.nan
    changed = signal.correlate_pairs(x, 4, window=300, normalise=True)
    np.testing.assert_array_equal(signal.correlate_pairs(masked, 4, window=300, normalise=True), changed)
    affected = (np.column_stack(np.triu_indices(4)) == 2).any(axis=1)
    assert np.isnan(changed[affected]).all()
    np.testing.assert_array_equal(changed[~affected], y[~affected])


@pytest.mark.parametrize(("keywords", "kind", "text"), [
    (dict(max_lag=-1), ValueError, "max_lag = -1"),
    (dict(window=51), ValueError, "window=51, overlap=0: at most 50"),
    (dict(window=10, overlap=10), ValueError, "overlap below the window"),
    (dict(window=0), ValueError, "window"),
    (dict(pairs=[(0, 3)]), ValueError, "from 0 to 2"),
    (dict(pairs=[(0, -1)]), ValueError, "from 0 to 2"),
    (dict(pairs=[0, 1]), ValueError, "rows of two numbers"),
    (dict(pairs=[(0.5, 1)]), ValueError, "rows of two numbers"),
    (dict(stack="mean"), ValueError, "stack = 'mean': one of 'linear', 'phase-weighted', None"),
    (dict(normalise="max"), ValueError, "normalise = 'max'"),
    (dict(out=np.empty((6, 4))), ValueError, r"out has shape \(6, 4\), not \(6, 9\)"),
    (dict(out=[0]), ValueError, r"out has shape \(1,\), not \(6, 9\)"),
    (dict(out=np.empty((6, 9), int)), TypeError, "out must be an array of floating-point numbers"),
    (dict(threads=0), ValueError, "threads = 0"),
    (dict(memory=0), ValueError, "memory"),
    (dict(signals=[[1.0, 2], [1]]), ValueError, "signals: setting an array element"),
    (dict(pairs="all"), ValueError, "pairs: rows of two numbers"),
    (dict(signals=np.ones(50)), ValueError, r"signals has shape \(50,\)"),
    (dict(signals=np.ones((0, 50))), ValueError, r"signals has shape \(0, 50\)"),
    (dict(signals=np.ones((3, 50), complex)), TypeError, "complex128"),
])
def test_what_is_refused(keywords, kind, text):
    with pytest.raises(kind, match=text):
        signal.correlate_pairs(**{"signals": np.ones((3, 50)), "max_lag": 4, **keywords})

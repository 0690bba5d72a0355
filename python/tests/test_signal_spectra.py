# SPDX-License-Identifier: MIT
"""hilbert, stft and istft beside SciPy's in long double."""
import math

import numpy as np
import pytest
import signal_oracle as oracle

from partita import signal

scipy_signal = pytest.importorskip("scipy.signal")


@pytest.fixture
def rng():
    return np.random.default_rng(43)


def wide(x):
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)


def unit(dtype, points):
    """The largest relative error, in Euclidean norms, of a transform, a product and a transform (Higham, 24.2)."""
    return (21 * math.log2(4 * points) + 4) * oracle.UNIT[dtype.char]


@pytest.mark.parametrize("dtype", ("float32", "float64", "int16", "float16"))
@pytest.mark.parametrize("n", (1, 2, 3, 4, 5, 64, 66, 67, 134, 201, 1000, 1009, 2018, 70001))
def test_hilbert(n, dtype, rng):
    x = oracle.noise(rng, n, dtype)
    got, expected = signal.hilbert(x), scipy_signal.hilbert(wide(x))
    assert got.dtype == scipy_signal.hilbert(x).dtype and got.shape == x.shape
    np.testing.assert_array_equal(got.real, x)
    assert np.abs(got - expected).max() <= unit(got.dtype, n) * np.linalg.norm(x.astype(float))


@pytest.mark.parametrize("keywords", ({"axis": 0}, {"axis": 1}, {"N": 40}, {"N": 67}, {"N": 700, "axis": 1}))
def test_axes_of_hilbert(keywords, rng):
    x = oracle.noise(rng, (50, 67, 3), "float64")
    got, expected = (module.hilbert(x, **keywords) for module in (signal, scipy_signal))
    assert got.shape == expected.shape and np.abs(got - expected).max() <= 2 * unit(got.dtype, 700) * np.sqrt(67)
    rows = oracle.noise(rng, (5, 40000), "float32")  # more than are transformed at once
    np.testing.assert_array_equal(signal.hilbert(rows), [signal.hilbert(row) for row in rows])


WINDOWS = ({}, {"nperseg": 65, "noverlap": 60, "nfft": 100}, {"window": ("kaiser", 3.0), "nperseg": 100, "noverlap": 0},
           {"window": np.hanning(63), "nperseg": 63}, {"nperseg": 1, "noverlap": 0}, {"nperseg": 2},
           {"window": ("general_cosine", [0.5, 0.5]), "nperseg": 64}, {"nperseg": 50, "scaling": "psd", "fs": 3})


@pytest.mark.parametrize("dtype", ("float32", "float64", "int16", "complex64", "complex128"))
@pytest.mark.parametrize("keywords", WINDOWS)
def test_stft(keywords, dtype, rng):
    x = oracle.noise(rng, (2, 1000, 3), dtype)
    size = keywords.get("nperseg", 256)
    for more in ({}, {"boundary": "odd"}, {"boundary": "even", "padded": False}, {"boundary": "constant"}, {"boundary": None},
                 {"return_onesided": False}):
        more = {"axis": 1, "return_onesided": x.dtype.kind != "c"} | keywords | more
        if more.get("boundary") in ("odd", "even") and dtype.startswith("complex") and more["return_onesided"]:
            continue
        f, t, got = signal.stft(x, **more)
        f0, t0, expected = scipy_signal.stft(wide(x), **more)
        np.testing.assert_array_equal(f, f0)
        np.testing.assert_array_equal(t, t0)
        assert got.shape == expected.shape and got.dtype == scipy_signal.stft(x, **more)[2].dtype
        # |windowed segment| <= sqrt(size) * 3 * the largest sample * the largest scaled window: at most 1, or sqrt(2 / fs).
        assert np.abs(got - expected).max() <= unit(got.dtype, 2 * size) * math.sqrt(size) * 3 * np.abs(x).max()


@pytest.mark.parametrize("dtype", ("complex64", "complex128", "float32", "int16"))
@pytest.mark.parametrize("onesided", (True, False))
@pytest.mark.parametrize("keywords", ({}, {"noverlap": 50}, {"noverlap": 10}, {"nperseg": 30}, {"scaling": "psd", "fs": 2},
                                      {"boundary": False, "window": "boxcar"}, {"noverlap": -10, "window": "boxcar"}))
def test_istft(keywords, onesided, dtype, rng):
    z = oracle.noise(rng, (33 if onesided else 64, 2, 300), dtype)
    keywords = {"freq_axis": 0, "input_onesided": onesided} | keywords
    if keywords.get("noverlap") == -10:
        with pytest.warns(UserWarning, match="NOLA"):
            got = signal.istft(z, **keywords)
        with pytest.warns(UserWarning, match="NOLA"):
            expected = scipy_signal.istft(wide(z), **keywords)
    else:
        got, expected = signal.istft(z, **keywords), scipy_signal.istft(wide(z), **keywords)
    np.testing.assert_array_equal(got[0], expected[0])
    got, expected = got[1], expected[1]
    assert got.shape == expected.shape
    # |segment| <= sqrt(64) * the largest value; sums of windows times their sum, divided by sums of squares, are at most
    # 64 * 64 / 10 for these.
    assert np.abs(got - expected).max() <= unit(got.dtype, 64) * 8 * np.abs(z).max() * 410


def test_many_segments_are_those_of_one_signal(rng):
    """Pieces of what is transformed at once join."""
    x = oracle.noise(rng, 200_000, "float64")
    _, _, whole = signal.stft(x, nperseg=512, noverlap=384)
    _, _, part = signal.stft(x[128 * 700:128 * 800 + 384], nperseg=512, noverlap=384, boundary=None)
    np.testing.assert_allclose(part, whole[:, 702:702 + part.shape[-1]], atol=1e-13)
    _, y = signal.istft(whole, nperseg=512, noverlap=384)
    np.testing.assert_allclose(y[:200_000], x, atol=1e-12)


@pytest.mark.parametrize("name, args", [("stft", (np.ones(100),)), ("stft", (np.ones(300) * 1j,)),
                                        ("istft", (np.ones((9, 9)), 1, "hann", 16, 0))])
def test_warnings_are_scipys(name, args):
    with pytest.warns(UserWarning) as theirs:
        getattr(scipy_signal, name)(*args)
    with pytest.warns(UserWarning) as ours:
        getattr(signal, name)(*args)
    assert [str(w.message) for w in ours] == [str(w.message) for w in theirs]
    assert ours[0].filename == theirs[0].filename == __file__ or name == "stft"

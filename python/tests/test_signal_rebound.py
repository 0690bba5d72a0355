# SPDX-License-Identifier: MIT
"""resample_poly, decimate, filtfilt and savgol_filter beside SciPy, and what patched() changes within SciPy."""
import numpy as np
import pytest
import signal_oracle as oracle

from partita import signal
from partita._signal import fallback
from partita._signal.copies import copies

scipy_signal = pytest.importorskip("scipy.signal")
DTYPES = ("float32", "float64", "complex64", "complex128", "int16")


@pytest.fixture
def rng():
    return np.random.default_rng(43)


def near(got, theirs, tolerance):
    assert got.dtype == theirs.dtype and got.shape == theirs.shape
    assert float(np.abs(got - theirs).max(initial=0)) <= tolerance


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("up, down", [(160, 147), (3, 2), (1, 8), (5, 1), (4, 4)])
def test_resample_poly(up, down, dtype, rng):
    x = oracle.noise(rng, (3, 200), dtype)
    for keywords in ({"axis": 1}, {"axis": 0}, {"axis": -1, "padtype": "mean"}, {"axis": 1, "padtype": "antireflect"},
                     {"axis": 1, "window": "hann"}, {"axis": 1, "window": np.hanning(31)},
                     {"axis": 1, "padtype": "constant", "cval": 2}):
        got, theirs = (module.resample_poly(x, up, down, **keywords) for module in (signal, scipy_signal))
        # The taps' sum is `up`, each output has at most every up-th of 20 max(up, down) + 1 of them, and three times the
        # range of samples bounds what stands around the signal.
        terms = 21 * max(up, down) / up + 21
        near(got, theirs, 2 * (terms + 2) * oracle.UNIT.get(got.dtype.char, 0) * 3 * terms * (np.abs(x).max() + 2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("zero_phase", (True, False))
@pytest.mark.parametrize("kind", ("fir", "filter", "iir", "recursive filter"))
def test_decimate(kind, zero_phase, dtype, rng):
    x = oracle.noise(rng, (300, 3), dtype)
    ftype = {"filter": scipy_signal.dlti(np.hamming(30), [1.0]), "recursive filter": scipy_signal.dlti([1.0], [1, 0.5])}
    got, theirs = (module.decimate(x, 4, None, ftype.get(kind, kind), 0, zero_phase) for module in (signal, scipy_signal))
    near(got, theirs, 2 * oracle.tolerance(x[:, 0], 2 * np.hanning(90), got.dtype) if kind in ("fir", "filter") else 0)


@pytest.mark.parametrize("dtype_b, dtype_x", [("float64", "float64"), ("float32", "float32"), ("float64", "complex64"),
                                              ("complex128", "float32"), ("int16", "int16"), ("int16", "float32")])
@pytest.mark.parametrize("padtype", ("odd", "even", "constant", None))
@pytest.mark.parametrize("padlen", (None, 0, 18, 19, 25))
def test_filtfilt(padlen, padtype, dtype_b, dtype_x, rng):
    b, x = oracle.noise(rng, 20, dtype_b), oracle.noise(rng, (2, 150, 3), dtype_x)
    for a in (1, np.asarray([2], dtype_b)):
        got, theirs = (module.filtfilt(b, a, x, 1, padtype, padlen) for module in (signal, scipy_signal))
        padded = np.tile(np.abs(x[0, :, 0]).max(), 400) * 3
        # One filter with the autocorrelation here; SciPy's first pass errs by its tolerance times the second one's gain.
        once, twice = oracle.tolerance(padded, b, got.dtype), oracle.tolerance(padded, np.convolve(b, b[::-1]), got.dtype)
        near(got, theirs, twice + 2 * float(np.abs(b).sum()) * once)


def test_methods_and_long_signals_of_filtfilt(rng):
    b, x = scipy_signal.firwin(101, 0.1), oracle.noise(rng, (2, 20000), "float64")
    for keywords in ({}, {"method": "gust", "irlen": 200}, {"padlen": 3}):
        got, theirs = (module.filtfilt(b, 1, x, **keywords) for module in (signal, scipy_signal))
        near(got, theirs, 8 * oracle.tolerance(x[0], b, got.dtype))
    butter = scipy_signal.butter(3, 0.2)
    np.testing.assert_array_equal(signal.filtfilt(*butter, x), scipy_signal.filtfilt(*butter, x))


@pytest.mark.parametrize("dtype", ("float32", "float64", "int16"))
@pytest.mark.parametrize("mode", ("interp", "mirror", "nearest", "wrap", "constant"))
@pytest.mark.parametrize("window", (5, 6, 51))
def test_savgol_filter(window, mode, dtype, rng):
    x = oracle.noise(rng, (3, 120), dtype)
    for keywords in ({}, {"axis": 0, "window_length": 3}, {"deriv": 1, "delta": 0.1}, {"cval": 2}):
        keywords = {"window_length": window, "polyorder": 2, "mode": mode} | keywords
        got, theirs = (module.savgol_filter(x, **keywords) for module in (signal, scipy_signal))
        taps = scipy_signal.savgol_coeffs(*(keywords.get(k, d) for k, d in (
            ("window_length", 0), ("polyorder", 0), ("deriv", 0), ("delta", 1.0))))
        bound = np.abs(taps).sum() * (np.abs(x).max() + 2)
        # Sums in f64 on both sides, rounded to the result's type once.
        near(got, theirs, bound * (2 * window * oracle.UNIT["d"] + oracle.UNIT[got.dtype.char] * (dtype == "float32") * 2))


def test_short_windows_of_short_signals():
    for n in (1, 2, 3):
        for mode in ("mirror", "nearest", "wrap", "constant"):
            got, theirs = (m.savgol_filter(np.arange(1.0, n + 1), 7, 2, mode=mode, cval=1) for m in (signal, scipy_signal))
            np.testing.assert_allclose(got, theirs, atol=1e-13)


def test_designs_are_kept_and_not_changed():
    """SciPy scales the taps that it designs where they stand."""
    x = np.arange(50.0)
    for keywords in ({}, {"window": ("kaiser", 4.0)}):
        for _ in range(3):
            got, theirs = (module.resample_poly(x, 3, 2, **keywords) for module in (signal, scipy_signal))
            np.testing.assert_allclose(got, theirs, atol=1e-12)


@pytest.mark.parametrize("module, names", [("scipy.ndimage._filters", ("spam", "_nd_image")), ("scipy.spam", ("_nd_image",))])
def test_a_version_of_scipy_without_a_name(module, names):
    with pytest.raises(ImportError, match=rf"partita.spam needs another version of SciPy: {module} .* {', '.join(names)}"):
        copies("partita.spam", module, **dict.fromkeys(names, lambda theirs: theirs))


def test_other_names_are_scipys():
    assert signal.butter is scipy_signal.butter and not hasattr(signal, "spam") and not hasattr(signal, "_signaltools")


@pytest.mark.parametrize("caller, callee, args", [
    ("resample_poly", "upfirdn", (np.ones(9), 3, 2)), ("decimate", "resample_poly", (np.ones(99), 2, 8, "fir")),
    ("filtfilt", "lfilter", ([0.5, 0.5], 1, np.ones(99))), ("wiener", "correlate", (np.outer(np.arange(9), np.arange(9.0)**2),))])
def test_callers_within_scipy(caller, callee, args, monkeypatch):
    """SciPy's own function calls the package inside patched(), and itself outside."""
    calls, original, ours = [], getattr(scipy_signal, caller), getattr(signal, callee)

    def recorded(*args, **kwargs):
        calls.append(callee)
        return ours(*args, **kwargs)

    monkeypatch.setattr(signal, callee, recorded)
    expected = original(*args)
    assert not calls
    with signal.patched(), signal.patched():
        got = original(*args)
    assert set(calls) == {callee}
    np.testing.assert_allclose(got, expected, atol=1e-12)
    calls.clear()
    original(*args)
    assert not calls
    assert all(getattr(m, callee) is fallback.originals()[callee] for m in fallback.holders(callee))

# SPDX-License-Identifier: MIT
"""What is refused, and what SciPy answers: exceptions and warnings are SciPy's."""
import decimal
import warnings

import numpy as np
import pytest

from partita import UnsupportedError, signal
from partita._signal import fallback

scipy_signal = pytest.importorskip("scipy.signal")

CASES = [
    ("convolve", ([1], 2), {}), ("convolve", ([1], [[2]]), {}), ("convolve", ([1.0], [2.0], "spam"), {}),
    ("convolve", ([1.0], [2.0], "spam", "fft"), {}), ("convolve", ([1.0], [2.0], "full", "spam"), {}),
    ("convolve", (np.ones((2, 3)), np.ones((3, 2)), "valid"), {}), ("convolve", ([], [1.0]), {}),
    ("convolve", ([1.0], []), {}),
    ("correlate", ([1], 2), {}), ("correlate", ([1.0], [2.0], "spam"), {}), ("correlate", ([1.0], [2.0], 2), {}),
    ("correlate", ([1.0], [2.0], "full", "spam"), {}), ("correlate", (np.ones((2, 3)), np.ones((3, 2)), "valid"), {}),
    ("fftconvolve", ([1], [[2]]), {}), ("fftconvolve", ([1.0, 2], [2.0, 1], "spam"), {}),
    ("fftconvolve", ([1], [2]), {"axes": []}), ("fftconvolve", ([1], [2]), {"axes": [1.0]}),
    ("fftconvolve", ([1], [2]), {"axes": [[1, 2], [3, 4]]}), ("fftconvolve", ([1], [2]), {"axes": 1}),
    ("fftconvolve", ([1], [2]), {"axes": -2}), ("fftconvolve", ([1], [2]), {"axes": [0, 0]}),
    ("fftconvolve", (np.ones((5, 2, 1)), np.ones((5, 3, 1))), {"axes": 0}),
    ("oaconvolve", (np.ones((2, 3)), np.ones((3, 2)), "valid"), {}),
    ("convolve2d", ([1], [2]), {}), ("convolve2d", ([[1]], [[2]], "spam"), {}),
    ("convolve2d", ([[1]], [[2]], "full", "spam"), {}), ("convolve2d", ([[1]], [[1, 2]]), {"fillvalue": [1, 2]}),
    ("convolve2d", ([[1]], [[1, 2]]), {"fillvalue": 1j}), ("convolve2d", ([[1]], [[1, 2]]), {"fillvalue": []}),
    ("convolve2d", (np.ones((2, 3)), np.ones((3, 2)), "valid"), {}),
    ("correlate2d", ([[1]], [2]), {}),
    ("lfilter", (np.eye(2), 1, [1.0]), {}), ("lfilter", ([], 1, [1.0]), {}), ("lfilter", ([1.0], [], [1.0]), {}),
    ("lfilter", ([1.0], 1, 3.0), {}), ("lfilter", ([1], [2], [3, 4]), {}), ("lfilter", ([1.0, 1], 1, [1.0], 1), {}),
    ("lfilter", ([1.0, 1], 1, [1.0], 0, [[1]]), {}), ("lfilter", ([1.0, 1], 1, [1.0], 0, [1, 2]), {}),
    ("lfilter", ([1.0], [1.0], [1.0, None]), {}),
    ("upfirdn", ([[1]], [1]), {}), ("upfirdn", ([], [1]), {}), ("upfirdn", ([1], [1], 0), {}),
    ("upfirdn", ([1], [1], 1, 0), {}), ("upfirdn", ([1, 1], [1], 1, 1), {"mode": "spam"}), ("upfirdn", ([1], [1], 1, 1, 2), {}),
]
CASES += [(name, args, {}) for name, args in (
    ("resample_poly", ([1.0], 0, 1)), ("resample_poly", ([1.0], 1.5, 1)), ("resample_poly", ([1.0], 1, 2, 0, "spam")),
    ("resample_poly", ([1.0], 1, 2, 0, np.eye(2))), ("resample_poly", ([1.0], 1, 2, 0, "hann", "spam")),
    ("resample_poly", ([1.0], 1, 2, 0, "hann", "mean", 1)), ("resample_poly", ([1.0], 1, 2, 1)),
    ("decimate", ([1.0], 1.5)), ("decimate", ([1.0], 2, None, "spam")), ("decimate", ([1.0], 0, 2, "fir")),
    ("filtfilt", ([1.0, 1.0], 1, np.ones(6))), ("filtfilt", ([1.0], 1, np.ones(6))),
    ("filtfilt", ([1.0, 1.0], [[1]], np.ones(9))), ("filtfilt", ([1.0, 1.0], 1, np.ones(9), 1)),
    ("filtfilt", ([1.0, 1.0], 1, np.ones(9), 0, "spam")), ("filtfilt", ([1, 1], 1, np.ones(9), 0, "odd", 1, "spam")),
    ("savgol_filter", (np.ones(4), 5, 2)), ("savgol_filter", (np.ones(4), 3, 3)),
    ("savgol_filter", (np.ones(4), 3, 2, 0, 1.0, -1, "spam")), ("savgol_filter", (np.ones(4), 3, 2, 0, 1.0, 1)),
    ("hilbert", ([1j],)), ("hilbert", ([1.0], 0)), ("hilbert", (1.0,)), ("hilbert", ([1.0], 4, 2)),
    ("stft", (np.ones(300), 1, "spam")), ("stft", (np.ones(300), 1, np.ones(9))), ("stft", (np.ones(9), 1, "hann", 0)),
    ("stft", (np.ones(300), 1, "hann", 256, 256)), ("stft", (np.ones(300), 1, "hann", 256, 1, 9)),
    ("istft", (np.ones(9),)), ("istft", (np.ones((9, 9)), 1, np.ones(3))), ("istft", (np.ones((9, 9)), 1, "hann", 0)),
    ("istft", (np.ones((9, 9)), 1, "hann", 9, 9)), ("istft", (np.ones((9, 9)), 1, "hann", 9, 1, 3)))]


@pytest.mark.parametrize("name, args, kwargs", CASES)
def test_exceptions_are_scipys(name, args, kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as theirs:
            getattr(scipy_signal, name)(*args, **kwargs)
        with pytest.raises(Exception) as ours:
            getattr(signal, name)(*args, **kwargs)
    assert isinstance(ours.value, theirs.type), (ours.value, theirs.value)
    if theirs.type is not IndexError:
        assert str(ours.value) == str(theirs.value)


def test_invalid_lags_mode():
    with pytest.raises(ValueError, match="Mode spam is invalid"):
        signal.correlation_lags(3, 3, "spam")


@pytest.mark.parametrize("n, m", [(1, 1), (5, 4), (4, 5), (10, 10), (9, 3), (3, 0), (4, 0), (0, 4), (1, 0), (0, 0)])
@pytest.mark.parametrize("mode", ("full", "same", "valid"))
def test_correlation_lags(n, m, mode):
    np.testing.assert_array_equal(signal.correlation_lags(n, m, mode), scipy_signal.correlation_lags(n, m, mode))


@pytest.mark.parametrize("mode", ("full", "same", "valid"))
def test_methods_of_other_numbers_of_axes(mode):
    x, h = np.ones(9), np.ones((3, 3))
    assert signal.choose_conv_method(x, h, mode) == scipy_signal.choose_conv_method(x, h, mode) == "direct"


@pytest.mark.parametrize("make", (
    lambda v: np.array(v, np.longdouble), lambda v: np.array(v, np.clongdouble) * (1 + 2j), lambda v: np.array(v, object),
    lambda v: np.array([decimal.Decimal(int(k)) for k in v]), lambda v: np.array(v) * 2**40),
    ids=("long double", "complex", "object", "Decimal", "large"))
@pytest.mark.parametrize("n, m, mode", [(4, 2, "full"), (4, 2, "same"), (4, 2, "valid"), (2, 4, "full"), (2, 4, "valid"),
                                        (300, 280, "same")])
@pytest.mark.parametrize("name", ("convolve", "correlate"))
def test_other_samples(name, mode, n, m, make):
    """Few terms are summed by NumPy, many by SciPy; small integers are exact in all of these types."""
    x, h = make(np.arange(n) % 7), make(np.arange(m) % 5 - 2)
    got, theirs = getattr(signal, name)(x, h, mode), getattr(scipy_signal, name)(x, h, mode, "direct")
    assert got.dtype == theirs.dtype
    if n < 300:
        np.testing.assert_array_equal(got, theirs)
    else:
        np.testing.assert_allclose(got.astype(complex), theirs.astype(complex), rtol=1e-12)


def test_long_double_is_long_double():
    x = np.array([1, np.longdouble(2)**-60])
    for function in (signal.convolve, signal.fftconvolve, lambda x, h: signal.lfilter(h, 1, x)):
        assert (function(x, np.ones(2, np.longdouble))[1] - 1) == x[1]


def test_four_axes():
    for n, m in ((3, 2), (6, 5)):
        x, h = (np.arange(float(k**4)).reshape((k,) * 4) for k in (n, m))
        for name in ("convolve", "fftconvolve", "correlate"):
            np.testing.assert_allclose(getattr(signal, name)(x, h), getattr(scipy_signal, name)(x, h), rtol=1e-8, atol=1e-6)


@pytest.mark.parametrize("call, error", (
    (lambda: signal.convolve(np.ones(300, np.longdouble), np.ones(300)), TypeError),
    (lambda: signal.fftconvolve(np.ones(3, object), np.ones(2)), TypeError),
    (lambda: signal.lfilter([1.0], [1.0, 0.5], [1.0]), NotImplementedError),
    (lambda: signal.convolve(np.full(300, 2**40), np.full(300, 2**40)), NotImplementedError),
    (lambda: signal.convolve2d([[1.0]], [[1.0]], boundary="reflect"), NotImplementedError),
    (lambda: signal.upfirdn([1.0, 1.0], [1.0], mode="spam"), NotImplementedError)))
def test_without_scipy(call, error, monkeypatch):
    def absent():
        raise ImportError

    monkeypatch.setattr(fallback, "originals", absent)
    np.testing.assert_array_equal(signal.convolve([1.0, 2, 3], [1, 1]), [1, 3, 5, 3])
    with pytest.raises(error, match="needs SciPy, which is not installed"):
        call()


def test_warning_of_fft():
    x = np.ones(1000)
    x[100] = np.nan
    with pytest.warns(RuntimeWarning, match="Use of fft convolution on input with NAN or inf") as caught:
        signal.convolve(x, np.ones(200), "same", "fft")
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        signal.convolve(x, np.ones(200), "same")


@pytest.mark.parametrize("mode", ("full", "same", "valid"))
@pytest.mark.parametrize("shape1, shape2, axes", [((1000,), (100,), None), ((40_000,), (1000,), None),
                                                  ((50, 40), (5, 7), None), ((4, 400), (4, 9), 1)])
def test_oaconvolve_warns_of_infinite_samples(shape1, shape2, axes, mode):
    x, h = np.ones(shape1), np.ones(shape2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        signal.oaconvolve(x, h, mode, axes)
        x[(0,) * x.ndim] = 1e300
        signal.oaconvolve(x, h, mode, axes)
    for place in (0, x.size // 2 + 3, x.size - 1):
        spoilt = x.copy()
        spoilt.flat[place] = np.inf
        with pytest.warns(RuntimeWarning):
            scipy_signal.oaconvolve(spoilt, h, mode, axes)
        with pytest.warns(RuntimeWarning, match="infinite") as caught:
            signal.oaconvolve(spoilt, h, mode, axes)
        assert caught[0].filename == __file__


def test_out_that_is_read_only():
    out = np.empty(5)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out is read-only"):
        signal.convolve(np.ones(3), np.ones(3), out=out)


@pytest.mark.parametrize("call, error", (
    (lambda: signal.correlate(np.ones((2, 3)), np.ones((2, 3)), normalise=True), UnsupportedError),
    (lambda: signal.correlate(np.ones((2, 3)), np.ones((2, 3)), lags=(0, 1)), ValueError),
    (lambda: signal.correlate(np.ones(3), np.ones(3), lags=(2, 2)), ValueError),
    (lambda: signal.correlate(np.ones(3), np.ones(3), lags=range(0, 4, 2)), ValueError),
    (lambda: signal.correlate(np.ones(3), np.ones(3), lags=3), ValueError),
    (lambda: signal.convolve(np.ones(3), np.ones(3), slice(0, 1.5)), ValueError),
    (lambda: signal.convolve(np.ones(3), np.ones(3), out=np.empty(4)), ValueError),
    (lambda: signal.convolve(np.ones(3), np.ones(3), out=np.empty(5, np.float32)), TypeError),
    (lambda: signal.convolve(np.ones(3), np.ones(3), out=[0] * 5), TypeError),
    (lambda: signal.convolve(np.ones(3), np.ones(3), threads=0), ValueError),
    (lambda: signal.convolve(np.ones(3), np.ones(3), engine="cpu/none"), (ValueError, UnsupportedError)),
    (lambda: signal.convolve(np.ones(300, object), np.ones(300), axes=0), UnsupportedError)))
def test_additions_are_checked(call, error):
    with pytest.raises(error):
        call()

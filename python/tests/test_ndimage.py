# SPDX-License-Identifier: MIT
"""Filters of images against scipy.ndimage: arguments at random, errors, integers, samples that are not finite."""
import doctest
import inspect
import threading

import numpy as np
import pytest

from partita import signal

scipy_ndimage = pytest.importorskip("scipy.ndimage")
import scipy.signal  # noqa: E402

from partita import ndimage  # noqa: E402
from partita._ndimage import scipy_copy, slabs  # noqa: E402
from partita._signal import fallback  # noqa: E402

MODES = ("reflect", "constant", "nearest", "mirror", "wrap", "grid-wrap", "grid-constant", "grid-mirror")
UNIT = 2.0**-53
THEIRS = {name: getattr(scipy_ndimage, name) for name in scipy_copy.NAMES}


@pytest.fixture
def everything(monkeypatch):
    """Small arrays, too, are filtered by this package; slabs are small, so that there are several."""
    for name in ("SMALL", "SMALL_INTEGERS"):
        monkeypatch.setattr(scipy_copy, name, 0)
    monkeypatch.setattr(slabs, "SLAB", 128)


@pytest.fixture
def reasons(monkeypatch):
    """Why SciPy computed passes."""
    found = []
    monkeypatch.setattr(fallback, "observers", [lambda name, reason: found.append(reason)])
    return found


def samples(rng, shape, dtype):
    x = rng.uniform(-50, 50, shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.uniform(-50, 50, shape)
    if np.dtype(dtype).kind in "u?":
        x = np.abs(x)
    return x.astype(dtype)


def arguments(rng, name, ndim):
    """Positional and named arguments of a function, at random."""
    keywords = {"mode": str(rng.choice(MODES)), "cval": float(rng.choice([0, 1, 2.5]))}
    whole = rng.random() < 0.4

    def weights(shape):
        return rng.integers(-3, 4, shape) if whole else rng.uniform(-1, 1, shape)

    if name in ("correlate1d", "convolve1d"):
        m = int(rng.integers(1, 9))
        keywords |= {"axis": int(rng.integers(-ndim, ndim)), "origin": int(rng.integers(-(m // 2), (m - 1) // 2 + 1))}
        return [weights(m)], keywords
    if name in ("correlate", "convolve"):
        if ndim > 1 and rng.random() < 0.3:
            axes = tuple(rng.permutation(ndim)[:2].tolist())
            return [weights((3, 4))], keywords | {"axes": axes}
        return [weights(rng.integers(1, 6, ndim))], keywords
    if "gaussian" in name:
        if name == "gaussian_filter":
            keywords["mode"] = [str(m) for m in rng.choice(MODES, ndim)]
            keywords["order"] = int(rng.integers(0, 3))
        return [float(rng.uniform(0.3, 2))], keywords
    return [int(rng.integers(1, 6))] if "uniform" in name else [], keywords


@pytest.mark.parametrize("name", scipy_copy.NAMES)
def test_random(name, everything, reasons, monkeypatch):
    """Integers are SciPy's; numbers in floating point are as near as the order of additions and one rounding allow."""
    rng = np.random.default_rng(list(name.encode()))
    for _ in range(120):
        monkeypatch.setattr(slabs, "SLAB", int(rng.choice([4, 32, 128])))
        ndim = int(rng.integers(1, 4))
        shape = tuple(rng.integers(1, (60, 25, 12)[ndim - 1], ndim))
        dtype = rng.choice(list("?bBhHiIlLfdFD"))
        x = samples(rng, shape, dtype)
        x = x[::-1].T if rng.random() < 0.3 else x
        given, keywords = arguments(rng, name, x.ndim)
        if x.dtype.kind == "c":
            keywords["cval"] = keywords["cval"] + 0.5j if "magnitude" not in name else keywords["cval"]
        elif rng.random() < 0.5 or dtype in "?IL":  # C does not define the values of negative sums in large unsigned types
            keywords["output"] = np.dtype(rng.choice(list("bhilfd")))
        with np.errstate(all="ignore"):
            expected, got = (f(x, *given, **keywords) for f in (THEIRS[name], getattr(ndimage, name)))
        assert got.dtype == expected.dtype and got.shape == expected.shape
        if got.dtype.kind in "iu":
            assert (got == expected).all(), (dtype, shape, given, keywords)
        else:
            # Weights sum to less than 200 in magnitude, along all axes: 4 (5 x 5 x 5 weights of at most 3 are 375).
            largest = 375 * 50 * (2 if got.dtype.kind == "c" else 1)
            unit = UNIT if got.dtype.char in "dD" else 2.0**-24
            assert np.abs(got - expected).max() <= (2 * 125 * UNIT + 4 * unit) * largest, (dtype, shape, given, keywords)
    assert "samples of bool and float64" not in reasons


@pytest.mark.parametrize("name", scipy_copy.NAMES)
def test_signatures(name):
    assert inspect.signature(getattr(ndimage, name)) == inspect.signature(THEIRS[name])
    assert name in inspect.getdoc(getattr(ndimage, name))


def test_other_names_are_scipys():
    assert ndimage.median_filter is scipy_ndimage.median_filter and signal.firwin is scipy.signal.firwin
    for module in (ndimage, signal):
        with pytest.raises(AttributeError, match="_nothing"):
            module._nothing
        with pytest.raises(AttributeError, match="has no attribute 'gausian'"):
            module.gausian


def test_examples():
    from partita._ndimage import template

    assert doctest.testmod(template).attempted > 2 and doctest.testmod(template).failed == 0


@pytest.mark.parametrize("call", [
    lambda m, x: m.correlate1d(x, [], 0),
    lambda m, x: m.correlate1d(x, [1, 2], 5),
    lambda m, x: m.correlate1d(x, [1, 2], origin=3),
    lambda m, x: m.correlate(x, [1, 2]),
    lambda m, x: m.correlate(x, np.ones((3, 3)), mode="edge"),
    lambda m, x: m.gaussian_filter(x, 1, output=np.zeros(3)),
    lambda m, x: m.gaussian_filter(x, [1, 2, 3]),
    lambda m, x: m.gaussian_filter(x.astype(np.float16), 1),
    lambda m, x: m.sobel(x, mode=["reflect"]),
    lambda m, x: m.uniform_filter(x, 3, origin=2),
    lambda m, x: m.laplace(x, axes=(0, 0)),
    lambda m, x: m.convolve(x, np.ones((3, 3)) * 1j, cval=1j),
    lambda m, x: m.correlate(x + 0j, np.ones((3, 3)), output="float64"),
])
def test_errors(call, everything):
    x = np.ones((5, 6))
    with pytest.raises(Exception) as expected:
        call(scipy_ndimage, x)
    with pytest.raises(type(expected.value)) as got:
        call(ndimage, x)
    assert str(got.value) == str(expected.value)


@pytest.mark.parametrize("output", [np.int16, np.uint8, np.int32])
@pytest.mark.parametrize("level", [1, 25, 255])
def test_flat_areas_of_integers(output, level, everything, reasons):
    """The sum of the weights is 1 but for rounding, so that rounding decides between two integers."""
    x = np.full((40, 50), level, np.uint8)
    x[10:20, 10:20] = 7
    for sigma in (0.7, 1, 2.3):
        assert (ndimage.gaussian_filter(x, sigma, output=output) == THEIRS["gaussian_filter"](x, sigma, output=output)).all()
    assert not reasons


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name, given", [("correlate", (np.array([[0, 1, 0], [1, 0, 2], [0, 1, 0]]),)), ("sobel", ()),
                                         ("correlate1d", ([0, 1.5, -1],)), ("gaussian_filter", (1,)), ("laplace", ())])
def test_samples_that_are_not_finite(bad, name, given, everything):
    """They reach the results that SciPy's sums reach: of correlate, zero weights hide them."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (30, 31))
    x[12, 17] = x[0, 5] = bad
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(getattr(ndimage, name)(x, *given), THEIRS[name](x, *given), rtol=0, atol=1e-13)


def test_outputs_in_place_and_of_any_layout(everything):
    rng = np.random.default_rng(6)
    x = rng.uniform(-1, 1, (30, 31))
    expected = THEIRS["gaussian_filter"](x, 1.5)
    y = x.copy()
    assert ndimage.gaussian_filter(y, 1.5, output=y) is y
    assert np.abs(y - expected).max() <= 100 * UNIT
    for out in (np.zeros((31, 30)).T, np.zeros((60, 62))[::2, ::-2], np.zeros((30, 31), ">f8")):
        ndimage.gaussian_filter(x, 1.5, output=out)
        assert np.abs(out - expected).max() <= 100 * UNIT
    shifted = np.zeros((31, 31))
    shifted[:30] = x
    ndimage.correlate1d(shifted[:30], [1, 2, 1], 0, output=shifted[1:])
    assert np.abs(shifted[1:] - THEIRS["correlate1d"](x, [1, 2, 1], 0)).max() <= 100 * UNIT


def test_sums_in_f64_for_samples_in_f32(everything):
    """The result is the sum in f64, rounded once."""
    x = np.random.default_rng(7).uniform(-1, 1, (50, 60)).astype(np.float32)
    w = np.random.default_rng(8).uniform(-1, 1, (7, 7))
    sums = THEIRS["correlate"](x.astype(np.float64), w)
    assert np.abs(ndimage.correlate(x, w) - sums).max() <= 2.0**-24 * np.abs(sums).max() + 2 * 49 * UNIT * 49


def test_zeros_stay_zeros(everything):
    """Each result is a sum of its own: no rounding errors of far samples."""
    x = np.zeros((200, 200))
    x[0, 0] = 1e30
    assert (ndimage.convolve(x, np.ones((31, 31)))[40:, 40:] == 0).all()


def test_plain_and_large_arrays_are_not_left_to_scipy(reasons):
    x = np.random.default_rng(9).uniform(-1, 1, (600, 600))
    for dtype in (np.float64, np.float32):
        ndimage.gaussian_filter(x.astype(dtype), 2)
        ndimage.sobel(x.astype(dtype))
        ndimage.uniform_filter(x.astype(dtype), 5)
    assert not reasons
    ndimage.sobel(x[:9, :9])
    ndimage.uniform_filter(x, 99)
    assert set(reasons) == {"few samples", "running sums"}


def test_threads(everything):
    """Calls of several threads at once have the results of calls one after the other."""
    x = np.random.default_rng(10).uniform(-1, 1, (4, 80, 70))
    expected, got = [ndimage.gaussian_filter(v, 1) for v in x], [None] * len(x)

    def work(i):
        for _ in range(20):
            got[i] = ndimage.gaussian_filter(x[i], 1)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(x))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all((a == b).all() for a, b in zip(got, expected))


def test_patched():
    with signal.patched():
        assert scipy_ndimage.sobel is ndimage.sobel
    assert scipy_ndimage.sobel is THEIRS["sobel"]

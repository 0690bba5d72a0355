# SPDX-License-Identifier: MIT
"""lfilter and upfirdn beside SciPy."""
import numpy as np
import pytest
import signal_oracle as oracle

from partita import signal

scipy_signal = pytest.importorskip("scipy.signal")


@pytest.fixture
def rng():
    return np.random.default_rng(18)


def near(got, theirs, x, h):
    assert got.dtype == theirs.dtype and got.shape == theirs.shape
    if got.size:
        assert np.abs(got - theirs).max() <= 2 * oracle.tolerance(np.ravel(x), np.ravel(h), got.dtype)


@pytest.mark.parametrize("dtype_b, dtype_x", [("float64", "float64"), ("float32", "float32"), ("float64", "complex128"),
                                              ("complex64", "float32"), ("complex128", "complex128"), ("float32", "int16")])
@pytest.mark.parametrize("axis", (0, 1, -1))
@pytest.mark.parametrize("taps, gain", [(1, 1.0), (2, 2.0), (9, [0.5]), (120, 1)])
def test_lfilter(dtype_b, dtype_x, axis, taps, gain, rng):
    b, x = oracle.noise(rng, taps, dtype_b), oracle.noise(rng, (50, 3, 40), dtype_x)
    near(signal.lfilter(b, gain, x, axis), scipy_signal.lfilter(b, gain, x, axis), x, 2 * b)
    shape = list(x.shape)
    shape[axis] = taps - 1
    for zi in (oracle.noise(rng, shape, dtype_x), np.ones([taps - 1 if a == axis % 3 else 1 for a in range(3)])):
        got, theirs = (module.lfilter(b, gain, x, axis, zi) for module in (signal, scipy_signal))
        for ours, other in zip(got, theirs):
            near(ours, other, np.append(x.ravel(), zi.ravel()), np.append(2 * b, 1))


def test_lfilter_in_blocks_is_lfilter_at_once(rng):
    b, x = oracle.noise(rng, 64, "float64"), oracle.noise(rng, (2, 1000), "float64")
    zi, blocks = np.zeros((2, 63)), []
    for at in (0, 1, 20, 300):
        y, zi = signal.lfilter(b, 1, x[:, at:{0: 1, 1: 20, 20: 300, 300: 1000}[at]], zi=zi)
        blocks.append(y)
    near(np.concatenate(blocks, 1), signal.lfilter(b, 1, x), x, b)


def test_masks_of_taps_are_ignored():
    taps, x = np.random.default_rng(0).normal(size=7), np.ones(50)
    masked = np.ma.masked_array(taps, mask=[0, 1, 0, 0, 0, 0, 0])
    for a in (1.0, [2.0], np.ma.masked_array([2.0], mask=[1])):
        got = signal.lfilter(masked, a, np.ma.masked_array(x, mask=x > 0))
        np.testing.assert_array_equal(got, signal.lfilter(taps, np.asarray(a), x))
        np.testing.assert_allclose(got, scipy_signal.lfilter(masked, a, x), rtol=1e-12)


@pytest.mark.parametrize("a", ([2.0], [1.0, 0.5]))
@pytest.mark.parametrize("dtype", ("float32", "float64", "complex128"))
@pytest.mark.parametrize("shape, axis", [((0,), 0), ((0, 5), 0), ((0, 5), 1), ((5, 0), -1)])
def test_lfilter_of_no_samples(shape, axis, dtype, a, rng):
    """y is empty and zf is zi, so that the first or any later chunk of a signal may be empty."""
    b, x = np.array([1, 2, 3], np.float32), np.empty(shape, dtype)
    y = signal.lfilter(b, a, x, axis)
    assert y.shape == shape and y.dtype == np.result_type(b, np.asarray(a), x)
    zi = np.moveaxis(oracle.noise(rng, (2, *np.delete(shape, axis)), dtype), 0, axis)
    y, zf = signal.lfilter(b, a, x, axis, zi)
    assert y.shape == shape and y.dtype == zf.dtype and not np.shares_memory(zf, zi)
    np.testing.assert_array_equal(zf, zi)
    with pytest.raises(ValueError, match="zi"):
        signal.lfilter(b, a, x, axis, np.ones(9))


@pytest.mark.parametrize("up, down", [(2**20 + 1, 2**19), (1196411, 1195968), (3, 2**50)])
def test_factors_that_the_library_does_not_have(up, down, rng):
    h, x = rng.normal(size=40), rng.normal(size=9)
    np.testing.assert_allclose(signal.upfirdn(h, x, up, down), scipy_signal.upfirdn(h, x, up, down), atol=1e-12)


@pytest.mark.parametrize("bad", (np.nan, np.inf))
@pytest.mark.parametrize("up, down", [(1, 1), (1, 3), (3, 1), (3, 2), (4, 6), (1, 100)])
def test_only_what_depends_on_a_tap_that_is_not_finite(up, down, bad, rng):
    """And, as in SciPy, the outputs behind the last sample in which such a tap is multiplied by a zero."""
    h, x = rng.normal(size=20), rng.normal(size=(2, 50))
    h[7] = bad
    for mode in ("constant", "edge"):
        got, theirs = (module.upfirdn(h, x, up, down, mode=mode) for module in (signal, scipy_signal))
        np.testing.assert_array_equal(np.isnan(got), np.isnan(theirs))
        np.testing.assert_allclose(got, theirs, atol=1e-12)
    np.testing.assert_array_equal(np.isnan(signal.lfilter(h, 1, x)), np.isnan(scipy_signal.lfilter(h, 1, x)))


def test_recursive_filters_are_scipys(rng):
    b, a = scipy_signal.butter(3, 0.2)
    x = oracle.noise(rng, 100, "float64")
    np.testing.assert_array_equal(signal.lfilter(b, a, x), scipy_signal.lfilter(b, a, x))


@pytest.mark.parametrize("up, down", [(1, 1), (1, 3), (2, 1), (3, 2), (2, 3), (4, 6), (7, 5), (160, 147), (5, 40)])
@pytest.mark.parametrize("dtype_h, dtype_x", [("float64", "float64"), ("float32", "complex64"), ("complex128", "float64"),
                                              ("int64", "float32"), ("float32", "int8")])
def test_upfirdn(up, down, dtype_h, dtype_x, rng):
    for taps, n in ((1, 1), (1, 7), (2, 5), (25, 3), (61, 200)):
        h, x = oracle.noise(rng, taps, dtype_h), oracle.noise(rng, n, dtype_x)
        near(signal.upfirdn(h, x, up, down), scipy_signal.upfirdn(h, x, up, down), x, h)
    h, x = oracle.noise(rng, 12, dtype_h), oracle.noise(rng, (3, 20, 4), dtype_x)
    for axis in (0, 1, -1):
        near(signal.upfirdn(h, x, up, down, axis), scipy_signal.upfirdn(h, x, up, down, axis), x, h)


MODES = ("constant", "edge", "wrap", "symmetric", "reflect", "antisymmetric", "antireflect", "smooth", "line")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype_h, dtype_x", [("float64", "float64"), ("float32", "complex64"), ("complex128", "int64")])
@pytest.mark.parametrize("up, down", [(1, 1), (1, 3), (3, 2)])
def test_extensions(up, down, dtype_h, dtype_x, mode, rng):
    for taps, n in ((1, 5), (4, 9), (26, 4), (9, 2), (7, 1)):
        if n == 1 and mode in ("smooth", "line", "reflect", "antireflect"):
            continue  # SciPy reads a second sample that is not there, or ends the process
        h, x = oracle.noise(rng, taps, dtype_h), oracle.noise(rng, (2, n), dtype_x)
        got, theirs = (module.upfirdn(h, x, up, down, -1, mode, 1.5) for module in (signal, scipy_signal))
        near(got, theirs, np.tile(np.append(x, 1.5), 8 * (1 + taps // n)), h)
    assert signal.upfirdn([1.0, 1.0], [3.0], mode=mode, cval=3).tolist() == (
        [0, 0] if mode == "antisymmetric" else [6, 6])
    got, theirs = (module.upfirdn(h[:3], x.T, up, down, 0, "edge") for module in (signal, scipy_signal))
    near(got, theirs, np.tile(x, 8), h)

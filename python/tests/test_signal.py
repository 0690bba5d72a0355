# SPDX-License-Identifier: MIT
"""partita.signal beside SciPy and beside sums in long double: values, types, shapes."""
import itertools

import numpy as np
import pytest
import signal_oracle as oracle

from partita import Problem, signal
from partita._signal import native

scipy_signal = pytest.importorskip("scipy.signal")
MODES = ("full", "same", "valid")
FLOATS = ("float32", "float64", "complex64", "complex128")
SHAPES = [((1,), (1,)), ((10,), (3,)), ((3,), (10,)), ((6,), (6,)), ((1000,), (32,)), ((2500,), (400,)),
          ((400,), (2500,)), ((5, 6), (2, 3)), ((2, 3), (5, 6)), ((32, 32), (3, 3)), ((40, 31), (15, 12)),
          ((8, 9, 7), (4, 3, 5)), ((3, 40), (20, 5)), ((4, 5, 6), (2, 3, 2)), ((7, 1, 5), (3, 1, 2)), ((1, 9), (4, 2))]


def with_modes(shapes):
    """Pairs of shapes with the modes that exist for them."""
    return [(x, h, mode) for x, h in shapes for mode in MODES
            if mode != "valid" or all(n >= m for n, m in zip(x, h)) or all(n <= m for n, m in zip(x, h))]


@pytest.fixture
def rng():
    return np.random.default_rng(17)


@pytest.mark.parametrize("shape1, shape2, mode", with_modes(SHAPES))
@pytest.mark.parametrize("dtype1, dtype2", [(t, t) for t in FLOATS] + [("complex64", "float32"), ("float64", "complex128"),
                                                                     ("float32", "float64")])
@pytest.mark.parametrize("name", ("convolve", "correlate", "fftconvolve"))
def test_values(name, shape1, shape2, dtype1, dtype2, mode, rng):
    x, h = oracle.noise(rng, shape1, dtype1), oracle.noise(rng, shape2, dtype2)
    got = getattr(signal, name)(x, h, mode)
    theirs = getattr(scipy_signal, name)(x, h, mode)
    assert got.dtype == theirs.dtype and got.shape == theirs.shape
    oracle.check(got, oracle.moded(x, oracle.reverse(h) if name == "correlate" else h, mode), x, h)


@pytest.mark.parametrize("dtype1, dtype2", list(itertools.combinations_with_replacement(
    ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "complex64"), 2)))
@pytest.mark.parametrize("name", ("convolve", "correlate", "fftconvolve"))
def test_types_of_results(name, dtype1, dtype2, rng):
    x, h = oracle.noise(rng, 20, dtype1), oracle.noise(rng, 5, dtype2)
    got, theirs = getattr(signal, name)(x, h), getattr(scipy_signal, name)(x, h)
    assert got.dtype == theirs.dtype
    np.testing.assert_allclose(got, theirs, rtol=2e-3 if "float16" in (dtype1, dtype2) else 1e-4, atol=1e-3)


def wrapped(x, h, dtype):
    """The convolution of integers of one axis, exact, then reduced to the type."""
    y = [0] * (len(x) + len(h) - 1)
    for i, a in enumerate(x.tolist()):
        for j, b in enumerate(h.tolist()):
            y[i + j] += a * b
    bits = 8 * dtype.itemsize
    half = 0 if dtype.kind == "u" else 1 << (bits - 1)
    return np.array([(v + half) % (1 << bits) - half for v in y], dtype)


@pytest.mark.parametrize("dtype", ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"))
@pytest.mark.parametrize("n, m", [(30, 7), (7, 30), (600, 500)])
def test_integers_are_exact_and_wrap(dtype, n, m, rng):
    dtype = np.dtype(dtype)
    limits = np.iinfo(dtype)
    largest = min(limits.max, 2**20)
    x, h = (rng.integers(max(limits.min, -largest), largest, size).astype(dtype) for size in (n, m))
    for method in ("auto", "direct", "fft"):
        np.testing.assert_array_equal(signal.convolve(x, h, method=method), wrapped(x, h, dtype))


def test_integers_of_several_axes_are_exact(rng):
    x, h = rng.integers(0, 256, (300, 200)), rng.integers(-128, 128, (31, 17))
    got = signal.convolve(x, h, "same")
    assert got.dtype == np.int64
    np.testing.assert_array_equal(got, np.rint(oracle.moded(x, h, "same")).astype(np.int64))


def test_integers_beyond_f64_are_scipys(rng):
    x, h = (rng.integers(-2**40, 2**40, size) for size in (20, 9))
    np.testing.assert_array_equal(signal.convolve(x, h), wrapped(x, h, np.dtype(np.int64)))


def test_booleans():
    x, h = np.array([True, False, True, False, False]), np.array([True, True])
    for mode in MODES:
        got = signal.convolve(x, h, mode)
        assert got.dtype == bool
        np.testing.assert_array_equal(got, np.convolve(x, h, mode))


@pytest.mark.parametrize("name", ("fftconvolve", "oaconvolve", "convolve"))
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape1, shape2, axes", [
    ((3, 40), (3, 7), 1), ((3, 40), (1, 7), 1), ((1, 40), (3, 7), 1), ((40, 3), (7, 3), 0), ((40, 3), (7, 1), [0]),
    ((2, 30, 3), (2, 8, 1), [1]), ((2, 30, 20), (1, 8, 5), [1, 2]), ((30, 1, 20), (8, 4, 5), [2, 0]),
    ((2, 9, 8, 3), (2, 4, 3, 1), (-2, -3)), ((1, 1), (1, 5), 1), ((4, 1), (1, 5), [0, 1])])
@pytest.mark.parametrize("dtype1, dtype2", [("float64", "float64"), ("complex128", "complex128"), ("complex64", "float32"),
                                            ("float64", "complex128")])
def test_axes(name, shape1, shape2, axes, mode, dtype1, dtype2, rng):
    x, h = oracle.noise(rng, shape1, dtype1), oracle.noise(rng, shape2, dtype2)
    listed = [a % x.ndim for a in ([axes] if isinstance(axes, int) else axes)]
    if name == "convolve" and mode == "same":  # SciPy takes the centre of axes that are broadcast, too
        theirs = scipy_signal.fftconvolve(x, h, "full", axes)
        theirs = oracle.centre(theirs, [x.shape[a] if a in listed else n for a, n in enumerate(theirs.shape)])
    else:
        theirs = scipy_signal.fftconvolve(x, h, mode, axes)
    got = getattr(signal, name)(x, h, mode, axes=axes)
    assert got.dtype == theirs.dtype and got.shape == theirs.shape and got.flags.c_contiguous
    assert np.abs(got - theirs).max() <= 2 * oracle.tolerance(x, h, got.dtype, listed)


@pytest.mark.parametrize("dtype", ("float32", "complex128"))
def test_correlation_of_rows(dtype, rng):
    x, h = oracle.noise(rng, (5, 60), dtype), oracle.noise(rng, (5, 9), dtype)
    got = signal.correlate(x, h, axes=1)
    for row in range(5):
        oracle.check(got[row], oracle.full(x[row], oracle.reverse(h[row])), x[row], h[row])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ("float32", "float64", "complex128"))
def test_a_signal_with_a_bank_of_templates(dtype, mode, rng):
    """One row with seven: seven results, each as long as that of a pair of rows."""
    for n, m in ((60, 9), (60, 8), (8, 60)):
        x, bank = oracle.noise(rng, (1, n), dtype), oracle.noise(rng, (7, m), dtype)
        for function in (signal.correlate, signal.convolve):
            got = function(x, bank, mode, axes=1)
            assert got.shape[0] == 7
            for row in range(7):
                oracle.check(got[row], function(x[0], bank[row], mode), x[0], bank[row])


def test_real_taps_stay_real(rng, monkeypatch):
    x, h = oracle.noise(rng, 20000, "complex64"), oracle.noise(rng, 301, "float32")
    native.planned.cache_clear()
    made = []
    monkeypatch.setattr(native, "Problem", lambda **fields: made.append(Problem(**fields)) or made[-1])
    oracle.check(signal.convolve(x, h), oracle.full(x, h), x, h)
    problem, = made
    assert problem.signal == "cf32" and problem.taps == "f32"


@pytest.mark.parametrize("boundary", ("fill", "wrap", "symm"))
@pytest.mark.parametrize("shape1, shape2, mode", with_modes([
    ((5, 6), (2, 3)), ((3, 4), (4, 4)), ((2, 3), (7, 8)), ((1, 4), (1, 21)), ((30, 20), (6, 5))]))
@pytest.mark.parametrize("dtype1, dtype2", [("int64", "int64"), ("uint8", "int16"), ("float32", "float32"),
                                            ("float64", "complex128"), ("complex64", "complex64"), ("int32", "float64")])
@pytest.mark.parametrize("name", ("convolve2d", "correlate2d"))
def test_images(name, dtype1, dtype2, shape1, shape2, mode, boundary, rng):
    x, h = oracle.noise(rng, shape1, dtype1), oracle.noise(rng, shape2, dtype2)
    fill = 2.5 if x.dtype.kind in "fc" else 3
    for value in (0, fill):
        got = getattr(signal, name)(x, h, mode, boundary, value)
        theirs = getattr(scipy_signal, name)(x, h, mode, boundary, value)
        assert got.dtype == theirs.dtype
        if got.dtype.kind in "iu":
            np.testing.assert_array_equal(got, theirs)
        else:
            spread = np.pad(x, [(m, m) for m in shape2], constant_values=value) if boundary == "fill" else np.tile(x, (9, 9))
            assert np.abs(got - theirs).max() <= 2 * oracle.tolerance(spread, h, got.dtype)


def test_array_likes_and_scalars():
    assert signal.convolve(3, 4) == 12 and signal.correlate(2, 3j) == -6j and signal.fftconvolve(2, 5) == 10
    np.testing.assert_array_equal(signal.convolve([1, 2, 3], (1, 1)), [1, 3, 5, 3])
    assert signal.fftconvolve([], [1]).shape == (0,) and signal.oaconvolve(np.ones((2, 0)), np.ones((2, 2))).shape == (0,)


@pytest.mark.parametrize("change", (
    lambda x: x[::-1], lambda x: np.repeat(x, 2)[::2], lambda x: x.astype(x.dtype.newbyteorder(">")),
    lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype),
    lambda x: np.broadcast_to(x[:1], x.shape)), ids=("reversed", "strided", "big-endian", "misaligned", "repeated"))
@pytest.mark.parametrize("n, m", [(40, 9), (30000, 300)])
def test_memory_layouts(change, n, m, rng):
    x, h = (change(oracle.noise(rng, size, "float64")) for size in (n, m))
    oracle.check(signal.convolve(x, h), oracle.full(x, h), x, h)
    for resampled in ((h, x, 1, 3), (h, x, 3, 2), (h, x.astype("complex64"), 2), (h[0:], np.stack((x, x), 1), 2, 1, 0)):
        expected = scipy_signal.upfirdn(*resampled)
        assert np.abs(signal.upfirdn(*resampled) - expected).max() <= 1e-5 * np.abs(expected).max()


def test_operands_are_not_changed(rng):
    x, h = oracle.noise(rng, (20, 3), "complex128"), oracle.noise(rng, (5, 3), "complex128")
    before = x.copy(), h.copy()
    signal.correlate(x, h)
    signal.convolve(x, h, axes=0)
    signal.lfilter(h[:, 0], 2.0, x, axis=0)
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(h, before[1])


@pytest.mark.parametrize("name", ("convolve2d", "correlate2d"))
@pytest.mark.parametrize("mode", MODES)
def test_images_without_samples(name, mode):
    """Zeros in the shape of SciPy's result; SciPy divides by zero where such an image is to be repeated."""
    for shape1, shape2 in (((0, 3), (5, 6)), ((5, 6), (0, 3)), ((4, 0), (4, 2)), ((0, 0), (2, 2))):
        x, h = np.ones(shape1, np.float32), np.ones(shape2, np.float32)
        expected = getattr(scipy_signal, name)(x, h, mode, "fill")
        for boundary in ("fill", "wrap", "symm"):
            got = getattr(signal, name)(x, h, mode, boundary)
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(got, expected)


def test_images_without_samples_of_negative_size():
    with pytest.raises(ValueError, match="negative dimensions"):
        signal.convolve2d(np.ones((0, 3)), np.ones((0, 2)))


def test_fill_values_that_are_not_used():
    x, h = np.ones((3, 3)), np.ones((2, 2))
    for value in (1j, None, [1, 2], []):
        for boundary in ("wrap", "symm"):
            np.testing.assert_array_equal(signal.convolve2d(x, h, "full", boundary, value), np.full((4, 4), 4.0))
    assert np.isnan(signal.convolve2d(x, h, fillvalue=None)).sum() == 12  # all but the inner four


@pytest.mark.parametrize("name", ("convolve2d", "correlate2d"))
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bad", (np.nan, np.inf))
def test_taps_of_images_that_are_not_finite(name, mode, bad, rng):
    """SciPy multiplies them by the fill value, too, which is 0 by default."""
    for shape1, shape2 in (((12, 11), (3, 4)), ((3, 4), (12, 11)), ((5, 5), (5, 5)), ((40, 41), (2, 2))):
        x, h = rng.standard_normal(shape1), rng.standard_normal(shape2)
        h[0, 1] = bad
        for boundary, value in itertools.product(("fill", "wrap", "symm"), (0, 1.5)):
            with np.errstate(invalid="ignore"):
                got, expected = (getattr(m, name)(x, h, mode, boundary, value) for m in (signal, scipy_signal))
            np.testing.assert_allclose(got, expected, 1e-13, 1e-13)  # some 130 roundings of sums of about 10


def by_definition(x, h):
    """The full convolution of one axis, of terms that are there: no zero around the arrays is multiplied."""
    y = np.zeros(len(x) + len(h) - 1, np.result_type(x, h))
    with np.errstate(invalid="ignore"):
        for k, tap in enumerate(h):
            y[k:k + len(x)] += tap * x
    return y


@pytest.mark.parametrize("bad", (np.nan, np.inf))
@pytest.mark.parametrize("dtype", ("float32", "float64", "complex128"))
@pytest.mark.parametrize("n, m", [(50, 50), (50, 51), (300, 7), (7, 300), (5000, 900), (40_000, 300)])
def test_only_what_depends_on_a_tap_that_is_not_finite(n, m, dtype, bad, rng):
    x, h = oracle.noise(rng, n, dtype), oracle.noise(rng, m, dtype)
    h[m // 3] = bad
    for first, second in ((x, h), (h, x)):
        for op in ("convolve", "correlate"):
            expected = by_definition(first, second if op == "convolve" else oracle.reverse(second))
            for mode in MODES:
                for method in ("auto", "direct"):
                    got = getattr(signal, op)(first, second, mode, method)
                    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(oracle.centre(expected, got.shape)))
    both = x.copy()
    both[n // 2] = bad
    np.testing.assert_array_equal(np.isfinite(signal.convolve(both, h)), np.isfinite(by_definition(both, h)))


@pytest.mark.parametrize("first, second", [("float64", "complex128"), ("float32", "complex64"), ("complex64", "float32")])
def test_a_nan_among_as_many_taps_of_another_type(first, second, rng):
    x, h = oracle.noise(rng, 50, first), oracle.noise(rng, 50, second)
    h[20] = np.nan
    for op in ("convolve", "correlate"):
        for mode in MODES:
            got, theirs = (getattr(module, op)(x, h, mode, "direct") for module in (signal, scipy_signal))
            np.testing.assert_array_equal(np.isnan(got), np.isnan(theirs))


@pytest.mark.parametrize("shape1, shape2, axes", [((20, 30), (4, 5), None), ((3, 20, 30), (1, 4, 5), (1, 2)),
                                                  ((1, 400), (3, 20), 1), ((3, 400), (3, 20), 1)])
def test_taps_that_are_not_finite_in_more_axes(shape1, shape2, axes, rng):
    x, h = oracle.noise(rng, shape1, "float64"), oracle.noise(rng, shape2, "float64")
    place = (0,) * (h.ndim - 2) + (1, 2)
    h[place] = np.nan
    got = signal.convolve(x, h, axes=axes)
    touched = np.zeros(h.shape)
    touched[place] = 1
    reached = oracle.full(np.ones(shape1), touched, axes if axes is None or isinstance(axes, tuple) else [axes]) != 0
    np.testing.assert_array_equal(np.isnan(got), reached)
    clean = np.where(np.isnan(h), 0, h)
    expected = signal.convolve(x, clean, axes=axes)
    oracle.check(got[~reached], expected[~reached], x.ravel(), clean.ravel())


def test_only_what_depends_on_a_nan_is_nan(rng):
    x, h = oracle.noise(rng, 10000, "float64"), oracle.noise(rng, 200, "float64")
    x[5000] = np.nan
    got = signal.convolve(x, h)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(got)), np.arange(5000, 5200))
    clean = np.where(np.isnan(x), 0, x)
    assert np.nanmax(np.abs(got - oracle.full(clean, h))) <= oracle.tolerance(clean, h, got.dtype)


@pytest.mark.parametrize("dtype", ("float64", "complex64"))
def test_only_what_depends_on_an_infinity_is_not_finite_in_images(dtype, rng):
    x, h = oracle.noise(rng, (60, 50), dtype), oracle.noise(rng, (9, 8), dtype)
    x[30, 20], x[31, 20] = np.inf, -np.inf
    expected = np.zeros((68, 57), bool)
    expected[30:40, 20:28] = True
    np.testing.assert_array_equal(np.isfinite(signal.convolve(x, h)), ~expected)

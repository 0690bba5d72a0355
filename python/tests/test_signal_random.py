# SPDX-License-Identifier: MIT
"""Drawn shapes, types, modes and axes against sums in long double."""
import numpy as np
import pytest
import signal_oracle as oracle

from partita import signal

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies
settings = hypothesis.settings(max_examples=150)
DTYPES = st.sampled_from(("float32", "float64", "complex64", "complex128"))


@st.composite
def operands(draw):
    """Two shapes of one number of axes, the axes to convolve, and types."""
    rank = draw(st.integers(1, 4))
    axes = draw(st.lists(st.integers(0, rank - 1), min_size=1, max_size=min(rank, 3), unique=True))
    largest = {1: 400, 2: 24, 3: 9}[len(axes)]
    shapes = [[], []]
    for a in range(rank):
        if a in axes:
            sizes = draw(st.integers(1, largest)), draw(st.integers(1, largest if rank == 1 else 6))
        else:
            size = draw(st.integers(1, 3))
            sizes = size, draw(st.sampled_from((size, 1)))
        sizes = sizes[::-1] if draw(st.booleans()) else sizes
        for shape, size in zip(shapes, sizes):
            shape.append(size)
    return tuple(shapes[0]), tuple(shapes[1]), axes, draw(DTYPES), draw(DTYPES)


@settings
@hypothesis.given(operands(), st.sampled_from(("full", "same", "valid")), st.booleans(), st.integers(0, 2**32))
def test_axes(case, mode, correlate, seed):
    shape1, shape2, axes, dtype1, dtype2 = case
    if mode == "valid" and not any(all(n >= m for n, m in pairs) for pairs in (
            [(shape1[a], shape2[a]) for a in axes], [(shape2[a], shape1[a]) for a in axes])):
        mode = "full"
    rng = np.random.default_rng(seed)
    x, h = oracle.noise(rng, shape1, dtype1), oracle.noise(rng, shape2, dtype2)
    got = (signal.correlate if correlate else signal.convolve)(x, h, mode, axes=axes)
    assert got.dtype == np.result_type(x, h)
    oracle.check(got, oracle.moded(x, oracle.reverse(h, axes) if correlate else h, mode, axes), x, h, axes)


@settings
@hypothesis.given(st.integers(1, 300), st.integers(1, 300), st.integers(-400, 700), st.integers(1, 400), DTYPES, DTYPES,
                  st.integers(0, 2**32))
def test_windows(n, m, first, count, dtype1, dtype2, seed):
    rng = np.random.default_rng(seed)
    x, h = oracle.noise(rng, n, dtype1), oracle.noise(rng, m, dtype2)
    whole = np.pad(oracle.full(x, h), 1200)
    got = signal.convolve(x, h, slice(first, first + count))
    oracle.check(got, whole[1200 + first:1200 + first + count], x, h)


@settings
@hypothesis.given(st.sampled_from(("int8", "uint8", "int16", "uint16", "int32", "int64")), st.integers(1, 60),
                  st.integers(1, 60), st.integers(1, 40), st.integers(0, 2**32))
def test_integers(dtype, n, m, bits, seed):
    rng = np.random.default_rng(seed)
    limits = np.iinfo(dtype)
    low, high = max(limits.min, -(1 << bits)), min(limits.max, 1 << bits)
    x, h = (rng.integers(low, high, size, endpoint=True).astype(dtype) for size in (n, m))
    # NumPy sums integers in their own type: the products of its convolution wrap as they must.
    np.testing.assert_array_equal(signal.convolve(x, h), np.convolve(x, h))


@settings
@hypothesis.given(st.integers(1, 80), st.integers(1, 60), st.integers(1, 9), st.integers(1, 9), DTYPES, DTYPES,
                  st.integers(0, 2**32))
def test_upfirdn(n, m, up, down, dtype1, dtype2, seed):
    rng = np.random.default_rng(seed)
    x, h = oracle.noise(rng, n, dtype1), oracle.noise(rng, m, dtype2)
    spread = np.zeros((n - 1) * up + 1, x.dtype)
    spread[::up] = x
    oracle.check(signal.upfirdn(h, x, up, down), oracle.full(spread, h)[::down], x, h)


@settings
@hypothesis.given(st.lists(st.integers(1, 50), min_size=1, max_size=6), st.integers(1, 40), DTYPES, DTYPES,
                  st.integers(0, 2**32))
def test_lfilter_state(cuts, m, dtype1, dtype2, seed):
    rng = np.random.default_rng(seed)
    x, b = oracle.noise(rng, sum(cuts), dtype1), oracle.noise(rng, m, dtype2)
    expected = oracle.full(x, b)
    zi, blocks, at = np.zeros(m - 1, np.result_type(x, b)), [], 0
    for cut in cuts:
        y, zi = signal.lfilter(b, 1.0, x[at:at + cut], zi=zi)
        blocks.append(y)
        at += cut
    got = np.concatenate(blocks + [zi])
    assert np.abs(got - expected).max() <= (1 + len(cuts)) * oracle.tolerance(x, b, got.dtype)

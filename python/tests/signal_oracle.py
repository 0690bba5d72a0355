# SPDX-License-Identifier: MIT
"""Full convolutions summed term by term in long double, and how far a result may be from them."""
import itertools
import math

import numpy as np

UNIT = {"f": 2.0**-24, "F": 2.0**-24, "d": 2.0**-53, "D": 2.0**-53, "e": 2.0**-11}


def full(x, h, axes=None):
    """The full convolution along some axes; others are broadcast."""
    axes = range(x.ndim) if axes is None else [a % x.ndim for a in axes]
    wide = np.clongdouble if "c" in (x.dtype.kind, h.dtype.kind) else np.longdouble
    x, h = x.astype(wide), h.astype(wide)
    shape = [n + m - 1 if a in axes else max(n, m) for a, (n, m) in enumerate(zip(x.shape, h.shape))]
    y = np.zeros(shape, wide)
    for shift in itertools.product(*(range(h.shape[a]) if a in axes else (None,) for a in range(x.ndim))):
        term = tuple(slice(None) if s is None else slice(s, s + 1) for s in shift)
        where = tuple(slice(None) if s is None else slice(s, s + x.shape[a]) for a, s in enumerate(shift))
        y[where] += x * h[term]
    return y


def reverse(h, axes=None):
    """What correlation with h convolves with."""
    axes = range(h.ndim) if axes is None else [a % h.ndim for a in axes]
    return h[tuple(slice(None, None, -1 if a in axes else None) for a in range(h.ndim))].conj()


def centre(y, shape):
    first = [(n - m) // 2 for n, m in zip(y.shape, shape)]
    return y[tuple(slice(f, f + m) for f, m in zip(first, shape))]


def moded(x, h, mode, axes=None):
    """What a mode takes from the full convolution."""
    y = full(x, h, axes)
    if mode == "full":
        return y
    axes = range(x.ndim) if axes is None else [a % x.ndim for a in axes]
    if mode == "same":
        return centre(y, [n if a in axes else k for a, (n, k) in enumerate(zip(x.shape, y.shape))])
    return centre(y, [abs(n - m) + 1 if a in axes else k
                      for a, (n, m, k) in enumerate(zip(x.shape, h.shape, y.shape))])


def tolerance(x, h, dtype, axes=None):
    """The largest error of a result in the type `dtype`, rounding of direct sums and of transforms allowed for.

    A direct sum of m products errs by at most m u |x| |h|, transforms of N points by 3 * 7 log2(N) u |x| |h| in
    Euclidean norms (Higham, 24.2); complex products double both. The result is rounded once more.
    """
    axes = range(x.ndim) if axes is None else [a % x.ndim for a in axes]
    m = math.prod(min(x.shape[a], h.shape[a]) for a in axes)
    points = math.prod(x.shape[a] + h.shape[a] for a in axes)
    norms = float(np.linalg.norm(x.astype(np.clongdouble).ravel())) * float(
        np.linalg.norm(h.astype(np.clongdouble).ravel()))
    computed = UNIT["f" if dtype.char == "e" else dtype.char]
    return (2 * (m + 21 * math.log2(points)) * computed + UNIT[dtype.char]) * norms


def check(got, expected, x, h, axes=None):
    """Asserts that a result is near the expected one."""
    assert got.shape == expected.shape
    if got.size:
        assert float(np.abs(got - expected).max()) <= tolerance(x, h, got.dtype, axes)


def noise(rng, shape, dtype):
    """Random samples; integers between -9 and 9, or from 0 on."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -9, 10, shape).astype(dtype)
    x = rng.uniform(-1, 1, shape)
    return (x + 1j * rng.uniform(-1, 1, shape)).astype(dtype) if dtype.kind == "c" else x.astype(dtype)

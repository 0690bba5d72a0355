# SPDX-License-Identifier: MIT
"""Convolution term by term, in any type that NumPy adds and multiplies: for what the library does not compute."""
import itertools
import math

import numpy as np

TERMS = 256  # with more products a result SciPy, which also transforms long double, is faster


def few(x, h, spans):
    """Whether results have so few terms that they are summed here."""
    return math.prod(min(x.shape[a], h.shape[a]) for a in spans) <= TERMS


def convolve(x, h, spans, op, dtype):
    """The windows `spans` of a full convolution or correlation, in the type `dtype` (general.convolve)."""
    x, h = x.astype(dtype, copy=False), h.astype(dtype, copy=False)
    if op == "correlate":
        h = np.flip(h, tuple(spans))
        h = h.conj() if dtype.kind == "c" else h
    if math.prod(x.shape[a] for a in spans) < math.prod(h.shape[a] for a in spans):
        x, h = h, x
    y = np.zeros([n + m - 1 if a in spans else max(n, m) for a, (n, m) in enumerate(zip(x.shape, h.shape))], dtype)
    for shift in itertools.product(*(range(h.shape[a]) if a in spans else (None,) for a in range(h.ndim))):
        term = tuple(slice(None) if s is None else slice(s, s + 1) for s in shift)
        where = tuple(slice(None) if s is None else slice(s, s + x.shape[a]) for a, s in enumerate(shift))
        y[where] += x * h[term]
    for axis, (first, count, stride) in spans.items():  # zeros outside the full convolution
        at = first + stride * np.arange(count)
        outside = (at < 0) | (at >= y.shape[axis])
        y = y.take(at.clip(0, y.shape[axis] - 1), axis)
        y[(slice(None),) * axis + (outside,)] = 0
    return y

# SPDX-License-Identifier: MIT
"""Axes, modes and sizes of results, as SciPy defines them."""
import numbers
import operator

import numpy as np

MODES = ("full", "same", "valid")
PADDINGS = ("edge", "wrap", "symmetric", "reflect", "constant")  # numpy.pad's names


def listed(axes, ndim):
    """The axes that a caller names, counted from 0; all if he names none. The errors are SciPy's."""
    if axes is None:
        return list(range(ndim))
    try:
        axes = [operator.index(a) for a in ((axes,) if isinstance(axes, numbers.Number) else axes)]
    except TypeError:
        raise ValueError("axes must be a scalar or iterable of integers") from None
    axes = [a + ndim if a < 0 else a for a in axes]
    if any(not 0 <= a < ndim for a in axes):
        raise ValueError("axes exceeds dimensionality of input")
    if len(set(axes)) != len(axes):
        raise ValueError("all axes must be unique")
    if not axes:
        raise ValueError("when provided, axes cannot be empty")
    return axes


def shared(x, h, axes):
    """The axes along which both arrays have several items. Along others one array is multiplied by the other's item."""
    return [a for a in axes if x.shape[a] != 1 and h.shape[a] != 1]


def check_broadcast(shape1, shape2, axes):
    """Refuses shapes that differ along other axes than these, unless one of them is 1 there."""
    for a, (n, m) in enumerate(zip(shape1, shape2)):
        if a not in axes and n != m and 1 not in (n, m):
            raise ValueError(f"incompatible shapes for in1 and in2: {shape1} and {shape2}")


def swapped_if_valid(mode, shape1, shape2, axes):
    """Whether mode "valid" exchanges the operands: the first must be the larger one along all of the axes."""
    if mode != "valid" or not shape1:
        return False
    if all(shape1[a] >= shape2[a] for a in axes):
        return False
    if all(shape2[a] >= shape1[a] for a in axes):
        return True
    raise ValueError("For 'valid' mode, one must be at least as large as the other in every dimension")


def full_window(mode, n, m):
    """First index and number of the results of one axis that a mode takes from the full convolution of n and m samples."""
    if mode == "full":
        return 0, n + m - 1
    if mode == "same":
        return (m - 1) // 2, n
    return min(n, m) - 1, abs(n - m) + 1


def sources(first, last, n, padding):
    """The samples of an axis of n that positions [first, last) stand for, and which positions are outside of it."""
    at = np.arange(first, last)
    outside = (at < 0) | (at >= n)
    if padding == "wrap":
        return at % n, outside
    if padding == "symmetric":
        at %= 2 * n
        return np.where(at < n, at, 2 * n - 1 - at), outside
    if padding == "reflect":
        period = max(2 * n - 2, 1)
        at %= period
        return np.where(at < n, at, period - at), outside
    return at.clip(0, n - 1), outside


def along(axis, ndim, value, others):
    """A list with one value for an axis and another one for all other axes."""
    values = [others] * ndim
    values[axis] = value
    return values


def narrow(mode, x, h, axes):
    """h cut to what mode "same" keeps along axes of which x has one item: the centre of the product."""
    if mode != "same":
        return h
    index = [slice(None)] * h.ndim
    for a in axes:
        if h.shape[a] > x.shape[a]:
            first = (h.shape[a] - x.shape[a]) // 2
            index[a] = slice(first, first + x.shape[a])
    return h[tuple(index)]


def deliver(result, out):
    """The result; if the caller gave an array for it, that array, filled."""
    if out is None or result is out:
        return result
    if not isinstance(out, np.ndarray):
        raise TypeError("out is not an array of NumPy")
    if out.shape != result.shape:
        raise ValueError(f"out has shape {out.shape}, the result {result.shape}")
    if out.dtype != result.dtype:
        raise TypeError(f"out has samples of {out.dtype}, the result of {result.dtype}")
    if not out.flags.writeable:
        raise ValueError("out is read-only")
    out[...] = result
    return out

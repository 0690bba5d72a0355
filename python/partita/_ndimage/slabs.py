# SPDX-License-Identifier: MIT
"""Filters of arrays in slabs along their first axis.

A slab of all passes fits into a cache, so that a filter of several passes reads and writes the array once. Samples are
extended as the boundary asks, and the library computes the results that need no more of them, in f64: along the last
filtered axis as channels if enough numbers follow it in memory, else with the taps dilated by them. Each result is a sum
of its own, as in SciPy: transforms would spread rounding errors to samples that are far away.
"""
import math
import threading
import typing

import numpy as np

from partita._errors import failure
from partita._options import get_threads
from partita._partita import ffi, lib
from partita._signal import axes, native

NEAREST, WRAP, REFLECT, MIRROR, CONSTANT = axes.PADDINGS  # SciPy's names
SLAB = 2**16  # samples
# Of the numbers that follow each other behind the last filtered axis: the fewest that become channels, and preferred
# numbers of channels where there are many, whose taps take long to pack, or lines that collide in the first cache.
_FEWEST, _CHANNELS = 16, (96, 32, 64, 48, 40, 24, 16, *range(63, 16, -1))
_UNIT = 2.0**-53


class Pass(typing.NamedTuple):
    """A correlation: weights of f64 with as many axes as the array, and samples before each result that it reads."""

    weights: np.ndarray
    before: tuple
    mode: int
    cval: float
    exact: typing.Any  # (extended samples, weights) -> results in SciPy's order of additions
    divisor: int = 1
    skips: bool = False  # zero weights hide samples that are not finite

    def after(self, axis):
        return self.weights.shape[axis] - 1 - self.before[axis]

    def inner(self):
        """The same for an item of the first axis, along which it does not filter."""
        return self._replace(weights=self.weights[0], before=self.before[1:])


def _extend(v, step, axis, extended):
    """The array `extended` = v with the samples around it along one axis."""
    p, n = step, v.shape[axis]
    before, after = p.before[axis], p.after(axis)

    def part(first, last):
        return (slice(None),) * axis + (slice(first, last),)

    extended[part(before, before + n)] = v
    for first, last in ((-before, 0), (n, n + after)):
        if first < last:
            at = p.cval if p.mode == CONSTANT else v.take(axes.sources(first, last, n, p.mode)[0], axis)
            extended[part(before + first, before + last)] = at
    return extended


def _plan(shape, kernel):
    """The plan of a correlation of f64, its number of channels, for the axes and taps that are not dilated."""
    filtered = [a for a, k in enumerate(kernel) if k > 1] or [len(shape) - 1]
    begin, end = filtered[0], filtered[-1] + 1
    batch, inner = math.prod(shape[:begin]), math.prod(shape[end:])
    size, taps = shape[begin:end], kernel[begin:end]
    fields, engine = {"signal": "f64", "op": "correlate", "batch": batch}, "cpu/direct"
    if inner >= _FEWEST:
        whole = len(size) > 2 or inner <= 128 or (inner <= 1024 and inner % 256 != 0)
        channels = inner if whole else next((c for c in _CHANNELS if inner % c == 0), inner)
        if channels < inner:
            size, taps = (*size, inner // channels), (*taps, 1)
        fields |= {"channels_last": True, "in_channels": channels, "out_channels": channels, "groups": channels}
        engine = "cpu/depthwise"
    else:
        channels = 1
        fields["dilation"] = (1,) * (len(size) - 1) + (inner,)
        size = (*size[:-1], size[-1] * inner)
    fields |= {"size": size, "kernel": taps}
    return native.planned(tuple(fields.items()), None, engine, get_threads()), channels


class _Scratch(threading.local):
    """Memory of a thread: two arrays, of which a pass reads one and writes the other."""

    def __init__(self):
        self._kept = [np.empty(0), np.empty(0)]

    def array(self, number, shape):
        size = math.prod(shape)
        if size > 4 * SLAB:
            return np.empty(shape)
        if self._kept[number].size < size:
            self._kept[number] = np.empty(size)
        return self._kept[number][:size].reshape(shape)


_scratch = _Scratch()


class _Step:
    """A pass over slabs of one shape, with its memory. `source`: f64 that may hold its samples."""

    def __init__(self, p, source, number, dtype):
        self.p, self.source, self.dtype, shape = p, source, dtype, source.shape
        self.inner = [a for a in range(1, len(shape)) if p.weights.shape[a] > 1]
        self.extended = []
        for a in self.inner:
            shape = shape[:a] + (shape[a] + p.weights.shape[a] - 1,) + shape[a + 1:]
            self.extended.append(_scratch.array(number, shape))
            number = 1 - number
        self.plan, channels = _plan(shape, p.weights.shape)
        self.taps = np.tile(p.weights.reshape(-1), channels)
        self.call = ffi.new("struct partita_call *", {"taps": ffi.from_buffer(self.taps)})
        self.y = _scratch.array(number, tuple(n - k + 1 for n, k in zip(shape, p.weights.shape)))
        self.number = 1 - number
        self.sum = float(np.abs(p.weights).sum())
        self.whole = bool((p.weights == np.rint(p.weights)).all())

    def run(self, v, whole, out=None):
        p, y = self.p, self.y if out is None else out
        for axis, extended in zip(self.inner, self.extended):
            v = _extend(v, p, axis, extended)
        status = lib.partita_forward(self.plan._c, ffi.NULL, ffi.from_buffer(y), ffi.from_buffer(v), self.call)
        if status:
            raise failure(status, self.plan.engine)
        if p.divisor != 1:
            y /= p.divisor
        if p.skips and not math.isfinite(y.sum()):
            y[...] = p.exact(v, p.weights)
        return y if self.dtype is None else self.truncated(v, y, whole)

    def truncated(self, v, y, whole):
        """Results as integers; where rounding errors might decide which, they are SciPy's."""
        bound = self.sum * max(float(v.max()), -float(v.min()))
        if whole and self.whole and bound < 2**53:
            return stored(y, self.dtype)
        error = 2 * self.p.weights.size * _UNIT * bound
        y -= error
        least = stored(y, self.dtype)
        y += 2 * error
        largest = stored(y, self.dtype)
        return least if (least == largest).all() else stored(self.p.exact(v, self.p.weights), self.dtype)


def stored(y, dtype):
    """f64 in another type: integers are truncated, and wrap if they are out of range."""
    if dtype.kind != "u":
        return y.astype(dtype)
    if dtype.itemsize < 8:
        return y.astype(np.int64 if dtype.itemsize == 4 else np.int32).astype(dtype)
    return np.where(y < 0, np.negative((-y).astype(dtype)), y.astype(dtype))


def run(x, passes, out):
    """out = x after all passes, of which at most one filters along the first axis; x has samples."""
    if np.may_share_memory(x, out):
        x = x.copy()
    with np.errstate(all="ignore"):
        _run(x, passes, out)


def _run(x, passes, out):
    n, row = len(x), x[0].size
    first_axis = [p for p in passes if p.weights.shape[0] > 1]
    if not first_axis and x.ndim > 1 and row >= SLAB:
        for one, result in zip(x, out):
            _run(one, [p.inner() for p in passes], result)
        return
    before, after, mode = (first_axis[0].before[0], first_axis[0].after(0), first_axis[0].mode) if first_axis else (0, 0, 0)
    rows = min(n, max(SLAB // row, 2 * (before + after), 1))
    integers = out.dtype if out.dtype.kind in "iu" else None
    later = []
    if first_axis and rows * row > 4 * SLAB:  # the passes after that along the first axis have slabs of fewer rows
        behind = 1 + next(i for i, p in enumerate(passes) if p is first_axis[0])
        passes, later = passes[:behind], passes[behind:]
    direct = not later and out.dtype == np.float64 and out.flags.c_contiguous and out.flags.aligned
    steps = {}
    for first in range(0, n, rows):
        last = min(n, first + rows)
        outside = None
        if first >= before and last + after <= n:
            v = x[first - before:last + after]
        else:
            at, outside = axes.sources(first - before, last + after, n, mode)
            v = x[at]
        if len(v) not in steps:
            steps[len(v)] = list(_steps(passes, v.shape, integers))
        chain, whole = steps[len(v)], x.dtype.kind in "biu"
        for step in chain:
            fills = outside is not None and step.p is first_axis[0] and mode == CONSTANT
            if fills or not (step.inner or (v.dtype == np.float64 and v.flags.c_contiguous and v.flags.aligned)):
                np.copyto(step.source, v, casting="unsafe")
                v = step.source
            if fills:
                v[outside] = step.p.cval
            v = step.run(v, whole and step.p.cval.is_integer(),
                         out[first:last] if direct and step is chain[-1] else None)
            whole = integers is not None
        if later:
            _run(v if v.size > 4 * SLAB else v.copy(), later, out[first:last])  # not in the memory that those passes use
        elif not direct:
            out[first:last] = v


def _steps(passes, shape, dtype):
    source, number = _scratch.array(0, shape), 1
    for p in passes:
        step = _Step(p, source, number, dtype)
        yield step
        source, number = step.y, step.number

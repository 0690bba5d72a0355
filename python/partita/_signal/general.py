# SPDX-License-Identifier: MIT
"""Convolution of arrays with any axes as problems of the library.

Axes that are not convolved become a batch if only the signal has several items there, output channels if only the taps
have, groups if both have. Several axes with many taps become one: rows behind each other, with zeros between them, for
which the library has faster algorithms than for layers. One axis takes complex samples as they are; with more, and for
real signals with complex taps, real and imaginary parts become channels of a real problem.
"""
import math

import numpy as np

from partita._partita import lib
from partita._signal import native, sums

MAX_AXES = lib.PARTITA_MAX_RANK
PRODUCTS = {"convolve": lib.partita_convolve, "correlate": lib.partita_correlate}
# Of several axes, for real and for complex samples: from so many taps on one axis is faster, if the zeros between rows
# make the signal at most so many times longer.
_FLAT_TAPS, _FLAT_COMPLEX_TAPS, _FLAT_GROWTH = 36, 4, 4
_COMPLEX = {np.dtype(np.float32): np.dtype(np.complex64), np.dtype(np.float64): np.dtype(np.complex128)}


def is_complex(x):
    return x.dtype.kind == "c"


def reverse_conj(h, over):
    """h backwards along some axes, conjugated: correlation with h is convolution with this."""
    return h[tuple(slice(None, None, -1 if a in over else None) for a in range(h.ndim))].conj()


def parts(values, axis):
    """Arrays of one shape side by side along a new axis, contiguous."""
    y = np.empty(values[0].shape[:axis] + (len(values),) + values[0].shape[axis:], values[0].dtype)
    for i, v in enumerate(values):
        np.moveaxis(y, axis, 0)[i] = v
    return y


def _contiguous(x):
    return x if x.flags.c_contiguous and x.flags.aligned else x.copy(order="C")


class Layout:
    """How two arrays and the windows of their result become a problem.

    `spans`: for each convolved axis the first index in the full convolution, the number of results and their distance.
    """

    def __init__(self, x, h, spans):
        self.spans = spans
        self.rank = len(spans)
        self.convolved = sorted(spans)
        others = [a for a in range(x.ndim) if a not in spans]
        self.batch = [a for a in others if h.shape[a] == 1]
        self.groups = [a for a in others if h.shape[a] > 1 and x.shape[a] > 1]
        self.outputs = [a for a in others if h.shape[a] > 1 and x.shape[a] == 1]
        self.order = self.batch + self.groups + self.outputs + self.convolved
        self.in_order = self.order == sorted(self.order)
        self.lead = len(others)
        self.x, self.h = x.transpose(self.order), h.transpose(self.order)
        self.counts = tuple(spans[a][1] for a in self.convolved)
        self.shape = tuple(np.maximum(self.x.shape, self.h.shape)[:self.lead].tolist()) + self.counts

    def problem(self, op, signal, taps, batch=1, inputs=1, outputs=1):
        """The fields of Problem; the numbers are of parts that the samples were separated into."""
        sizes, kernel = self.x.shape[self.lead:], self.h.shape[self.lead:]
        pads, strides = [], []
        for a, n, m in zip(self.convolved, sizes, kernel):
            first, count, stride = self.spans[a]
            begin = m - 1 - first
            pads.append((begin, (count - 1) * stride + m - n - begin))
            strides.append(stride)
        begin, middle = len(self.batch), len(self.batch) + len(self.groups)
        groups = math.prod(self.shape[begin:middle])
        return (("signal", signal), ("taps", taps), ("op", op), ("batch", batch * math.prod(self.shape[:begin])),
                ("in_channels", groups * inputs), ("groups", groups),
                ("out_channels", groups * outputs * math.prod(self.shape[middle:self.lead])), ("kernel", kernel),
                ("size", sizes), ("stride", tuple(strides)), ("pad", tuple(pads)))

    def products(self):
        """Products of samples that direct sums compute."""
        return math.prod(self.shape) * math.prod(
            min(n, m) for n, m in zip(self.x.shape[self.lead:], self.h.shape[self.lead:]))

    def restore(self, y):
        """The result with its axes in the caller's order."""
        if self.in_order:
            return y
        return np.ascontiguousarray(y.transpose(np.argsort(self.order)))


def _is_exchanged(x, h, spans):
    """Whether h is the signal and x are the taps: the operand with more samples along the convolved axes is the signal."""
    n, m = (math.prod(v.shape[a] for a in spans) for v in (x, h))
    return n < m or (n == m and is_complex(x) < is_complex(h))


def _exchange(x, h, spans, op):
    """Signal and taps."""
    if not _is_exchanged(x, h, spans):
        return x, h, op
    if op == "correlate":
        h = reverse_conj(h, spans)
    return h, x, "convolve"


def _real_parts(layout, op, options):
    """Complex samples as parts of a real problem."""
    x, h, lead = layout.x, layout.h, layout.lead
    name = native.NAMES[x.real.dtype]
    sign = -1 if op == "correlate" else 1
    result = np.empty(layout.shape, _COMPLEX[x.real.dtype])
    if not is_complex(h):
        signal, taps, numbers, axis = parts((x.real, x.imag), 0), _contiguous(h), {"batch": 2}, 0
    elif not is_complex(x):
        signal, taps, numbers, axis = _contiguous(x), parts((h.real, sign * h.imag), lead), {"outputs": 2}, lead
    else:
        re, im = h.real, sign * h.imag
        signal, axis = parts((x.real, x.imag), lead), lead
        taps = parts((parts((re, -im), lead), parts((im, re), lead)), lead)
        numbers = {"inputs": 2, "outputs": 2}
    y = np.empty(layout.shape[:axis] + (2,) + layout.shape[axis:], x.real.dtype)
    native.forward(layout.problem(op, name, name, **numbers), options, y, signal, taps)
    y = np.moveaxis(y, axis, 0)
    result.real, result.imag = y[0], y[1]
    return result


def is_one_shot(x, h, spans, options):
    """Whether a problem is one signal of one axis, small enough to be summed without a plan."""
    if x.ndim != 1 or len(spans) != 1 or options != native.DEFAULTS:
        return False
    _, count, stride = spans[0]
    limit = native.SMALL_COMPLEX if is_complex(x) or is_complex(h) else native.SMALL_REAL
    return stride == 1 and count * min(x.size, h.size) <= limit


def _run_small(x, h, spans, op, out):
    dtype = np.result_type(x, h)
    x, h = _contiguous(x.astype(dtype, copy=False)), _contiguous(h.astype(dtype, copy=False))
    first, count, _ = spans[0]
    y = np.empty(count, dtype) if out is None else out
    native.range_of(PRODUCTS[op], y, x, h, first - (h.size - 1 if op == "correlate" else 0))
    return y


def _flattens(x, h, spans, options):
    """Whether several axes become one. Zeros between rows would spread samples that are not finite."""
    if len(spans) < 2 or options.engine is not None or any(stride != 1 for _, _, stride in spans.values()):
        return False
    taps = math.prod(h.shape[a] for a in spans)
    if taps < (_FLAT_COMPLEX_TAPS if is_complex(x) or is_complex(h) else _FLAT_TAPS):
        return False
    inner = sorted(spans)[1:]
    if math.prod(x.shape[a] + h.shape[a] - 1 for a in inner) > _FLAT_GROWTH * math.prod(x.shape[a] for a in inner):
        return False
    with np.errstate(all="ignore"):
        return bool(np.isfinite(x.sum()) and np.isfinite(h.sum()))


def _flattened(x, h, spans, op, options):
    """A convolution of several axes as one of one axis: behind each row are as many zeros as its full result is longer."""
    if op == "correlate":
        h = reverse_conj(h, spans)
    convolved = sorted(spans)
    others = [a for a in range(x.ndim) if a not in spans]
    lead, order = len(others), others + convolved
    x, h = x.transpose(order), h.transpose(order)
    widths = tuple(n + m - 1 for n, m in zip(x.shape[lead + 1:], h.shape[lead + 1:]))

    def flat(v):
        y = np.zeros(v.shape[:lead + 1] + widths, v.dtype)
        y[(..., *(slice(n) for n in v.shape[lead + 1:]))] = v
        return y.reshape(v.shape[:lead] + (-1,))

    steps = [math.prod(widths[k:]) for k in range(len(convolved))]
    length = 1 + sum((m - 1) * step for m, step in zip(h.shape[lead:], steps))
    first, count, _ = spans[convolved[0]]
    y = _convolve(flat(x), flat(h)[..., :length], {lead: (first * steps[0], count * steps[0], 1)}, "convolve", options, None)
    y = y.reshape(y.shape[:lead] + (count,) + widths)
    y = y[(..., *(slice(begin, begin + n) for begin, n, _ in (spans[a] for a in convolved[1:])))]
    return np.ascontiguousarray(y.transpose(np.argsort(order)))


def _reached(window, up, n, k):
    """The results to which tap k contributes, and the samples of x that it meets there, as slices; None if there are none."""
    first, count, stride = window
    at = first + stride * np.arange(count) - k
    results = np.flatnonzero((at >= 0) & (at < n * up) & (at % up == 0))
    if results.size == 0:
        return None
    step = results[1] - results[0] if results.size > 1 else 1
    samples = at[results] // up
    return (slice(results[0], results[-1] + 1, step), slice(samples[0], samples[-1] + 1, max(1, step * stride // up)))


def add_taps(y, x, h, chosen, spans, up=1):
    """y += what the chosen ones of the taps h contribute to the windows `spans` of the full convolution."""
    for tap in np.argwhere(chosen.any(axis=tuple(a for a in range(h.ndim) if a not in spans), keepdims=True)):
        reached = {a: _reached(spans[a], up, x.shape[a], tap[a]) for a in spans}
        if None in reached.values():
            continue
        results, samples = (tuple(reached[a][i] if a in spans else slice(None) for a in range(h.ndim)) for i in (0, 1))
        one = tuple(slice(tap[a], tap[a] + 1) if a in spans else slice(None) for a in range(h.ndim))
        with np.errstate(invalid="ignore"):
            y[results] += np.where(chosen[one], h[one] * x[samples], 0)


def bad_taps(h):
    """Where taps are not finite; None if all are finite, or if they are too many to be added one by one."""
    bad = ~np.isfinite(h)
    return bad if 0 < np.count_nonzero(bad) <= sums.TERMS else None


def convolve(x, h, spans, op="convolve", options=native.DEFAULTS, out=None):
    """The windows `spans` of a full convolution or correlation.

    x, h: as many axes, samples of one precision out of f32, f64, cf32 and cf64; axes without a span are broadcast.
    out: an array for the result, contiguous and of its type, that shares no memory with x or h.
    """
    if not spans:
        return x * (h.conj() if op == "correlate" else h)
    bad = bad_taps(x if _is_exchanged(x, h, spans) else h)
    if bad is None:
        return _convolve(x, h, spans, op, options, out)
    # The library multiplies taps by the zeros around x, too: those that are not finite are added here, where they count.
    x, h, op = _exchange(x, h, spans, op)
    if op == "correlate":
        h, bad = reverse_conj(h, spans), reverse_conj(bad, spans)
    y = _convolve(x, np.where(bad, 0, h), spans, "convolve", options, out)
    add_taps(y, x, h, bad, spans)
    return y


def _convolve(x, h, spans, op, options, out):
    """`convolve` with finite taps."""
    if is_one_shot(x, h, spans, options):
        if x.size == h.size:  # the shorter one is the library's choice
            x, h, op = _exchange(x, h, spans, op)
        return _run_small(x, h, spans, op, out)
    x, h, op = _exchange(x, h, spans, op)
    if _flattens(x, h, spans, options):
        return _flattened(x, h, spans, op, options)
    layout = Layout(x, h, spans)
    if (is_complex(h) and not is_complex(x)) or (layout.rank > 1 and is_complex(x)):
        return layout.restore(_real_parts(layout, op, options))
    y = np.empty(layout.shape, x.dtype) if out is None or not layout.in_order else out
    problem = layout.problem(op, native.NAMES[x.dtype], native.NAMES[h.dtype])
    native.forward(problem, options, y, _contiguous(layout.x), _contiguous(layout.h))
    return layout.restore(y)


def engine_of(x, h, spans, options=native.DEFAULTS):
    """The engine that `convolve` would use; "" if a call of this size has no plan."""
    x, h, op = _exchange(x, h, spans, "convolve")
    layout = Layout(x, h, spans)
    if layout.products() <= native.SMALL_COMPLEX:
        return ""
    real = native.NAMES[x.real.dtype]
    taps = native.NAMES[h.dtype] if layout.rank == 1 and is_complex(x) else real
    signal = native.NAMES[x.dtype] if layout.rank == 1 else real
    return native.plan_of(layout.problem(op, signal, taps), options).engine


def suits(out, x, h, spans, dtype):
    """Whether a result can be computed in the caller's array."""
    shape = tuple(spans[a][1] if a in spans else max(n, m) for a, (n, m) in enumerate(zip(x.shape, h.shape)))
    return (isinstance(out, np.ndarray) and out.dtype == dtype and out.dtype.isnative and out.flags.c_contiguous
            and out.flags.aligned and out.flags.writeable and out.shape == shape
            and not np.may_share_memory(out, x) and not np.may_share_memory(out, h))

# SPDX-License-Identifier: MIT
"""SciPy's filters of images as copies whose loops in C are this package's.

scipy.ndimage checks and prepares arguments in Python and sums in three functions of a module in C. The copies share the
code of the former; in the place of the latter they find `Loops`. So arguments, types of results, errors and warnings are
SciPy's.
"""
import functools
import inspect
import re
import threading

import numpy as np

from partita._ndimage import slabs
from partita._signal import fallback
from partita._signal.axes import along
from partita._signal.copies import copies

NAMES = ("convolve", "convolve1d", "correlate", "correlate1d", "gaussian_filter", "gaussian_filter1d",
         "gaussian_gradient_magnitude", "gaussian_laplace", "laplace", "prewitt", "sobel", "uniform_filter",
         "uniform_filter1d")
_SEVERAL_PASSES = ("gaussian_filter", "prewitt", "sobel", "uniform_filter")
# Below these products of a pass SciPy's loops take less time, for results in floating point and in integers; a sample costs
# as much as _SAMPLE taps. The longest windows for which sums are faster than SciPy's running ones, likewise.
SMALL, SMALL_INTEGERS, _SAMPLE = 2**19, 2**22, 8
LONGEST_MEAN, LONGEST_MEAN_INTEGERS = 24, 5
_CONSTANT = 4
_MODES = {0: slabs.NEAREST, 1: slabs.WRAP, 2: slabs.REFLECT, 3: slabs.MIRROR, _CONSTANT: slabs.CONSTANT,
          5: slabs.WRAP, 6: slabs.CONSTANT}
# What SciPy's texts say of arrays of other libraries, which these copies do not take.
_OTHER_LIBRARIES = re.compile(r"\*\*Array API.*?:ref:`dev-arrayapi`[^\n]*\n*", re.DOTALL)
_TYPES = "bhilqBHILQfd"  # of samples, with bool of inputs


def _place(a):
    """The memory of an array."""
    return a.__array_interface__["data"], a.shape, a.strides, a.dtype


class Loops:
    """SciPy's functions in C; passes that follow each other within a call of `together` are computed at its end."""

    def __init__(self, theirs):
        self.theirs = theirs
        self._waiting = threading.local()  # passes by the memory of the output; None: they do not wait

    def __getattr__(self, name):
        return getattr(self.theirs, name)

    def correlate1d(self, input, weights, axis, output, mode, cval, origin):
        shape = along(axis, input.ndim, weights.size, 1)
        before = along(axis, input.ndim, weights.size // 2 + origin, 0)

        def exact(v, taps):
            y = np.empty(v.shape)
            self.theirs.correlate1d(v, taps.reshape(-1), int(np.argmax(taps.shape)), y, _CONSTANT, 0.0, 0)
            return _middle(y, taps.shape)

        self._filter(input, weights.reshape(shape), before, output, mode, cval, exact,
                     functools.partial(self.theirs.correlate1d, input, weights, axis, output, mode, cval, origin))

    def correlate(self, input, weights, output, mode, cval, origins):
        before = [n // 2 + origin for n, origin in zip(weights.shape, origins)]

        def exact(v, taps):
            y = np.empty(v.shape)
            self.theirs.correlate(v, taps, y, _CONSTANT, 0.0, [0] * v.ndim)
            return _middle(y, taps.shape)

        weights_used = np.where(np.abs(weights) > np.finfo(float).eps, weights, 0)  # as in SciPy
        self._filter(input, weights_used, before, output, mode, cval, exact,
                     functools.partial(self.theirs.correlate, input, weights, output, mode, cval, origins),
                     skips=not weights_used.all())

    def uniform_filter1d(self, input, size, axis, output, mode, cval, origin):
        original = functools.partial(self.theirs.uniform_filter1d, input, size, axis, output, mode, cval, origin)
        shape, before = along(axis, input.ndim, size, 1), along(axis, input.ndim, size // 2 + origin, 0)
        if output.dtype.kind in "iu":  # whose sums must be exact
            inexact = input.dtype.kind == "f" or 8 in (input.dtype.itemsize, output.dtype.itemsize) or cval % 1 != 0
            slower = inexact or size > LONGEST_MEAN_INTEGERS
        else:
            slower = size > LONGEST_MEAN
        if slower:
            self._answer(original, "running sums")
            return
        self._filter(input, np.ones(shape), before, output, mode, cval, None, original, divisor=size)

    def _filter(self, input, weights, before, output, mode, cval, exact, original, **more):
        waiting = getattr(self._waiting, "by_output", None)
        reason = _reason_against(input, weights, output, mode, waiting is None)
        if reason:
            self._answer(original, reason)
            return
        p = slabs.Pass(weights, tuple(before), _MODES[mode], float(cval), exact, **more)
        if waiting is None:
            slabs.run(input, [p], output)
        elif _place(input) in waiting and _place(input) == _place(output):
            waiting[_place(input)][1].append(p)
        else:
            waiting[_place(output)] = input, [p], output

    def _answer(self, original, reason):
        """SciPy's loop, after the passes before it."""
        self._compute(getattr(self._waiting, "by_output", None) or {})
        for observer in fallback.observers:
            observer("ndimage", reason)
        original()

    @staticmethod
    def _compute(waiting):
        while waiting:
            input, passes, output = waiting.pop(next(iter(waiting)))
            slabs.run(input, passes, output)

    def together(self, function):
        """The function, with all passes of a call computed when it returns."""

        @functools.wraps(function)
        def call(*args, **kwargs):
            self._waiting.by_output = waiting = {}
            try:
                result = function(*args, **kwargs)
            finally:
                self._waiting.by_output = None
            self._compute(waiting)
            return result

        return call


def _middle(y, taps):
    """The results that need no samples outside the array."""
    return y[tuple(slice(k // 2, n - (k - 1 - k // 2)) for n, k in zip(y.shape, taps))]


def _reason_against(input, weights, output, mode, alone):
    """Why SciPy computes a pass, which may be the only one of a call; None if this package does."""
    if not isinstance(output, np.ndarray) or mode not in _MODES:
        return "arguments"
    if input.dtype.char not in _TYPES + "?" or output.dtype.char not in _TYPES:
        return f"samples of {input.dtype.name} and {output.dtype.name}"
    if input.size == 0:
        return "no samples"
    work = input.size * (weights.size + _SAMPLE)
    if alone and weights.size == weights.shape[-1]:
        work //= 4  # SciPy need not gather lines of the last axis
    if work < (SMALL_INTEGERS if output.dtype.kind in "iu" else SMALL):
        return "few samples"
    filtered = [a for a, k in enumerate(weights.shape) if k > 1]
    if filtered and filtered[-1] - filtered[0] > 2:
        return "more than three axes"
    if not np.isfinite(weights).all():
        return "weights that are not finite"
    return None


def functions():
    """The copies, by name."""
    names = copies("partita.ndimage", "scipy.ndimage._filters", _nd_image=Loops)
    for name in NAMES:
        function = names[name]
        function.__module__ = "partita.ndimage"
        text = _OTHER_LIBRARIES.sub("", inspect.getdoc(function) or "")
        function.__doc__ = f"As `scipy.ndimage.{name}`, computed by Partita.\n\n{text}"
        if name in _SEVERAL_PASSES:
            names[name] = names["_nd_image"].together(function)
    return {name: names[name] for name in NAMES}

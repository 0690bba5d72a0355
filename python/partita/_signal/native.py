# SPDX-License-Identifier: MIT
"""Calls of the library: slices of one signal without a plan, and problems with plans that are kept."""
import functools
import typing

import numpy as np

from partita._arrays import TYPES
from partita._errors import check, failure, log
from partita._options import get_threads
from partita._partita import ffi, lib
from partita._plan import Plan
from partita._problem import Problem

NULL = ffi.NULL
_buffer, _empty = ffi.from_buffer, np.empty
# Sums of products that the library computes without a plan, for real and for complex samples (partita_convolve).
SMALL_REAL, SMALL_COMPLEX = 2**18, 2**16
# Arrays whose plans are worth keeping: planning longer ones takes no noticeable share of the call, while their tables
# take memory.
KEPT_SAMPLES = 2**20
KEPT_PLANS = 96

# By type of samples: value in C and the number of products that need no plan.
ONE_SHOT = {dtype: (TYPES[name][0], SMALL_COMPLEX if dtype.kind == "c" else SMALL_REAL)
            for name, dtype in ((name, TYPES[name][1]) for name in ("f32", "f64", "cf32", "cf64"))}
NAMES = {TYPES[name][1]: name for name in ("f32", "f64", "cf32", "cf64")}
SAME = ffi.new("struct partita_slice *", {"mode": lib.PARTITA_SAME})
VALID = ffi.new("struct partita_slice *", {"mode": lib.PARTITA_VALID})


class Options(typing.NamedTuple):
    """What a caller may ask for besides the result."""

    threads: int | None = None
    device: str | None = None
    engine: str | None = None
    zero_mean: bool = False  # of normalised correlations

    def to_c(self):
        """The struct and what it points to."""
        threads = self.threads or get_threads() or 0
        if not threads and self == DEFAULTS:
            return NULL, ()
        kept = [NULL if text is None else ffi.new("char []", text.encode()) for text in (self.device, self.engine)]
        struct = ffi.new("struct partita_options *",
                         {"threads": threads, "device": kept[0], "engine": kept[1], "zero_mean": self.zero_mean,
                          "log": log()})
        return struct, kept


DEFAULTS = Options()


def one_shot(function, in1, in2, mode):
    """A small convolution or correlation of two contiguous arrays of one axis and one type; None for anything else.

    This is what a call of a few microseconds costs: it asks nothing twice and leaves every error to the general code.
    """
    try:
        dtype = in1.dtype
        kind, small = ONE_SHOT[dtype]
        n, = in1.shape
        m, = in2.shape
        if in2.dtype is not dtype:
            return None
        if mode == "full":
            size, piece = n + m - 1, NULL
        elif mode == "same":
            size, piece = n, SAME
        elif mode == "valid":
            size, piece = abs(n - m) + 1, VALID
        else:
            return None
        if size * (n if n < m else m) > small:
            return None
        y = _empty(size, dtype)
        # Refused (None) are other memory layouts by from_buffer, empty and misaligned arrays by the library.
        if function(kind, _buffer(y), _buffer(in1), n, _buffer(in2), m, piece, NULL):
            return None
        # Taps that are not finite make the ends NaN, which do not depend on all of them.
        first, last = y[0], y[-1]
        return y if first == first and last == last else None
    except (AttributeError, BufferError, KeyError, TypeError, ValueError):
        return None


def range_of(function, y, x, h, first, options=DEFAULTS):
    """y = the results [first, first + len(y)) of a one-call function; indices of correlations are lags."""
    piece = ffi.new("struct partita_slice *", (lib.PARTITA_RANGE, first, first + y.shape[-1]))
    struct, kept = options.to_c()
    check(function(ONE_SHOT[y.dtype][0], ffi.from_buffer(y), ffi.from_buffer(x), x.shape[-1], ffi.from_buffer(h),
                   h.shape[-1], piece, struct))
    del kept


@functools.lru_cache(KEPT_PLANS)
def planned(problem, device, engine, threads):
    """The plan of a problem, whose fields are (name, value) pairs."""
    return Plan(Problem(**dict(problem)), device=device or "cpu", engine=engine, threads=threads,
                directions=("forward",))


def plan_of(problem, options, kept=True):
    """The same by options, for the present number of threads."""
    threads = get_threads() if options.threads is None else options.threads
    return (planned if kept else planned.__wrapped__)(problem, options.device, options.engine, threads)


def forward(problem, options, y, x, taps):
    """y = a bounded problem; contiguous arrays. `problem`: (name, value) pairs of the fields of Problem."""
    plan = plan_of(problem, options, x.size + taps.size + y.size <= KEPT_SAMPLES)
    pointer = ffi.from_buffer(taps)
    call = ffi.new("struct partita_call *", {"taps": pointer})
    status = lib.partita_forward(plan._c, NULL, ffi.from_buffer(y), ffi.from_buffer(x), call)
    if status:
        raise failure(status, plan.engine)

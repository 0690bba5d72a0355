# SPDX-License-Identifier: MIT
"""What the planner chose and why, as text and as values."""
import re
import typing

import numpy as np

from partita import _arrays
from partita._options import DIRECTIONS
from partita._plan import Plan
from partita._problem import Problem, choice

_ROW = re.compile(r"^  ([a-z]+/\S+) +(?:no: (.*)|.*? ([-+.\w]+) (ns/frame|us|ms) +(\d+) (B|KiB|MiB) +error (\S+)"
                  r"(?: +latency (\d+))?( +<- chosen)?)$")
_SECONDS = {"ns/frame": 1e-9, "us": 1e-6, "ms": 1e-3}
_BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}


class Engine(typing.NamedTuple):
    """
    What the planner knows of one engine and one direction.

    seconds are those of a call, of a stream those of a frame; error is a bound, relative to the result. Where the
    engine does not apply, reason says why and the numbers are None.
    """

    name: str
    direction: str
    chosen: bool
    seconds: float | None
    bytes: int | None
    error: float | None
    latency: int | None
    reason: str | None


class Explanation(str):
    """The text of `Plan.explain`, with what it says as values: engine, engines, rows, load, swap_delay."""

    def __new__(cls, plan):
        self = super().__new__(cls, plan.explain())
        self.engine = plan.engine
        self.engines = plan.engines
        self.rows = list(_rows(self, plan.engine and next(iter(plan.engines))))
        self.load = plan.load if plan.problem.is_stream else None
        self.swap_delay = self.load and self.load.swap_delay
        return self


def _rows(text, direction):
    for line in text.splitlines():
        if line.replace(" ", "_") in DIRECTIONS:
            direction = line.replace(" ", "_")
        found = _ROW.match(line)
        if not found:
            continue
        name, reason, time, unit, size, size_unit, error, latency, chosen = found.groups()
        if reason is not None:
            yield Engine(name, direction, False, None, None, None, None, reason)
        else:
            yield Engine(name, direction, chosen is not None, float(time) * _SECONDS[unit],
                         int(size) * _BYTES[size_unit], float(error), latency and int(latency), None)


def _shape(operand):
    """Shape and sample type, if it has one, of an array or of a shape itself."""
    if isinstance(operand, int):
        return (operand,), None
    if isinstance(operand, tuple):
        return operand, None
    dtype = getattr(operand, "dtype", None)
    return tuple(np.shape(operand)), None if dtype is None else _arrays.type_name(dtype)


def explain(x, h=None, *, dtype=None, mode="full", block=None, latency=0, **options):
    """
    Says what the planner would do, without computing anything.

    Parameters
    ----------
    x : Problem, Plan, array_like, tuple, int or None
        A problem; or a signal or its shape, which is convolved with `h`; None for a stream.
    h : array_like, tuple or int, optional
        The taps or their shape.
    dtype : str or dtype, optional
        Type of samples; if not given that of x, of h, or "f64".
    mode : {"full", "same", "valid"}, optional
        Of the convolution of a signal, as in `scipy.signal.convolve`.
    block, latency : int, optional
        Of a stream: frames of a call, allowed added delay.
    **options
        As `Plan` takes them.

    Returns
    -------
    Explanation
        A string with the attributes engine, engines, rows, load, swap_delay.

    Examples
    --------
    >>> import partita
    >>> partita.explain(10_000_000, 1024, dtype="f32").engine
    'cpu/overlap-save'
    >>> partita.explain(None, 48_000, dtype="f32", block=64).engine
    'cpu/partitioned'
    """
    if isinstance(x, Plan):
        return Explanation(x)
    if isinstance(x, Problem):
        return Explanation(Plan(x, **options))
    if h is None:
        raise TypeError("h is missing: the taps or their shape")
    taps, taps_type = _shape(h)
    size, type_of_x = (None, None) if x is None else _shape(x)
    signal = _arrays.type_name(dtype) if dtype is not None else type_of_x or taps_type or "f64"
    if size is None:
        return Explanation(Plan(Problem(kernel=taps, signal=signal, block=block, latency=latency), **options))
    if len(size) != len(taps):
        raise ValueError(f"x has {len(size)} axes, h has {len(taps)}")
    if mode == "valid" and all(m >= n for n, m in zip(size, taps)):
        size, taps = taps, size
    pads = {"full": lambda m: m - 1, "same": lambda m: ((m - 1) // 2, m // 2), "valid": lambda m: 0}
    pad = tuple(map(choice("mode", mode, pads), taps))
    problem = Problem(kernel=taps, size=size, pad=pad, signal=signal)
    return Explanation(Plan(problem, **options))

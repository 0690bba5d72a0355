# SPDX-License-Identifier: MIT
"""What to compute: the struct partita_problem of C as an immutable value of Python."""
import dataclasses
import math
import operator

from partita import _arrays
from partita._errors import check
from partita._partita import ffi, lib

_OPS = {"convolve": lib.PARTITA_CONVOLVE, "correlate": lib.PARTITA_CORRELATE}
_BOUNDARIES = {"zero": lib.PARTITA_BOUNDARY_ZERO, "constant": lib.PARTITA_BOUNDARY_CONSTANT,
               "edge": lib.PARTITA_BOUNDARY_EDGE, "reflect": lib.PARTITA_BOUNDARY_REFLECT,
               "symmetric": lib.PARTITA_BOUNDARY_SYMMETRIC, "wrap": lib.PARTITA_BOUNDARY_WRAP}
_ACTIVATIONS = {"linear": lib.PARTITA_LINEAR, "relu": lib.PARTITA_RELU}
UNBOUNDED = lib.PARTITA_UNBOUNDED
_SAME_IN_C = ("rank", "batch", "in_channels", "groups", "kernel", "stride", "dilation", "whole_blocks", "separable",
              "channels_last", "up", "boundary_value")


def choice(name, value, values):
    """The value in C of a word."""
    try:
        return values[value]
    except (KeyError, TypeError):  # TypeError: a list, which has no hash
        raise ValueError(f"{name} = {value!r}: one of {', '.join(map(repr, values))}") from None


def integer(name, value):
    """The value, if it is an integer."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} = {value!r}: an integer is needed") from None


def natural(name, value, least=0):
    """An integer that is not negative, or not below `least`."""
    value = integer(name, value)
    if value < least:
        raise ValueError(f"{name} = {value}: {f'at least {least}' if least else 'not negative'}")
    return value


def positive(name, value):
    """An integer of at least 1. (For the library 0 means a default, which Python leaves out.)"""
    return natural(name, value, 1)


def number(name, value):
    """The value as a float."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} = {value!r}: a number is needed") from None


def optional(convert, name, value):
    """None, or the converted value."""
    return None if value is None else convert(name, value)


def limits(window, name):
    """(first, last) of a window of results: two integers, a slice or a range, without a step."""
    if isinstance(window, (slice, range)):
        if window.step not in (None, 1):
            raise ValueError(f"{name} = {window!r}: only steps of 1")
        if window.stop is None:
            raise ValueError(f"{name} = {window!r}: the end is missing")
        window = window.start or 0, window.stop
    try:
        first, last = (operator.index(w) for w in window)
    except (TypeError, ValueError):
        raise ValueError(f"{name} = {window!r}: two integers, the first result and the one after the last") from None
    if first >= last:
        raise ValueError(f"{name} = {window!r}: no results")
    return first, last


def each_axis(name, value, rank, convert=positive):
    """One value for each axis, as a tuple; a single value is that of every axis."""
    if not isinstance(value, (tuple, list)):
        return (convert(name, value),) * rank
    if len(value) != rank:
        raise ValueError(f"{name} = {value!r}: a number, or one for each of {rank} axes")
    return tuple(convert(name, v) for v in value)


def pad(name, value):
    if isinstance(value, str):
        raise TypeError(f"{name} = {value!r}: numbers of zeros are needed; kernel // 2 on both sides of an odd kernel keep "
                        "the size")
    pair = value if isinstance(value, (tuple, list)) else (value, value)
    if len(pair) != 2:
        raise ValueError(f"{name} = {value!r}: zeros before and after an axis")
    return integer(name, pair[0]), integer(name, pair[1])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """
    What to compute: a stream, signals of a known length, or a layer.

    All are one formula: ``y[n, k, p]`` is the sum over c and r of
    ``w[k, c, r] * x[n, c, stride*p + dilation*r - pad]``, where x is zero outside its size, or what `boundary` says. This
    is ``op="correlate"``; ``op="convolve"`` reads the taps backwards along every axis.

    Parameters
    ----------
    kernel : int or tuple of int
        Taps along each axis.
    size : int or tuple of int, optional
        Samples of x along each axis, one to three. Without it the problem is a stream: one axis that has no end.
    signal : str or dtype, optional
        Type of x and y: "f32" (the default), "f64", "cf32", "cf64", "f16" or "bf16", or such a type of NumPy or
        PyTorch. "f16" and "bf16" are for layers, computed in f32.
    taps : str or dtype, optional
        Type of the taps: that of the signal, or the real type of a complex signal.
    op : {"convolve", "correlate"}, optional
        Correlation conjugates complex taps.
    batch : int, optional
        Independent inputs.
    in_channels, out_channels : int, optional
        Each output sums the inputs of its group. `out_channels` must be given if there are several inputs.
    groups : int, optional
        Divides both numbers of channels.
    stride, dilation : int or tuple of int, optional
        Distance between outputs, and between taps.
    pad : int, tuple of int, or tuple of (before, after), optional
        Positions around x, zeros without `boundary`; for each axis a number or two. Negative numbers crop. Streams are
        causal and have no padding.
    block : int, optional
        Of streams: the frames of the largest usual call. 1024 if it is not given. Calls of any size work.
    latency : int or math.inf, optional
        Of streams: the largest added delay allowed, in input frames.
    whole_blocks : bool, optional
        Of streams: every call holds a multiple of `block` frames, which makes long filters cheaper.
    activation : {"linear", "relu"}, optional
        Of forward of real bounded problems: applied to every result.
    separable : bool, optional
        Of bounded problems of two axes: the taps are products of a factor of their row and one of their column.
    channels_last : bool, optional
        Of bounded real problems: x and y have their channels as the last axis. The taps stay as they are.
    up : int, optional
        Of one axis: ``up - 1`` zeros are inserted after each sample of x; `stride`, `dilation` and `pad` count them.
    boundary : {"zero", "constant", "edge", "reflect", "symmetric", "wrap"}, optional
        Of bounded problems on the CPU: the values of the padding, by the names of `numpy.pad`. The padding of an axis of n
        samples is at most n - 1 with "reflect", and at most n with "symmetric" and "wrap".
    boundary_value : float, optional
        Of real types with ``boundary="constant"``: the constant.

    Examples
    --------
    >>> import partita
    >>> layer = partita.Problem(kernel=3, size=(28, 28), pad=1, in_channels=16, out_channels=32, op="correlate")
    >>> layer.output_shape
    (1, 32, 28, 28)
    """

    # Numbers are those of every axis, and become tuples.
    kernel: int | tuple[int, ...]
    size: int | tuple[int, ...] | None = None
    signal: str = "f32"
    taps: str | None = None
    op: str = "convolve"
    batch: int = 1
    in_channels: int = 1
    out_channels: int | None = None
    groups: int = 1
    stride: int | tuple[int, ...] = 1
    dilation: int | tuple[int, ...] = 1
    pad: int | tuple[int | tuple[int, int], ...] = 0
    block: int | None = None
    latency: int | float = 0
    whole_blocks: bool = False
    activation: str = "linear"
    separable: bool = False
    channels_last: bool = False
    up: int = 1
    boundary: str = "zero"
    boundary_value: float = 0.0

    def __post_init__(self):
        given = (self.kernel, self.size, self.stride, self.dilation, self.pad)
        ranks = {len(v) for v in given if isinstance(v, (tuple, list))}
        if len(ranks) > 1:
            raise ValueError("kernel, size, stride, dilation and pad have different numbers of axes")
        rank = ranks.pop() if ranks else 1
        if not 1 <= rank <= lib.PARTITA_MAX_RANK:
            raise ValueError(f"{rank} axes: 1 to {lib.PARTITA_MAX_RANK}")
        signal = _arrays.type_name(self.signal)
        normal = {
            "signal": signal,
            "taps": signal if self.taps is None else _arrays.type_name(self.taps),
            "size": None if self.size is None else each_axis("size", self.size, rank),
            "pad": each_axis("pad", self.pad, rank, pad),
            "block": optional(positive, "block", self.block),
            "latency": math.inf if self.latency == math.inf else natural("latency", self.latency),
            "out_channels": optional(positive, "out_channels", self.out_channels),
            "whole_blocks": bool(self.whole_blocks),
            "separable": bool(self.separable),
            "channels_last": bool(self.channels_last),
        }
        normal |= {name: each_axis(name, getattr(self, name), rank) for name in ("kernel", "stride", "dilation")}
        normal |= {name: positive(name, getattr(self, name)) for name in ("batch", "in_channels", "groups", "up")}
        normal["boundary_value"] = float(self.boundary_value)
        choice("op", self.op, _OPS)
        choice("boundary", self.boundary, _BOUNDARIES)
        choice("activation", self.activation, _ACTIVATIONS)
        for name, value in normal.items():
            object.__setattr__(self, name, value)

    @property
    def rank(self):
        """Number of axes."""
        return len(self.kernel)

    @property
    def is_stream(self):
        """Whether the problem has no end."""
        return self.size is None

    @property
    def outputs(self):
        """Number of output channels."""
        return 1 if self.out_channels is None else self.out_channels

    @property
    def taps_shape(self):
        """Shape of the taps: (out_channels, in_channels / groups, taps along each axis)."""
        return self.outputs, self.in_channels // max(self.groups, 1), *self.kernel

    @property
    def input_shape(self):
        """Shape of x: (batch, in_channels, samples along each axis), or with the channels last. None for streams."""
        return None if self.size is None else self._shape(self.in_channels, self.size)

    @property
    def output_shape(self):
        """Shape of y: (batch, out_channels, results along each axis), or with the channels last. None for streams."""
        if self.size is None:
            return None
        sizes = ffi.new("size_t [3]")
        check(lib.partita_problem_output_size(self.to_c(), sizes), str(self))
        return self._shape(self.outputs, sizes[0:self.rank])

    def _shape(self, channels, sizes):
        return (self.batch, *sizes, channels) if self.channels_last else (self.batch, channels, *sizes)

    def to_c(self):
        """The problem as a struct partita_problem."""
        before, after = zip(*self.pad)
        size = [UNBOUNDED] if self.size is None else self.size
        return ffi.new("struct partita_problem *", {
            "signal": _arrays.TYPES[self.signal][0],
            "taps": _arrays.TYPES[self.taps][0],
            "op": _OPS[self.op],
            "out_channels": self.out_channels or 0,
            "size": size,
            "pad_begin": before,
            "pad_end": after,
            "block": self.block or 0,
            "latency": UNBOUNDED if self.latency == math.inf else self.latency,
            "activation": _ACTIVATIONS[self.activation],
            "boundary": _BOUNDARIES[self.boundary],
            **{name: getattr(self, name) for name in _SAME_IN_C},
        })

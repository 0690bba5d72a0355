# SPDX-License-Identifier: MIT
"""Taps of streams as users give them: for all channels, for each, a matrix, or single paths."""
import numpy as np

from partita import _arrays, _plan
from partita._problem import Problem, natural, positive


def _checked(paths):
    """The paths, with integers that are not negative."""
    for path in paths:
        if not isinstance(path, (tuple, list)) or len(path) != 4:
            raise ValueError(f"taps: {path!r} is no path: (out, in, delay, taps) is needed")
    return [(natural("out of a path", out), natural("in of a path", source), natural("delay of a path", delay), h)
            for out, source, delay, h in paths]


def _channels(value):
    """Channels as given: None, a number, or numbers of inputs and outputs."""
    if isinstance(value, tuple):
        return tuple(positive("channels", v) for v in value)
    return None if value is None else positive("channels", value)


def _layout(in_channels, out_channels, groups, kernel):
    """Fields of Problem."""
    return {"in_channels": in_channels, "out_channels": out_channels, "groups": groups, "kernel": kernel}


def _layout_of_paths(paths, channels):
    kernel = max((delay + len(taps) for _, _, delay, taps in paths), default=1)
    if channels is None:
        channels = (1 + max((p[1] for p in paths), default=0), 1 + max((p[0] for p in paths), default=0))
    inputs, outputs = channels if isinstance(channels, tuple) else (channels, channels)
    return _layout(inputs, outputs, 1, max(kernel, 1))


def _layout_of(taps, channels):
    shape = np.shape(taps)
    if 0 in shape:
        raise ValueError(f"taps is empty: its shape is {tuple(shape)}")
    if len(shape) == 1:
        channels = 1 if channels is None else channels
        if isinstance(channels, tuple):
            raise ValueError(f"channels = {channels}: one number for taps [m], which filter each channel by itself")
        layout = _layout(channels, channels, channels, shape[0])
    elif len(shape) == 2:
        layout = _layout(shape[0], shape[0], shape[0], shape[1])
    elif len(shape) == 3:
        layout = _layout(shape[1], shape[0], 1, shape[2])
    else:
        raise ValueError(f"taps has shape {tuple(shape)}: [m], [channels, m] or [outputs, inputs, m]")
    inputs = layout["in_channels"]
    if channels is not None and channels not in (inputs, (inputs, layout["out_channels"])):
        raise ValueError(f"channels = {channels}, but the taps are of {inputs}: their shape is "
                         f"{tuple(shape)}, the last axis is time")
    return layout


def _are_paths(taps):
    return isinstance(taps, (list, tuple)) and len(taps) > 0 and isinstance(taps[0], tuple)


def _types(taps, dtype):
    """Types of the signal and of the taps."""
    given = taps[0][3] if _are_paths(taps) else taps
    found = given.dtype if hasattr(given, "dtype") else _array(given).dtype
    if isinstance(found, np.dtype) and found.kind in "biu":
        found = np.dtype(np.float64)
    own = _arrays.type_name(found)
    signal = own if dtype is None else _arrays.type_name(dtype)
    return signal, signal if own.startswith("c") else signal.removeprefix("c")


def _array(taps):
    """Taps as an array of NumPy."""
    if isinstance(taps, str):
        raise TypeError(f"taps is the text {taps!r}: an array is needed; numpy.load or soundfile.read reads one from a file")
    return _arrays.from_values(taps, None, "taps")


def length(taps):
    """Number of taps from the first to the last, with delays of paths."""
    return max(delay + len(h) for _, _, delay, h in taps) if _are_paths(taps) else np.shape(taps)[-1]


def check_finite(taps):
    """The taps, if all are finite: others would make every result of a stream NaN."""
    values = np.asarray(taps)
    finite = np.isfinite(values)
    if not finite.all():
        place = np.unravel_index(finite.argmin(), values.shape)
        raise ValueError(f"taps[{', '.join(map(str, place))}] = {values[place]}: taps of a stream must be finite")
    return taps


def _converted(taps, name):
    """Taps as an array of this type of the library, a copy of the caller's."""
    if _arrays.is_tensor(taps):
        taps = taps.detach().resolve_conj().resolve_neg().numpy()
    taps = _array(taps)
    if taps.dtype.kind == "c" and not name.startswith("c"):
        raise TypeError("complex taps of a real stream: its dtype must be complex64 or complex128")
    return np.array(taps, _arrays.TYPES[name][1], order="C")


def problem(taps, channels, dtype, **fields):
    """The problem of a stream with such taps."""
    channels = _channels(channels)
    if _are_paths(taps):
        layout = _layout_of_paths(_checked(taps), channels)
    else:
        taps = taps if _arrays.is_tensor(taps) else _array(taps)
        layout = _layout_of(taps, channels)
    signal, taps_type = _types(taps, dtype)
    return Problem(signal=signal, taps=taps_type, **layout, **fields)


def make_filter(plan, taps):
    """A filter of the plan of a stream, which keeps a copy of the taps as they were given."""
    shape, name = plan.problem.taps_shape, plan.problem.taps
    if _are_paths(taps):
        taps = [(out, source, delay, check_finite(_converted(h, name))) for out, source, delay, h in _checked(taps)]
        filter = _plan.make_filter(plan, paths=taps)
        filter.recipe = make_filter, (plan, taps)
        return filter
    taps = _converted(taps, name)
    if taps.ndim == 0 or taps.size == 0:
        raise ValueError(f"taps has shape {taps.shape}: an array with one tap or more is needed")
    if taps.shape[-1] > shape[-1]:
        raise ValueError(f"{taps.shape[-1]} taps, but the stream was made for {shape[-1]}")
    dense = np.zeros(shape, taps.dtype)
    given = taps[:, None] if taps.ndim == 2 else taps
    if given.ndim == 3 and given.shape[:2] != shape[:2] or given.ndim == 1 and shape[1] != 1:
        forms = f"[m] or [{shape[0]}, m]" if shape[1] == 1 else f"[{shape[0]}, {shape[1]}, m]"
        raise ValueError(f"taps has shape {taps.shape}, but the stream was made for {forms}")
    check_finite(taps)
    dense[..., :taps.shape[-1]] = given
    filter = _plan.make_filter(plan, dense)
    filter.recipe = make_filter, (plan, taps)
    return filter

# SPDX-License-Identifier: MIT
"""Filters that follow an unknown path: echo cancelling and identification."""
import numpy as np

from partita import _arrays, _objects
from partita._errors import check, log, require_type
from partita._partita import ffi, lib
from partita._problem import choice, number, positive

_CONTROLS = {"state-space": lib.PARTITA_ADAPTIVE_STATE_SPACE, "nlms": lib.PARTITA_ADAPTIVE_NLMS,
             "fixed": lib.PARTITA_ADAPTIVE_FIXED}
_CONSTRAINTS = {"rotating": lib.PARTITA_ADAPTIVE_ROTATING, "every": lib.PARTITA_ADAPTIVE_EVERY,
                "none": lib.PARTITA_ADAPTIVE_NONE}


class AdaptiveFilter(_objects.Running):
    """
    A filter that follows the path from loudspeakers to a microphone, and removes the echo.

    Voices at the near end do not disturb it; a path that changes is followed. `partita/adaptive.h` has the formulas, the
    defaults for which 0 stands, and the meaning of `stats`.

    Parameters
    ----------
    taps, channels, block : int
        Taps of the path of each channel of the far end; samples of a block.
    whole_blocks : bool, optional
        Calls hold whole blocks, and the residual is not a block late.
    control : {"state-space", "nlms", "fixed"}, optional
        How large steps are.
    constraint : {"rotating", "every", "none"}, optional
        How many partitions are made ones of `block` taps again in each block.
    step, gain, drift, silence : float, optional
    dtype : str or dtype, optional
        Samples: "f32" or "f64".

    Notes
    -----
    One thread at a time may call a filter: a second one gets a RuntimeError.

    Examples
    --------
    >>> generator = np.random.default_rng(1)
    >>> far_end = generator.normal(size=48000)
    >>> path = generator.normal(size=300) * np.exp(-np.arange(300) / 50)
    >>> canceller = AdaptiveFilter(300, block=64, whole_blocks=True, dtype="f64")
    >>> residual = canceller.process(np.convolve(far_end, path)[:48000], far_end)
    >>> bool(abs(residual[-1000:]).max() < 1e-4), bool(abs(canceller.taps - path).max() < 1e-4)
    (True, True)
    """

    _name = "adaptive filter"

    def __init__(self, taps, *, channels=1, block=256, whole_blocks=False, control="state-space", constraint="rotating",
                 step=0.0, gain=0.0, drift=0.0, silence=0.0, dtype="f32"):
        self._type = choice("dtype", _arrays.type_name(dtype), {"f32": "f32", "f64": "f64"})
        self._taps, self._channels = positive("taps", taps), positive("channels", channels)
        self.block = positive("block", block)
        options = ffi.new("struct partita_adaptive_options *", {
            "type": _arrays.TYPES[self._type][0], "channels": self._channels, "taps": self._taps, "block": self.block,
            "whole_blocks": bool(whole_blocks), "control": choice("control", control, _CONTROLS),
            "constraint": choice("constraint", constraint, _CONSTRAINTS), "step": number("step", step),
            "gain": number("gain", gain), "drift": number("drift", drift), "silence": number("silence", silence),
            "log": log()})
        self._owner = _objects.Owner("adaptive", _objects.create("adaptive", lib.partita_adaptive_create, options))
        self.latency = lib.partita_adaptive_latency(self._owner.c)
        super().__init__()

    __reduce__ = _objects.not_pickled("an adaptive filter", "restore what save() returns in another one")

    def process(self, near_end, far_end):
        """The next samples of the near end without the echo of `far_end` [channels, samples], `latency` samples late."""
        near_end = np.asarray(_arrays.prepare(near_end, self._type, "near_end"))
        far_end = np.atleast_2d(_arrays.prepare(far_end, self._type, "far_end"))
        if near_end.ndim != 1 or far_end.shape != (self._channels, near_end.size):
            raise ValueError(f"near_end has shape {near_end.shape} and far_end {far_end.shape}: one axis, and "
                             f"{self._channels} channels of as many samples are needed")
        if not self.latency and near_end.size % self.block:
            raise ValueError(f"{near_end.size} samples: a multiple of block = {self.block} is needed with whole_blocks")
        residual = np.empty(near_end.shape, _arrays.TYPES[self._type][1])
        rows = ffi.new("void *[]", [ffi.cast("void *", row.ctypes.data) for row in far_end])
        with self._alone():
            lib.partita_adaptive_process(self._c, ffi.from_buffer(residual), ffi.cast("void *", near_end.ctypes.data),
                                         rows, near_end.size)
        return residual

    @property
    def taps(self):
        """The taps, with an axis of channels before theirs if there are several."""
        taps = np.empty((self._channels, self._taps), _arrays.TYPES[self._type][1])
        with self._alone():
            for channel, row in enumerate(taps):
                check(lib.partita_adaptive_taps(self._c, channel, ffi.from_buffer(row)), "taps")
        return taps if self._channels > 1 else taps[0]

    @property
    def stats(self):
        """What the filter has achieved, a dictionary."""
        stats = ffi.new("struct partita_adaptive_stats *")
        with self._alone():
            check(lib.partita_adaptive_stats(self._c, stats), "stats")
        return {name: getattr(stats, name) for name, _ in ffi.typeof(stats).item.fields}

    def freeze(self, frozen=True):
        """The taps rest from the next block on, or no longer; the echo is still removed."""
        with self._alone():
            lib.partita_adaptive_freeze(self._c, bool(frozen))

    def save(self):
        """Everything that future residuals depend on, as bytes."""
        with self._alone():
            state = bytearray(lib.partita_adaptive_state_size(self._c))
            check(lib.partita_adaptive_save(self._c, ffi.from_buffer(state)), "save")
        return bytes(state)

    def restore(self, state):
        """Continues from what `save` of a filter with equal options returned, bit for bit; StateError if it is not that."""
        require_type("state", state, (bytes, bytearray, memoryview, np.ndarray),
                     "bytes that AdaptiveFilter.save returned are needed")
        with self._alone():
            log()
            check(lib.partita_adaptive_restore(self._c, ffi.from_buffer(state), len(state)), "restore")

    def reset(self):
        """Clears taps and history."""
        with self._alone():
            lib.partita_adaptive_reset(self._c)

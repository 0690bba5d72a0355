# SPDX-License-Identifier: MIT
"""Decoding with long causal filters: sequences that are filled by prompts and continued token by token."""
from collections.abc import Iterable

import torch

from partita import _fork, _objects
from partita._errors import check, log, require_type
from partita._partita import ffi, lib
from partita._problem import choice, natural, optional, positive

from ._calls import address
from ._sequence import _TYPES, _require, _tensor


class DecodeState:
    """
    Sequences that pass through long causal filters, one for each channel, at once or a few frames a call.

    ``y[c, t]`` is the sum over j of ``taps[c, j] * x[c, t - j]``, in float32. Its bits depend on the sequence and the
    taps alone, not on how frames are given to `prefill` and `step`, on slots, clones and rewinds, other sequences or
    threads. There are no gradients. Calls of several threads wait for each other.

    Parameters
    ----------
    taps : Tensor
        (channels, taps), at most 2^20 taps; the first one meets the present sample.
    sequences : int, optional
        Slots: sequences that can be open at once.
    max_frames : int, optional
        Frames of the longest sequence; taps beyond it cost nothing. By default there is no limit.
    rewind : int, optional
        Frames that `rewind` may take back.
    dtype : torch.dtype, optional
        Of samples: float32, float16 or bfloat16; by default that of the taps.
    threads : int, optional
        By default those of PyTorch.

    Attributes
    ----------
    nbytes : int
        All memory of the state, taken here.

    Examples
    --------
    >>> import torch
    >>> from partita.nn import DecodeState
    >>> state = DecodeState(torch.tensor([[1.0, 0.5, 0.25]]), sequences=2)
    >>> slot = state.join()
    >>> state.prefill(slot, torch.tensor([[4.0, 0.0]]))
    tensor([[4., 2.]])
    >>> state.step(torch.tensor([[8.0]]), [slot])
    tensor([[9.]])
    """

    def __init__(self, taps, sequences=1, *, max_frames=None, rewind=0, dtype=None, threads=None):
        if _tensor("taps", taps).dim() != 2:
            raise ValueError(f"taps: {taps.dim()} axes; (channels, taps)")
        self.channels, self.dtype = len(taps), dtype or taps.dtype
        options = _options(*taps.shape, sequences, max_frames, rewind, self.dtype, threads)
        self.nbytes = _objects.returned("size_t", lib.partita_decode_memory, options)
        taps = taps.detach().to("cpu", torch.float32).contiguous()
        self._owner = _objects.Owner("decode", _objects.create("decode", lib.partita_decode_create, options,
                                                               address(taps)))
        self._lock = _fork.lock()

    __reduce__ = _objects.not_pickled("a state", "make another one from the taps and fill its sequences again")

    @staticmethod
    def memory(channels, n_taps, sequences=1, *, max_frames=None, rewind=0, dtype=torch.float32):
        """Bytes of a state, before it is made."""
        options = _options(channels, n_taps, sequences, max_frames, rewind, dtype, None)
        return _objects.returned("size_t", lib.partita_decode_memory, options)

    def join(self):
        """Opens the free slot of lowest number for a sequence without frames, and returns the number."""
        return self._call(lib.partita_decode_join, ffi.new("size_t *"))[0]

    def clone(self, slot):
        """Opens the free slot of lowest number for a copy of a sequence, and returns the number."""
        return self._call(lib.partita_decode_clone, natural("slot", slot), ffi.new("size_t *"))[0]

    def drop(self, slot):
        """Ends a sequence; its slot is free."""
        self._call(lib.partita_decode_drop, natural("slot", slot))

    def rewind(self, slot, n):
        """Takes back the last n frames, to at most `rewind` frames before the largest position of the sequence."""
        self._call(lib.partita_decode_rewind, natural("slot", slot), natural("n", n))

    def position(self, slot):
        """Frames of a sequence; 0 if the slot is not open."""
        return lib.partita_decode_position(self._owner.c, natural("slot", slot))

    def prefill(self, slot, x):
        """Appends x (channels, any number of frames) to a sequence, and returns its outputs of the same shape."""
        shape = self.channels, *_tensor("x", x).shape[-1:]
        return self._run(lib.partita_decode_prefill, x, shape, natural("slot", slot))

    def step(self, x, slots=None):
        """Appends x (sequences, channels) or (sequences, channels, 1 to 8 frames) to the sequences of these slots, by
        default 0, 1, .., and returns their outputs of the same shape. After an error no sequence has changed."""
        n = len(_tensor("x", x))
        slots = range(n) if slots is None else require_type("slots", slots, Iterable, "a list of slots is needed")
        slots = [natural("slots", slot) for slot in slots]
        return self._run(lib.partita_decode_step, x, (len(slots), self.channels, *x.shape[2:3]),
                         ffi.new("size_t []", slots), len(slots))

    def _run(self, function, x, shape, *arguments):
        _require("x", x, shape, (self.dtype,))
        x = x.detach().contiguous()
        y, step = torch.empty_like(x), len(arguments) == 2
        frames = 1 if step and x.dim() == 2 else x.shape[-1]
        data = (address(y), address(x))
        if x.numel():
            self._call(function, *arguments, *((frames, *data) if step else (*data, frames)))
        return y

    def _call(self, function, *arguments):
        with self._lock:
            lib.py_log_forget()
            check(function(self._owner.c, *arguments))
        return arguments[-1]  # where a result is


def _options(channels, n_taps, sequences, max_frames, rewind, dtype, threads):
    return ffi.new("struct partita_decode_options *", {
        "sequences": positive("sequences", sequences), "channels": positive("channels", channels),
        "n_taps": positive("n_taps", n_taps), "max_frames": optional(positive, "max_frames", max_frames) or 0,
        "rewind": natural("rewind", rewind), "signal": choice("dtype", dtype, _TYPES),
        "threads": optional(positive, "threads", threads) or torch.get_num_threads(), "log": log()})

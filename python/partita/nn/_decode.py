# SPDX-License-Identifier: MIT
"""Decoding with long causal filters: sequences that are filled by prompts and continued token by token."""
from collections.abc import Iterable

import torch

from partita import _fork, _objects
from partita._errors import check, log, require_type
from partita._partita import ffi, lib
from partita._problem import choice, natural, optional, positive

from ._calls import address, require, tensor
from ._sequence import _TYPES


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
        if tensor("taps", taps).dim() != 2:
            raise ValueError(f"taps: {taps.dim()} axes; (channels, taps)")
        self.channels, self.dtype = len(taps), dtype or taps.dtype
        options, self.nbytes = _planned(*taps.shape, sequences, max_frames, rewind, self.dtype, threads)
        taps = taps.detach().to("cpu", torch.float32).contiguous()
        self._owner = _objects.Owner("decode", _objects.create("decode", lib.partita_decode_create, options,
                                                               address(taps)))
        self._lock = _fork.lock()

    __reduce__ = _objects.not_pickled("a state", "make another one from the taps and fill its sequences again")

    @staticmethod
    def memory(channels, n_taps, sequences=1, *, max_frames=None, rewind=0, dtype=torch.float32):
        """Bytes of a state, before it is made."""
        return _planned(channels, n_taps, sequences, max_frames, rewind, dtype, None)[1]

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
        (y, x), slot = self._memory(x, self.channels, *tensor("x", x).shape[-1:]), natural("slot", slot)
        if x.numel():
            self._call(lib.partita_decode_prefill, slot, address(y), address(x), x.shape[1])
        return y

    def step(self, x, slots=None):
        """Appends x (sequences, channels) or (sequences, channels, 1 to 8 frames) to the sequences of these slots, by
        default 0, 1, .., and returns their outputs of the same shape. After an error no sequence has changed."""
        n = len(tensor("x", x))
        slots = range(n) if slots is None else require_type("slots", slots, Iterable, "a list of slots is needed")
        slots = [natural("slots", slot) for slot in slots]
        y, x = self._memory(x, len(slots), self.channels, *x.shape[2:3])
        if x.numel():
            frames = x.shape[2] if x.dim() == 3 else 1
            self._call(lib.partita_decode_step, ffi.new("size_t []", slots), len(slots), frames, address(y), address(x))
        return y

    def _memory(self, x, *shape):
        """Memory for outputs, and samples in order."""
        require("x", x, shape, (self.dtype,))
        x = x.detach().contiguous()
        return torch.empty_like(x), x

    def _call(self, function, *arguments):
        with self._lock:
            lib.py_log_forget()
            check(function(self._owner.c, *arguments))
        return arguments[-1]  # where a result is


def _planned(channels, n_taps, sequences, max_frames, rewind, dtype, threads):
    """The options of a state, and its bytes."""
    options = ffi.new("struct partita_decode_options *", {
        "sequences": positive("sequences", sequences), "channels": positive("channels", channels),
        "n_taps": positive("n_taps", n_taps), "max_frames": optional(positive, "max_frames", max_frames) or 0,
        "rewind": natural("rewind", rewind), "signal": choice("dtype", dtype, _TYPES),
        "threads": optional(positive, "threads", threads) or torch.get_num_threads(), "log": log()})
    n_bytes = _objects.returned("size_t", lib.partita_decode_memory, options)
    if n_bytes >= 2**63:
        raise MemoryError(f"{sequences} sequences of {channels} channels with {n_taps} taps: more than any memory has")
    return options, n_bytes

# SPDX-License-Identifier: MIT
"""Many streams of one size that are processed together."""
import numbers

import numpy as np

from partita import _arrays, _objects, _stream, _taps
from partita._errors import check, failure, log, require_type
from partita._partita import ffi, lib
from partita._plan import Filter, explanation
from partita._problem import natural, number, optional, positive

_STATES = {
    lib.PARTITA_SLOT_FREE: "free", lib.PARTITA_SLOT_OPEN: "open", lib.PARTITA_SLOT_SWAPPING: "swapping",
    lib.PARTITA_SLOT_CLOSING: "closing",
}


class Bank(_objects.Running):
    """
    Many equal streams, each with a filter of its own or shared, that open, close and swap filters while the bank runs.

    Parameters
    ----------
    taps : array_like, optional
        The impulse response of slots that are opened without another filter: ``[m]`` or ``[outputs, inputs, m]``.
        Channels, `n_taps` and types that are not given follow from it, as in `Stream`.
    n_taps : int, optional
        Taps of the longest filter, if there are no taps. ``Bank(slots, n_taps)`` may be written, too.
    slots : int
        Streams that can be open at once.
    in_channels, out_channels : int, optional
        Of each slot. Every output sums over all inputs.
    block : int, optional
        Frames of a call.
    latency : int, optional
        The largest added delay allowed, in frames.
    dtype : str or dtype, optional
        Samples: "f32" (the default without taps), "f64", "cf32" or "cf64".
    taps_dtype : str or dtype, optional
        Taps, if they are real and the signal complex.
    sample_rate : float, optional
        Frames per second; calls are then timed, see `stats`.
    device : str, optional
        One of the names of `devices`. On a device blocks are multiples of 16 frames.
    error_budget : float, optional
        As for `Plan`.

    Notes
    -----
    One thread at a time processes and reads and writes the slots' arrays. One thread at a time, the same or another,
    opens, closes and swaps. Any thread makes filters. In a child after fork() a bank is closed if another thread of the
    parent was in a call of it.

    Examples
    --------
    >>> import partita
    >>> bank = partita.Bank(slots=100, n_taps=4, block=16)
    >>> slot = bank.open(bank.filter([1, 0, 0, 0.5]))
    >>> bank.input(slot)[0, 0] = 2
    >>> bank.process()
    >>> float(bank.output(slot)[0, 3])
    1.0
    >>> bank = partita.Bank([1, 0.5], slots=2)
    >>> bank.open(), bank.open(bank.filter([3]))
    (0, 1)
    """

    def __init__(self, taps=None, n_taps=None, *, slots=None, in_channels=None, out_channels=None, block=64, latency=0,
                 dtype=None, taps_dtype=None, sample_rate=None, device="cpu", error_budget=None):
        if isinstance(taps, numbers.Integral):
            if slots is not None:
                raise TypeError(f"taps = {taps}: an array of taps is needed, since slots is given")
            taps, slots = None, taps
        if slots is None:
            raise TypeError("slots is not given: the number of streams that can be open at once")
        if taps is not None:
            like = _taps.problem(taps, None, dtype)
            if like.groups > 1:
                raise ValueError(f"taps has shape {np.shape(taps)}: [m] or [outputs, inputs, m] is needed")
            found = (like.kernel[0], like.in_channels, like.out_channels, like.signal, like.taps)
            given = (n_taps, in_channels, out_channels, dtype, taps_dtype)
            n_taps, in_channels, out_channels, dtype, taps_dtype = (f if g is None else g for f, g in zip(found, given))
        elif n_taps is None:
            raise TypeError("a bank is made from taps or for n_taps of them")
        dtype = "f32" if dtype is None else dtype
        self._type = _arrays.type_name(dtype)
        self._taps_type = self._type if taps_dtype is None else _arrays.type_name(taps_dtype)
        self.block = positive("block", block)
        self.in_channels = 1 if in_channels is None else positive("in_channels", in_channels)
        self.out_channels = 1 if out_channels is None else positive("out_channels", out_channels)
        self.n_taps = positive("n_taps", n_taps)
        self._slots = positive("slots", slots)
        name = ffi.new("char []", device.encode())
        options = ffi.new("struct partita_bank_options *", {
            "slots": self._slots,
            "in_channels": self.in_channels,
            "out_channels": optional(positive, "out_channels", out_channels) or 0,
            "n_taps": self.n_taps,
            "block": self.block,
            "latency": natural("latency", latency),
            "signal": _arrays.TYPES[self._type][0],
            "taps_type": _arrays.TYPES[self._taps_type][0],
            "sample_rate": optional(number, "sample_rate", sample_rate) or 0,
            "device": name,
            "error_budget": optional(number, "error_budget", error_budget) or 0,
            "log": log(),
        })
        self._owner = _objects.Owner("bank", _objects.create("bank", lib.partita_bank_create, options))
        self._filters = {}  # of each slot: filters that it may still use, the newest last
        super().__init__()
        self._filter = None if taps is None else self.filter(taps)

    _name = "bank"
    __reduce__ = _objects.not_pickled("a bank", "make another one, and its filters from their taps")

    def __repr__(self):
        plan = lib.partita_bank_plan(self._c)
        engine = ffi.string(lib.partita_plan_engine(plan, lib.PARTITA_FORWARD)).decode()
        shape = f"{self.in_channels} -> {self.out_channels} channels of {self._type}"
        return (f"<partita.Bank, {len(self._filters)} of {self._slots} slots open, {shape}, {self.n_taps} taps, blocks of "
                f"{self.block}, {engine}, latency {self.latency}>")

    def filter(self, taps):
        """
        Prepares taps for any number of slots.

        Parameters
        ----------
        taps : array_like
            (out_channels, in_channels, taps), at most `n_taps` of them; leading axes of length 1 may be left out.
            Copied and converted.

        Returns
        -------
        Filter
        """
        taps = _taps.check_finite(_arrays.prepare(taps, self._taps_type, "taps", True))
        channels = (self.out_channels, self.in_channels)
        if tuple(taps.shape[:-1]) not in (channels, channels[1:] if channels[0] == 1 else channels,
                                          () if channels == (1, 1) else channels):
            raise ValueError(f"taps has shape {tuple(taps.shape)}, not {channels} and taps")
        pointer = _objects.create("filter", lib.partita_bank_filter_create, self._c, _arrays.address(taps),
                                  taps.shape[-1])
        filter = Filter(None, pointer, self._owner)
        filter.bank = self
        return filter

    def open(self, filter=None):
        """
        Opens a slot with empty history, which takes part from the next `process` on.

        Parameters
        ----------
        filter : Filter, optional
            By default that of the taps which the bank was made from.

        Returns
        -------
        int
            The slot.

        Raises
        ------
        StateError
            If no slot is free.
        """
        filter = self._filter if filter is None else filter
        with self._control:
            slot = _objects.returned("size_t", lib.partita_bank_open, self._c, self._of(filter), what="open")
            self._filters[slot] = [filter]
            return slot

    def close(self, slot):
        """Closes a slot; the next `process` frees it."""
        with self._control:
            check(lib.partita_bank_close(self._c, slot), f"close of slot {slot}, which must be open")

    def swap(self, slot, filter, fade=0):
        """Changes the filter of an open slot with a fade of so many frames, as `Stream.swap` does."""
        with self._control:
            self._forget_old(slot)
            check(lib.partita_bank_swap(self._c, slot, self._of(filter), natural("fade", fade)), f"swap of slot {slot}")
            self._filters[slot].append(filter)

    def state(self, slot):
        """What a slot is doing: "free", "open", "swapping" or "closing"."""
        with self._control:
            return self._forget_old(slot)

    def _of(self, filter):
        require_type("filter", filter, Filter, "Bank.filter(taps) makes one")
        if getattr(filter, "bank", None) is not self:
            raise ValueError("filter: of another bank or plan")
        return filter._c

    def _forget_old(self, slot):
        """The state of a slot, whose unused filters are released."""
        state = _STATES[lib.partita_bank_slot_state(self._c, slot)]
        if state == "open":
            del self._filters[slot][:-1]
        elif state == "free":
            self._filters.pop(slot, None)
        return state

    def lead(self, slot):
        """Frames of silence that count as the slot's history before its first block."""
        return lib.partita_bank_lead(self._c, slot)

    def input(self, slot):
        """The input of a slot's next call, (in_channels, block): memory of the bank, which never moves."""
        return self._view(slot, lib.partita_bank_input(self._c, slot), self.in_channels, True)

    def output(self, slot):
        """The output of a slot's last call, (out_channels, block): memory of the bank, read-only."""
        return self._view(slot, lib.partita_bank_output(self._c, slot), self.out_channels, False)

    def _view(self, slot, pointer, channels, writable):
        if pointer == ffi.NULL:
            raise ValueError(f"slot = {slot}: there is no such slot")
        return _arrays.view(pointer, (channels, self.block), self._type, writable, self._owner)

    def process(self):
        """
        Filters one block of every open slot.

        Raises
        ------
        RuntimeError
            If another thread is in this call.
        """
        with self._alone():
            lib.partita_bank_process(self._c)

    @property
    def status(self):
        """None, or the exception that says why a device has failed; outputs are zeros from then on."""
        status = lib.partita_bank_status(self._c)
        return None if status == lib.PARTITA_OK else failure(status)

    @property
    def latency(self):
        """Added delay in frames."""
        return lib.partita_plan_latency(lib.partita_bank_plan(self._c))

    def explain(self):
        """The text of `Plan.explain` for a slot."""
        return explanation(lib.partita_bank_plan(self._c))

    def stats(self):
        """How long calls of `process` took, a `Stats`; StateError if the bank has no sample_rate."""
        return _stream.read_stats(lib.partita_bank_stats, self._c)

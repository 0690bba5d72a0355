# SPDX-License-Identifier: MIT
"""Many channels of one signal, each with its own centre, filter and output rate."""
import numpy as np

from partita import _arrays, _objects, _taps
from partita._errors import check, log, require_type
from partita._partita import ffi, lib
from partita._problem import natural, number, optional, positive


class ChannelFilter:
    """
    What channels of a `Channelizer` do: taps, output rate and band. `Channelizer.filter` makes it.
    """

    def __init__(self, channelizer, pointer, description):
        self._owner = _objects.Owner("channel_filter", pointer, channelizer._owner)
        self._channelizer = channelizer
        self._description = description

    __reduce__ = _objects.not_pickled("a filter of channels", "make another one from its taps")

    def __repr__(self):
        return f"<partita.ChannelFilter, {self._description}>"


class Channelizer(_objects.Running):
    """
    Many channels of one real or complex signal, each with its own centre, filter and output rate.

    Channels open, change and close while the signal runs. The signal is transformed once for all of them.

    Parameters
    ----------
    n_taps : int
        Taps of the longest filter, at the rate of the signal.
    channels : int, optional
        Channels that can be open at once.
    stride : int, optional
        A common multiple of the strides of all filters.
    sample_rate : float, optional
        The unit of centres and bandwidths.
    block : int, optional
        Samples of a block, a multiple of `stride`; outputs are there when a block is complete. By default at least three
        times `n_taps`.
    dtype : str or dtype, optional
        Samples: "cf32", "cf64", "f32" or "f64".
    threads : int, optional
        Threads that share the channels of a block.

    Notes
    -----
    Output m of a channel is the sum of ``taps[m*stride - j*up] * x[j] * exp(-2j*pi*j*centre/sample_rate)`` over j. Its
    bits do not depend on other channels, on threads, or on how the signal is cut into calls. One thread at a time
    processes; one thread at a time, the same or another, opens, changes and closes.

    Examples
    --------
    Two channels of a signal at 48 kHz, at 8 kHz each:

    >>> import numpy as np
    >>> import partita
    >>> band = partita.Channelizer(101, stride=6, sample_rate=48e3, block=600)
    >>> narrow = band.filter(partita.design("lowpass", 3e3, rate=48e3, taps=101), stride=6)
    >>> low, high = band.open(narrow, -9e3), band.open(narrow, 12e3)
    >>> t = np.arange(1200) / 48e3
    >>> y = band.process(np.exp(2j * np.pi * 12.5e3 * t).astype(np.complex64))
    >>> y[high].shape, bool(abs(y[low][20:]).max() < 0.01)
    ((200,), True)
    >>> float(np.round(np.angle(y[high][101] / y[high][100]) * 8e3 / (2 * np.pi)))
    500.0
    """

    def __init__(self, n_taps, *, channels=1024, stride=1, sample_rate=1.0, block=None, dtype="cf32", threads=1):
        self._type = _arrays.type_name(dtype)
        self._output = "cf64" if self._type in ("f64", "cf64") else "cf32"
        options = ffi.new("struct partita_channelizer_options *", {
            "signal": _arrays.TYPES[self._type][0],
            "channels": positive("channels", channels),
            "n_taps": positive("n_taps", n_taps),
            "stride": positive("stride", stride),
            "block": optional(positive, "block", block) or 0,
            "sample_rate": number("sample_rate", sample_rate),
            "threads": positive("threads", threads),
            "log": log(),
        })
        self._owner = _objects.Owner("channelizer", _objects.create("channelizer", lib.partita_channelizer_create, options))
        self._open = {}  # channels that are open, and their filters
        super().__init__()

    _name = "channelizer"
    __reduce__ = _objects.not_pickled("a channelizer", "make another one, and its filters from their taps")

    def __repr__(self):
        return f"<partita.Channelizer, {len(self._open)} channels of {self._type} open, blocks of {self.block}>"

    @property
    def block(self):
        """Samples of a block."""
        return lib.partita_channelizer_block(self._c)

    @property
    def overlap(self):
        """Samples before a block that its transform reads again: taps may be 1 longer."""
        return lib.partita_channelizer_overlap(self._c)

    @property
    def position(self):
        """The number of the next sample."""
        return lib.partita_channelizer_position(self._c)

    def filter(self, taps, *, stride=1, up=1, bandwidth=None):
        """
        Prepares a filter for any number of channels.

        Parameters
        ----------
        taps : array_like
            Real or complex, at the rate ``up * sample_rate``; copied.
        stride, up : int, optional
            The output rate is ``sample_rate * up / stride``.
        bandwidth : float, optional
            The band around the centre that is kept; frequencies outside are removed. The cost of a channel is
            proportional to it. By default all frequencies.

        Returns
        -------
        ChannelFilter
        """
        taps = np.atleast_1d(_taps.check_finite(np.asarray(taps)))
        if taps.ndim != 1 or taps.size == 0:
            raise ValueError(f"taps has shape {taps.shape}: one axis with a tap or more is needed")
        name = self._output if taps.dtype.kind == "c" else self._output.removeprefix("c")
        taps = _arrays.prepare(taps, name, "taps", True)
        channel = ffi.new("struct partita_channel *", {
            "taps": ffi.from_buffer(taps),
            "n_taps": taps.size,
            "taps_type": _arrays.TYPES[name][0],
            "up": positive("up", up),
            "stride": positive("stride", stride),
            "bandwidth": optional(number, "bandwidth", bandwidth) or 0,
        })
        with self._control:
            pointer = _objects.create("channel_filter", lib.partita_channel_filter_create, self._c, channel)
        return ChannelFilter(self, pointer, f"{taps.size} taps of {name}, rate {up}/{stride}")

    def open(self, filter, centre):
        """
        Opens a channel, which takes part from the next block on that begins to be computed.

        Parameters
        ----------
        filter : ChannelFilter
        centre : float
            The frequency that becomes 0, from ``-sample_rate / 2`` to ``sample_rate / 2``.

        Returns
        -------
        int
            The channel.

        Raises
        ------
        StateError
            If as many channels are open as there can be.
        """
        with self._control:
            filter_c, centre = self._of(filter), number("centre", centre)
            channel = _objects.returned("size_t", lib.partita_channelizer_open, self._c, filter_c, centre, what="open")
            self._open[channel] = filter
            return channel

    def change(self, channel, filter=None, centre=0.0, fade=0):
        """
        Changes filter and centre of an open channel from the next block on.

        Parameters
        ----------
        channel : int
        filter : ChannelFilter, optional
            By default that of the channel.
        centre : float
        fade : int, optional
            Outputs over which the channel fades, at most those of a block; 0 if the output rate changes.
        """
        with self._control:
            filter = self._open.get(channel) if filter is None else filter
            if filter is None:
                raise ValueError(f"channel = {channel}: is not open")
            status = lib.partita_channelizer_change(self._c, natural("channel", channel), self._of(filter),
                                                    number("centre", centre), natural("fade", fade))
            check(status, f"change of channel {channel}")
            self._open[channel] = filter

    def close(self, channel):
        """Closes a channel; its number is free after the next block."""
        with self._control:
            status = lib.partita_channelizer_close(self._c, natural("channel", channel))
            check(status, f"close of channel {channel}, which must be open")
            del self._open[channel]

    def _of(self, filter):
        require_type("filter", filter, ChannelFilter, "Channelizer.filter(taps) makes one")
        if filter._channelizer is not self:
            raise ValueError("filter: of another channelizer")
        return filter._owner.c

    def process(self, x):
        """
        Reads the next samples.

        Parameters
        ----------
        x : array_like
            One axis, of any length.

        Returns
        -------
        dict
            The outputs of each open channel in the blocks that these samples complete, complex; without such a block they
            are empty.

        Raises
        ------
        RuntimeError
            If another thread is in this call.
        """
        x = _arrays.prepare(x, self._type)
        if len(x.shape) != 1:
            raise ValueError(f"x has shape {tuple(x.shape)}: one axis is needed")
        with self._alone():
            return self._run(x)

    def _run(self, x):
        channelizer, count, dtype = self._c, ffi.new("size_t *"), _arrays.TYPES[self._output][1]
        address, size = ffi.cast("char *", _arrays.address(x)), _arrays.itemsize(self._type)
        parts = {channel: [] for channel in list(self._open)}
        at = 0
        while at < x.shape[0]:
            at += lib.partita_channelizer_process(channelizer, address + at * size, x.shape[0] - at)
            for channel in parts:
                output = lib.partita_channelizer_output(channelizer, channel, count)
                if output != ffi.NULL:
                    parts[channel].append(np.frombuffer(ffi.buffer(output, count[0] * dtype.itemsize), dtype).copy())
        return {channel: np.concatenate(found) if found else np.empty(0, dtype) for channel, found in parts.items()}

    def reset(self, position=0):
        """
        Clears the history; the next sample has the number `position`, a multiple of `stride`, and blocks begin there.
        """
        with self._alone():
            check(lib.partita_channelizer_reset(self._c, natural("position", position)),
                  f"position = {position}: a multiple of stride is needed")

# SPDX-License-Identifier: MIT
"""Filters of signals without end: the state of one running stream."""
import contextlib
import math
import sys
import time
import typing

import numpy as np

from partita import _arrays, _device, _objects, _taps
from partita._errors import StateError, check, failure, log, require_type
from partita._partita import ffi, lib
from partita._plan import Filter, Plan, device_number, filter_of
from partita._problem import natural, positive

# What each call of `process` uses, without a look-up in a module.
_from_buffer, _process, _process_queued = ffi.from_buffer, lib.py_stream_process, lib.py_stream_process_queued


class Stats(typing.NamedTuple):
    """How long the calls of `process` took, in seconds; `missed` took longer than their frames last."""

    calls: int
    missed: int
    mean: float
    p50: float
    p99: float
    p999: float
    max: float


def read_stats(function, pointer):
    """What a function of the library says about calls."""
    stats = ffi.new("struct partita_stream_stats *")
    check(function(pointer, stats), "stats: without sample_rate calls are not timed")
    return Stats(*(getattr(stats, field) for field in Stats._fields))


def _fault(state, expected):
    """What is wrong with a saved state, by its header (lib/stream/state.c) and that of the stream that refused it."""
    if state[:8] != expected[:8]:
        if state[:6] == expected[:6]:
            return f"its format is {state[:7]!r} of another version of the library, not {expected[:7]!r}"
        return f"it begins with {state[:8]!r}: Stream.save has not made it"
    size = 48 + int.from_bytes(state[16:24], sys.byteorder)
    if size != len(state):
        return f"it has {len(state)} bytes instead of {size}"
    if state[8:16] != expected[8:16]:
        return "it is of a stream with another number of taps or channels, other types, options, engine or processor"
    return "it is damaged: its checksum is wrong"


class Stream(_objects.Running):
    """
    A running filter: it takes the next frames of a signal and gives the filtered ones, with the state between.

    Results do not depend on how a signal is cut into calls, bit for bit.

    Parameters
    ----------
    taps : array_like or sequence of paths, optional
        The impulse response: ``[m]``, one for all channels; ``[channels, m]``, one for each;
        ``[outputs, inputs, m]``, a matrix; or a list of paths ``(out, in, delay, taps)``, a sparse matrix. The last
        axis is time: what soundfile reads, ``[m, channels]``, is given transposed.
    filter : Filter, optional
        Instead of taps: a filter of the plan of a stream.
    channels : int or tuple of int, optional
        Channels for taps ``[m]``; (inputs, outputs) for paths.
    block : int, optional
        Frames of the largest usual call. Calls of any size work.
    latency : int or math.inf, optional
        The largest added delay allowed, in frames.
    decimate : int, optional
        Only every such result is computed.
    up : int, optional
        ``up - 1`` zeros are inserted after each frame before it is filtered: the sample rate of the results is that of
        the frames times ``up / decimate``. The taps are a filter at the rate times `up`; a gain of `up` keeps the level.
    whole_blocks : bool, optional
        Every call holds a multiple of `block` frames.
    dtype : str or dtype, optional
        Samples of the signal: float32, float64, complex64 or complex128. If not given, the type of the taps. Taps are
        converted; real taps of a complex signal stay real.
    device : str, optional
        One of the names of `devices`.
    threads : int, optional
        Threads of this stream, the calling one included. The others use no processor time while the stream is not
        processed.
    sample_rate : float, optional
        Frames per second; calls are then timed, see `stats`.
    frames_first : bool, optional
        Arrays are ``[frames, channels]``, as soundfile and sounddevice have them, not ``[channels, frames]``.
    error_budget, error_reach : optional
        As `Plan` takes them.
    weights : array_like, optional
        With them `taps` is a sequence of 1 to 8 such, or `filter` one of filters of a plan, and the stream's filter is the
        sum of ``weights[k] * taps[k]``. `morph` moves the weights.

    Notes
    -----
    One thread at a time may call `process`, `drain`, `save`, `restore`, `clone` and `reset`: a second one gets a
    RuntimeError. Another thread may call `swap` and `morph`. With `out` given `process` allocates no arrays. Python itself may
    delay a thread at any time, by its global lock and its collector: an audio callback in Python can be late.

    An infinite or NaN sample reaches exactly the outputs that depend on it. Samples near the largest float (float32:
    from about 1e33 on) may overflow in transforms of a stream, so that outputs are not finite although exact ones would
    be, until these samples have left the taps; the functions of bounded signals compute again instead.

    In a child after fork() a stream is closed if it has threads of its own, or if another thread of the parent was in a
    call of it.

    A stream of a device takes arrays in the memory of the CPU or, from its first call or `reset` on, of PyTorch and CuPy in
    the memory of that device, ``[channels, frames]``. Such a call puts its work on the library's current CUDA stream and
    does not wait for it.

    Examples
    --------
    >>> import numpy, partita
    >>> stream = partita.Stream([1, 0, 0, 0.5], block=4)
    >>> stream.process(numpy.array([1.0, 0, 0]))
    array([1., 0., 0.])
    >>> stream.process(numpy.array([0.0, 0]))
    array([0.5, 0. ])
    >>> partita.Stream([1, 1, 0.5], up=2).process(numpy.array([2.0, 4]))
    array([2., 2., 5., 4.])
    """

    _name = "stream"

    def __init__(self, taps=None, *, filter=None, channels=None, block=1024, latency=0, decimate=1, up=1,
                 whole_blocks=False, dtype=None, device="cpu", threads=1, sample_rate=None, frames_first=False, error_budget=None,
                 error_reach=None, weights=None):
        if (taps is None) == (filter is None):
            raise TypeError("a stream is made from taps or from a filter")
        if filter is None:
            longest = taps if weights is None else max(taps, key=_taps.length)
            problem = _taps.problem(longest, channels, dtype, stride=positive("decimate", decimate), up=up, block=block,
                                    latency=latency, whole_blocks=whole_blocks)
            plan = Plan(problem, device=device, threads=threads, sample_rate=sample_rate, error_budget=error_budget,
                        error_reach=error_reach, engine=None if weights is None else "cpu/partitioned")
            filter = _taps.make_filter(plan, taps) if weights is None else [_taps.make_filter(plan, h) for h in taps]
        filters = [filter] if weights is None else list(filter)
        for one in filters:
            require_type("filter", one, Filter, "Plan.filter(taps) makes one")
        self._open(filters, frames_first, weights=None if weights is None else self._read_weights(weights, len(filters)))

    @staticmethod
    def _read_weights(weights, n):
        """Weights of n filters as memory of C."""
        weights = np.ascontiguousarray(weights, float)
        if weights.shape != (n,):
            raise ValueError(f"weights has shape {weights.shape}, but there are {n} filters")
        if not np.isfinite(weights).all():
            raise ValueError(f"weights = {weights.tolist()}: they must be finite")
        return ffi.from_buffer("double[]", weights)

    def _open(self, filters, frames_first, pointer=None, weights=None):
        """Starts with a filter, or with several and their weights."""
        filter = filters[0] if filters else None
        plan = filter and filter.plan
        if plan is None or not plan.problem.is_stream:
            raise StateError("the filter is not of the plan of a stream")
        if weights is not None:
            pointer = _objects.create("stream", lib.partita_stream_open_morph, plan._c,
                                      [filter_of(plan, one) for one in filters], len(filters), weights)
        elif pointer is None:
            pointer = _objects.create("stream", lib.partita_stream_open, plan._c, filter._c)
        self._owner = _objects.Owner("stream", pointer, *(one._owner for one in filters))
        self._filter = filter
        self._basis = [] if weights is None else filters  # whose weights move
        self.plan = plan
        problem = plan.problem
        self._inputs, self._outputs = problem.in_channels, problem.outputs
        # Also: as many frames out as in.
        self._in_place = problem.stride[0] == 1 and problem.up == 1 and self._inputs == self._outputs
        self._whole = problem.block or 1024 if problem.whole_blocks else 1
        self._type = problem.signal
        self._dtype = _arrays.TYPES[problem.signal][1]
        self._frames_first = bool(frames_first)
        self._channel_axis = 1 if frames_first else 0
        self._tables = ffi.new("void *[]", self._outputs), ffi.new("void *[]", self._inputs)
        self._call = ffi.new("struct py_stream *", {
            "stream": pointer,
            "y": self._tables[0],
            "x": self._tables[1],
            "outputs": self._outputs,
            "inputs": self._inputs,
            "sample_bytes": _arrays.itemsize(self._type),
            "frames_first": self._frames_first,
            "in_place": self._in_place,
        })
        self._device = device_number(plan.options.get("device"))
        self._library = None  # of the arrays on the device that the stream has filtered
        super().__init__()

    def _after_fork(self):
        """In a child: closes a stream whose threads, or a call of which, went on in the parent only."""
        if (self.plan.options["threads"] or 1) > 1 or self._busy.locked() or self._control.locked():
            self._call = None
            self._owner.abandon()

    @contextlib.contextmanager
    def _alone(self):
        """Excludes other calls, and waits for work that is queued on a device."""
        with super()._alone():
            if self._library is not None:
                self._library.wait()
            yield

    def _shape(self, frames, axes):
        """Shape of results for inputs with this number of axes."""
        if axes == 1 and self._outputs == 1:
            return (frames,)
        return (frames, self._outputs) if self._frames_first else (self._outputs, frames)

    def _run(self, y_at, x_at, frames):
        if self._call is None:
            raise StateError("the stream is closed")
        if self._library is not None:
            raise StateError("the stream has filtered arrays on a device: reset() before others")
        if _process(self._call, y_at, x_at, frames):
            raise ValueError("out overlaps x, and is not x itself with as many channels")

    def _run_queued(self, y, x, frames):
        """The same for arrays on a device; x None: silence."""
        if self._call is None:
            raise StateError("the stream is closed")
        if y.queue is None:
            raise TypeError(f"x: a stream queues its work, but {type(y.array).__name__} does not say on which CUDA stream; "
                            "torch.from_dlpack(x) does")
        if self._frames_first and max(self._inputs, self._outputs) > 1:
            raise ValueError("x: streams take [channels, frames] on a device, not frames_first=True")
        for used in (self, self._filter, self.plan):
            used._owner.release_after(y.library.wait)
        check(_process_queued(self._call, y.pointer, ffi.NULL if x is None else x.pointer, frames,
                              ffi.cast("void *", y.queue)), "process")
        self._library = y.library

    def _silence(self, frames, axes):
        if frames % self._whole:
            raise ValueError(f"{frames} frames: not whole blocks of {self._whole}")
        with self._alone():
            shape = self._shape(lib.partita_stream_output_frames(self._c, frames), axes)
            if self._library is not None:
                y = _device.Array(self._library.empty(shape, _arrays.LONG_NAMES[self._type]), "y", self._library)
                self._run_queued(y, None, frames)
                return y.array
            y = np.empty(shape, self._dtype)
            self._run(_from_buffer(y), ffi.NULL, frames)
        return y

    def _other_shape(self, shape):
        """The exception for an input with such a shape, with what to do about it."""
        form = f"[frames, {self._inputs}]" if self._frames_first else f"[{self._inputs}, frames]"
        text = f"x has shape {shape}, not {form}"
        if len(shape) == 2 and shape[1 - self._channel_axis] == self._inputs:
            text += f": use x.T, or a stream with frames_first={not self._frames_first}"
        elif len(shape) == 0:
            text += ": it is a single sample"
        return ValueError(text)

    def _forget_old(self):
        """Releases filters that are no longer used, if no swap is in progress; whether none is."""
        if lib.partita_stream_swapping(self._c):
            return False
        if not self._basis:
            self._owner.keep_newest()
        return True

    def __repr__(self):
        if self._call is None:
            return "<partita.Stream, closed>"
        shape = f"{self._inputs} -> {self._outputs} channels of {self._type}"
        return f"<partita.Stream {shape}, {self.plan.problem.kernel[0]} taps, {self.engine}, latency {self.latency}>"

    # Calls of the thread that processes.

    def process(self, x, out=None):
        """
        Filters the next frames.

        Parameters
        ----------
        x : array_like
            ``[channels, frames]``, or ``[frames, channels]`` with `frames_first`; ``[frames]`` if there is one input.
        out : numpy.ndarray or torch.Tensor, optional
            Where to write the results. It may be x itself if there are as many outputs as inputs and as many frames;
            other overlaps are refused. With it the call allocates no arrays.

        Returns
        -------
        array
            `out`, or a new array of the kind of x: ``[channels, output_frames(frames)]`` and so on; without an axis of
            channels if x has none and there is one output.

        Raises
        ------
        TypeError, ValueError
            If an array does not fit; the state is then unchanged.
        RuntimeError
            If another thread is in a call of this stream.
        """
        if not self._busy.acquire(False):
            raise self._other_thread()
        try:
            given = x
            if type(x) is np.ndarray and x.dtype is self._dtype and x.flags.carray:
                x_at = _from_buffer(x)
            else:
                x = _arrays.prepare(x, self._type, device=self._device)
                x_at = _arrays.address(x)
            shape = x.shape
            if len(shape) == 1 and self._inputs == 1:
                frames = shape[0]
            elif len(shape) == 2 and shape[self._channel_axis] == self._inputs:
                frames = shape[1 - self._channel_axis]
            else:
                raise self._other_shape(tuple(shape))
            if frames % self._whole:
                raise ValueError(f"x has {frames} frames: not whole blocks of {self._whole}")
            if self._in_place:
                wanted = shape if type(shape) is tuple else tuple(shape)  # that of a tensor is no tuple
            else:
                wanted = self._shape(lib.partita_stream_output_frames(self._c, frames), len(shape))
            if type(out) is np.ndarray and out.dtype is self._dtype and out.shape == wanted and out.flags.carray:
                y, y_at = out, _from_buffer(out)
            else:
                new = out is None
                y = _arrays.empty(wanted, self._type, x) if new else _arrays.prepare_out(out, self._type, wanted, x)
                y_at = _arrays.address(y, True)
            if type(x) is _device.Array:
                self._run_queued(y, x, frames)
            else:
                self._run(y_at, x_at, frames)
        finally:
            self._busy.release()
        return out if out is not None else _arrays.finish(y, given)

    __call__ = process

    def drain(self, frames=None):
        """
        Filters silence: what earlier frames still contribute.

        Parameters
        ----------
        frames : int, optional
            Frames of silence. If not given, as many as the whole `tail`.

        Returns
        -------
        numpy.ndarray
            The results, with an axis of channels unless there are one input and one output.
        """
        frames = self.tail if frames is None else natural("frames", frames)
        return self._silence(frames, 1 if self._inputs == 1 else 2)

    def pipe(self, chunks):
        """
        Filters a signal that comes in chunks.

        Parameters
        ----------
        chunks : iterable of array_like
            For example ``soundfile.blocks(...)``.

        Yields
        ------
        array
            The results of each chunk, and at last the whole tail.
        """
        axes = 1 if self._inputs == 1 else 2
        for x in chunks:
            axes = np.ndim(x)
            yield self.process(x)
        yield self._silence(self.tail, axes)

    def output_frames(self, n):
        """Output frames that the next `process` of n frames will give: n without `decimate` and `up`."""
        return lib.partita_stream_output_frames(self._c, natural("n", n))

    def save(self):
        """
        The state, without the filter, as bytes.

        Raises
        ------
        StateError
            While `swapping`.
        """
        with self._alone():
            state = bytearray(lib.partita_stream_state_size(self._c))
            check(lib.partita_stream_save(self._c, ffi.from_buffer(state)), "save, not while a swap is in progress")
        return bytes(state)

    def restore(self, state):
        """
        Continues from a saved state, bit for bit.

        Parameters
        ----------
        state : bytes
            What `save` of this stream returned, or of one with an equal plan.

        Raises
        ------
        StateError
            While `swapping`, or if the state is damaged or of another plan, with the reason; the stream is then unchanged.
        """
        kinds = bytes, bytearray, memoryview, np.ndarray
        require_type("state", state, kinds, "bytes that Stream.save returned are needed")
        with self._alone():
            log()
            status = lib.partita_stream_restore(self._c, ffi.from_buffer(state), len(state))
        if status == lib.PARTITA_ERR_STATE and not self.swapping:
            log()
            raise StateError(f"restore: state: {_fault(bytes(state), self.save())}")
        check(status, "restore")

    def clone(self):
        """A second stream with the same filter and the same state."""
        other = object.__new__(type(self))
        if self._basis:
            other.__setstate__(self.__getstate__())
            return other
        with self._alone(), self._control:
            pointer = _objects.create("stream", lib.partita_stream_clone, self._c,
                                      what="clone, not while a swap is in progress")
            other._open([self._filter], self._frames_first, pointer)
            other._library = self._library
        return other

    __copy__ = clone

    def __deepcopy__(self, memo):
        return self.clone()

    def reset(self):
        """Clears the history: the stream is as if just opened."""
        with self._alone():
            lib.partita_stream_reset(self._c)
            self._library = None

    # Calls of any thread.

    def swap(self, taps, fade=0):
        """
        Changes the filter while the stream runs, also from another thread than that of `process`.

        The filter is made here, on the calling thread. Old and new filter share the history, so the fade is the exact
        blend of what both would have given all along.

        Parameters
        ----------
        taps : array_like, sequence of paths or Filter
            As those that the stream was made with; with no more taps.
        fade : int, optional
            Frames of the fade.
        """
        filter = taps if isinstance(taps, Filter) else _taps.make_filter(self.plan, taps)
        with self._control:
            self._forget_old()
            check(lib.partita_stream_swap(self._c, filter_of(self.plan, filter), natural("fade", fade)), "swap")
            self._filter = filter
            self._owner.link(filter._owner)

    def morph(self, weights, frames=0):
        """
        Moves the weights of a stream that was made with `weights`, also from another thread than that of `process`.

        Each tap follows without steps, at most `morph_lag` frames late; the late taps of a filter follow more slowly.

        Parameters
        ----------
        weights : array_like
            One for each filter.
        frames : int, optional
            In which the weights go there, linearly.
        """
        if not self._basis:
            raise StateError("the stream was made without weights")
        weights = self._read_weights(weights, len(self._basis))
        with self._control:
            check(lib.partita_stream_morph(self._c, weights, natural("frames", frames)), "morph")

    def morph_lag(self, tap):
        """The largest number of frames by which a tap's weights are behind those that `morph` asks for."""
        return lib.partita_stream_morph_lag(self._c, natural("tap", tap))

    @property
    def swapping(self):
        """Whether the stream still uses, or waits to use, another filter than the last one passed to `swap`."""
        with self._control:
            return not self._forget_old()

    def wait(self, timeout=None):
        """
        Waits, while another thread processes, until no swap is in progress.

        Parameters
        ----------
        timeout : float, optional
            Seconds.

        Returns
        -------
        bool
            False if the time is over and a swap is still in progress.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        while self.swapping:
            if time.monotonic() >= end:
                return False
            time.sleep(0.001)
        return True

    @property
    def latency(self):
        """Added delay in input frames."""
        return lib.partita_stream_latency(self._c)

    @property
    def tail(self):
        """Frames of silence after which everything that earlier frames contribute to has been output."""
        return lib.partita_stream_tail(self._c)

    @property
    def load(self):
        """What calls cost by the cost model: `Plan.load`."""
        return self.plan.load

    @property
    def engine(self):
        """Name of the engine."""
        return self.plan.engine

    @property
    def status(self):
        """None, or the exception that says why a device has failed."""
        status = lib.partita_stream_status(self._c)
        return None if status == lib.PARTITA_OK else failure(status)

    def stats(self):
        """How long calls of `process` took, a `Stats`; StateError if the stream has no sample_rate."""
        return read_stats(lib.partita_stream_stats, self._c)

    def close(self):
        """Releases the memory now; every later call raises StateError."""
        with self._alone():
            self._call = None
            self._owner.release()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __getstate__(self):
        return {"filters": self._basis or [self._filter], "weights": len(self._basis), "frames_first": self._frames_first,
                "state": self.save()}

    def __setstate__(self, state):
        weights = ffi.new("double[]", state["weights"]) if state["weights"] else None  # the state has their values
        self._open(state["filters"], state["frames_first"], weights=weights)
        self.restore(state["state"])

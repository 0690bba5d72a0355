# SPDX-License-Identifier: MIT
"""How to compute a problem: plans, and taps prepared for them."""
import copy
import functools
import math
import typing

import numpy as np

from partita import _arrays, _device, _errors, _objects, _options
from partita._errors import check, require_type
from partita._options import DIRECTIONS
from partita._partita import ffi, lib
from partita._problem import Problem, choice, natural

# Engines that read and write samples of two bytes.
WITH_TWO_BYTES = ("cpu/direct", "cpu/gemm", "cpu/winograd", "cpu/tiles", "cpu/depthwise")


class Load(typing.NamedTuple):
    """What the calls of a stream cost by the cost model: seconds of a call of `frames` frames on one thread."""

    frames: int
    mean: float
    worst: float
    swap_delay: int


class Plan:
    """
    How to compute a problem: the planner's choice of an engine, and the calls that run it.

    A plan is immutable and serves any number of threads at once. Arrays are contiguous, of the problem's types:
    x is (batch, in_channels, size...), y is (batch, out_channels, output size...). Leading axes of length 1 may be left
    out of x; they are then left out of y. Arrays are those of NumPy, tensors of PyTorch, or what others export by
    DLPack, in the memory of the CPU; results are arrays of the kind of x. Calls release Python's global lock.

    A plan of a device also takes arrays of PyTorch, CuPy and others in that device's memory. Calls with those of PyTorch
    and CuPy put their work on the current CUDA stream of that library and do not wait for it, so that they can be captured
    into a graph after a first call; other libraries' arrays are computed when the call returns.

    Parameters
    ----------
    problem : Problem
        What to compute.
    device : str, optional
        One of the names of `devices`.
    engine : str, optional
        Forces one engine, for example "cpu/direct".
    effort : {"estimate", "measure"}, optional
        "measure" times the likely choices, which takes up to seconds.
    threads : int, optional
        Of bounded problems: threads of a call; see `set_threads`. Of streams: threads of one stream, 1 if not given.
    directions : sequence of {"forward", "backward_data", "backward_weight"}, optional
        What will be computed. Without it forward, and for layers each gradient that can be planned.
    error_budget : float, optional
        Largest L2 error of a whole result, relative to its norm. Streams of `f32` and `cf32` may store spectra of
        filters in 16 bits with 1e-4 or more.
    error_reach : int, optional
        The rounding errors of a sample reach fewer than this many positions beyond the results that depend on it;
        with 1 every result is a separate sum.
    workspace_limit : int, optional
        Largest number of bytes that a call may allocate.
    wisdom : Wisdom, optional
        Cost model and choices to use.
    sample_rate : float, optional
        Of streams: frames per second, for statistics.
    filter_uses : int, optional
        Calls that use a filter before it is replaced or updated: 1 in training.
    saved_limit : int, optional
        Bytes of transforms that a training step may keep in a `Saved`, so that all directions share them.
    parts : tuple of (int, int) or (int, int, bool), optional
        Imposed sizes of blocks of the taps and of x, for ``engine="cpu/blocks"`` or "cuda/blocks"; others ignore
        them. True as the third: summed without transforms.

    Raises
    ------
    ValueError
        If a field is out of range; the text names it.
    UnsupportedError
        If no engine computes the problem within the options.
    DeviceError
        If the device is absent.

    Examples
    --------
    >>> import numpy, partita
    >>> plan = partita.Plan(partita.Problem(kernel=3, size=5, pad=2, signal="f64"))
    >>> plan.forward(plan.filter([1, 2, 3]), [1, 0, 0, 0, 1])
    array([1., 2., 3., 0., 1., 2., 3.])
    """

    def __init__(self, problem, **options):
        require_type("problem", problem, Problem, "partita.Problem(...) is needed")
        unknown = options.keys() - _options.NAMES
        if unknown:
            raise TypeError(f"Plan has no option {', '.join(sorted(unknown))}; there are {', '.join(_options.NAMES)}")
        if not problem.is_stream and options.get("threads") is None:
            options = options | {"threads": _options.get_threads()}
        self.problem = problem
        #: What it was made with besides the problem.
        self.options = {"threads": None} | options
        c, keep = _options.options_to_c(**options)
        wisdom = options.get("wisdom")
        self._c = _objects.create("plan", lib.partita_plan_create, problem.to_c(), c)
        del keep
        self._owner = _objects.Owner("plan", self._c, *([wisdom._owner] if wisdom else []))
        #: Shape of y; None for streams.
        self.output_shape = problem.output_shape
        self._device = device_number(self.options.get("device"))
        self._shapes = {
            "x": problem.input_shape, "y": self.output_shape, "taps": problem.taps_shape, "bias": (problem.outputs,),
        }

    def __repr__(self):
        return f"<partita.Plan {self.engine}: {self.explain().splitlines()[0]}>"

    def __reduce__(self):
        return functools.partial(Plan, self.problem, **self.options), ()

    @property
    def engine(self):
        """Name of the engine of forward, or of the first direction that is planned."""
        return next(iter(self.engines.values()))

    @property
    def engines(self):
        """Names of the engines, by direction."""
        names = {d: ffi.string(lib.partita_plan_engine(self._c, bit)).decode() for d, bit in DIRECTIONS.items()}
        return {direction: name for direction, name in names.items() if name}

    @property
    def latency(self):
        """Of streams: added delay in input frames."""
        return lib.partita_plan_latency(self._c)

    @property
    def load(self):
        """Of streams: what the calls cost by the cost model, a `Load`."""
        load = _objects.returned("struct partita_load", lib.partita_plan_load, self._c, what="load: of streams only")
        return Load(load.frames, load.mean, load.worst, load.swap_delay)

    def explain(self):
        """The text that says which engine was chosen and why."""
        return explanation(self._c)

    def workspace(self, direction="forward"):
        """Bytes of workspace that one direction needs."""
        return lib.partita_plan_workspace(self._c, choice("direction", direction, DIRECTIONS))

    def new_workspace(self, saved=None, *, accumulate=False):
        """
        Memory for `workspace` of the calls of this plan; with it they allocate nothing but results.

        Parameters
        ----------
        saved : Saved, optional
            That `backward_weight` will be given.
        accumulate : bool, optional
            Whether calls will add their results to `out`.

        Returns
        -------
        numpy.ndarray
            Bytes, enough for every direction and for updates of filters. One call at a time may use it.
        """
        return _arrays.aligned(self._workspace_bytes(saved, accumulate))

    def _workspace_bytes(self, saved, accumulate=False):
        sizes = [lib.partita_plan_workspace(self._c, bit) for bit in DIRECTIONS.values()]
        needed = max(sizes if saved is None else [*sizes, lib.partita_saved_workspace(saved._c)])
        if not accumulate:
            return needed
        results = (math.prod(self._shapes[what]) * _arrays.itemsize(self._type_of(what)) for what in ("x", "y", "taps"))
        return -(-needed // 64) * 64 + max(results)

    def filter(self, taps=None, bias=None, *, paths=None):
        """
        Prepares taps for this plan.

        Parameters
        ----------
        taps : array_like, optional
            (out_channels, in_channels / groups, taps along each axis); leading axes of length 1 may be left out.
            Copied, and converted to the type of the problem's taps.
        bias : array_like, optional
            Of bounded real problems: (out_channels,), which forward adds. Copied and converted.
        paths : sequence of (out, in, delay, taps), optional
            Instead of taps, for problems of one axis: the impulse responses from input to output channels that are not
            zero, each after `delay` zeros.

        Returns
        -------
        Filter
            It keeps a copy of what it was made from, in the type of the problem's taps, by which it is pickled.
        """
        paths = None if paths is None else list(paths)
        filter = make_filter(self, taps, bias, paths)
        kept = paths and [(*path[:3], self._copied(path[3])) for path in paths]
        filter.recipe = functools.partial(self.filter, self._copied(taps), self._copied(bias), paths=kept), ()
        return filter

    def _copied(self, taps):
        """A copy in the memory of the CPU and in the type of the taps. Arrays of other libraries on a device copy
        themselves; those that cannot be copied stand for themselves."""
        if taps is None:
            return None
        taps = taps.cpu() if _arrays.is_tensor(taps) else taps
        array = _arrays.prepare(taps, self.problem.taps, "taps", True, self._device)
        array = array.array if isinstance(array, _device.Array) else array
        if isinstance(array, np.ndarray) and array is not taps and array.flags.owndata:
            return array  # of which nobody else knows
        try:
            return copy.deepcopy(array)
        except (TypeError, ValueError):
            return array

    def saved(self):
        """
        Memory for transforms of x that forward leaves for backward weight, for `saved` of both.

        Returns
        -------
        Saved or None
            None if the engines of this plan have no such transforms.
        """
        return Saved(self) if lib.partita_saved_bytes(self._c) else None

    def forward(self, filter, x, out=None, *, workspace=None, saved=None, accumulate=False):
        """
        Computes the problem.

        Parameters
        ----------
        filter : Filter
            Of this plan.
        x : array_like
            The signals.
        out : numpy.ndarray or torch.Tensor, optional
            Where to write the results; must not overlap x.
        workspace : numpy.ndarray, optional
            Of `new_workspace`.
        saved : Saved, optional
            Where to leave transforms of x for `backward_weight`.
        accumulate : bool, optional
            Adds the results to what `out` holds; not with an activation.

        Returns
        -------
        array
            `out`, or a new array of the kind of x.
        """
        return self._signal_call(lib.partita_forward, ("y", out), ("x", x), filter, workspace=workspace, saved=saved,
                                 accumulate=accumulate)

    def once(self, x, taps, out=None, *, workspace=None):
        """
        `forward` with taps that are used once, without a filter.

        Parameters
        ----------
        x, out, workspace
            As in `forward`.
        taps : array_like
            As `filter` takes them.

        Returns
        -------
        array
            As `forward`.
        """
        if self._device is not None:  # where calls that are queued need a filter
            return self.forward(self.filter(taps), x, out, workspace=workspace)
        taps, _ = self._prepare("taps", taps)
        return self._signal_call(lib.partita_forward, ("y", out), ("x", x), None, workspace=workspace, taps=taps)

    def backward_data(self, filter, gy, out=None, *, workspace=None, accumulate=False):
        """
        The gradient of x from the gradient of y.

        Parameters
        ----------
        filter : Filter
            Of this plan.
        gy : array_like
            The gradient of y, of y's shape.
        out, workspace, accumulate : optional
            As in `forward`.

        Returns
        -------
        array
            `out`, or a new array of the shape of x.
        """
        return self._signal_call(lib.partita_backward_data, ("x", out), ("y", gy, "gy"), filter, workspace=workspace,
                                 accumulate=accumulate)

    def backward_weight(self, x, gy, out=None, *, workspace=None, saved=None, accumulate=False):
        """
        The gradient of the taps from x and the gradient of y.

        Parameters
        ----------
        x : array_like or None
            What `forward` was given. May be None with `saved`.
        gy : array_like
            The gradient of y, of y's shape.
        out, workspace, accumulate : optional
            As in `forward`.
        saved : Saved, optional
            Transforms that `forward` left for the same x.

        Returns
        -------
        array
            `out`, or a new array of the shape of the taps.
        """
        like, _ = self._prepare("y", gy, "gy")
        if x is None and saved is None:
            raise TypeError("x is None, and there are no saved transforms")
        x = None if x is None else self._prepare("x", x)[0]

        def run(gw, call):
            return lib.partita_backward_weight(self._c, gw, _address_or_null(x), _arrays.address(like), call)

        return self._computed(run, ("taps", out), (gy, like), accumulate=accumulate, workspace=workspace, saved=saved,
                              others=(x,))

    def backward_bias(self, gy, out=None, *, accumulate=False):
        """
        The gradient of the bias from the gradient of y.

        Parameters
        ----------
        gy : array_like
            The gradient of y, of y's shape.
        out, accumulate : optional
            As in `forward`.

        Returns
        -------
        array
            `out`, or a new array of one number for each output channel.
        """
        like, _ = self._prepare("y", gy, "gy")
        return self._computed(lambda gb, call: lib.partita_backward_bias(self._c, gb, _arrays.address(like), call),
                              ("bias", out), (gy, like), accumulate=accumulate)

    def _signal_call(self, function, result, operand, filter, **call):
        """A call from one signal to another; result and operand are (name, array)."""
        c = ffi.NULL if "taps" in call else filter_of(self, filter)
        x, left_out = self._prepare(*operand)
        y = self._result(*result, x, left_out)
        call, keep = self._call(**call, filter=filter, like=x, out=result[1])
        check(function(self._c, c, _arrays.address(y, True), _arrays.address(x), call))
        del keep
        return result[1] if result[1] is not None else _arrays.finish(y, operand[1])

    def _computed(self, run, result, operand, others=(), **call):
        """What `run(address, call)` writes. `result`: its name and `out`; `operand`: an array as given and as prepared."""
        (what, out), (given, like) = result, operand
        y = self._result(what, out, like)
        call, keep = self._call(**call, like=like, others=(*others, y), out=out)
        check(run(_arrays.address(y, True), call))
        del keep
        return out if out is not None else _arrays.finish(y, given)

    def _type_of(self, what):
        return self.problem.taps if what == "taps" else self.problem.signal

    def _prepare(self, what, array, name=None):
        """A contiguous array of the right shape, and how many leading axes were left out; messages call it `name`."""
        name = name or what
        full = self._shapes[what]
        if full is None:
            raise _errors.StateError("the plan is of a stream: partita.Stream runs it")
        array = _arrays.prepare(array, self._type_of(what), name, what in ("taps", "bias"), self._device)
        shape = tuple(array.shape)
        left_out = len(full) - len(shape)
        if left_out < 0 or shape != full[left_out:] or math.prod(full[:left_out]) != 1:
            raise ValueError(f"{name} has shape {shape}, not {full}")
        return array, left_out

    def _result(self, what, out, like, left_out=0):
        full = self._shapes[what]
        shape = full[left_out:] if math.prod(full[:left_out]) == 1 else full
        if out is None:
            return _arrays.empty(shape, self._type_of(what), like)
        return _arrays.prepare_out(out, self._type_of(what), full if len(out.shape) == len(full) else shape, like)

    def _call(self, workspace=None, saved=None, taps=None, filter=None, like=None, others=(), out=None, accumulate=False):
        """
        A struct partita_call, or NULL, and what it points to. The call has the queue of `like`, if all its other arrays
        on a device have that too; a call without a queue waits for the pending work of each.
        """
        if accumulate and out is None:
            raise TypeError("accumulate: there is no out to add to")
        added = bool(accumulate)
        if self._device is not None:
            arrays = [array for array in (like, *others) if isinstance(array, _device.Array)]
            queues = {array.queue for array in arrays}
            if isinstance(like, _device.Array) and len(queues) == 1 and None not in queues:
                return self._queued_call(workspace, saved, filter, like, added)
            for array in arrays:
                array.order_before_waiting_calls()
        if workspace is None and saved is None and taps is None and not added:
            return ffi.NULL, None
        if workspace is not None and workspace.nbytes < self._workspace_bytes(saved, added):
            raise ValueError(f"workspace has {workspace.nbytes} bytes, not {self._workspace_bytes(saved, added)}")
        addresses = [_address_or_null(workspace, True), _address_or_null(taps)]
        return ffi.new("struct partita_call *", {
            "workspace": addresses[0],
            "taps": addresses[1],
            "saved": ffi.NULL if saved is None else saved._c,
            "accumulate": added,
        }), addresses

    def _queued_call(self, workspace, saved, filter, like, added):
        """The same for the queue of an array on a device. What the work uses is released after it."""
        for used in (self, filter, saved):
            if used is not None:
                used._owner.release_after(like.library.wait)
        if workspace is not None:
            raise TypeError("workspace: calls with arrays on a device take it from the arrays' library")
        # Which gives the memory to other work of the same queue only, that is after this work.
        workspace = like.empty((max(self._workspace_bytes(saved, added), 1),), "uint8")
        return ffi.new("struct partita_call *", {
            "workspace": workspace.pointer,
            "saved": ffi.NULL if saved is None else saved._c,
            "queue": ffi.cast("void *", like.queue),
            "accumulate": added,
        }), workspace


def device_number(name):
    """The number of a CUDA device by its name in options; None: the CPU."""
    return None if name in (None, "cpu") else int(name.partition(":")[2] or 0)


def explanation(plan):
    """The text about a plan in C."""
    text = ffi.new("char []", lib.partita_plan_explain(plan, ffi.NULL, 0) + 1)
    lib.partita_plan_explain(plan, text, len(text))
    return ffi.string(text).decode()


def _address_or_null(array, writable=False):
    return ffi.NULL if array is None else _arrays.address(array, writable)


def filter_of(plan, filter):
    """The filter in C, if it is one of this plan."""
    return require_type("filter", filter, Filter, "Plan.filter(taps) makes one").of(plan)


class Saved:
    """Transforms of one x that `Plan.forward` leaves for `Plan.backward_weight`; `Plan.saved` makes it."""

    def __init__(self, plan):
        self.plan = plan
        self._c = _objects.create("saved", lib.partita_saved_create, plan._c)
        self._owner = _objects.Owner("saved", self._c, plan._owner)

    __reduce__ = _objects.not_pickled("a Saved", "Plan.saved makes one, which Plan.forward fills")


class Filter:
    """
    Taps prepared for one plan; `Plan.filter` and `Bank.filter` make it.

    Any thread may make filters, and threads may share them.

    Attributes
    ----------
    plan : Plan
        The plan that it is of; None for filters of a bank.
    """

    def __init__(self, plan, pointer, needed):
        self.plan = plan
        self._c = pointer
        self._owner = _objects.Owner("filter", pointer, needed)
        self.recipe = None  # the function that makes it again, and its arguments

    def __reduce__(self):
        if self.recipe is None:
            raise TypeError("this filter cannot be pickled or copied, as it is of a bank, edited or updated: make it by "
                            "Plan.filter(taps)")
        return self.recipe

    def __repr__(self):
        if self.plan is None:
            return f"<partita.Filter of {self.bank!r}>"
        shape = " x ".join(map(str, self.plan.problem.taps_shape))
        return f"<partita.Filter, {shape} taps of {self.plan.problem.taps}, {self.plan.engine}>"

    def of(self, plan):
        """The filter in C, if it is of this plan."""
        if self.plan is not plan:
            raise ValueError("filter: of another plan")
        return self._c

    def update(self, taps, bias=None, *, workspace=None):
        """
        Packs other taps into this filter of a bounded problem, for training.

        No other call may use the filter meanwhile. Results are those of a new filter with the same taps.

        Parameters
        ----------
        taps : array_like
            As `Plan.filter` takes them.
        bias : array_like, optional
            Another bias, if the filter was made with one. None: it keeps the bias that it has.
        workspace : numpy.ndarray, optional
            Of `Plan.new_workspace`.

        Raises
        ------
        StateError
            If the filter is of a stream, which may be playing (`Stream.swap` replaces it), or was made without a bias.
        """
        if self.plan is None:
            raise _errors.StateError("filters of a bank are swapped, not updated")
        taps, _ = self.plan._prepare("taps", taps)
        bias = None if bias is None else self.plan._prepare("bias", bias)[0]
        # Separable taps are factored on the host, which must wait for them.
        like = None if self.plan.problem.separable else taps
        call, keep = self.plan._call(workspace, filter=self, like=like, others=(taps, bias))
        check(lib.partita_filter_update(self._c, _arrays.address(taps), _address_or_null(bias), call))
        self.recipe = None
        del keep

    def edit(self, paths):
        """
        A filter that differs from this one in some paths, with engines that share the others.

        Parameters
        ----------
        paths : sequence of (out, in, delay, taps)
            Paths that replace those of this filter; without taps a path is removed.

        Returns
        -------
        Filter
        """
        return make_filter(self.plan, paths=paths, base=self)


def _complete(array):
    """An array for a call that waits."""
    if isinstance(array, _device.Array):
        array.order_before_waiting_calls()
    return array


def make_filter(plan, taps=None, bias=None, paths=None, base=None):
    """A filter from dense taps or paths."""
    if (taps is None) == (paths is None):
        raise TypeError("a filter is made from taps or from paths")
    fields = {"base": ffi.NULL if base is None else base.of(plan)}
    if taps is not None:
        taps = _complete(plan._prepare("taps", taps)[0])
        fields |= {"dense": _arrays.address(taps), "dense_count": math.prod(plan.problem.taps_shape)}
    else:
        array, keep = _paths_to_c(list(paths), plan.problem.taps)
        fields |= {"paths": array, "path_count": len(array)}
    if bias is not None:
        bias = _complete(plan._prepare("bias", bias)[0])
        fields["bias"] = _arrays.address(bias)
    c = ffi.new("struct partita_taps *", fields)
    return Filter(plan, _objects.create("filter", lib.partita_filter_create_from, plan._c, c), plan._owner)


def _paths_to_c(paths, name):
    """An array of struct partita_path, and what it points to."""
    keep = []
    array = ffi.new("struct partita_path []", len(paths))
    for i, (out, source, delay, taps) in enumerate(paths):
        taps = _arrays.prepare(taps, name, "taps of a path", True)
        if len(taps.shape) != 1:
            raise ValueError(f"taps of a path have shape {tuple(taps.shape)}, not one axis")
        keep.append((taps, _arrays.address(taps)))
        array[i] = {"out": natural("out", out), "in": natural("in", source), "delay": natural("delay", delay),
                    "length": len(taps), "taps": keep[-1][1] if len(taps) else ffi.NULL}
    return array, keep

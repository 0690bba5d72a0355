# SPDX-License-Identifier: MIT
"""Calls of the library for tensors. Plans, filters and workspaces are kept between calls.

Taps that change with every call (`uses` is 1) are packed into a filter that any layer of the same plan may borrow. For
other taps the filter is kept with their tensor, and updated when the tensor has other memory or another version
counter. Writes through `tensor.data` and NumPy do not count versions, so values are compared too: all of them, or a
sample of those of large tensors; `forget` is for what the sample misses. _cache.py limits the memory of all of them.
"""
import functools
import os
import re
import threading
import weakref

import torch

from partita import _arrays, _fork, _options
from partita._errors import check, require_type
from partita._explain import Explanation
from partita._options import DIRECTIONS
from partita._partita import ffi, lib
from partita._plan import WITH_TWO_BYTES, Plan, make_filter
from partita._problem import Problem

from . import _cache, _geometry

_DIRECTIONS = {"step": ("forward", "backward_data", "backward_weight")}  # of the layers of _steps.py
_TWO_BYTES = (torch.float16, torch.bfloat16)
_TAPS = dict.fromkeys(_TWO_BYTES, (torch.float32,))  # types of taps that differ from those of samples
_MAX_LAYERS = 512   # a network has some 100 shapes, each with up to three directions
_MAX_FORMS = 8      # of one tensor of taps, as heads that serve several sizes of images need them
_MAX_COMPARED = 65536
_SAMPLES = 16384
_ADDRESS = ffi.typeof("void *")
_CPU = torch.device("cpu")
_CONTIGUOUS = torch.contiguous_format
_MANY_CALLS = 1024

_taps: dict = {}  # filters of a tensor, by its id
_lock = _fork.lock()

# In a child after fork(): other threads of the parent may have been packing a filter or counted as its users.
os.register_at_fork(after_in_child=_taps.clear)


def _shares_openmp():
    """Whether PyTorch's OpenMP is the library's, whose default of threads then follows torch.set_num_threads."""
    try:
        with open("/proc/self/maps", encoding="utf-8") as maps:
            names = {line.split()[-1] for line in maps if re.search(r"/lib(gomp|omp|iomp)[^/]*$", line)}
    except OSError:
        return False
    return len(names) == 1


_OPENMP_IS_SHARED = _shares_openmp()


class _Thread(threading.local):
    """What a thread keeps for its calls: the struct of a call, and a workspace. It grows when a call needs more, and
    shrinks when many calls have needed less than half of it."""

    def __init__(self):
        self.call = ffi.new("struct partita_call *")
        self.workspace, self.size, self.held = None, 0, _cache.Held()
        self.calls, self.peak = 0, 0  # since it was checked last, and the largest need of these

    def with_workspace(self, n_bytes):
        if n_bytes > self.peak:
            self.peak = n_bytes
        self.calls += 1
        if n_bytes > self.size or self.calls == _MANY_CALLS:
            self._fit()
        return self.call

    def _fit(self):
        if not self.peak <= self.size <= 2 * self.peak:
            self.call.workspace, self.workspace, self.size = ffi.NULL, None, 0
            _cache.cache.add(self.held, self.peak)
            self.workspace = _arrays.aligned(self.peak)
            self.call.workspace, self.size = ffi.from_buffer(self.workspace), self.peak
        self.calls = self.peak = 0


_thread = _Thread()


class Layer:
    """A plan of one direction, and filters that calls may borrow."""

    op = "correlate"

    def __init__(self, direction, dtype, memory_format, x_shape, w_shape, geometry, uses, threads):
        stride, pad, dilation, groups, engine = geometry
        if not len(x_shape) == len(w_shape) == len(stride) + 2 or not len(stride) == len(dilation):
            raise ValueError(f"x {list(x_shape)}, w {list(w_shape)}, stride {list(stride)}, dilation {list(dilation)}: "
                             "different numbers of axes")
        if groups < 1 or x_shape[1] != w_shape[1] * groups:
            raise ValueError(f"x has {x_shape[1]} channels, {groups} groups of w {w_shape[1] * groups}")
        self.y_shape = tuple(_geometry.output_shape(x_shape, w_shape, stride, pad, dilation))
        self.x_shape, self.w_shape, self.dtype = x_shape, w_shape, dtype
        self.memory_format = memory_format  # of x and y
        self.directions, self.plan, self.waiting = _DIRECTIONS.get(direction, (direction,)), None, ([], [])
        self.direction = DIRECTIONS[self.directions[0]]
        self.result_shape = self.x_shape if direction == "backward_data" else self.y_shape
        self._strides = {shape: torch.empty(shape, device="meta", memory_format=memory_format).stride()
                         for shape in (self.x_shape, self.y_shape)}
        self.family = (direction, dtype, memory_format, self.w_shape, geometry, threads)
        self.step = None  # of forward: the layer of _steps
        if x_shape[0] == 0:
            return  # an empty batch
        problem = Problem(op=self.op, signal=dtype, batch=x_shape[0], in_channels=x_shape[1],
                          out_channels=w_shape[0], groups=groups, kernel=self.w_shape[2:], size=self.x_shape[2:],
                          stride=stride, dilation=dilation,
                          pad=tuple(_geometry.padding_pairs(pad, len(stride))),
                          channels_last=memory_format != torch.contiguous_format)
        self.plan = self.make_plan(problem, {"directions": self.directions, "threads": threads,
                                             "engine": engine or None, "filter_uses": uses or None})
        self.workspace = max(map(self.plan.workspace, self.directions)) if self.plan else 0
        self._filter_bytes, self.first_taps, self.again = None, None, False

    def make_plan(self, problem, options):
        return Plan(problem, **options)

    def call(self):
        """The struct of this thread's calls, with enough workspace."""
        return _thread.with_workspace(self.workspace)

    def prepare(self, t):
        """Samples of x or y in the memory format and the type that the plan computes in."""
        return _in_type(_plain(t, self.memory_format), self.dtype)

    def new(self, shape):
        """An array of samples of the shape of x or y."""
        return torch.empty_strided(shape, self._strides[shape], dtype=self.dtype)  # twice as fast as torch.empty

    def prepare_taps(self, t):
        """Taps or a bias, contiguous, in the type that the plan computes in."""
        return None if t is None else _in_type(_plain(t, torch.contiguous_format), self.dtype)

    def filter(self, w, b, old=None):
        """A filter of these taps, in the memory of an old one if there is one."""
        w, b = self.prepare_taps(w), self.prepare_taps(b)
        if old is None:
            return make_filter(self.plan, w, b)  # without a copy of the taps
        call = self.call()
        check(lib.partita_filter_update(old._c, address(w), ffi.NULL if b is None else address(b), call))
        return old

    def filter_bytes(self):
        """Memory of a filter: what the planner says of the first direction that it serves, but for the workspace."""
        if self._filter_bytes is None:
            direction = self.directions[0]
            needed, = (row.bytes for row in Explanation(self.plan).rows if row.chosen and row.direction == direction)
            self._filter_bytes = _cache.whole_pages(max(needed - self.plan.workspace(direction), 0))
        return self._filter_bytes

    def borrow(self, w, b):
        """A `_Spare` with a filter of these taps, which no other call uses."""
        spare = self.lend(w, b)
        spare.filter = self.filter(w, b, spare.filter)
        return spare

    def lend(self, w, b):
        """A `_Spare` for a filter of these taps, which has others or none."""
        try:
            spare = self.waiting[b is not None].pop()
        except IndexError:
            spare = _Spare(self, b is not None)
            _cache.cache.add(spare, self.filter_bytes())
        if not _cache.cache.in_trial:
            self.again = self.again or self.first_taps == id(w)
            self.first_taps = self.first_taps or id(w)
        spare.last, spare.again = _cache.now(), self.again
        return spare

    def run(self, filter, result, operand, w=None, b=None):
        """A call with a filter, into which taps are packed before if there are any."""
        status = lib.py_run(self.plan._c, self.direction, filter._c, result.data_ptr(), operand.data_ptr(),
                            0 if w is None else w.data_ptr(), 0 if b is None else b.data_ptr(),
                            _thread.with_workspace(self.workspace))
        if status:
            check(status)


class _Spare(_cache.Lent):
    """A filter that calls borrow from a layer, for taps of their own."""

    def __init__(self, layer, biased):
        super().__init__(layer.waiting[biased])
        self.family, self.form, self.filter = (layer.family, biased), layer.plan, None


class _Kept(_cache.Held):
    """A filter of one tensor of taps, with what tells whether these have changed."""

    def __init__(self, layer, w, b):
        self.layer, self.filter, self.seen, self.users = layer, None, None, [0]
        self.last, self.calls, self.weights, self.sample_bytes = _cache.now(), 0, (id(w), w.nbytes), _sample(w).nbytes
        self.family, self.form = (id(w), layer.directions, b is None), layer.plan
        self.lock = _fork.lock()

    @property
    def again(self):
        return self.calls > 1

    def drop(self):
        if self.lock.acquire(blocking=False):
            if not self.users[0]:
                self.filter, self.seen, self.n_bytes = None, None, 0
            self.lock.release()

    def acquire(self, w, b):
        """The filter and the count of its users, which the caller decrements with `lock`."""
        with self.lock:
            if self.seen is None or not (_is_seen(w, self.seen[0]) and _is_seen(b, self.seen[1])):
                self.seen = None
                if self.users[0]:  # they keep the old filter
                    self.filter, self.users = None, [0]
                if self.filter is None:
                    _cache.cache.add(self, self.layer.filter_bytes() + self.sample_bytes)
                self.filter = self.layer.filter(w, b, self.filter)
                self.seen = _see(w), _see(b)
            self.users[0] += 1
            self.calls += not _cache.cache.in_trial
            self.last = _cache.now()
            return self.filter, self.users


def address(t):
    return ffi.cast(_ADDRESS, t.data_ptr())


def _plain(t, memory_format):
    """Contiguous memory with the values themselves, not with a bit that says that they are conjugated or negated."""
    is_plain = t.is_contiguous() if memory_format is _CONTIGUOUS else t.is_contiguous(memory_format=memory_format)
    if is_plain and not t.is_conj() and not t.is_neg():
        return t
    return t.resolve_conj().resolve_neg().contiguous(memory_format=memory_format)


def _sample(t):
    if t.numel() <= _MAX_COMPARED or t.is_inference():
        return t
    if not t.is_contiguous():
        t = t.permute(sorted(range(t.dim()), key=t.stride, reverse=True))  # in the order of memory, which is not copied
    return t.reshape(-1)[::t.numel() // _SAMPLES | 1]  # odd, so that not always the same tap is taken


def _see(t):
    """What tells whether a tensor has changed: its address, its version, its values or a sample of them, and where these
    are if they are compared as bytes, which is faster than torch.equal for small tensors."""
    if t is None:
        return None
    values, memory = _sample(t), None
    if values is t and t.is_contiguous():
        memory = ffi.buffer(ffi.cast("char *", t.data_ptr()), t.nbytes)
    version = None if t.is_inference() else t._version
    return t.data_ptr(), version, values.clone() if memory is None else bytes(memory), memory


def _is_seen(t, seen):
    if t is None or seen is None:
        return t is seen
    pointer, version, values, memory = seen
    if t.data_ptr() != pointer or (version is not None and t._version != version):
        return False
    return torch.equal(_sample(t), values) if memory is None else t.is_contiguous() and memory == values


def _forms(w):
    """The filters of a tensor of taps by form, which are forgotten when the tensor is."""
    key = id(w)
    found = _taps.get(key)
    if found is not None and found[0]() is w:
        return found[1]
    with _lock:
        before = found = _taps.get(key)  # `before`: what another tensor has left is released without the lock
        if found is None or found[0]() is not w:
            def forget(reference):
                if _taps.get(key, (None,))[0] is reference:
                    del _taps[key]
            found = _taps[key] = weakref.ref(w, forget), {}
    del before
    return found[1]


def _keep(forms, form, made):
    """Adds a form to the filters of a tensor, of which the last used are kept."""
    dropped = None
    with _lock:
        made = forms.setdefault(form, made)
        if len(forms) > _MAX_FORMS:
            dropped = forms.pop(min(forms, key=lambda form: forms[form].last))
    del dropped  # without the lock
    return made


def forget(tensors):
    """The next calls with these tensors of taps pack them again, whatever is known of their values."""
    with _lock:
        dropped = [_taps.pop(id(w), None) for w in tensors]
    dropped.clear()


@functools.lru_cache(_MAX_LAYERS)
def planned(kind, direction, dtype, memory_format, x_shape, w_shape, geometry, uses, threads, *others):
    """The layer of such calls; plans also depend on `others`."""
    if threads > 1 and _OPENMP_IS_SHARED:
        threads = None
    return kind(direction, dtype, memory_format, x_shape, w_shape, geometry, uses, threads)


def find_layer(kind, direction, dtype, memory_format, x_shape, w_shape, geometry, uses, *others):
    """The same for the present number of threads."""
    stride, pad, dilation, groups, engine = geometry
    return planned(kind, direction, dtype, memory_format, tuple(x_shape), tuple(w_shape),
                   (tuple(stride), tuple(pad), tuple(dilation), groups, engine), uses, torch.get_num_threads(),
                   _options.get_threads(), *others)


def compute(layer, operand, w, b, uses, result=None):
    """forward or backward_data with the taps w, which are known to fit the layer, as is the memory of a result."""
    result = layer.new(layer.result_shape) if result is None else result
    if layer.plan is not None and uses == 1:
        spare = layer.lend(w, b)
        spare.filter = spare.filter or layer.filter(w, b)
        layer.run(spare.filter, result, layer.prepare(operand), layer.prepare_taps(w), layer.prepare_taps(b))
        spare.give_back()
    elif layer.plan is not None:
        forms, form = _forms(w), (layer, b is None)
        kept = forms.get(form) or _keep(forms, form, _Kept(layer, w, b))
        filter, users = kept.acquire(w, b)
        try:
            layer.run(filter, result, layer.prepare(operand))
        finally:
            with kept.lock:
                users[0] -= 1
    return _in_type(result, operand.dtype)


def tensor(name, t):
    """t, which must be a tensor."""
    return require_type(name, t, torch.Tensor, "a tensor is needed")


def require(name, t, shape, dtypes, device=_CPU):
    """ValueError if a tensor has another shape, type or device. None is none."""
    if t is None:
        return
    if tuple(tensor(name, t).shape) != tuple(shape):
        raise ValueError(f"{name}: shape {list(t.shape)}, {list(shape)} fits the other tensors")
    if t.dtype not in dtypes:
        raise ValueError(f"{name}: {t.dtype}; {' or '.join(map(str, dtypes))}")
    if t.device != device:
        raise ValueError(f"{name}: on {t.device}; {device} is needed")


def _in_type(t, dtype):
    """A tensor in another type, or itself: PyTorch's `to` takes ten times as long to see that there is nothing to do."""
    return t if t.dtype == dtype else t.to(dtype)


def _typed_layer(direction, dtype, memory_format, *described):
    """The layer in two bytes if the engine has such samples, else in f32, to which tensors are converted."""
    if dtype in _TWO_BYTES:
        layer = find_layer(Layer, direction, torch.float32, memory_format, *described)
        if (layer.plan and layer.plan.engine) not in WITH_TWO_BYTES:
            return layer
    return find_layer(Layer, direction, dtype, memory_format, *described)


def forward_layer(x, w, geometry, uses):
    """The plan of a layer; `geometry` is (stride, pad, dilation, groups, engine)."""
    return _typed_layer("forward", x.dtype, _geometry.memory_format(x, w), x.shape, w.shape, geometry, uses)


def forward(x, w, b, geometry, uses):
    """The layer."""
    layer = forward_layer(x, w, geometry, uses)
    require("w", w, layer.w_shape, (x.dtype, *_TAPS.get(x.dtype, ())))
    require("b", b, layer.w_shape[:1], (x.dtype, *_TAPS.get(x.dtype, ())))
    return compute(layer, x, w, b, uses)


def data_layer(gy, w, x_shape, geometry, uses):
    """The plan of the gradient of x."""
    layer = _typed_layer("backward_data", gy.dtype, _geometry.memory_format(gy, w), x_shape, w.shape, geometry,
                         uses)
    require("w", w, layer.w_shape, (gy.dtype, *_TAPS.get(gy.dtype, ())))
    require("gy", gy, layer.y_shape, (gy.dtype,))
    return layer


def backward_data(gy, w, x_shape, geometry, uses):
    """The gradient of x."""
    return compute(data_layer(gy, w, x_shape, geometry, uses), gy, w, None, uses)


def weight_layer(x, gy, w_shape, geometry):
    """The plan of the gradient of w."""
    layer = _typed_layer("backward_weight", x.dtype, _geometry.memory_format(x, gy), x.shape, w_shape, geometry, 0)
    require("gy", gy, layer.y_shape, (x.dtype,))
    return layer


def backward_weight(x, gy, w_shape, geometry, uses=0):
    """The gradient of w, which reads no taps: `uses` is not asked."""
    return compute_weight(weight_layer(x, gy, w_shape, geometry), x, gy)


def compute_weight(layer, x, gy, gw=None):
    """The gradient of w by a layer that is known to fit, as is its memory."""
    if layer.plan is None:
        return x.new_zeros(layer.w_shape)
    gw = torch.empty(layer.w_shape, dtype=layer.dtype) if gw is None else gw
    samples, gy = layer.prepare(x), layer.prepare(gy)
    check(lib.partita_backward_weight(layer.plan._c, address(gw), address(samples), address(gy), layer.call()))
    return _in_type(gw, x.dtype)

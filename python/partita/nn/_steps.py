# SPDX-License-Identifier: MIT
"""Training steps whose three convolutions share transforms (options.saved_limit), within a limit of memory.

A forward that is recorded borrows a filter and saved transforms of its layer's plan until its gradients are computed or
its graph is released. The transforms wait for the next step of the layer; the longest unused ones are released where
another layer needs their memory.
"""
import torch

from partita import _fork
from partita._errors import UnsupportedError, check
from partita._partita import ffi, lib

from . import _cache, _calls, _geometry

_ALL = ("forward", "backward_data", "backward_weight")
_TYPES = (torch.float32, torch.float64)


class _Saved(_cache.Held):
    """Saved transforms of a layer, for one step at a time."""

    def __init__(self, layer):
        self.family, self.form, self.transforms = ("saved", layer.family), layer, None

    @property
    def again(self):
        return self.form.again

    def drop(self):
        _memory.drop(self)


class _Memory:
    """The saved transforms of all layers."""

    def __init__(self):
        self.limit = 1 << 30
        self.used = 0   # bytes, of steps and of those that wait
        self.idle = []  # those that wait, the longest unused first
        self.lock = _fork.lock()

    def _drop(self, limit):
        """Takes transforms that wait from the list until no more than `limit` bytes are used."""
        dropped = []
        while self.used > limit and self.idle:
            dropped.append(self.idle.pop(0))
            self._forget(dropped[-1])
        return dropped

    def _forget(self, saved):
        self.used -= saved.form.saved_bytes
        saved.n_bytes = 0

    def set_limit(self, limit):
        with self.lock:
            self.limit = limit
            dropped = self._drop(limit)
        dropped.clear()  # without the lock

    def drop(self, saved):
        """Releases transforms if they wait."""
        with self.lock:
            if saved in self.idle:
                self.idle.remove(saved)
                self._forget(saved)

    def take(self, layer):
        """Saved transforms of a layer that no other step uses; None beyond the limit."""
        with self.lock:
            for i in reversed(range(len(self.idle))):
                if self.idle[i].form is layer:
                    return self.idle.pop(i)
            dropped = self._drop(self.limit - layer.saved_bytes)
            if self.used + layer.saved_bytes > self.limit:
                return None
            self.used += layer.saved_bytes
        dropped.clear()
        saved = _Saved(layer)
        try:
            _cache.cache.add(saved, layer.saved_bytes)
            saved.transforms = layer.plan.saved()
        except MemoryError:
            with self.lock:
                self._forget(saved)
            return None
        return saved

    def give(self, saved):
        """Ends their use by a step."""
        with self.lock:
            saved.last = _cache.now()
            self.idle.append(saved)
            dropped = self._drop(self.limit)
        dropped.clear()


_memory = _Memory()


def set_saved_memory(n_bytes):
    """
    Sets how much memory the transforms of training steps may take.

    Where it pays, the convolutions of a training step, forward and both gradients, transform each array once and keep
    the transforms from forward to backward. Layers beyond the limit compute each direction by itself.

    Parameters
    ----------
    n_bytes : int
        Of all layers together; at first 2**30. 0: nothing is kept.
    """
    if not isinstance(n_bytes, int) or n_bytes < 0:
        raise ValueError(f"n_bytes = {n_bytes}: a whole number of at least 0")
    _memory.set_limit(n_bytes)


class _StepLayer(_calls.Layer):
    """A plan of all directions; saved_bytes is 0 if they share nothing."""

    def plan_directions(self, problem, options):
        self.limit = _memory.limit
        self.saved_bytes = 0
        try:
            plan = super().plan_directions(problem, options | {"directions": _ALL, "saved_limit": self.limit})
        except UnsupportedError:
            return None
        self.saved_bytes = lib.partita_saved_bytes(plan._c)
        return plan

    def filter_direction(self):
        return "forward"  # whose filters both directions read

    def largest_workspace(self):
        return max(map(self.plan.workspace, _ALL)) if self.plan else 0


def _layer_of(found, x, w, layer):
    """The layer of a step of this kind; None if its directions share nothing. `found` is that of forward alone."""
    if found.step is None or found.step.limit != _memory.limit:
        key, make = _calls.describe(_StepLayer, "step", x.dtype, _geometry.memory_format(x, w), x.shape, w.shape,
                                    layer[:-1], layer[-1])
        found.step = _calls.layers.get((*key, _memory.limit), make)
    return found.step if found.step.saved_bytes else None


class Step:
    """Forward with saved transforms, and the gradients that use them."""

    def __init__(self, layer, saved):
        self.layer, self.saved, self.spare = layer, saved, None

    def forward(self, x, w, b):
        layer, samples = self.layer, self.layer.prepare(x)
        self.x = samples.data_ptr()
        self.spare = layer.borrow(w, b)
        y = layer.new(layer.y_shape)
        self._run(lib.partita_forward, y, samples)
        return y

    def _run(self, function, result, operand):
        self._call(function, self.spare.filter._c, _calls.address(result), _calls.address(operand))

    def _call(self, function, *arguments):
        call = self.layer.call()
        call.saved = self.saved.transforms._c if self.saved else ffi.NULL
        try:
            check(function(self.layer.plan._c, *arguments, call))
        finally:
            call.saved = ffi.NULL

    def gradients(self, x, w, gy):
        """The gradients of x and w. A second call computes the same bits without saved transforms."""
        layer = self.layer
        gx, gw = layer.new(layer.x_shape), x.new_empty(layer.w_shape)
        gy, samples = layer.prepare(gy), layer.prepare(x) if self.saved is None else x
        if self.spare is None:
            self.spare = layer.borrow(w, None)
        self._run(lib.partita_backward_data, gx, gy)
        # Saved transforms are of the samples that forward read; elsewhere lies a copy.
        known = self.saved is None or samples.data_ptr() == self.x
        self._call(lib.partita_backward_weight, _calls.address(gw), _calls.address(samples) if known else ffi.NULL,
                   _calls.address(gy))
        self.release()
        return gx, gw

    def release(self):
        """Returns what it has borrowed."""
        saved, spare, self.saved, self.spare = self.saved, self.spare, None, None
        if spare is not None:
            spare.give_back()
        if saved is not None:
            _memory.give(saved)

    __del__ = release  # of a graph whose gradients were not wanted


def begin(found, x, w, b, layer):
    """A step and its y; two times None where sharing does not pay, or not both gradients are wanted."""
    if not (_memory.limit and layer[-1] == 1 and x.requires_grad and w.requires_grad and x.dtype in _TYPES):
        return None, None
    step_layer = _layer_of(found, x, w, layer)
    saved = _memory.take(step_layer) if step_layer else None
    if saved is None:
        return None, None
    step = Step(step_layer, saved)
    return step, step.forward(x, w, b)

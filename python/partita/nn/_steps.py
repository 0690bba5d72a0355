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
from partita._problem import natural

from . import _cache, _calls, _geometry

_TYPES = (torch.float32, torch.float64)

_lock = _fork.lock()
_limit = 1 << 30  # of the bytes of all saved transforms


class _Saved(_cache.Lent):
    """Saved transforms of a layer, for one step at a time."""

    def __init__(self, layer):
        super().__init__(layer.waiting_saved)
        self.family, self.form, self.transforms = ("saved", layer.family), layer, None

    @property
    def again(self):
        return self.form.again

    def give_back(self):
        self.last = _cache.now()
        if self.form.limit == _limit:
            super().give_back()
        else:  # later steps have another plan
            self.n_bytes = 0


def _take(layer):
    """Saved transforms of a layer that no other step uses; None beyond the limit."""
    try:
        return layer.waiting_saved.pop()
    except IndexError:
        saved = _Saved(layer)
    with _lock:
        if not _cache.cache.make_room_for(_Saved, layer.saved_bytes, _limit):
            return None
        _cache.cache.add(saved, layer.saved_bytes)
    try:
        saved.transforms = layer.plan.saved()
    except MemoryError:
        saved.n_bytes = 0
        return None
    return saved


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
    global _limit
    _limit = natural("n_bytes", n_bytes)
    _cache.cache.make_room_for(_Saved, 0, 0)  # later steps have other plans


class _StepLayer(_calls.Layer):
    """A plan of all directions; saved_bytes is 0 if they share nothing."""

    def make_plan(self, problem, options):
        self.limit, self.saved_bytes, self.waiting_saved = _limit, 0, []
        try:
            plan = super().make_plan(problem, options | {"saved_limit": self.limit})
        except UnsupportedError:
            return None
        self.saved_bytes = lib.partita_saved_bytes(plan._c)
        return plan


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
            saved.give_back()

    __del__ = release  # of a graph whose gradients were not wanted


def begin(found, x, w, b, layer):
    """A step and its y; two times None where sharing does not pay, or not both gradients are wanted. `found` is the layer
    of forward alone."""
    if not (_limit and layer[-1] == 1 and x.requires_grad and w.requires_grad and x.dtype in _TYPES):
        return None, None
    step_layer = found.step
    if step_layer is None or step_layer.limit != _limit:
        step_layer = found.step = _calls.find_layer(
            _StepLayer, "step", x.dtype, _geometry.memory_format(x, w), x.shape, w.shape, layer[:-1], layer[-1], _limit)
    saved = _take(step_layer) if step_layer.saved_bytes else None
    if saved is None:
        return None, None
    step = Step(step_layer, saved)
    return step, step.forward(x, w, b)

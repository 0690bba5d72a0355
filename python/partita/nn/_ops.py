# SPDX-License-Identifier: MIT
"""The operators partita::conv, conv_input and conv_weight of PyTorch.

conv(x, w, b) is the layer; conv_input(gy, w) and conv_weight(x, gy) are its transposes with respect to x and w, and
each one's gradients are calls of the other two. They do not conjugate complex taps, as torch.nn.functional.conv1d does
not.

`pad` has a number for each axis, or the numbers before and after each axis in turn; negative numbers crop. `engine` is
"" for the planner's choice. `uses` is how often the taps are used before they change: 1 in training, where each call
packs them anew; 0 where they stay, so that filters are kept until the taps change.
"""
import ctypes
import functools

import torch
from torch.autograd import forward_ad

from partita import _options
from partita._partita import ffi, lib

from . import _calls, _complex, _geometry, _steps

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_is_batched = torch._C._functorch.is_legacy_batchedtensor  # gradients of torch.autograd.grad(is_grads_batched=True)
_LAYER = "int[] stride, SymInt[] pad, int[] dilation, int groups, str engine, int uses=0) -> Tensor"


# In each of these modes PyTorch's dispatcher sees the calls: to change them, to trace them, or to note their times.
_DISPATCHED = (torch._C._len_torch_dispatch_stack, torch._C._len_torch_function_stack,
               torch._C._are_functorch_transforms_active, torch._C._get_tracing_state,
               torch.autograd._profiler_enabled)


def _memo_type():
    """The type of memories of calls, which python/memo.h describes."""
    address = int(ffi.cast("uintptr_t", ffi.addressof(lib, "py_memo_type")))
    autocast = tuple(functools.partial(f, "cpu") for f in (torch.is_autocast_enabled, torch.get_autocast_dtype))
    modes = torch.is_grad_enabled, torch.get_num_threads, autocast, *_DISPATCHED
    variables = (vars(forward_ad), "_current_level"), (vars(_options), "_default_threads")
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(address)(
        (getattr(torch.Tensor, "__dlpack_c_exchange_api__", None), *_PLAIN, modes, variables))


Memo = _memo_type()
UNDISPATCHED = 3  # modes of which a memory depends whose calls may be dispatched as well
_seen_gradients = Memo(512)  # layers of gradients, by their calls


def is_undispatched(*tensors):
    """Whether a call can skip PyTorch's dispatcher: plain CPU tensors, no tracing, compiling, transform or mode."""
    if torch.compiler.is_compiling() or any(mode() for mode in _DISPATCHED):
        return False
    return all(t is None or (type(t) in _PLAIN and t.is_cpu and not _is_batched(t)) for t in tensors)


def is_transformed():
    """Whether forward-mode derivatives or torch.func see a call, for which operators other than `conv` have no rules."""
    return forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active()


def is_recorded(*tensors):
    """Whether PyTorch records a call for gradients."""
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def is_plain_call(*tensors):
    """Whether the dispatcher can be skipped and no gradient is recorded."""
    return is_undispatched(*tensors) and not is_recorded(*tensors)


def _save_all(ctx, inputs, output):
    ctx.others = [value for value in inputs if value is not None and not isinstance(value, torch.Tensor)]
    ctx.save_for_backward(*inputs[:len(inputs) - len(ctx.others)])


def operator(name, schema, function, fake, mutates=(), backward=None):
    """The operator partita::name for the CPU. `fake` makes the results of `function` without their values. `backward` finds
    tensors, which are the first arguments, in ctx.saved_tensors, and the others in ctx.others."""
    op = torch.library.custom_op(f"partita::{name}", function, mutates_args=mutates, device_types="cpu", schema=schema)
    op.register_fake(fake)
    if backward is not None:
        op.register_autograd(backward, setup_context=_save_all)
    return op


def _computed(of_real, of_complex):
    """The function of an operator, whose operands are two tensors and a third one or a shape."""
    def compute(first, second, third, stride, pad, dilation, groups, engine, uses=0):
        layer = stride, pad, dilation, groups, engine
        if first.dtype.is_complex:
            return of_complex(first, second, third, layer)
        return of_real(first, second, third, layer, uses)
    return compute


def _empty(t, shape, other):
    return torch.empty(shape, dtype=t.dtype, device=t.device, memory_format=_geometry.memory_format(t, other))


compute_conv = _computed(_calls.forward, _complex.forward)
conv = operator("conv", f"(Tensor x, Tensor w, Tensor? b, {_LAYER}", compute_conv,
                lambda x, w, b, stride, pad, dilation, *others: _empty(
                    x, _geometry.output_shape(x.shape, w.shape, stride, pad, dilation), w))
conv_input = operator("conv_input", f"(Tensor gy, Tensor w, SymInt[] x_shape, {_LAYER}",
                      _computed(_calls.backward_data, _complex.backward_data),
                      lambda gy, w, x_shape, *layer: _empty(gy, x_shape, w))
conv_weight = operator("conv_weight", f"(Tensor x, Tensor gy, SymInt[] w_shape, {_LAYER}",
                       _computed(_calls.backward_weight, _complex.backward_weight),
                       lambda x, gy, w_shape, *layer: x.new_empty(w_shape))


# Gradients. Where an operand is complex, the gradient is that of its conjugate, as PyTorch defines it.

def _conj(t):
    return t.conj() if t.is_complex() else t


def _save(ctx, inputs, output):
    first, second, third, *layer = inputs
    # An operand serves only the gradient of the other one.
    needed = ctx.needs_input_grad
    ctx.save_for_backward(first if needed[1] else None, second if needed[0] else None)
    ctx.shapes = first.shape, second.shape
    ctx.layer = tuple(layer)


def _conv_gradients(ctx, g):
    """The gradients of x, w and b, which PyTorch adds to `.grad` in place. A function that adds them by itself, as
    Plan.backward_weight can, would need as much memory and bypass hooks, torch.autograd.grad and distributed training."""
    x, w = ctx.saved_tensors
    x_shape, w_shape = ctx.shapes
    needed = ctx.needs_input_grad
    step = all(needed[:2]) and getattr(ctx, "step", None)
    layers = _layers_of_gradients(g, x, w, ctx, (False, False) if step else needed[:2])
    gx = gw = gb = None
    if step and layers:
        gx, gw = step.gradients(x, w, g)
    elif needed[0]:
        gx = (_calls.compute(layers[0], g, w, None, ctx.layer[-1]) if layers
              else conv_input(g, _conj(w), x_shape, *ctx.layer))
    if gw is None and needed[1]:
        gw = _calls.compute_weight(layers[1], x, g) if layers else conv_weight(_conj(x), g, w_shape, *ctx.layer)
    if needed[2]:
        gb = g.sum([0, *range(2, g.dim())])
    return gx, gw, gb


def _layers_of_gradients(g, x, w, ctx, needed):
    """The layers that compute the gradients of x and w, as far as they are needed; None for calls of the dispatcher."""
    call = g, x, w, ctx.shapes, ctx.layer, needed
    layers = None if torch.compiler.is_dynamo_compiling() else _seen_gradients.find(*call)
    if layers is None and is_plain_call(g, x, w) and not g.is_complex():
        (x_shape, w_shape), geometry = ctx.shapes, ctx.layer[:-1]
        layers = (_calls.data_layer(g, w, x_shape, geometry, ctx.layer[-1]) if needed[0] else None,
                  _calls.weight_layer(x, g, w_shape, geometry) if needed[1] else None)
        _seen_gradients.keep(layers, *call)
    return layers


def _conv_backward(ctx, g):
    return *_conv_gradients(ctx, g), *(None,) * len(ctx.layer)


def _conv_input_backward(ctx, g):
    (gy, w), needed = ctx.saved_tensors, ctx.needs_input_grad
    ggy = conv(g, _conj(w), None, *ctx.layer) if needed[0] else None
    gw = conv_weight(g, _conj(gy), ctx.shapes[1], *ctx.layer) if needed[1] else None
    return ggy, gw, None, *(None,) * len(ctx.layer)


def _conv_weight_backward(ctx, g):
    (x, gy), needed = ctx.saved_tensors, ctx.needs_input_grad
    gx = conv_input(_conj(gy), g, ctx.shapes[0], *ctx.layer[:-1], 1) if needed[0] else None
    ggy = conv(_conj(x), g, None, *ctx.layer[:-1], 1) if needed[1] else None
    return gx, ggy, None, *(None,) * len(ctx.layer)


class RecordedConv(torch.autograd.Function):
    """`conv` of real tensors without PyTorch's dispatcher, for calls that is_undispatched admits. `found` is the layer of
    _calls.forward_layer, `layer` are the operator's arguments."""

    @staticmethod
    def forward(ctx, x, w, b, found, layer):
        _save(ctx, (x, w, b, *layer), None)
        ctx.step, y = _steps.begin(found, x, w, b, layer)
        return _calls.compute(found, x, w, b, layer[-1]) if y is None else y

    @staticmethod
    def backward(ctx, g):
        return *_conv_gradients(ctx, g), None, None


conv.register_autograd(_conv_backward, setup_context=_save)
conv_input.register_autograd(_conv_input_backward, setup_context=_save)
conv_weight.register_autograd(_conv_weight_backward, setup_context=_save)


# torch.vmap: what is mapped joins the batch; if the taps are mapped too, it joins the groups.

def _first(t, dim, size):
    """The mapped dimension as the first one; what is not mapped is repeated."""
    return t.unsqueeze(0).expand(size, *t.shape) if dim is None else t.movedim(dim, 0)


def _joined(t, dim, size, axis):
    """The mapped dimension joins an axis (0: the batch, 1: the channels) of each of its tensors."""
    return _first(t, dim, size).movedim(0, axis).flatten(axis, axis + 1)


def _split(t, size, axis):
    """Undoes _joined."""
    return t.unflatten(axis, (size, t.shape[axis] // size)).movedim(axis, 0)


def _mapped(op, info, in_dims, t, w, third, stride, pad, dilation, groups, *rest):
    size, axis = info.batch_size, 0 if in_dims[1] is None else 1
    if axis == 1:
        w, groups = _joined(w, in_dims[1], size, 0), groups * size
    if op is conv_input:
        third = [n * size if a == axis else n for a, n in enumerate(third)]
    return _split(op(_joined(t, in_dims[0], size, axis), w, third, stride, pad, dilation, groups, *rest), size, axis)


@conv.register_vmap
def _vmap_conv(info, in_dims, x, w, b, stride, *layer):
    inside = b if in_dims[1] is in_dims[2] is None else None  # of groups the bias is added afterwards
    y = _mapped(conv, info, in_dims, x, w, inside, stride, *layer)
    if b is not None and inside is None:
        y = y + _first(b, in_dims[2], info.batch_size).reshape(info.batch_size, 1, -1, *(1,) * len(stride))
    return y, 0


@conv_input.register_vmap
def _vmap_conv_input(*call):
    return _mapped(conv_input, *call), 0


@conv_weight.register_vmap
def _vmap_conv_weight(info, in_dims, x, gy, w_shape, stride, pad, dilation, groups, engine, uses=0):
    size, (x_dim, gy_dim, *_) = info.batch_size, in_dims
    x, gy = _joined(x, x_dim, size, 1), _joined(gy, gy_dim, size, 1)
    gw = conv_weight(x, gy, [w_shape[0] * size, *w_shape[1:]], stride, pad, dilation, groups * size, engine, uses)
    return _split(gw, size, 0), 0


# Under autocast the operators compute in f32, which all engines have.
for _op in (conv, conv_input, conv_weight):
    _op.register_autocast("cpu", torch.float32)

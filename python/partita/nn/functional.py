# SPDX-License-Identifier: MIT
"""Convolutions with the signatures of torch.nn.functional.

What the package does not compute (integers, tensors of other devices, forward-mode derivatives, torch.func.grad) is
computed by PyTorch's function of the same name, which also raises the errors for arguments that do not fit each
other.
"""
import contextlib

import torch
import torch.nn.functional as F
from torch._C._functorch import TransformType
from torch._functorch.pyfunctorch import retrieve_all_functorch_interpreters
from torch.autograd import forward_ad

from . import _calls, _export, _geometry, _ops

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "fft_conv"]

_SINGLE = (torch.float32, torch.float16, torch.bfloat16)
_seen = _ops.Memo(512)  # layers of calls that need no dispatcher, and how these are computed
_is_traced = torch.compiler.is_dynamo_compiling  # then the graph has no memories
_CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_CONV_TRANSPOSE = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def _functions(rank):
    """Functions in the place of those of torch.nn.functional."""
    def conv(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        return _conv(rank, input, weight, bias, stride, padding, dilation, groups)

    def conv_transpose(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        return _conv_transpose(rank, input, weight, bias, stride, padding, output_padding, groups, dilation)

    for function in (conv, conv_transpose):
        function.__name__ = function.__qualname__ = f"{function.__name__}{rank}d"
        function.__doc__ = f"torch.nn.functional.{function.__name__}, computed by Partita."
    return conv, conv_transpose


(conv1d, conv_transpose1d), (conv2d, conv_transpose2d), (conv3d, conv_transpose3d) = map(_functions, (1, 2, 3))


def fft_conv(signal, kernel, bias=None, padding=0, padding_mode="constant", stride=1, dilation=1, groups=1):
    """The function of fft-conv-pytorch: a convolution of one to three axes of (batch, channels, axes...)."""
    rank = _calls.tensor("signal", signal).dim() - 2
    _calls.tensor("kernel", kernel)
    if rank not in _CONV:
        raise ValueError(f"signal has {signal.dim()} axes: 3 to 5")
    if padding_mode != "constant":
        pads = _geometry.axes(0 if padding in ("valid", "same") else padding, rank)
        if pads is None:
            raise ValueError(f"padding = {padding!r}: 'same', 'valid', or a number for each of {rank} axes")
        pairs = [p for axis in pads for p in (axis, axis)]
        if padding == "same":
            pairs = _geometry.same_padding(kernel.shape[2:], _geometry.axes(dilation, rank))
        backwards = [p for i in reversed(range(rank)) for p in pairs[2 * i:2 * i + 2]]
        signal, padding = F.pad(signal, backwards, mode=padding_mode), 0
    return _conv(rank, signal, kernel, bias, stride, padding, dilation, groups)


def _conv(rank, x, w, b, *layer):
    seen = None if _is_traced() else _seen.find(x, w, b, rank, layer)
    if seen is not None:
        return _run_seen(*seen, x, w, b)
    stride, padding, dilation, groups, pad = *layer, None

    def otherwise():
        if padding == "causal" and pad:
            return _CONV[rank](F.pad(x, pad), w, b, stride, 0, dilation, groups)
        return _CONV[rank](x, w, b, *layer)

    steps, gaps = _geometry.axes(stride, rank), _geometry.axes(dilation, rank)
    if steps is None or gaps is None or not (isinstance(x, torch.Tensor) and isinstance(w, torch.Tensor)):
        return otherwise()
    if padding == "same" and all(s == 1 for s in steps):
        pad = _geometry.same_padding(w.shape[2:], gaps)
    elif padding == "causal" and rank == 1:
        pad = [gaps[0] * (w.shape[-1] - 1), 0]
    elif padding == "valid":
        pad = [0] * rank
    else:
        pad = _geometry.axes(padding, rank)
    if pad is None:
        return otherwise()
    seen = _see(rank, x, w, b, steps, pad, gaps, groups)
    if seen is None:
        return _run(rank, x, w, b, steps, pad, gaps, groups, otherwise)
    _seen.keep(seen, x, w, b, rank, layer)
    return _run_seen(*seen, x, w, b)


def _see(rank, x, w, b, stride, pad, dilation, groups):
    """The layer of a call with real samples that needs no dispatcher, and the operator's arguments, for all calls like
    it. None for other calls."""
    taps = None
    if _ops.is_undispatched(x, w, b) and x.dtype in _SINGLE and torch.is_autocast_enabled("cpu"):
        if x.dtype != torch.get_autocast_dtype("cpu") or w.dtype not in (x.dtype, torch.float32):
            return None
        taps = w.dtype
    if (not _ops.is_undispatched(x, w, b) or x.dtype not in (torch.float64, *_SINGLE)
            or forward_ad._current_level >= 0 or not x.dim() == w.dim() == rank + 2
            or _geometry.refused(x, w, b, stride, pad, dilation, groups, taps=taps)):
        return None
    layer = stride, pad, dilation, groups, ""
    found = _calls.forward_layer(x, w, layer, uses(w))
    return found.plan and (found, (*layer, uses(w)), _ops.is_recorded(x, w, b))


def _run_seen(found, layer, is_recorded, x, w, b):
    if is_recorded:
        return _ops.RecordedConv.apply(x, w, b, found, layer)
    return _calls.compute(found, x, w, b, layer[-1])


def _run(rank, x, w, b, stride, pad, dilation, groups, otherwise, output_padding=None):
    """The convolution, transposed if there is an output padding, or what `otherwise` returns where the package does not
    compute it."""
    tensors = isinstance(x, torch.Tensor) and isinstance(w, torch.Tensor)
    if (not tensors or x.dim() not in (rank + 1, rank + 2) or w.dim() != rank + 2 or _differentiates_otherwise()
            or _export.is_exported()):
        return otherwise()
    _export.count_flops()
    x, w, b, taps = _autocast(x, w, b)
    batched = x.dim() == rank + 2
    items = x if batched else x.unsqueeze(0)
    if _geometry.refused(items, w, b, stride, pad, dilation, groups, output_padding, taps):
        return otherwise()
    with torch.autocast("cpu", enabled=False) if taps else contextlib.nullcontext():
        if output_padding is None:
            plain = _ops.is_plain_call(items, w, b)
            conv = _ops.compute_conv if plain else torch.ops.partita.conv
            y = conv(items, w, b, stride, pad, dilation, groups, "", uses(w))
        else:
            y = transposed(items, w, b, stride, pad, output_padding, dilation, groups).to(x.dtype)
    return y if batched else y.squeeze(0)


def _conv_transpose(rank, x, w, b, stride, padding, output_padding, groups, dilation):
    def otherwise():
        return _CONV_TRANSPOSE[rank](x, w, b, stride, padding, output_padding, groups, dilation)

    steps, pad, gaps, more = (_geometry.axes(value, rank) for value in (stride, padding, dilation, output_padding))
    if None in (steps, pad, gaps, more):
        return otherwise()
    return _run(rank, x, w, b, steps, pad, gaps, groups, otherwise, more)


def transposed(x, w, b, stride, padding, output_padding, dilation, groups):
    """A transposed convolution: the gradient of the input of one whose input has the size of the result."""
    shape = _geometry.transposed_shape(x, w, stride, padding, output_padding, dilation, groups)
    pad = transposed_padding(padding, output_padding)
    y = torch.ops.partita.conv_input(x, w, shape, stride, pad, dilation, groups, "", uses(w))
    return y if b is None else y + b.reshape(-1, *(1,) * len(stride))


def transposed_padding(padding, output_padding):
    """The padding of that convolution, which is smaller at the end, where output_padding adds results."""
    return [p for before, more in zip(padding, output_padding) for p in (before, before - more)]


def _differentiates_otherwise():
    """Whether derivatives are taken in a way for which custom operators have no rules: forward, or by torch.func."""
    if forward_ad._current_level >= 0:
        return True
    if not torch._C._are_functorch_transforms_active():
        return False
    return any(t.key() != TransformType.Vmap for t in retrieve_all_functorch_interpreters())


def uses(w):
    """Taps in training change with every call; see _ops.py."""
    return 1 if torch.is_grad_enabled() and w.requires_grad else 0


def _autocast(x, w, b):
    """The tensors, and the type of taps and bias under autocast, where x becomes of autocast's type, as is the result. Taps
    in f32 stay so: they are converted as they are packed, once for all calls that use them."""
    if x.dtype not in _SINGLE or w.dtype not in _SINGLE or not torch.is_autocast_enabled("cpu"):
        return x, w, b, None
    dtype = torch.get_autocast_dtype("cpu")
    taps = dtype if w.dtype == dtype else torch.float32
    b = b.to(taps) if isinstance(b, torch.Tensor) and b.dtype in _SINGLE else b
    return x.to(dtype), w.to(taps), b, taps

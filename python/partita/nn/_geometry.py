# SPDX-License-Identifier: MIT
"""Sizes of convolutions, and what the package does not compute. Sizes may be symbolic."""
import torch

_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}  # by number of axes
TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128)


def axes(value, rank):
    """A number, or one for each axis, as a tuple; None if it is neither."""
    if isinstance(value, (int, torch.SymInt)):
        return (value,) * rank
    if isinstance(value, (tuple, list)) and len(value) in (1, rank):
        return tuple(value) if len(value) == rank else tuple(value) * rank
    return None


def padding_pairs(pad, rank):
    """(before, after) of each axis. `pad` has a number for each axis, or both numbers of each axis in turn."""
    if len(pad) == rank:
        return [(p, p) for p in pad]
    if len(pad) != 2 * rank:
        raise ValueError(f"pad = {list(pad)}: {rank} or {2 * rank} numbers")
    return [(pad[2 * i], pad[2 * i + 1]) for i in range(rank)]


def output_shape(x_shape, w_shape, stride, pad, dilation):
    """Shape of the result of a convolution of x [batch, channels, size...] with w."""
    pairs = padding_pairs(pad, len(stride))
    sizes = [
        (size + before + after - d * (k - 1) - 1) // s + 1
        for size, (before, after), k, s, d in zip(x_shape[2:], pairs, w_shape[2:], stride, dilation)
    ]
    return [x_shape[0], w_shape[0], *sizes]


def same_padding(kernel, dilation):
    """The padding "same": an odd number of zeros has one more of them after x."""
    total = [d * (k - 1) for k, d in zip(kernel, dilation)]
    return [p for t in total for p in (t // 2, t - t // 2)]


def memory_format(*tensors):
    """The memory format of a result: channels last if a real operand of two or three axes has them last, as PyTorch does."""
    for t in tensors:
        if t.dim() in _LAST and not t.is_complex() and _has_channels_last(t.shape, t.stride()):
            return _LAST[t.dim()]
    return torch.contiguous_format


def _has_channels_last(shape, strides):
    """Whether the strides are those of channels last, perhaps of a part of a larger tensor. Of tensors that fit both
    formats, for example with one channel, PyTorch too lets the strides decide."""
    if strides[-1] < strides[1] or strides[1] == 0:
        return False
    least = 0
    for axis in (1, *range(len(shape) - 1, 1, -1), 0):
        if shape[axis] == 0 or strides[axis] < least or (axis == 0 and least == strides[1]):
            return False
        least = strides[axis] * shape[axis]
    return True


def refused_tensors(*tensors, taps=None):
    """Why the package does not compute with these tensors (None among them: a bias that there is not), or None. `taps` is
    the type of all but the first if it is another."""
    first = tensors[0]
    for t in tensors:
        if t is None:
            continue
        if not isinstance(t, torch.Tensor):
            return "not a tensor"
        if t.device.type not in ("cpu", "meta"):
            return f"device {t.device.type}"
        if t.layout != torch.strided:
            return f"layout {t.layout}"
        if t.dtype not in TYPES:
            return f"type {t.dtype}"
        if t.dtype != (taps if taps and t is not first else first.dtype) or t.device != first.device:
            return "tensors of several types or devices"
    return None


def refused(x, w, b, stride, pad, dilation, groups, output_padding=None, taps=None):
    """Why the package does not compute a convolution of x [batch, channels, size...], transposed if there is an output
    padding, or None."""
    reason = refused_tensors(x, w, b, taps=taps)
    if reason:
        return reason
    if groups < 1 or w.shape[0] == 0 or w.shape[0] % groups != 0:
        return "groups"
    inputs, outputs = w.shape[1] * groups, w.shape[0]
    if output_padding is not None:
        inputs, outputs = outputs, inputs
    if inputs == 0 or outputs == 0 or x.shape[1] != inputs:
        return "channels"
    if b is not None and (b.dim() != 1 or b.shape[0] != outputs):
        return "bias"
    if output_padding is not None:
        return _refused_transposed(x, w, stride, pad, output_padding, dilation, groups)
    pairs = padding_pairs(pad, len(stride))
    for size, k, s, (before, after), d in zip(x.shape[2:], w.shape[2:], stride, pairs, dilation):
        if s < 1 or d < 1 or before < 0 or after < 0:
            return "stride, dilation or padding"
        if size == 0 or k == 0 or size + before + after < d * (k - 1) + 1:
            return "size of the input"
    return None


def transposed_shape(x, w, stride, padding, output_padding, dilation, groups):
    """Shape of the result of a transposed convolution."""
    sizes = [
        (size - 1) * s - 2 * p + d * (k - 1) + extra + 1
        for size, k, s, p, extra, d in zip(x.shape[2:], w.shape[2:], stride, padding, output_padding, dilation)
    ]
    return [x.shape[0], w.shape[1] * groups, *sizes]


def _refused_transposed(x, w, stride, padding, output_padding, dilation, groups):
    """Why sizes do not make a transposed convolution that has a result, or None."""
    for k, s, p, extra, d in zip(w.shape[2:], stride, padding, output_padding, dilation):
        if k == 0 or s < 1 or d < 1 or p < 0 or extra < 0 or (extra >= s and extra >= d):
            return "stride, dilation or padding"
    if 0 in x.shape[2:]:
        return "size of the input"
    for size in transposed_shape(x, w, stride, padding, output_padding, dilation, groups)[2:]:
        if size < 1:
            return "size of the result"
    return None

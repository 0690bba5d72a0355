# SPDX-License-Identifier: MIT
"""Runs programs of PyTorch, among them its own tests, with convolutions computed by Partita."""
import collections

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import _geometry, functional

__all__ = ["dispatch_mode"]

_aten = torch.ops.aten
_OURS = ("partita::conv", "partita::conv_input", "partita::conv_weight")
# Operators that come undivided where no gradients are recorded, as in torch.inference_mode; their parts are answered.
_DIVIDED = {
    getattr(getattr(_aten, name), overload)
    for name in ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
                 "_convolution_mode")
    for overload in getattr(_aten, name).overloads()
}


class dispatch_mode(TorchDispatchMode):
    """
    Answers aten.convolution and its backward by Partita, for the time of a with statement.

    What the package cannot compute is computed by PyTorch and counted. Tensors and errors are those of PyTorch.

    Examples
    --------
    >>> import torch, partita.nn.testing
    >>> with partita.nn.testing.dispatch_mode() as mode:
    ...     y = torch.nn.Conv2d(2, 2, 3)(torch.ones(1, 2, 8, 8))
    >>> mode.counts()
    {'native': {'aten.convolution': 1}, 'fallback': {}}
    """

    def __init__(self):
        super().__init__()
        self._native = collections.Counter()
        self._fallback = collections.Counter()

    def counts(self):
        """
        How many calls were answered.

        Returns
        -------
        dict
            ``"native"``: {operator: calls that Partita computed}, calls of its own operators among them;
            ``"fallback"``: {(operator, reason): calls that PyTorch computed}.
        """
        return {"native": dict(self._native), "fallback": dict(self._fallback)}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in _DIVIDED:
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        answer = _ANSWERS.get(func)
        if answer is None:
            if func.name() in _OURS:
                self._native[_name(func)] += 1
            return func(*args, **kwargs)
        arguments = dict(zip((a.name for a in func._schema.arguments), args)) | kwargs
        reason = _refused(**arguments)
        if reason:
            result = func(*args, **kwargs)
            self._fallback[_name(func), reason] += 1  # not if it raised an error
        else:
            result = answer(**arguments)
            self._native[_name(func)] += 1
        return result


def _name(func):
    return func.name().replace("::", ".")


def _refused(input, weight, stride, padding, dilation, transposed, output_padding, groups, bias=None, **others):
    """Why Partita does not compute this layer, or None. `others`: what only the backward of a convolution has."""
    if input.is_complex():  # PyTorch divides complex layers into real ones before
        return f"type {input.dtype}"
    rank = input.dim() - 2
    layer = [_geometry.axes(value, rank) for value in (stride, padding, dilation, output_padding)]
    if not 1 <= rank <= 3 or weight.dim() != rank + 2 or None in layer:
        return _geometry.refused_tensors(input, weight, bias) or "number of axes"
    return _geometry.refused(input, weight, bias, *layer[:3], groups, layer[3] if transposed else None)


def _convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    if transposed:
        rank = input.dim() - 2
        layer = [_geometry.axes(value, rank) for value in (stride, padding, output_padding, dilation)]
        return functional.transposed(input, weight, bias, *layer, groups)
    return torch.ops.partita.conv(input, weight, bias, *_layer(input, stride, padding, dilation, groups),
                                  functional.uses(weight))


def _convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding,
                          groups, output_mask):
    rank, uses = input.dim() - 2, 1 if weight.requires_grad else 0
    if transposed:
        padding = functional.transposed_padding(_geometry.axes(padding, rank), _geometry.axes(output_padding, rank))
    layer = _layer(input, stride, padding, dilation, groups)
    gx = gw = gb = None
    if output_mask[0] and transposed:
        gx = torch.ops.partita.conv(grad_output, weight, None, *layer, uses)
    elif output_mask[0]:
        gx = torch.ops.partita.conv_input(grad_output, weight, input.shape, *layer, uses)
    if output_mask[1]:
        x, gy = (grad_output, input) if transposed else (input, grad_output)
        gw = torch.ops.partita.conv_weight(x, gy, weight.shape, *layer)
    if output_mask[2]:
        gb = grad_output.sum([0, *range(2, grad_output.dim())])
    return gx, gw, gb


def _layer(x, stride, padding, dilation, groups):
    rank = x.dim() - 2
    padding = padding if len(padding) == 2 * rank else _geometry.axes(padding, rank)
    return _geometry.axes(stride, rank), padding, _geometry.axes(dilation, rank), groups, ""


_ANSWERS = {_aten.convolution.default: _convolution, _aten.convolution_backward.default: _convolution_backward}

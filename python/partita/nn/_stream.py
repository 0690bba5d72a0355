# SPDX-License-Identifier: MIT
"""A causal layer as a stream."""
import torch

import partita


class LayerStream(partita.Stream):
    """A stream that adds a layer's bias to its outputs; `Conv1d.stream` makes it."""

    def __init__(self, filter, bias, frames_first):
        super().__init__(filter=filter, frames_first=frames_first)
        self._bias = bias

    def process(self, x, out=None):
        return self._biased(super().process(x, out))

    __call__ = process

    def drain(self, frames=None):
        return self._biased(super().drain(frames))

    def clone(self):
        other = super().clone()
        other._bias = self._bias
        return other

    __copy__ = clone

    def __getstate__(self):
        return super().__getstate__() | {"bias": self._bias}

    def __setstate__(self, state):
        self._bias = state["bias"]
        super().__setstate__(state)

    def _biased(self, y):
        bias = self._bias.to(y.device) if isinstance(y, torch.Tensor) else self._bias.numpy()
        y += bias if y.ndim == 1 or self._frames_first else bias[:, None]
        return y


def stream(layer, options):
    """The stream of a layer of one axis; options of partita.Problem, Plan and Stream."""
    past = layer.dilation[0] * (layer.kernel_size[0] - 1)
    causal = ("valid", (0,), (past,)) if past else ("valid", "same", (0,))
    if layer.padding_mode != "zeros" or layer.padding not in causal:
        raise ValueError(f"{layer} depends on later inputs: of causal layers the padding is 0 or {past}")
    frames_first = options.pop("frames_first", False)
    ours = {name: options.pop(name) for name in ("block", "latency", "whole_blocks") if name in options}
    weight = _full_precision(layer.weight)
    if weight.is_complex():
        weight = weight.conj()  # the library's correlation conjugates taps
    problem = partita.Problem(
        op="correlate", kernel=layer.kernel_size[0], signal=weight.dtype, in_channels=layer.in_channels,
        out_channels=layer.out_channels, groups=layer.groups, stride=layer.stride[0], dilation=layer.dilation[0],
        **ours)
    filter = partita.Plan(problem, **options).filter(weight)
    if layer.bias is None:
        return partita.Stream(filter=filter, frames_first=frames_first)
    return LayerStream(filter, _full_precision(layer.bias).clone(), frames_first)


def _full_precision(t):
    """Streams have no samples of two bytes."""
    t = t.detach().cpu()
    return t.float() if t.dtype in (torch.float16, torch.bfloat16) else t

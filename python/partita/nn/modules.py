# SPDX-License-Identifier: MIT
"""Layers of PyTorch whose convolution Partita computes. Everything else is PyTorch's: parameters, initial values,
state, padding modes, errors."""
import operator
import types

import torch
import torch.nn.functional as F
from torch.nn.modules.utils import _pair, _single, _triple  # noqa: F401 (for _export._scripted_as)

from partita._errors import require_type

from . import _calls, _export, _stream, functional

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "forget"]

_Tensor, _is_traced = torch.Tensor, torch.compiler.is_dynamo_compiling


class Replaced:
    """What all layers have: a function of `partita.nn.functional` and of torch.nn.functional, and who computes it."""

    _function: str
    _choices = None  # Partita, or as a _choices.Choices says

    def extra_repr(self):
        choices = self._choices
        slower = choices is not None and choices.rows and not choices.is_any()
        return super().extra_repr() + (", partita: torch is faster" if slower else ", partita")


class _Conv(Replaced):
    def _conv_forward(self, input, weight, bias):
        choices = self._choices
        known = None
        if choices is not None and not _is_traced():
            known = choices.find(input, weight.requires_grad, self.training, None)
        if known is False:
            return super()._conv_forward(input, weight, bias)  # PyTorch's, without a detour
        if type(input) is not _Tensor and _export.is_traced(input):
            return _export.traced(self, input)
        partita = known or choices is None or choices.decide(self, input, weight, bias, None)
        return self._compute(functional if partita else F, input, weight, bias, None)

    def _compute(self, library, input, weight, bias, output_size):
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode), 0
        return getattr(library, self._function)(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class _ConvTranspose(Replaced):
    def forward(self, input, output_size=None):
        if type(input) is not _Tensor and _export.is_traced(input):
            return _export.traced(self, input, output_size)
        if self.padding_mode != "zeros":
            raise ValueError(f"Only `zeros` padding mode is supported for {type(self).__name__}")
        choices, weight, bias = self._choices, self.weight, self.bias
        size = None if output_size is None else tuple(output_size)
        partita = choices is None or choices.decide(self, input, weight, bias, size)
        return self._compute(functional if partita else F, input, weight, bias, size)

    def _compute(self, library, input, weight, bias, output_size):
        output_padding = self._output_padding(input, output_size, self.stride, self.padding, self.kernel_size,
                                              len(self.kernel_size), self.dilation)
        return getattr(library, self._function)(input, weight, bias, self.stride, self.padding, output_padding,
                                                self.groups, self.dilation)


class Conv1d(_Conv, torch.nn.Conv1d):
    """torch.nn.Conv1d, computed by Partita."""

    _function = "conv1d"

    def stream(self, **options):
        """
        This layer with its present weights as a filter of signals that come in frames.

        Its outputs are those of `functional.conv1d` with padding="causal". A layer with padding="valid" or 0 leaves out
        the first ``dilation * (kernel_size - 1)`` of these; a layer whose padding is that number has some more after
        them.

        Parameters
        ----------
        **options
            Of `partita.Stream`, for example `block` and `frames_first`.

        Returns
        -------
        partita.Stream
            Of the layer's channels.

        Raises
        ------
        ValueError
            If outputs of the layer depend on later inputs, which is so for other paddings.
        """
        return _stream.stream(self, options)


def _layers(base, function, kinds):
    """Layers of PyTorch's kinds, whose convolution is that of `base`."""
    for rank, kind in kinds:
        names = {"__doc__": f"torch.nn.{kind.__name__}, computed by Partita.", "__module__": __name__,
                 "_function": f"{function}{rank}d"}
        yield types.new_class(kind.__name__, (base, kind), exec_body=operator.methodcaller("update", names))


Conv2d, Conv3d = _layers(_Conv, "conv", ((2, torch.nn.Conv2d), (3, torch.nn.Conv3d)))
ConvTranspose1d, ConvTranspose2d, ConvTranspose3d = _layers(_ConvTranspose, "conv_transpose", enumerate(
    (torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d), 1))
_OURS = {getattr(torch.nn, layer.__name__): layer
         for layer in (Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)}
_TORCHS = {ours: torchs for torchs, ours in _OURS.items()}
_export.register(_TORCHS)


def forget(model):
    """
    Lets layers pack their taps again at the next call, whatever is known of their values.

    Needed only after some taps of a tensor with more than 65 536 of them have been written through ``tensor.data`` or
    NumPy, while no gradients are recorded.

    Parameters
    ----------
    model : torch.nn.Module or torch.Tensor
        The layers, or the taps of a function of `partita.nn.functional`.
    """
    require_type("model", model, (torch.nn.Module, _Tensor), "a module, or a tensor of taps, is needed")
    _calls.forget([model] if isinstance(model, torch.Tensor) else [*model.parameters(), *model.buffers()])

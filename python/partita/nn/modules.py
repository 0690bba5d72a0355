# SPDX-License-Identifier: MIT
"""Layers of PyTorch whose convolution Partita computes. Everything else is PyTorch's: parameters, initial values,
state, padding modes, errors."""
import torch
import torch.nn.functional as F

from . import _calls, _stream, functional

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "forget",
           "replace_", "restore_"]


def _forward(layer, conv, input, weight, bias):
    padding = layer.padding
    if layer.padding_mode != "zeros":
        input, padding = F.pad(input, layer._reversed_padding_repeated_twice, mode=layer.padding_mode), 0
    return conv(input, weight, bias, layer.stride, padding, layer.dilation, layer.groups)


class Conv1d(torch.nn.Conv1d):
    """torch.nn.Conv1d, computed by Partita."""

    def _conv_forward(self, input, weight, bias):
        return _forward(self, functional.conv1d, input, weight, bias)

    def stream(self, **options):
        """
        This layer with its present weights as a filter of signals that come in frames.

        Its outputs are those of `functional.causal_conv1d`. A layer with padding="valid" or 0 leaves out the first
        ``dilation * (kernel_size - 1)`` of these; a layer whose padding is that number has some more after them.

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


class Conv2d(torch.nn.Conv2d):
    """torch.nn.Conv2d, computed by Partita."""

    def _conv_forward(self, input, weight, bias):
        return _forward(self, functional.conv2d, input, weight, bias)


class Conv3d(torch.nn.Conv3d):
    """torch.nn.Conv3d, computed by Partita."""

    def _conv_forward(self, input, weight, bias):
        return _forward(self, functional.conv3d, input, weight, bias)


def _forward_transposed(layer, conv, input, output_size):
    if layer.padding_mode != "zeros":
        raise ValueError(f"Only `zeros` padding mode is supported for {type(layer).__name__}")
    output_padding = layer._output_padding(input, output_size, layer.stride, layer.padding, layer.kernel_size,
                                           len(layer.kernel_size), layer.dilation)
    return conv(input, layer.weight, layer.bias, layer.stride, layer.padding, output_padding, layer.groups,
                layer.dilation)


class ConvTranspose1d(torch.nn.ConvTranspose1d):
    """torch.nn.ConvTranspose1d, computed by Partita."""

    def forward(self, input, output_size=None):
        return _forward_transposed(self, functional.conv_transpose1d, input, output_size)


class ConvTranspose2d(torch.nn.ConvTranspose2d):
    """torch.nn.ConvTranspose2d, computed by Partita."""

    def forward(self, input, output_size=None):
        return _forward_transposed(self, functional.conv_transpose2d, input, output_size)


class ConvTranspose3d(torch.nn.ConvTranspose3d):
    """torch.nn.ConvTranspose3d, computed by Partita."""

    def forward(self, input, output_size=None):
        return _forward_transposed(self, functional.conv_transpose3d, input, output_size)


_OURS = {layer.__base__: layer for layer in (Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)}
_TORCHS = {ours: torchs for torchs, ours in _OURS.items()}


def _is_large(layer):
    return max(layer.kernel_size) >= 7


def replace_(model, where=_is_large):
    """
    Lets Partita compute convolutions of a model, in place; `restore_` undoes it.

    Parameters
    ----------
    model : torch.nn.Module
        Its layers that are exactly torch.nn.Conv1d, 2d, 3d or ConvTranspose1d, 2d, 3d may be replaced; subclasses,
        among them parametrized layers, stay. Parameters, hooks and state remain those of the layers.
    where : callable, optional
        Whether to replace a layer. Without it: those with seven or more taps along an axis.

    Returns
    -------
    list of str
        Names of the replaced layers; "" is the model itself.

    Notes
    -----
    Without gradients a layer keeps its taps packed and compares them at each call. Of more than 65 536 taps it compares a
    sample: after a few of these have been written through ``weight.data`` or NumPy, which PyTorch does not count as a new
    version, call `forget`. Optimizers, ``load_state_dict`` and all other changes are seen.

    Examples
    --------
    >>> import torch, partita.nn
    >>> model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Conv2d(8, 8, 31, groups=8))
    >>> partita.nn.replace_(model)
    ['1']
    """
    return _exchange(model, _OURS, where)


def restore_(model, where=lambda layer: True):
    """Gives the layers that `replace_` has replaced back to PyTorch, in place. Returns their names."""
    return _exchange(model, _TORCHS, where)


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
    _calls.forget([model] if isinstance(model, torch.Tensor) else [*model.parameters(), *model.buffers()])


def _exchange(model, classes, where):
    names = []
    for name, layer in model.named_modules():
        if type(layer) in classes and where(layer):
            layer.__class__ = classes[type(layer)]
            names.append(name)
    return names

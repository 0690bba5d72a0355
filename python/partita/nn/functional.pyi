# SPDX-License-Identifier: MIT
from collections.abc import Sequence
from typing import TypeAlias

from torch import Tensor

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "fft_conv"]

_Axes: TypeAlias = int | Sequence[int]

def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _Axes = 1,
    padding: _Axes | str = 0,
    dilation: _Axes = 1,
    groups: int = 1,
) -> Tensor: ...
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _Axes = 1,
    padding: _Axes | str = 0,
    dilation: _Axes = 1,
    groups: int = 1,
) -> Tensor: ...
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _Axes = 1,
    padding: _Axes | str = 0,
    dilation: _Axes = 1,
    groups: int = 1,
) -> Tensor: ...
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _Axes = 1,
    padding: _Axes = 0,
    output_padding: _Axes = 0,
    groups: int = 1,
    dilation: _Axes = 1,
) -> Tensor: ...
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _Axes = 1,
    padding: _Axes = 0,
    output_padding: _Axes = 0,
    groups: int = 1,
    dilation: _Axes = 1,
) -> Tensor: ...
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: _Axes = 1,
    padding: _Axes = 0,
    output_padding: _Axes = 0,
    groups: int = 1,
    dilation: _Axes = 1,
) -> Tensor: ...
def fft_conv(
    signal: Tensor,
    kernel: Tensor,
    bias: Tensor | None = None,
    padding: _Axes | str = 0,
    padding_mode: str = "constant",
    stride: _Axes = 1,
    dilation: _Axes = 1,
    groups: int = 1,
) -> Tensor: ...

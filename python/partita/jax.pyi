# SPDX-License-Identifier: MIT
from collections.abc import Sequence
from typing import Any, TypeAlias

from jax import Array, ShapeDtypeStruct
from jax.typing import ArrayLike, DTypeLike

__all__ = ["conv1d", "conv2d", "conv3d", "conv_general_dilated", "conv_transpose1d", "conv_transpose2d",
           "conv_transpose3d", "serves"]

_Sizes: TypeAlias = int | Sequence[int]

def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array: ...
def serves(lhs: ArrayLike | ShapeDtypeStruct, rhs: ArrayLike | ShapeDtypeStruct, *args: Any, **kwargs: Any) -> bool: ...
def conv1d(
    input: Array, weight: Array, bias: Array | None = None, stride: _Sizes = 1, padding: str | _Sizes = 0,
    dilation: _Sizes = 1, groups: int = 1,
) -> Array: ...
def conv2d(
    input: Array, weight: Array, bias: Array | None = None, stride: _Sizes = 1, padding: str | _Sizes = 0,
    dilation: _Sizes = 1, groups: int = 1,
) -> Array: ...
def conv3d(
    input: Array, weight: Array, bias: Array | None = None, stride: _Sizes = 1, padding: str | _Sizes = 0,
    dilation: _Sizes = 1, groups: int = 1,
) -> Array: ...
def conv_transpose1d(
    input: Array, weight: Array, bias: Array | None = None, stride: _Sizes = 1, padding: _Sizes = 0,
    output_padding: _Sizes = 0, groups: int = 1, dilation: _Sizes = 1,
) -> Array: ...
def conv_transpose2d(
    input: Array, weight: Array, bias: Array | None = None, stride: _Sizes = 1, padding: _Sizes = 0,
    output_padding: _Sizes = 0, groups: int = 1, dilation: _Sizes = 1,
) -> Array: ...
def conv_transpose3d(
    input: Array, weight: Array, bias: Array | None = None, stride: _Sizes = 1, padding: _Sizes = 0,
    output_padding: _Sizes = 0, groups: int = 1, dilation: _Sizes = 1,
) -> Array: ...

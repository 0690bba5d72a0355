# SPDX-License-Identifier: MIT
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import zarr
from dask.array import Array
from numpy.typing import ArrayLike
from zarr.abc.store import Store
from zarr.storage import StorePath

__all__ = ["convolve", "correlate", "oaconvolve", "task_bytes", "to_zarr"]

_Mode: TypeAlias = Literal["full", "same", "valid"]
_Sizes: TypeAlias = int | Sequence[int]
_Samples: TypeAlias = Array | ArrayLike

def convolve(
    in1: _Samples,
    in2: _Samples,
    mode: _Mode | slice = "full",
    *,
    axes: _Sizes | None = None,
    stride: _Sizes = 1,
    parts: tuple[_Sizes, _Sizes] | None = None,
) -> Array: ...
def correlate(
    in1: _Samples,
    in2: _Samples,
    mode: _Mode = "full",
    *,
    axes: _Sizes | None = None,
    lags: tuple[int, int] | range | None = None,
    normalise: bool | Literal["zero-mean"] = False,
    parts: tuple[_Sizes, _Sizes] | None = None,
) -> Array: ...
def oaconvolve(in1: _Samples, in2: _Samples, mode: _Mode = "full", axes: _Sizes | None = None) -> Array: ...
def task_bytes(array: Array) -> int: ...
def to_zarr(
    array: Array,
    target: str | os.PathLike[str] | Store | StorePath | zarr.Array[Any],
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> int: ...

# SPDX-License-Identifier: MIT
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from numpy.typing import ArrayLike, DTypeLike, NDArray

__all__ = ["convolve", "convolve1d", "correlate", "correlate1d", "gaussian_filter", "gaussian_filter1d",
           "gaussian_gradient_magnitude", "gaussian_laplace", "laplace", "match_template", "prewitt", "sobel",
           "uniform_filter", "uniform_filter1d"]

_Array: TypeAlias = NDArray[Any]
_Output: TypeAlias = _Array | DTypeLike | None
_Mode: TypeAlias = Literal["reflect", "constant", "nearest", "mirror", "wrap", "grid-mirror", "grid-constant", "grid-wrap"]
_Modes: TypeAlias = _Mode | Sequence[_Mode]
_Integers: TypeAlias = int | Sequence[int]
_Numbers: TypeAlias = float | Sequence[float]
_Axes: TypeAlias = int | Sequence[int] | None

def convolve(
    input: ArrayLike, weights: ArrayLike, output: _Output = None, mode: _Mode = "reflect", cval: complex = 0.0,
    origin: _Integers = 0, *, axes: _Axes = None,
) -> _Array: ...
def convolve1d(
    input: ArrayLike, weights: ArrayLike, axis: int = -1, output: _Output = None, mode: _Mode = "reflect",
    cval: complex = 0.0, origin: int = 0,
) -> _Array: ...
def correlate(
    input: ArrayLike, weights: ArrayLike, output: _Output = None, mode: _Mode = "reflect", cval: complex = 0.0,
    origin: _Integers = 0, *, axes: _Axes = None,
) -> _Array: ...
def correlate1d(
    input: ArrayLike, weights: ArrayLike, axis: int = -1, output: _Output = None, mode: _Mode = "reflect",
    cval: complex = 0.0, origin: int = 0,
) -> _Array: ...
def gaussian_filter(
    input: ArrayLike, sigma: _Numbers, order: _Integers = 0, output: _Output = None, mode: _Modes = "reflect",
    cval: complex = 0.0, truncate: float = 4.0, *, radius: _Integers | None = None, axes: _Axes = None,
) -> _Array: ...
def gaussian_filter1d(
    input: ArrayLike, sigma: float, axis: int = -1, order: int = 0, output: _Output = None, mode: _Mode = "reflect",
    cval: complex = 0.0, truncate: float = 4.0, *, radius: int | None = None,
) -> _Array: ...
def gaussian_gradient_magnitude(
    input: ArrayLike, sigma: _Numbers, output: _Output = None, mode: _Modes = "reflect", cval: complex = 0.0, *,
    axes: _Axes = None, **kwargs: Any,
) -> _Array: ...
def gaussian_laplace(
    input: ArrayLike, sigma: _Numbers, output: _Output = None, mode: _Modes = "reflect", cval: complex = 0.0, *,
    axes: _Axes = None, **kwargs: Any,
) -> _Array: ...
def laplace(
    input: ArrayLike, output: _Output = None, mode: _Modes = "reflect", cval: complex = 0.0, *, axes: _Axes = None
) -> _Array: ...
def match_template(
    image: ArrayLike, template: ArrayLike, pad_input: bool = False, mode: str = "constant", constant_values: Any = 0
) -> _Array: ...
def prewitt(
    input: ArrayLike, axis: int = -1, output: _Output = None, mode: _Modes = "reflect", cval: complex = 0.0
) -> _Array: ...
def sobel(
    input: ArrayLike, axis: int = -1, output: _Output = None, mode: _Modes = "reflect", cval: complex = 0.0
) -> _Array: ...
def uniform_filter(
    input: ArrayLike, size: _Integers = 3, output: _Output = None, mode: _Modes = "reflect", cval: complex = 0.0,
    origin: _Integers = 0, *, axes: _Axes = None,
) -> _Array: ...
def uniform_filter1d(
    input: ArrayLike, size: int, axis: int = -1, output: _Output = None, mode: _Mode = "reflect", cval: complex = 0.0,
    origin: int = 0,
) -> _Array: ...
def __getattr__(name: str) -> Any: ...

# SPDX-License-Identifier: MIT
import contextlib
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, overload

from numpy.typing import ArrayLike, NDArray

from partita._signal.peaks import CorrelationPeaks as _CorrelationPeaks

__all__ = ["choose_conv_method", "convolve", "convolve2d", "correlate", "correlate2d",
           "correlation_lags", "correlation_peaks", "fftconvolve", "lfilter", "oaconvolve", "patched", "upfirdn"]

_Mode: TypeAlias = Literal["full", "same", "valid"]
_Method: TypeAlias = Literal["auto", "direct", "fft"]
_Axes: TypeAlias = int | Sequence[int] | None
_Boundary: TypeAlias = Literal["fill", "wrap", "symm"]

def convolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: _Mode | slice = "full",
    method: _Method = "auto",
    *,
    axes: _Axes = None,
    out: NDArray[Any] | None = None,
    threads: int | None = None,
    device: str | None = None,
    engine: str | None = None,
) -> NDArray[Any]: ...
def correlate(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: _Mode = "full",
    method: _Method = "auto",
    *,
    axes: _Axes = None,
    lags: tuple[int, int] | range | None = None,
    normalise: bool | Literal["zero-mean"] = False,
    out: NDArray[Any] | None = None,
    threads: int | None = None,
    device: str | None = None,
    engine: str | None = None,
) -> NDArray[Any]: ...
def correlation_lags(
    in1_len: int, in2_len: int, mode: _Mode = "full", *, lags: tuple[int, int] | range | None = None
) -> NDArray[Any]: ...
def correlation_peaks(
    in1: ArrayLike,
    in2: ArrayLike,
    *,
    peaks: int | None = None,
    threshold: float = 0.0,
    distance: int | None = None,
    normalise: bool | Literal["zero-mean"] = False,
    lags: tuple[int, int] | range | None = None,
    threads: int | None = None,
    device: str | None = None,
    engine: str | None = None,
) -> _CorrelationPeaks: ...
def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: _Mode = "full", axes: _Axes = None) -> NDArray[Any]: ...
def oaconvolve(in1: ArrayLike, in2: ArrayLike, mode: _Mode = "full", axes: _Axes = None) -> NDArray[Any]: ...
@overload
def choose_conv_method(in1: ArrayLike, in2: ArrayLike, mode: _Mode = "full", measure: Literal[False] = False) -> str: ...
@overload
def choose_conv_method(
    in1: ArrayLike, in2: ArrayLike, mode: _Mode = "full", *, measure: Literal[True]
) -> tuple[str, dict[str, float]]: ...
def convolve2d(
    in1: ArrayLike, in2: ArrayLike, mode: _Mode = "full", boundary: _Boundary = "fill", fillvalue: complex = 0
) -> NDArray[Any]: ...
def correlate2d(
    in1: ArrayLike, in2: ArrayLike, mode: _Mode = "full", boundary: _Boundary = "fill", fillvalue: complex = 0
) -> NDArray[Any]: ...
@overload
def lfilter(b: ArrayLike, a: ArrayLike, x: ArrayLike, axis: int = -1, zi: None = None) -> NDArray[Any]: ...
@overload
def lfilter(
    b: ArrayLike, a: ArrayLike, x: ArrayLike, axis: int = -1, *, zi: ArrayLike
) -> tuple[NDArray[Any], NDArray[Any]]: ...
def upfirdn(
    h: ArrayLike,
    x: ArrayLike,
    up: int = 1,
    down: int = 1,
    axis: int = -1,
    mode: str = "constant",
    cval: complex = 0,
) -> NDArray[Any]: ...
def patched() -> contextlib.AbstractContextManager[None]: ...

# SPDX-License-Identifier: MIT
import contextlib
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, overload

from numpy.typing import ArrayLike, NDArray

from partita._signal.peaks import CorrelationPeaks as _CorrelationPeaks

__all__ = ["choose_conv_method", "convolve", "convolve2d", "correlate", "correlate2d",
           "correlate_pairs", "correlation_lags", "correlation_peaks", "decimate", "fftconvolve", "filtfilt", "hilbert",
           "istft", "lfilter", "match_templates", "oaconvolve", "patched", "resample_poly", "savgol_filter", "stft",
           "upfirdn"]

_Mode: TypeAlias = Literal["full", "same", "valid"]
_Method: TypeAlias = Literal["auto", "direct", "fft"]
_Axes: TypeAlias = int | Sequence[int] | None
_Window: TypeAlias = str | tuple[Any, ...] | ArrayLike
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
def correlate_pairs(
    signals: Any, max_lag: int, *, pairs: ArrayLike | None = None, window: int | None = None, overlap: int = 0,
    stack: Literal["linear", "phase-weighted"] | None = "linear", power: float = 2,
    normalise: bool | Literal["zero-mean"] = False, out: Any = None, threads: int | None = None, memory: int = 2147483648
) -> Any: ...
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
def match_templates(
    signal: ArrayLike,
    templates: Sequence[ArrayLike] | NDArray[Any],
    *,
    threshold: float | None = None,
    mad: float | None = None,
    distance: int | None = None,
    delays: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    zero_mean: bool = True,
    chunk: int | None = None,
    values: bool = False,
    threads: int | None = None,
) -> NDArray[Any]: ...
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
def resample_poly(x: ArrayLike, up: int, down: int, axis: int = 0, window: _Window = ("kaiser", 5.0),
                  padtype: str = "constant", cval: complex | None = None) -> NDArray[Any]: ...
def decimate(x: ArrayLike, q: int, n: int | None = None, ftype: Any = "iir", axis: int = -1,
             zero_phase: bool = True) -> NDArray[Any]: ...
def filtfilt(b: ArrayLike, a: ArrayLike, x: ArrayLike, axis: int = -1, padtype: str | None = "odd",
             padlen: int | None = None, method: str = "pad", irlen: int | None = None) -> NDArray[Any]: ...
def savgol_filter(x: ArrayLike, window_length: int, polyorder: int, deriv: int = 0, delta: float = 1.0, axis: int = -1,
                  mode: str = "interp", cval: float = 0.0) -> NDArray[Any]: ...
def hilbert(x: ArrayLike, N: int | None = None, axis: int = -1) -> NDArray[Any]: ...
def stft(x: ArrayLike, fs: float = 1.0, window: _Window = "hann_periodic", nperseg: int | None = 256,
         noverlap: int | None = None, nfft: int | None = None, detrend: Any = False, return_onesided: bool = True,
         boundary: str | None = "zeros", padded: bool = True, axis: int = -1,
         scaling: str = "spectrum") -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]: ...
def istft(Zxx: ArrayLike, fs: float = 1.0, window: _Window = "hann_periodic", nperseg: int | None = None,
          noverlap: int | None = None, nfft: int | None = None, input_onesided: bool = True, boundary: bool = True,
          time_axis: int = -1, freq_axis: int = -2, scaling: str = "spectrum") -> tuple[NDArray[Any], NDArray[Any]]: ...
def __getattr__(name: str) -> Any: ...
def patched() -> contextlib.AbstractContextManager[None]: ...

# SPDX-License-Identifier: MIT
import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, Self, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from partita._design import Achieved as Achieved
from partita._equalizer import EqualizerTaps as EqualizerTaps
from partita._errors import DeviceError as DeviceError
from partita._errors import StateError as StateError
from partita._errors import UnsupportedError as UnsupportedError
from partita._explain import Engine as Engine
from partita._options import Device as Device
from partita._plan import Load as Load
from partita._stream import Stats as Stats

from . import correction as correction
from . import dask as dask
from . import jax as jax
from . import ndimage as ndimage
from . import nn as nn
from . import signal as signal
from .signal import convolve as convolve
from .signal import convolve2d as convolve2d
from .signal import correlate as correlate
from .signal import correlate2d as correlate2d
from .signal import correlation_lags as correlation_lags
from .signal import fftconvolve as fftconvolve
from .signal import lfilter as lfilter
from .signal import oaconvolve as oaconvolve
from .signal import upfirdn as upfirdn

__all__ = [
    "Achieved", "AdaptiveFilter", "Bank", "ChannelFilter", "Channelizer", "Design", "Device", "DeviceError", "Engine",
    "EqualizerTaps", "Explanation", "Filter", "Load", "Plan", "Problem", "Saved", "Spectrum", "StateError", "Stats", "Stream",
    "UnsupportedError", "Wisdom", "crossover", "deconvolve", "design", "devices", "equalizer", "explain", "get_threads",
    "library_version", "read_equalizer", "set_threads",
]

__version__: Final[str]

# An array of a library that exports it by DLPack: NumPy, PyTorch, CuPy, JAX, ... Results are of the same library.
class _Exported(Protocol):
    def __dlpack__(self, *, stream: Any = ...) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, Any]: ...

_Array = TypeVar("_Array", bound=_Exported)
_Out = TypeVar("_Out", bound=_Exported)
_Samples: TypeAlias = _Exported | ArrayLike
_Type: TypeAlias = DTypeLike | Any  # also types of PyTorch
_Axes: TypeAlias = int | Sequence[int]
_Direction: TypeAlias = Literal["forward", "backward_data", "backward_weight"]
_Lags: TypeAlias = tuple[int, int] | range
_Paths: TypeAlias = Sequence[tuple[int, int, int, ArrayLike]]

class Explanation(str):
    engine: str
    engines: dict[str, str]
    rows: list[Engine]
    load: Load | None
    swap_delay: int | None
    def __new__(cls, plan: Plan) -> Self: ...

def devices() -> list[Device]: ...
def set_threads(n: int | None) -> None: ...
def get_threads() -> int | None: ...
def library_version() -> str: ...
def explain(
    x: Problem | Plan | _Samples | tuple[int, ...] | int | None,
    h: _Samples | tuple[int, ...] | int | None = None,
    *,
    dtype: _Type = None,
    mode: Literal["full", "same", "valid"] = "full",
    block: int | None = None,
    latency: float = 0,
    **options: Any,
) -> Explanation: ...

class Wisdom:
    def __init__(self, path: str | os.PathLike[str] | None = None) -> None: ...
    def calibrate(self) -> None: ...
    def save(self, path: str | os.PathLike[str]) -> None: ...
    def __getstate__(self) -> dict[str, bytes]: ...
    def __setstate__(self, state: dict[str, bytes]) -> None: ...

@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    kernel: tuple[int, ...]
    size: tuple[int, ...] | None = None
    signal: str = "f32"
    taps: str | None = None
    op: str = "convolve"
    batch: int = 1
    in_channels: int = 1
    out_channels: int | None = None
    groups: int = 1
    stride: tuple[int, ...] = ...
    dilation: tuple[int, ...] = ...
    pad: tuple[tuple[int, int], ...] = ...
    block: int | None = None
    latency: int | float = 0
    whole_blocks: bool = False
    activation: str = "linear"
    separable: bool = False
    channels_last: bool = False
    up: int = 1
    boundary: str = "zero"
    boundary_value: float = 0.0
    def __init__(
        self,
        *,
        kernel: _Axes,
        size: _Axes | None = None,
        signal: _Type = "f32",
        taps: _Type = None,
        op: Literal["convolve", "correlate"] = "convolve",
        batch: int = 1,
        in_channels: int = 1,
        out_channels: int | None = None,
        groups: int = 1,
        stride: _Axes = 1,
        dilation: _Axes = 1,
        pad: int | Sequence[int | tuple[int, int]] = 0,
        block: int | None = None,
        latency: float = 0,
        whole_blocks: bool = False,
        activation: Literal["linear", "relu"] = "linear",
        separable: bool = False,
        channels_last: bool = False,
        up: int = 1,
        boundary: str = "zero",
        boundary_value: float = 0.0,
    ) -> None: ...
    def __post_init__(self) -> None: ...
    @property
    def rank(self) -> int: ...
    @property
    def is_stream(self) -> bool: ...
    @property
    def outputs(self) -> int: ...
    @property
    def taps_shape(self) -> tuple[int, ...]: ...
    @property
    def input_shape(self) -> tuple[int, ...] | None: ...
    @property
    def output_shape(self) -> tuple[int, ...] | None: ...
    def to_c(self) -> Any: ...

class Plan:
    problem: Problem
    options: Mapping[str, Any]
    output_shape: tuple[int, ...] | None
    def __init__(self, problem: Problem, **options: Any) -> None: ...
    @property
    def engine(self) -> str: ...
    @property
    def engines(self) -> dict[str, str]: ...
    @property
    def latency(self) -> int: ...
    @property
    def load(self) -> Load: ...
    def explain(self) -> str: ...
    def workspace(self, direction: _Direction = "forward") -> int: ...
    def new_workspace(self, saved: Saved | None = None, *, accumulate: bool = False) -> NDArray[np.uint8]: ...
    def filter(
        self, taps: _Samples | None = None, bias: _Samples | None = None, *, paths: _Paths | None = None
    ) -> Filter: ...
    def saved(self) -> Saved | None: ...
    @overload
    def forward(
        self,
        filter: Filter,
        x: _Samples,
        out: _Out,
        *,
        workspace: NDArray[Any] | None = None,
        saved: Saved | None = None,
        accumulate: bool = False,
    ) -> _Out: ...
    @overload
    def forward(
        self,
        filter: Filter,
        x: _Array,
        out: None = None,
        *,
        workspace: NDArray[Any] | None = None,
        saved: Saved | None = None,
    ) -> _Array: ...
    @overload
    def forward(
        self,
        filter: Filter,
        x: ArrayLike,
        out: None = None,
        *,
        workspace: NDArray[Any] | None = None,
        saved: Saved | None = None,
    ) -> NDArray[Any]: ...
    @overload
    def once(self, x: _Samples, taps: _Samples, out: _Out, *, workspace: NDArray[Any] | None = None) -> _Out: ...
    @overload
    def once(
        self, x: _Array, taps: _Samples, out: None = None, *, workspace: NDArray[Any] | None = None
    ) -> _Array: ...
    @overload
    def once(
        self, x: ArrayLike, taps: _Samples, out: None = None, *, workspace: NDArray[Any] | None = None
    ) -> NDArray[Any]: ...
    @overload
    def backward_data(
        self,
        filter: Filter,
        gy: _Samples,
        out: _Out,
        *,
        workspace: NDArray[Any] | None = None,
        accumulate: bool = False,
    ) -> _Out: ...
    @overload
    def backward_data(
        self, filter: Filter, gy: _Array, out: None = None, *, workspace: NDArray[Any] | None = None
    ) -> _Array: ...
    @overload
    def backward_data(
        self, filter: Filter, gy: ArrayLike, out: None = None, *, workspace: NDArray[Any] | None = None
    ) -> NDArray[Any]: ...
    @overload
    def backward_weight(
        self,
        x: _Samples | None,
        gy: _Samples,
        out: _Out,
        *,
        workspace: NDArray[Any] | None = None,
        saved: Saved | None = None,
        accumulate: bool = False,
    ) -> _Out: ...
    @overload
    def backward_weight(
        self,
        x: _Samples | None,
        gy: _Array,
        out: None = None,
        *,
        workspace: NDArray[Any] | None = None,
        saved: Saved | None = None,
    ) -> _Array: ...
    @overload
    def backward_weight(
        self,
        x: _Samples | None,
        gy: ArrayLike,
        out: None = None,
        *,
        workspace: NDArray[Any] | None = None,
        saved: Saved | None = None,
    ) -> NDArray[Any]: ...
    @overload
    def backward_bias(self, gy: _Samples, out: _Out, *, accumulate: bool = False) -> _Out: ...
    @overload
    def backward_bias(self, gy: _Array, out: None = None) -> _Array: ...
    @overload
    def backward_bias(self, gy: ArrayLike, out: None = None) -> NDArray[Any]: ...

class Saved:
    plan: Plan
    def __init__(self, plan: Plan) -> None: ...

class Filter:
    plan: Plan | None
    recipe: tuple[Any, ...] | None
    def __init__(self, plan: Plan | None, pointer: Any, needed: Any) -> None: ...
    def of(self, plan: Plan) -> Any: ...
    def update(self, taps: _Samples, bias: _Samples | None = None, *, workspace: NDArray[Any] | None = None) -> None: ...
    def edit(self, paths: _Paths) -> Filter: ...

class Stream:
    plan: Plan
    def __init__(
        self,
        taps: _Samples | _Paths | Sequence[_Samples | _Paths] | None = None,
        *,
        filter: Filter | Sequence[Filter] | None = None,
        channels: int | tuple[int, int] | None = None,
        block: int = 1024,
        latency: float = 0,
        decimate: int = 1,
        up: int = 1,
        whole_blocks: bool = False,
        dtype: _Type = None,
        device: str = "cpu",
        threads: int = 1,
        sample_rate: float | None = None,
        frames_first: bool = False,
        error_budget: float | None = None,
        error_reach: int | None = None,
        weights: ArrayLike | None = None,
    ) -> None: ...
    @overload
    def process(self, x: _Samples, out: _Out) -> _Out: ...
    @overload
    def process(self, x: _Array, out: None = None) -> _Array: ...
    @overload
    def process(self, x: ArrayLike, out: None = None) -> NDArray[Any]: ...
    @overload
    def __call__(self, x: _Samples, out: _Out) -> _Out: ...
    @overload
    def __call__(self, x: _Array, out: None = None) -> _Array: ...
    @overload
    def __call__(self, x: ArrayLike, out: None = None) -> NDArray[Any]: ...
    def drain(self, frames: int | None = None) -> Any: ...
    def pipe(self, chunks: Iterable[_Samples]) -> Iterator[Any]: ...
    def output_frames(self, n: int) -> int: ...
    def save(self) -> bytes: ...
    def restore(self, state: bytes) -> None: ...
    def clone(self) -> Self: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: dict[int, Any]) -> Self: ...
    def reset(self) -> None: ...
    def swap(self, taps: _Samples | _Paths | Filter, fade: int = 0) -> None: ...
    def morph(self, weights: ArrayLike, frames: int = 0) -> None: ...
    def morph_lag(self, tap: int) -> int: ...
    @property
    def swapping(self) -> bool: ...
    def wait(self, timeout: float | None = None) -> bool: ...
    @property
    def latency(self) -> int: ...
    @property
    def tail(self) -> int: ...
    @property
    def load(self) -> Load: ...
    @property
    def engine(self) -> str: ...
    @property
    def status(self) -> Exception | None: ...
    def stats(self) -> Stats: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...
    def __getstate__(self) -> dict[str, Any]: ...
    def __setstate__(self, state: dict[str, Any]) -> None: ...

@dataclasses.dataclass(frozen=True, kw_only=True)
class Design:
    kind: str
    cutoff: float | Sequence[float] | NDArray[Any] | None = None
    rate: float = 1.0
    width: float | None = None
    attenuation: float | None = None
    ripple: float | None = None
    taps: int | None = None
    method: Literal["kaiser", "equiripple"] = "kaiser"
    minimum_phase: bool = False
    table: ArrayLike | None = None
    def make(self) -> NDArray[np.float64]: ...
    def measure(self, taps: ArrayLike) -> Achieved: ...

def design(
    kind: str,
    cutoff: float | Sequence[float] | NDArray[Any] | None = None,
    *,
    rate: float = 1.0,
    width: float | None = None,
    attenuation: float | None = None,
    ripple: float | None = None,
    taps: int | None = None,
    method: Literal["kaiser", "equiripple"] = "kaiser",
    minimum_phase: bool = False,
    table: ArrayLike | None = None,
) -> NDArray[np.float64]: ...

def equalizer(
    sections: Iterable[Mapping[str, Any]],
    *,
    rate: float = 1.0,
    phase: Literal["recursive", "linear"] = "recursive",
    taps: int | None = None,
    tail: float | None = None,
    exact_gains: bool = False,
) -> EqualizerTaps: ...
def crossover(
    frequencies: Sequence[float] | NDArray[Any],
    *,
    family: str | Sequence[str] = "linkwitz-riley",
    order: int | Sequence[int] = 4,
    gain: float | Sequence[float] = 0.0,
    delay: int | Sequence[int] = 0,
    inverted: bool | Sequence[bool] = False,
    rate: float = 1.0,
    phase: Literal["recursive", "linear"] = "recursive",
    taps: int | None = None,
    tail: float | None = None,
) -> EqualizerTaps: ...
def read_equalizer(source: str | os.PathLike[str]) -> list[dict[str, Any]] | NDArray[np.float64]: ...

def deconvolve(recording: ArrayLike, signal: ArrayLike) -> NDArray[np.float64]: ...

class Bank:
    block: int
    in_channels: int
    out_channels: int
    n_taps: int
    def __init__(
        self,
        taps: _Samples | int | None = None,
        n_taps: int | None = None,
        *,
        slots: int | None = None,
        in_channels: int | None = None,
        out_channels: int | None = None,
        block: int = 64,
        latency: int = 0,
        dtype: _Type = None,
        taps_dtype: _Type = None,
        sample_rate: float | None = None,
        device: str = "cpu",
        error_budget: float | None = None,
    ) -> None: ...
    def filter(self, taps: _Samples) -> Filter: ...
    def open(self, filter: Filter | None = None) -> int: ...
    def close(self, slot: int) -> None: ...
    def swap(self, slot: int, filter: Filter, fade: int = 0) -> None: ...
    def state(self, slot: int) -> Literal["free", "open", "swapping", "closing"]: ...
    def lead(self, slot: int) -> int: ...
    def input(self, slot: int) -> NDArray[Any]: ...
    def output(self, slot: int) -> NDArray[Any]: ...
    def process(self) -> None: ...
    @property
    def status(self) -> Exception | None: ...
    @property
    def latency(self) -> int: ...
    def explain(self) -> str: ...
    def stats(self) -> Stats: ...

class ChannelFilter:
    def __init__(self, channelizer: Channelizer, pointer: Any, description: str) -> None: ...

class AdaptiveFilter:
    block: int
    latency: int
    def __init__(
        self,
        taps: int,
        *,
        channels: int = 1,
        block: int = 256,
        whole_blocks: bool = False,
        control: Literal["state-space", "nlms", "fixed"] = "state-space",
        constraint: Literal["rotating", "every", "none"] = "rotating",
        step: float = 0.0,
        gain: float = 0.0,
        drift: float = 0.0,
        silence: float = 0.0,
        dtype: _Type = "f32",
    ) -> None: ...
    def process(self, near_end: _Samples, far_end: _Samples) -> NDArray[Any]: ...
    @property
    def taps(self) -> NDArray[Any]: ...
    @property
    def stats(self) -> dict[str, float]: ...
    def freeze(self, frozen: bool = True) -> None: ...
    def save(self) -> bytes: ...
    def restore(self, state: bytes) -> None: ...
    def reset(self) -> None: ...

class Channelizer:
    def __init__(
        self,
        n_taps: int,
        *,
        channels: int = 1024,
        stride: int = 1,
        sample_rate: float = 1.0,
        block: int | None = None,
        dtype: _Type = "cf32",
        threads: int = 1,
    ) -> None: ...
    @property
    def block(self) -> int: ...
    @property
    def overlap(self) -> int: ...
    @property
    def position(self) -> int: ...
    def filter(
        self, taps: _Samples, *, stride: int = 1, up: int = 1, bandwidth: float | None = None
    ) -> ChannelFilter: ...
    def open(self, filter: ChannelFilter, centre: float) -> int: ...
    def change(
        self, channel: int, filter: ChannelFilter | None = None, centre: float = 0.0, fade: int = 0
    ) -> None: ...
    def close(self, channel: int) -> None: ...
    def process(self, x: _Samples) -> dict[int, NDArray[Any]]: ...
    def reset(self, position: int = 0) -> None: ...

class Spectrum:
    def __init__(self, x: _Samples, block: int = 0, *, device: str = "cpu", threads: int | None = None) -> None: ...
    def __len__(self) -> int: ...
    @property
    def block(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def convolve(
        self, h: Spectrum | _Samples, mode: Literal["full", "same", "valid"] | slice = "full", out: _Out | None = None
    ) -> Any: ...
    def correlate(
        self,
        h: Spectrum | _Samples,
        mode: Literal["full", "same", "valid"] = "full",
        lags: _Lags | None = None,
        out: _Out | None = None,
    ) -> Any: ...

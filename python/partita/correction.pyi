# SPDX-License-Identifier: MIT
from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Report", "average", "house_curve", "invert", "match", "smooth"]

_Mean: TypeAlias = Literal["energy", "vector"]

class Report(NamedTuple):
    boost: float
    boost_frequency: float
    attenuation: float
    attenuation_frequency: float
    before_max: float
    before_rms: float
    after_max: float
    after_rms: float
    delay: float
    pre_ringing: float
    pre_time: float
    sine_gain: float
    safe_gain: float
    level: float
    arrival: float

def invert(
    responses: ArrayLike,
    rate: float,
    taps: int = 65536,
    *,
    phase: Literal["minimum", "linear", "mixed"] = "minimum",
    target: ArrayLike | str | None = None,
    low: float | None = None,
    high: float | None = None,
    edge: float | None = None,
    boost: float | None = None,
    attenuation: float | None = None,
    smoothing: float | None = None,
    window: float | None = None,
    mean: _Mean = "energy",
    phase_limit: float | None = None,
    pre_time: float | None = None,
    pre_level: float | None = None,
) -> tuple[NDArray[np.float64], Report]: ...

def average(
    responses: ArrayLike,
    rate: float,
    *,
    mean: _Mean = "energy",
    smoothing: float | None = None,
    window: float | None = None,
    low: float | None = None,
    high: float | None = None,
) -> NDArray[np.float64]: ...

def smooth(
    response: ArrayLike, rate: float, smoothing: float = 3, *, window: float | None = None
) -> NDArray[np.float64]: ...

def match(reports: Iterable[Report]) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

def house_curve(name: str) -> NDArray[np.float64]: ...

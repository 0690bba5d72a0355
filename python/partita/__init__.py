# SPDX-License-Identifier: MIT
"""
Linear filters for streams, signals of any length and layers of images.

Stream
    filters a signal without end, frame by frame.
Plan, Problem, Filter
    say what to compute and how, for bounded signals and layers, forward and backward.
Bank
    many streams at once.
Spectrum
    one long signal in many convolutions and correlations.
explain
    says which algorithm is chosen and why.
signal
    functions with the names and arguments of scipy.signal.
nn
    layers of PyTorch.
"""
import importlib

from partita._errors import DeviceError, StateError, UnsupportedError
from partita._partita import lib as _lib
from partita._problem import Problem
from partita._options import Device, Wisdom, devices, get_threads, library_version, set_threads
from partita._plan import Filter, Load, Plan, Saved
from partita._stream import Stats, Stream
from partita._bank import Bank
from partita._spectrum import Spectrum
from partita._explain import Engine, Explanation, explain

__version__ = f"{_lib.PARTITA_VERSION_MAJOR}.{_lib.PARTITA_VERSION_MINOR}.{_lib.PARTITA_VERSION_PATCH}"

if library_version() != __version__:
    raise ImportError(f"partita {__version__} found the library in version {library_version()}")

# What partita.signal has, also here; it is imported with the first use.
_SIGNAL = ("convolve", "convolve2d", "correlate", "correlate2d", "correlation_lags", "fftconvolve", "lfilter",
           "oaconvolve", "upfirdn")

__all__ = [
    "Bank", "Device", "DeviceError", "Engine", "Explanation", "Filter", "Load", "Plan", "Problem", "Saved", "Spectrum",
    "StateError", "Stats", "Stream", "UnsupportedError", "Wisdom", "devices", "explain", "get_threads",
    "library_version", "set_threads",
]


def __getattr__(name):
    if name in ("nn", "signal"):
        return importlib.import_module(f"partita.{name}")
    if name in _SIGNAL:
        return getattr(importlib.import_module("partita.signal"), name)
    raise AttributeError(f"module 'partita' has no attribute {name!r}")

# SPDX-License-Identifier: MIT
"""
Linear filters for streams, signals of any length and layers of neural networks.

Stream
    filters a signal without end, frame by frame.
Plan, Problem, Filter
    say what to compute and how, for bounded signals and layers, forward and backward.
Bank
    many streams at once.
AdaptiveFilter
    follows an unknown path: echo cancelling and identification.
Channelizer
    many channels of one signal, each with its own centre, filter and output rate.
Spectrum
    one long signal in many convolutions and correlations.
design, Design
    make the taps of a filter from cutoffs and attenuation, and measure what taps achieve.
equalizer, crossover, read_equalizer
    make taps of peaks, shelves and passes, and of the bands of loudspeakers; read lists of other programs.
correction
    filters that correct loudspeakers in rooms, from measured responses.
deconvolve
    estimates the impulse response between a signal and its recording.
explain
    says which algorithm is chosen and why.
signal
    functions with the names and arguments of scipy.signal: convolve, correlate, lfilter, ... Most are here, too.
ndimage
    filters of images with the names and arguments of scipy.ndimage: correlate, gaussian_filter, sobel, ...
dask
    the functions of `signal` for arrays of dask: chunk by chunk, on one machine or many.
nn
    layers of PyTorch.
jax
    convolutions of JAX, with the arguments of jax.lax.conv_general_dilated.
devices, set_threads, Wisdom
    what the machine has, how many threads a call uses, and what was measured.

Examples
--------
A filter that goes on from call to call, and one call of a whole signal:

>>> import numpy as np
>>> import partita
>>> echo = partita.Stream(np.array([1, 0, 0.5], np.float32))
>>> echo(np.array([1, 2], np.float32)), echo(np.array([0, 0], np.float32))
(array([1., 2.], dtype=float32), array([0.5, 1. ], dtype=float32))
>>> partita.convolve([1, 2, 3], [0, 1, 2])
array([0, 1, 4, 7, 6])
"""
import importlib

try:
    from partita._partita import lib as _lib
except ModuleNotFoundError as absent:
    raise ImportError(f"{__path__[0]} holds the sources of partita without the compiled library; install the package with "
                      "`pip install .` at the root of the checkout, and start Python in another folder") from absent
from partita._errors import DeviceError, StateError, UnsupportedError
from partita._problem import Problem
from partita._options import Device, Wisdom, devices, get_threads, library_version, set_threads
from partita._plan import Filter, Load, Plan, Saved
from partita._stream import Stats, Stream
from partita._adaptive import AdaptiveFilter
from partita._bank import Bank
from partita._channelizer import ChannelFilter, Channelizer
from partita._spectrum import Spectrum
from partita._deconvolve import deconvolve
from partita._design import Achieved, Design, design
from partita._equalizer import EqualizerTaps, crossover, equalizer, read_equalizer
from partita._explain import Engine, Explanation, explain

__version__ = f"{_lib.PARTITA_VERSION_MAJOR}.{_lib.PARTITA_VERSION_MINOR}.{_lib.PARTITA_VERSION_PATCH}"

if library_version() != __version__:
    raise ImportError(f"partita {__version__} found the library in version {library_version()}")

# What partita.signal has, also here; it is imported with the first use.
_SIGNAL = ("convolve", "convolve2d", "correlate", "correlate2d", "correlation_lags", "fftconvolve", "lfilter",
           "oaconvolve", "upfirdn")

__all__ = [
    "Achieved", "AdaptiveFilter", "Bank", "ChannelFilter", "Channelizer", "Design", "Device", "DeviceError", "Engine",
    "EqualizerTaps", "Explanation", "Filter", "Load", "Plan", "Problem", "Saved", "Spectrum", "StateError", "Stats", "Stream",
    "UnsupportedError", "Wisdom", "crossover", "deconvolve", "design", "devices", "equalizer", "explain", "get_threads",
    "library_version", "read_equalizer", "set_threads",
]


def __getattr__(name):
    if name in ("correction", "dask", "jax", "ndimage", "nn", "signal"):
        return importlib.import_module(f"partita.{name}")
    if name in _SIGNAL:
        return getattr(importlib.import_module("partita.signal"), name)
    raise AttributeError(f"module 'partita' has no attribute {name!r}")

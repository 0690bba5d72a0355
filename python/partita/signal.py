# SPDX-License-Identifier: MIT
"""
SciPy's functions for convolution, correlation, FIR filters, resampling and short-time spectra, computed by Partita.

Names, arguments, types of results, exceptions and warnings are those of scipy.signal, so that

    from partita.signal import fftconvolve

replaces the import of SciPy's function. `patched` does the same for programs that cannot be changed. Arrays are NumPy's,
or anything that `numpy.asarray` takes. With a tensor of PyTorch among them the results are tensors, without gradients.
Names that this module does not have, such as firwin, are those of scipy.signal.

SciPy itself is needed only for what the package does not compute: filters with feedback, which decimate has by default,
designs of filters and windows, the transforms of hilbert, stft and istft, and results with more than 256 terms in
types that the library does not have (long double, objects, integers whose sums exceed 2^53) or of more than three axes.
Plans of the last 64 problems are kept.
"""
from partita._signal.convolution import (choose_conv_method, convolve, correlate, correlation_lags, fftconvolve,
                                         oaconvolve)
from partita._signal.fallback import other_names, patched
from partita._signal.filters import lfilter, upfirdn
from partita._signal.pairs import correlate_pairs
from partita._signal.peaks import correlation_peaks
from partita._signal.planar import convolve2d, correlate2d
from partita._signal.rebound import decimate, filtfilt, resample_poly, savgol_filter
from partita._signal.spectra import hilbert, istft, stft
from partita._signal.templates import match_templates

__all__ = ["choose_conv_method", "convolve", "convolve2d", "correlate", "correlate2d",
           "correlate_pairs", "correlation_lags", "correlation_peaks", "decimate", "fftconvolve", "filtfilt", "hilbert",
           "istft", "lfilter", "match_templates", "oaconvolve", "patched", "resample_poly", "savgol_filter", "stft",
           "upfirdn"]
__getattr__ = other_names(__name__, "scipy.signal")

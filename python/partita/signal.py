# SPDX-License-Identifier: MIT
"""
SciPy's functions for convolution, correlation and FIR filters, computed by Partita.

Names, arguments, types of results, exceptions and warnings are those of scipy.signal, so that

    from partita.signal import fftconvolve

replaces the import of SciPy's function. `patched` does the same for programs that cannot be changed. Arrays are NumPy's,
or anything that `numpy.asarray` takes. With a tensor of PyTorch among them the results are tensors, without gradients.

SciPy itself is needed only for what the package does not compute: filters with feedback, and results with more than 256
terms in types that the library does not have (long double, objects, integers whose sums exceed 2^53) or of more than
three axes.

The plans of the last 64 problems are kept, so that a call with the sizes of an earlier one does not plan again.
"""
from partita._signal.convolution import (choose_conv_method, convolve, correlate, correlation_lags, fftconvolve,
                                         oaconvolve)
from partita._signal.fallback import patched
from partita._signal.filters import lfilter, upfirdn
from partita._signal.peaks import correlation_peaks
from partita._signal.planar import convolve2d, correlate2d

__all__ = ["choose_conv_method", "convolve", "convolve2d", "correlate", "correlate2d",
           "correlation_lags", "correlation_peaks", "fftconvolve", "lfilter", "oaconvolve", "patched", "upfirdn"]

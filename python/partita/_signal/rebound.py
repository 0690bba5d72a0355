# SPDX-License-Identifier: MIT
"""SciPy's functions that filter by other functions of SciPy, as copies that call this package's instead."""
import functools

import numpy as np

from partita._signal import axes, filters, general, tensors
from partita._signal.copies import copies
from partita._signal.fallback import scipy_answers

# Names of scipy.ndimage and of scipy.signal, and what numpy.pad calls the same.
_MODES = {"mirror": "reflect", "nearest": "edge", "wrap": "wrap", "constant": "constant"}
PADDINGS = {"odd": {"mode": "reflect", "reflect_type": "odd"}, "even": {"mode": "reflect"}, "constant": {"mode": "edge"}}


def remembered(function):
    """The function, whose last 64 results are kept: filters and windows, of which callers get copies."""
    kept = functools.lru_cache(64, typed=True)(function)

    def call(*args, **kwargs):
        try:
            return kept(*args, **kwargs).copy()
        except TypeError:  # arguments without a hash
            return function(*args, **kwargs)

    return call


@functools.cache
def rebound(name):
    """SciPy's function `name`, built on the functions of this package."""
    needed_by = f"partita.signal.{name}"
    if name == "savgol_filter":
        return copies(needed_by, "scipy.signal._savitzky_golay", convolve1d=lambda theirs: _convolve1d,
                      savgol_coeffs=remembered)[name]
    return copies(needed_by, "scipy.signal._signaltools", firwin=remembered, lfilter=lambda theirs: filters.lfilter,
                  upfirdn=lambda theirs: filters.upfirdn)[name]


def _convolve1d(x, weights, axis, mode, cval=0.0):
    """scipy.ndimage.convolve1d of real samples; the sums are in f64, as there."""
    if x.size == 0:
        return x.copy()
    first, n = weights.size // 2, x.shape[axis]
    axis = range(x.ndim)[axis]
    padded = x.astype(np.float64, copy=False)
    if mode != "constant" or cval != 0:
        widths = axes.along(axis, x.ndim, (weights.size - 1 - first, first), (0, 0))
        fill = {"constant_values": cval} if mode == "constant" else {}
        padded, first = np.pad(padded, widths, _MODES[mode], **fill), weights.size - 1
    taps = weights.reshape(axes.along(axis, x.ndim, -1, 1))
    return general.convolve(padded, taps, {axis: (first, n, 1)}).astype(x.dtype, copy=False)


@tensors.returned
def resample_poly(x, up, down, axis=0, window=("kaiser", 5.0), padtype="constant", cval=None):
    """
    Resample signals by a rational factor with a polyphase filter.

    Parameters, result and errors are those of `scipy.signal.resample_poly`, which designs the filter. `upfirdn` runs it.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import signal
    >>> signal.resample_poly(np.ones(6), 2, 3, padtype="line").round(3)
    array([1., 1., 1., 1.])
    """
    return rebound("resample_poly")(x, up, down, axis, window, padtype, cval)


@tensors.returned
def decimate(x, q, n=None, ftype="iir", axis=-1, zero_phase=True):
    """
    Filter signals with a low pass, and keep every q-th output.

    Parameters, result and errors are those of `scipy.signal.decimate`. With ``ftype="fir"``, or a filter without
    feedback, only outputs that are kept are computed. SciPy computes IIR filters, which are the default.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import signal
    >>> signal.decimate(np.ones(400), 4, ftype="fir").shape
    (100,)
    """
    if isinstance(ftype, str) and ftype == "iir" or np.size(getattr(ftype, "poles", ())):
        return scipy_answers("decimate", filters.RECURSIVE, x, q, n, ftype, axis, zero_phase, error=ImportError)
    return rebound("decimate")(x, q, n, ftype, axis, zero_phase)


@tensors.returned
def savgol_filter(x, window_length, polyorder, deriv=0, delta=1.0, axis=-1, mode="interp", cval=0.0):
    """
    Fit polynomials to signals in a sliding window: their values, or their derivatives, in its middle.

    Parameters, result and errors are those of `scipy.signal.savgol_filter`. Sums are computed in f64, also those of
    samples in f32.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import signal
    >>> signal.savgol_filter(np.arange(6.0)**2, 5, 2, deriv=1).round(6) + 0.0
    array([ 0.,  2.,  4.,  6.,  8., 10.])
    """
    return rebound("savgol_filter")(x, window_length, polyorder, deriv, delta, axis, mode, cval)


def _zero_phase(b, a, x, axis, padtype, edge):
    """filtfilt with so much padding that both passes are one filter, the autocorrelation of b; None in other cases."""
    dtype = np.result_type(b, a, x, np.float64 if np.result_type(b, a).kind in "bui" else b)
    if (x.size == 0 or padtype not in PADDINGS or dtype.char not in "fdFD" or b.ndim != 1 or not -x.ndim <= axis < x.ndim
            or not 0 < b.size - 1 <= edge < x.shape[axis] or not a[0]):
        return None
    axis %= x.ndim
    b = b.astype(np.result_type(b, np.float64)) / a[0]
    taps = general.convolve(b, b[::-1], {0: (0, 2 * b.size - 1, 1)})
    taps = taps.astype(dtype if b.dtype.kind == "c" else dtype.type(0).real.dtype)
    if not np.isfinite(taps).all():
        return None
    padded = np.pad(x, axes.along(axis, x.ndim, (edge, edge), (0, 0)), **PADDINGS[padtype]).astype(dtype, copy=False)
    taps = taps.reshape(axes.along(axis, x.ndim, -1, 1))
    return general.convolve(padded, taps, {axis: (edge + b.size - 1, x.shape[axis], 1)})


@tensors.returned
def filtfilt(b, a, x, axis=-1, padtype="odd", padlen=None, method="pad", irlen=None):
    """
    Filter signals forward and backward, which removes the delay and squares the magnitude of the filter.

    Parameters, result and errors are those of `scipy.signal.filtfilt`. SciPy computes filters with feedback, whose `a` has
    more than one number. Without feedback both passes are one convolution with the autocorrelation of the taps, if the
    signal is extended by as much as the filter remembers.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import signal
    >>> signal.filtfilt([0.5, 0.5], 1, np.arange(8.0))
    array([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    b, a, x = np.atleast_1d(np.asarray(b)), np.atleast_1d(np.asarray(a)), np.asarray(x)
    if a.size > 1:
        return scipy_answers("filtfilt", filters.RECURSIVE, b, a, x, axis, padtype, padlen, method, irlen,
                             error=ImportError)
    y = None
    if isinstance(method, str) and method == "pad" and a.ndim == 1:
        y = _zero_phase(b, a, x, axis, padtype, 3 * b.size if padlen is None else padlen)
    return rebound("filtfilt")(b, a, x, axis, padtype, padlen, method, irlen) if y is None else y

# SPDX-License-Identifier: MIT
"""convolve2d and correlate2d: images with boundaries."""
import numpy as np

from partita._signal import axes, dtypes, tensors
from partita._signal.fallback import scipy_answers
from partita._signal.native import DEFAULTS

# What numpy.pad calls SciPy's boundaries.
_BOUNDARIES = {"fill": "constant", "pad": "constant", "wrap": "wrap", "circular": "wrap", "symm": "symmetric",
               "symmetric": "symmetric"}
_KINDS = "bBhHiIlLqQfdFD?"  # characters of the types that SciPy's functions of images take


def _fill(fillvalue, dtype):
    """The value around the image, in the type of the result. The errors are SciPy's."""
    value = np.asarray(np.nan if fillvalue is None and dtype.kind in "fc" else fillvalue, np.complex128)
    if value.size == 0:
        raise ValueError("`fillvalue` cannot be an empty array.")
    if value.size != 1:
        raise ValueError("`fillvalue` must be scalar or an array with one element.")
    value = value.reshape(())[()]
    if dtype.kind != "c":
        if value.imag != 0:
            raise ValueError("could not cast `fillvalue` directly to the output type (it was first converted to "
                             "complex).")
        value = value.real
    return np.asarray(value).astype(dtype)[()]


def _extended(x, windows, sizes, boundary, fill):
    """The samples that the results depend on: for each axis those from the first window's start to its end."""
    indices, outside = [], []
    for n, m, (first, count) in zip(x.shape, sizes, windows):
        index, beyond = axes.sources(first - (m - 1), first + count, n, boundary)
        indices.append(index)
        outside.append(beyond)
    y = x[np.ix_(*indices)]
    if boundary == "constant":
        y = y.astype(np.result_type(x, fill), copy=False)
        y[outside[0], :] = fill
        y[:, outside[1]] = fill
    return y


def _images(name, in1, in2, mode, boundary, fillvalue):
    correlates = name == "correlate2d"
    x, h = np.asarray(in1), np.asarray(in2)
    if not x.ndim == h.ndim == 2:
        raise ValueError(f"{name} inputs must both be 2-D arrays")
    exchanged = axes.swapped_if_valid(mode, x.shape, h.shape, (0, 1))
    if exchanged:
        x, h = h, x
    if mode not in axes.MODES:
        raise ValueError("Acceptable mode flags are 'valid', 'same', or 'full'.")
    if boundary not in _BOUNDARIES and boundary != "reflect":
        raise ValueError("Acceptable boundary flags are 'fill', 'circular' (or 'wrap'), and 'symmetric' (or 'symm').")
    reason = dtypes.reason_against(x.dtype, h.dtype)
    if reason is None and not (x.dtype.char in _KINDS and h.dtype.char in _KINDS):
        reason = "samples of 16 bits"
    if boundary == "reflect":
        reason = reason or "boundary 'reflect'"
    if reason is None and not np.isfinite(h).all():
        reason = "taps that are not finite, which SciPy multiplies by the fill value, too"
    y = None
    if reason is None:
        boundary = _BOUNDARIES[boundary]
        dtype = np.result_type(x, h)
        fill = _fill(fillvalue, dtype) if boundary == "constant" else 0
        if 0 in (x.size, h.size) and fill == 0:
            return np.zeros([axes.full_window(mode, n, m)[1] for n, m in zip(x.shape, h.shape)], dtype)
        y = None if x.size == 0 else _compute(x, h.conj() if correlates else h, correlates, mode, boundary, fill, dtype)
        if y is None:
            reason = "no samples" if x.size == 0 else "integers that f64 does not hold"
    if reason is not None:
        return scipy_answers(name, reason, in1, in2, mode, boundary, fillvalue)
    return y[::-1, ::-1] if exchanged and correlates else y


def _compute(x, h, correlates, mode, boundary, fill, dtype):
    """The result of both functions: `h` is conjugated for correlation."""
    windows = [axes.full_window(mode, n, m) for n, m in zip(x.shape, h.shape)]
    if correlates:
        h = h[::-1, ::-1]
        if mode == "same":  # one lag later than `correlate` if h has an even size
            windows = [(m // 2, count) for m, (_, count) in zip(h.shape, windows)]
    if mode != "valid" and (boundary != "constant" or fill != 0):
        x = _extended(x, windows, h.shape, boundary, fill)
        windows = [(m - 1, count) for m, (_, count) in zip(h.shape, windows)]
    spans = {a: (*window, 1) for a, window in enumerate(windows)}
    return dtypes.product(x, h, spans, "convolve", DEFAULTS, dtype)


@tensors.returned
def convolve2d(in1, in2, mode="full", boundary="fill", fillvalue=0):
    """
    Convolve two 2-dimensional arrays.

    The result, its type and the errors are those of `scipy.signal.convolve2d`.

    Parameters
    ----------
    in1, in2 : array_like
        The inputs.
    mode : {"full", "same", "valid"}, optional
        As in `convolve`.
    boundary : {"fill", "wrap", "symm"}, optional
        What is around `in1`: `fillvalue`, the array again (circular), or the array mirrored; zeros around an array without
        samples.
    fillvalue : scalar, optional
        The value around `in1` with boundary "fill".

    Returns
    -------
    ndarray
        The convolution.

    Examples
    --------
    >>> from partita import signal
    >>> signal.convolve2d([[1, 2], [3, 4]], [[1, 1]], boundary="wrap", mode="same")
    array([[3, 3],
           [7, 7]])
    """
    return _images("convolve2d", in1, in2, mode, boundary, fillvalue)


@tensors.returned
def correlate2d(in1, in2, mode="full", boundary="fill", fillvalue=0):
    """
    Cross-correlate two 2-dimensional arrays.

    The result, its type and the errors are those of `scipy.signal.correlate2d`. In mode "same" with a template of even
    size its results are one lag later than those of `correlate`.

    Parameters
    ----------
    in1, in2, mode, boundary, fillvalue
        As in `convolve2d`; `in2` is the template, which is conjugated.

    Returns
    -------
    ndarray
        The correlation.

    Examples
    --------
    >>> from partita import signal
    >>> signal.correlate2d([[0, 1, 2, 0]], [[1, 2]], mode="valid")
    array([[2, 5, 2]])
    """
    return _images("correlate2d", in1, in2, mode, boundary, fillvalue)

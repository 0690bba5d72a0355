# SPDX-License-Identifier: MIT
"""Types of samples: what the library computes in, what SciPy returns, and integers, whose sums are exact."""
import math

import numpy as np

from partita._signal import general, native, sums

_NATIVE_KINDS = "biufc"
_SUMMED_KINDS = "biufcO"
_LONG = (np.dtype(np.longdouble), np.dtype(np.clongdouble))
_EXACT = 2**53  # integers up to this are numbers of f64
# Bound of the rounding error of a result that transforms compute, in units of 2^-53 times the norms of both operands.
# Three transforms of 2^30 points err by less than 3 * 30 * 7 such units (Higham, Accuracy and Stability of Numerical
# Algorithms, 24.2), Winograd's sums by less than that.
_TRANSFORM_UNITS = 1000
_SURE = 0.25  # an error below this leaves no doubt which integer is meant


def reason_against(*dtypes):
    """Why SciPy has to answer for samples of these types; None if the package does."""
    for dtype in dtypes:
        if dtype.newbyteorder("=") in _LONG:
            return "long double"
        if dtype.kind not in _NATIVE_KINDS:
            return f"samples of {dtype.name}"
    return None


def summed(x, h, spans):
    """Whether NumPy sums what the library does not compute: few terms of long double, objects, any integers."""
    return all(v.dtype.kind in _SUMMED_KINDS for v in (x, h)) and sums.few(x, h, spans)


def real(name, x):
    """An array of real numbers, with NaN where a masked one has no sample."""
    dtype = np.result_type(x.dtype, np.float32)
    if dtype.kind != "f":
        raise TypeError(f"{name} has samples of {x.dtype}: real ones are needed, as those of {name}.real")
    return x.astype(dtype).filled(np.nan) if np.ma.isMaskedArray(x) else np.asarray(x)


def working(x, precision):
    """x in single or double precision, real or complex as it is."""
    double = precision == 8
    if x.dtype.kind == "c":
        return x.astype(np.complex128 if double else np.complex64, copy=False)
    return x.astype(np.float64 if double else np.float32, copy=False)


def precision_of(dtype):
    """Bytes of the scalars in which results of a type are computed."""
    return 4 if dtype in (np.float16, np.float32, np.complex64) else 8


def transform_type(dtype):
    """The type in which scipy.fft takes samples of a type."""
    if dtype.kind in "biu":
        return np.dtype(np.float64)
    return np.dtype(np.float32) if dtype == np.float16 else dtype.newbyteorder("=")


def magnitude(x):
    """The largest absolute value of an array, exact if it holds integers."""
    if x.dtype.kind in "fc":
        return float(np.abs(x).max())
    return max(int(x.max()), -int(x.min()))


def direct_engine(options):
    """The same options with the engine that computes each result as a sum of its own."""
    device = options.device or "cpu"
    return options._replace(engine=f"{device.split(':')[0]}/direct")


def integers(x, h, spans, op, options):
    """An exact result for integers and booleans, None if it may not fit into the integers of f64.

    Small work and forced engines sum directly: all partial sums are integers of f64. Large work may be transformed if
    the rounding error is bounded well below 1/2; it is computed again directly if the results are not near integers.
    """
    dtype = np.result_type(x, h)
    if not spans:
        return x * h
    if dtype.kind == "b":
        x, h = x.view(np.uint8), h.view(np.uint8)
    if magnitude(x) * magnitude(h) * math.prod(min(x.shape[a], h.shape[a]) for a in spans) >= _EXACT:
        return None
    x, h = x.astype(np.float64), h.astype(np.float64)
    if general.is_one_shot(x, h, spans, options):
        y = general.convolve(x, h, spans, op)
    else:
        y = _rounded(x, h, spans, op, options)
    if dtype.kind == "b":
        return y != 0
    return y.astype(np.int64).astype(dtype, copy=False)  # beyond the type's range results wrap as sums in it do


def _rounded(x, h, spans, op, options):
    """A result of integers in f64, by any engine whose rounding errors are surely too small to matter."""
    norms = float(np.linalg.norm(x.reshape(-1))) * float(np.linalg.norm(h.reshape(-1)))
    if options.engine is None and norms * _TRANSFORM_UNITS * 2.0**-53 < _SURE:
        y = general.convolve(x, h, spans, op, options)
        rounded = np.rint(y)
        if float(np.abs(y - rounded).max()) <= _SURE:
            return rounded
    return general.convolve(x, h, spans, op, direct_engine(options))


def product(x, h, spans, op, options, dtype):
    """A convolution or correlation in the type `dtype`, native; None for integers that f64 does not hold, if results have
    many terms."""
    if dtype.kind not in "biu":
        return floats(x, h, spans, op, options, dtype)
    y = integers(x, h, spans, op, options)
    return sums.convolve(x, h, spans, op, dtype) if y is None and sums.few(x, h, spans) else y


def floats(x, h, spans, op, options, dtype, out=None):
    """A result of real or complex samples in the type `dtype`."""
    precision = precision_of(dtype)
    target = None
    if out is not None and dtype in native.NAMES and general.suits(out, x, h, spans, dtype):
        target = out
    y = general.convolve(working(x, precision), working(h, precision), spans, op, options, target)
    return y.astype(dtype, copy=False)

# SPDX-License-Identifier: MIT
"""convolve, correlate, fftconvolve, oaconvolve, correlation_lags and choose_conv_method."""
import cmath
import math
import timeit
import warnings

import numpy as np

from partita._errors import UnsupportedError
from partita._partita import lib
from partita._problem import limits
from partita._signal import axes as _axes
from partita._signal import dtypes, general, native, sums, tensors
from partita._signal.fallback import scipy_answers

_one_shot, _CONVOLVE, _CORRELATE = native.one_shot, lib.partita_convolve, lib.partita_correlate
_METHODS = ("auto", "direct", "fft")
_BAD_METHOD = "Acceptable method flags are 'auto', 'direct', or 'fft'."
_BAD_MODE = "Acceptable mode flags are 'valid', 'same', or 'full'"
_NOT_FINITE = ("Use of fft convolution on input with NAN or inf results in NAN or inf output. Consider using "
               "method='direct' instead.")


def _spans(mode, x, h, listed, window=None):
    """Windows of the axes that have to be convolved. Where one array has a single item the other is multiplied by it."""
    if window is not None:
        if len(listed) != 1:
            raise ValueError(f"a window of the result needs one axis, not {len(listed)}: name it by axes")
        return {listed[0]: (window[0], window[1] - window[0], 1)}
    return {a: (*_axes.full_window(mode, x.shape[a], h.shape[a]), 1)
            for a in _axes.shared(x, h, listed)}


def _compute(op, x, h, mode, method, listed, window, out, options):
    """A convolution or correlation of arrays that are checked, or why it is not computed here.

    `h` of a correlation is as the caller gave it.
    """
    if x.size == 0 or h.size == 0:
        return None, "no samples"
    spans = _spans(mode, x, h, listed, window)
    if op == "correlate":
        h = h[tuple(slice(None, None, -1 if a in listed and a not in spans else None) for a in range(h.ndim))]
    h = _axes.narrow(mode, x, h, [a for a in listed if a not in spans])
    if (method == "direct" and options.engine is None and spans
            and (x.ndim > 1 or general.Layout(x, h, spans).products() > native.SMALL_COMPLEX)):
        options = dtypes.direct_engine(options)
    dtype = np.result_type(x.dtype, h.dtype)
    reason = dtypes.reason_against(x.dtype, h.dtype)
    if reason is None and len(spans) > general.MAX_AXES:
        reason = f"more than {general.MAX_AXES} axes"
    if reason is None and dtype.kind in "biu":
        y = dtypes.integers(x, h, spans, op, options)
        if y is not None:
            return y, None
        reason = "integers that f64 does not hold"
    if reason is not None:
        if dtypes.summed(x, h, spans):
            return sums.convolve(x, h, spans, op, dtype), None
        return None, reason
    y = dtypes.floats(x, h, spans, op, options, dtype, out)
    if method == "fft" and not np.isfinite(y).all():
        warnings.warn(_NOT_FINITE, RuntimeWarning, stacklevel=3)
    return y, None


def _delivered(name, y, reason, given, out, **extended):
    """The result, or SciPy's where there is a reason for it and no argument of the caller's is an extension."""
    if reason is not None and any(extended.values()):
        names = ", ".join(argument.replace("_", " ") for argument, used in extended.items() if used)
        raise UnsupportedError(f"partita.signal.{name}: {reason}: not with {names}")
    return _axes.deliver(y if reason is None else scipy_answers(name, reason, *given), out)


def convolve(in1, in2, mode="full", method="auto", *, axes=None, out=None, threads=None, device=None, engine=None):
    """
    Convolve two N-dimensional arrays.

    The result, its type and the errors are those of `scipy.signal.convolve`. Arguments after `method` are additions.

    Parameters
    ----------
    in1 : array_like
        First input.
    in2 : array_like
        Second input, with as many dimensions as `in1`.
    mode : {"full", "same", "valid"} or slice, optional
        "full" is the whole convolution. "same" is its centre, of the size of `in1`. "valid" holds the results that need
        no zeros around the arrays; one array must then be at least as large as the other along every axis.
        ``slice(a, b)`` computes only these results of the full convolution, which is zero outside its bounds, at the
        cost of the slice.
    method : {"auto", "direct", "fft"}, optional
        "auto" and "fft" leave the choice of the algorithm to the planner; "direct" computes each result as a sum of its
        own.
    axes : int or sequence of int, optional
        Axes to convolve, by default all. Other axes are broadcast: their sizes are equal, or one of them is 1.
    out : ndarray, optional
        Where the result is stored, of its shape and type.
    threads : int, optional
        Threads of the call. By default as many as the work pays for.
    device : str, optional
        "cpu" (the default), "cuda" or "cuda:N".
    engine : str, optional
        The algorithm, for example "cpu/overlap-save", instead of the planner's choice.

    Returns
    -------
    ndarray
        Of the type that NumPy's rules give for both inputs. Integers give exact integers, which wrap as NumPy's do.

    Warns
    -----
    RuntimeWarning
        If ``method="fft"`` and the result is not finite. Other than in SciPy only results that depend on an infinite or
        NaN sample are affected by it, with every method; only if the shorter input has more than 256 such samples are
        results at the ends NaN, too.

    See Also
    --------
    correlate, fftconvolve, oaconvolve

    Notes
    -----
    Real taps of complex signals stay real, which takes half the work. Types that the library does not have (long
    double, objects such as decimal.Decimal), integers whose sums may exceed 2^53, and more than three axes are summed
    term by term with NumPy; above 256 terms SciPy is called, which must be installed then.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import signal
    >>> signal.convolve([1, 2, 3], [0, 1, 2])
    array([0, 1, 4, 7, 6])
    >>> signal.convolve(np.ones(1000), np.ones(20), mode=slice(500, 503))
    array([20., 20., 20.])
    """
    if axes is out is threads is device is engine is None and method == "auto":
        y = _one_shot(_CONVOLVE, in1, in2, mode)
        if y is not None:
            return y
    if tensors.given(in1, in2, out):
        return tensors.call(convolve, in1, in2, mode, method, axes=axes, out=out, threads=threads, device=device,
                            engine=engine)
    x, h = np.asarray(in1), np.asarray(in2)
    if x.ndim == h.ndim == 0:
        return x * h
    if x.ndim != h.ndim:
        raise ValueError("volume and kernel should have the same dimensionality")
    listed = _axes.listed(axes, x.ndim)
    window = limits(mode, "mode") if isinstance(mode, (slice, range)) else None
    if _axes.swapped_if_valid(mode, x.shape, h.shape, listed if axes is None else _axes.shared(x, h, listed)):
        x, h = h, x
    if method not in _METHODS:
        raise ValueError(_BAD_METHOD)
    if window is None and mode not in _axes.MODES:
        raise ValueError({"auto": f"{_BAD_MODE}, not mode={mode}", "direct": f"{_BAD_MODE}.",
                          "fft": _BAD_MODE.lower()}[method])
    _axes.check_broadcast(x.shape, h.shape, listed)
    y, reason = _compute("convolve", x, h, mode, method, listed, window, out, native.Options(threads, device, engine))
    return _delivered("convolve", y, reason, (in1, in2, mode, method), out, axes=axes is not None,
                      a_slice=window is not None)


def correlate(in1, in2, mode="full", method="auto", *, axes=None, lags=None, normalise=False, out=None, threads=None,
              device=None, engine=None):
    """
    Cross-correlate two N-dimensional arrays.

    The result, its type and the errors are those of `scipy.signal.correlate`. Arguments after `method` are additions.

    Parameters
    ----------
    in1 : array_like
        First input.
    in2 : array_like
        Second input, the template, with as many dimensions as `in1`. It is conjugated.
    mode : {"full", "same", "valid"}, optional
        As in `convolve`. The lags of the results are those of `correlation_lags`.
    method : {"auto", "direct", "fft"}, optional
        As in `convolve`.
    axes : int or sequence of int, optional
        Axes to correlate, by default all. Other axes are broadcast, so that rows of arrays are correlated with each
        other, or all with one template.
    lags : (int, int) or range, optional
        Computes only these lags, the second one excluded, of one axis, at the cost of these lags.
    normalise : bool or "zero-mean", optional
        Divides each lag by the norms of the template and of the signal under it: magnitudes are at most 1, but for
        rounding, at any level of both. "zero-mean" subtracts the mean of the template and that of the signal under it
        first, so that an offset hides no template: Pearson's coefficient, 0 where one of them is constant. Zeros beyond
        the ends of the signal count. For one axis.
    out, threads, device, engine : optional
        As in `convolve`.

    Returns
    -------
    ndarray
        ``y[lag] = sum over i of in1[i + lag] * conj(in2[i])``.

    See Also
    --------
    correlation_lags : the lags of the results

    Examples
    --------
    The delay of a signal, looked for among small delays only:

    >>> import numpy as np
    >>> from partita import signal
    >>> x = np.random.default_rng(1).standard_normal(10000)
    >>> y = np.concatenate([np.zeros(25), x])
    >>> lags = range(-100, 101)
    >>> lags[np.argmax(signal.correlate(y, x, lags=lags))]
    25
    >>> float(round(signal.correlate(y, x, lags=(25, 26), normalise=True)[0], 3))
    1.0
    """
    if axes is lags is out is threads is device is engine is None and method == "auto" and not normalise:
        y = _one_shot(_CORRELATE, in1, in2, mode)
        if y is not None:
            return y
    if tensors.given(in1, in2, out):
        return tensors.call(correlate, in1, in2, mode, method, axes=axes, lags=lags, normalise=normalise, out=out,
                            threads=threads, device=device, engine=engine)
    x, h = np.asarray(in1), np.asarray(in2)
    if x.ndim == h.ndim == 0:
        return x * h.conj()
    if x.ndim != h.ndim:
        raise ValueError("in1 and in2 should have the same dimensionality")
    if mode not in _axes.MODES:
        raise ValueError(_BAD_MODE + ".")
    if method not in _METHODS:
        raise ValueError(_BAD_METHOD)
    listed = _axes.listed(axes, x.ndim)
    zero_mean = is_zero_mean(normalise)
    window = None if lags is None else limits(lags, "lags")
    exchanged = window is None and _axes.swapped_if_valid(
        mode, x.shape, h.shape, listed if axes is None else _axes.shared(x, h, listed))
    _axes.check_broadcast(x.shape, h.shape, listed)
    options = native.Options(threads, device, engine, zero_mean)
    reason = dtypes.reason_against(x.dtype, h.dtype) or ("no samples" if 0 in (x.size, h.size) else None)
    if normalise:
        y = _normalised(x, h, mode, listed, window, options) if reason is None else None
    else:
        if window is not None and len(listed) == 1:
            behind = h.shape[listed[0]] - 1
            window = window[0] + behind, window[1] + behind
        if exchanged:  # the template is the longer one: the same as its conjugate, backwards, convolved with in1
            x, h, op = general.reverse_conj(h, listed), x, "convolve"
        else:
            op = "correlate"
        y, reason = _compute(op, x, h, mode, method, listed, window, out, options)
    return _delivered("correlate", y, reason, (in1, in2, mode, method), out, axes=axes is not None,
                      lags=lags is not None, normalise=normalise)


def is_zero_mean(normalise):
    """Whether means are subtracted before correlations are divided by norms."""
    if isinstance(normalise, str) and normalise != "zero-mean":
        raise ValueError(f"normalise = {normalise!r}: False, True or 'zero-mean'")
    return isinstance(normalise, str)


def _normalised(x, h, mode, listed, window, options):
    """Normalised correlation of one axis, item after item along the others."""
    if len(listed) != 1:
        raise UnsupportedError(f"normalise needs one axis, not {len(listed)}: name it by axes")
    dtype = np.result_type(x.dtype, h.dtype, np.float32 if dtypes.precision_of(np.result_type(x, h)) == 4 else np.float64)
    x, h = (np.moveaxis(v, listed[0], -1) for v in (x, h))
    n, m = x.shape[-1], h.shape[-1]
    if window is None:
        first, count = _axes.full_window(mode, n, m)
        window = first - (m - 1), first - (m - 1) + count
    lead = np.broadcast_shapes(x.shape[:-1], h.shape[:-1])
    x, h = (np.broadcast_to(v, lead + v.shape[-1:]) for v in (x, h))
    y = np.empty(lead + (window[1] - window[0],), dtype)
    for i in np.ndindex(*lead):
        one, template = (np.require(v[i], dtype, "CA") for v in (x, h))
        native.range_of(lib.partita_correlate_normalised, y[i], one, template, window[0], options)
    return np.ascontiguousarray(np.moveaxis(y, -1, listed[0]))


def correlation_lags(in1_len, in2_len, mode="full", *, lags=None):
    """
    Lags of the results of `correlate` for one axis.

    Parameters
    ----------
    in1_len, in2_len : int
        Sizes of the inputs.
    mode : {"full", "same", "valid"}, optional
        The mode of the correlation.
    lags : (int, int) or range, optional
        The lags that `correlate` was asked for, instead of a mode.

    Returns
    -------
    ndarray of int
        One lag for each result.

    Notes
    -----
    The results are SciPy's. If `in1_len` is odd and `in2_len` even, those of mode "same" are one more than the lag by
    which the arrays are shifted.

    Examples
    --------
    >>> from partita import signal
    >>> signal.correlation_lags(3, 2)
    array([-1,  0,  1,  2])
    """
    if lags is not None:
        return np.arange(*limits(lags, "lags"))
    if mode == "full":
        return np.arange(1 - in2_len, in1_len)
    if mode == "same":
        lags = range(1 - in2_len, in1_len)
        first = len(lags) // 2 - in1_len // 2
        lags = lags[first:first + in1_len]  # first < 0 counts from the end, as in SciPy
        return np.arange(lags.start, lags.stop)
    if mode == "valid":
        return np.arange(min(in1_len - in2_len, 0), max(in1_len - in2_len, 0) + 1)
    raise ValueError(f"Mode {mode} is invalid")


def _frequency(name, in1, in2, mode, axes):
    """fftconvolve and oaconvolve: floating point results whatever the inputs are, and axes."""
    if axes is None:
        y = _one_shot(_CONVOLVE, in1, in2, mode)
        if y is not None:
            return y
    if tensors.given(in1, in2):
        return tensors.call(_frequency, name, in1, in2, mode, axes)
    x, h = np.asarray(in1), np.asarray(in2)
    if x.ndim == h.ndim == 0:
        return x * h
    if x.ndim != h.ndim:
        raise ValueError("in1 and in2 should have the same dimensionality")
    if x.size == 0 or h.size == 0:
        return np.asarray([])
    reason = dtypes.reason_against(x.dtype, h.dtype)
    listed = _axes.shared(x, h, _axes.listed(axes, x.ndim))
    _axes.check_broadcast(x.shape, h.shape, listed)
    if _axes.swapped_if_valid(mode, x.shape, h.shape, listed):
        x, h = h, x
    if mode not in _axes.MODES:
        raise ValueError(_BAD_MODE.lower())
    if len(listed) > general.MAX_AXES:
        reason = reason or f"more than {general.MAX_AXES} axes"
    spans = _spans(mode, x, h, listed)
    if reason is not None and ("O" in (x.dtype.kind, h.dtype.kind) or not dtypes.summed(x, h, spans)):
        return scipy_answers(name, reason, in1, in2, mode, axes)
    # SciPy takes the centre along all axes, also along those that are broadcast (its issue 21876).
    h = _axes.narrow(mode, x, h, [a for a in range(x.ndim) if a not in spans])
    if not spans:
        return x * h
    dtype = np.result_type(dtypes.transform_type(x.dtype), dtypes.transform_type(h.dtype))
    if reason is not None:
        return sums.convolve(x, h, spans, "convolve", dtype)
    return dtypes.floats(x, h, spans, "convolve", native.DEFAULTS, dtype)


def fftconvolve(in1, in2, mode="full", axes=None):
    """
    Convolve two N-dimensional arrays; results are floating point.

    The result, its type and the errors are those of `scipy.signal.fftconvolve`. The planner chooses the algorithm, as in
    `convolve`.

    Parameters
    ----------
    in1, in2 : array_like
        The inputs, with equal numbers of dimensions.
    mode : {"full", "same", "valid"}, optional
        As in `convolve`.
    axes : int or sequence of int, optional
        Axes to convolve, by default all. Other axes are broadcast. In mode "same" the result has nevertheless the shape
        of `in1`, as SciPy's has: of several items of `in2` for one of `in1` only the middle one is used. `convolve` keeps
        them all.

    Returns
    -------
    ndarray
        Integers give results of float64.

    Notes
    -----
    As in `convolve`, only results that depend on an infinite or NaN sample are not finite; SciPy's are then all NaN, with
    a warning.

    Examples
    --------
    >>> from partita import signal
    >>> signal.fftconvolve([1, 2, 3], [0, 1, 2])
    array([0., 1., 4., 7., 6.])
    """
    return _frequency("fftconvolve", in1, in2, mode, axes)


def _is_spoilt(y, in1, in2):
    """Whether an infinite sample has spoilt results: beside each other as many as the shorter operand has samples."""
    seen = y[::min(len(in1), len(in2))] if y.ndim == 1 else y.ravel()
    with np.errstate(all="ignore"):
        finite = cmath.isfinite(seen.dot(seen)) and cmath.isfinite(y.item(-1))
    return not finite and any(np.isinf(v).any() for v in (in1, in2))


def oaconvolve(in1, in2, mode="full", axes=None):
    """
    Convolve two N-dimensional arrays; results are floating point.

    The same as `fftconvolve`: the planner chooses overlap-add where it is fastest. The result, its type and the errors
    are those of `scipy.signal.oaconvolve`.

    Parameters
    ----------
    in1, in2, mode, axes
        As in `fftconvolve`.

    Returns
    -------
    ndarray
        Integers give results of float64.

    Warns
    -----
    RuntimeWarning
        If a sample is infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import signal
    >>> signal.oaconvolve(np.ones((2, 4)), np.ones((1, 2)), axes=1)
    array([[1., 2., 2., 2., 1.],
           [1., 2., 2., 2., 1.]])
    """
    y = _frequency("oaconvolve", in1, in2, mode, axes)
    if isinstance(y, np.ndarray) and y.size and _is_spoilt(y, in1, in2):
        warnings.warn("in1 or in2 has an infinite sample: results that depend on it are not finite", RuntimeWarning, 2)
    return y


def choose_conv_method(in1, in2, mode="full", measure=False):
    """
    The fastest method of `convolve` and `correlate`.

    As `scipy.signal.choose_conv_method`, but for this package's functions. There is little use for it:
    ``method="auto"`` chooses among more algorithms than these two.

    Parameters
    ----------
    in1, in2 : array_like
        The inputs.
    mode : {"full", "same", "valid"}, optional
        As in `convolve`.
    measure : bool, optional
        Computes and times both methods instead of predicting which is faster.

    Returns
    -------
    method : {"direct", "fft"}
        "direct" if direct sums are predicted to be fastest, or if the samples are booleans, integers whose sums may
        exceed 2^52, or of a type that the library does not have.
    times : dict
        Seconds of each method. Only if `measure` is true.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import signal
    >>> signal.choose_conv_method(np.ones(100), np.ones(10))
    'direct'
    """
    x, h = np.asarray(in1), np.asarray(in2)
    if measure:
        times = {}
        for method in ("fft", "direct"):
            timer = timeit.Timer(lambda: convolve(x, h, mode, method))
            once = timer.timeit(1)
            runs = max(1, min(1000, int(1e-3 / max(once, 1e-9))))
            times[method] = min([once] + [t / runs for t in timer.repeat(3, runs)])
        return ("fft" if times["fft"] < times["direct"] else "direct"), times
    if mode not in _axes.MODES:
        raise ValueError(_BAD_MODE + f", not mode={mode}")
    if (dtypes.reason_against(x.dtype, h.dtype) or x.dtype.kind == h.dtype.kind == "b" or 0 in (x.size, h.size)
            or x.ndim != h.ndim):
        return "direct"
    if any(v.dtype.kind in "ui" for v in (x, h)):
        if math.prod(dtypes.magnitude(v) for v in (x, h)) * min(x.size, h.size) > 2**52 - 1:
            return "direct"
    if _axes.swapped_if_valid(mode, x.shape, h.shape, range(x.ndim)):
        x, h = h, x
    spans = _spans(mode, x, h, range(x.ndim))
    if not 0 < len(spans) <= general.MAX_AXES:
        return "direct" if not spans else "fft"
    precision = dtypes.precision_of(np.result_type(x, h))
    engine = general.engine_of(dtypes.working(x, precision), dtypes.working(h, precision), spans)
    return "direct" if engine.partition(":")[0] in ("", "cpu/direct", "cpu/gemm") else "fft"

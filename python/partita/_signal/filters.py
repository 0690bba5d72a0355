# SPDX-License-Identifier: MIT
"""lfilter and upfirdn: one filter for all signals along an axis."""
import numpy as np

from partita._signal import axes, dtypes, general, native, sums, tensors
from partita._signal.fallback import scipy_answers

try:
    from numpy.lib.array_utils import normalize_axis_index
except ImportError:  # before NumPy 2
    from numpy.core.multiarray import normalize_axis_index  # type: ignore[no-redef]

_MAX_UP = 2**20  # of the library: problem.up
RECURSIVE = "a filter with feedback"  # the reason why SciPy answers


def _own_type(values, dtype):
    """The type in which one operand of a result in `dtype` is used: what is real stays real."""
    return dtype if values.dtype.kind == "c" else np.empty(0, dtype).real.dtype


def _along(taps, x, axis, window):
    """The window (first, count, stride) of the full convolution of each signal along an axis with the same taps."""
    taps = taps.reshape(axes.along(axis, x.ndim, -1, 1))
    if dtypes.reason_against(x.dtype):
        return sums.convolve(x, taps, {axis: window}, "convolve", np.result_type(x, taps))
    return general.convolve(x, taps, {axis: window})


def _expanded(zi, shape, axis):
    """Initial conditions whose axes of one item stand for all; the errors are SciPy's."""
    if zi.shape != shape and any(have != want and (k == axis or have != 1)
                                 for k, (have, want) in enumerate(zip(zi.shape, shape))):
        raise ValueError(f"Unexpected shape for parameter zi: expected {shape}, found {zi.shape}.")
    return np.broadcast_to(zi, shape)


@tensors.returned
def lfilter(b, a, x, axis=-1, zi=None):
    """
    Filter signals along one axis.

    The result, its type and the errors are those of `scipy.signal.lfilter`. Filters without feedback, whose `a` is one
    number, are computed by this package, others by SciPy if it is installed.

    Parameters
    ----------
    b : array_like
        Coefficients of the input: the taps.
    a : array_like
        Coefficients of the output. `b` is divided by a single one.
    x : array_like
        Signals.
    axis : int, optional
        The axis along which to filter.
    zi : array_like, optional
        What earlier input contributes to the first ``len(b) - 1`` outputs: the `zf` of the call before. Its shape is that
        of `x` with ``len(b) - 1`` along `axis`; other axes may be 1.

    Returns
    -------
    y : ndarray
        As many samples as `x`.
    zf : ndarray
        What the input contributes to later outputs; `zi` if there are no samples. Only if `zi` is given.

    Examples
    --------
    >>> from partita import signal
    >>> signal.lfilter([1, 1], 2.0, [2., 4., 6.])
    array([1., 3., 5.])
    >>> y, zf = signal.lfilter([1., 1.], 1, [2., 4.], zi=[5.])
    >>> y, zf
    (array([7., 6.]), array([4.]))
    """
    b, a, x = np.asarray(b), np.asarray(a), np.asarray(x)  # without the masks of subclasses
    b, a = b if b.ndim else b[None], a if a.ndim else a[None]
    for name, values in (("b", b), ("a", a)):
        if values.ndim != 1 or values.size == 0:
            raise ValueError(f"Parameter {name} is not a non-empty 1d array, since {name}.shape={values.shape!r}!")
    if a.size > 1 and x.size:
        return scipy_answers("lfilter", RECURSIVE, b, a, x, axis, zi)
    if x.ndim == 0:
        raise ValueError("x must be at least 1-D")
    inputs = [b, a, x]
    if zi is not None:
        zi = np.asarray(zi)
        inputs.append(zi)
        if zi.ndim != x.ndim:
            raise ValueError(f"Dimensions of parameters x and zi must match, but x.ndim={x.ndim}, zi.ndim={zi.ndim}!")
    axis = normalize_axis_index(axis, x.ndim)
    if zi is not None:
        zi = _expanded(zi, x.shape[:axis] + (max(a.size, b.size) - 1,) + x.shape[axis + 1:], axis)
    dtype = np.result_type(*inputs)
    if dtype.char not in "fdFDgGO":
        raise NotImplementedError(f"Parameter's dtypes produced result type '{dtype}', which is not supported!")
    reason = dtypes.reason_against(dtype)
    if x.size == 0:
        y = np.empty(x.shape, dtype)
        return y if zi is None else (y, zi.astype(dtype))
    if reason and (dtype.char == "O" or b.size > sums.TERMS):
        return scipy_answers("lfilter", reason, b, a, x, axis, zi)
    taps_type = _own_type(b if a.dtype.kind != "c" else a, dtype)
    taps = b.astype(taps_type) / a.astype(taps_type)[0]
    n, tail = x.shape[axis], taps.size - 1
    y = _along(taps, x.astype(dtype, copy=False), axis, (0, n if zi is None else n + tail, 1))
    if zi is None:
        return y
    index = [slice(None)] * x.ndim
    index[axis] = slice(tail)
    y[tuple(index)] += zi
    index[axis] = slice(n, None)
    zf = y[tuple(index)].copy()
    index[axis] = slice(n)
    return np.ascontiguousarray(y[tuple(index)]), zf


def _extended(x, before, after, mode, cval):
    """Signals of the last axis with so many samples more, as SciPy extends them; None for modes that are not known."""
    n, i = x.shape[-1], np.arange(-before, x.shape[-1] + after)
    padding = {"antisymmetric": "symmetric", "antireflect": "reflect", "smooth": "edge", "line": "edge"}.get(mode, mode)
    if padding not in axes.PADDINGS:
        return None
    at, outside = axes.sources(-before, n + after, n, padding)
    y, first, last, steps = x[..., at], x[..., :1], x[..., -1:], i.astype(x.real.dtype)
    if mode == "constant":
        y[..., outside] = cval
    if mode == "antisymmetric":
        return y * (1 - 2 * (i // n % 2)).astype(x.real.dtype)
    if n == 1:  # no slope
        return y
    if mode in ("smooth", "line"):
        rise = (last - first) / (n - 1)
        begin, end = (rise, rise) if mode == "line" else (x[..., 1:2] - first, last - x[..., -2:-1])
        return np.where(i < 0, first + begin * steps, np.where(i < n, y, last + end * (steps - (n - 1))))
    if mode == "antireflect":  # mirrored at the last value; every period rises by twice the way from end to end
        period = 2 * (n - 1)
        return (np.where(i % period >= n, 2 * last - y, y)
                + 2 * (last - first) * (i // period).astype(x.real.dtype))
    return y


def _resampled(h, bad, x, up, down, axis, begin, n_out):
    """Outputs of a filter at `up` times the rate: n_out of them, each `down`-th from input sample `begin` on."""
    finite = h if bad is None else np.where(bad, 0, h)
    if h.dtype.kind == "c":
        x = x.astype(h.dtype, copy=False)
    x = np.require(np.moveaxis(x, axis, -1), None, "CA")
    n, before = x.shape[-1], h.size - 1 - begin * up
    y = np.empty(x.shape[:-1] + (n_out,), x.dtype)
    problem = (("signal", native.NAMES[x.dtype]), ("taps", native.NAMES[h.dtype]), ("batch", x.size // n),
               ("kernel", h.size), ("size", n), ("up", up), ("stride", down),
               ("pad", ((before, (n_out - 1) * down + h.size - up * n - before),)))
    native.forward(problem, native.DEFAULTS, y, x, np.require(finite, None, "CA"))
    if bad is not None:
        last, shape = x.ndim - 1, (1,) * (x.ndim - 1) + h.shape
        general.add_taps(y, x, h.reshape(shape), bad.reshape(shape), {last: (begin * up, n_out, down)}, up)
    return np.ascontiguousarray(np.moveaxis(y, -1, axis))


def _spoil_flushed(y, bad, n, up, down):
    """NaN in outputs behind the last of n samples where SciPy multiplies a tap that is not finite by a zero."""
    at = down * np.arange(-(-n * up // down), y.shape[-1])
    met = at[:, None] - np.flatnonzero(bad)
    zero = (met % up == 0) & ((met < 0) | (met >= n * up))
    y[..., y.shape[-1] - len(at):][..., zero.any(axis=1)] = np.nan


@tensors.returned
def upfirdn(h, x, up=1, down=1, axis=-1, mode="constant", cval=0):
    """
    Insert zeros, filter, and keep every n-th output.

    The result, its type and the errors are those of `scipy.signal.upfirdn`. Only outputs that are kept are computed, and
    no inserted zero is multiplied.

    Parameters
    ----------
    h : array_like
        The taps, one axis.
    x : array_like
        Signals.
    up, down : int, optional
        Factors of the sample rate.
    axis : int, optional
        The axis along which to filter.
    mode : str, optional
        How the signal is extended: "constant", "edge", "wrap", "symmetric", "reflect", "antisymmetric", "antireflect",
        "smooth" (along the slope of the outermost two samples) or "line" (along the slope from end to end).
    cval : scalar, optional
        The samples around the signal in mode "constant".

    Returns
    -------
    ndarray
        ``((n - 1) * up + len(h) - 1) // down + 1`` samples along the axis.

    Examples
    --------
    >>> from partita import signal
    >>> signal.upfirdn([1, 1, 1], [1, 2, 3], down=2)
    array([1., 6., 3.])
    >>> signal.upfirdn([1, 1], [1, 2, 3], up=2)
    array([1., 1., 2., 2., 3., 3.])
    """
    x, h = np.asarray(x), np.asarray(h)
    if h.ndim != 1 or h.size == 0:
        raise ValueError("h must be 1-D with non-zero length")
    up, down = int(up), int(down)
    if up < 1 or down < 1:
        raise ValueError("Both up and down must be >= 1")
    reason = dtypes.reason_against(h.dtype, x.dtype) or ("no samples" if x.size == 0 or x.ndim == 0 else None)
    if up > _MAX_UP:
        reason = reason or f"up above {_MAX_UP}"
    if reason is None:
        dtype = np.result_type(h.dtype, x.dtype, np.float32)
        axis = range(x.ndim)[axis]
        n_out = ((x.shape[axis] - 1) * up + h.size - 1) // down + 1
        taps, signals, begin = h.astype(_own_type(h, dtype), copy=False), x.astype(_own_type(x, dtype), copy=False), 0
        if mode != "constant" or cval != 0:
            begin = -(-(h.size - 1) // up)
            signals = _extended(np.moveaxis(signals, axis, -1), begin, begin, mode, cval)
            reason = "an extension that is not known" if signals is None else None
    if reason is not None:
        return scipy_answers("upfirdn", reason, h, x, up, down, axis, mode, cval)
    if begin:
        signals = np.moveaxis(signals, -1, axis)
    down = down if n_out > 1 else 1  # the library bounds strides
    bad = general.bad_taps(taps)
    if up == 1:
        y = _along(taps, signals, axis, (begin, n_out, down))
    else:
        y = _resampled(taps, bad, signals, up, down, axis, begin, n_out)
    if bad is not None and not begin:
        _spoil_flushed(np.moveaxis(y, axis, -1), bad, x.shape[axis], up, down)
    return y

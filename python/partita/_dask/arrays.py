# SPDX-License-Identifier: MIT
"""convolve, correlate and oaconvolve of arrays of dask."""
import dataclasses
import functools
import math

import dask.array as da
import numpy as np

from partita._dask import graph, layout, made_by, tasks
from partita._errors import UnsupportedError
from partita._problem import each_axis, limits
from partita._signal import axes as _axes
from partita._signal import dtypes, general
from partita._signal.convolution import is_zero_mean


def _array(name, x):
    """An array of dask, of known chunks and of a type that the library has."""
    if not isinstance(x, da.Array):
        x = da.asarray(x)
    if any(math.isnan(n) for n in x.shape):
        raise ValueError(f"{name} has chunks of unknown size: call compute_chunk_sizes() first")
    if 0 in x.shape or not x.shape:
        raise ValueError(f"{name} has no samples along an axis, or no axes: its shape is {x.shape}")
    reason = dtypes.reason_against(x.dtype)
    if reason is not None:
        raise TypeError(f"{name}: {reason}: convert it to float64 or complex128 first")
    return x


def _operands(in1, in2, axes):
    x, h = _array("in1", in1), _array("in2", in2)
    if x.ndim != h.ndim:
        raise ValueError(f"in1 and in2 should have the same dimensionality, not {x.ndim} and {h.ndim}")
    listed = _axes.listed(axes, x.ndim)
    _axes.check_broadcast(x.shape, h.shape, listed)
    return x, h, listed


def _layout(x, h, windows, parts):
    """The axes of a product. `windows`: the results along those that are convolved (first index, number, distance);
    `parts`: None or imposed sizes."""
    rank = len(windows)
    if rank > general.MAX_AXES:
        raise UnsupportedError(f"{rank} axes to convolve: at most {general.MAX_AXES}; name them by axes=")
    if parts is not None:
        try:
            taps, results = parts
        except (TypeError, ValueError):
            raise ValueError(f"parts = {parts!r}: sizes of the parts of in2 and of the blocks of results") from None
        taps, results = (dict(zip(windows, each_axis("parts", sizes, rank))) for sizes in (taps, results))
    made = []
    for a, (n, m) in enumerate(zip(x.shape, h.shape)):
        if a not in windows:
            made.append(layout.broadcast_axis(n, m))
        else:
            first, count, distance = windows[a]
            part, block = layout.default_parts(rank, m) if parts is None else (taps[a], results[a])
            made.append(layout.Axis(True, n, m, first, count, distance, min(part, m), min(block, count)))
    return tuple(made)


def _product(op, x, h, windows, parts, dtype):
    """Both operands' product as an array of dask, and what it was made of."""
    product = layout.Product(op, np.dtype(dtype), _layout(x, h, windows, parts), x.dtype, made_by.wanted())
    h = graph.checked(h)
    if not windows:
        x = graph.checked(x)
        return x * (h.conj() if op == "correlate" else h), product, h
    h = h.rechunk({a: axis.part if axis.convolved else layout.result_chunks(axis, x.chunks[a])
                   for a, axis in enumerate(product.axes) if axis.convolved or axis.m > 1})
    return graph.Builder(tasks.multiply, product, x, h).array(), product, h


def _convolve(x, h, mode, listed, stride, parts, dtype):
    """A convolution of arrays that are checked."""
    window = limits(mode, "mode") if isinstance(mode, (slice, range)) else None
    if window is None and mode not in _axes.MODES:
        raise ValueError(f"mode = {mode!r}: one of {', '.join(map(repr, _axes.MODES))}, or a slice")
    if window is not None and len(listed) != 1:
        raise ValueError(f"a slice of the result needs one axis, not {len(listed)}: name it by axes")
    stride = dict(zip(listed, each_axis("stride", stride, len(listed))))
    shared = _axes.shared(x, h, listed)
    convolved = [a for a in listed if window is not None or stride[a] > 1 or a in shared]
    if window is None and _axes.swapped_if_valid(mode, x.shape, h.shape, convolved):
        x, h = h, x
    windows = {}
    for a in convolved:
        first, count = _axes.full_window(mode, x.shape[a], h.shape[a]) if window is None else (window[0], window[1] - window[0])
        windows[a] = first, -(-count // stride[a]), stride[a]
    h = _axes.narrow(mode, x, h, [a for a in listed if a not in windows])
    if math.prod(x.shape[a] for a in windows) < math.prod(h.shape[a] for a in windows):
        x, h = h, x  # the longer one is the signal, which is read in windows
    return _product("convolve", x, h, windows, parts, dtype)[0]


def convolve(in1, in2, mode="full", *, axes=None, stride=1, parts=None):
    """
    Convolve two arrays of dask, chunk by chunk.

    The results are those of `partita.signal.convolve`. They are equal bit for bit whatever the chunks of the inputs, the
    scheduler, and the number of workers, as long as all workers have last caches of the same size. A worker with another
    version of this package or another instruction set than the process that calls this raises StateError: `PARTITA_CPU`
    lowers the instruction set, and ``dask.config.set({"partita.instruction-set": "avx512"})`` names that of the workers
    where this process has another one.

    Parameters
    ----------
    in1, in2 : dask.array.Array or array_like
        The inputs, with equal numbers of dimensions. Both may be larger than memory.
    mode : {"full", "same", "valid"} or slice, optional
        As in `partita.signal.convolve`. A slice is for one axis and is computed at the cost of the slice.
    axes : int or sequence of int, optional
        Axes to convolve, at most three; by default all. Other axes are broadcast: a bank of filters ``[filters, taps]``
        filters a signal ``[n]`` as ``convolve(x[None, :], bank, axes=1)``, with the signal's transforms made once for 16
        filters.
    stride : int or sequence of int, optional
        Keep every `stride`-th result of the axes. Others are not computed.
    parts : (int or sequence, int or sequence), optional
        Sizes of the parts of the shorter input, and of the blocks of results, along the convolved axes. These sizes
        determine the last bits of the results. By default they depend on the length of the shorter input alone.

    Returns
    -------
    dask.array.Array
        Lazy. Its chunks along convolved axes are whole blocks, about as many samples as those of the longer input.

    Notes
    -----
    A chunk of results is one task, which reads the samples of the longer input that it depends on. If the shorter one has
    several parts, there is a task for each of them, and tasks that add up to eight arrays in a fixed order. Halos are cut
    from their chunks where these are. docs/many-machines.md has formulas for tasks, bytes moved and memory.

    Integers are exact, as in `partita.signal`; the call that computes them raises UnsupportedError if their sums may
    exceed 2^53. A chunk that has another shape or type than its array says raises ValueError when it is computed.

    Examples
    --------
    >>> import dask.array as da, numpy as np, partita.dask
    >>> x = da.ones(1_000_000, chunks=250_000)
    >>> y = partita.dask.convolve(x, np.ones(20), mode=slice(500, 503))
    >>> y.compute()
    array([20., 20., 20.])
    >>> partita.dask.convolve(x, np.ones(20), "valid", stride=10).shape
    (99999,)
    """
    x, h, listed = _operands(in1, in2, axes)
    if axes is None:  # mode "valid" also compares axes of one item, as SciPy does
        _axes.swapped_if_valid(mode, x.shape, h.shape, range(x.ndim))
    return _convolve(x, h, mode, listed, stride, parts, np.result_type(x.dtype, h.dtype))


def oaconvolve(in1, in2, mode="full", axes=None):
    """
    Convolve two arrays of dask; results are floating point.

    As `convolve`, with the arguments and the type of results of `partita.signal.oaconvolve`.

    Parameters
    ----------
    in1, in2, mode, axes
        As in `convolve`.

    Returns
    -------
    dask.array.Array
        Integers give results of float64.

    Examples
    --------
    >>> import dask.array as da, partita.dask
    >>> partita.dask.oaconvolve(da.asarray([1, 2, 3]), [0, 1, 2]).compute()
    array([0., 1., 4., 7., 6.])
    """
    x, h, listed = _operands(in1, in2, axes)
    dtype = np.result_type(dtypes.transform_type(x.dtype), dtypes.transform_type(h.dtype))
    h = _axes.narrow(mode, x, h, [a for a in range(x.ndim) if a not in listed])  # as SciPy does
    return _convolve(x, h, mode, listed, 1, None, dtype)


def correlate(in1, in2, mode="full", *, axes=None, lags=None, normalise=False, parts=None):
    """
    Cross-correlate two arrays of dask, chunk by chunk.

    The results are those of `partita.signal.correlate`, but for rounding; bit for bit the same whatever the chunks, as
    those of `convolve`.

    Parameters
    ----------
    in1, in2 : dask.array.Array or array_like
        The inputs; `in2`, the template, is conjugated. Both may be larger than memory.
    mode, axes, parts
        As in `convolve`; `parts` are those of `in2`.
    lags : (int, int) or range, optional
        Computes only these lags, the second one excluded, of one axis, at the cost of these lags.
    normalise : bool or "zero-mean", optional
        As in `partita.signal.correlate`, by sums in double: squares of samples must be in its range, and a window whose
        variation is below a millionth of its mean is taken as constant. With "zero-mean" the template must fit into the
        memory of a worker.

    Returns
    -------
    dask.array.Array
        ``y[lag] = sum over i of in1[i + lag] * conj(in2[i])``; `partita.signal.correlation_lags` has the lags.

    Examples
    --------
    >>> import dask.array as da, numpy as np, partita.dask
    >>> x = np.random.default_rng(1).standard_normal(100_000)
    >>> y = da.from_array(np.concatenate([np.zeros(25), x]), chunks=20_000)
    >>> found = partita.dask.correlate(y, x, lags=range(-100, 101), normalise=True)
    >>> int(found.argmax().compute()) - 100
    25
    """
    x, h, listed = _operands(in1, in2, axes)
    if mode not in _axes.MODES:
        raise ValueError(f"mode = {mode!r}: one of {', '.join(map(repr, _axes.MODES))}")
    window = None if lags is None else limits(lags, "lags")
    if (window is not None or normalise) and len(listed) != 1:
        raise ValueError(f"lags= and normalise= need one axis, not {len(listed)}: name it by axes")
    if window is None and not normalise and axes is None:  # as in `convolve`
        _axes.swapped_if_valid(mode, x.shape, h.shape, range(x.ndim))
    dtype = np.result_type(x.dtype, h.dtype)
    if normalise:
        dtype = np.result_type(dtype, np.float32 if dtypes.precision_of(dtype) == 4 else np.float64)
    return _correlate(x, h, mode, listed, window, normalise, parts, dtype)


def _correlate(x, h, mode, listed, lags, normalise, parts, dtype):
    """A correlation of arrays that are checked. An axis of one item is one of the template's or signal's length."""
    convolved = listed if lags is not None or normalise else _axes.shared(x, h, listed)
    h = graph.checked(h)[tuple(slice(None, None, -1 if a in listed and a not in convolved else None) for a in range(h.ndim))]
    windows = {a: (lags[0] + h.shape[a] - 1, lags[1] - lags[0], 1) if lags is not None
               else (*_axes.full_window(mode, x.shape[a], h.shape[a]), 1) for a in convolved}
    if lags is None and not normalise and _axes.swapped_if_valid(mode, x.shape, h.shape, convolved):
        # The template is the longer one: the same as its conjugate, backwards, convolved with in1.
        return _product("convolve", general.reverse_conj(h, convolved), x, windows, parts, dtype)[0]
    h = _axes.narrow(mode, x, h, [a for a in listed if a not in windows])
    if is_zero_mean(normalise):
        h = h.rechunk({listed[0]: -1}).map_blocks(tasks.centred, listed[0], dtype=np.result_type(h.dtype, np.float64))
    # Quotients are formed in double: the sums of a loud passage's neighbours would lose them in f32, or leave its range.
    y, product, h = _product("correlate", x, h, windows, parts, np.result_type(dtype, np.float64) if normalise else dtype)
    return _normalised(y, product, x, h, listed[0], dtype, is_zero_mean(normalise)) if normalise else y


def _normalised(y, product, x, h, axis, dtype, zero_mean):
    """A correlation of one axis, divided by the norms of both operands, of which `h` is without its mean if `zero_mean`."""
    axes = tuple(a if a.convolved else layout.broadcast_axis(a.n, 1 if a.n == 1 else a.m) for a in product.axes)
    wide = dataclasses.replace(product, dtype=np.dtype(np.float64), axes=axes)
    under = graph.Builder(tasks.energies, wide, x, None).array()
    if zero_mean:
        total = graph.Builder(tasks.sums_under, dataclasses.replace(product, axes=axes), x, None).array()
        under = da.map_blocks(tasks.variation, under, total, h.shape[axis], dtype=np.float64)
    ones = tuple((1,) * len(c) if a == axis else c for a, c in enumerate(h.chunks))
    template = h.map_blocks(tasks.energy, axis, dtype=np.float64, chunks=ones)
    template = template.rechunk({axis: -1}).map_blocks(functools.partial(np.sum, axis=axis, keepdims=True),
                                                       dtype=np.float64, chunks=tuple((1,) if a == axis else c for a, c in
                                                                                      enumerate(h.chunks)))
    return da.map_blocks(tasks.normalise, y, under, template, dtype, dtype=dtype)

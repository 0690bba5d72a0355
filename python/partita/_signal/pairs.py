# SPDX-License-Identifier: MIT
"""correlate_pairs: correlations of all pairs of signals, which may be larger than memory."""
import numpy as np

from partita._errors import check, log
from partita._objects import create
from partita._options import get_threads
from partita._partita import ffi, lib
from partita._problem import choice, natural, optional, positive
from partita._signal import dtypes, native, spectra, tensors

_CHUNK = 2**26  # bytes of samples that are read at a time


@tensors.returned
def correlate_pairs(signals, max_lag, *, pairs=None, window=None, overlap=0, stack="linear", power=2, normalise=False,
                    out=None, threads=None, memory=2**31):
    """
    Correlate all pairs of signals at lags from -max_lag to max_lag, and stack the correlations of windows.

    Parameters
    ----------
    signals : array_like
        Real, of shape (signals, samples); `numpy.memmap` and arrays of Zarr, h5py or dask are read in parts. Samples of 16
        bits and float32 are computed in float32, others in float64.
    max_lag : int
        The largest lag.
    pairs : array_like of int, optional
        Rows (i, j) of numbers of signals. By default all with i <= j: ``numpy.column_stack(numpy.triu_indices(n))``.
        Results have the same bits whatever the other pairs, so that processes may share them.
    window, overlap : int, optional
        Samples of a window, and those that it shares with the next; what does not fill a window is not used. By default
        one window has all samples.
    stack : {"linear", "phase-weighted", None}, optional
        The mean over windows, or this times the coherence of their phases to the `power`, or the result of each window.
    normalise : bool or "zero-mean", optional
        Divide each window of a signal by the root of its energy, unless that is 0; "zero-mean" subtracts its mean before.
    out : array_like, optional
        For results, of their shape: an array of NumPy, Zarr or h5py.
    threads : int, optional
        By default what `partita.set_threads` says, or all cores.
    memory : int, optional
        Bytes for sums of pairs. If they are too few for all pairs, the signals are read several times.

    Returns
    -------
    ndarray
        Of shape (pairs, 2*max_lag + 1), without a stack (windows, pairs, 2*max_lag + 1). Element max_lag + l of pair (i, j)
        is the sum of ``signals[i, t] * signals[j, t + l]`` over t, where samples outside the window are zeros.

    Notes
    -----
    A sample that is masked or not finite makes the results of the pairs of its signal NaN, and no others. Besides
    `memory` and results that are not written to `out`, a call needs about 32 * (8 * max_lag + 1024) samples for each
    signal, and 64 MiB.
    Phase-weighted stacks are those of Schimmel and Paulssen, Geophysical Journal International 130 (1997).

    Examples
    --------
    The second signal is the first one, 3 samples later:

    >>> import numpy as np
    >>> from partita import signal
    >>> noise = np.random.default_rng(1).standard_normal(10003)
    >>> y = signal.correlate_pairs([noise[3:], noise[:-3]], 5, pairs=[(0, 1)], normalise=True)
    >>> y.shape, int(y.argmax()) - 5, float(y.max().round(3))
    ((1, 11), 3, 1.0)
    """
    try:
        signals = signals if hasattr(signals, "shape") else np.asarray(signals)
    except ValueError as error:
        raise ValueError(f"signals: {error}") from None
    if len(signals.shape) != 2 or not all(size > 0 for size in signals.shape):
        raise ValueError(f"signals has shape {tuple(signals.shape)}: (signals, samples) is needed")
    n, samples = signals.shape
    dtype, phases = np.result_type(signals.dtype, np.float32), stack == "phase-weighted"
    if native.NAMES.get(dtype) not in ("f32", "f64"):
        raise TypeError(f"signals has samples of {signals.dtype}: real ones of up to 64 bits are needed")
    threads = optional(positive, "threads", threads)
    choice("stack", stack, {"linear": 0, "phase-weighted": 0, None: 0})
    choice("normalise", normalise, {False: 0, True: 0, "zero-mean": 0})
    lags, window = 2 * natural("max_lag", max_lag) + 1, positive("window", samples if window is None else window)
    if window > samples or natural("overlap", overlap) >= window:
        raise ValueError(f"window={window}, overlap={overlap}: at most {samples} samples, and an overlap below the window")
    starts = range(0, samples - window + 1, window - overlap)
    pairs = np.column_stack(np.triu_indices(n)) if pairs is None else np.asarray(pairs)
    pairs = pairs if pairs.size else np.empty((0, 2), int)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu" or ((pairs < 0) | (pairs >= n)).any():
        raise ValueError(f"pairs: rows of two numbers of signals from 0 to {n - 1} are needed")
    shape = (len(pairs), lags) if stack else (len(starts), len(pairs), lags)
    out = np.empty(shape, dtype) if out is None else out
    if tuple(np.shape(out)) != shape:
        raise ValueError(f"out has shape {tuple(np.shape(out))}, not {shape}")
    if not hasattr(out, "dtype") or not np.can_cast(dtype, out.dtype, "same_kind"):
        raise TypeError(f"out must be an array of floating-point numbers: results are of {dtype}")
    length = 1 << (2 * lags + 510).bit_length()  # of transforms: at least 4 max_lag + 512
    block = -(-window // -(-window // min(length - lags + 1, 1 << 24)))
    part = block * max(1, _CHUNK // (n * block * dtype.itemsize))
    rows = max(1, positive("memory", memory) // (dtype.itemsize * (length + 2 * lags) + phases * 64 * lags))
    for first in range(0, len(pairs), rows):
        chosen = slice(first, first + rows)
        numbers = np.ascontiguousarray(pairs[chosen], np.uintp)
        options = ffi.new("struct partita_pairs_options *", {
            "type": native.ONE_SHOT[dtype][0], "signals": n, "max_lag": max_lag, "block": block, "n_pairs": len(numbers),
            "pairs": ffi.from_buffer("size_t []", numbers), "threads": threads or get_threads() or 0, "log": log()})
        sums = ffi.gc(create("pairs", lib.partita_pairs_create, options), lib.partita_pairs_destroy)
        y, total, weights = np.empty((len(numbers), lags), dtype), 0, 0
        for number, start in enumerate(starts):
            spans = [(at, min(at + part, start + window)) for at in range(start, start + window, part)]
            _add(sums, signals, spans, max_lag, dtype, *(_scales(signals, spans, normalise) if normalise else (0, None)))
            if stack != "linear" or start == starts[-1]:
                check(lib.partita_pairs_read(sums, ffi.from_buffer(y), 1 / len(starts) if stack else 1))
            if stack is None:
                out[number, chosen] = y
            elif phases:
                analytic = spectra.hilbert(y)
                size = np.abs(analytic)
                total, weights = total + y, weights + analytic / np.where(size > 0, size, 1)
        if stack:
            out[chosen] = total * np.abs(weights / len(starts))**power if phases else y
        ffi.release(sums)
    return out


def _read(signals, first, end):
    """Samples of all signals. The size of a chunk of dask may not be what its array says."""
    x = signals[:, first:end]
    x = dtypes.real("signals", np.asanyarray(x.compute() if hasattr(x, "compute") else x))  # dask's __array__ omits masks
    if x.shape != (signals.shape[0], end - first):
        raise ValueError(f"signals: samples {first} to {end} have shape {x.shape}; {signals.shape} is the whole array's")
    return x


def _scales(signals, spans, normalise):
    """Means and factors of the signals of a window, of differences from the first sample."""
    start, samples = spans[0][0], spans[-1][1] - spans[0][0]
    mean, energy, centre = 0, 0, _read(signals, start, start + 1).astype(float) * (normalise == "zero-mean")
    for first, end in spans:
        x = _read(signals, first, end) - centre
        mean, energy = mean + x.sum(1, keepdims=True) / samples, energy + (x * x).sum(1, keepdims=True)
    mean = mean * (normalise == "zero-mean")
    energy = np.maximum(energy - mean**2 * samples, 0)
    return centre + mean, 1 / np.sqrt(np.where(energy == 0, np.inf, energy))


def _add(sums, signals, spans, max_lag, dtype, mean, factor):
    """Adds a window by spans of its samples."""
    for first, end in spans:
        before, after = min(first - spans[0][0], max_lag), min(spans[-1][1] - end, max_lag)
        x = _read(signals, first - before, end + after)
        x = (x if factor is None else (x - mean) * factor).astype(dtype, copy=False)
        if x.strides[1] != x.itemsize or x.strides[0] < 0 or x.strides[0] % x.itemsize or not x.flags.aligned:
            x = np.ascontiguousarray(x)
        address = ffi.cast("char *", x.ctypes.data) + before * x.itemsize
        check(lib.partita_pairs_add(sums, address, x.strides[0] // x.itemsize, before, end - first, after))

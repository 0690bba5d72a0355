# SPDX-License-Identifier: MIT
"""match_templates: where thousands of templates of several channels are in a signal."""
import os
import sys

import numpy as np

from partita._arrays import is_tensor
from partita._errors import check, log
from partita._options import get_threads
from partita._partita import ffi, lib
from partita._problem import number, optional, positive
from partita._signal import dtypes

_MATCH = np.dtype([("template", np.intp), ("time", np.int64), ("value", float)])  # as struct partita_match
_LARGEST = 2.0**64  # weight, whose products with correlations stay in the range of single precision
_FARTHEST = 2**24  # distance
_FAR = 2**40  # samples beyond any delay
_PIECE = 2**22  # samples that are searched at a time, and by one task of dask
_ROUNDING = 1e-4  # of single precision, by which a value may exceed the sum of its weights
_GATHERED = 2**20  # samples under matches that are gathered at a time


def match_templates(signal, templates, *, threshold=None, mad=None, distance=None, delays=None, weights=None,
                    zero_mean=True, chunk=None, values=False, threads=None):
    """
    Find templates in a signal: peaks of the sum over channels of their normalised correlations.

    The value of a template at a time is the sum over channels of `weights` times its correlation with the samples that
    begin there, `delays` later, divided by the norms of both. A match is a value whose magnitude reaches the threshold
    and is the largest of all times that are closer than `distance`, of equal ones the first.

    Parameters
    ----------
    signal : array_like
        Of shape (channels, n), or (n,). Computed in single precision, sums for norms in double. `numpy.memmap` and arrays
        of Zarr, h5py and dask are read in pieces; those of dask are searched where dask computes.
    templates : sequence of array_like
        Each of shape (channels, length), or (length,); lengths may differ.
    threshold : float, optional
        Least magnitude of a match. This or `mad` must be given; of both the larger one holds.
    mad : float, optional
        The same, as a multiple of the median magnitude of the template's values in a chunk, without those that are 0:
        of values around 0 the median absolute deviation.
    distance : int, optional
        By default the length of the longest template.
    delays : array_like of int, optional
        Of shape (templates, channels): samples by which a channel of a template is later, or earlier.
    weights : array_like, optional
        Likewise. 0: the channel is not read. By default 1 / channels, so that magnitudes are at most 1.
    zero_mean : bool, optional
        Subtract the means of templates and of the signal under them.
    chunk : int, optional
        Each piece of the signal is split evenly into chunks of at most so many samples, by default 2**18. Memory is
        about 4 bytes for each channel and sample of a chunk, 4 more for each thread.
    values : bool, optional
        Whether the result has a field `channels` with the correlation of each channel.
    threads : int, optional
        By default what `partita.set_threads` says, or all cores; of each task of dask 1.

    Returns
    -------
    ndarray
        Structured, with a row for each match: `template`, `time` of its first sample without delay, and `value`;
        ordered by template and time.

    Notes
    -----
    There is no value where samples under a template do not exist, are infinite, NaN or masked, which is how gaps are
    given. The correlation with a silent channel, or with `zero_mean` a constant one, is 0.

    Signals of more than 2**22 samples are searched in pieces that overlap by templates, delays and twice the distance.
    They depend on sizes alone: results have the same bits for arrays of NumPy and dask, whatever chunks and workers.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import signal
    >>> rng = np.random.default_rng(1)
    >>> x, events = rng.standard_normal((3, 9000)), rng.standard_normal((2, 3, 200))
    >>> x[:, 700:900] += events[0]
    >>> for channel, delay in enumerate([0, 30, 50]):
    ...     x[channel, 4000 + delay:4200 + delay] -= 2 * events[1, channel]
    >>> found = signal.match_templates(x, events, mad=10, delays=[[0, 0, 0], [0, 30, 50]])
    >>> found["template"], found["time"], found["value"].round(1)
    (array([0, 1]), array([ 700, 4000]), array([ 0.7, -0.9]))
    """
    x = signal if hasattr(signal, "chunks") else _array("signal", signal)
    templates = list(templates)
    events = [np.atleast_2d(_array(f"templates[{i}]", h)) for i, h in enumerate(templates)]
    channels, count = x.shape[0] if len(x.shape) == 2 else 1, len(events)
    if len(x.shape) not in (1, 2) or not channels > 0 or not x.shape[-1] >= 0:
        raise ValueError(f"signal has shape {tuple(x.shape)}: (n,) or (channels, n) is needed")
    for i, h in enumerate(events):
        if h.ndim != 2 or h.shape[0] != channels or h.shape[1] == 0 or np.ndim(templates[i]) == 0:
            raise ValueError(f"templates[{i}] has shape {np.shape(templates[i])}: ({channels}, length) is needed, as the "
                             "signal has; a single template is given as [template]")
    if threshold is None and mad is None:
        raise ValueError("threshold or mad is needed")
    if distance is not None and distance > _FARTHEST:
        raise ValueError(f"distance = {distance}: at most {_FARTHEST}")
    for name, value in (("threshold", threshold), ("mad", mad)):
        if value is not None and not number(name, value) > 0:
            raise ValueError(f"{name} = {value!r}: a number above 0 is needed")
    delays = _table("delays", 0 if delays is None else delays, (count, channels), np.int64)
    weights = _table("weights", 1 / channels if weights is None else weights, (count, channels), float)
    for i, c in np.argwhere(weights != 0):
        varies = np.ptp(events[i][c]) if zero_mean else events[i][c].any()
        if not np.isfinite(events[i][c]).all() or not abs(weights[i, c]) <= _LARGEST or not varies:
            raise ValueError(f"templates[{i}], channel {c}: must be finite and not {'constant' if zero_mean else '0'}; "
                             "set its weight to at most 2**64, or to 0 to omit it")
    largest = np.abs(weights).sum(axis=1).max(initial=0)
    if threshold is not None and threshold > largest * (1 + _ROUNDING) and largest > 0:
        raise ValueError(f"threshold = {threshold!r}: no match has a magnitude above {largest:g}, the sum of its weights")
    first = np.min(delays, axis=1, where=weights != 0, initial=_FAR)
    delays = np.where(weights != 0, delays - first[:, None], 0)
    # Templates of one length follow each other, so that norms are computed once; the longest is the last one.
    bank = sorted(zip(range(count), events, first, delays, weights), key=lambda row: row[1].shape[1])
    longest = max((h.shape[1] for h in events), default=0)
    by_dask = isinstance(x, getattr(sys.modules.get("dask.array"), "Array", ()))
    settings = {
        "zero_mean": bool(zero_mean),
        "chunk": optional(positive, "chunk", chunk) or 0,
        "threshold": 0 if threshold is None else float(threshold),
        "mad": 0 if mad is None else float(mad),
        "distance": optional(positive, "distance", distance) or longest,
        "threads": optional(positive, "threads", threads) or (1 if by_dask else get_threads() or os.cpu_count() or 1),
    }
    windows = _windows(x.shape[-1] if bank else 0, settings, longest + int(delays.max(initial=0)))
    dtype = np.dtype(_MATCH.descr + ([("channels", float, (channels,))] if values else []))
    if by_dask and windows:
        from partita._dask import graph
        found = graph.search(_matches, x, windows, bank, settings, dtype)
    else:
        found = [_matches(x[..., w[0]:w[-1]], w, bank, settings, dtype) for w in windows]
    result = np.concatenate([np.empty(0, dtype), *found])
    return result[np.lexsort((result["time"], result["template"]))]


def _windows(n, settings, reach):
    """(first, begin, end, last): matches from `begin` to `end` depend on samples from `first` to `last` alone."""
    before, after = settings["distance"], settings["distance"] + reach
    most = max(_PIECE, settings["chunk"], 16 * (before + after))
    size = n if n <= most else -(-n // -(-n // (most - before - after)))
    return [(max(begin - before, 0), begin, begin + size, begin + size + after) for begin in range(0, n, size or 1)]


def _array(name, x):
    x = dtypes.real(name, x.detach().numpy() if is_tensor(x) else np.asanyarray(x))
    # NumPy does not subtract booleans, and its sums of float16 overflow.
    return x if x.dtype.itemsize > 2 else x.astype(np.float32)


def _table(name, given, shape, dtype):
    table = np.asarray(given)
    if table.dtype.kind not in ("iu" if dtype is np.int64 else "biuf"):
        raise TypeError(f"{name} must be {'integers' if dtype is np.int64 else 'real numbers'}")
    try:
        return np.ascontiguousarray(np.broadcast_to(table, shape), dtype)
    except ValueError:
        raise ValueError(f"{name} has shape {table.shape}: {shape} is needed, (templates, channels)") from None


def _single(x, zero_mean):
    """In single precision; what is removed before is not rounded."""
    if zero_mean and x.dtype != np.float32:
        finite = np.isfinite(x)
        x = x - np.sum(x, axis=1, keepdims=True, where=finite) / np.maximum(finite.sum(axis=1, keepdims=True), 1)
    return np.ascontiguousarray(x, np.float32)


def _matches(x, window, bank, settings, dtype):
    """The matches of a window, in its samples of the signal."""
    (first, begin, end, _), (numbers, events, earliest, delays, weights) = window, zip(*bank)
    x, zero_mean = np.atleast_2d(_array("signal", x)), settings["zero_mean"]
    single, *singles = (_single(samples, zero_mean) for samples in (x, *events))
    found = _search(single, singles, np.array(delays, np.uintp), np.array(weights), settings)
    found = found[(found["time"] >= begin - first) & (found["time"] < end - first)]
    result = np.zeros(len(found), dtype)
    for i in np.unique(found["template"]) if "channels" in dtype.names else ():
        rows = np.flatnonzero(found["template"] == i)
        for c in np.flatnonzero(weights[i]):
            starts = found["time"][rows] + delays[i][c]
            result["channels"][rows, c] = _correlations(x[c], starts, events[i][c], zero_mean)
    result["template"], result["value"] = np.take(numbers, found["template"]), found["value"]
    result["time"] = found["time"] + first - np.take(earliest, found["template"])
    return result


def _search(x, events, delays, weights, settings):
    """All matches, in any order; the delays of each template begin at 0."""
    samples, rows = (ffi.new("float *[]", [ffi.from_buffer("float[]", a) for a in arrays]) for arrays in (events, x))
    lengths = ffi.new("size_t[]", [h.shape[1] for h in events])
    matches = ffi.gc(ffi.new("struct py_matches *"), lib.py_matches_free)
    options = ffi.new("struct partita_match_options *", settings | {
        "templates": len(events), "channels": len(x), "samples": ffi.cast("float **", samples), "lengths": lengths,
        "delays": ffi.from_buffer("size_t[]", delays), "weights": ffi.from_buffer("double[]", weights),
        "report": ffi.addressof(lib, "py_match"), "context": matches, "log": log(),
    })
    check(lib.partita_match_templates(options, ffi.cast("float **", rows), x.shape[1]), "match_templates")
    if matches.failed:
        raise MemoryError
    bytes_found = ffi.buffer(matches.found, matches.n * _MATCH.itemsize) if matches.n else b""
    return np.frombuffer(bytes_found, _MATCH).copy()


def _correlations(x, starts, h, zero_mean):
    """The correlations of h with the samples from each start on, in double."""
    windows, h = np.lib.stride_tricks.sliding_window_view(x, len(h)), h.astype(float)
    h = h - h.mean() if zero_mean else h
    result, step = np.zeros(len(starts)), max(1, _GATHERED // len(h))
    for k in range(0, len(starts), step):
        under = windows[starts[k:k + step]].astype(float)
        under = under - under.mean(axis=1, keepdims=True) if zero_mean else under
        norms = np.linalg.norm(under, axis=1) * np.linalg.norm(h)
        np.divide((under * h).sum(axis=1), norms, out=result[k:k + step], where=norms > 0)
    return result

# SPDX-License-Identifier: MIT
"""correlation_peaks: where a template is in a signal. The same peaks as those of `partita correlate`."""
import math
from typing import NamedTuple

import numpy as np

from partita._signal import tensors
from partita._signal.convolution import correlate, correlation_lags

_REACH = 8  # samples on both sides that interpolation reads


class CorrelationPeaks(NamedTuple):
    """Arrays of equal length, ordered by lag."""
    lag: np.ndarray
    position: np.ndarray
    magnitude: np.ndarray
    phase: np.ndarray


@tensors.returned
def correlation_peaks(in1, in2, *, peaks=None, threshold=0.0, distance=None, normalise=False, lags=None, threads=None,
                      device=None, engine=None):
    """
    Find a template in a signal: the peaks of the magnitude of their correlation.

    Peaks are local maxima. Each peak, the largest first and of equal ones the first, drops the local maxima closer than
    `distance`, as in `scipy.signal.find_peaks`: what is dropped drops nothing. The first and the last lag can be peaks.
    More than 8 equal samples after a smaller one are a local maximum whatever follows them.

    Parameters
    ----------
    in1, in2 : array_like
        The signal and the template, of one dimension, as for `correlate`.
    peaks : int, optional
        Return only the largest peaks, this many; of equal ones the first.
    threshold : float, optional
        Return only peaks whose magnitude is at least this.
    distance : int, optional
        Peaks are at least this far from each other. By default the length of the template.
    normalise : bool or "zero-mean", optional
        As in `correlate`.
    lags : (int, int) or range, optional
        Search only these lags, the second one excluded.
    threads, device, engine : optional
        As in `convolve`.

    Returns
    -------
    CorrelationPeaks
        A named tuple of arrays, ordered by lag: `lag`, the samples of `in1` at which the template begins; `position`,
        the same, interpolated; `magnitude` and `phase` (radians) of the correlation at `lag`.

    See Also
    --------
    correlate

    Notes
    -----
    The position is where the polynomial through 8 samples to each side is largest. Without noise it is within 0.001
    samples of the maximum of the continuous signal if that fills at most 60 % of the band, within 0.01 if 80 %, and
    within 0.06 in any case.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import signal
    >>> rng = np.random.default_rng(1)
    >>> template, x = rng.standard_normal(200), 0.1 * rng.standard_normal(5000)
    >>> x[700:900] += template
    >>> x[3000:3200] -= 0.5 * template
    >>> found = signal.correlation_peaks(x, template, threshold=0.8, normalise=True)
    >>> found.lag, found.phase.round(3)
    (array([ 700, 3000]), array([0.   , 3.142]))
    """
    x, h = np.asarray(in1), np.asarray(in2)
    if x.ndim != 1 or h.ndim != 1:
        raise ValueError(f"in1 and in2 must have one dimension each, not {x.ndim} and {h.ndim}")
    if peaks is not None and peaks < 1:
        raise ValueError(f"peaks={peaks}: must be at least 1")
    distance = len(h) if distance is None else distance
    if distance < 1:
        raise ValueError(f"distance={distance}: must be at least 1")
    y = correlate(x, h, lags=lags, normalise=normalise, threads=threads, device=device, engine=engine)
    at = correlation_lags(len(x), len(h), lags=lags)
    size = np.where(np.isfinite(y), np.abs(y), -1)
    found = _dominant(size, np.flatnonzero(_local_maxima(size) & (size > 0) & (size >= threshold)), distance, peaks)
    return CorrelationPeaks(at[found], at[found] + _shifts(y, size, found), size[found], np.angle(y[found]))


def _local_maxima(size):
    """
    The first sample of each run of equal ones that is larger than the runs beside it. What follows a run of more than
    _REACH samples does not count, as a stream does not wait for it (apps/correlate/peaks.c).
    """
    starts = np.flatnonzero(np.concatenate([[True], size[1:] != size[:-1]]))
    heights = np.concatenate([[-1], size[starts], [-1]])
    long = np.diff(starts, append=len(size)) > _REACH
    result = np.zeros(len(size), bool)
    result[starts[(heights[1:-1] > heights[:-2]) & ((heights[1:-1] > heights[2:]) | long)]] = True
    return result


def _dominant(size, maxima, distance, limit):
    """Of maxima closer than `distance` the larger ones: each, the largest first, drops what is closer; at most `limit`."""
    first, after = np.searchsorted(maxima, maxima - distance, "right"), np.searchsorted(maxima, maxima + distance)
    found, dropped = [], bytearray(len(maxima))
    view = np.frombuffer(dropped, bool) if dropped else None
    for i in np.argsort(-size[maxima], kind="stable").tolist():
        if not dropped[i]:
            view[first[i]:after[i]] = True
            found.append(i)
            if len(found) == limit:
                break
    return maxima[sorted(found)]


def _shifts(y, size, found):
    """The distance from each peak to the maximum of the interpolation beside it."""
    known = np.pad(size, _REACH, constant_values=-1) >= 0
    steps = np.arange(1, _REACH + 1)
    both = known[found[:, None] + _REACH + steps] & known[found[:, None] + _REACH - steps]
    reaches = np.cumprod(both, axis=1).sum(axis=1)
    result = np.zeros(len(found))
    for reach in set(reaches[reaches > 0].tolist()):
        chosen = reaches == reach
        result[chosen] = _interpolate(y[found[chosen][:, None] + np.arange(-reach, reach + 1)])
    return result


def _interpolate(neighbours):
    """Golden sections of (-1, 1), between whose ends is the largest sample, on the polynomial in barycentric form."""
    reach = neighbours.shape[1] // 2
    at, ratio = np.arange(-reach, reach + 1), (math.sqrt(5) - 1) / 2
    binomials = np.array([(-1.0) ** k * math.comb(2 * reach, k) for k in range(2 * reach + 1)])

    def level(t):
        apart = t[:, None] - at
        weights = binomials / np.where(abs(apart) < 1e-12, 1e-12, apart)
        return np.abs((neighbours * weights).sum(axis=1) / weights.sum(axis=1))

    low, high = -np.ones(len(neighbours)), np.ones(len(neighbours))
    for _ in range(36):  # to 1e-7
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        before = level(left) >= level(right)
        low, high = np.where(before, low, left), np.where(before, right, high)
    return (low + high) / 2

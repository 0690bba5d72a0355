# SPDX-License-Identifier: MIT
"""From measured responses to a filter: the correction of loudspeakers in rooms (partita/correction.h)."""
import typing

import numpy as np

from partita._design import _chosen, _points
from partita._errors import check, log, require_type
from partita._partita import ffi, lib
from partita._problem import choice, number, positive

__all__ = ["Report", "average", "house_curve", "invert", "match", "smooth"]

_MEANS = {"energy": lib.PARTITA_MEAN_ENERGY, "vector": lib.PARTITA_MEAN_VECTOR}
_PHASES = {"minimum": lib.PARTITA_CORRECTION_MINIMUM, "linear": lib.PARTITA_CORRECTION_LINEAR,
           "mixed": lib.PARTITA_CORRECTION_MIXED}


class Report(typing.NamedTuple):
    """What a filter does: its largest `boost` and `attenuation` in dB and where; deviations of the mean response from
    the target in dB, largest and root mean square, `before` and `after`; its `delay` in frames; `pre_ringing`, the
    largest tap more than 1 ms before the peak, in dB; the `pre_time` of mixed phase; the gains in dB with which a sine
    of full scale does not clip and with which nothing clips; the `level` of the response and the `arrival` of its peak
    with the filter."""

    boost: float
    boost_frequency: float
    attenuation: float
    attenuation_frequency: float
    before_max: float
    before_rms: float
    after_max: float
    after_rms: float
    delay: float
    pre_ringing: float
    pre_time: float
    sine_gain: float
    safe_gain: float
    level: float
    arrival: float


def _call(function, responses, rate, *out, target=None, mean="energy", phase="minimum", taps=None, **fields):
    """Calls a function of the library with a struct partita_correction; `out` are its results."""
    try:
        responses = np.asarray(responses)
        if responses.dtype.kind == "c":
            raise TypeError("complex samples; impulse responses are real")
        responses = np.asarray(responses, np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise type(error)(f"responses: {error}") from None
    if responses.ndim not in (1, 2) or not responses.size:
        raise ValueError(f"responses has shape {responses.shape}, not (frames,) or (positions, frames)")
    if responses.ndim == 2 and responses.shape[0] > responses.shape[1]:
        raise ValueError(f"responses has shape {responses.shape}: more positions than frames; if these are (frames, "
                         "positions), give the transpose, responses.T")
    points = _points("target", house_curve(target) if isinstance(target, str) else target)
    out = [np.empty(responses.shape[-1]) if item is None else item for item in out]
    correction = ffi.new("struct partita_correction *", {
        "rate": number("rate", rate), "frames": responses.shape[-1], "positions": responses.size // responses.shape[-1],
        "taps": taps or 0, "mean": choice("mean", mean, _MEANS), "phase": choice("phase", phase, _PHASES),
        "target": ffi.cast("struct partita_design_point *", points.ctypes.data) if len(points) else ffi.NULL,
        "target_count": len(points), "log": log(),
        **{name: _chosen(name, value) for name, value in fields.items()},
    })
    arrays = [ffi.from_buffer("double []", item) if isinstance(item, np.ndarray) else item for item in out]
    try:
        check(function(correction, ffi.from_buffer("double []", responses), *arrays))
    except (ValueError, NotImplementedError) as error:
        raise type(error)(str(error).replace("correction.", "").replace("partita_", "partita.")) from None
    return out


def invert(responses, rate, taps=65536, *, phase="minimum", target=None, low=None, high=None, edge=None, boost=None,
           attenuation=None, smoothing=None, window=None, mean="energy", phase_limit=None, pre_time=None, pre_level=None):
    """
    Design the filter that corrects a loudspeaker in a room.

    Parameters
    ----------
    responses : array_like
        Impulse responses of one channel, [frames] or [positions, frames].
    rate : float
        Frames a second, in the unit of all frequencies.
    taps : int, optional
        Of the filter; at least two periods of `low`.
    phase : {"minimum", "linear", "mixed"}, optional
        Of the filter. "mixed" also inverts the excess phase of the responses up to `phase_limit` (300).
    target : array_like or str, optional
        Pairs of frequency and decibels, or the name of a `house_curve`; flat without it.
    low, high, edge : float, optional
        The range that is corrected, 20 to 20000, and in how many octaves the correction ends beside it, 0.5.
    boost, attenuation : float, optional
        The largest gain in dB, 6, and the largest reduction, without limit.
    smoothing : float, optional
        By this fraction of an octave, 12.
    window : float, optional
        After how many cycles of each frequency the response is cut off.
    mean : {"energy", "vector"}, optional
        Of the positions.
    phase_limit, pre_time, pre_level : float, optional
        Of mixed phase: the filter begins at most `pre_time` (0.02) seconds before its peak, and until 1 ms before it is
        `pre_level` (30) dB below it.

    Returns
    -------
    taps : numpy.ndarray
        Of float64.
    report : Report

    Examples
    --------
    >>> import numpy as np
    >>> from partita.correction import invert
    >>> response = np.zeros(4800)
    >>> response[[10, 100]] = 1, 0.5
    >>> taps, report = invert(response, 48000, boost=12)
    >>> report.before_max > 3, report.after_max < 1
    (True, True)
    """
    if positive("taps", taps) > 1 << 18:  # before there is memory for them
        raise ValueError(f"taps = {taps}: at most {1 << 18}")
    out, report = np.empty(taps), ffi.new("struct partita_correction_report *")
    _call(lib.partita_correction_taps, responses, rate, out, report, taps=len(out), phase=phase, target=target, low=low,
          high=high, edge=edge, boost=boost, attenuation=attenuation, smoothing=smoothing, window=window, mean=mean,
          phase_limit=phase_limit, pre_time=pre_time, pre_level=pre_level)
    return out, Report(*(getattr(report, name) for name in Report._fields))


def average(responses, rate, *, mean="energy", smoothing=None, window=None, low=None, high=None):
    """
    Average the responses of several positions, aligned by their largest samples and with equal power within the range.

    Parameters are those of `invert`; without `smoothing` there is none. Returns a response, [frames].
    """
    return _call(lib.partita_correction_average, responses, rate, None, mean=mean, smoothing=smoothing, window=window,
                 low=low, high=high)[0]


def smooth(response, rate, smoothing=3, *, window=None):
    """Smooth a response by a fraction of an octave; the window is that of `invert`."""
    return average(response, rate, smoothing=smoothing, window=window)


def match(reports):
    """The gains in dB, at most 0, and delays in frames that make the channels of these reports equally loud and late."""
    reports = [require_type("reports", report, Report, "a list with the Report of each channel is needed, which invert "
                            "returns beside the taps") for report in reports]
    if not reports:
        raise ValueError("reports has no Report; one of each channel is needed")
    levels, arrivals = np.array([(report.level, report.arrival) for report in reports]).T
    return levels.min() - levels, arrivals.max() - arrivals


def house_curve(name):
    """The points of a target, pairs of frequency and decibels: "flat", "bk" (Brüel & Kjær) or "harman-room"."""
    count = ffi.new("size_t *")
    points = lib.partita_correction_curve(str(name).encode(), count)
    if not points:
        raise ValueError(f"target = {name!r}: one of 'flat', 'bk', 'harman-room'")
    return np.array([(points[i].frequency, points[i].decibels) for i in range(count[0])])

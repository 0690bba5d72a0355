# SPDX-License-Identifier: MIT
"""Filter design: taps from cutoffs, widths and attenuation, and what taps achieve."""
import dataclasses
import typing

import numpy as np

from partita._errors import check, log
from partita._partita import ffi, lib
from partita._problem import choice, number, optional, positive

_KINDS = {
    "lowpass": lib.PARTITA_DESIGN_LOW_PASS,
    "highpass": lib.PARTITA_DESIGN_HIGH_PASS,
    "bandpass": lib.PARTITA_DESIGN_BAND_PASS,
    "bandstop": lib.PARTITA_DESIGN_BAND_STOP,
    "hilbert": lib.PARTITA_DESIGN_HILBERT,
    "differentiator": lib.PARTITA_DESIGN_DIFFERENTIATOR,
    "raised-cosine": lib.PARTITA_DESIGN_RAISED_COSINE,
    "root-raised-cosine": lib.PARTITA_DESIGN_ROOT_RAISED_COSINE,
    "table": lib.PARTITA_DESIGN_TABLE,
}
_METHODS = {"kaiser": lib.PARTITA_DESIGN_KAISER, "equiripple": lib.PARTITA_DESIGN_EQUIRIPPLE}


class Achieved(typing.NamedTuple):
    """What taps achieve: `ripple` and `attenuation` in dB (infinite without a stop band), the mean group `delay` in
    frames, and the `width` of the transitions between which they were measured."""

    ripple: float
    attenuation: float
    delay: float
    width: float


def _chosen(name, value):
    """A number other than 0, which is None in C: `boost=0` is not the default boost."""
    chosen = 0.0 if value is None else number(name, value)
    if value is not None and chosen == 0:
        raise ValueError(f"{name} = {value!r}: a number other than 0 is needed; without it the default holds")
    return chosen


def _numbers(name, value):
    """One or two numbers as a tuple."""
    values = () if value is None else tuple(value) if isinstance(value, (tuple, list, np.ndarray)) else (value,)
    if len(values) > 2:
        raise ValueError(f"{name} = {value!r}: one frequency, or two for a band")
    return tuple(number(name, v) for v in values)


def _points(name, value):
    """Frequencies and decibels as an array of two columns."""
    if value is None:
        return np.empty((0, 2))
    try:
        table = np.ascontiguousarray(value, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None
    if table.ndim != 2 or table.shape[1] != 2:
        raise ValueError(f"{name} has shape {table.shape}, not (points, 2): pairs of frequency and decibels")
    return table


@dataclasses.dataclass(frozen=True, kw_only=True)
class Design:
    """
    What a filter shall do: its bands, and how exactly.

    Parameters
    ----------
    kind : str
        "lowpass", "highpass", "bandpass", "bandstop", "hilbert", "differentiator", "raised-cosine",
        "root-raised-cosine" or "table".
    cutoff : float or tuple of float, optional
        The middle of the transition; two for a band, none for "hilbert" and "table". For raised cosines half of the
        symbol rate.
    rate : float, optional
        Frames a second, in the unit of all frequencies. 1: frequencies are fractions of the rate, below 0.5.
    width : float, optional
        Of each transition: pass and stop bands begin half of it beside the cutoff. For "table" the finest detail, for
        raised cosines twice the cutoff times the roll-off. Without it, what `taps` allows.
    attenuation : float, optional
        By which stop bands lie below pass bands, in dB, 10 to 200; 80 without it (60 for raised cosines), or what
        `taps` and `width` allow. For "hilbert" that of negative frequencies in ``x + 1j * hilbert(x)``.
    ripple : float, optional
        The largest deviation in pass bands, in dB. Without it, it follows from the attenuation; 0.1 for "equiripple".
    taps : int, optional
        Their number. Without it, the fewest that reach attenuation and ripple.
    method : {"kaiser", "equiripple"}, optional
        Kaiser's window, or the exchange of Parks and McClellan, which needs fewer taps for the same bands.
    minimum_phase : bool, optional
        The same magnitude with the shortest delay, instead of linear phase.
    table : array_like, optional
        For "table": pairs of frequency and decibels, interpolated over the logarithm of the frequency.

    Examples
    --------
    >>> import partita
    >>> channel = partita.Design(kind="lowpass", cutoff=20e3, width=5e3, attenuation=80, rate=1e6)
    >>> h = channel.make()
    >>> channel.measure(h).attenuation >= 80
    True
    """

    kind: str
    cutoff: float | tuple | None = None
    rate: float = 1.0
    width: float | None = None
    attenuation: float | None = None
    ripple: float | None = None
    taps: int | None = None
    method: str = "kaiser"
    minimum_phase: bool = False
    table: object = None

    def _to_c(self):
        """A struct partita_design, and what it points to; `check` then raises with the library's messages."""
        points = _points("table", self.table)
        keep = ffi.from_buffer("struct partita_design_point []", points) if len(points) else ffi.NULL
        design = ffi.new("struct partita_design *", {
            "kind": choice("kind", self.kind, _KINDS),
            "method": choice("method", self.method, _METHODS),
            "rate": number("rate", self.rate),
            "cutoff": _numbers("cutoff", self.cutoff),
            **{name: _chosen(name, getattr(self, name)) for name in ("width", "attenuation", "ripple")},
            "taps": optional(positive, "taps", self.taps) or 0,
            "table": keep,
            "table_count": len(points),
            "minimum_phase": bool(self.minimum_phase),
            "log": log(),
        })
        return design, (points, keep)

    def make(self):
        """
        Designs the taps.

        Returns
        -------
        numpy.ndarray
            Of float64; for filters of float32 use ``.astype("float32")``.
        """
        design, keep = self._to_c()
        count = ffi.new("size_t *")
        _check(lib.partita_design_taps_count(design, count))
        taps = np.empty(count[0])
        _check(lib.partita_design_taps(design, ffi.from_buffer("double []", taps), count[0]))
        del keep
        return taps

    def measure(self, taps):
        """
        Measures the response of taps in the bands of this design.

        Parameters
        ----------
        taps : array_like
            Those of `make`, or others, for example rounded ones.

        Returns
        -------
        Achieved
        """
        design, keep = self._to_c()
        taps = np.ascontiguousarray(taps, np.float64)
        if taps.ndim != 1 or not taps.size:
            raise ValueError(f"taps has shape {taps.shape}: one axis with one tap or more is needed")
        result = ffi.new("struct partita_design_result *")
        _check(lib.partita_design_measure(design, ffi.from_buffer("double []", taps), taps.size, result))
        del keep
        return Achieved(result.ripple, result.attenuation, result.delay, result.width)


def _check(status):
    """Raises what the library says, in the words of the arguments."""
    try:
        check(status)
    except (ValueError, NotImplementedError) as error:
        raise type(error)(str(error).replace("design.", "")) from None


def design(kind, cutoff=None, *, rate=1.0, width=None, attenuation=None, ripple=None, taps=None, method="kaiser",
           minimum_phase=False, table=None):
    """
    Designs the taps of a filter.

    Parameters
    ----------
    kind : str
        "lowpass", "highpass", "bandpass", "bandstop", "hilbert", "differentiator", "raised-cosine",
        "root-raised-cosine" or "table".
    cutoff : float or tuple of float, optional
        The middle of the transition; two for a band, none for "hilbert" and "table".
    rate, width, attenuation, ripple, taps, method, minimum_phase, table : optional
        As for `Design`, whose `measure` says what taps achieve.

    Returns
    -------
    numpy.ndarray
        Of float64; for filters of float32 use ``.astype("float32")``.

    Examples
    --------
    >>> import partita
    >>> h = partita.design("lowpass", 20e3, width=5e3, attenuation=80, rate=1e6)
    >>> len(h) % 2, round(float(h.sum()), 3)
    (1, 1.0)
    """
    return Design(**locals()).make()

# SPDX-License-Identifier: MIT
"""Equalizers and crossovers as taps, and the lists of other programs."""
import os
import re
import typing

import numpy as np

from partita._design import _chosen, _points
from partita._errors import check, log, require_type
from partita._partita import ffi, lib
from partita._problem import choice, natural, number, optional, positive

_KINDS, _FAMILIES, _PHASES = (
    {name[len(prefix):].lower().replace("_", "-"): getattr(lib, name) for name in dir(lib) if name.startswith(prefix)}
    for prefix in ("PARTITA_SECTION_", "PARTITA_FAMILY_", "PARTITA_EQUALIZER_"))
_LISTED = dict(PK="peak", PEQ="peak", MODAL="peak", LP="low-pass", LPQ="low-pass", HP="high-pass", HPQ="high-pass",
               BP="band-pass", NO="notch", AP="all-pass", LS="low-shelf", LSC="low-shelf", LSQ="low-shelf",
               HS="high-shelf", HSC="high-shelf", HSQ="high-shelf")
_FIELDS = {"frequency": r"\bFc", "gain": r"\bGain", "q": r"\bQ", "bandwidth": r"\bBW\s+Oct",
           "slope": r"^(?=\s*[\d.,]+\s*dB)"}
_DEFAULTS = {"notch": {"q": 30}, "low-shelf": {"slope": 10.8}, "high-shelf": {"slope": 10.8}}  # of Room EQ Wizard
_REFUSED = "CHANNEL COPY CONVOLUTION DELAY INCLUDE IF ELSEIF ELSE EVAL LOUDNESSCORRECTION VSTPLUGIN".split()


class EqualizerTaps(typing.NamedTuple):
    """Taps, a row for each band of a crossover. In dB: the energy after them below all energy (`tail`), the largest
    `deviation` from the sections, or of a crossover's sum from 1, and the largest `gain`; in frames the `delay`."""

    taps: np.ndarray
    tail: float
    deviation: float
    deviation_frequency: float
    gain: float
    gain_frequency: float
    delay: float


def _section(name, section):
    require_type(name, section, dict, 'sections are dicts, for example {"frequency": 100, "gain": 3, "q": 1}')
    known = {field for field, _ in ffi.typeof("struct partita_section").fields} - {"biquad"} | {"coefficients"}
    if unknown := section.keys() - known:
        raise ValueError(f"{name} has no field {min(unknown, key=str)!r}: there are {', '.join(sorted(known))}")
    kind = section.get("kind", "biquad" if "coefficients" in section else "peak")
    made = {**section, "kind": choice(f"{name}: kind", kind, _KINDS),
            "family": choice(f"{name}: family", section.get("family", "default"), _FAMILIES)}
    if kind == "biquad" and "coefficients" not in section:
        raise ValueError(f"{name}: a biquad needs coefficients, the numbers b0, b1, b2, a0, a1, a2")
    for field in section.keys() & {"q", "bandwidth", "slope", "target_q"}:
        _chosen(f"{name}.{field}", section[field])
    optional(positive, f"{name}.order", section.get("order"))
    try:
        if "coefficients" in made:
            b0, b1, b2, a0, a1, a2 = map(float, made.pop("coefficients"))
            made["biquad"] = {"b": [b0 / a0, b1 / a0, b2 / a0], "a": [a1 / a0, a2 / a0]}
        return ffi.new("struct partita_section *", made)[0]
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise ValueError(f"{name} = {section!r}: {error}") from None


def _crossing(found):
    return {"frequency": "frequencies"}.get(found[2], found[2]) + found[1]


def _make(name, fields, shape, rate, phase, taps, tail):
    function, result = getattr(lib, f"partita_{name}_taps"), ffi.new("struct partita_equalizer_result *")
    struct = ffi.new(f"struct partita_{name} *", {
        **fields, "rate": _chosen("rate", rate), "phase": choice("phase", phase, _PHASES), "log": log(),
        "taps": optional(positive, "taps", taps) or 0, "tail": _chosen("tail", tail)})
    try:
        check(function(struct, ffi.NULL, 0, result))
        made = np.empty((*shape, result.taps))
        check(function(struct, ffi.from_buffer("double []", made), result.taps, result))
    except (ValueError, NotImplementedError) as error:  # in the words of the arguments
        text = re.sub(r"\b(equalizer|crossover)\.", "", str(error))
        raise type(error)(re.sub(r"crossing(\[\d\])\.(\w+)", _crossing, text)) from None
    return EqualizerTaps(made, *(getattr(result, name) for name in EqualizerTaps._fields[1:]))


def equalizer(sections, *, rate=1.0, phase="recursive", taps=None, tail=None, exact_gains=False):
    """
    Makes `EqualizerTaps` of sections in series, which other programs run as biquads.

    Parameters
    ----------
    sections : sequence of dict
        `kind`: "peak" (if it is left out), "low-shelf", "high-shelf", "low-pass", "high-pass", "band-pass", "notch",
        "all-pass", "general-notch", "linkwitz-transform", "tilt", "gain" or "biquad"; `frequency`; `gain` in dB; `q`,
        `bandwidth` in octaves or `slope` in dB an octave; `order`, and for passes `family`: "butterworth",
        "linkwitz-riley" or "bessel"; `target_frequency`, `target_q`; `coefficients`: b0, b1, b2, a0, a1, a2.
    rate, phase : optional
        Frames a second, in the unit of all frequencies; "linear" has the magnitude of the biquads with linear phase.
    taps, tail : optional
        Their number, or the dB by which the energy after them is below all energy: 160, or 120 for linear phase.
    exact_gains : bool, optional
        A graphic equalizer: the response of all peaks together passes through their gains.

    >>> import partita
    >>> made = partita.equalizer([{"frequency": 100, "gain": 4.5, "q": 2}, {"kind": "gain", "gain": -3}], rate=48000)
    >>> round(made.gain, 1), made.deviation < 0.01
    (1.5, True)
    """
    given = ffi.new("struct partita_section []", [_section(f"sections[{i}]", s) for i, s in enumerate(sections)])
    fields = {"sections": given, "n_sections": len(given), "exact_gains": exact_gains}
    return _make("equalizer", fields, (), rate, phase, taps, tail)


def crossover(frequencies, *, family="linkwitz-riley", order=4, gain=0.0, delay=0, inverted=False, rate=1.0,
              phase="recursive", taps=None, tail=None):
    """Makes `EqualizerTaps` of the bands of a crossover, the lowest one first. Neighbours meet at `frequencies`, which
    ascend. All crossings have one `family` ("linkwitz-riley", "butterworth" or "bessel") and `order`, and all bands one
    `gain` in dB, `delay` in frames and polarity (`inverted`), or a sequence has one for each. See `equalizer` for more.

    >>> import partita
    >>> three = partita.crossover([300, 3000], rate=48000)
    >>> len(three.taps), three.deviation < 0.001
    (3, True)
    """
    frequencies = list(frequencies) if np.ndim(frequencies) else [frequencies]
    if not frequencies:
        raise ValueError("frequencies = []: one or more are needed")
    bands = len(frequencies) + 1

    def each(name, value, convert, count=bands):
        values = list(value) if isinstance(value, (tuple, list, np.ndarray)) else [value] * count
        if len(values) != count or bands > lib.PARTITA_MAX_BANDS:
            raise ValueError(f"{name} = {value!r}: one value, or {count} in a list; at most {lib.PARTITA_MAX_BANDS} bands")
        return [convert(name, v) for v in values]

    at, orders = each("frequencies", frequencies, number, bands - 1), each("order", order, positive, bands - 1)
    families = each("family", family, lambda name, value: choice(name, value, _FAMILIES), bands - 1)
    fields = {"bands": bands, "crossing": list(zip(at, families, orders)), "gain": each("gain", gain, number),
              "delay": each("delay", delay, natural),
              "inverted": each("inverted", inverted, lambda name, v: choice(name, v, {False: False, True: True}))}
    return _make("crossover", fields, (bands,), rate, phase, taps, tail)


def _decimal(text, line):
    """A number of a line; commas are decimal marks, or separate thousands, as the numbers of the line say."""
    numbers = re.findall(r"\d[\d.,]*", line)
    comma = any(re.search(r"^0,|,(?=\d)(?!\d{3}(?!\d))", number) for number in numbers)
    if not comma and "," in text and not any("." in number for number in numbers):
        raise ValueError(f"{line.strip()!r}: {text} may be two numbers; write it without a mark, or with a point")
    mark, group = (",", ".") if comma else (".", ",")
    if not re.fullmatch(rf"[-+]?(\d+|\d{{1,3}}(\{group}\d{{3}})+)(\{mark}\d*)?|[-+]?\{mark}\d+", text.strip()):
        raise ValueError(f"{line.strip()!r}: {text!r} is no number with the decimal mark {mark!r}")
    return float(text.replace(group, "").replace(mark, "."))


def _listed(line):
    """The section of a line: "ON PK Fc 105 Hz Gain -2.4 dB Q 0.70"; None if it is off."""
    found = re.match(r"\s*(ON|OFF)\b\s*([A-Z]*)(.*)", line, re.I)
    if not found:
        raise ValueError(f"{line.strip()!r}: needs ON or OFF at its begin")
    if found[1].upper() == "OFF" or found[2].upper() == "NONE":
        return None
    kind = _LISTED[name := choice(f"{line.strip()!r}: type", found[2].upper(), {k: k for k in _LISTED})]
    section, has_gain = {"kind": kind}, kind in ("peak", "low-shelf", "high-shelf")
    for field, word in _FIELDS.items():
        value = re.search(word + r"\s*(.*?)(?=\s*(k?Hz|dB)|\s+[a-z]|\s*$)", found[3], re.I)
        if value and (field != "gain" or has_gain):
            thousand = field == "frequency" and (value[2] or "").lower() == "khz"
            section[field] = _decimal(value[1], found[3]) * (1000 if thousand else 1)
    if "frequency" not in section or (has_gain and "gain" not in section):
        raise ValueError(f"{line.strip()!r}: needs Fc{' and Gain' if 'frequency' in section else ''}")
    if not section.keys() & {"q", "bandwidth", "slope"}:
        return section | _DEFAULTS.get(kind, {})
    if name in ("LS", "HS"):  # the frequency is that of the corner; a section has the middle of its slope
        gain, a = section["gain"], 10**(section["gain"] / 40)
        slope = section["slope"] / 12 if "slope" in section else 1 / ((1 / section["q"]**2 - 2) / (a + 1 / a) + 1)
        section["frequency"] *= 10**((1 if name == "LS" else -1) * abs(gain) / 80 / slope)
    return section


def read_equalizer(source):
    """Reads the list of an equalizer, as Equalizer APO, Room EQ Wizard and AutoEq write them: a text, or a file by its
    ``pathlib.Path``. Returns the sections of the lines Filter and Preamp, for `equalizer`; or pairs of frequency and
    decibels of a line GraphicEQ, with the gain of Preamp, for ``partita.design("table", table=...)``.

    >>> import partita
    >>> partita.read_equalizer("Preamp: -2.5 dB\\nFilter 1: ON PK Fc 105 Hz Gain 2.4 dB Q 0.7")[0]
    {'kind': 'gain', 'gain': -2.5}
    """
    path = source if isinstance(source, os.PathLike) else None
    if path:
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            source = file.read()
    require_type("source", source, str, "the text of a list is needed, or a pathlib.Path")
    source = re.sub("(?<=\\d)[\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}](?=\\d{3})", "", source)
    source = source.replace("\N{MINUS SIGN}", "-")
    sections, table, empty = [], None, True
    for line in source.splitlines():
        word, _, rest = line.partition(":")
        word = re.sub(r"[\s\d]", "", word).upper()
        empty = empty and word not in ("GRAPHICEQ", "PREAMP", "FILTER")
        if word == "GRAPHICEQ":
            table = _points("GraphicEQ", [[_decimal(v, rest) for v in p.split()] for p in rest.split(";") if p.strip()])
        elif word in _REFUSED:
            raise ValueError(f"{line.strip()!r}: {word} is not supported; remove the line")
        elif word == "PREAMP":
            sections.append({"kind": "gain", "gain": _decimal(re.sub(r"\s|dB", "", rest, flags=re.I), rest)})
        elif word == "FILTER":
            sections += filter(None, [_listed(rest)])
    if empty:
        raise ValueError(f"{path or repr(source[:40])} has no line of Filter, Preamp or GraphicEQ"
                         f"{'' if path else '; give a file as a pathlib.Path'}")
    if table is None:
        return sections
    if any(section["kind"] != "gain" for section in sections):
        raise ValueError("lines of Filter and GraphicEQ cannot be read together; remove those of one")
    return table + (0, sum(section["gain"] for section in sections))

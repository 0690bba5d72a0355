# SPDX-License-Identifier: MIT
"""Taps of equalizers against the cookbook's biquads and SciPy, for lists of 20 headphones; lists that are read."""
import numpy as np
import pytest
import scipy.signal

import partita

# What the AutoEq project and others publish for headphones: name, level, and type, Fc, gain and Q of each filter.
HEADPHONES = """
AKG K52: -6.8; LSC 105 -4.6 0.7, PK 1892 7.2 1.08, PK 186 -7.6 1.41, PK 4703 -7.3 0.98, PK 3321 8.2 2.34, HSC 10000
  -5.5 0.7, PK 97 2.9 3.14, PK 62 -1.4 1.34, PK 483 -2.2 2.46, PK 370 2.8 5.73
AKG K612 Pro: -6.2; LSC 105 6.2 0.7, PK 2828 -3.8 1.72, PK 877 1.9 1.62, PK 5761 -5.3 5.54, PK 3851 2.1 3.59, HSC
  10000 -6.5 0.7, PK 225 -1.1 1.69, PK 105 0.8 2.67, PK 1492 1 5.22, PK 1926 -0.4 3.24
AKG K701: -6.0; LSC 105 6 0.7, PK 202 -2.3 0.49, PK 1294 3.7 2.62, PK 594 3.4 2, PK 2360 -3.6 3.71, HSC 10000 -9.2
  0.7, PK 3511 2.4 5.34, PK 5068 1.6 2.91, PK 6180 -2.4 6, PK 21 0.1 3.33
AKG K702: -6.1; LSC 105 6.1 0.7, PK 2252 -5.4 1.41, PK 778 3.6 1.07, PK 95 2.2 2.23, PK 1121 -2.2 3.09, HSC 10000
  -12.5 0.7, PK 4638 3 4.04, PK 6398 -4.1 6, PK 666 -0.2 3.04, PK 10000 5.8 1.67
Audeze LCD-X: -5.8; LSC 105 6.3 0.7, PK 867 -4.1 1.16, PK 4264 10 0.48, PK 5568 -13.2 1.74, PK 138 -3.8 0.2, HSC
  10000 -10.3 0.7, PK 138 0.4 1.67, PK 26 0.6 2.65, PK 38 -0.7 2.87, PK 234 -0.4 2.24
Audient EVO SR2000: -6.4; LSC 105 3.9 0.7, PK 54 -9.1 0.55, PK 862 -3.1 1.33, PK 3347 3.9 1.68, PK 32 8.6 0.83, HSC
  10000 -3.9 0.7, PK 325 2.1 3.05, PK 198 -1 1.51, PK 5534 -3.7 6, PK 2113 1.3 3.36
Audio-Technica ATH-M40x: -3.0; LSC 105 0.5 0.7, PK 155 -5 2.11, PK 317 3.4 1.43, PK 2637 2.2 1.93, PK 1444 -1.6
  1.64, HSC 10000 -13 0.7, PK 8015 3.6 1.03, PK 54 -1.7 1.72, PK 82 3.3 4.47, PK 4262 -2.5 6
Audio-Technica ATH-M50x: -4.9; LSC 105 1.8 0.7, PK 149 -5.2 1.23, PK 349 4.4 1.51, PK 6201 5 2.42, PK 4296 -4.5
  4.03, HSC 10000 -11.8 0.7, PK 9752 4.4 1.16, PK 2246 -1.7 2.74, PK 41 -1.3 2.06, PK 59 2.4 4.76
Audio-Technica ATH-R70x: -6.3; LSC 105 7.1 0.7, PK 99 -3.6 0.39, PK 4807 4.7 4.08, PK 8242 3.1 2.44, PK 41 1.6 3.4,
  HSC 10000 -7.6 0.7, PK 2010 0.7 3.36, PK 3506 -1.8 5.57, PK 10000 3.9 1.79, PK 3058 1.5 6
AUNE AR5000: -5.8; LSC 105 8.1 0.7, PK 86 -4.8 0.25, PK 1622 3.9 1.57, PK 8602 4.9 1.62, PK 4916 -3 3.03, HSC 10000
  -5.6 0.7, PK 2966 -2 4.78, PK 3563 2.6 6, PK 96 0.5 1.42, PK 56 -0.5 1.7
Beats Studio3 Wireless: -6.4; LSC 105 2.8 0.7, PK 81 -6.6 0.4, PK 1997 4.5 1.31, PK 32 7.2 0.81, PK 9564 -6.2 6, HSC
  10000 1 0.7, PK 576 2.8 2.61, PK 263 -1.7 0.9, PK 3564 -3.6 6, PK 149 2.1 2.39
Behringer HC 200: -6.1; LSC 105 5.7 0.7, PK 1052 -10.6 0.89, PK 2063 10.5 0.44, PK 1412 -6.5 1.44, PK 354 -4.6 0.68,
  HSC 10000 -3.6 0.7, PK 6984 3.3 3.38, PK 71 -0.9 2.38, PK 5724 -2.5 6, PK 150 0.5 2.71
Beyerdynamic DT 770 Pro 80 Ohm: -5.6; LSC 105 3.4 0.7, PK 118 -4.5 1.07, PK 184 5.8 2.15, PK 396 -1 1.2, PK 68 4.4
  4.37, HSC 10000 -8.3 0.7, PK 3622 4.5 4.09, PK 40 -1.1 2.98, PK 2632 -2.3 3.17, PK 1719 0.7 2.58
Beyerdynamic DT 770 Pro 250 Ohm: -4.7; LSC 105 4.5 0.7, PK 210 4.8 3.03, PK 3495 5.8 3.09, PK 40 -5.6 0.74, PK 8063
  -5.7 0.67, HSC 10000 -11.4 0.7, PK 9553 5.1 1.79, PK 1552 1.1 3.62, PK 82 2.6 6, PK 64 -1.2 3.06
Beyerdynamic DT 880 250 Ohm: -6.0; LSC 105 6 0.7, PK 205 -1.9 0.98, PK 1664 2 1, PK 5751 -6.1 5.35, PK 71 1 1.79,
  HSC 10000 -7.2 0.7, PK 4197 3.3 3.61, PK 2919 -1.6 4.15, PK 7833 -0.9 6, PK 555 0.5 2.74
Beyerdynamic DT 990 Pro 250 Ohm: -6.1; LSC 105 6.1 0.7, PK 564 2.2 1.86, PK 8240 -6 0.91, PK 2070 2.6 2.69, PK 82
  1.7 4.34, HSC 10000 -15.8 0.7, PK 9052 6.4 1.28, PK 181 -1.1 2.55, PK 4255 2.9 6, PK 5819 -4.1 5.58
Fifine Ampligame H3: -6.4; LSC 105 -1.7 0.7, PK 172 -9.6 0.81, PK 415 8.2 1.16, PK 252 -3.1 0.99, PK 726 3.7 0.91,
  HSC 10000 -3 0.7, PK 7643 3.8 1.72, PK 3174 -5.1 3.78, PK 2009 1.8 3.23, PK 59 1.1 3.88
Sony MDR-MV1: -4.1; LSC 105 9.7 0.7, PK 46 -9.2 0.37, PK 1722 2.8 0.95, PK 4643 9.2 1.99, PK 5779 -9.2 1.5, PK 128
  0.5 2.09, PK 242 -0.7 2.04, PK 705 0.8 2.45, PK 2955 -0.9 4.58, HSC 10000 -2.2 0.7
Sennheiser HD 650: -6.6; PK 27 6.4 0.82, PK 717 1.1 1.81, PK 3074 -3.2 2.16, PK 4460 2.7 1.92, PK 10164 2.1 2.13, PK
  52 1.3 4.29, PK 189 -1.8 0.97, PK 462 0.7 1.82, PK 12982 1 1.43, PK 19948 -4.3 0.47
Beyerdynamic DT150: -6.0; PK 80 6 4.27, PK 142 1.11 2.42, PK 159 -11.82 0.64, PK 378 5.42 1.18, PK 1461 -0.43 1.61,
  PK 1593 0.65 1.41, PK 3694 6 3.93
"""
LISTS = {name: (float(level), [(kind, *map(float, values)) for kind, *values in map(str.split, filters.split(","))])
         for name, level, filters in (entry.replace(": ", ";", 1).split(";")
                                      for entry in HEADPHONES.strip().replace("\n  ", " ").split("\n"))}
RATES = 44100, 48000, 96000


def biquad(kind, f, gain, q, rate):
    """The Audio EQ Cookbook: b0, b1, b2, a0, a1, a2."""
    a, w = 10**(gain / 40), 2 * np.pi * f / rate
    alpha, cos = np.sin(w) / (2 * q), np.cos(w)
    if kind == "PK":
        return [1 + alpha * a, -2 * cos, 1 - alpha * a, 1 + alpha / a, -2 * cos, 1 - alpha / a]
    sign, root = (1 if kind == "LSC" else -1), 2 * np.sqrt(a) * alpha
    return [a * ((a + 1) - sign * (a - 1) * cos + root), sign * 2 * a * ((a - 1) - sign * (a + 1) * cos),
            a * ((a + 1) - sign * (a - 1) * cos - root), (a + 1) + sign * (a - 1) * cos + root,
            -sign * 2 * ((a - 1) + sign * (a + 1) * cos), (a + 1) + sign * (a - 1) * cos - root]


def text_of(level, filters):
    lines = [f"Preamp: {level} dB"]
    lines += [f"Filter {i}: ON {kind} Fc {f} Hz Gain {gain} dB Q {q}" for i, (kind, f, gain, q) in enumerate(filters)]
    return "\n".join(lines)


def magnitude_and_delay(b, a, w):
    """Of a filter at angles w: dB, and group delay by the derivative of each polynomial."""
    def delay(c):
        z = np.exp(-1j * np.outer(w, np.arange(len(c))))
        return z @ c, z @ (np.arange(len(c)) * c)
    (over, over_times), (under, under_times) = delay(np.asarray(b)), delay(np.asarray(a))
    return 20 * np.log10(np.abs(over / under)), np.real(over_times / over) - np.real(under_times / under)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("name", LISTS)
def test_headphones(name, rate):
    """The taps have the magnitude of the biquads within 0.05 dB and their group delay within 0.1 frames."""
    level, filters = LISTS[name]
    made = partita.equalizer(partita.read_equalizer(text_of(level, filters)), rate=rate)
    sections = [biquad(*f, rate) for f in filters]
    w = 2 * np.pi * np.geomspace(20, 20000, 60) / rate
    wanted = [magnitude_and_delay(s[:3], s[3:], w) for s in sections]
    decibels, delay = magnitude_and_delay(made.taps, [1.0], w)
    assert np.abs(decibels - level - sum(m for m, _ in wanted)).max() < 0.05
    assert np.abs(delay - sum(d for _, d in wanted)).max() < 0.1
    assert made.deviation < 0.05
    assert made.gain >= decibels.max() - 0.01
    # The same recursion: errors of the states, some u times the gain of the poles at these frequencies.
    sos = np.array(sections) / np.array(sections)[:, 3:4]
    impulse = np.zeros(len(made.taps))
    impulse[0] = 10**(level / 20)
    np.testing.assert_allclose(made.taps, scipy.signal.sosfilt(sos, impulse), rtol=0, atol=1e-11)


def test_linear_phase_has_the_same_magnitude():
    level, filters = LISTS["AKG K702"]
    sections = partita.read_equalizer(text_of(level, filters))
    own, linear = (partita.equalizer(sections, rate=48000, phase=phase) for phase in ("recursive", "linear"))
    w = 2 * np.pi * np.geomspace(20, 20000, 60) / 48000
    a, delay = magnitude_and_delay(linear.taps, [1.0], w)
    assert np.abs(a - magnitude_and_delay(own.taps, [1.0], w)[0]).max() < 0.05
    assert np.array_equal(linear.taps, linear.taps[::-1])
    assert linear.delay == (len(linear.taps) - 1) / 2 and np.abs(delay - linear.delay).max() < 1e-6


@pytest.mark.parametrize("kind, btype", [("low-pass", "low"), ("high-pass", "high")])
@pytest.mark.parametrize("family, order", [("butterworth", 1), ("butterworth", 5), ("butterworth", 8), ("bessel", 2),
                                           ("bessel", 7), ("bessel", 8)])
def test_families_are_those_of_scipy(kind, btype, family, order):
    made = partita.equalizer([{"kind": kind, "family": family, "order": order, "frequency": 900}], rate=44100)
    options = {"norm": "mag"} if family == "bessel" else {}
    design = scipy.signal.bessel if family == "bessel" else scipy.signal.butter
    sos = design(order, 900, btype=btype, fs=44100, output="sos", **options)
    expected = scipy.signal.sosfilt(sos, np.eye(1, len(made.taps))[0])
    np.testing.assert_allclose(made.taps, expected, rtol=0, atol=1e-7)  # the poles of Bessel's filters have 8 digits


def test_bands_of_a_graphic_equalizer():
    f, gains = 31.25 * 2.0**np.arange(10), [6, -4, 3, 0, 0, -8, 8, -8, 2, 5]
    bands = [{"frequency": a, "gain": g, "bandwidth": 1} for a, g in zip(f, gains)]
    made = partita.equalizer(bands, rate=48000, exact_gains=True)
    np.testing.assert_allclose(magnitude_and_delay(made.taps, [1.0], 2 * np.pi * f / 48000)[0], gains, atol=1e-3)
    simple = partita.equalizer(bands, rate=48000)
    assert np.abs(magnitude_and_delay(simple.taps, [1.0], 2 * np.pi * f / 48000)[0] - gains).max() > 1


def test_crossover():
    made = partita.crossover([300, 3000], family=["butterworth", "linkwitz-riley"], order=[3, 8], rate=48000, tail=180)
    assert made.taps.shape[0] == 3 and made.tail >= 180
    w = 2 * np.pi * np.geomspace(20, 20000, 200) / 48000
    assert np.abs(magnitude_and_delay(made.taps.sum(0), [1.0], w)[0]).max() < 1e-3
    sos = scipy.signal.butter(4, 3000, btype="high", fs=48000, output="sos")
    high = scipy.signal.sosfilt(np.vstack([sos, sos, scipy.signal.butter(3, 300, "high", fs=48000, output="sos")]),
                                np.eye(1, made.taps.shape[1])[0])
    np.testing.assert_allclose(made.taps[2], high, rtol=0, atol=1e-10)
    options = {"rate": 48000, "phase": "linear", "taps": 999}
    louder = partita.crossover([300], gain=[0, 6], delay=[3, 0], inverted=[True, False], **options)
    plain = partita.crossover(np.array(300), **options)
    np.testing.assert_allclose(louder.taps[1], plain.taps[1] * 10**0.3, rtol=1e-15)
    np.testing.assert_allclose(louder.taps[0, 3:], -plain.taps[0, :-3], rtol=1e-15)


@pytest.mark.parametrize("line, section", [
    ("1: ON PK Fc 1,234.5 Hz Gain -2.4 dB Q 0.70", {"kind": "peak", "frequency": 1234.5, "gain": -2.4, "q": 0.7}),
    ("2: ON  PK       Fc   63,8 Hz  Gain  -5,0 dB  BW Oct 0,5",
     {"kind": "peak", "frequency": 63.8, "gain": -5, "bandwidth": 0.5}),
    (": ON LSC 9.6 dB Fc 100 Hz Gain 4 dB", {"kind": "low-shelf", "frequency": 100, "gain": 4, "slope": 9.6}),
    (": on hs Fc 8000 Hz Gain 4 dB", {"kind": "high-shelf", "frequency": 8000, "gain": 4, "slope": 10.8}),
    (": ON LS 12dB Fc 100 Hz Gain -8 dB", {"kind": "low-shelf", "frequency": 100 * 10**0.1, "gain": -8, "slope": 12}),
    (": ON HS 6dB Fc 1000 Hz Gain 8 dB", {"kind": "high-shelf", "frequency": 1000 / 10**0.2, "gain": 8, "slope": 6}),
    (": ON HP Fc 20 Hz", {"kind": "high-pass", "frequency": 20}),
    (": ON LPQ Fc 20000 Hz Q 0.5", {"kind": "low-pass", "frequency": 20000, "q": 0.5}),
    (": ON PK Fc 1.234,5 Hz Gain -2,4 dB Q 0,707", {"kind": "peak", "frequency": 1234.5, "gain": -2.4, "q": 0.707}),
    (": ON PK Fc 1,234 Hz Gain -2.4 dB Q 0.707", {"kind": "peak", "frequency": 1234, "gain": -2.4, "q": 0.707}),
    (": ON PK Fc 1.5 kHz Gain \u22123 dB Q 1", {"kind": "peak", "frequency": 1500, "gain": -3, "q": 1}),
    (": ON PK Fc 12\u00a0345 Hz Gain -,5 dB Q 0,7", {"kind": "peak", "frequency": 12345, "gain": -0.5, "q": 0.7}),
    (": ON NO Fc 50 Hz", {"kind": "notch", "frequency": 50, "q": 30}),
])
def test_lines_of_lists(line, section):
    got, = partita.read_equalizer("Filter " + line)
    assert got.pop("kind") == section.pop("kind")
    assert got == pytest.approx(section, rel=1e-14)


# Equalizer APO has the corner of a shelf, half of the gain at its slope from the middle. Q 0.707 is 12 dB an octave.
def test_corners_of_shelves():
    by_q, by_slope = (partita.read_equalizer(f"Filter: ON LS {slope} Fc 100 Hz Gain 9 dB {q}")[0]
                      for slope, q in (("12 dB", ""), ("", f"Q {0.5**0.5}")))
    assert by_q["frequency"] == pytest.approx(by_slope["frequency"])


def test_files_of_lists(tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("\ufeffPreamp: 1 dB\nFilter Settings file\nRoom EQ V5.20\nNotes: Filter\nEqualiser: Generic\n"
                    "# Filter: ON PK\nFilter  1: OFF PK Fc 50 Hz Gain 1 dB Q 1\nFilter 2: ON  None\nPreamp: -3,5 dB\n",
                    encoding="utf-8")
    assert partita.read_equalizer(path) == [{"kind": "gain", "gain": gain} for gain in (1, -3.5)]
    path.write_text("20 1.5")
    with pytest.raises(ValueError, match="list.txt has no line of Filter, Preamp or GraphicEQ$"):
        partita.read_equalizer(path)
    table = partita.read_equalizer("GraphicEQ: 20 -1.5; 1000 0.2; 19871 -3")
    np.testing.assert_array_equal(table, [(20, -1.5), (1000, 0.2), (19871, -3)])
    louder = partita.read_equalizer("Preamp: -6 dB\nGraphicEQ: 20 -1,5; 1000 0,25; 19871 -3")
    np.testing.assert_array_equal(louder, [(20, -7.5), (1000, -5.75), (19871, -9)])
    assert partita.design("table", table=table, rate=48000, width=100, minimum_phase=True).size > 1000


@pytest.mark.parametrize("call, text", [
    (lambda: partita.equalizer([{"kind": "pk"}]), "sections[0]: kind = 'pk': one of 'all-pass'"),
    (lambda: partita.equalizer([{"freq": 1}]), "sections[0] has no field 'freq': there are bandwidth, coefficients"),
    (lambda: partita.equalizer([{"frequency": "a"}]), "sections[0] = {'frequency': 'a'}"),
    (lambda: partita.equalizer([{"frequency": 0.6}]), "sections[0].frequency = 0.6: must be above 0 and below 0.5"),
    (lambda: partita.equalizer([{"kind": "biquad", "coefficients": (1, 0, 0, 1, 0, 1)}]), "sections[0]: is unstable"),
    (lambda: partita.equalizer([{"kind": "biquad", "coefficients": (1, 0, 0)}]), "expected 6"),
    (lambda: partita.equalizer([], phase="mixed"), "phase = 'mixed': one of 'linear', 'recursive'"),
    (lambda: partita.equalizer([], taps=4, phase="linear"), "taps = 4: must be odd"),
    (lambda: partita.crossover([0.1, 0.2], order=[4]), "order = [4]: one value, or 2 in a list"),
    (lambda: partita.crossover([0.1, 0.05]), "frequencies[1] = 0.05: must be above the one before"),
    (lambda: partita.crossover([0.1], family="elliptic"), "family = 'elliptic': one of"),
    (lambda: partita.read_equalizer("Filter: ON XX Fc 5 Hz"), "type = 'XX': one of 'PK'"),
    (lambda: partita.read_equalizer("Filter 3: ON LS Gain 5 dB Q 1"), "'ON LS Gain 5 dB Q 1': needs Fc"),
    (lambda: partita.read_equalizer("Filter 3: ON HS 6dB Fc 5 Hz"), "'ON HS 6dB Fc 5 Hz': needs Fc and Gain"),
    (lambda: partita.equalizer([{"kind": "biquad"}]), "sections[0]: a biquad needs coefficients"),
    (lambda: partita.equalizer([{"frequency": 0.1, "gain": 3, "q": 0}]), "sections[0].q = 0: a number other than 0"),
    (lambda: partita.equalizer([{"kind": "low-pass", "frequency": 0.1, "order": 0}]), "sections[0].order = 0: at least 1"),
    (lambda: partita.crossover([]), "frequencies = []: one or more"),
    (lambda: partita.equalizer([], tail=0), "tail = 0: a number other than 0"),
    (lambda: partita.equalizer([], tail=5), "tail = 5: must be from 20"),
    (lambda: partita.crossover(0.6), "frequencies[0] = 0.6: must be above 0 and below 0.5"),
    (lambda: partita.crossover([0.1], inverted="no"), "inverted = 'no': one of False, True"),
    (lambda: partita.read_equalizer("list.txt"), "'list.txt' has no line of Filter, Preamp or GraphicEQ"),
    (lambda: partita.read_equalizer("Filter: PK Fc 5 Hz Gain 3 dB"), "'PK Fc 5 Hz Gain 3 dB': needs ON or OFF"),
    (lambda: partita.read_equalizer("Filter: ON PK Fc 1,234 Hz Gain 3 dB"), "1,234 may be two numbers"),
    (lambda: partita.read_equalizer("Filter: ON PK Fc 1 500 Hz Gain 3 dB"), "'1 500' is no number"),
    (lambda: partita.read_equalizer("Filter: ON PK Fc 1k5 Hz Gain 3 dB"), "'1k5' is no number"),
    (lambda: partita.read_equalizer("Filter: ON PK Fc 5 Hz Gain 3 dB Q"), "'' is no number"),
    (lambda: partita.read_equalizer("Preamp: x dB"), "'x dB': 'x' is no number"),
    (lambda: partita.read_equalizer("GraphicEQ: 20, -1.5; 30, 1"), "'20,' is no number"),
    (lambda: partita.read_equalizer("GraphicEQ: 20; 30"), "GraphicEQ has shape (2, 1), not (points, 2)"),
    (lambda: partita.read_equalizer("Filter: ON HP Fc 5 Hz\nGraphicEQ: 20 1"), "cannot be read together"),
    (lambda: partita.read_equalizer("Channel: L\nFilter: ON PK Fc 5 Hz"), "'Channel: L': CHANNEL is not supported"),
])
def test_messages(call, text):
    with pytest.raises(ValueError) as raised:
        call()
    assert text in str(raised.value)


def test_types_are_checked():
    for sections in ({"frequency": 0.1}, [(1000, 3, 1)], "Preamp: -3 dB"):
        with pytest.raises(TypeError, match=r"sections\[0\] is of type .*: sections are dicts, for example"):
            partita.equalizer(sections)
    with pytest.raises(TypeError, match="source is of type bytes: the text of a list"):
        partita.read_equalizer(b"Preamp: -3 dB")

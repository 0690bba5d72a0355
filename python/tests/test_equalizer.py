# SPDX-License-Identifier: MIT
"""Taps of equalizers against the cookbook's biquads and SciPy, for lists of 20 headphones; lists that are read."""
import pathlib
import sys

import numpy as np
import pytest
import scipy.signal

import partita

sys.path.append(str(pathlib.Path(__file__).parents[2] / "tests/support"))
import equalizers  # noqa: E402
from equalizers import LISTS, biquad, magnitude_and_delay, text_of  # noqa: E402

RATES = 44100, 48000, 96000


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


@pytest.mark.parametrize("line, section", equalizers.LINES)
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
    (lambda: partita.equalizer([{"kind": "biquad"}]), "sections[0]: a biquad needs coefficients"),
    (lambda: partita.equalizer([{"frequency": 0.1, "gain": 3, "q": 0}]), "sections[0].q = 0: a number other than 0"),
    (lambda: partita.equalizer([{"kind": "low-pass", "frequency": 0.1, "order": 0}]), "sections[0].order = 0: at least 1"),
    (lambda: partita.crossover([]), "frequencies = []: one or more"),
    (lambda: partita.equalizer([], tail=0), "tail = 0: a number other than 0"),
    (lambda: partita.equalizer([], tail=5), "tail = 5: must be from 20"),
    (lambda: partita.crossover(0.6), "frequencies[0] = 0.6: must be above 0 and below 0.5"),
    (lambda: partita.crossover([0.1], inverted="no"), "inverted = 'no': one of False, True"),
    (lambda: partita.read_equalizer("list.txt"), "'list.txt' has no line of Filter, Preamp or GraphicEQ"),
    *[(lambda text=text: partita.read_equalizer(text), said) for text, said in equalizers.REFUSED],
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

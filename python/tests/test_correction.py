# SPDX-License-Identifier: MIT
"""Corrections of known responses, measured with NumPy. (The library's own tests compare them with their definition.)"""
import numpy as np
import pytest

import partita
from partita.correction import average, house_curve, invert, match, smooth

RATE = 48000
TAPS = 16384


def room(seed, frames=4800):
    """Decaying noise after a direct sound, through a falling low pass."""
    random = np.random.default_rng(seed)
    x = 0.2 * random.standard_normal(frames) * np.exp(-np.arange(frames) / 500)
    x[0] = 1
    return np.convolve(np.pad(x, (seed, 0)), [0.6, 0.3, 0.1])[:frames]


def bands(power, width=1 / 6, low=60, high=16000):
    """Frequencies, and the power around them in dB."""
    points = low * 2**np.arange(0, np.log2(high / low), 1 / 12)
    f = np.arange(len(power)) * RATE / 2 / (len(power) - 1)
    inside = [(f >= p * 2**(-width / 2)) & (f <= p * 2**(width / 2)) for p in points]
    return points, np.array([10 * np.log10(power[i].mean()) for i in inside])


@pytest.mark.parametrize("phase", ["minimum", "linear", "mixed"])
def test_the_power_of_all_positions_meets_the_target(phase):
    responses = np.array([room(seed) for seed in range(5)])
    taps, report = invert(responses, RATE, TAPS, target="bk", low=60, high=16000, boost=12, phase=phase)
    assert taps.dtype == np.float64 and taps.shape == (TAPS,)
    spectra = np.abs(np.fft.rfft(responses, 1 << 16))**2
    f, after = bands((spectra.mean(axis=0) * np.abs(np.fft.rfft(taps, 1 << 16))**2))
    curve = house_curve("bk")
    difference = after - np.interp(np.log(f), np.log(curve[:, 0]), curve[:, 1])
    assert np.ptp(difference) < 1.5 and report.after_max < 1 < report.before_max
    # Positions are weighted equally by the library, and nearly equal here.
    assert abs(difference.mean() - report.level) < 0.5
    assert report.delay == np.argmax(np.abs(taps))
    assert report.boost == pytest.approx(20 * np.log10(np.abs(np.fft.rfft(taps, 1 << 18)).max()), abs=0.05)
    assert report.safe_gain == pytest.approx(-20 * np.log10(np.abs(taps).sum()))
    if phase == "linear":
        np.testing.assert_allclose(taps[1:], taps[:0:-1], rtol=0, atol=1e-14)
    if phase == "mixed":
        assert report.pre_ringing <= -30 and 0 <= report.pre_time <= 0.02


def test_averages():
    x = room(3)
    np.testing.assert_allclose(average(x, RATE), x, rtol=0, atol=1e-14)
    both = average([x, np.roll(2 * x, 40)], RATE, mean="vector")
    np.testing.assert_allclose(both[:4000], np.sqrt(2.5) * x[:4000], rtol=0, atol=1e-3)  # its end is cut off in one
    expected = bands(np.abs(np.fft.rfft(x, 1 << 16))**2, 1, 200, 10000)[1]
    even = bands(np.abs(np.fft.rfft(smooth(x, RATE, 1), 1 << 16))**2, 1 / 48, 200, 10000)[1]
    np.testing.assert_allclose(even, expected, rtol=0, atol=0.5)  # dB; the phase of smoothing moves sound beyond its ends
    echo = np.zeros(4800)
    echo[[0, 2400]] = 1, 0.5
    assert abs(average(echo, RATE, window=5)[2400]) < 0.01  # all but frequencies below 100 Hz end before it


def test_channels_are_matched():
    reports = [invert(np.pad(gain * room(1), (delay, 0)), RATE, TAPS)[1] for gain, delay in ((1, 50), (0.5, 0))]
    gains, delays = match(reports)
    np.testing.assert_allclose(gains, [-20 * np.log10(2), 0], atol=1e-9)
    np.testing.assert_allclose(delays, [0, 50], atol=1e-9)


@pytest.mark.parametrize("options, error, text", [
    ({"phase": "zero"}, ValueError, "phase = 'zero': one of 'minimum', 'linear', 'mixed'"),
    ({"mean": "median"}, ValueError, "mean = 'median': one of 'energy', 'vector'"),
    ({"target": "nice"}, ValueError, "target = 'nice': one of 'flat', 'bk', 'harman-room'"),
    ({"target": [1, 2]}, ValueError, "target has shape (2,), not (points, 2)"),
    ({"target": [(0.02, 0), (10, -3)]}, ValueError, "target: has points from 0.02 to 10, outside of the range"),
    ({"boost": "a"}, TypeError, "boost = 'a': a number is needed"),
    ({"boost": 0}, ValueError, "boost = 0: a number other than 0 is needed"),
    ({"phase": ["linear"]}, ValueError, "phase = ['linear']: one of"),
    ({"boost": 100}, ValueError, "boost = 100: must be from 0.01 to 60"),
    ({"high": 30000}, ValueError, "high = 30000: must be from"),
    ({"taps": 1000}, ValueError, "taps = 1000: must be from 4800, 2 periods of low"),
    ({"taps": 2**80}, ValueError, "taps = 1208925819614629174706176: at most 262144"),
    ({"taps": 9.5}, TypeError, "taps = 9.5: an integer is needed"),
    ({"pre_time": 0.01}, ValueError, "only mixed phase"),
])
def test_messages(options, error, text):
    with pytest.raises(error) as raised:
        partita.correction.invert(room(1), RATE, **{"taps": TAPS, **options})
    assert text in str(raised.value)


@pytest.mark.parametrize("responses, text", [
    (np.zeros(100), "responses[0]: is silent"),
    ([1, np.nan], "responses[0][1] = nan: must be finite"),
    (np.sin(np.arange(48000)), "responses[0]: has no peak; partita.deconvolve"),
    (1.0, "responses has shape (), not (frames,) or (positions, frames)"),
    (np.empty((2, 0)), "responses has shape (2, 0)"),
    (np.zeros((480, 2)), "responses has shape (480, 2): more positions than frames"),
    ([[1, 0], [1]], "responses: setting an array element"),
    ("hall.wav", "responses: could not convert string to float"),
])
def test_responses_are_checked(responses, text):
    for function in (invert, average):
        with pytest.raises(ValueError) as raised:
            function(responses, RATE)
        assert text in str(raised.value)


def test_complex_responses_are_refused():
    with pytest.raises(TypeError, match="responses: complex samples; impulse responses are real"):
        average(np.fft.fft(room(1)), RATE)


@pytest.mark.parametrize("reports, error", [([], ValueError), ([(np.ones(3), None)], TypeError)])
def test_reports_are_checked(reports, error):
    with pytest.raises(error, match="reports .* Report"):
        match(reports)

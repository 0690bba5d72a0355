#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Filters with feedback in configurations of CamillaDSP. Each is compared with its recursion in double precision, with
coefficients of the Audio EQ Cookbook and of bilinear transforms; what is refused is named with its line."""
import os

import numpy as np

import rig
from rig import parse_wav, wav_bytes
from test_config import CAMILLA, WithYaml

RATES = (44100, 48000, 88200, 96000, 192000)
# Responses end 160 dB below their energy; each of the filters that they consist of ends at 180 dB.
END = 10**(-160 / 20) + 10 * 10**(-180 / 20)


def cookbook(kind, rate, f, q=None, bandwidth=None, slope=None, gain=0.0):
    w, a = 2 * np.pi * f / rate, 10**(gain / 40)
    sn, cs = np.sin(w), np.cos(w)
    if q:
        alpha = sn / (2 * q)
    elif bandwidth:
        alpha = sn * np.sinh(np.log(2) / 2 * bandwidth * w / sn)
    else:
        alpha = sn / 2 * np.sqrt((a + 1 / a) * (12 / slope - 1) + 2)
    r, notch = 2 * np.sqrt(a) * alpha, (1 + alpha, -2 * cs, 1 - alpha)
    b, a = {
        "Highpass": (((1 + cs) / 2, -1 - cs, (1 + cs) / 2), notch),
        "Lowpass": (((1 - cs) / 2, 1 - cs, (1 - cs) / 2), notch),
        "Peaking": ((1 + alpha * a, -2 * cs, 1 - alpha * a), (1 + alpha / a, -2 * cs, 1 - alpha / a)),
        "Notch": ((1, -2 * cs, 1), notch),
        "Bandpass": ((alpha, 0, -alpha), notch),
        "Allpass": (notch[::-1], notch),
        "Lowshelf": ((a * (a + 1 - (a - 1) * cs + r), 2 * a * (a - 1 - (a + 1) * cs), a * (a + 1 - (a - 1) * cs - r)),
                     (a + 1 + (a - 1) * cs + r, -2 * (a - 1 + (a + 1) * cs), a + 1 + (a - 1) * cs - r)),
        "Highshelf": ((a * (a + 1 + (a - 1) * cs + r), -2 * a * (a - 1 + (a + 1) * cs), a * (a + 1 + (a - 1) * cs - r)),
                      (a + 1 - (a - 1) * cs + r, 2 * (a - 1 - (a + 1) * cs), a + 1 - (a - 1) * cs - r)),
    }[kind]
    return np.array(b) / a[0], np.array(a) / a[0]


def bilinear(over, under, k):
    """Coefficients of powers of s from the highest on; s = k (1 - z) / (1 + z)."""
    out = []
    for p in (over, under):
        n = len(p) - 1
        out.append(sum(c * k**(n - i) * np.poly([1] * (n - i) + [-1] * i) for i, c in enumerate(p)))
    return out[0] / out[1][0], out[1] / out[1][0]


def first_order(over, under):
    return lambda rate, f, gain=0.0: bilinear(over(10**(gain / 40)), under(10**(gain / 40)), 1 / np.tan(np.pi * f / rate))


FIRST = {
    "HighpassFO": first_order(lambda a: (1, 0), lambda a: (1, 1)),
    "LowpassFO": first_order(lambda a: (0, 1), lambda a: (1, 1)),
    "AllpassFO": first_order(lambda a: (-1, 1), lambda a: (1, 1)),
    "LowshelfFO": first_order(lambda a: (a, a * a), lambda a: (a, 1)),
    "HighshelfFO": first_order(lambda a: (a * a, a), lambda a: (1, a)),
}


def general_notch(rate, freq_z, freq_p, q_p, normalize_at_dc=False):
    z, p = np.tan(np.pi * freq_z / rate), np.tan(np.pi * freq_p / rate)
    b, a = bilinear((1, 0, z * z), (1, p / q_p, p * p), 1)
    return b * ((p / z)**2 if normalize_at_dc else 1), a


def linkwitz_transform(rate, freq_act, q_act, freq_target, q_target):
    w, v = 2 * np.pi * freq_act, 2 * np.pi * freq_target
    k = (w + v) / 2 / np.tan((w + v) / 4 / rate)
    return bilinear((1, w / q_act, w * w), (1, v / q_target, v * v), k)


def passes(kind, rate, freq, order, times=1):
    """Butterworth's low or high pass of an order, several times."""
    half = range(order // 2)
    one = [cookbook(kind, rate, freq, 1 / (2 * np.sin(np.pi / order * (i + 0.5)))) for i in half]
    return times * (one + [FIRST[kind + "FO"](rate, freq)] * (order % 2))


def peaks(rate, freq_min, freq_max, gains):
    width = np.log2(freq_max / freq_min) / len(gains)
    return [cookbook("Peaking", rate, freq_min * 2**((i + 0.5) * width), bandwidth=width, gain=g)
            for i, g in enumerate(gains)]


def five_points(rate, p):
    kinds = {"ls": "Lowshelf", "p1": "Peaking", "p2": "Peaking", "p3": "Peaking", "hs": "Highshelf"}
    return [cookbook(kind, rate, p["f" + s], p["q" + s], gain=p["g" + s]) for s, kind in kinds.items()]


def biquads():
    """Triples of type, parameters and what makes the coefficients of the recursions from a rate."""
    def one(kind, **p):
        f = {k: v for k, v in p.items() if k != "freq"}
        if kind in FIRST:
            return kind, p, lambda rate: [FIRST[kind](rate, p["freq"], **f)]
        return kind, p, lambda rate: [cookbook(kind, rate, p["freq"], **f)]
    yield "Free", {"b0": 1.2, "b1": -0.5, "b2": 0.25, "a1": -1.4, "a2": 0.6}, \
        lambda rate: [(np.array((1.2, -0.5, 0.25)), np.array((1, -1.4, 0.6)))]
    for kind in ("Highpass", "Lowpass"):
        yield one(kind, freq=200, q=0.5)
        yield one(kind, freq=3000, q=4)
    for kind in ("Notch", "Bandpass", "Allpass"):
        yield one(kind, freq=1000, q=2)
        yield one(kind, freq=15000, bandwidth=0.7)
    for gain in (12.5, -8):
        yield one("Peaking", freq=500, q=3, gain=gain)
        yield one("Peaking", freq=12000, bandwidth=1.5, gain=gain)
        for kind in ("Lowshelf", "Highshelf"):
            yield one(kind, freq=400, q=0.6, gain=gain)
            yield one(kind, freq=4000, slope=12 if gain > 0 else 6, gain=gain)
            yield one(kind + "FO", freq=2500, gain=gain)
    for kind in ("HighpassFO", "LowpassFO", "AllpassFO"):
        yield one(kind, freq=700)
    for p in ({"freq_z": 2000, "freq_p": 1000, "q_p": 2}, {"freq_z": 300, "freq_p": 450, "q_p": 1, "normalize_at_dc": True}):
        yield "GeneralNotch", p, lambda rate, p=p: [general_notch(rate, **p)]
    p = {"freq_act": 100, "q_act": 1.2, "freq_target": 45, "q_target": 0.7}
    yield "LinkwitzTransform", p, lambda rate: [linkwitz_transform(rate, **p)]


def combos():
    for side in ("Highpass", "Lowpass"):
        for order in (1, 2, 3, 8):
            yield "Butterworth" + side, {"freq": 800, "order": order}, \
                lambda rate, s=side, n=order: passes(s, rate, 800, n)
        for order in (2, 4, 6):
            yield "LinkwitzRiley" + side, {"freq": 1500, "order": order}, \
                lambda rate, s=side, n=order: passes(s, rate, 1500, n // 2, 2)
    yield "Tilt", {"gain": 5}, lambda rate: [cookbook("Lowshelf", rate, 110, 0.35, gain=-2.5),
                                             cookbook("Highshelf", rate, 3500, 0.35, gain=2.5)]
    five = {"fls": 125, "gls": 3, "qls": 0.7, "fp1": 400, "gp1": -2.5, "qp1": 0.9, "fp2": 1000, "gp2": 1.5, "qp2": 1,
            "fp3": 2500, "gp3": -4, "qp3": 2, "fhs": 8000, "ghs": 0.5, "qhs": 0.5}
    yield "FivePointPeq", five, lambda rate: five_points(rate, five)
    yield "GraphicEqualizer", {"freq_min": 60, "freq_max": 16000, "gains": [3, -4, 0, 6]}, \
        lambda rate: peaks(rate, 60, 16000, [3, -4, 0, 6])
    yield "GraphicEqualizer", {"gains": [1, 2]}, lambda rate: peaks(rate, 20, 20000, [1, 2])


def recursion(x, sections):
    for b, a in sections:
        if len(a) == 1:
            x = np.convolve(x, b)[:len(x)]
            continue
        (b0, b1, b2), (a1, a2) = np.resize(np.append(b, 0), 3), np.resize(np.append(a[1:], 0), 2)
        y, s, t = [], 0.0, 0.0
        for v in map(float, x):
            w = b0 * v + s
            s, t = b1 * v - a1 * w + t, b2 * v - a2 * w
            y.append(w)
        x = y
    return np.array(x)


def flow(value):
    """A value of YAML on one line."""
    if isinstance(value, dict):
        return "{%s}" % ", ".join("%s: %s" % (k, flow(v)) for k, v in value.items())
    return str(value).lower() if isinstance(value, bool) else str(value)


class Recursive(WithYaml):
    def compare(self, filters, rate):
        """filters: of (type, parameters, sections). Each filters an output of a mixer with one input."""
        n = len(filters)
        self.text("a.yml", "devices: {samplerate: %d, capture: {channels: 1}}" % rate, "filters:",
                  *["  f%d: %s" % (k, flow({"type": t, "parameters": p})) for k, (t, p, _) in enumerate(filters)],
                  "mixers: {m: {channels: {in: 1, out: %d}, mapping: [%s]}}" %
                  (n, ", ".join("{dest: %d, sources: [{channel: 0}]}" % k for k in range(n))),
                  "pipeline:", "  - {type: Mixer, name: m}",
                  *["  - {type: Filter, channels: [%d], names: [f%d]}" % (k, k) for k in range(n)])
        x = self.random.standard_normal(100)
        self.write("x.wav", wav_bytes(x, bits=64, rate=rate))
        done = self.run_program("convolve", "-v", "--config", "a.yml", "x.wav", "y.wav")
        y = parse_wav(self.read("y.wav"))[1]
        self.assertIn("recursive filters are up to %d taps, and end at -160 dB" % (len(y) - len(x) + 1), done.stderr.decode())
        padded = np.concatenate((x, np.zeros(len(y) - len(x))))
        for k, (kind, parameters, sections) in enumerate(filters):
            with self.subTest(rate=rate, kind=kind, parameters=parameters):
                expected = recursion(padded, sections(rate))
                # The responses differ by at most END of their energy: by Cauchy and Schwarz no output by more than
                # that times the norms of the signal and of the response.
                response = np.linalg.norm(recursion([1] + [0] * (len(y) - 1), sections(rate)))
                self.assertLessEqual(np.abs(y[:, k] - expected).max(), END * response * np.linalg.norm(x))
        return done

    def test_biquads(self):
        for rate in RATES:
            self.compare([("Biquad", {"type": t, **p}, s) for t, p, s in biquads()], rate)

    def test_combinations(self):
        for rate in RATES:
            self.compare([("BiquadCombo", {"type": t, **p}, s) for t, p, s in combos()], rate)

    def test_chains(self):
        """Filters in series, also with gains and taps between, are as long as their product is; a channel without
        feedback keeps its taps, zeros at the end included."""
        rate = 48000
        filters = list(biquads())[:12]
        self.signal(2, rate)
        self.text("a.yml", "devices: {samplerate: %d, capture: {channels: 2}}" % rate, "filters:",
                  *["  f%d: %s" % (k, flow({"type": "Biquad", "parameters": {"type": t, **p}}))
                    for k, (t, p, _) in enumerate(filters)],
                  "  g: {type: Gain, parameters: {gain: -6}}",
                  "  c: {type: Conv, parameters: {type: Values, values: [1, 0.5, 0, 0]}}",
                  "pipeline:",
                  "  - {type: Filter, channel: 0, names: [f0, g, %s]}" % ", ".join("f%d" % k for k in range(1, 12)),
                  "  - {type: Filter, names: [c]}")
        y = self.result("a.yml", "--output-format", "f64")
        sections = [b for _, _, make in filters for b in make(rate)]
        x = np.concatenate((self.x[:, 0].astype("f8"), np.zeros(len(y) - len(self.x))))
        expected = 10**(-6 / 20) * np.convolve(recursion(x, sections), [1, 0.5])[:len(y)]
        self.close(y[:, 0].astype("f4"), expected)
        short = np.convolve(self.x[:, 1].astype("f8"), [1, 0.5])
        self.close(y[:len(short), 1].astype("f4"), short, typical=1)
        self.text("b.yml", "devices: {samplerate: %d, capture: {channels: 2}}" % rate,
                  "filters: {c: {type: Conv, parameters: {type: Values, values: [1, 0.5, 0, 0]}}}",
                  "pipeline: [{type: Filter, names: [c]}]")
        self.assertEqual(len(self.result("b.yml")), len(self.x) + 3)

    def test_loudness_and_volume(self):
        """At 0 dB, with which CamillaDSP starts."""
        def loudness(rate):
            share = 5 / 20
            return [cookbook("Highshelf", rate, 3500, slope=12, gain=share * 8),
                    cookbook("Lowshelf", rate, 70, slope=12, gain=share * 10),
                    (np.array([10**(-share * 10 / 20)]), np.array([1]))]
        unit, quiet = [(np.array([1]), np.array([1]))], [(np.array([10**(-3 / 20)]), np.array([1]))]
        done = self.compare([
            ("Loudness", {"fader": "Aux1", "reference_level": 5, "high_boost": 8, "attenuate_mid": True}, loudness),
            ("Loudness", {"reference_level": -25, "low_boost": 12}, lambda rate: unit),
            ("Volume", {"fader": "Aux1", "ramp_time": 200}, lambda rate: unit),
            ("Volume", {"fader": "Aux1", "limit": -3}, lambda rate: quiet)], 48000)
        for line, words in ((3, "Loudness follows a volume, and is computed for one of 0 dB"), (6, "Volume is 0 dB")):
            self.assertIn("partita convolve: a.yml:%d: %s" % (line, words), done.stderr.decode())
        long = 4 * ("d" * 100 + "/")
        os.makedirs(long)
        os.rename("a.yml", long + "a.yml")
        said = self.run_program("convolve", "--config", long + "a.yml", "x.wav", "y.wav").stderr.decode()
        self.assertIn(long + "a.yml:6: Volume is 0 dB\n", said)

    def test_delays_of_parts_of_frames(self):
        """Thiran's all passes: a delay D of an order N has a[k] = (-1)^k C(N, k) prod (D - N + n) / (D - N + k + n)."""
        def sections(frames):
            if frames < 0.1:
                return [([1], [1])]
            order = 1 if frames < 1.1 else 2
            whole = max(int(np.floor(frames - 1.1)), 0)
            d, n = frames - whole + 1e-13, np.arange(order + 1)  # no integer, which would divide 0 by 0
            a = np.array([(-1)**k * (1 if k in (0, order) else 2) * np.prod((d - order + n) / (d - order + k + n))
                          for k in range(order + 1)])
            return [([0] * whole + [1], [1]), (a[::-1], a)]
        frames = (0.05, 0.1, 0.5, 1.05, 1.5, 2, 3.09, 3.11, 700.75)
        self.compare([("Delay", {"delay": f, "unit": "samples", "subsample": True}, lambda rate, f=f: sections(f))
                      for f in frames], 48000)
        self.signal(2)
        # A filter that is used again is as before.
        self.text("a.yml", CAMILLA % 2 + "filters: {d: {type: Delay, parameters: {delay: 3.5, unit: samples, subsample: true}}}",
                  "pipeline: [{type: Filter, names: [d, d]}, {type: Filter, channel: 1, names: [d]}]")
        y = self.result("a.yml")
        for channel, times in ((0, 2), (1, 3)):
            expected = recursion(np.concatenate((self.x[:, channel], np.zeros(len(y) - len(self.x)))), times * sections(3.5))
            self.close(y[:, channel].astype("f4"), expected)

    def test_other_rates(self):
        """Filters are computed for the rate of the signal; coefficients are resampled as any response."""
        self.signal(2, 96000)
        self.text("a.yml", CAMILLA % 2 + "filters: {f: {type: Biquad, parameters: {type: Peaking, freq: 9000, q: 2, gain: 9}}}",
                  "pipeline: [{type: Filter, names: [f]}]")
        y = self.result("a.yml", "--resample-ir")
        x = np.concatenate((self.x[:, 0], np.zeros(len(y) - len(self.x))))
        self.close(y[:, 0].astype("f4"), recursion(x, [cookbook("Peaking", 96000, 9000, 2, gain=9)]))
        self.text("a.yml", CAMILLA % 2 + "filters:", "  f: {type: Biquad, parameters: {type: Lowpass, freq: 23000, q: 2}}",
                  "pipeline: [{type: Filter, names: [f]}]")
        self.signal(2, 44100)
        self.fails("convolve", "--resample-ir", "--config", "a.yml", "x.wav", "out.wav",
                   says="a.yml:8: frequency = 23000: must be above 0 and below 22050, half of the rate")
        self.text("taps.txt", *["%.17g" % h for h in recursion([1] + [0] * 199, [([1.2, -0.5, 0.25], [1, -1.4, 0.6])])])
        use = "pipeline: [{type: Filter, names: [f]}]"
        results = []
        for parameters in ("type: Biquad, parameters: {type: Free, b0: 1.2, b1: -0.5, b2: 0.25, a1: -1.4, a2: 0.6}",
                           "type: Conv, parameters: {type: Raw, filename: taps.txt}"):
            self.text("a.yml", CAMILLA % 2 + "filters: {f: {%s}}" % parameters, use)
            results.append(self.result("a.yml", "--resample-ir")[:len(self.x)])
        self.close(results[0].astype("f4"), results[1], 2 * rig.gate("f4"))

    def test_refusals(self):
        def one(parameters, kind="Biquad"):
            return "f: {type: %s, parameters: {%s}}" % (kind, parameters)

        def combo(parameters):
            return one(parameters, "BiquadCombo")

        words = "must be above 0 and below 24000, half of the rate"
        cases = [
            (one("type: Lowpass, freq: 24000, q: 1"), "a.yml:8: frequency = 24000: " + words),
            (one("type: Lowpass, freq: 0, q: 1"), "a.yml:8: frequency = 0: " + words),
            (one("type: Lowpass, freq: 30k, q: 1"), "a.yml:8: freq: '30k' is not a number from 0 to 24000"),
            (one("type: Lowpass, freq: -1, q: 1"), "a.yml:8: freq: '-1'"),
            (one("type: Lowpass, freq: nan, q: 1"), "a.yml:8: freq: 'nan'"),
            (one("type: Lowpass, freq: [1], q: 1"), "a.yml:8: freq: '' is not a number from 0 to 24000"),
            (one("type: Lowpass, q: 1"), "a.yml:8: needs a value of freq"),
            (one("type: Lowpass, freq: 100"), "a.yml:8: needs a value of q"),
            (one("type: Lowpass, freq: 100, q: 0"), "a.yml:8: q: '0' is not a number from 1e-06 to 1000000"),
            (one("type: Lowpass, freq: 100, Q: 1"), "a.yml:8: 'Q' is not one of the keys type|freq|q"),
            (one("type: Lowpas, freq: 100, q: 1"), "a.yml:8: type: 'Lowpas' is no type of Biquad and BiquadCombo"),
            (one("freq: 100, q: 1"), "a.yml:8: needs a value of type"),
            ("f: {type: Biquad}", "a.yml:8: filter 'f' has no parameters"),
            ("f: {type: Biquad, parameters: 5}", "a.yml:8: needs a value of type"),
            (one("type: Peaking, freq: 100, gain: 3"), "a.yml:8: needs a value of q|bandwidth"),
            (one("type: Peaking, freq: 100, q: 1, bandwidth: 1, gain: 3"),
             "a.yml:8: has several widths; set one of q, bandwidth and slope"),
            (one("type: Peaking, freq: 100, q: 1, gain: 151"), "a.yml:8: gain: '151' is not a number from -150 to 150"),
            (one("type: Peaking, freq: 100, bandwidth: 0, gain: 1"), "a.yml:8: bandwidth: '0'"),
            (one("type: Highshelf, freq: 100, slope: 13, gain: 1"), "a.yml:8: slope: '13' is not a number from 1e-06 to 12"),
            (one("type: GeneralNotch, freq_z: 100, freq_p: 90, q_p: 1, normalize_at_dc: 1"),
             "a.yml:8: normalize_at_dc: '1' is neither true nor false"),
            (one("type: GeneralNotch, freq_z: 100, q_p: 1"), "a.yml:8: needs a value of freq_p"),
            (one("type: LinkwitzTransform, freq_act: 100, q_act: 1, freq_target: 24000, q_target: 1"),
             "a.yml:8: target_frequency = 24000: " + words),
            (one("type: Free, b0: 1, b1: 0, b2: 0, a1: -2, a2: 1"),
             "a.yml:8: is unstable: 1 -2/z +1/z^2 is 0 on or outside the unit circle"),
            (one("type: Free, b0: 1, b1: 0, b2: 0, a1: 0, a2: -1.5"), "a.yml:8: is unstable: 1 +0/z -1.5/z^2"),
            (one("type: Free, b0: 1, b1: 0, b2: 0, a1: 0"), "a.yml:8: needs a value of a2"),
            (one("type: Free, b0: 1, b1: 0, b2: 0, a1: 0, a2: inf"), "a.yml:8: a2: 'inf'"),
            (one("type: Peaking, freq: 20, q: 10000, gain: 30"),
             "a.yml:8: decays too slowly for taps; use higher frequencies or a lower q"),
            (combo("type: ButterworthLowpass, freq: 100"), "a.yml:8: needs a value of order"),
            (combo("type: ButterworthLowpass, freq: 100, order: 0"), "a.yml:8: order: '0' is not a whole number from 1 to 16"),
            (combo("type: ButterworthLowpass, freq: 100, order: 2.5"), "a.yml:8: order: '2.5' is not a whole number"),
            (combo("type: LinkwitzRileyLowpass, freq: 100, order: 3"),
             "a.yml:8: order = 3: must be even for Linkwitz-Riley"),
            (combo("type: FivePointPeq, fls: 1, gls: 1, qls: 1"), "a.yml:8: needs a value of fp1"),
            (combo("type: FivePointPeq, freq: 1"),
             "a.yml:8: 'freq' is not one of the keys type|fls|gls|qls|fp1|gp1|qp1|fp2|gp2|qp2|fp3|gp3|qp3|fhs|ghs|qhs"),
            (combo("type: GraphicEqualizer"), "a.yml:8: gains: needs a list of 1 to 4096 numbers"),
            (combo("type: GraphicEqualizer, gains: [%s]" % ("1," * 4097)), "a.yml:8: gains: needs a list of 1 to 4096"),
            (combo("type: GraphicEqualizer, gains: 5"), "a.yml:8: gains: needs a list"),
            (combo("type: GraphicEqualizer, gains: [41]"), "a.yml:8: gains: '41' is not a number from -40 to 40"),
            (combo("type: GraphicEqualizer, gains: [[1]]"), "a.yml:8: gains: '' is not a number"),
            (combo("type: GraphicEqualizer, gains: [1], freq_min: 20000"), "a.yml:8: freq_max: must be above freq_min, 20000"),
            (combo("type: GraphicEqualizer, gains: [1], freq_max: 24001"), "a.yml:8: freq_max: '24001'"),
            (one("fader: Main", "Loudness"), "a.yml:8: needs a value of reference_level"),
            (one("reference_level: 21", "Loudness"), "a.yml:8: reference_level: '21' is not a number from -100 to 20"),
            (one("fader: Aux1, limit: 60", "Volume"), "a.yml:8: limit: '60' is not a number from -150 to 50"),
            (one("type: Simple, bits: 16", "Dither"), "a.yml:8: filter 'f': Dither cannot be convolved; take it out of the pipeline"),
            (one("clip_limit: -1", "Limiter"), "a.yml:8: filter 'f': Limiter cannot be convolved"),
        ]
        for filters, says in cases:
            with self.subTest(filters):
                self.text("a.yml", CAMILLA % 2 + "filters:", "  " + filters, "pipeline: [{type: Filter, names: [f]}]")
                self.fails("convolve", "--config", "a.yml", "x.wav", "out.wav", says=says)


if __name__ == "__main__":
    rig.main()

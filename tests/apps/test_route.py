#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Filters made of several: chains of files, compared with sums in double."""
import importlib.util
import json
import math
import os
import shutil
import struct

import numpy as np

import rig
from rig import Case, parse_wav, wav_bytes

HERE = os.path.dirname(os.path.abspath(__file__))

# The program convolves the files in double and the signal with the result; the gate of double transforms holds for
# each of these convolutions.
GATE = 4 * rig.gate("f8")


def chained(*responses):
    """The response [out][in][frames] of matrices one after the other."""
    total = responses[0]
    for h in responses[1:]:
        total = np.array([[sum(np.convolve(h[o, m], total[m, i]) for m in range(h.shape[1]))
                           for i in range(total.shape[1])] for o in range(h.shape[0])])
    return total


def diagonal(h):
    return np.array([[h[o] if o == i else 0 * h[o] for i in range(len(h))] for o in range(len(h))])


def filtered(x, h):
    return np.array([sum(np.convolve(x[i], h[o, i]) for i in range(len(x))) for o in range(len(h))])


class Chains(Case):
    def setUp(self):
        super().setUp()
        noise = self.random.standard_normal
        self.x = noise((2, 300))
        self.one, self.two, self.four, self.six = noise(40), noise((2, 30)), noise((2, 2, 20)), noise((3, 2, 25))
        for name, array in (("x", self.x), ("mono", self.x[0]), ("one", self.one), ("two", self.two),
                            ("four", self.four.reshape(4, 20)), ("three_d", self.six), ("short", noise(7))):
            np.save(name + ".npy", array)
        self.both = diagonal(np.array([self.one, self.one]))

    def result(self, *arguments):
        self.run_program("convolve", *arguments, "y.npy")
        return np.load("y.npy")

    def agree(self, expected, *arguments):
        self.close(self.result(*arguments), expected, GATE)

    def test_channel_rules(self):
        two, one = diagonal(self.two), self.one[None, None]
        self.agree(np.convolve(np.convolve(self.x[0], self.one), self.one), "one.npy+one.npy", "mono.npy")
        for chain, responses in (("one.npy+two.npy", (self.both, two)), ("two.npy+one.npy", (two, self.both)),
                                 ("two.npy+two.npy+one.npy", (two, two, self.both)),
                                 ("two.npy+three_d.npy", (two, self.six))):
            self.agree(filtered(self.x, chained(*responses)), chain, "x.npy")
        self.agree(filtered(self.x[:1], chained(one, self.two[:, None], two)), "one.npy+two.npy+two.npy", "mono.npy")

    def test_matrices(self):
        transposed = self.four.transpose(1, 0, 2)
        for arguments, responses in (
                (["--matrix", "four.npy+four.npy"], (self.four, self.four)),
                (["--matrix", "one.npy+four.npy+one.npy"], (self.both, self.four, self.both)),
                (["--true-stereo", "four.npy+three_d.npy"], (transposed, self.six)),
                (["true-stereo:four.npy+matrix:four.npy"], (transposed, self.four)),
                (["two.npy+matrix:two.npy"], (diagonal(self.two), self.two[None]))):
            with self.subTest(arguments):
                self.agree(filtered(self.x, chained(*responses)), *arguments, "x.npy")

    def test_names_with_a_plus(self):
        expected = np.convolve(np.convolve(self.x[0], self.one), np.load("short.npy"))
        np.save("a+b.npy", self.one)
        self.agree(np.convolve(self.x[0], self.one), "a+b.npy", "mono.npy")
        for chain in ("a+b.npy+short.npy", "short.npy+a+b.npy"):
            self.agree(expected, chain, "mono.npy")

    def test_options(self):
        total = np.convolve(self.one, np.load("short.npy"))
        h = total * 10**(-3 / 20)
        h[0] += 1
        h *= 10**(6 / 20)
        self.agree(np.convolve(self.x[0], h), "--gain", 6, "--wet", -3, "--dry", 0, "one.npy+short.npy", "mono.npy")
        self.agree(np.convolve(np.repeat(self.x[0], 3) * np.tile([1, 0, 0], 300), total)[::2], "--up", 3, "--stride", 2,
                   "one.npy+short.npy", "mono.npy")
        np.save("total.npy", total)
        for options in (["--ir-length", 20], ["--ir-fade", 30], ["--ir-length", 31, "--ir-fade", 9, "--delay", 12, "--dry", -6],
                        ["--ir-length", 1], ["--ir-length", 99, "--ir-fade", 99], ["--delay", 400]):
            with self.subTest(options):  # of a chain as of the file that is the same
                self.agree(self.result(*options, "total.npy", "mono.npy"), *options, "one.npy+short.npy", "mono.npy")
        for k in (1, 2):
            self.run_program("convolve", "--range", "%d/2" % k, "one.npy+short.npy", "mono.npy", "y%d.npy" % k)
        self.run_program("join", "y.npy", "y1.npy", "y2.npy")
        self.close(np.load("y.npy"), np.convolve(self.x[0], total), GATE)

    def test_latency(self):
        total = np.convolve(self.one, np.load("short.npy"))
        done = self.run_program("convolve", "-v", "--json", "one.npy+short.npy", "mono.npy", "y.npy")
        self.assertEqual(json.loads(done.stdout)["filter_peak"], abs(total).argmax())
        self.assertIn("one.npy+short.npy: 46 taps, with their peak at frame %d" % abs(total).argmax(), done.stderr.decode())
        done = self.run_program("convolve", "--json", "two.npy", "x.npy", "y.npy")
        self.assertEqual(json.loads(done.stdout)["filter_peak"], (self.two**2).sum(0).argmax())

    def test_rates(self):
        """A chain of resampled files is the chain of what resampling makes of each."""
        click = np.zeros(2000, "f4")
        click[1000] = 1
        self.write("click.wav", wav_bytes(click, bits=32, rate=48000))
        self.write("low.wav", wav_bytes(self.one.astype("f4"), bits=32, rate=44100))
        self.write("high.wav", wav_bytes(self.one.astype("f4"), bits=32, rate=48000))
        self.fails("convolve", "low.wav+high.wav", "click.wav", "y.wav",
                   says=["low.wav+high.wav: low.wav: sample rate 44100 Hz differs from the 48000 Hz of click.wav", "--resample-ir"])
        def made(ir, signal):
            self.run_program("convolve", "--resample-ir", "-p", "f64", "--output-format", "f64", ir, signal, "y.wav")
            return parse_wav(self.read("y.wav"))[1][:, 0]
        both = made("low.wav+high.wav", "click.wav")
        expected = np.convolve(made("low.wav", "click.wav"), self.one.astype("f4").astype("f8"))
        # The lead of a resampled response before frame 0 is part of the chain; nothing is before the click's 1000 frames.
        self.close(both, expected[:len(both)], 1e-9)
        self.fails("convolve", "low.wav+high.wav", "mono.npy", "y.npy", says=["high.wav", "48000", "44100", "--rate"])
        self.run_program("convolve", "high.wav+one.npy", "mono.npy", "y.wav")
        self.assertEqual(parse_wav(self.read("y.wav"))[0], 48000)

    def test_refusals(self):
        np.save("complex.npy", self.one * 1j)
        self.write("a.conf", b"/convolver/new 1 1 64 64\n")
        self.write("room.sofa", b"")
        for arguments, says, rc in (
                (["one.npy+absent.npy"], ["absent.npy: cannot open: No such file"], 1),
                (["one.npy+"], ["one.npy+: names no filter on one side of a +"], 1),
                (["+one.npy"], ["names no filter"], 1),
                (["one.npy++one.npy"], ["names no filter"], 1),
                (["one.npy+four.npy"], ["four.npy: 4 channels", "has 2 channels", "matrix:four.npy"], 1),
                (["one.npy+matrix:one.npy"], ["one.npy: 1 channel of", "the filter before it has 2 channels"], 1),
                (["two.npy+complex.npy"], ["complex.npy: complex taps"], 1),
                (["one.npy+a.conf"], ["a.conf: a configuration cannot be part of a chain"], 1),
                (["one.npy+-"], ["-: taps of a configuration or a chain are in files"], 1),
                (["one.npy+short.npy", "one.npy"], ["one.npy+short.npy: a chain", "must be the only IR"], 2),
                (["--ir-channel", 1, "one.npy+short.npy"], ["one.npy+short.npy: names whole files; leave out --ir-format, --ir-channel"], 2),
                (["--ir-format", "f32", "one.npy+short.npy"], ["leave out --ir-format"], 2),
                (["--azimuth", 5, "one.npy+short.npy"], ["--azimuth"], 2)):
            with self.subTest(arguments):
                self.fails("convolve", *arguments, "x.npy", "out.npy", says=says, rc=rc)
        self.fails("convolve", "x.npy+one.npy", "x.npy", "one.npy", says="one.npy")  # OUT is one of the files
        self.fails("correlate", "one.npy+short.npy", "mono.npy", "out.npy", says="No such file")


class RateOut(Case):
    """--rate-out: tones of the pass band at the times of the new rate, nothing of others."""

    def tones(self, rate, n, low):
        """Tones up to 0.91 of half of the lower rate: the low pass changes them by less than 120 dB below their sum."""
        t = np.arange(n) / rate
        return np.stack([np.cos(2 * np.pi * f * low * t + p) for f, p in ((0, 0), (0.1, 1), (0.3, 2), (0.45, 3), (0.455, 4))]).sum(0)

    def test_tones(self):
        for rate, out in ((48000, 44100), (44100, 48000), (48000, 96000), (48000, 16000), (44100, 44100), (62.5, 50)):
            with self.subTest(rate=rate, out=out):
                low, n = min(rate, out), 3001
                np.save("x.npy", self.tones(rate, n, low))
                self.run_program("convolve", "--rate", rate, "--rate-out", out, "x.npy", "y.npy")
                y = np.load("y.npy")
                self.assertEqual(len(y), -(-n * out // rate))
                # The low pass reaches 90 frames of the lower rate; a tone and its images are 1e-6 of it at the most.
                edge = int(100 * out / low)
                self.close(y[edge:-edge], self.tones(out, len(y), low)[edge:-edge], 2e-6)

    def test_aliases(self):
        for rate, out, tone in ((48000, 44100, 22100), (48000, 44100, 23900), (48000, 16000, 8100), (16000, 48000, 7990)):
            np.save("x.npy", np.cos(2 * np.pi * tone / rate * np.arange(9000)))
            self.run_program("convolve", "--rate", rate, "--rate-out", out, "x.npy", "y.npy")
            y = np.load("y.npy")[600:-600]
            if tone < out / 2:  # the tone itself, in the transition, and an image at 16000 - 7990 Hz
                phase = 2 * np.pi * tone / out * np.arange(len(y))
                basis = np.stack([np.cos(phase), np.sin(phase)], axis=1)
                y = y - basis @ np.linalg.lstsq(basis, y, rcond=None)[0]
            self.assertLess(abs(y).max(), 1.1e-6)

    def test_with_a_filter(self):
        """The same as the filter first and the rate afterwards, in double."""
        noise = self.random.standard_normal
        x, h, z = noise((2, 700)), noise((2, 90)), noise(70) + 1j * noise(70)
        for name, array in (("x", x), ("h", h), ("mono", x[0]), ("z", z), ("one", h[0])):
            np.save(name + ".npy", array)
        for ir, signal, more in (("h", "x", ["--gain", 3, "--dry", -6]), ("one", "x", ["--tail", "no"]), ("h", "mono", []),
                                 ("z", "mono", ["--mode", "same"]), ("one.npy+h", "x", []), ("h", "x", ["--matrix"]),
                                 ("one", "mono", ["--mode", "valid"]), ("one", "mono", ["--delay", 7, "--threads", 2])):
            with self.subTest(ir=ir, more=more):
                arguments = [*more, "--rate", 48000, ir + ".npy", signal + ".npy"]
                self.run_program("convolve", *arguments, "filtered.npy")
                self.run_program("convolve", "--rate", 48000, "--rate-out", 36000, "filtered.npy", "expected.npy")
                self.run_program("convolve", "--rate-out", 36000, *arguments, "y.npy")
                y, expected = np.load("y.npy"), np.load("expected.npy")
                self.assertEqual(y.shape, expected.shape)
                # What the filter has beyond a part of its result is not there when the rate of that part is changed.
                inner = slice(100, -100) if "--mode" in more or "--tail" in more else slice(None)
                self.close(y[..., inner], expected[..., inner], 4 * rig.gate("f8"))
        for k in (1, 2):
            self.run_program("convolve", "--range", "%d/2" % k, "--rate", 48000, "--rate-out", 36000, "h.npy", "x.npy", "y%d.npy" % k)
        self.run_program("join", "y.npy", "y1.npy", "y2.npy")
        self.run_program("convolve", "--threads", 2, "--rate", 48000, "--rate-out", 36000, "h.npy", "x.npy", "whole.npy")
        np.testing.assert_array_equal(np.load("y.npy"), np.load("whole.npy"))

    def test_files(self):
        x = self.tones(48000, 4000, 44100) / 8
        self.write("x.wav", wav_bytes(x.astype("f4"), bits=32))
        self.run_program("convolve", "--rate-out", "44.1k", "x.wav", "y.wav")
        rate, y = parse_wav(self.read("y.wav"))[:2]
        self.assertEqual((rate, len(y)), (44100, 3675))
        # In float, 40 taps of the low pass are above 2^-24 of the largest one and 198 meet samples in all.
        self.close(y[100:-100, 0].astype("f4"), (self.tones(44100, 3675, 44100) / 8)[100:-100], 2e-6 + rig.gate("f4"))
        done = self.run_program("convolve", "--rate-out", 44100, "-", "-", stdin=self.read("x.wav"))
        self.close(parse_wav(done.stdout)[1].astype("f4"), y, rig.gate("f4"))
        said = json.loads(self.run_program("convolve", "--json", "--rate-out", 44100, "x.wav", "y.wav").stdout)
        self.assertEqual((said["ir"], said["filter_peak"], said["tail"], said["frames_out"]), ("--rate-out", 0, 0, 3675))

    def test_refusals(self):
        np.save("x.npy", np.ones(99))
        for arguments, says, rc in (
                (["--rate-out", 44100, "x.npy"], ["--rate-out 44100: the sample rate of x.npy is unknown; add --rate"], 2),
                (["--rate", 44101, "--rate-out", 44100, "x.npy"], ["is no fraction n/d of the 44101 Hz of x.npy", "up to 1400"], 2),
                (["--rate", 8, "--rate-out", 4, "--up", 2, "x.npy"], ["leave out --up, --stride, --first and --last"], 2),
                (["--rate", 8, "--rate-out", 4, "--first", 2, "x.npy", "x.npy"], ["leave out --up"], 2),
                (["--rate", 8, "--rate-out", 0, "x.npy"], ["--rate-out 0: is not a number of Hz above 0"], 2),
                (["--rate-out", 4, "--config", "absent.conf", "x.npy"], ["absent.conf"], 1)):
            with self.subTest(arguments):
                self.fails("convolve", *arguments, "out.npy", says=says, rc=rc)
        self.fails("convolve", "x.npy", "y.npy", rc=2, says="needs IR... IN OUT")


class Page(Case):
    def test_commands(self):
        """Those of docs/routes.md, on files of their names."""
        noise = self.random.standard_normal
        for name, channels, n in (("hall", 2, 500), ("voice", 1, 900), ("piano", 2, 900), ("film", 6, 900), ("atmos", 14, 90)):
            self.write(name + ".wav", wav_bytes((noise((n, channels)) / 99).astype("f4"), bits=32))
        has_sofa = os.path.exists(rig.SOFA)
        if has_sofa:
            os.symlink(rig.SOFA, "head.sofa")
        page = open(os.path.join(HERE, "../../docs/routes.md")).read().split("```")[1]
        lines = [l.split("#")[0].split() for l in page.splitlines() if l.startswith("partita")]
        self.assertEqual(len(lines), 7)
        for words in lines:
            if "head.sofa" in words:
                words.insert(2, "--resample-ir")
                said = self.run_program(*words[1:], rc=None)
                self.assertTrue(said.returncode == 0 or not has_sofa or b"without libmysofa" in said.stderr, said.stderr)
            else:
                self.run_program(*words[1:])


# Loudspeakers by layout: azimuth and elevation, None for the LFE, in the order of WAVE_FORMAT_EXTENSIBLE.
L, R, C, LFE, SL, SR, BL, BR = (30, 0), (-30, 0), (0, 0), None, (110, 0), (-110, 0), (135, 0), (-135, 0)
SIDES, TOP = [(90, 0), (-90, 0)], [(45, 45), (-45, 45)]
LAYOUTS = {"2.0": [L, R], "2.1": [L, R, LFE], "3.0": [L, R, C], "4.0": [L, R, BL, BR], "5.0": [L, R, C, SL, SR],
           "5.1": [L, R, C, LFE, SL, SR], "6.1": [L, R, C, LFE, (180, 0), SL, SR], "7.1": [L, R, C, LFE, BL, BR, *SIDES],
           "5.1.2": [L, R, C, LFE, SL, SR, *TOP], "5.1.4": [L, R, C, LFE, SL, SR, *TOP, (135, 45), (-135, 45)],
           "7.1.2": [L, R, C, LFE, BL, BR, *SIDES, *TOP], "7.1.4": [L, R, C, LFE, BL, BR, *SIDES, *TOP, (135, 45), (-135, 45)]}
HESUVI = {L: (0, 1), SIDES[0]: (2, 3), BL: (4, 5), C: (6, 13), R: (8, 7), SIDES[1]: (10, 9), BR: (12, 11), SL: (2, 3), SR: (10, 9)}


def harmonics(azimuth, elevation, order):
    """ACN, SN3D, from Legendre functions, of which P_l^m is a derivative of P_l: an oracle without their polynomials."""
    a, e = np.radians(azimuth), np.radians(elevation)
    y = []
    for l in range(order + 1):
        for m in range(-l, l + 1):
            k = abs(m)
            p = np.polynomial.legendre.Legendre.basis(l).deriv(k)(np.sin(e)) * np.cos(e)**k if k else np.polynomial.legendre.Legendre.basis(l)(np.sin(e))
            norm = np.sqrt((1 if k == 0 else 2) * math.factorial(l - k) / math.factorial(l + k))
            y.append(norm * p * (np.cos(k * a) if m >= 0 else np.sin(k * a)))
    return np.array(y)


def masked(frames, mask, rate):
    """A WAV of floats with WAVE_FORMAT_EXTENSIBLE and this channel mask."""
    n = frames.shape[1]
    fmt = struct.pack("<HHIIHHHHIH14s", 0xFFFE, n, rate, rate * n * 4, n * 4, 32, 22, 32, mask, 3,
                      b"\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71")
    body = frames.astype("<f4").tobytes()
    chunks = b"WAVE" + rig.chunk(b"fmt ", fmt) + rig.chunk(b"data", body)
    return b"RIFF" + struct.pack("<I", len(chunks)) + chunks


class Layouts(Case):
    def hesuvi(self, channels=14):
        self.responses = self.random.standard_normal((channels, 60))
        self.responses[:, 20] = 9  # the peak, with which the LFE comes
        self.write("hall.wav", wav_bytes(self.responses.T.astype("f4"), bits=32))
        self.responses = self.responses.astype("f4").astype("f8")

    def expected(self, layout, pairs, lfe=0.):
        """Sums in double over the loudspeakers; `pairs` gives the responses of a direction."""
        unit = np.zeros((2, 60))
        unit[:, abs(pairs(C)[0]).argmax()] = 10**(lfe / 20)
        return sum(np.array([np.convolve(x, h) for h in (unit if at is None else pairs(at))])
                   for x, at in zip(self.x, LAYOUTS[layout]))

    def signal(self, channels):
        self.x = self.random.standard_normal((channels, 200))
        np.save("x.npy", self.x)

    def test_hesuvi(self):
        self.hesuvi()
        for layout in ("2.0", "2.1", "3.0", "4.0", "5.0", "5.1", "7.1"):
            self.signal(len(LAYOUTS[layout]))
            expected = self.expected(layout, lambda at: self.responses[list(HESUVI[at])])
            self.close(self.result("--layout", layout, "hesuvi:hall.wav"), expected, GATE)
        self.close(self.result("hesuvi:hall.wav"), expected, GATE)
        expected = self.expected("7.1", lambda at: self.responses[list(HESUVI[at])], 4.5)
        self.close(self.result("--lfe", 4.5, "hesuvi:hall.wav"), expected, GATE)
        np.save("eq.npy", self.responses[3:5])
        self.close(self.result("--lfe", 4.5, "hesuvi:hall.wav+eq.npy"), filtered(expected, diagonal(self.responses[3:5])), GATE)

    def sofa(self):
        """libmysofa's file with other responses: each is two taps, which say which pair and ear it is."""
        if not os.path.exists(rig.SOFA) or not importlib.util.find_spec("h5py"):
            self.skipTest("libmysofa's data or python3-h5py are not installed")
        shutil.copy(rig.SOFA, "head.sofa")
        os.chmod("head.sofa", 0o644)
        with importlib.import_module("h5py").File("head.sofa", "r+") as file:
            n = len(file["Data.IR"])
            file["SourcePosition"][:, 0] += 0.3  # so that no direction is as near to two of them
            self.at = file["SourcePosition"][:, :2]
            pairs = np.zeros(file["Data.IR"].shape)
            for i in range(n):
                for ear in range(2):
                    pairs[i, ear, 5 + ear] = 1
                    pairs[i, ear, 7 + i % 100] = (1 + i // 100 + 20 * ear) / 64
            file["Data.IR"][...] = pairs
        self.pairs = pairs
        np.save("x.npy", np.zeros((2, 9)))
        said = self.run_program("convolve", "--layout", "2.0", "--rate", 44100, "head.sofa", "x.npy", "y.npy", rc=None).stderr
        if b"without libmysofa" in said:
            self.skipTest("built without libmysofa")

    def nearest(self, at):
        az, el, a, e = *np.radians(self.at.T), *np.radians(at)
        return self.pairs[(np.sin(el) * np.sin(e) + np.cos(el) * np.cos(e) * np.cos(az - a)).argmax()]

    def result(self, *arguments, rate=48000):
        self.run_program("convolve", "--rate", rate, *arguments, "x.npy", "y.npy")
        return np.load("y.npy")

    def test_sofa(self):
        self.sofa()
        for layout, speakers in LAYOUTS.items():
            with self.subTest(layout):
                self.signal(len(speakers))
                unit = self.nearest(C)
                level = () if all(speakers) else ("--lfe", -3)
                y = self.result("--layout", layout, *level, "head.sofa", rate=44100)
                expected = np.zeros((2, 200 + self.pairs.shape[2] - 1))
                for x, at in zip(self.x, speakers):
                    for ear in range(2):
                        h = self.nearest(at)[ear] if at else np.append(np.zeros(5), 10**(-3 / 20))
                        part = np.convolve(x, h)
                        expected[ear, :len(part)] += part
                self.assertEqual(abs(unit[0]).argmax(), 5)
                self.close(y, expected, GATE)

    def test_ambisonics(self):
        """A plane wave that is encoded in the direction of a source: the sum over the virtual loudspeakers."""
        self.sofa()
        nodes, weights = np.polynomial.legendre.leggauss(4)
        for order in (1, 2, 3):
            self.signal((order + 1)**2)
            expected = 0
            for node, weight in zip(nodes, weights):
                for azimuth in range(0, 360, 45):
                    at = azimuth, np.degrees(np.arcsin(node))
                    degree = np.repeat(np.arange(order + 1), 2 * np.arange(order + 1) + 1)
                    fed = (weight / 16 * (2 * degree + 1) * harmonics(*at, order)) @ self.x
                    expected = expected + np.array([np.convolve(fed, h) for h in self.nearest(at)])
            self.close(self.result("--layout", "ambisonics-%d" % order, "head.sofa", rate=44100), expected, GATE)
        # The omnidirectional part alone is the mean over all directions.
        np.save("x.npy", np.append([[1.]], np.zeros((15, 1)), axis=0))
        y = self.result("--layout", "ambisonics-3", "head.sofa", rate=44100)
        self.assertAlmostEqual(y[0, 5], 1)

    def test_rates(self):
        self.sofa()
        self.signal(2)
        self.fails("convolve", "--layout", "2.0", "--rate", 48000, "head.sofa", "x.npy", "y.npy",
                   says=["head.sofa: is for 44100 Hz, not for the 48000 Hz of x.npy; use --resample-ir"])
        y = self.result("--layout", "2.0", "--resample-ir", "head.sofa")
        for ear, name in enumerate(("l.npy", "r.npy")):
            np.save(name, np.array([self.nearest(at)[ear] for at in (L, R)]))
        self.write("pairs.wav", wav_bytes(np.array([self.nearest(at)[ear] for ear in range(2) for at in (L, R)]).T.astype("f4"), bits=32, rate=44100))
        self.close(y, self.result("--matrix", "--resample-ir", "pairs.wav"), rig.gate("f4"))

    def test_masks(self):
        self.hesuvi()
        x = self.random.standard_normal((300, 6)) / 9
        for mask in (0, 0x3F, 0x60F):
            self.write("x.wav", masked(x, mask, 48000))
            self.run_program("convolve", "--layout", "5.1", "hesuvi:hall.wav", "x.wav", "y%x.wav" % mask)
            self.assertEqual(self.read("y%x.wav" % mask), self.read("y0.wav"))
        for mask, layout, says in ((0x3F, "5.1.2", "x.wav: 6 channels; hall.wav takes 8 with --layout 5.1.2: FL FR FC LFE SL SR TFL TFR"),
                                   (0x2D003, "5.1", "x.wav: its loudspeakers are FL FR TFL TFR TBL TBR; --layout 5.1 has FL FR FC LFE SL SR: "
                                    "use a file whose header has no channel mask"),
                                   (0x63F, "5.1.2", "are FL FR FC LFE BL BR SL SR; --layout 5.1.2 has FL FR FC LFE SL SR TFL TFR: use --layout 7.1")):
            channels = bin(mask).count("1")
            self.write("x.wav", masked(np.zeros((9, channels)), mask, 48000))
            self.fails("convolve", "--layout", layout, "hesuvi:hall.wav", "x.wav", "out.wav", says=says)

    def test_refusals(self):
        self.hesuvi(13)
        os.rename("hall.wav", "thirteen.wav")
        self.hesuvi()
        self.write("fake.sofa", b"nothing")
        self.signal(6)
        np.save("z.npy", self.x * 1j)
        for arguments, says, rc in (
                (["hesuvi:hall.wav", "x.npy"], ["x.npy: 6 channels; hall.wav takes 8; choose a --layout\n"], 1),
                (["hesuvi:", "x.npy"], ["hesuvi:: names no filter; add a file"], 1),
                (["--layout", "5.1", "hesuvi:thirteen.wav", "x.npy"], ["thirteen.wav: 13 channels; a file of HeSuVi has 14"], 1),
                (["--layout", "5.1.2", "hesuvi:hall.wav", "x.npy"], ["x.npy: 6 channels", "takes 8"], 1),
                (["--layout", "5.1", "hesuvi:absent.wav", "x.npy"], ["absent.wav: cannot open"], 1),
                (["--layout", "5.1", "hesuvi:hall.wav", "z.npy"], ["z.npy: its samples are complex"], 1),
                (["--layout", "5.1", "fake.sofa", "x.npy"], ["fake.sofa"], 1),
                (["--layout", "5.1", "fake.sofa+hall.wav", "x.npy"], ["fake.sofa"], 1),
                (["--layout", "5.1", "absent.sofa", "x.npy"], ["absent.sofa", "No such file"], 1),
                (["--layout", "5.1", "hall.wav", "x.npy"], ["hall.wav: --layout and --lfe need a SOFA file", "hesuvi:FILE"], 2),
                (["--layout", "5.1", "hesuvi:hall.wav", "hall.wav", "x.npy"], ["must be the only IR"], 2),
                (["--layout", "9.1", "hesuvi:hall.wav", "x.npy"], ["--layout 9.1: is unknown; `partita convolve --help` lists layouts"], 2),
                (["--lfe", 3, "hall.wav+hall.wav", "x.npy"], ["--layout and --lfe need a SOFA file"], 2),
                (["--lfe", 3, "hall.wav", "x.npy"], ["--lfe is the level"], 2),
                (["--layout", "2.0", "--lfe", 3, "hesuvi:hall.wav", "x.npy"], ["--lfe: --layout 2.0 has no LFE; leave it out"], 2),
                (["--lfe", 3, "fake.sofa", "x.npy"], ["--lfe: a single source has no LFE"], 2),
                (["hall.wav", "+", "b.npy", "x.npy"], ["+: a chain is one name, without blanks: hall.wav+b.npy"], 2),
                (["--layout", "5.1", "--azimuth", 3, "hesuvi:hall.wav", "x.npy"], ["without --layout: leave them out"], 2),
                (["--layout", "5.1", "--config", "a.conf", "x.npy"], ["a.conf: names whole files", "and --layout"], 2)):
            with self.subTest(arguments):
                self.fails("convolve", "--rate", 48000, *arguments, "out.npy", says=says, rc=rc)
        for layout in ("6.1", "5.1.2", "ambisonics-1"):
            self.signal(4 if layout == "ambisonics-1" else len(LAYOUTS[layout]))
            self.fails("convolve", "--layout", layout, "hesuvi:hall.wav", "x.npy", "out.npy",
                       says="hall.wav: HeSuVi's channels " + ("are loudspeakers; use a SOFA file for ambisonics-1" if layout == "ambisonics-1" else "have no"))


if __name__ == "__main__":
    rig.main()

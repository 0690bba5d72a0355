#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reverbs: dry and wet signal, delay, length and fade of the response, the tail, the level of the
result, clipping. The oracle is numpy.convolve in double."""
import os
import re
import subprocess

import numpy as np

import rig
from rig import Case, parse_wav, wav_bytes


def db(x):
    return 10 ** (x / 20)


class Mix(Case):
    def setUp(self):
        super().setUp()
        self.x = self.random.standard_normal(5000)
        self.h = self.random.standard_normal(300) * np.exp(-np.arange(300) / 60)
        np.save("x.npy", self.x)
        np.save("h.npy", self.h)

    def result(self, *arguments, ir="h.npy", signal="x.npy"):
        self.run_program("convolve", *arguments, ir, signal, "y.npy")
        return np.load("y.npy")

    def pad(self, x, n, before=0):
        return np.concatenate([np.zeros(before), x, np.zeros(n - before - len(x))])

    def test_dry_and_wet(self):
        wet = np.convolve(self.x, self.h)
        dry = self.pad(self.x, len(wet))
        self.close(self.result("--dry", "-6"), wet + db(-6) * dry)
        self.close(self.result("--dry", 3, "--wet", "-12dB"), db(-12) * wet + db(3) * dry)
        self.close(self.result("--dry", 3, "--wet", -12, "--gain", 5), db(5) * (db(-12) * wet + db(3) * dry))
        self.close(self.result("--wet", -12), db(-12) * wet)

    def test_delay_moves_the_wet_signal_only(self):
        wet = np.convolve(self.x, np.concatenate([np.zeros(70), self.h]))
        self.close(self.result("--delay", 70), wet)
        self.close(self.result("--delay", "70ms", "--rate", "1k", "--dry", -3),
                   wet + db(-3) * self.pad(self.x, len(wet)))

    def test_dry_of_several_channels(self):
        x, h = self.random.standard_normal((2, 1000)), self.random.standard_normal((4, 50))
        np.save("x2.npy", x)
        np.save("h4.npy", h)
        np.save("h2.npy", h[:2])
        paths = [np.convolve(x[i], h[2 * o + i]) for o in range(2) for i in range(2)]
        wet = np.array([paths[0] + paths[1], paths[2] + paths[3]])
        dry = np.pad(x, ((0, 0), (0, 49)))
        self.close(self.result("--matrix", "--dry", 0, ir="h4.npy", signal="x2.npy"), wet + dry)
        wet = np.array([np.convolve(x[c], h[c]) for c in range(2)])
        self.close(self.result("--dry", 0, ir="h2.npy", signal="x2.npy"), wet + dry)
        np.save("x1.npy", x[0])
        wet = np.array([np.convolve(x[0], h[c]) for c in range(2)])
        self.close(self.result("--dry", 0, ir="h2.npy", signal="x1.npy"), wet + dry[0])
        np.save("h6.npy", self.random.standard_normal((6, 50)))
        self.fails("convolve", "--matrix", "--dry", 0, "h6.npy", "x2.npy", "y.npy", says=["--dry", "3 and 2"])

    def test_dry_starts_with_the_input_where_the_response_is_resampled(self):
        """The interpolation of a response begins before its first sample."""
        self.write("h.wav", wav_bytes(np.zeros((100, 1), "f4"), rate=44100, bits=32))
        self.write("x.wav", wav_bytes(np.ones((1, 1), "f4"), rate=48000, bits=32))
        self.run_program("convolve", "--resample-ir", "--dry", 0, "h.wav", "x.wav", "y.wav")
        y = parse_wav(self.read("y.wav"))[1][:, 0]
        self.close(y, self.pad(np.ones(1), len(y)), 1e-6)

    def test_dry_is_not_decimated(self):
        self.fails("convolve", "--dry", 0, "--stride", 2, "h.npy", "x.npy", "y.npy", rc=2, says="alias")

    def test_length_and_fade_of_the_response(self):
        fade = 0.5 + 0.5 * np.cos(np.pi * np.arange(1, 41) / 41)
        self.close(self.result("--ir-length", 100), np.convolve(self.x, self.h[:100]))
        self.close(self.result("--ir-length", 1000), np.convolve(self.x, self.h))
        faded = self.h.copy()
        faded[-40:] *= fade
        self.close(self.result("--ir-fade", 40), np.convolve(self.x, faded))
        faded = self.h[:100].copy()
        faded[-40:] *= fade
        self.close(self.result("--ir-length", "0.1s", "--ir-fade", "40ms", "--rate", "1k"), np.convolve(self.x, faded))
        self.close(self.result("--ir-fade", 5000), np.convolve(
            self.x, self.h * (0.5 + 0.5 * np.cos(np.pi * np.arange(1, 301) / 301))))

    def test_without_tail(self):
        full = np.convolve(self.x, self.h)
        self.close(self.result("--tail", "no"), full[:5000])
        self.assertTrue(np.array_equal(self.result("--tail", "no"), self.result()[:5000]))
        piped = self.run_program("convolve", "--tail", "no", "--format", "f64", "h.npy", "-", "-",
                                 stdin=self.x.tobytes()).stdout
        self.close(np.frombuffer(piped), full[:5000])
        np.save("short.npy", self.x[:100])
        self.close(self.result("--tail", "no", signal="short.npy"), np.convolve(self.x[:100], self.h)[:100])
        for more in (["--mode", "same"], ["--first", 5]):
            self.fails("convolve", "--tail", "no", *more, "h.npy", "x.npy", "y.npy", rc=2, says="--tail no")

    def test_shards_have_dry_signal_and_delay(self):
        options = ["--dry", -3, "--delay", 20, "--tail", "no", "--output-format", "f32"]
        for k in (1, 2, 3):
            self.run_program("convolve", *options, "--range", "%d/3" % k, "h.npy", "x.npy", "%d.npy" % k)
        self.run_program("join", "all.npy", "1.npy", "2.npy", "3.npy")
        self.run_program("convolve", *options, "--range", "1/1", "h.npy", "x.npy", "one.npy")
        self.assertEqual(self.read("all.npy"), self.read("one.npy"))


class Level(Case):
    def setUp(self):
        super().setUp()
        self.x = self.random.uniform(-0.9, 0.9, (4000, 2))
        self.write("x.wav", wav_bytes(np.round(self.x * 32768).astype(int), rate=44100))
        self.write("loud.txt", b"1\n1\n1\n")
        self.write("soft.txt", b"0.1\n0.1\n")

    def peak(self, name="y.wav"):
        return np.abs(parse_wav(self.read(name))[1]).max()

    def test_normalize_reaches_the_level(self):
        for arguments, level in ((["--normalize"], 1), (["--normalize=-1"], db(-1)), (["--normalize=-20dB"], db(-20))):
            for ir in ("loud.txt", "soft.txt"):
                with self.subTest(arguments=arguments, ir=ir):
                    self.run_program("convolve", *arguments, "--output-format", "f32", ir, "x.wav", "y.wav")
                    self.assertAlmostEqual(self.peak(), level, delta=2.0**-23)
                    # 16 bits: half a step of rounding, and full scale is one step below 1.
                    self.run_program("convolve", *arguments, ir, "x.wav", "y.wav")
                    self.assertAlmostEqual(self.peak(), level, delta=1.5 / 32768)

    def test_the_shape_is_kept(self):
        self.run_program("convolve", "-o", "f64", "loud.txt", "x.wav", "a.wav")
        self.run_program("convolve", "-o", "f64", "--normalize", "loud.txt", "x.wav", "b.wav")
        a, b = (parse_wav(self.read(name))[1] for name in ("a.wav", "b.wav"))
        self.close(b, a / np.abs(a).max(), 2.0**-23)  # rounded once more to float

    def test_pipes(self):
        self.run_program("convolve", "--normalize=-3", "loud.txt", "x.wav", "y.wav")
        piped = self.run_program("convolve", "--normalize=-3", "loud.txt", "-", "-", stdin=self.read("x.wav"),
                                 env=dict(TMPDIR=self.folder)).stdout
        self.assertTrue(np.array_equal(parse_wav(piped)[1], parse_wav(self.read("y.wav"))[1]))
        self.assertEqual(sorted(n for n in os.listdir(".") if n != "cache"), ["loud.txt", "soft.txt", "x.wav", "y.wav"])
        self.fails("convolve", "--normalize", "loud.txt", "-", "-", stdin=self.read("x.wav"),
                   env=dict(TMPDIR="/dev/null/none"), says=["temporary file", "/dev/null/none"])

    def test_complex_and_silence(self):
        z = (self.random.standard_normal(900) + 1j * self.random.standard_normal(900)).astype("c8")
        np.save("z.npy", z)
        self.run_program("convolve", "--normalize", "loud.txt", "z.npy", "y.npy")
        self.assertAlmostEqual(np.abs(np.load("y.npy")).max(), 1, delta=4 * 2.0**-23)
        np.save("z.npy", np.zeros(100, "f4"))
        self.run_program("convolve", "--normalize", "loud.txt", "z.npy", "y.npy")
        self.assertFalse(np.load("y.npy").any())

    def test_automatic_gain_lowers_only(self):
        self.run_program("convolve", "--gain", "auto", "soft.txt", "x.wav", "a.wav")
        self.run_program("convolve", "soft.txt", "x.wav", "b.wav")
        self.assertEqual(self.read("a.wav"), self.read("b.wav"))
        done = self.run_program("convolve", "--gain", "auto", "loud.txt", "x.wav", "a.wav")
        self.assertEqual(done.stderr, b"")
        self.assertAlmostEqual(self.peak("a.wav"), 1, delta=1.5 / 32768)

    def test_statistics_are_those_of_the_output(self):
        done = self.run_program("convolve", "--normalize=-6", "--stats", "loud.txt", "x.wav", "y.wav")
        self.assertIn(b"(-6.00 dBFS)", done.stderr)

    def test_contradictions(self):
        for arguments, says in ((["--normalize", "--range", "1/2"], ["--normalize", "whole result", "--range", "f32"]),
                                (["--gain", "auto", "--resume"], ["--gain auto", "--resume"]),
                                (["--normalize", "--gain", "3"], ["--gain"]), (["--normalize=3"], ["-300 to 0"]),
                                (["--gain", "loud"], ["auto", "-6"])):
            with self.subTest(arguments=arguments):
                self.fails("convolve", *arguments, "loud.txt", "x.wav", "y.wav", rc=2, says=says)

    def test_clipping_names_the_gain_that_avoids_it(self):
        for name, more in (("y.wav", []), ("y.flac", []), ("-", [])):
            with self.subTest(name=name):
                done = self.run_program("convolve", *more, "loud.txt", "x.wav", name)
                said = re.search(r"(\d+) samples clipped; --gain (-[0-9.]+) or --gain auto avoids it", done.stderr.decode())
                gain = float(said[2])
                self.assertEqual(self.run_program("convolve", "--gain", gain, "loud.txt", "x.wav", name).stderr, b"")
                self.assertIn(b"clipped", self.run_program("convolve", "--gain", gain + 0.1, "loud.txt", "x.wav", name).stderr)
        done = self.run_program("convolve", "--range", "1/2", "loud.txt", "x.wav", "y.wav")
        self.assertRegex(done.stderr.decode(), r"--gain -[0-9.]+ avoids it in this shard")

    def test_strict_runs_fail_where_samples_clip(self):
        done = self.run_program("convolve", "--strict", "loud.txt", "x.wav", "y.wav", rc=3)
        self.assertIn(b"clipped", done.stderr)
        self.run_program("convolve", "--strict", "soft.txt", "x.wav", "y.wav")

    def test_afir_of_ffmpeg_agrees(self):
        """Its filter afir computes in float and delays nothing. Versions differ by factors of 2."""
        h = self.random.standard_normal((700, 1)) * np.exp(-np.arange(700) / 100)[:, None]
        self.write("h.wav", wav_bytes((h * 0.1).astype("f4"), rate=44100, bits=32))
        mono = self.x[:, :1].astype("f4")
        self.write("m.wav", wav_bytes(mono, rate=44100, bits=32))
        self.run_program("convolve", "--wet", -12, "--tail", "no", "h.wav", "m.wav", "y.wav")
        done = subprocess.run(
            ["ffmpeg", "-v", "error", "-i", "m.wav", "-i", "h.wav", "-filter_complex",
             "[0][1]afir=dry=1:wet=%.9f:gtype=none" % db(-12), "-f", "f32le", "-c:a", "pcm_f32le", "-"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode:
            self.skipTest("ffmpeg: " + done.stderr.decode()[:80])
        theirs = np.frombuffer(done.stdout, "<f4")[:4000]
        ours = parse_wav(self.read("y.wav"))[1][:len(theirs), 0]
        factor = np.dot(ours, theirs) / np.dot(theirs, theirs)
        self.assertAlmostEqual(np.log2(factor), round(np.log2(factor)), delta=1e-5)
        self.close(ours, factor * theirs.astype("f8"), 1e-5)


if __name__ == "__main__":
    rig.main()

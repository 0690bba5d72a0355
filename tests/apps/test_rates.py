#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sample rates are numbers of any size, with fractions: of --rate, SigMF, times, results, and what containers round."""
import json
from fractions import Fraction

import numpy as np

import rig
from rig import Case, parse_wav, wav_bytes

# (as --rate takes it, in Hz)
RATES = (("62.5", 62.5), ("0.5", 0.5), ("100e6/3", 100e6 / 3), ("100M/3", 100e6 / 3), ("2338285.71", 2338285.71),
         ("5G", 5e9), ("4294967296", 2.0**32), ("48k", 48000.0), ("0.001kHz", 1.0))


class Rates(Case):
    def setUp(self):
        super().setUp()
        self.write("one.txt", b"1\n")
        self.x = self.random.standard_normal(6000).astype("f4")
        np.save("x.npy", self.x)

    def sigmf(self, name, rate, text=None, **capture):
        self.write(name + ".sigmf-data", self.x.astype("<f4").tobytes())
        meta = {"global": {"core:datatype": "rf32_le", "core:version": "1.0.0", "core:sample_rate": 12321},
                "captures": [{"core:sample_start": 0, **capture}], "annotations": []}
        self.write(name + ".sigmf-meta", json.dumps(meta).replace("12321", text or repr(rate)).encode())
        return name + ".sigmf-meta"

    def described(self, name):
        return json.loads(self.read(name + ".sigmf-meta"))

    def test_rates_of_options(self):
        for text, hz in RATES:
            with self.subTest(rate=text):
                self.run_program("convolve", "--rate", text, "one.txt", "x.npy", "y.sigmf-data")
                self.assertEqual(self.described("y")["global"]["core:sample_rate"], hz)
                done = self.run_program("convolve", "--json", "--rate", text, "one.txt", "x.npy", "y.npy")
                self.assertEqual(json.loads(done.stdout)["rate"], hz)
        for text in ("0", "-1", "0/3", "3/0", "1/2/3", "1e400", "nan", "inf", "1e19", "48k/", "/3", "4x"):
            with self.subTest(rate=text):
                self.fails("convolve", "--rate=" + text, "one.txt", "x.npy", "y.npy", rc=2, says=["--rate", "Hz above 0"])

    def test_whole_rates_stay_whole_numbers(self):
        self.run_program("convolve", "--rate", "48k", "one.txt", "x.npy", "y.sigmf-data")
        self.assertIn(b'"core:sample_rate": 48000\n', self.read("y.sigmf-meta"))
        self.run_program("convolve", "one.txt", "y.sigmf-data", "z.sigmf-data")
        self.assertIn(b'"core:sample_rate": 48000\n', self.read("z.sigmf-meta"))
        done = self.run_program("convolve", "--json", "one.txt", "y.sigmf-data", "z.npy")
        self.assertIn(b'"rate": 48000,', done.stdout)

    def test_decimated_recordings_have_the_exact_rate(self):
        for rate, up, stride in ((1000, 1, 300), (1000000, 1, 3), (1000, 1, 3000), (62.5, 1, 7), (100e6 / 3, 2, 3),
                                 (5e9, 147, 160), (2338285.71, 1, 2)):
            with self.subTest(rate=rate, up=up, stride=stride):
                path = self.sigmf("r", rate)
                self.run_program("convolve", "--up", up, "--stride", stride, "one.txt", path, "y.sigmf-data")
                self.assertEqual(self.described("y")["global"]["core:sample_rate"], rate * up / stride)
                self.run_program("convolve", "--rate", rate, "--up", up, "--stride", stride, "one.txt", "x.npy",
                                 "z.sigmf-data")
                self.assertEqual(self.described("z")["global"]["core:sample_rate"], rate * up / stride)

    def test_rates_of_metadata_that_are_none(self):
        for text in ("-1", "1e-300", "1e300", '"48000"', "[1]", "null"):
            self.fails("convolve", "one.txt", self.sigmf("r", 0, text), "y.npy", says=["core:sample_rate", "Hz above 0"])
        self.run_program("convolve", "one.txt", self.sigmf("r", 0, "0"), "y.npy")

    def test_what_containers_cannot_hold_is_said(self):
        for name, text, stored in (("y.wav", "62.5", 63), ("y.wav", "0.25", 1), ("y.wav", "5G", 4294967295),
                                   ("y.wav", "100M/3", 33333333), ("y.flac", "655351", 655350), ("y.flac", "1M", 655350),
                                   ("y.au", "62.6", 63), ("y.au", "3G", 2147483647)):
            with self.subTest(name=name, rate=text):
                done = self.run_program("convolve", "--rate", text, "--output-format", "i16", "one.txt", "x.npy", name)
                self.assertRegex(done.stderr.decode(), name + ": its sample rate of .* Hz is stored as %d Hz" % stored)
                done = self.run_program("convolve", "--json", "one.txt", name, "z.npy")
                self.assertEqual(json.loads(done.stdout)["rate"], stored)
        for name in ("y.npy", "y.sigmf-data", "y.f32"):
            done = self.run_program("convolve", "--rate", "62.5", "one.txt", "x.npy", name)
            self.assertEqual(done.stderr, b"")
        done = self.run_program("convolve", "-v", "--rate", "62.5", "one.txt", "x.npy", "y.npy")
        self.assertIn(b"y.npy: stores no sample rate; it is 62.5 Hz", done.stderr)
        done = self.run_program("convolve", "--rate", "48k", "one.txt", "x.npy", "y.wav")
        self.assertNotIn(b"stored as", done.stderr)

    def test_design_and_deconvolve(self):
        for out, said in (("h.wav", b"is stored as 63 Hz"), ("h.npy", b"")):
            done = self.run_program("design", "lowpass", "--cutoff", 10, "--width", 5, "--rate", "62.5", "--json", out)
            self.assertIn(said, done.stderr)
            self.assertEqual(json.loads(done.stdout)["rate_hz"], 62.5)
        sweep = np.sin(np.cumsum(np.linspace(0.01, 2, 3000)))
        np.save("sweep.npy", sweep)
        np.save("recording.npy", np.concatenate((np.zeros(25), sweep, np.zeros(600))))
        done = self.run_program("deconvolve", "--json", "--rate", "62.5", "sweep.npy", "recording.npy", "r.wav")
        self.assertIn(b"stored as 63 Hz", done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(report["rate"], 62.5)
        self.assertIn("0.4", json.dumps(report["channels"]))  # 25 frames

    def test_times_at_rates_with_fractions(self):
        for rate, first, frames in (("62.5", "10s", 625), ("0.5", "100s", 50), ("100e6/3", "3us", 100), ("5G", "100us", None),
                                    ("2338285.71", "1ms", 2338)):
            frames = 500000 if frames is None else frames
            with self.subTest(rate=rate):
                self.run_program("convolve", "--rate", rate, "--first", first, "--last", frames + 5, "one.txt", "x.npy", "y.npy")
                expected = np.zeros(5, "f4")
                part = self.x[frames:frames + 5]
                expected[:len(part)] = part
                np.testing.assert_allclose(np.load("y.npy"), expected, atol=1e-6)

    def test_times_of_peaks(self):
        np.save("t.npy", self.x[1234:1300])
        done = self.run_program("correlate", "--json", "--rate", "62.5", "--peaks", 1, "t.npy", "x.npy")
        peak = json.loads(done.stdout.splitlines()[0])
        self.assertAlmostEqual(peak["seconds"], peak["position"] / 62.5, places=12)
        path = self.sigmf("r", 100e6 / 3)
        self.run_program("correlate", "--peaks", 1, "--annotate", "a.sigmf-meta", "t.npy", path)
        self.assertEqual(self.described("a")["global"]["core:sample_rate"], 100e6 / 3)

    def test_datetime_at_rates_with_fractions(self):
        h = np.zeros(501, "f4")
        h[500] = 1
        np.save("h.npy", h)
        for rate in (62.5, 100e6 / 3, 0.5, 5e9):
            path = self.sigmf("r", rate, **{"core:datetime": "2026-01-31T23:59:59.25Z"})
            self.run_program("convolve", "--first", 700, "h.npy", path, "y.sigmf-data")
            time = self.described("y")["captures"][0]["core:datetime"]
            moved = Fraction(200) / Fraction(rate)  # the filter delays by 500 frames
            seconds = Fraction(59) + Fraction(1, 4) + moved
            got = Fraction(time.rstrip("Z").split(":")[-1])
            self.assertLess(abs((got - seconds + 30) % 60 - 30), Fraction(1, 10**11), time)

    def test_rates_of_filters(self):
        self.write("ir.wav", wav_bytes(np.array([[16384]]), rate=125))
        done = self.fails("convolve", "--rate", "62.5", "ir.wav", "x.npy", "y.npy", says="62.5 Hz of x.npy; use --resample-ir")
        self.assertIn("125 Hz differs", done)
        self.run_program("convolve", "--rate", "62.5", "--up", 2, "ir.wav", "x.npy", "y.npy")
        # A unit impulse of gain 1/2 stays one where only the rate changes, but for the band's edge.
        self.run_program("convolve", "--rate", "62.5", "--resample-ir", "ir.wav", "x.npy", "y.npy")
        path = self.sigmf("r", 100e6 / 3)
        self.write("third.wav", wav_bytes(np.array([[16384]]), rate=100000000))
        self.run_program("convolve", "--up", 3, "third.wav", path, "y.npy")  # the same rate, computed in two ways

    def test_configurations(self):
        self.write("ir.wav", wav_bytes(np.array([[16384]]), rate=125))
        self.write("c.conf", b"/convolver/new 1 1 256 4000\n/impulse/read 1 1 1 0 0 0 1 ir.wav\n")
        self.fails("convolve", "--rate", "62.5", "--config", "c.conf", "x.npy", "y.npy", says="62.5 Hz of x.npy")
        self.run_program("convolve", "--rate", "62.5", "--resample-ir", "--config", "c.conf", "x.npy", "y.npy")
        self.run_program("convolve", "--rate", "62.5", "--up", 2, "--config", "c.conf", "x.npy", "y.npy")

    def test_tune(self):
        n = np.arange(6000)
        for rate, hz in (("62.5", 12.5), ("100e6/3", 1e7), ("5G", 1e9), ("0.5", -0.125)):
            value = float(Fraction(rate.split("/")[0].replace("G", "e9")) / (3 if "/" in rate else 1))
            self.run_program("convolve", "--rate", rate, "--tune", hz, "one.txt", "x.npy", "y.npy")
            np.testing.assert_allclose(np.load("y.npy"), self.x * np.exp(-2j * np.pi * hz / value * n), atol=1e-5)
        self.fails("convolve", "--rate", "62.5", "--tune", 32, "one.txt", "x.npy", "y.npy", rc=2, says="31.25")

    def test_shards(self):
        for k in (1, 2, 3):
            self.run_program("convolve", "--range", "%d/3" % k, "--stride", 7, "one.txt", self.sigmf("r", 62.5),
                             "s%d.sigmf-data" % k)
        self.run_program("join", "y.sigmf-data", "s1.sigmf-data", "s2.sigmf-data", "s3.sigmf-data")
        self.assertEqual(self.described("y")["global"]["core:sample_rate"], 62.5 / 7)
        self.run_program("convolve", "--range", "1/2", "--rate", "62.5", "one.txt", "x.npy", "s1.npy")
        self.run_program("convolve", "--range", "2/2", "--rate", "62", "one.txt", "x.npy", "s2.npy")
        self.fails("join", "y.npy", "s1.npy", "s2.npy", says="not shards of one result")

    def test_plan(self):
        done = self.run_program("plan", "--json", "--taps", "10s", "--rate", "62.5", "--block", 64)
        self.assertIn(b"625", done.stdout)


if __name__ == "__main__":
    rig.main()

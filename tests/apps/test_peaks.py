#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`partita correlate`: normalised results and peaks, compared with sums in float64 and with find_peaks of SciPy."""
import json
import os
import shutil
import subprocess

import numpy as np
from scipy.signal import find_peaks

import rig
import schemas
from rig import Case


def normalised(x, h):
    """Direct sums in float64, and the norms of every window by itself: products and norms of all lags."""
    m = len(h)
    padded = np.concatenate([np.zeros(m - 1), x, np.zeros(m - 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, m)
    norms = np.sqrt((abs(windows) ** 2).sum(1)) * np.sqrt((abs(h) ** 2).sum())
    return windows @ np.conj(h), norms


class Peaks(Case):
    def noise(self, n, kind="c8"):
        x = self.random.standard_normal(n)
        return (x + 1j * self.random.standard_normal(n) if kind[0] == "c" else x).astype(kind)

    def lines(self, *arguments, **more):
        """Peaks from the lines on standard output: sample, position, seconds or None, magnitude, phase, channel."""
        text = self.run_program("correlate", *arguments, **more).stdout.decode().splitlines()
        self.assertRegex(text[0], "^# +sample +position +seconds +magnitude +phase +channel$")
        rows = [line.split() for line in text[1:]]
        self.assertEqual({len(line) for line in text[1:]} - {len(text[0])}, set(), text)
        return [(int(r[0]), float(r[1]), None if r[2] == "-" else float(r[2]), float(r[3]), float(r[4]), int(r[5]))
                for r in rows]

    def objects(self, *arguments, **more):
        lines = self.run_program("correlate", "--json", *arguments, **more).stdout.splitlines()
        objects = [schemas.load(line) for line in lines]
        self.assertEqual([o["kind"] for o in objects], ["peak"] * (len(objects) - 1) + ["statistics"])
        return objects[:-1]

    def capture(self, places=(700, 5000, 9000), n=12000, m=500):
        burst, x = self.noise(m), 0.3 * self.noise(n)
        for k, at in enumerate(places):
            x[at:at + m] += (1 - 0.1 * k) * np.exp(1j * k) * burst
        np.save("burst.npy", burst)
        x.tofile("x.cf32")
        return x, burst


class Normalised(Peaks):
    def normalised_as(self, got, products, norms):
        """The division adds at most 9 u (window_norm.h) to the error of the products, which is that of transforms."""
        self.close(got * norms, products, rig.gate("f8") + 9 * 2.0**-53)
        self.assertLessEqual(abs(got).max(), 1 + 1e-12)

    def test_results_in_files_and_pipes(self):
        for kind in ("f4", "c8", "f8"):
            x, h = self.noise(5000, kind), self.noise(300, kind)
            np.save("x.npy", x)
            np.save("h.npy", h)
            wide = kind[0] + ("16" if kind[0] == "c" else "8")
            expected = normalised(x.astype(wide), h.astype(wide))
            for options in ([], ["--threads", 2], ["--block", 64], ["--range", "1/1"]):
                self.run_program("correlate", "--normalised", *options, "h.npy", "x.npy", "y.npy")
                self.assertEqual(np.load("y.npy").dtype, expected[0].dtype)
                self.normalised_as(np.load("y.npy"), *expected)
            self.run_program("correlate", "--normalised", "--stride", 7, "--first", 11, "h.npy", "x.npy", "y.npy")
            self.normalised_as(np.load("y.npy"), *(part[299 + 11::7] for part in expected))
            name = "cf" if kind[0] == "c" else "f"
            done = self.run_program("correlate", "--normalised", "--format", name + ("64" if kind == "f8" else "32"),
                                    "--output-format", name + "64", "h.npy", "-", "-", stdin=x.tobytes())
            self.normalised_as(np.frombuffer(done.stdout, wide), *expected)

    def test_quiet_passage_beside_a_loud_one(self):
        """100 dB apart, in float32. The errors of transforms in double are below 2^-50 of the loud passage, so below
        1e-9 of the norms in the quiet one."""
        x, h = self.noise(20000), self.noise(100)
        x[:10000] *= 1e5
        x[12000:12100] = 3e-3 * h
        np.save("x.npy", x)
        np.save("h.npy", h)
        self.run_program("correlate", "--normalised", "h.npy", "x.npy", "y.npy")
        products, norms = normalised(x.astype("c16"), h.astype("c16"))
        got = np.load("y.npy")
        self.assertLess(abs(got - products / norms).max(), 1e-9)
        self.assertEqual(np.argmax(abs(got)), 12000 + 99)

    def test_matrix_of_channels(self):
        x, h = self.noise(3000 * 2, "f4").reshape(2, -1), self.noise(3 * 2 * 50, "f4").reshape(6, -1)
        np.save("x.npy", x)
        np.save("h.npy", h)
        self.run_program("correlate", "--normalised", "--matrix", "h.npy", "x.npy", "y.npy")
        wide = x.astype("f8")
        padded = np.pad(wide, ((0, 0), (49, 49)))
        norms = np.sqrt(np.lib.stride_tricks.sliding_window_view(padded ** 2, 50, axis=1).sum((0, 2)))
        expected = [sum(np.correlate(wide[i], h[2 * o + i].astype("f8"), "full") for i in range(2)) /
                    (norms * np.linalg.norm(h[2 * o:2 * o + 2].astype("f8"))) for o in range(3)]
        self.close(np.load("y.npy"), np.array(expected))

    def test_silence_and_integers(self):
        x = np.zeros((4000, 1), int)
        x[1000:1100, 0] = self.random.integers(-9000, 9000, 100)
        self.write("x.wav", rig.wav_bytes(x))
        self.write("h.wav", rig.wav_bytes(x[1000:1100]))
        self.run_program("correlate", "--normalised", "h.wav", "x.wav", "y.wav")
        _, y, bits, _ = rig.parse_wav(self.read("y.wav"))
        self.assertEqual(bits, 64)
        self.assertAlmostEqual(y[1099, 0], 1, 12)
        self.assertEqual(abs(y[:900]).max() + abs(y[1300:]).max(), 0)
        self.fails("correlate", "--normalised", "--gain", 3, "h.wav", "x.wav", "y.npy", rc=2, says="--gain")


class ZeroMean(Peaks):
    """--normalised=zero-mean against windows in long double, each without its mean."""
    BURST = 1500  # where the template is in a signal

    def model(self, x, h, wide):
        """All lags, and a bound of their errors. The template without its mean has an error of 6 u of its norm (rounding
        of samples, and of the mean that is left), all of which an offset may meet: 6 u sqrt(m) of the signal's level.
        Transforms add twice the gate of single outputs (rig.close), and the division (9 m + 20) u (window_norm.h)."""
        m, exact, u = len(h), {"f": "g", "c": "G"}[wide[0]], 2.0**-53
        padded = np.concatenate([np.zeros(m - 1), x, np.zeros(m - 1)]).astype(exact)
        template = h.astype(exact) - h.astype(exact).mean()
        norm = np.sqrt((abs(template) ** 2).sum())
        expected, spread = np.zeros(len(x) + m - 1, exact), np.zeros(len(x) + m - 1, "g")
        for lag, window in enumerate(np.lib.stride_tricks.sliding_window_view(padded, m)):
            centred = window - window.mean()
            spread[lag] = np.sqrt((abs(centred) ** 2).sum())
            if spread[lag] > 2.0**-40 * abs(window).max() and norm > 0:
                expected[lag] = (centred * template.conj()).sum() / spread[lag] / norm
        level = np.sqrt((abs(x.astype(wide)) ** 2).mean())
        with np.errstate(divide="ignore"):
            bound = (2 * rig.gate("f8") + 6 * u * np.sqrt(m)) * level / spread + (9 * m + 20) * u
        return expected.astype(wide), np.where(expected == 0, 0, bound).astype("f8")

    def near(self, got, expected, bound):
        self.assertEqual((got.dtype, got.shape), (expected.dtype, expected.shape))
        self.assertLessEqual((abs(got - expected) - bound).max(), 0)
        self.assertLessEqual((abs(got) - 1 - bound).max(), 0)

    def signal(self, kind, level):
        """Noise that has the template in it, on an offset, a ramp, a step or a slow wave; the template has an offset."""
        x, h = self.noise(3000, kind), self.noise(200, kind)
        x[self.BURST:self.BURST + 200] = 0.5 * h
        at = np.arange(3000) / 3000
        x = x + {"50": 50, "1e6": 1e6, "ramp": 3e4 * at, "step": np.where(at < 0.4, 1e6, -3), "wave": 1e3 * np.sin(30 * at)}[level]
        return x.astype(kind), (h + 7).astype(kind)

    def test_offsets(self):
        for kind in ("f4", "c8", "f8", "c16"):
            wide = kind[0] + ("16" if kind[0] == "c" else "8")
            for level in ("50", "1e6", "ramp", "step", "wave"):
                x, h = self.signal(kind, level)
                np.save("x.npy", x)
                np.save("h.npy", h)
                expected, bound = self.model(x, h, wide)
                for options in ([], ["--threads", 2], ["--block", 64], ["--range", "1/1"]):
                    with self.subTest(kind=kind, level=level, options=options):
                        self.run_program("correlate", "--normalised=zero-mean", *options, "h.npy", "x.npy", "y.npy")
                        y = np.load("y.npy")
                        self.near(y, expected, bound)
                        # At 1e6 single floats have steps of 1/16; a ramp and a wave vary more than the template does.
                        if level in ("50", "step") or (level == "1e6" and kind in ("f8", "c16")):
                            self.assertGreater(y[self.BURST + 199].real, 0.9999)

    def test_pipes_strides_and_lags(self):
        x, h = self.signal("f4", "50")
        np.save("h.npy", h)
        expected, bound = self.model(x, h, "f8")
        for options, part in (([], slice(None)), (["--stride", 7, "--first", 11], slice(199 + 11, None, 7)),
                              (["--mode", "valid"], slice(199, -199)), (["--max-lag", 100], slice(99, 300))):
            done = self.run_program("correlate", "--normalised=zero-mean", "--format", "f32", "--output-format", "f64",
                                    *options, "h.npy", "-", "-", stdin=x.tobytes())
            self.near(np.frombuffer(done.stdout, "f8"), expected[part], bound[part])

    def test_an_offset_hides_no_template(self):
        """As it does without zero-mean, where everything looks like the template."""
        burst, x = self.noise(300, "f4"), 0.2 * self.noise(20000, "f4")
        for at in (3000, 11000):
            x[at:at + 300] += burst
        np.save("h.npy", burst + 50)
        for offset in (50, 1e5):  # at 1e5 the samples have steps of 1/128
            np.save("x.npy", (x + offset).astype("f4"))
            found = self.objects("--normalised=zero-mean", "--threshold", 0.9, "h.npy", "x.npy")
            self.assertEqual([p["sample"] for p in found], [3000, 11000])
            self.assertGreater(self.objects("--normalised", "--peaks", 9, "h.npy", "x.npy")[5]["magnitude"], 0.99)

    def test_what_is_constant_gives_zero(self):
        x, h = self.noise(2000, "f8"), self.noise(50, "f8")
        x[700:1300] = 0.1
        np.save("x.npy", x + 3)
        np.save("h.npy", h)
        self.run_program("correlate", "--normalised=zero-mean", "h.npy", "x.npy", "y.npy")
        y = np.load("y.npy")
        constant = np.zeros(2049, bool)
        constant[749:1300] = True
        self.assertEqual((y == 0).tolist(), constant.tolist())
        self.near(y, *self.model(x + 3, h, "f8"))
        for template in (np.full(50, 0.1), np.zeros(50), [7.]):
            np.save("h.npy", np.array(template))
            self.run_program("correlate", "--normalised=zero-mean", "h.npy", "x.npy", "y.npy")
            self.assertEqual(abs(np.load("y.npy")).max(), 0)

    def test_channels_and_matrices(self):
        """Each input has a mean of its own."""
        x, h = self.noise(2 * 1500, "f8").reshape(2, -1), self.noise(6 * 50, "f8").reshape(6, -1)
        x += np.array([[1000], [-30]])
        h += np.arange(6)[:, None]
        np.save("x.npy", x)
        np.save("h.npy", h[:2])
        self.run_program("correlate", "--normalised=zero-mean", "h.npy", "x.npy", "y.npy")
        for got, x_i, h_i in zip(np.load("y.npy"), x, h):
            self.near(got, *self.model(x_i, h_i, "f8"))
        np.save("h.npy", h)
        self.run_program("correlate", "--normalised=zero-mean", "--matrix", "h.npy", "x.npy", "y.npy")
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (49, 49))).astype("g"), 50, axis=1)
        windows = windows - windows.mean(2, keepdims=True)
        for o, got in enumerate(np.load("y.npy")):
            template = h[2 * o:2 * o + 2].astype("g")
            template = template - template.mean(1, keepdims=True)
            products = (windows * template[:, None]).sum((0, 2))
            spread = np.sqrt((windows ** 2).sum((0, 2)))
            norm = np.sqrt((template ** 2).sum())
            bound = (2 * rig.gate("f8") + 6 * 2.0**-53 * 10) * 1000 / spread + (9 * 50 + 20) * 2.0**-53
            self.assertLessEqual((abs(got - products / spread / norm) - bound).max(), 0)

    def test_shards(self):
        x, h = self.noise(30000), self.noise(300)
        x += (50 + np.arange(30000) / 300).astype("f4")  # by 1 under the template
        np.save("x.npy", x)
        np.save("h.npy", h)
        option = "--normalised=zero-mean"
        self.run_program("correlate", option, "--range", "1/1", "h.npy", "x.npy", "whole.npy")
        whole = self.objects(option, "--threshold", 0.15, "--range", "1/1", "h.npy", "x.npy")
        self.assertGreater(len(whole), 2)
        for n in (2, 7):
            ranges = ["%d/%d" % (k + 1, n) for k in range(n)]
            shards = [self.objects(option, "--threshold", 0.15, "--range", r, "h.npy", "x.npy") for r in ranges]
            self.assertEqual(sum(shards, []), whole)
            for r in ranges:
                self.run_program("correlate", option, "--range", r, "h.npy", "x.npy", "shard-%s.npy" % r[0])
            names = ["shard-%s.npy" % r[0] for r in ranges]
            self.run_program("join", "y.npy", *names)
            self.assertEqual(self.read("y.npy"), self.read("whole.npy"))
        self.run_program("correlate", "--normalised", "--range", "1/7", "h.npy", "x.npy", "shard-1.npy")
        self.fails("join", "z.npy", *names, says="shard-")

    def test_samples_that_are_not_finite(self):
        x, h = self.noise(2000, "f8") + 50, self.noise(64, "f8")
        expected, bound = self.model(x, h, "f8")
        for bad, at in ((np.nan, 640), (np.inf, 640), (np.nan, 700), (-np.inf, 703)):  # first of a block, and inside
            y = x.copy()
            y[at] = bad
            np.save("x.npy", y)
            np.save("h.npy", h)
            self.run_program("correlate", "--normalised=zero-mean", "--nan", "propagate", "h.npy", "x.npy", "y.npy")
            y = np.load("y.npy")
            self.assertTrue(np.isnan(y[at:at + 64]).all())
            behind = np.r_[0:at, at + 64:len(y)]
            self.near(y[behind], expected[behind], bound[behind])

    def test_wrong_use(self):
        np.save("h.npy", self.noise(5, "f4"))
        files = ["h.npy", "h.npy", "y.npy"]
        for arguments, says in ((["--normalised=mean"], "--normalised mean: must be one of zero-mean"),
                                (["--normalised="], "must be one of zero-mean"),
                                (["--normalised=zero-mean", "--precision", "f32"], "leave out --precision f32"),
                                (["--normalised=zero-mean", "--normalised"], "given twice"),
                                (["--normalised=zero-mean", "--gain", 3], "--gain")):
            with self.subTest(arguments=arguments):
                self.fails("correlate", *arguments, *files, rc=2, says=says)


class Search(Peaks):
    def reference(self, y, threshold, distance, most):
        """Of equal maxima, which these results do not have, find_peaks may take any first. The ends count as lower."""
        size = abs(y)
        found = find_peaks(np.pad(size, 1, constant_values=-1), height=threshold or None, distance=distance)[0] - 1
        if most:
            found = np.sort(found[np.argsort(-size[found], kind="stable")[:most]])
        return found

    def test_side_lobes_that_are_dropped_hide_nothing(self):
        x = np.zeros(60, "f4")
        x[[20, 26, 34]] = 3, 4, 9
        np.save("x.npy", x)
        np.save("h.npy", np.ones(1, "f4"))
        for more in ([], ["--threshold", 1], ["--peaks", 2], ["--peaks", 9]):
            got = self.objects(*(more or ["--threshold", 3]), "--min-distance", 10, "h.npy", "x.npy")
            self.assertEqual([p["sample"] for p in got], [20, 34])
        x[[40, 46, 52]] = 7
        np.save("x.npy", x)
        got = self.objects("--threshold", 1, "--min-distance", 10, "h.npy", "x.npy")
        self.assertEqual([p["sample"] for p in got], [20, 34, 46])  # of equal ones the first that is not hidden
        got = self.objects("--threshold", 1, "--min-distance", 10, "--range", "1/1", "h.npy", "x.npy")
        self.assertEqual([p["sample"] for p in got], [20, 34, 46])

    def test_chains_across_shards(self):
        """Maxima that rise, fall or change slowly over the whole signal, each within the distance of the next: the peaks
        of a shard depend on the far end. A template of one sample leaves the samples as they are."""
        n = 40000
        np.save("h.npy", np.ones(1, "f4"))
        ramps = {"rise": np.linspace(1, 2, n), "fall": np.linspace(2, 1, n), "hills": 2 + np.sin(np.arange(n) / 1500),
                 "valley": abs(np.linspace(-1, 1, n)) + 1}
        for name, ramp in ramps.items():
            x = ramp + 1e-4 * abs(self.noise(n, "f8"))
            np.save("x.npy", x)
            for distance in (30, 501):
                wanted = self.reference(x, 0, distance, 0)
                for block in (1, 512):
                    got = self.objects("--threshold", 0, "--min-distance", distance, "--block", block, "h.npy", "x.npy")
                    self.assertEqual([p["sample"] for p in got], wanted.tolist())
                for parts in (1, 3):
                    with self.subTest(ramp=name, distance=distance, parts=parts):
                        shards = [self.objects("--range", "%d/%d" % (k + 1, parts), "--threshold", 0, "--min-distance",
                                               distance, "h.npy", "x.npy") for k in range(parts)]
                        self.assertEqual([p["sample"] for p in sum(shards, [])], wanted.tolist())

    def test_peaks_are_those_of_scipy(self):
        for kind in ("f4", "c8"):
            x, h = self.noise(20000, kind), self.noise(40, kind)
            np.save("x.npy", x)
            np.save("h.npy", h)
            for options, arguments in (((0, 40, 7), ["--peaks", 7]), ((10, 1, 0), ["--threshold", 10, "--min-distance", 1]),
                                       ((5, 300, 0), ["--threshold", 5, "--min-distance", 300]),
                                       ((12, 3, 20), ["--threshold", 12, "--min-distance", 3, "--peaks", 20])):
                self.run_program("correlate", *arguments, "h.npy", "x.npy", "y.npy")
                y = np.load("y.npy")
                expected = self.reference(y, *options)
                for more in ([], ["y.npy"]):
                    got = self.objects(*arguments, "h.npy", "x.npy", *more)
                    self.assertEqual([p["sample"] for p in got], (expected - 39).tolist())
                    values = np.array([p["magnitude"] * np.exp(1j * p["phase"]) for p in got])
                    self.assertLess(abs(values - y[expected]).max(), 1e-5)

    def test_blocks_threads_and_pipes_find_the_same(self):
        x, burst = self.capture()
        wanted = None
        arguments = ["--normalised", "--threshold", 0.5, "--format", "cf32", "--rate", 1000000, "burst.npy"]
        for options in ([], ["--block", 1], ["--block", 4096], ["--threads", 2], ["--mode", "valid"]):
            got = self.objects(*options, *arguments, "x.cf32")
            self.assertEqual([p["sample"] for p in got], [700, 5000, 9000])
            rounded = [{k: v if v is None or isinstance(v, (int, str)) else round(v, 6) for k, v in p.items()} for p in got]
            wanted = wanted or rounded
            self.assertEqual(rounded, wanted)
        self.assertEqual(self.objects(*arguments, "-", stdin=x.tobytes())[1]["sample"], 5000)
        for k, p in enumerate(wanted):
            self.assertAlmostEqual(p["phase"], k, delta=0.1)
            self.assertAlmostEqual(p["seconds"], p["position"] / 1e6, 6)
            self.assertLess(abs(p["position"] - p["sample"]), 0.1)

    def test_shards_find_what_the_whole_finds(self):
        x, h = self.noise(30000), self.noise(300)
        np.save("x.npy", x)
        np.save("h.npy", h)
        for more in ([], ["--stride", 3], ["--min-distance", 5000], ["--first", -100, "--last", 20001]):
            arguments = ["--normalised", "--threshold", 0.15, *more]
            whole = self.objects("--range", "1/1", *arguments, "h.npy", "x.npy")
            self.assertGreater(len(whole), 2)
            for n in (2, 7):
                shards = [self.objects("--range", "%d/%d" % (k + 1, n), *arguments, "h.npy", "x.npy") for k in range(n)]
                self.assertEqual(sum(shards, []), whole)
        self.fails("correlate", "--range", "1/2", "--peaks", 1, "h.npy", "x.npy", "y.npy", rc=2, says=["--range", "y.npy"])

    def test_fraction_of_a_sample(self):
        """Noise of 80 % of the band, delayed in the spectrum; the burst is a part of it. Interpolation errs by less than
        0.01. What the rest of the noise adds to the slope at the maximum moves that by about 1 / sqrt(length) of the
        delay."""
        n, m = 4096, 2000
        spectrum = np.fft.fft(self.noise(n, "c16"))
        frequency = np.fft.fftfreq(n)
        spectrum[abs(frequency) > 0.4] = 0
        np.save("h.npy", np.fft.ifft(spectrum)[1000:1000 + m])
        for delay in (0.25, -0.4, 0.5):
            np.save("x.npy", np.fft.ifft(spectrum * np.exp(-2j * np.pi * frequency * delay)))
            (peak,) = self.objects("--normalised", "--peaks", 1, "h.npy", "x.npy")
            self.assertLess(abs(peak["position"] - 1000 - delay), 0.02)

    def test_lines(self):
        self.capture()
        got = self.lines("--peaks", 2, "--format", "cf32", "burst.npy", "x.cf32")
        self.assertEqual([p[0] for p in got], [700, 5000])
        self.assertEqual([p[2] for p in got], [None, None])
        got = self.lines("--peaks", 3, "--format", "cf32", "--rate", 1000, "burst.npy", "x.cf32")
        self.assertAlmostEqual(got[2][2], 9, 2)
        self.assertEqual(self.lines("--threshold", 1e9, "-q", "--format", "cf32", "burst.npy", "x.cf32"), [])
        said = self.run_program("correlate", "--threshold", 1e9, "--format", "cf32", "burst.npy", "x.cf32").stderr
        self.assertIn(b"no peak reaches --threshold 1e+09; the largest magnitude is ", said)

    def test_output_beside_peaks(self):
        x, burst = self.capture()
        self.run_program("correlate", "--format", "cf32", "burst.npy", "x.cf32", "plain.npy")
        self.lines("--peaks", 2, "--format", "cf32", "burst.npy", "x.cf32", "beside.npy")
        self.assertEqual(self.read("plain.npy"), self.read("beside.npy"))
        done = self.run_program("correlate", "--peaks", 2, "--format", "cf32", "burst.npy", "x.cf32", "-")
        self.assertEqual(len(done.stdout), 8 * (len(x) + len(burst) - 1))
        self.assertEqual(len(done.stderr.splitlines()), 3)

    def test_channels(self):
        burst = self.noise(50, "f4")
        x = np.zeros((2, 1000), "f4")
        x[0, 100:150], x[1, 100:150], x[1, 400:450] = burst, -burst, 2 * burst
        np.save("h.npy", burst)
        np.save("x.npy", x)
        got = self.objects("--normalised", "--threshold", 0.9, "h.npy", "x.npy")
        self.assertEqual([(p["sample"], p["channel"]) for p in got], [(100, 0), (100, 1), (400, 1)])
        self.assertEqual([round(p["phase"], 4) for p in got], [0, 3.1416, 0])

    def test_wrong_use(self):
        self.capture()
        files = ["--format", "cf32", "burst.npy", "x.cf32"]
        for arguments, says in ((["--min-distance", 3, *files, "y.npy"], "--min-distance is about peaks"),
                                (["--annotate", "a.sigmf-meta", *files, "y.npy"], "--annotate is about peaks"),
                                (["--threshold", -1, *files], "--threshold -1"), (files, "add --peaks or --threshold"),
                                (["--threshold", "nan", *files], "is not a number"),
                                (["--peaks", 0, *files], "--peaks 0"),
                                (["--peaks", 1, "--resume", *files, "y.npy"], "--resume"),
                                (["--peaks", 1, "-o", "f32", *files], "there is no OUT")):
            with self.subTest(arguments=arguments):
                self.fails("correlate", *arguments, rc=2, says=says)
        self.fails("convolve", "--peaks", 1, "burst.npy", "x.cf32", rc=2, says="no such option")


class Annotations(Peaks):
    def meta(self, name):
        return json.loads(self.read(name))

    def recording(self, **more):
        x, burst = self.capture()
        meta = {"global": {"core:datatype": "cf32_le", "core:version": "1.2.0", "core:sample_rate": 1000000,
                           "core:author": "A. Nyone"},
                "captures": [{"core:sample_start": 0, "core:frequency": 433.9e6}],
                "annotations": [{"core:sample_start": 800, "core:sample_count": 5, "core:label": "old"}], **more}
        os.rename("x.cf32", "x.sigmf-data")
        self.write("x.sigmf-meta", json.dumps(meta).encode())
        return meta

    def annotate(self, name, *more, **options):
        self.run_program("correlate", "--normalised", "--threshold", 0.5, "--annotate", name, "burst.npy", *more, **options)
        return self.meta(name)

    def test_copy_of_the_metadata(self):
        before = self.recording()
        for again in range(2):
            meta = self.annotate("found.sigmf-meta", "x.sigmf-meta")
        self.assertEqual(meta["captures"], before["captures"])
        self.assertEqual(meta["global"]["core:dataset"], "x.sigmf-data")
        self.assertEqual(meta["global"]["core:author"], "A. Nyone")
        self.assertEqual([e["name"] for e in meta["global"]["core:extensions"]], ["partita"])
        self.assertEqual([(a["core:sample_start"], a["core:sample_count"], a["core:label"]) for a in meta["annotations"]],
                         [(700, 500, "burst"), (800, 5, "old"), (5000, 500, "burst"), (9000, 500, "burst")])
        self.assertAlmostEqual(meta["annotations"][2]["partita:phase"], 1, 1)
        self.assertIn("magnitude 0.9", meta["annotations"][0]["core:comment"])
        self.run_program("convolve", "burst.npy", "found.sigmf-meta", "y.npy")

    def test_new_metadata(self):
        x, burst = self.capture()
        meta = self.annotate("found.sigmf-meta", "--format", "cf32", "--rate", 8000, "x.cf32")
        self.assertEqual(len(meta["annotations"]), 3)
        self.run_program("convolve", "burst.npy", "found.sigmf-meta", "y.npy")
        np.save("x.npy", x)
        self.annotate("array.sigmf-meta", "x.npy")
        self.run_program("convolve", "burst.npy", "array.sigmf-meta", "z.npy")
        self.assertEqual(self.read("y.npy"), self.read("z.npy"))
        meta = self.annotate("pipe.sigmf-meta", "--format", "cf32", "-", stdin=x.tobytes())
        self.assertEqual((len(meta["annotations"]), meta["global"]["core:metadata_only"]), (3, True))

    def test_matches_across_the_ends(self):
        x, burst = self.capture()
        np.concatenate([burst[200:], x, burst[:300]]).tofile("x.cf32")
        meta = self.annotate("found.sigmf-meta", "--format", "cf32", "x.cf32")
        places = [(a["core:sample_start"], a["core:sample_count"]) for a in meta["annotations"]]
        self.assertEqual((places[0], places[-1]), ((0, 300), (12300, 300)))

    def test_inputs_and_other_metadata_stay(self):
        before = self.recording()
        other = {"global": {"core:datatype": "cf32_le", "core:dataset": "y.cf32"}}
        self.write("other.sigmf-meta", json.dumps(other).encode())
        os.symlink("x.sigmf-meta", "link.sigmf-meta")
        os.link("x.sigmf-meta", "hard.sigmf-meta")
        for name in ("x.sigmf-meta", "other.sigmf-meta", "link.sigmf-meta", "hard.sigmf-meta", "found.json"):
            self.fails("correlate", "--peaks", 1, "--annotate", name, "burst.npy", "x.sigmf-meta", says=name)
        self.fails("correlate", "--peaks", 1, "--annotate", "y.sigmf-meta", "burst.npy", "x.sigmf-meta", "y.sigmf-data",
                   says="beside OUT")
        self.assertEqual(self.meta("x.sigmf-meta"), before)
        self.assertEqual(self.meta("other.sigmf-meta"), other)

    def test_other_folders(self):
        """Metadata of another recording of the same name stay; new metadata name no samples that are not beside them."""
        before = self.recording()
        os.mkdir("archive")
        self.write("archive/x.sigmf-meta", json.dumps(before).encode())
        self.write("archive/x.sigmf-data", bytes(800))
        self.write("archive/new.sigmf-meta", b'{"global": {"core:dataset": "x.cf32"}}')
        shutil.copy("x.sigmf-data", "x.cf32")
        raw = ("--format", "cf32", "x.cf32")
        for name, files in (("x", ["x.sigmf-meta"]), ("new", raw)):
            name = "archive/%s.sigmf-meta" % name
            self.fails("correlate", "--peaks", 1, "--annotate", name, "burst.npy", *files, says=[name, files[-1][:6], "exists"])
        self.assertEqual(self.meta("archive/x.sigmf-meta"), before)
        for name, files in (("copy", ["x.sigmf-meta"]), ("raw", raw)):
            told = self.annotate("archive/%s.sigmf-meta" % name, *files)["global"]
            self.assertEqual((told["core:metadata_only"], "core:dataset" in told), (True, False))
        for again in range(2):
            told = self.annotate("./here.sigmf-meta", "archive/../x.sigmf-meta")["global"]
            self.assertEqual((told["core:dataset"], "core:metadata_only" in told), ("x.sigmf-data", False))

    def test_samples_from_standard_input_have_no_name(self):
        self.capture()
        with open("x.cf32") as samples:
            subprocess.run([rig.PROGRAM, "correlate", "--peaks", "1", "--annotate", "found.sigmf-meta", "--format", "cf32",
                            "burst.npy", "-"], stdin=samples, stdout=subprocess.DEVNULL, check=True)
        self.assertNotIn("core:dataset", self.meta("found.sigmf-meta")["global"])

    def test_hostile_annotations(self):
        for name, values in (("core:sample_start", (-1, 0.5, "1", None, [], 1e300)), ("core:sample_count", (-1, 0.5, "1"))):
            for value in values:
                self.recording(annotations=[{"core:sample_start": 1, name: value}])
                self.fails("correlate", "--peaks", 1, "--annotate", "y.sigmf-meta", "burst.npy", "x.sigmf-meta",
                           says=["x.sigmf-meta", name, "annotation 0"])
        self.recording(annotations=[{"core:sample_start": 2**63 - 1, "core:sample_count": 2**63 - 1}])
        self.assertEqual(self.annotate("y.sigmf-meta", "x.sigmf-meta")["annotations"][-1]["core:sample_start"], 2**63 - 1)


if __name__ == "__main__":
    rig.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`partita correlate --templates` against direct sums in float64, and templates and signals that it cannot search."""
import os

import numpy as np

import rig
import schemas
from rig import Case

RATE = 100
# A value has the error of a transform relative to the norm of its 4096 samples, over that of a window, of at least 61:
# sqrt(4096 / 61) < 9 times the gate, and twice that where noise and templates differ in level.
TOLERANCE = 18 * rig.gate("f4")


def values(x, h, zero_mean=False):
    """The mean over channels of normalised correlations, each window by itself; NaN beside gaps."""
    h = np.broadcast_to(np.atleast_2d(h), (len(x), np.shape(h)[-1])).astype("f8")
    windows = np.lib.stride_tricks.sliding_window_view(x.astype("f8"), h.shape[1], axis=1)
    if zero_mean:
        h, windows = h - h.mean(1, keepdims=True), windows - windows.mean(2, keepdims=True)
    norms = np.linalg.norm(windows, axis=2) * np.linalg.norm(h, axis=1, keepdims=True)
    return (np.einsum("cti,ci->ct", windows, h) / norms).mean(0)


def peaks_of(v, threshold, distance):
    """The rule of partita/templates.h, time by time."""
    size = np.where(np.isfinite(v), abs(v), -1)
    return [t for t in np.flatnonzero(size >= threshold) if size[max(0, t - distance + 1):t].max(initial=-1) < size[t]
            and size[t + 1:t + distance].max(initial=-1) <= size[t]]


class Templates(Case):
    def setUp(self):
        super().setUp()
        noise = self.random.standard_normal
        self.events = {"a": noise((2, 150)), "b": noise(150), "c": noise((2, 61)), "d": noise(90)}
        self.x = noise((2, 20000)) + 0.1
        for k, (at, name) in enumerate(((700, "a"), (3000, "b"), (5000, "c"), (9000, "a"), (12000, "d"), (16000, "c"))):
            h = self.events[name]
            self.x[:, at:at + h.shape[-1]] += (-1) ** k * 2 * h
        self.x[0, 14000:14010] = np.nan
        self.x = self.x.astype("f4")
        np.save("x.npy", self.x)
        os.mkdir("bank")
        np.save("bank/a.npy", self.events["a"])
        self.write("bank/b.wav", rig.wav_bytes(self.events["b"].astype("f4"), rate=RATE, bits=32))
        np.save("bank/c.npy", self.events["c"].T.astype("f4").T)
        self.write("bank/d.txt", b"".join(b"%.17g\n" % v for v in self.events["d"]))
        self.write("bank/notes", b"no template\n")
        self.write("bank/.hidden.npy", b"no template\n")

    def lines(self, *arguments, **more):
        """Sample, seconds or None, value and template of each line."""
        text = self.run_program("correlate", *arguments, **more).stdout.decode().splitlines()
        self.assertRegex(text[0], "^# +sample +position +seconds +magnitude +phase +template$")
        rows = [line.split() for line in text[1:]]
        return [(int(r[0]), None if r[2] == "-" else float(r[2]), float(r[3]) * np.cos(float(r[4])), r[5]) for r in rows]

    def expected(self, threshold, distance=150, zero_mean=False, mad=0):
        found = []
        for name, h in self.events.items():
            v = values(self.x, h, zero_mean)
            median = np.median(abs(v[np.isfinite(v)]))
            found += [(t, v[t], name) for t in peaks_of(v, max(threshold, mad * median), distance)]
        return sorted(found)

    def same(self, got, expected):
        self.assertEqual([(g[0], g[3]) for g in got], [(e[0], e[2]) for e in expected])
        self.assertLess(max(abs(g[2] - e[1]) for g, e in zip(got, expected)), TOLERANCE + 1e-5)  # 6 digits and 4 of phase


class Results(Templates):
    def test_direct_sums(self):
        for options, more in (([], {}), (["--normalised=zero-mean"], {"zero_mean": True})):
            expected = self.expected(0.3, **more)
            self.assertGreater(len(expected), 6)  # more than the events: of noise as well
            got = self.lines("--templates", "bank", "--threshold", 0.3, *options, "-r", RATE, "x.npy")
            self.same(got, expected)
            self.assertEqual([g[1] for g in got], [e[0] / RATE for e in expected])

    def test_multiples_of_the_median(self):
        for distance in (1, 40, 5000):
            expected = self.expected(0, distance, mad=5)
            self.same(self.lines("--templates", "bank", "--mad", 5, "--min-distance", distance, "x.npy"), expected)
        self.same(self.lines("--templates", "bank", "--mad", 5, "--min-distance", "400ms", "-r", RATE, "x.npy"),
                  self.expected(0, 40, mad=5))
        self.same(self.lines("--templates", "bank", "--mad", 5, "--threshold", 0.6, "x.npy"), self.expected(0.6, mad=5))

    def test_archives_files_pipes_and_threads(self):
        options = ["--threshold", 0.35]
        whole = self.run_program("correlate", "--templates", "bank", *options, "x.npy").stdout
        arrays = {name: h.astype("f4") for name, h in self.events.items()}
        np.savez("bank.npz", **arrays)
        with open("packed.NPZ", "wb") as file:
            np.savez_compressed(file, **arrays)
        for name in ("bank.npz", "packed.NPZ"):
            done = self.run_program("correlate", "--templates", name, *options, "x.npy", rc=None)
            if b"built without" in done.stderr:
                continue
            self.assertEqual((done.returncode, done.stdout), (0, whole), done.stderr)
        self.assertEqual(self.run_program("correlate", "--templates", "bank", "-t", 3, *options, "x.npy").stdout, whole)
        done = self.run_program("correlate", "--templates", "bank", *options, "--format", "f32", "-c", 2, "-",
                                stdin=self.x.T.tobytes())
        self.assertEqual(done.stdout, whole)
        only = [line for line in whole.splitlines() if line.endswith((b" a", b"template"))]
        self.assertEqual(self.run_program("correlate", "--templates", "bank/a.npy", *options, "x.npy").stdout.splitlines(), only)

    def test_pieces_and_ranges(self):
        """A file is searched in pieces of at most 2**22 frames; maxima at their ends are those of the whole signal."""
        x = self.random.integers(-99, 100, 9000000)
        h = self.random.integers(-99, 100, 64)
        for cut in (3000000, 6000000):
            for k, at in enumerate((cut - 300, cut - 64, cut - 1, cut + 120, cut + 121 + 64)):
                x[at:at + 64] = x[at:at + 64] // (6 - k) + h
        np.save("long.npy", x.astype("i2"))
        np.save("h.npy", h.astype("f4"))
        sums = np.cumsum(np.concatenate(([0], x * x)))
        v = np.correlate(x.astype("f8"), h, "valid") / np.sqrt((sums[64:] - sums[:-64]) * float(h @ h))
        options = ("--templates", "h.npy", "--threshold", 0.62, "--min-distance", 150)
        expected = peaks_of(v, 0.62, 150)
        self.assertGreater(len(expected), 3)
        self.same(self.lines(*options, "--max-memory", "40M", "long.npy"), [(t, v[t], "h") for t in expected])
        whole = self.run_program("correlate", *options, "long.npy").stdout
        for n in (2, 5):  # there are three pieces
            parts = [self.run_program("correlate", *options, "--range", "%d/%d" % (k + 1, n), "-q", "long.npy").stdout for k in range(n)]
            self.assertEqual(b"".join(part.split(b"\n", 1)[1] for part in parts), whole.split(b"\n", 1)[1])
        done = self.run_program("correlate", *options, "--format", "i16", "-", stdin=x.astype("i2").tobytes())
        self.assertEqual(done.stdout, whole)

    def test_the_largest_as_json(self):
        largest = sorted(sorted(self.expected(0.2), key=lambda e: -abs(e[1]))[:4])
        done = self.run_program("correlate", "--templates", "bank", "--threshold", 0.2, "--peaks", 4, "--json", "x.npy")
        objects = [schemas.load(line) for line in done.stdout.splitlines()]
        self.assertEqual([(o["sample"], o["template"]) for o in objects], [(t, name) for t, _, name in largest])
        for o, (_, value, _) in zip(objects, largest):
            self.assertLess(abs(o["magnitude"] * np.cos(o["phase"]) - value), TOLERANCE)

    def test_none_is_found(self):
        done = self.run_program("correlate", "--templates", "bank", "--threshold", 0.99, "x.npy")
        self.assertEqual(done.stdout.count(b"\n"), 1)
        self.assertEqual(done.stderr, b"partita correlate: no template reaches the threshold\n")
        silent = self.run_program("correlate", "-q", "--templates", "bank", "--threshold", 0.99, "x.npy")
        self.assertEqual(silent.stderr, b"")

    def test_a_truncated_signal(self):
        data = rig.wav_bytes(self.x.T, rate=RATE, bits=32)
        self.write("x.wav", data[:-8])
        done = self.run_program("correlate", "--templates", "bank", "--threshold", 0.35, "x.wav", rc=3)
        self.assertIn(b"x.wav: ends after 19999 of 20000 frames", done.stderr)


class Mistakes(Templates):
    def refused(self, *arguments, says, rc=1):
        self.fails("correlate", *arguments, says=says, rc=rc)

    def test_options(self):
        for options, says in (([], "--threshold up to 1, or --mad, for example --mad 8"), (["--threshold", 0], "--mad 8"),
                              (["--threshold", 70], "--threshold up to 1"),
                              (["--mad", 8, "--max-lag", 3], "--max-lag does not go with --templates"),
                              (["--mad", 8, "--precision", "f64"], "--precision does not go with --templates"),
                              (["--mad", 0], "--mad 0: is not a number from 1"),
                              (["--mad", 8, "--range", "4/3"], "--range 4/3: is not K/N"),
                              (["--mad", 8, "--threshold", -1], "--threshold -1: is not a magnitude")):
            self.refused("--templates", "bank", *options, "x.npy", says=says, rc=2)
        self.refused("--templates", "bank", "--mad", 8, "x.npy", "y.npy", says="and no OUT, but 2 file names are given", rc=2)
        self.refused("--mad", 8, "bank/a.npy", "x.npy", says="--mad needs --templates", rc=2)

    def test_templates(self):
        np.save("z.npy", self.x[0] + 1j)
        self.refused("--templates", "bank", "--mad", 8, "z.npy", says="z.npy: has complex samples")
        self.refused("--templates", "none", "--mad", 8, "x.npy", says="none: cannot open: No such file")
        os.mkdir("empty")
        self.refused("--templates", "empty", "--mad", 8, "x.npy", says="empty: holds no templates; they are files such as .npy")
        for name, array, says in (("z", np.ones(9) + 1j, "has complex samples"), ("three", np.ones((3, 9)), "has 3 channels"),
                                  ("long", np.ones((2, 20001)) + np.eye(2, 20001), "has 20001 frames, x.npy only 20000"),
                                  ("silent", np.eye(1, 9) * [[0], [1]], "channel 0 of template silent is silent; leave it out"),
                                  ("gap", np.full(9, np.nan), "taps must be finite"),
                                  ("nothing", np.ones(0), "holds no samples")):
            with self.subTest(name):
                np.save(name + ".npy", array)
                self.refused("--templates", name + ".npy", "--mad", 8, "x.npy", says=says)
        np.save("flat.npy", np.ones(9))
        self.refused("--templates", "flat.npy", "--normalised=zero-mean", "--mad", 8, "x.npy", says="is constant; leave it out")
        self.refused("--templates", "bank", "-r", 50, "--mad", 8, "x.npy",
                     says="bank/b.wav: sample rate 100 Hz differs from the 50 Hz of x.npy")
        os.mkfifo("bank/pipe.wav")
        self.refused("--templates", "bank", "--mad", 8, "x.npy", says="bank/pipe.wav: is not a regular file")

    def test_damaged_archives(self):
        np.savez("bank.npz", a=self.events["a"])
        whole = self.read("bank.npz")
        if b"built without" in self.run_program("correlate", "--templates", "bank.npz", "--mad", 8, "x.npy", rc=None).stderr:
            self.skipTest("no libarchive")
        for name, data in (("text.npz", b"no archive\n"), ("cut.npz", whole[:1000]), ("nothing.npz", b"")):
            with self.subTest(name):
                self.write(name, data)
                self.refused("--templates", name, "--mad", 8, "x.npy", says=[name, "save it by numpy.savez"])


if __name__ == "__main__":
    rig.main()

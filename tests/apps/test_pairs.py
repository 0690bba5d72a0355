#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`partita pairs` against direct sums in float64, and inputs that do not fit together."""
import os
import resource

import numpy as np

import rig
import schemas
from rig import Case

# partita/pairs.h: the error of a transform, and that of a sum of at most 16 blocks here, 16 at a time.
TOLERANCE = rig.gate("f4") + 17 * 2.0**-24


def direct(x, lag):
    """The rows of OUT for one window, whose samples outside are zeros, and the norms that errors are relative to."""
    x = x.astype("f8")
    n, padded, norms = x.shape[1], np.pad(x, ((0, 0), (lag, lag))), np.linalg.norm(x, axis=1)
    pairs = [(i, j) for i in range(len(x)) for j in range(i, len(x))]
    return (np.array([[x[i] @ padded[j, lag + k:lag + k + n] for k in range(-lag, lag + 1)] for i, j in pairs]),
            np.array([[norms[i] * norms[j]] for i, j in pairs]))


def stacked(x, lag, window, overlap, scaled=lambda w: w):
    starts = range(0, x.shape[1] - window + 1, window - overlap)
    sums = [direct(scaled(x[:, s:s + window].astype("f8")), lag) for s in starts]
    return np.mean([s[0] for s in sums], axis=0), np.mean([s[1] for s in sums], axis=0)


def normalised(w):
    norms = np.linalg.norm(w, axis=1, keepdims=True)
    return w / np.where(norms > 0, norms, 1)


class Pairs(Case):
    def setUp(self):
        super().setUp()
        noise = self.random.integers(-9000, 9000, 3040)
        later = [noise[40 - k:3040 - k] for k in (0, 7, 33)]  # signal 1 by 7 frames, signal 2 by 33
        self.x = np.array(later) / 32768 + 0.01
        self.write("two.wav", rig.wav_bytes(self.x[:2].T.astype("f4"), rate=100, bits=32))
        self.write("third.wav", rig.wav_bytes(self.x[2].astype("f4"), rate=100, bits=32))
        self.x = self.x.astype("f4")

    def result(self, *arguments, inputs=("two.wav", "third.wav")):
        done = self.run_program("pairs", *arguments, *inputs, "y.npy")
        y = np.load("y.npy")
        self.assertEqual((y.dtype, y.ndim), (np.dtype("f4"), 2))
        return y, [line.split() for line in done.stdout.decode().splitlines()]

    def near(self, y, expected):
        self.assertEqual(y.shape, expected[0].shape)
        self.assertLess(np.max(abs(y - expected[0]) / expected[1]), TOLERANCE)


class Results(Pairs):
    def test_direct_sums(self):
        y, lines = self.result("--max-lag", 40)
        self.near(y, direct(self.x, 40))
        self.assertEqual(lines[0], ["#", "first", "second", "lag", "seconds", "value"])
        self.assertEqual([line[:3] for line in lines[1:]], [[*"000"], [*"017"], ["0", "2", "33"], [*"110"], ["1", "2", "26"], [*"220"]])
        for line, row in zip(lines[1:], y):
            self.assertEqual(float(line[3]), int(line[2]) / 100)
            self.assertAlmostEqual(float(line[4]) / float(row[40 + int(line[2])]), 1, 5)  # 6 digits
        whole = self.read("y.npy")
        self.assertEqual(self.result("--max-lag", "400ms", "-t", 3, "-q")[1], [])
        self.assertEqual(self.read("y.npy"), whole)
        done = self.run_program("pairs", "--max-lag", 40, "two.wav", "third.wav", "-")
        self.assertEqual(done.stdout, whole)
        self.assertEqual([line.split() for line in done.stderr.decode().splitlines()], lines)
        self.near(self.result("--max-lag", 0)[0], direct(self.x, 0))

    def test_windows(self):
        for window, overlap, lag in ((500, 0, 20), (700, 350, 40), (90, 89, 80), (3000, 17, 30)):
            y, _ = self.result("--max-lag", lag, "--window", window, "--overlap", overlap)
            self.near(y, stacked(self.x, lag, window, overlap))
        self.near(self.result("--max-lag", 20, "--window", "5s", "--overlap", "2.5s")[0], stacked(self.x, 20, 500, 250))

    def test_normalised(self):
        self.x[1, 1000:1700] = 0  # silence stays
        np.save("x.npy", self.x)
        for option, scaled in (("--normalised", normalised),
                               ("--normalised=zero-mean", lambda w: normalised(w - w.mean(1, keepdims=True)))):
            for window, overlap in ((500, 100), (3000, 0)):
                y, lines = self.result("--max-lag", 20, "--window", window, "--overlap", overlap, option, inputs=["x.npy"])
                self.near(y, stacked(self.x, 20, window, overlap, scaled) if window < 3000 else direct(scaled(self.x.astype("f8")), 20))
                self.assertEqual(lines[1][:4], ["0", "0", "0", "-"])

    def test_phase_weighted_stacks(self):
        """The mean of windows times the squared magnitude of the mean of their phases, those of the rows' analytic signals."""
        self.x[2] = 0
        np.save("x.npy", self.x)
        for window, overlap, lag in ((500, 0, 20), (400, 350, 40), (1000, 0, 0), (3000, 0, 7)):
            options = ("--max-lag", lag, "--window", window, "--overlap", overlap, "--stack", "phase-weighted")
            y, lines = self.result(*options, "--json", inputs=["x.npy"])
            starts = range(0, 3001 - window, window - overlap)
            kept, norms = map(np.array, zip(*(direct(self.x[:, s:s + window], lag) for s in starts)))
            spectrum = np.fft.fft(kept)
            spectrum[..., 1:lag + 1] *= 2
            spectrum[..., lag + 1:] = 0
            analytic = np.fft.ifft(spectrum)
            size = np.abs(analytic)
            phasors = analytic / np.where(size > 0, size, 1)
            mean, coherence = kept.mean(axis=0), np.abs(phasors.mean(axis=0))
            # The error of an analytic result is that of a result, and that of its Hilbert transform, a sum of so many results
            # times taps of norm 1. It turns a phase by at most that over the magnitude, and at most by half a turn; the
            # square of the coherence changes by twice as much.
            error = TOLERANCE * norms * (2 + np.sqrt(2 * lag + 1))
            turned = np.minimum(2, error / np.where(size > 0, size, np.inf)).mean(axis=0)
            bound = TOLERANCE * norms.mean(axis=0) + abs(mean) * (2 * turned + 4 * len(starts) * 2.0**-24)
            self.assertTrue((abs(y - mean * coherence**2) <= bound).all())
            if lag:
                self.assertGreater(np.max(abs(y - mean) / (bound + 1e-9)), 10 if len(starts) > 1 else 0)
            same = self.read("y.npy")
            self.result(*options, "--threads", 2, inputs=["x.npy"])
            self.assertEqual(self.read("y.npy"), same)

    def test_windows_are_kept(self):
        self.run_program("pairs", "--max-lag", 20, "--window", 700, "--overlap", 200, "--stack", "none", "--json", "two.wav", "third.wav", "y.npy")
        y = np.load("y.npy")
        self.assertEqual(y.shape, (5, 6, 41))
        for k, window in enumerate(y):
            self.near(window, direct(self.x[:, 500 * k:500 * k + 700], 20))
        np.testing.assert_allclose(y.mean(0), self.result("--max-lag", 20, "--window", 700, "--overlap", 200)[0], atol=1e-3)
        done = self.run_program("pairs", "--max-lag", 40, "--window", 1500, "--stack", "none", "--json", "two.wav", "third.wav", "-")
        said = schemas.load(done.stderr)
        self.assertEqual((said["windows"], [row["lag"] for row in said["pairs"]]), (2, 2 * [0, 7, 33, 0, 26, 0]))

    def test_lists_and_json(self):
        whole, _ = self.result("--max-lag", 40)
        self.write("list.txt", b"\xef\xbb\xbf# a comment\r\n2 0\r\n\n 1\t,1 \n0 1 # last")
        y, lines = self.result("--max-lag", 40, "--list", "list.txt")
        self.assertEqual([line[:3] for line in lines[1:]], [["2", "0", "-33"], [*"110"], [*"017"]])
        np.testing.assert_array_equal(y[1:], whole[[3, 1]])
        self.near(y[:1], (direct(self.x, 40)[0][2:3, ::-1], direct(self.x, 40)[1][2:3]))
        done = self.run_program("pairs", "--max-lag", 40, "--list", "list.txt", "--json", "-q", "two.wav", "third.wav", "z.npy")
        said = schemas.load(done.stdout)
        self.assertEqual((said["out"], said["windows"]), ("z.npy", 1))
        self.assertEqual([[row["first"], row["second"], row["lag"]] for row in said["pairs"]], [[2, 0, -33], [1, 1, 0], [0, 1, 7]])
        for row, line in zip(said["pairs"], y):
            self.assertEqual((row["seconds"], np.float32(row["value"])), (row["lag"] / 100, line[40 + row["lag"]]))
        self.x[1, 5] = np.nan
        np.save("x.npy", self.x)
        done = self.run_program("pairs", "--max-lag", 3, "--window", 1000, "--json", "x.npy", "-")
        said = schemas.load(done.stderr)
        self.assertEqual((said["windows"], said["pairs"][1]["value"], said["pairs"][1]["seconds"]), (3, None, None))

    def test_a_window_is_read_in_parts(self):
        """Most of the energy lies where the program, which holds 2**24 samples and 8 lags of each signal, cuts."""
        x = self.random.integers(-1, 2, (4, 4300000)).astype("i2")
        cut = 2**24 // 4 + 8 * 3
        x[:, cut - 9:cut + 9] = self.random.integers(-9999, 9999, (4, 18))
        np.save("long.npy", x)
        y, _ = self.result("--max-lag", 3, "--max-memory", "400M", inputs=["long.npy"])
        self.near(y, direct(x, 3))

    def test_results_larger_than_memory(self):
        """Groups of pairs read the inputs again; the bytes are those of one group, and pages of the program few."""
        lag, lines = 200, self.random.integers(0, 3, (2000, 2))
        self.write("list.txt", b"".join(b"%d %d\n" % tuple(line) for line in lines))
        np.save("x.npy", self.x)
        arguments = ("pairs", "--list", "list.txt", "--max-lag", lag, "-t", 1, "-q")
        for stack in ("none", "linear", "phase-weighted"):
            options = (*arguments, "--window", 400, "--overlap", 150, "--stack", stack)
            self.run_program(*options, "x.npy", "y.npy")
            whole = self.read("y.npy")
            for memory in ("9M", "16M"):
                self.run_program(*options, "--max-memory", memory, "x.npy", "z.npy")
                self.assertEqual(self.read("z.npy"), whole)
        self.fails(*options, "--max-memory", "10k", "x.npy", "z.npy", says="but --max-memory is 10 KiB")
        options = (*arguments, "--window", 400, "--overlap", 350, "--stack", "none", "--max-memory", "9M", "x.npy")
        self.fails(*options, "-", says=["-: memory holds the windows of", "of 2000 pairs, whose results only a file takes"])
        # 9 MB, and what the program needs; the results are 170 MB.
        limit = {} if "SANITIZED" in os.environ else {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_DATA, (64 << 20, 64 << 20))}
        self.run_program(*options, "z.npy", **limit)
        self.assertEqual(np.load("z.npy", mmap_mode="r").shape, (53, 2000, 2 * lag + 1))

    def test_ranges_of_pairs(self):
        for options in (["--window", 700], ["--window", 700, "--stack", "none"], ["--list", "list.txt"]):
            self.write("list.txt", b"2 0\n1 1\n0 1\n")
            whole, parts = ["pairs", "--max-lag", 20, *options, "two.wav", "third.wav"], []
            for k in range(3):
                self.run_program(*whole, "y.npy", "--range", "%d/3" % (k + 1))
                parts.append(np.load("y.npy"))
            self.run_program(*whole, "y.npy")
            np.testing.assert_array_equal(np.concatenate(parts, axis=-2), np.load("y.npy"))
            self.fails(*whole, "z.npy", "--range", "1/7", says="--range 1/7: there are only %d pairs" % np.load("y.npy").shape[-2])
        self.fails(*whole, "z.npy", "--range", "0/3", says="--range 0/3: is not K/N", rc=2)

    def test_gaps_reach_only_their_signal(self):
        self.x[1, 5] = np.nan
        np.save("x.npy", self.x)
        y, _ = self.result("--max-lag", 9, inputs=["x.npy"])
        self.assertEqual(np.isfinite(y).all(1).tolist(), [True, False, True, False, False, True])


class Mistakes(Pairs):
    def test_options(self):
        for options, says, rc in (([], "needs --max-lag, for example --max-lag 500", 2),
                                  (["--max-lag", 3000], "--max-lag: must be below the window's 3000 frames", 1),
                                  (["--max-lag", 9, "--window", 3001], "--window: has 3001 frames, and two.wav only 3000", 1),
                                  (["--max-lag", 9, "--window", 90, "--overlap", 90], "--overlap: must be below the window's 90 frames", 1)):
            self.fails("pairs", *options, "two.wav", "y.npy", says=says, rc=rc)
        self.fails("pairs", "--max-lag", 9, "two.wav", "y.wav", says="y.wav: results are an .npy array; its name ends in .npy", rc=2)
        self.fails("pairs", "--max-lag", 9, "two.wav", says="name", rc=2)

    def test_lists(self):
        for text, says in ((b"0 1\n\n0 3\n", "bad.txt: line 3: '0 3' is not two numbers of signals, 0 to 2"),
                           (b"0 -1\n", "bad.txt: line 1"), (b"0\n1\n", "bad.txt: line 1: '0'"), (b"0 1 2", "bad.txt: line 1"),
                           (b"0.5 1", "bad.txt: line 1"), (b"\x93NUMPY\x01\x00", "bad.txt: holds a zero byte; it is no text"),
                           (b"\xef\xbb\xbf0 1\r5 6", "bad.txt: line 2: '5 6'"),
                           (b"# nothing\n", "bad.txt: has no pairs; a line has two numbers"), (b"", "bad.txt: has no pairs")):
            self.write("bad.txt", text)
            self.fails("pairs", "--max-lag", 9, "--list", "bad.txt", "two.wav", "third.wav", "y.npy", says=says)
        self.fails("pairs", "--max-lag", 9, "--list", "none.txt", "two.wav", "y.npy", says="none.txt: cannot open")
        self.fails("pairs", "--max-lag", 9, "--list", ".", "two.wav", "y.npy", says=".: ")
        self.fails("pairs", "--max-lag", 9, "--stack", "mean", "two.wav", "y.npy", says="--stack mean", rc=2)

    def test_inputs(self):
        np.save("short.npy", self.x[:, :2999])
        np.save("complex.npy", self.x[0] + 1j)
        self.write("fast.wav", rig.wav_bytes(self.x[0], rate=200, bits=32))
        for name, says in (("short.npy", "short.npy: has 2999 frames, but two.wav 3000; cut the longer one"),
                           ("fast.wav", "fast.wav: has a rate of 200 Hz, but two.wav one of 100 Hz; convert one"), ("complex.npy", "complex.npy: has complex samples"),
                           ("none.wav", "none.wav: cannot open")):
            self.fails("pairs", "--max-lag", 9, "two.wav", name, "y.npy", says=says)
        np.save("y.npy", self.x)
        self.fails("pairs", "--max-lag", 9, "two.wav", "y.npy", "y.npy", says="y.npy")
        self.write("cut.wav", rig.wav_bytes(self.x[:2].T, rate=100, bits=32)[:-8])
        done = self.run_program("pairs", "-q", "--max-lag", 9, "cut.wav", "z.npy", rc=3)
        self.assertEqual(done.stderr, b"")
        done = self.run_program("pairs", "--max-lag", 9, "cut.wav", "z.npy", rc=3)
        self.assertEqual(done.stderr, b"partita pairs: cut.wav: ends after 2999 of 3000 frames\n")


if __name__ == "__main__":
    rig.main()

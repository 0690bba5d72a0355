#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Filters made of several: chains of files, compared with sums in double."""
import json

import numpy as np

import rig
from rig import Case, parse_wav, wav_bytes

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
                (["one.npy+four.npy"], ["four.npy: has 4 channels for 2", "matrix:four.npy"], 1),
                (["one.npy+matrix:one.npy"], ["one.npy: has 1 channels for 2"], 1),
                (["two.npy+complex.npy"], ["complex.npy: complex taps"], 1),
                (["one.npy+a.conf"], ["a.conf: a configuration cannot be part of a chain"], 1),
                (["one.npy+-"], ["-: taps of a configuration or a chain are in files"], 1),
                (["one.npy+short.npy", "one.npy"], ["one.npy+short.npy: a chain must be the only IR"], 2),
                (["--ir-length", 5, "one.npy+short.npy"], ["a chain", "leave out --ir-format, --ir-length, --ir-fade, --delay"], 2),
                (["--azimuth", 5, "one.npy+short.npy"], ["--azimuth"], 2)):
            with self.subTest(arguments):
                self.fails("convolve", *arguments, "x.npy", "out.npy", says=says, rc=rc)
        self.fails("convolve", "x.npy+one.npy", "x.npy", "one.npy", says="one.npy")  # OUT is one of the files
        self.fails("correlate", "one.npy+short.npy", "mono.npy", "out.npy", says="No such file")


if __name__ == "__main__":
    rig.main()

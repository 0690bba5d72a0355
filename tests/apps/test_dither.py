#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Dither: the noise has the right distribution, is independent of the signal, and depends on the
position of a sample only."""
import numpy as np

import rig
from rig import Case, parse_wav, wav_bytes

N = 200000


class Dither(Case):
    def setUp(self):
        super().setUp()
        self.write("one.txt", b"1\n")
        t = np.arange(N)
        self.tone = 10 ** (-100 / 20) * np.sin(2 * np.pi * 997 / 48000 * t)
        self.write("x.wav", wav_bytes(self.tone.astype("f4").reshape(-1, 1), bits=32))

    def result(self, *arguments, name="y.wav"):
        self.run_program("convolve", *arguments, "one.txt", "x.wav", name)
        return parse_wav(self.read(name))[1][:, 0] * 32768

    def test_a_tone_below_one_step_is_kept(self):
        self.assertFalse(self.result("-o", "i16").any())
        y = self.result("-o", "i16", "--dither", "tpdf")
        level = np.dot(y / 32768, self.tone) / np.dot(self.tone, self.tone)
        # The error of triangular dither and rounding has a variance of 1/4 step^2; the estimate of
        # the level has its standard deviation over |tone|. Five of them:
        self.assertAlmostEqual(level, 1, delta=5 * 0.5 / 32768 / np.linalg.norm(self.tone))

    def test_the_error_is_that_of_triangular_dither(self):
        y = self.result("-o", "i16", "--dither", "tpdf")
        error = y - self.tone.astype("f4") * 32768.0
        self.assertLess(np.abs(error).max(), 1.5)
        # Mean 0 and variance 1/4, within five standard deviations of their estimates: the fourth
        # moment of the sum of three uniform numbers is 13/80.
        self.assertLess(abs(error.mean()), 5 * 0.5 / np.sqrt(N))
        self.assertLess(abs(error.var() - 0.25), 5 * np.sqrt((13 / 80 - 1 / 16) / N))
        # White: the correlation of neighbours has a standard deviation of 1 / sqrt(N).
        self.assertLess(abs(np.corrcoef(error[1:], error[:-1])[0, 1]), 5 / np.sqrt(N))

    def test_shards_and_chunks_have_the_same_noise(self):
        options = ["-o", "i16", "--dither", "tpdf"]
        for k in (1, 2, 3):
            self.run_program("convolve", *options, "--range", "%d/3" % k, "one.txt", "x.wav", "%d.wav" % k)
        self.run_program("join", "joined.wav", "1.wav", "2.wav", "3.wav")
        self.run_program("convolve", *options, "--range", "1/1", "one.txt", "x.wav", "whole.wav")
        self.assertEqual(self.read("joined.wav"), self.read("whole.wav"))
        whole = parse_wav(self.read("whole.wav"))[1][:, 0] * 32768
        self.assertTrue(np.array_equal(self.result(*options, "--block", 100), whole))

    def test_libsndfile_writes_the_same_samples(self):
        self.run_program("convolve", "-o", "i16", "--dither", "tpdf", "one.txt", "x.wav", "y.flac")
        self.run_program("convolve", "one.txt", "y.flac", "z.wav")
        flac = parse_wav(self.read("z.wav"))[1][:, 0] * 32768
        self.assertTrue(np.array_equal(flac, self.result("-o", "i16", "--dither", "tpdf")))

    def test_floats_are_refused(self):
        self.fails("convolve", "--dither", "tpdf", "one.txt", "x.wav", "y.wav", says=["--dither", "f32", "i16"])

    def test_normalized_samples_do_not_clip(self):
        done = self.run_program("convolve", "-o", "i16", "--dither", "tpdf", "--normalize", "one.txt", "x.wav", "y.wav")
        self.assertEqual(done.stderr, b"")


if __name__ == "__main__":
    rig.main()

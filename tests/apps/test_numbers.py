#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Numbers on the command line: prefixes, units, times in place of numbers of frames, and the
messages. tests/apps/test_numbers.c tests the parser."""
import numpy as np

import rig
from rig import Case


class Numbers(Case):
    def setUp(self):
        super().setUp()
        self.write("x.wav", rig.wav_bytes(self.random.integers(-9000, 9000, (3000, 1)), rate=8000))
        self.write("h.txt", b"1\n0.5\n0.25\n")

    def result(self, *arguments):
        self.run_program("convolve", *arguments, "h.txt", "x.wav", "y.wav")
        return self.read("y.wav")

    def test_times_are_frames_at_the_rate_of_the_input(self):
        for time, frames in (("100ms", 800), ("0.25s", 2000), ("125us", 1), ("2k", 2000), ("1.5e3", 1500)):
            with self.subTest(time=time):
                self.assertEqual(self.result("--first", time), self.result("--first", frames))
        self.assertEqual(self.result("--first", "-10ms", "--last", "0.1s"), self.result("--first=-80", "--last=800"))
        self.assertEqual(self.result("--block", "10ms"), self.result("--block", 80))
        for name, lag in (("a.npy", "50ms"), ("b.npy", 400)):
            self.run_program("correlate", "--max-lag", lag, "h.txt", "x.wav", name)
        self.assertEqual(self.read("a.npy"), self.read("b.npy"))

    def test_times_need_a_rate(self):
        np.save("x.npy", np.arange(5000.0))
        self.fails("convolve", "--first", "0.5s", "h.txt", "x.npy", "y.npy", rc=2,
                   says=["--first 0.5s", "sample rate", "--rate 48k", "number of frames"])
        self.run_program("convolve", "--rate", "1kHz", "--first", "0.5s", "h.txt", "x.npy", "y.npy")
        self.assertEqual(np.load("y.npy").size, 5002 - 500)
        self.fails("plan", "--taps", "2s", rc=2, says=["--taps 2s", "--rate"])
        self.assertIn(b"96000 f32 taps", self.run_program("plan", "--taps", "2s", "--rate", "48k").stdout)

    def test_times_beyond_the_range(self):
        self.fails("convolve", "--block", "1us", "h.txt", "x.wav", "y.wav", rc=2,
                   says=["--block 1us", "from 1 to 16777216", "at 8000 Hz it is 0 frames"])
        self.fails("convolve", "--first", "2s", "--last", "1s", "h.txt", "x.wav", "y.wav", rc=2,
                   says="no sample in between")

    def test_messages_have_value_range_and_example(self):
        for arguments, says in ((["--threads", "0"], ["--threads 0:", "whole number from 1 to 4096", "for example 4"]),
                                (["--rate", "fast"], ["--rate fast:", "a number of Hz above 0", "48k"]),
                                (["--gain", "9e9"], ["--gain 9e9:", "decibels from -300 to 300", "-6"]),
                                (["--first", "soon"], ["--first soon:", "frames or a time", "250ms"]),
                                (["--block", "1.5"], ["--block 1.5:", "frames or a time in ms, s or min from 1 to", "4096"])):
            with self.subTest(arguments=arguments):
                self.fails("convolve", *arguments, "h.txt", "x.wav", "y.wav", rc=2, says=says)
        self.fails("layer", "forward", "--workspace-limit", "some", rc=2, says=["bytes from 1 on", "512M or 4G"])
        self.fails("live", "--fade", "1h", rc=2, says=["--fade 1h:", "milliseconds from 0 to 60000", "0.5s"])

    def test_raw_rates_with_prefix(self):
        self.write("x.raw", bytes(800))
        self.run_program("convolve", "--format", "i16", "--rate", "44.1k", "h.txt", "x.raw", "y.wav")
        self.assertEqual(rig.parse_wav(self.read("y.wav"))[0], 44100)


if __name__ == "__main__":
    rig.main()

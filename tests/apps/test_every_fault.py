#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every command with a failing call: the n-th allocation, open, read, write, seek, sync, rename,
mapping or thread. The program may succeed with the same result, or fail with one line and no new
file; it never crashes, and never succeeds with another result. The second argument is the
fault-injecting library. With EVERY_FAULT in the environment every n is tried, else some."""
import os
import sys

import numpy as np

import rig
from fault_rig import NAMES, FaultCase
from rig import wav_bytes

FaultCase.shim = os.path.abspath(sys.argv.pop(2))


class EveryFault(FaultCase):
    def setUp(self):
        super().setUp()
        self.write("ir.txt", b"0.5\n0.25\n")
        self.write("in.wav", wav_bytes(self.random.integers(-9000, 9000, (3000, 2))))
        np.save("x.npy", self.random.standard_normal(3000).astype("f4"))

    def every(self, *arguments, rc=0, may_stay=(), crashes=()):
        """may_stay: files that a failed run may leave, besides those that stood there. crashes: functions
        whose failure the libraries of codecs do not survive."""
        before = self.attempt(["--version"])[3]
        out, files, counts = self.counted(arguments, rc)
        for name in NAMES:
            for n in self.calls(counts[name]):
                with self.subTest(arguments=arguments, fault="%s:%d" % (name, n)):
                    status, said, got_out, got = self.attempt(arguments, FAULT="%s:%d" % (name, n))
                    if name in crashes and self.crashed_in(status).startswith(("libsndfile", "libFLAC")):
                        continue
                    self.assertIn(status, (rc, 1), said)
                    if status == rc:
                        self.assertEqual(got_out, out)
                        differing = {k for k in set(got) | set(files) if got.get(k) != files.get(k)}
                        self.assertEqual(differing - set(may_stay), set())
                        continue
                    # Where it has no memory or no threads, OpenMP ends the process with status 1.
                    if not said.startswith("\nlibgomp: "):
                        self.assertEqual(said.count("\n"), 1, said)
                        self.assertRegex(said, "^partita[ :]")
                    self.assertEqual(set(got) - set(before) - set(may_stay), set(), said)
                    kept = {k: v for k, v in got.items() if k in before and k not in may_stay}
                    self.assertTrue(kept == {k: v for k, v in before.items() if k not in may_stay}, said)

    def test_convolve(self):
        self.every("convolve", "ir.txt", "in.wav", "out.wav")
        self.every("convolve", "--threads", 2, "ir.txt", "x.npy", "out.npy")

    def test_correlate(self):
        self.every("correlate", "x.npy", "x.npy", "out.npy")

    def test_libsndfile(self):
        self.run_program("convolve", "ir.txt", "in.wav", "in.flac")
        # libsndfile 1.2.0 uses the memory of its FLAC codec without checking that it got it.
        self.every("convolve", "ir.txt", "in.flac", "out.wav", crashes=["alloc"])
        self.every("convolve", "ir.txt", "in.wav", "out.flac", crashes=["alloc"])

    def test_range(self):
        self.every("convolve", "--range", "1/2", "ir.txt", "in.wav", "out.wav", may_stay=["out.wav"])

    def test_resume(self):
        self.every("convolve", "--resume", "ir.txt", "in.wav", "out.wav",
                   may_stay=["out.wav", "out.wav.partial", "out.wav.partial.range"])

    def test_join(self):
        for k in (1, 2):
            self.run_program("convolve", "--range", "%d/2" % k, "ir.txt", "in.wav", "s%d.wav" % k)
        self.every("join", "out.wav", "s1.wav", "s2.wav")

    def test_sigmf(self):
        self.run_program("convolve", "--rate", 8000, "ir.txt", "x.npy", "x.sigmf-data")
        # The samples are renamed first.
        self.every("convolve", "ir.txt", "x.sigmf-meta", "out.sigmf-data", may_stay=["out.sigmf-data"])
        self.every("correlate", "--normalised", "--peaks", 3, "--annotate", "found.sigmf-meta", "ir.txt", "x.sigmf-meta",
                   may_stay=["found.sigmf-meta"])

    def test_plan(self):
        self.every("plan", "--taps", 3000)

    def test_layer(self):
        np.save("w.npy", self.random.standard_normal((2, 3, 3, 3)).astype("f4"))
        np.save("image.npy", self.random.standard_normal((1, 3, 9, 9)).astype("f4"))
        self.every("layer", "forward", "-i", "image.npy", "-w", "w.npy", "--output", "out.npy")


if __name__ == "__main__":
    rig.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""SigMF recordings as input and output, IQ samples in pipes, and the examples: a burst in noise,
the delay between two recordings. The last arguments are the example programs."""
import json
import os
import subprocess
import sys

import numpy as np

import rig
from rig import Case

FIND_BURST, FIND_DELAY = map(os.path.abspath, (sys.argv.pop(2), sys.argv.pop(2)))


class Recordings(Case):
    def recording(self, name, x, datatype="cf32_le", captures=({"core:sample_start": 0},), **more):
        meta = {"global": {"core:datatype": datatype, "core:version": "1.0.0", "core:sample_rate": 1000000, **more},
                "captures": list(captures), "annotations": []}
        self.write(name + ".sigmf-data", x.tobytes())
        self.write(name + ".sigmf-meta", json.dumps(meta).encode())
        return x

    def iq(self, n):
        return (self.random.standard_normal(n) + 1j * self.random.standard_normal(n)).astype("c8")

    def test_read_and_write(self):
        x, h = self.recording("in", self.iq(3000)), self.iq(20)
        np.save("h.npy", h)
        for name in ("in.sigmf-meta", "in.sigmf-data"):
            self.run_program("convolve", "h.npy", name, "out.sigmf-data")
            self.close(np.fromfile("out.sigmf-data", "c8"), np.convolve(x, h))
            meta = json.loads(self.read("out.sigmf-meta"))
            self.assertEqual(meta["global"]["core:datatype"], "cf32_le")
            self.assertEqual(meta["global"]["core:sample_rate"], 1000000)
            self.assertEqual(meta["captures"], [{"core:sample_start": 0}])
        self.run_program("convolve", "h.npy", "out.sigmf-meta", "again.npy")
        self.assertEqual(len(np.load("again.npy")), 3038)

    def test_shards_of_a_recording_and_its_own_name_as_output(self):
        self.recording("in", self.iq(3000))
        self.write("h.txt", b"1\n2\n")
        for k in (1, 2):
            self.run_program("convolve", "--range", "%d/2" % k, "h.txt", "in.sigmf-meta", "%d.sigmf-data" % k)
        self.run_program("join", "out.sigmf-data", "1.sigmf-data", "2.sigmf-data")
        self.run_program("convolve", "--resume", "h.txt", "in.sigmf-meta", "whole.sigmf-data")
        self.assertEqual(self.read("out.sigmf-data"), self.read("whole.sigmf-data"))
        self.assertEqual(self.read("out.sigmf-meta"), self.read("whole.sigmf-meta"))
        before = self.read("in.sigmf-data")
        self.fails("convolve", "h.txt", "in.sigmf-meta", "in.sigmf-data", says=["is the input"])
        self.assertEqual(self.read("in.sigmf-data"), before)

    def test_metadata_as_output_is_refused(self):
        x = self.recording("in", self.iq(30))
        self.write("h.txt", b"1\n")
        self.fails("convolve", "h.txt", "in.sigmf-meta", "o.sigmf-meta", says=["o.sigmf-meta", "name o.sigmf-data"])
        self.run_program("convolve", "--range", "1/1", "h.txt", "in.sigmf-meta", "part.sigmf-data")
        self.fails("join", "o.sigmf-meta", "part.sigmf-data", says=["o.sigmf-meta", "name o.sigmf-data"])

    def test_as_template_of_integers_and_channels(self):
        x = self.recording("in", self.random.integers(-9000, 9000, (500, 2)).astype("<i2"), "ri16_le",
                           **{"core:num_channels": 2})
        h = self.recording("h", self.random.standard_normal(30).astype("<f4"), "rf32_le")
        self.run_program("correlate", "h.sigmf-meta", "in.sigmf-meta", "out.npy")
        expected = [np.correlate(x[:, c] / 32768, h, "full") for c in range(2)]
        self.close(np.load("out.npy"), np.array(expected))

    def test_the_same_name_without_metadata_is_raw(self):
        x = self.iq(100)
        self.write("in.sigmf-data", x.tobytes())
        self.write("h.txt", b"1\n")
        self.run_program("convolve", "-f", "cf32", "h.txt", "in.sigmf-data", "out.npy")
        self.assertEqual(np.load("out.npy").tolist(), x.tolist())
        self.fails("convolve", "h.txt", "in.sigmf-data", "out.npy", says=["in.sigmf-data"])

    def test_bad_metadata(self):
        self.write("h.txt", b"1\n")
        x = self.iq(100)
        bad = {"no JSON": b"{", "no global": b"{}", "datatype": dict(datatype="cf99"), "channels": {"core:num_channels": 0},
               "header": dict(captures=[{"core:sample_start": 0, "core:header_bytes": 801}]),
               "trailing": {"core:trailing_bytes": 801}, "metadata": {"core:metadata_only": True},
               "rate": {"core:sample_rate": -1}, "dataset": {"core:dataset": "../x"}}
        for name, change in bad.items():
            with self.subTest(name):
                self.recording("in", x, **(change if isinstance(change, dict) else {}))
                if isinstance(change, bytes):
                    self.write("in.sigmf-meta", change)
                self.fails("convolve", "h.txt", "in.sigmf-meta", "out.npy", says=["in.sigmf-meta"])
        os.remove("in.sigmf-meta")
        self.fails("convolve", "h.txt", "in.sigmf-meta", "out.npy", says=["in.sigmf-meta", "No such file"])
        self.recording("in", x)
        os.remove("in.sigmf-data")
        self.fails("convolve", "h.txt", "in.sigmf-meta", "out.npy", says=["in.sigmf-data", "No such file"])

    def test_iq_through_pipes(self):
        x, h = self.iq(50000), self.iq(40)
        np.save("h.npy", h)
        done = self.run_program("convolve", "--format", "cf32_le", "h.npy", "-", "-", stdin=x.tobytes())
        self.close(np.frombuffer(done.stdout, "c8"), np.convolve(x, h))


class Examples(Case):
    def example(self, *arguments, rc=0):
        done = subprocess.run([str(a) for a in arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(done.returncode, rc, done.stderr)
        return (done.stderr if rc else done.stdout).decode()

    def test_missing_and_empty_files_are_named(self):
        self.write("x", bytes(80))
        self.write("empty", b"")
        for example, more in ((FIND_BURST, []), (FIND_DELAY, [5])):
            for files in (("none", "x"), ("x", "none")):
                said = self.example(example, *files, *more, rc=1)
                self.assertEqual(said, "none: No such file or directory\n")
            for files in (("empty", "x"), ("x", "empty")):
                self.assertRegex(self.example(example, *files, *more, rc=1), r"empty (has )?(0|no samples)")
            self.assertIn("usage: ", self.example(example, "x", rc=2))

    def test_burst_in_noise_is_found_at_its_sample(self):
        """The burst is 20 dB below the noise, which is ten times louder elsewhere, and rotated by a
        phase."""
        burst = np.exp(1j * np.pi * self.random.integers(0, 4, 4000) / 2).astype("c8")
        for at in (0, 1, 123457, 196000):
            noise = self.random.standard_normal(200000) + 1j * self.random.standard_normal(200000)
            noise[50000:80000] *= 10
            noise[at:at + 4000] += 0.14 * np.exp(0.7j) * burst
            burst.tofile("burst.cf32")
            noise.astype("c8").tofile("capture.cf32")
            self.assertTrue(self.example(FIND_BURST, "burst.cf32", "capture.cf32").startswith("sample %d," % at))
        self.example(FIND_BURST, "burst.cf32", rc=2)
        self.assertIn("not be longer", self.example(FIND_BURST, "capture.cf32", "burst.cf32", rc=1))

    def test_delay_between_two_recordings_of_one_voice(self):
        """The voice is low-pass noise in syllables; both recordings have their own noise and gain."""
        n = 400000
        syllables = np.repeat(self.random.uniform(0, 1, n // 4000) ** 3, 4000)
        voice = np.convolve(self.random.standard_normal(n) * syllables, np.hanning(9), "same")
        for delay in (0, 1, -1, 731, -4099):
            first = 0.8 * voice + 0.3 * self.random.standard_normal(n)
            second = 0.1 * np.roll(voice, delay)[:n - 777] + 0.05 * self.random.standard_normal(n - 777)
            first.astype("f4").tofile("first.f32")
            second.astype("f4").tofile("second.f32")
            said = self.example(FIND_DELAY, "first.f32", "second.f32", 5000)
            self.assertLess(abs(float(said.split()[1]) - delay), 0.3, said)
        self.example(FIND_DELAY, "first.f32", "second.f32", 0, rc=2)

    def test_burst_by_the_program(self):
        burst = np.exp(1j * np.pi * self.random.integers(0, 4, 500) / 2).astype("c8")
        capture = 0.3 * (self.random.standard_normal(30000) + 1j * self.random.standard_normal(30000)).astype("c8")
        capture[7001:7501] += burst
        np.save("burst.npy", burst)
        np.save("capture.npy", capture)
        self.run_program("correlate", "--mode", "valid", "burst.npy", "capture.npy", "match.npy")
        self.assertEqual(int(np.argmax(abs(np.load("match.npy")))), 7001)


if __name__ == "__main__":
    rig.main()

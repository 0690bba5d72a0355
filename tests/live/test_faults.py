#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`partita live` and `partita devices` with a failing call of their own (not of PortAudio, ALSA and JACK, whose code is
not ours): the n-th allocation, thread, open, read, write and so on, with devices made of files. The program ends with a
status of its own and one line at least that says why, leaves no temporary file, and a recording under its name is
complete. The second argument is the fault-injecting library; EVERY_FAULT: every n instead of some."""
import os
import socket
import sys

import numpy as np

import rig_live
from rig_live import ASOUNDRC, FILES, dyadic, received_sweep, rig

from fault_rig import NAMES, FaultCase
from rig import parse_wav, wav_bytes

FaultCase.shim = os.path.abspath(sys.argv.pop(2))
FRAMES = 2000


class LiveFaults(FaultCase):
    some = 2
    settings = {"FAULT_OWN": "1", "JACK_NO_START_SERVER": "1"}

    def setUp(self):
        super().setUp()
        rig_live.remove_locked_jack_database()
        self.settings = {**LiveFaults.settings, "HOME": self.folder}
        self.write("ir.wav", wav_bytes(dyadic(self.random, (9, 2)), bits=32))
        self.write("in.raw", dyadic(self.random, (6000, 2)).tobytes())
        self.write("out.raw", b"")
        self.write(".asoundrc", ASOUNDRC.format(folder=self.folder, inputs=2, outputs=2, rate=48000).encode())

    def check_recording(self, status, files, expected):
        """Complete and right, as far as it goes; that of a run without losses is whole."""
        if "rec.wav" not in files:
            self.assertNotEqual(status, 0)
            return
        _, samples, _, _ = parse_wav(files["rec.wav"])
        np.testing.assert_array_equal(samples, expected[:len(samples)])
        if status == 0:
            self.assertEqual(len(samples), len(expected))

    def every(self, *arguments, stays=()):
        """stays: files that a run may write."""
        before = self.attempt(["--version"])[3]
        _, files, counts = self.counted(arguments, 0)
        recorded = parse_wav(files["rec.wav"])[1] if "rec.wav" in files else None
        for name in NAMES:
            for n in self.calls(counts[name]):
                with self.subTest(arguments=arguments, fault="%s:%d" % (name, n)):
                    status, said, _, got = self.attempt(arguments, FAULT="%s:%d" % (name, n))
                    self.assertIn(status, (0, 1, 3, 4), "%s %s" % (said, self.crashed_in(status)))
                    if status:
                        self.assertRegex(said, "(?m)^partita")
                    new = set(got) - set(before) - set(stays)
                    # A recording that could not be completed or renamed is not thrown away.
                    if name != "unlink":  # what cannot be removed stays
                        self.assertTrue(not new or len(new) == 1 and "the samples are in " in said, (new, said))
                        self.assertTrue(all(kept in said for kept in new), (new, said))
                    if recorded is not None:
                        self.check_recording(status, got, recorded)

    def test_live(self):
        self.every("live", "--ir", "ir.wav", *FILES, "--duration", FRAMES / 48000, "--engine", "direct", "--record",
                   "rec.wav", "--calls", "calls.csv", stays=["rec.wav", "calls.csv"])

    def test_cancel(self):
        self.every("live", "--cancel", 300, *FILES, "--duration", FRAMES / 48000, "--engine", "direct", "--out-channels", 2)

    def test_scenes(self):
        self.write("s.yaml", b"scenes: {a: {filter: ir.wav}, b: {filter: ./ir.wav, gain: -3}}")
        self.every("live", "--scene", "s.yaml", *FILES, "--duration", FRAMES / 48000, "--engine", "direct")

    def test_web(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.every("live", "--ir", "ir.wav", *FILES, "--duration", FRAMES / 48000, "--engine", "direct", "--web", port)

    def test_measure(self):
        self.write("in.raw", received_sweep([[(500, 0.5)], [(700, 0.5)]], 0.1).tobytes())
        self.every("live", *FILES, "--measure", "m.wav", "--duration", 0.1, "--max-taps", 1000, stays=["m.wav"])

    def test_devices(self):
        self.every("devices")
        self.every("devices", "--json")


if __name__ == "__main__":
    rig.main()

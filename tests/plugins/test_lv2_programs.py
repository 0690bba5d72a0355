#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The plug-ins' descriptions, checked by programs of LV2, and a null test: the sound of a plug-in
and that of `partita convolve` differ by rounding errors. The second argument plays a file through a
plug-in."""
import os
import shutil
import subprocess
import sys

import numpy as np

RENDER = os.path.abspath(sys.argv.pop(2))

from rig_lv2 import PREFIX, WithStates

import rig
from rig import Case, parse_wav, wav_bytes

# Audio inputs and outputs of each plug-in.
PORTS = {"mono": (1, 1), "mono-stereo": (1, 2), "stereo": (2, 2), "true-stereo": (2, 2), "matrix-4x4": (4, 4),
         "matrix-8x8": (8, 8), "matrix-16x16": (16, 16), "matrix-4x2": (4, 2), "matrix-9x2": (9, 2),
         "matrix-16x2": (16, 2)}


class Descriptions(Case):
    def tool(self, *command):
        if not shutil.which(command[0]):
            self.skipTest("%s is not installed" % command[0])
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_validated(self):
        """lv2_validate finds no errors against the schemas of LV2's own specifications."""
        if not shutil.which("sord_validate"):
            self.skipTest("sord_validate, which lv2_validate calls, is not installed (sordi)")
        folder = os.environ["LV2_PATH"] + "/partita.lv2"
        said = self.tool("lv2_validate", folder + "/manifest.ttl", folder + "/partita.ttl")
        self.assertIn("Found 0 errors", said)

    def test_listed(self):
        listed = [line for line in self.tool("lv2ls").splitlines() if line.startswith(PREFIX)]
        self.assertEqual(sorted(listed), sorted(PREFIX + name for name in PORTS))

    def test_ports(self):
        for name, (inputs, outputs) in PORTS.items():
            with self.subTest(name=name):
                said = self.tool("lv2info", PREFIX + name)
                self.assertEqual(said.count("Symbol:"), 6 + inputs + outputs)
                for text in ("Symbol:      input_%d\n" % inputs, "Symbol:      output_%d\n" % outputs,
                             "http://lv2plug.in/ns/ext/worker#schedule", "Has latency:       yes"):
                    self.assertIn(text, said)


class Null(WithStates, Case):
    def render(self, variant, ir, signal):
        """The output frames of the plug-in, which must log nothing."""
        self.state(variant, ir)
        done = subprocess.run([RENDER, PREFIX + variant, "state", signal, "out.raw"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return np.fromfile("out.raw", "<f4").reshape(-1, PORTS[variant][1])

    def compare(self, variant, channels, taps, *options):
        inputs = PORTS[variant][0]
        x = (self.random.standard_normal((4000, inputs)) / 8).astype("f4")
        self.response("ir.wav", channels, taps)
        self.write("in.wav", wav_bytes(x, bits=32))
        self.run_program("convolve", "ir.wav", "in.wav", "out.wav", "-o", "f32", *options)
        expected = parse_wav(self.read("out.wav"))[1][:4000]
        got = self.render(variant, "ir.wav", "in.wav")
        self.close(got, expected, limit=2 * rig.gate("f4")) # errors of both

    def test_mono(self):
        self.compare("mono", 1, 2500)

    def test_mono_to_stereo(self):
        self.compare("mono-stereo", 2, 900)

    def test_stereo(self):
        self.compare("stereo", 2, 1200)
        self.compare("stereo", 1, 700)

    def test_matrix(self):
        self.compare("matrix-4x4", 16, 600, "--matrix")
        self.compare("matrix-9x2", 18, 300, "--matrix")

    def test_true_stereo(self):
        """LL LR RL RR is the matrix [out][in] with its inner two responses exchanged."""
        x = (self.random.standard_normal((4000, 2)) / 8).astype("f4")
        taps = self.response("ir.wav", 4, 800)
        self.write("matrix.wav", wav_bytes(taps[:, [0, 2, 1, 3]], bits=32))
        self.write("in.wav", wav_bytes(x, bits=32))
        self.run_program("convolve", "matrix.wav", "in.wav", "out.wav", "--matrix", "-o", "f32")
        expected = parse_wav(self.read("out.wav"))[1][:4000]
        self.close(self.render("true-stereo", "ir.wav", "in.wav"), expected, limit=2 * rig.gate("f4"))

    def test_other_rate(self):
        """A response at 44100 Hz that starts with as much silence as the pulses of the resampler
        take: nothing of it is omitted, and `partita convolve` starts at the same frame."""
        x = (self.random.standard_normal((6000, 1)) / 8).astype("f4")
        taps = np.zeros((3000, 1), "f4")
        taps[600:2400, 0] = self.random.standard_normal(1800) * np.hanning(1800) / 40
        self.write("ir.wav", wav_bytes(taps, rate=44100, bits=32))
        self.write("in.wav", wav_bytes(x, bits=32))
        self.run_program("convolve", "ir.wav", "in.wav", "out.wav", "--resample-ir", "-o", "f32")
        expected = parse_wav(self.read("out.wav"))[1][:6000]
        # Beside rounding: the pulses before the start of the response, below -140 dB of its peak.
        self.close(self.render("mono", "ir.wav", "in.wav"), expected, limit=2 * rig.gate("f4") + 1e-7)


if __name__ == "__main__":
    rig.main()

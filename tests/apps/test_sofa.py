#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""SOFA files as impulse responses: the pair that another library reads from the file, at the nearest of its positions."""
import importlib.util
import os
import subprocess

import numpy as np

import rig
from rig import Case, SOFA, measured_pair, parse_wav, wav_bytes

RATE = 44100


class Sofa(Case):
    def setUp(self):
        super().setUp()
        self.x = self.random.standard_normal(900).astype("f4")
        self.write("x.wav", wav_bytes(self.x[:, None], bits=32, rate=RATE))
        if not os.path.exists(SOFA) or not importlib.util.find_spec("h5py"):
            self.skipTest("libmysofa's data or python3-h5py are not installed")
        said = subprocess.run([rig.PROGRAM, "convolve", SOFA, "x.wav", "y.wav"], stderr=subprocess.PIPE).stderr
        if b"without libmysofa" in said:
            self.skipTest("built without libmysofa")

    def expected(self, azimuth, elevation):
        return np.array([np.convolve(self.x.astype("f8"), h) for h in measured_pair(azimuth, elevation)]).T

    def result(self, *arguments):
        self.run_program("convolve", *arguments, SOFA, "x.wav", "y.wav")
        rate, y = parse_wav(self.read("y.wav"))[:2]
        return y

    def test_directions(self):
        for azimuth, elevation in ((0, 0), (90, 0), (-90, 0), (270, 0), (-30, 40), (12.4, -40), (0, 90)):
            with self.subTest(azimuth=azimuth, elevation=elevation):
                y = self.result("--azimuth", azimuth, "--elevation", elevation)
                self.close(y.astype("f4"), self.expected(azimuth, elevation))

    def test_the_front_is_the_default(self):
        self.close(self.result().astype("f4"), self.expected(0, 0))

    def test_left_is_louder_on_the_left(self):
        left, right = np.linalg.norm(self.result("--azimuth", 90), axis=0)
        self.assertGreater(left, 2 * right)

    def test_options_of_responses(self):
        pair = measured_pair(60, 0)[:, :100]
        expected = np.zeros((len(self.x) + 149, 2))
        for ear in range(2):
            expected[50:, ear] = np.convolve(self.x.astype("f8"), pair[ear]) / 2
            expected[:len(self.x), ear] += self.x
        y = self.result("--azimuth", 60, "--ir-length", 100, "--delay", 50, "--wet", 20 * np.log10(0.5), "--dry", 0)
        self.close(y.astype("f4"), expected)

    def test_double(self):
        np.save("x.npy", self.x.astype("f8"))
        self.run_program("convolve", "--azimuth", 45, "--rate", RATE, SOFA, "x.npy", "y.npy")
        self.close(np.load("y.npy"), self.expected(45, 0).T)

    def test_other_rates(self):
        """What resampling makes of the file is what it makes of the same taps in a .wav."""
        self.write("x.wav", wav_bytes(self.x[:, None], bits=32, rate=48000))
        self.fails("convolve", SOFA, "x.wav", "y.wav", says=["44100", "48000", "x.wav", "--resample-ir"])
        self.write("pair.wav", wav_bytes(measured_pair(0, 0).T.astype("f4"), bits=32, rate=RATE))
        self.run_program("convolve", "--resample-ir", "pair.wav", "x.wav", "expected.wav")
        self.close(self.result("--resample-ir").astype("f4"), parse_wav(self.read("expected.wav"))[1],
                   2 * rig.gate("f4"))

    def test_shards(self):
        for k in (1, 2):
            self.run_program("convolve", "--range", "%d/2" % k, "--azimuth", 30, SOFA, "x.wav", "y%d.wav" % k)
        self.run_program("join", "y.wav", "y1.wav", "y2.wav")
        self.close(parse_wav(self.read("y.wav"))[1].astype("f4"), self.expected(30, 0))
        self.run_program("convolve", "--range", "2/2", "--azimuth", 60, SOFA, "x.wav", "y2.wav")
        self.fails("join", "z.wav", "y1.wav", "y2.wav", says="y2.wav")

    def test_mixing_to_one_channel(self):
        self.write("half.txt", b"0.5\n")
        self.write("stereo.wav", wav_bytes(np.stack([self.x, 3 * self.x], axis=1), bits=32, rate=RATE))
        self.run_program("convolve", "--matrix", "half.txt", "half.txt", "stereo.wav", "mono.wav")
        self.close(parse_wav(self.read("mono.wav"))[1].astype("f4"), 2 * self.x[:, None].astype("f8"))

    def test_help(self):
        said = " ".join(self.run_program("convolve", "--help").stdout.decode().split())
        for words in ("may be a .sofa file: for a mono IN see --azimuth, else --layout", "the nearest measured pair", "list of them for several sample rates"):
            self.assertIn(words, said)

    def test_refusals(self):
        self.write("stereo.wav", wav_bytes(np.zeros((9, 2), "f4"), bits=32, rate=RATE))
        self.write("bad.sofa", b"not HDF5")
        self.write("fake.sofa", self.read("x.wav"))
        os.mkfifo("pipe.sofa")
        self.write("sofa.conf", b"/convolver/new 1 1 256 4096\n/impulse/read 1 1 1 0 0 0 1 %s\n" % os.fsencode(SOFA))
        with open(SOFA, "rb") as file:
            self.write("cut.sofa", file.read(5000))
        for arguments, says, rc in (
                ([SOFA, "stereo.wav"], ["stereo.wav: 2 channels", "MIT_KEMAR", "takes 1; choose a --layout"], 1),
                (["--matrix", SOFA, "x.wav"], ["MIT_KEMAR", "leave out --matrix"], 2),
                (["--true-stereo", SOFA, "stereo.wav"], ["leave out --matrix, --matrix-order and --true-stereo"], 2),
                (["--ir-format", "f32", SOFA, "x.wav"], ["leave out --ir-format"], 2),
                ([SOFA, SOFA, "x.wav"], ["only IR"], 2),
                (["--azimuth", 30, "x.wav", "x.wav"], ["--azimuth", "x.wav is none", "leave them out"], 2),
                (["--azimuth", 30, "-", "x.wav"], ["standard input is none", "name one"], 2),
                (["--azimuth", 30, "--config", "sofa.conf", "x.wav"], ["sofa.conf is none: leave them out"], 2),
                (["--config", "sofa.conf", "x.wav"], ["give it as IR, not in --config"], 1),
                (["--azimuth", 400, SOFA, "x.wav"], ["400", "-360", "360"], 2),
                (["--elevation", 91, SOFA, "x.wav"], ["91", "-90", "90"], 2),
                (["--elevation", "nan", SOFA, "x.wav"], ["nan"], 2),
                (["x.wav", SOFA], ["MIT_KEMAR", "only be IR of convolve and live"], 1),
                (["bad.sofa", "x.wav"], ["bad.sofa", "no head-related impulse responses"], 1),
                (["pipe.sofa", "x.wav"], ["pipe.sofa", "regular file"], 1),
                (["x.wav", "pipe.sofa"], ["pipe.sofa", "regular file"], 1),
                (["--azimuth", 30, "fake.sofa", "x.wav"], ["fake.sofa", "no head-related impulse responses"], 1),
                (["cut.sofa", "x.wav"], ["cut.sofa"], 1),
                (["no.sofa", "x.wav"], ["no.sofa", "No such file"], 1)):
            with self.subTest(arguments):
                self.fails("convolve", *arguments, "out.wav", says=says, rc=rc)
        self.fails("correlate", SOFA, "x.wav", "out.wav", says="only be IR of convolve and live")
        self.fails("convolve", SOFA, "x.wav", "out.sofa", says="out.sofa")


if __name__ == "__main__":
    rig.main()

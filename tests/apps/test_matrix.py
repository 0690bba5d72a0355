#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Matrices of impulse responses: the order of their channels, several files, arrays of three
dimensions. Each path is told from the others by its gain and delay."""
import numpy as np

import rig
from rig import Case


class Matrix(Case):
    def setUp(self):
        super().setUp()
        self.x = self.random.standard_normal((2, 300))
        self.h = self.random.standard_normal((2, 2, 40))  # [out][in][frames]
        np.save("x.npy", self.x)
        np.save("out_in.npy", self.h.reshape(4, 40))
        np.save("in_out.npy", self.h.transpose(1, 0, 2).reshape(4, 40))
        self.expected = np.array([sum(np.convolve(self.x[i], self.h[o, i]) for i in range(2)) for o in range(2)])

    def result(self, *arguments):
        self.run_program("convolve", *arguments, "x.npy", "y.npy")
        return np.load("y.npy")

    def test_orders(self):
        self.close(self.result("--matrix", "out_in.npy"), self.expected)
        self.close(self.result("--matrix", "--matrix-order", "out,in", "out_in.npy"), self.expected)
        self.close(self.result("--matrix-order", "in,out", "in_out.npy"), self.expected)
        self.close(self.result("--true-stereo", "in_out.npy"), self.expected)

    def test_orders_of_a_matrix_that_is_not_square(self):
        h = self.random.standard_normal((3, 2, 40))
        np.save("h.npy", h.transpose(1, 0, 2).reshape(6, 40))
        expected = np.array([sum(np.convolve(self.x[i], h[o, i]) for i in range(2)) for o in range(3)])
        self.close(self.result("--matrix-order", "in,out", "h.npy"), expected)

    def test_a_left_to_right_path_stays_one(self):
        """A true-stereo file as recorded: channel 2 is what the right microphone has of the left source."""
        h = np.zeros((51, 4), "f4")
        h[50, 1] = 0.5
        self.write("hall.wav", rig.wav_bytes(h, bits=32))
        x = np.zeros((10, 2), "f4")
        x[0, 0] = 1
        self.write("x.wav", rig.wav_bytes(x, bits=32))
        self.run_program("convolve", "--true-stereo", "hall.wav", "x.wav", "y.wav")
        y = rig.parse_wav(self.read("y.wav"))[1]
        expected = np.zeros((60, 2))
        expected[50, 1] = 0.5
        self.close(y, expected, 1e-6)

    def test_true_stereo_has_four_channels(self):
        self.fails("convolve", "--true-stereo", "x.npy", "x.npy", "y.npy", says=["x.npy: 2 channels", "needs a response of 4 channels and an input of 2"])
        np.save("mono.npy", self.x[0])
        self.fails("convolve", "--true-stereo", "out_in.npy", "mono.npy", "y.npy", says="needs a response of 4 channels and an input of 2")

    def test_several_files_are_one_matrix(self):
        np.save("left.npy", self.h[:, 0])   # the outputs of the left source
        np.save("right.npy", self.h[:, 1, :25])
        self.h[:, 1, 25:] = 0
        expected = np.array([sum(np.convolve(self.x[i], self.h[o, i]) for i in range(2)) for o in range(2)])
        self.close(self.result("--true-stereo", "left.npy", "right.npy"), expected)
        for o in range(2):
            for i in range(2):
                np.save("%d%d.npy" % (o, i), self.h[o, i])
        self.close(self.result("--matrix", "00.npy", "01.npy", "10.npy", "11.npy"), expected)
        self.close(self.result("00.npy", "11.npy"), np.array([np.convolve(self.x[c], self.h[c, c]) for c in range(2)]))

    def test_files_must_agree(self):
        self.write("a.wav", rig.wav_bytes(np.ones((5, 1), int), rate=44100))
        self.write("b.wav", rig.wav_bytes(np.ones((5, 1), int), rate=48000))
        self.write("x.wav", rig.wav_bytes(np.ones((5, 2), int), rate=44100))
        self.fails("convolve", "a.wav", "b.wav", "x.wav", "y.wav", says=["b.wav", "48000", "44100", "a.wav"])
        self.fails("convolve", "a.wav", "absent.wav", "x.wav", "y.wav", says="absent.wav")
        self.fails("convolve", "a.wav", "-", "-", "y.wav", rc=2, says="standard input")
        before = self.read("a.wav")
        self.fails("convolve", "x.wav", "a.wav", "x.wav", "a.wav", says="a.wav")
        self.assertEqual(self.read("a.wav"), before)

    def test_channels_of_the_response(self):
        """--ir-channel: the same as a file with only these channels, numbered over all files."""
        x = self.x
        self.close(self.result("--ir-channel", 3, "out_in.npy"), np.array([np.convolve(c, self.h[1, 0]) for c in x]))
        self.close(self.result("--ir-channel", "4,1", "out_in.npy"),
                   np.array([np.convolve(x[0], self.h[1, 1]), np.convolve(x[1], self.h[0, 0])]))
        self.close(self.result("--ir-channel", "1,3,2,4", "--matrix", "in_out.npy"), self.expected)
        self.close(self.result("--ir-channel", "4,5", "out_in.npy", "in_out.npy"),
                   np.array([np.convolve(x[0], self.h[1, 1]), np.convolve(x[1], self.h[0, 0])]))
        np.save("three_d.npy", self.h)
        self.close(self.result("--ir-channel", "1,1", "three_d.npy"), np.array([np.convolve(c, self.h[0, 0]) for c in x]))
        np.save("z.npy", self.h.reshape(4, 40) * 1j)
        self.close(self.result("--ir-channel", "2", "--delay", 3, "z.npy"),
                   np.array([np.convolve(c, np.append(np.zeros(3), self.h[0, 1] * 1j)) for c in x]))
        self.run_program("correlate", "--ir-channel", 3, "out_in.npy", "x.npy", "y.npy")
        self.close(np.load("y.npy"), np.array([np.correlate(c, self.h[1, 0], "full") for c in x]))
        for wrong in ("0", "5", "-1", "x", "1,,2", "1,", "1;2", "", "1x", "99999999999999999999"):
            self.fails("convolve", "--ir-channel", wrong, "out_in.npy", "x.npy", "out.npy", rc=2,
                       says="--ir-channel %s: must be numbers from 1 to 4, the channels of IR" % wrong)
        self.fails("convolve", "--ir-channel", "1,2,3", "out_in.npy", "x.npy", "out.npy", says="3 channels")
        self.fails("convolve", "--ir-channel", "1", "x.npy+x.npy", "x.npy", "out.npy", rc=2, says="leave out --ir-format, --ir-channel")

    def test_arrays_of_three_dimensions(self):
        np.save("h.npy", self.h)
        self.close(self.result("h.npy"), self.expected)
        self.close(self.result("--matrix", "h.npy"), self.expected)
        np.save("h.npy", self.h[:1])
        self.close(self.result("h.npy"), self.expected[:1])
        np.save("h.npy", np.asfortranarray(self.h))
        self.fails("convolve", "h.npy", "x.npy", "y.npy", says=["h.npy", "ascontiguousarray"])
        np.save("h.npy", self.h[:, :1])
        self.fails("convolve", "h.npy", "x.npy", "y.npy", says=["2 outputs and 1 inputs", "x.npy has 2 channels"])
        np.save("h.npy", self.h)
        self.fails("convolve", "h.npy", "h.npy", "y.npy", says=["array of 3 dimensions"])


if __name__ == "__main__":
    rig.main()

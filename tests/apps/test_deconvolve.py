#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Impulse responses of recorded sweeps. A simulated room is the convolution of a sweep with known
responses, by SciPy, with noise; the estimate convolved with the sweep must give the recording back,
but for the part t^2 / (p^2 + t^2) of each frequency, where p is |S|^2 and t lies 60 dB below its
largest value. The impulse of a limited band rings before and after its peak, so the responses that
are tested begin well after the start of OUT."""
import os

import numpy as np
import scipy.signal

import rig
import schemas
from rig import Case, parse_wav, wav_bytes

RATE = 16000


def sweep(seconds=2.0):
    t = np.arange(int(seconds * RATE)) / RATE
    low, high = 10, 0.45 * RATE
    constant = seconds / np.log(high / low)
    x = np.sin(2 * np.pi * low * constant * np.expm1(t / constant))
    fade = scipy.signal.windows.tukey(len(x), 0.02)
    return 0.5 * x * fade


def decay(random, n, latency, gain):
    h = np.zeros(n)
    h[latency] = gain
    tail = random.standard_normal(n - latency - 1) * np.exp(-np.arange(n - latency - 1) / (n / 12))
    h[latency + 1:] = 0.1 * gain * tail
    return h


class Deconvolve(Case):
    def setUp(self):
        super().setUp()
        self.s = sweep()
        self.write("sweep.wav", wav_bytes(self.s.astype("f8").reshape(-1, 1), rate=RATE, bits=64))

    def record(self, h, before=0, after=0, noise=0.0):
        """The room's answer to the sweep, [frames, channels], with silence before and after."""
        wet = np.stack([scipy.signal.fftconvolve(self.s, one) for one in h], axis=1)
        r = np.concatenate([np.zeros((before, len(h))), wet, np.zeros((after, len(h)))])
        r += noise * self.random.standard_normal(r.shape)
        self.write("room.wav", wav_bytes(r, rate=RATE, bits=64))
        return r

    def estimate(self, *arguments):
        done = self.run_program("deconvolve", *arguments, "sweep.wav", "room.wav", "h.wav")
        return parse_wav(self.read("h.wav"))[1], done.stdout.decode()

    def null(self, h, r):
        """The energy of what the estimate does not explain, over that of the recording, in decibels."""
        rest = r - scipy.signal.fftconvolve(self.s[:, None], h, axes=0)[:len(r)]
        return 10 * np.log10(np.sum(rest**2) / np.sum(r**2))

    def expected_null(self, r):
        n = 1 << 17
        p = np.abs(np.fft.rfft(self.s, n))**2
        t = p.max() * 1e-6
        energy = np.abs(np.fft.rfft(r, n, axis=0))**2
        return 10 * np.log10(np.sum(energy * ((t**2 / (p**2 + t**2))**2)[:, None]) / np.sum(energy))

    def test_null(self):
        h = [decay(self.random, 16000, 8000, 0.8), decay(self.random, 16000, 8200, -0.3)]
        r = self.record(h, after=8000)
        got, said = self.estimate("-o", "f64")
        self.assertEqual(got.shape, (24000, 2))
        expected = self.expected_null(r)
        self.assertLess(expected, -60)
        self.assertLess(self.null(got, r), expected + 0.5)
        self.assertRegex(said, r"channel 1: latency 8000 frames, 500\.000 ms; level -\d\.\d dB; noise \d+\.\d dB")
        self.assertRegex(said, r"channel 2: latency 8200 frames, 512\.500 ms")

    def test_level(self):
        """A path of one impulse: its gain, whatever the band of the sweep."""
        h = np.zeros(4000)
        h[123] = 10 ** (-12.5 / 20)
        self.record([h])
        _, said = self.estimate("--json")
        (row,) = schemas.load(said)["channels"]
        self.assertEqual((row["channel"], row["latency_frames"]), (1, 123))
        self.assertAlmostEqual(row["latency_seconds"], 123 / RATE)
        self.assertAlmostEqual(row["level_db"], -12.5, delta=0.01)

    def test_band_of_the_sweep_is_flat(self):
        h = np.zeros(16000)
        h[8000] = 1
        self.record([h])
        got, _ = self.estimate("-o", "f64")
        spectrum = np.abs(np.fft.rfft(got[:, 0], 1 << 15))
        band = slice((1 << 15) * 40 // RATE, (1 << 15) * 6500 // RATE)
        self.assertLess(np.abs(20 * np.log10(spectrum[band])).max(), 0.2)

    def test_recordings_that_begin_before_the_sweep(self):
        h = decay(self.random, 4000, 0, 0.5)
        r = self.record([h], before=30000, after=16000, noise=1e-4)
        got, said = self.estimate("--first", 22000, "--ir-length", 20000, "-o", "f64")
        self.assertIn("latency 30000 frames", said)
        self.assertEqual(len(got), 20000)
        self.assertLess(self.null(got, r[22000:30000 + len(self.s)]), -50)
        timed, _ = self.estimate("--first", "1375ms", "--ir-length", "1.25s", "-o", "f64")
        self.assertTrue(np.array_equal(got, timed))

    def test_more_noise_is_said(self):
        h = decay(self.random, 4000, 100, 0.5)
        floors = []
        for noise in (0, 1e-4, 1e-3, 1e-2):
            self.record([h], after=4000, noise=noise)
            floors.append(schemas.load(self.estimate("--json")[1])["channels"][0]["noise_db"])
        self.assertEqual(floors, sorted(floors))
        # Ten times the noise is 20 dB more, where it exceeds what the room and the band leave.
        self.assertAlmostEqual(floors[3] - floors[2], 20, delta=2)

    def test_white_noise_as_signal_gives_the_response_itself(self):
        self.s = self.random.standard_normal(30000)
        np.save("sweep.npy", self.s)
        h = decay(self.random, 3000, 40, 1.0)
        np.save("room.npy", scipy.signal.fftconvolve(self.s, h))
        self.run_program("deconvolve", "-o", "f64", "sweep.npy", "room.npy", "h.npy")
        # |S|^2 of noise is exponentially distributed. Its largest value is about 10 times its mean, so
        # that a share of 10^-5 of the bins lies below t: an error of at most 10^-2.5.
        self.close(np.load("h.npy").reshape(-1), h, 10**-2.5)

    def test_clipped_recordings_are_said(self):
        r = self.record([np.eye(1, 3000)[0]])
        self.write("room.wav", wav_bytes(np.clip(3 * r, -1, 1), rate=RATE, bits=64))
        done = self.run_program("deconvolve", "sweep.wav", "room.wav", "h.wav")
        self.assertRegex(done.stderr.decode(), r"room\.wav: \d+ samples at full scale; record at a lower level")

    def test_failures(self):
        self.record([np.eye(1, 3000)[0]])
        self.write("noise.wav", wav_bytes(self.random.standard_normal((40000, 1)) * 0.1, rate=RATE, bits=64))
        self.write("short.wav", wav_bytes(np.ones((100, 1)), rate=RATE, bits=64))
        self.write("other.wav", wav_bytes(np.ones((40000, 1)), rate=48000, bits=64))
        self.write("two.wav", wav_bytes(np.ones((100, 2)), rate=RATE, bits=64))
        np.save("z.npy", np.ones(100, "c8"))
        np.save("nan.npy", np.full(100, np.nan))
        for sweep_name, room, says in (("sweep.wav", "short.wav", ["short.wav: 100 frames", "sweep.wav"]),
                                       ("sweep.wav", "other.wav", ["16000", "48000", "other.wav"]),
                                       ("two.wav", "room.wav", ["two.wav: 2 channels"]),
                                       ("z.npy", "room.wav", ["z.npy", "complex"]),
                                       ("nan.npy", "room.wav", ["nan.npy", "finite"]),
                                       ("absent.wav", "room.wav", ["absent.wav"])):
            with self.subTest(sweep=sweep_name, room=room):
                self.fails("deconvolve", sweep_name, room, "h.wav", says=says)
        done = self.run_program("deconvolve", "sweep.wav", "noise.wav", "h.wav", rc=1)
        self.assertIn(b"channel 1: no response", done.stdout)
        self.assertIn(b"noise.wav: no response", done.stderr)
        self.fails("deconvolve", "sweep.wav", "room.wav", "room.wav", says="is the input")
        self.fails("deconvolve", "sweep.wav", "room.wav", "h", says="h: the name does not imply a format; use .wav")
        self.fails("deconvolve", "-", "-", "h.wav", rc=2, says="standard input")
        self.assertFalse(os.path.exists("h.wav"))


if __name__ == "__main__":
    rig.main()

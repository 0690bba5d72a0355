#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Responses from music and its recording, in simulated rooms with noise.

Least squares with n frames and u taps leaves an error of the estimate's signal of u/n of the noise, which for white noise
is a chi-square of u degrees of freedom. The adaptive filter takes a mean of its blocks with weights 1/t^(1-a), a = 4/3,
since P decays with (2 - step)/2 = 3/4 of what the model says: the variance of such a mean is a^2/(2a - 1) = 16/15 of that
of the best. It divides by V, a mean of powers of E with weights 0.3 * 0.7^k: like a chi-square of f = 2 * 1.7 / 0.3 degrees
of freedom, whose reciprocal as a weight makes the variance larger by (f - 2) / (f - 4)."""
import numpy as np
import scipy.signal

import rig
import schemas
from rig import Case, parse_wav, wav_bytes
from test_deconvolve import decay, sweep

RATE, TAPS, SECONDS = 16000, 2048, 12
FREEDOM = 2 * 1.7 / 0.3
LARGER = 16 / 15 * (FREEDOM - 2) / (FREEDOM - 4)


def bound(unknowns, frames):
    """Of the error over the noise: four standard deviations above its mean."""
    return LARGER * unknowns / frames * (1 + 4 * np.sqrt(2 / unknowns))


def music(random, n):
    """Tones of many overtones that decay, and strokes of a drum."""
    x, at = np.zeros(n), 0
    while at < n:
        t = np.arange(min(int(RATE * random.uniform(0.4, 1.8)), n - at)) / RATE
        for pitch in 55 * 2 ** (random.integers(0, 48, 3) / 12):
            for k in range(1, int(min(11, 0.45 * RATE / pitch))):
                x[at:at + len(t)] += np.sin(2 * np.pi * pitch * k * t + random.uniform(0, 6)) * np.exp(-(3 + k) * t) / k
        x[at:at + len(t)] += random.uniform(0.3, 1) * random.standard_normal(len(t)) * np.exp(-25 * t)
        at += int(RATE * random.uniform(0.15, 0.6))
    return 0.1 * x / x.std()


class Identify(Case):
    def play(self, paths, noise, before=0):
        """Plays music on every path [recorded][played]; frames before the music, or if negative that are lost."""
        n = SECONDS * RATE
        self.x = np.stack([music(self.random, n) for _ in paths[0]], axis=1)
        wet = np.stack([sum(scipy.signal.fftconvolve(self.x[:, i], h)[:n] for i, h in enumerate(row)) for row in paths], axis=1)
        y = np.concatenate([np.zeros((max(before, 0), len(paths))), wet])[max(-before, 0):]
        self.noise = noise * y.std(axis=0)
        y += self.noise * self.random.standard_normal(y.shape)
        self.write("song.wav", wav_bytes(self.x, rate=RATE, bits=64))
        self.write("recorded.wav", wav_bytes(y, rate=RATE, bits=64))
        return y

    def identify(self, *arguments):
        done = self.run_program("identify", "-o", "f64", "--json", "--ir-length", TAPS, *arguments, "song.wav", "recorded.wav", "h.wav")
        self.assertEqual(done.stderr, b"")
        said = schemas.load(done.stdout)
        return parse_wav(self.read("h.wav"))[1], said

    def error(self, h, paths, delay):
        """Power of the error of the estimate's signal over that of the noise; h begins `delay` frames into the paths."""
        e = np.zeros(len(self.x) + TAPS + max(delay, 0))
        for i, path in enumerate(paths):
            e[:len(self.x) + len(path) - 1] -= scipy.signal.fftconvolve(self.x[:, i], path)
        e = np.append(np.zeros(max(-delay, 0)), e)
        for i in range(len(paths)):
            y = scipy.signal.fftconvolve(self.x[:, i], h[:, i])
            e[max(delay, 0):max(delay, 0) + len(y)] += y
        return np.mean(e[max(-delay, 0):][:len(self.x)]**2)

    def check(self, paths, noise, before=0):
        y = self.play(paths, noise, before)
        h, said = self.identify()
        played = len(paths[0])
        self.assertEqual(h.shape, (TAPS, played * len(paths)))
        n = min(len(y), len(self.x) + said["first"] + TAPS) - max(0, said["first"])
        n -= n % TAPS  # blocks are whole
        for c, (path, row) in enumerate(zip(paths, said["channels"])):
            error = self.error(h[:, c * played:(c + 1) * played], path, said["first"] - before)
            self.assertLess(error / self.noise[c]**2, bound(TAPS * played, n))
            echo = np.mean(y[:, c]**2) - self.noise[c]**2
            self.assertAlmostEqual(row["misadjustment_db"], 10 * np.log10(TAPS * played / n * self.noise[c]**2 / echo), delta=1)
            self.assertAlmostEqual(row["erle_db"], 10 * np.log10(1 + echo / self.noise[c]**2), delta=1)
            self.assertLess(row["converged_seconds"], row["passes"] * SECONDS)
        return h, said

    def test_the_error_is_that_of_theory(self):
        for noise in (0.3, 0.01):
            path = decay(self.random, 1500, 300, 0.5)
            h, said = self.check([[path]], noise)
            self.assertEqual(said["first"], 300 - TAPS // 8)
            self.assertEqual(said["channels"][0]["latency_frames"], 300)

    def test_recordings_that_begin_earlier_or_later(self):
        path = decay(self.random, 1500, 100, 0.5)
        for before in (30000, -20000):
            with self.subTest(before=before):
                _, said = self.check([[path]], 0.01, before)
                self.assertEqual(said["channels"][0]["latency_frames"], 100 + before)
                self.assertAlmostEqual(said["channels"][0]["latency_seconds"], (100 + before) / RATE)

    def test_two_loudspeakers_and_two_microphones(self):
        paths = [[decay(self.random, 1400, 100 + 30 * i + 7 * o, 0.5) for i in range(2)] for o in range(2)]
        h, said = self.check(paths, 0.01)
        # convolve takes OUT as a matrix: it predicts the recording.
        self.run_program("convolve", "--matrix", "--tail", "no", "-o", "f64", "h.wav", "song.wav", "echo.wav")
        got = parse_wav(self.read("echo.wav"))[1]
        wanted = scipy.signal.fftconvolve(self.x[:, 0], h[:, 2])[:len(got)] + scipy.signal.fftconvolve(self.x[:, 1], h[:, 3])[:len(got)]
        np.testing.assert_allclose(got[:, 1], wanted, atol=1e-9)

    def test_music_finds_what_a_sweep_does(self):
        """Of the same room, within the band of the sweep, which is flat within 0.2 dB (test_deconvolve.py). What the two
        responses make of the music differs by no more than that and the error of identify."""
        path = decay(self.random, 1500, 200, 0.5)
        self.play([[path]], 0.01)
        h, _ = self.identify("--first", 0)
        s = sweep(4)
        self.write("sweep.wav", wav_bytes(s.reshape(-1, 1), rate=RATE, bits=64))
        y = np.append(scipy.signal.fftconvolve(s, path), np.zeros(8000))
        y += 1e-4 * self.random.standard_normal(len(y))
        self.write("room.wav", wav_bytes(y.reshape(-1, 1), rate=RATE, bits=64))
        self.run_program("deconvolve", "-o", "f64", "--ir-length", TAPS, "sweep.wav", "room.wav", "d.wav")
        n = 1 << 18
        band = slice(n * 40 // RATE, n * 6500 // RATE)
        x, music_h, sweep_h, true_h = (np.fft.rfft(v, n)[band] for v in (self.x[:, 0], h[:, 0], parse_wav(self.read("d.wav"))[1][:, 0], path))
        echo, differs = np.sum(abs(x * true_h)**2), np.sum(abs(x * (music_h - sweep_h))**2)
        of_music = bound(TAPS, len(self.x) // TAPS * TAPS) * self.noise[0]**2 * len(self.x) * n / 2
        self.assertLess(np.sqrt(differs), (10**(0.2 / 20) - 1) * np.sqrt(echo) + np.sqrt(of_music))
        print("# %.1f dB" % (10 * np.log10(differs / echo)))

    def test_text(self):
        y = self.play([[decay(self.random, 1500, 100, 0.5)]] * 2, 0.01)
        said = self.run_program("identify", "--ir-length", "128ms", "song.wav", "recorded.wav", "h.wav").stdout.decode()
        self.assertRegex(said, r"^channel 1: latency 100 frames, 6\.250 ms; ERLE 4\d\.\d dB; misadjustment -\d\d\.\d dB; converged after "
                               r"\d+\.\d s; \d passes\nchannel 2: latency 100 frames")
        np.save("song.npy", self.x.T)
        np.save("recorded.npy", y.T)
        said = self.run_program("identify", "--ir-length", TAPS, "song.npy", "recorded.npy", "h.npy").stdout.decode()
        self.assertRegex(said, r"; converged after \d+ frames; ")
        self.assertEqual(self.run_program("identify", "-q", "--ir-length", TAPS, "song.wav", "recorded.wav", "h.wav").stdout, b"")

    def test_levels_change_nothing(self):
        """By a power of two: the same bits."""
        y = self.play([[decay(self.random, 900, 100, 0.5)]], 0.01)
        h, _ = self.identify()
        self.write("song.wav", wav_bytes(self.x * 2.0**-20, rate=RATE, bits=64))
        self.write("recorded.wav", wav_bytes(y * 2.0**-30, rate=RATE, bits=64))
        quiet, _ = self.identify()
        np.testing.assert_array_equal(quiet, h * 2.0**-10)

    def test_warnings(self):
        path = decay(self.random, 900, 100, 0.5)
        y = self.play([[path]], 0.01)
        run = lambda *more, signal="song.wav", rc=0: self.run_program("identify", "--ir-length", TAPS, *more, signal, "recorded.wav",
                                                                      "h.wav", rc=rc).stderr.decode()
        self.write("both.wav", wav_bytes(np.repeat(self.x, 2, axis=1), rate=RATE, bits=64))
        self.assertIn("both.wav: channels 1 and 2 are nearly equal", run(signal="both.wav"))
        self.write("recorded.wav", wav_bytes(np.append(y, 0 * y, axis=1), rate=RATE, bits=64))
        self.assertIn("recorded.wav: channel 2 is silent", run())
        self.assertEqual(np.abs(parse_wav(self.read("h.wav"))[1][:, 1]).max(), 0)
        self.write("recorded.wav", wav_bytes(np.clip(y, -0.02, 0.02) / 0.02, rate=RATE, bits=64))
        self.assertIn("samples at full scale; record at a lower level", run())
        self.write("recorded.wav", wav_bytes(y[:9 * TAPS], rate=RATE, bits=64))
        self.assertRegex(run(), r"recorded.wav: 18432 frames of it depend on song.wav; for 2048 taps record at least 20480")
        self.write("recorded.wav", wav_bytes(np.append(y, np.roll(y, 5000, axis=0), axis=1), rate=RATE, bits=64))
        self.assertIn("a channel has its peak at frame 5100, and OUT ends before", run())

    def test_signals_that_tell_little(self):
        """With a sweep the filter does not settle; between tones nothing is measured. Both leave an error far above what
        least squares would: it is not printed. What a low pass removes is named, and the rest has the error of theory."""
        path, t = decay(self.random, 900, 100, 0.5), np.arange(SECONDS * RATE) / RATE
        hum = sum(np.sin(2 * np.pi * f * k * t + f * k) / k for f in (110, 138.6, 164.8) for k in range(1, 40))
        low = scipy.signal.sosfilt(scipy.signal.butter(8, 2000, fs=RATE, output="sos"), self.random.standard_normal(len(t)))
        for x, noise, says, known in ((sweep(4), 1e-4, "does not settle", False), (sweep(12), 0.03, "does not settle", False),
                                      (sweep(12), 0.01, "does not settle", False),
                                      (hum, 0.01, "nothing is measured from ", False), (hum, 1e-4, "nothing is measured from ", False),
                                      (low, 0.1, "to 8000 Hz, where song.wav is too weak", True)):
            with self.subTest(says=says, noise=noise):
                echo = scipy.signal.fftconvolve(x, path)[:len(x)]
                y = echo + noise * echo.std() * self.random.standard_normal(len(x))
                self.write("song.wav", wav_bytes(0.1 * x.reshape(-1, 1), rate=RATE, bits=64))
                self.write("recorded.wav", wav_bytes(0.1 * y.reshape(-1, 1), rate=RATE, bits=64))
                done = self.run_program("identify", "-o", "f64", "--json", "--first", 0, "--ir-length", TAPS, "song.wav", "recorded.wav", "h.wav", rc=None)
                row = schemas.load(done.stdout)["channels"][0]
                self.assertIn(says, done.stderr.decode())
                self.assertEqual(row["misadjustment_db"] is not None, known)
                if x is low: # its power falls by 96 dB in two octaves
                    (begin, end), = row["not_measured"]
                    self.assertTrue(2000 < begin < 4000 and end == 8000)
        self.write("song.wav", wav_bytes(hum.reshape(-1, 1) / 9, rate=RATE, bits=64))
        said = self.run_program("identify", "--ir-length", TAPS, "--first", 0, "song.wav", "song.wav", "h.wav").stdout.decode()
        self.assertIn("; misadjustment unknown; ", said)

    def test_mistakes(self):
        y = self.play([[decay(self.random, 900, 100, 0.5)]], 0.01)
        fails = lambda *names, says, rc=1: self.fails("identify", "--ir-length", TAPS, *names, says=says, rc=rc)
        self.write("recorded.wav", wav_bytes(y, rate=RATE, bits=64))
        self.write("other.wav", wav_bytes(self.random.standard_normal(y.shape) / 9, rate=RATE, bits=64))
        self.write("silence.wav", wav_bytes(0 * y, rate=RATE, bits=64))
        self.write("short.wav", wav_bytes(y[:3 * TAPS // 2], rate=RATE, bits=64))
        fails("song.wav", "other.wav", "h.wav", says="other.wav: no response to song.wav was found in it")
        fails("silence.wav", "recorded.wav", "h.wav", says="silence.wav: is silent")
        self.write("block.wav", wav_bytes(y[:60], rate=RATE, bits=64))  # less than one: no channel of it is silent
        said = self.fails("identify", "--ir-length", 1, "--first", 0, "block.wav", "block.wav", "h.wav", says="block.wav: 60 frames of it")
        self.assertNotIn("silent", said)
        fails("song.wav", "silence.wav", "h.wav", says="silence.wav: no response to song.wav was found in it")
        fails("song.wav", "short.wav", "h.wav", says="or use a shorter --ir-length")
        fails("--first", 1 << 25, "song.wav", "recorded.wav", "h.wav", says="0 frames of it depend on song.wav")
        fails("song.wav", "recorded.wav", "song.wav", says="is the input")
        fails("-", "-", "h.wav", says="standard input", rc=2)
        fails("song.wav", "recorded.wav", "h.txt2", says="h.txt2: the name does not imply a format")


if __name__ == "__main__":
    rig.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`partita response`: cutting, windows, sums and conversions of responses, compared with NumPy, and bad input."""
import os

import numpy as np
import scipy.signal

import rig
import schemas
from rig import Case, parse_wav, wav_bytes
from test_deconvolve import decay

RATE = 48000


def falling(n):
    """Half a period of a cosine, as the definition of the fades has it."""
    return 0.5 + 0.5 * np.cos(np.pi * np.arange(1, n + 1) / (n + 1))


class Response(Case):
    def setUp(self):
        super().setUp()
        self.a = np.stack([decay(self.random, 4800, 100, 0.5), decay(self.random, 4800, 130, -0.25)])
        self.b = np.stack([decay(self.random, 6000, 40, 0.4), decay(self.random, 6000, 40, 0.4)])
        self.save("a.wav", self.a)
        self.save("b.wav", self.b)

    def save(self, name, h, rate=RATE):
        self.write(name, wav_bytes(np.atleast_2d(h).T, rate=rate, bits=64))

    def run_response(self, *arguments):
        """The samples [channels, frames]."""
        self.run_program("response", "-o", "f64", "--replace", *arguments, "out.wav")
        return parse_wav(self.read("out.wav"))[1].T

    def test_cuts(self):
        same = lambda got, expected: np.testing.assert_array_equal(got, expected)
        same(self.run_response("a.wav"), self.a)
        same(self.run_response("--first", 50, "--ir-length", 200, "a.wav"), self.a[:, 50:250])
        same(self.run_response("--ir-length", "125ms", "a.wav"), np.pad(self.a, ((0, 0), (0, 1200))))
        same(self.run_response("--align", 20, "a.wav"), self.a[:, 80:])
        early = np.pad(self.a, ((0, 0), (20, 0)))
        same(self.run_response("--align", "2.5ms", "--ir-length", 300, "a.wav"), early[:, :300])
        same(self.run_response("--align", 20, "--first", 30, "a.wav"), self.a[:, 110:])
        loud = np.flatnonzero((np.abs(self.a) >= 0.5 * 10 ** (-30 / 20)).any(axis=0))
        same(self.run_response("--trim", -30, "a.wav"), self.a[:, loud[0]:loud[-1] + 1])
        said = self.run_program("response", "--align", 48, "a.wav", "out.npy").stdout
        self.assertEqual(said, b"2 channels of 4748 frames, peak 0.5 at frame 48, 1.000 ms\n")
        np.testing.assert_array_equal(np.load("out.npy"), np.float32(self.a[:, 52:]))
        self.assertEqual(self.run_program("response", "-q", "a.wav", "quiet.npy").stdout, b"")

    def test_windows(self):
        fade = np.append(np.ones(4700), falling(100))
        np.testing.assert_allclose(self.run_response("--ir-fade", 100, "a.wav"), self.a * fade, rtol=0, atol=1e-16)
        got = self.run_response("--gate", "10ms", "a.wav")
        for c, peak in enumerate((100, 130)):
            gate = np.concatenate([np.ones(peak + 360), falling(120), np.zeros(4800 - peak - 480)])
            np.testing.assert_allclose(got[c], self.a[c] * gate, rtol=0, atol=1e-16)
        np.testing.assert_array_equal(self.run_response("--gate", "1s", "a.wav"), self.a)
        echo = np.zeros(4800)
        echo[[10, 2410]] = 1, 0.5
        self.save("c.wav", echo)
        # All but what lies below 100 Hz ends.
        self.assertLess(abs(self.run_response("--window", 5, "c.wav")[0, 2410]), 0.01)

    def test_smoothing_keeps_the_power(self):
        power = lambda x: np.abs(np.fft.rfft(x, 1 << 16)) ** 2
        before, after = power(self.a[0]), power(self.run_response("--smoothing", 3, "a.wav")[0])
        for f in (200, 1000, 5000):  # the phase of smoothing moves a little sound beyond the ends
            k = np.array([f * 2 ** (-1 / 6), f * 2 ** (1 / 6)]) / RATE * (1 << 16)
            expected = 10 * np.log10(before[int(k[0]):int(k[1]) + 1].mean())
            self.assertAlmostEqual(10 * np.log10(after[round(f / RATE * (1 << 16))]), expected, delta=0.6)

    def test_combinations(self):
        long = np.pad(self.a, ((0, 0), (0, 1200)))
        both = lambda how: self.run_response("--combine", how, "a.wav", "b.wav")
        np.testing.assert_allclose(both("sum"), long + self.b, rtol=0, atol=1e-16)
        np.testing.assert_array_equal(both("channels"), np.concatenate([long, self.b]))
        expected = [np.convolve(x, y) for x, y in zip(self.a, self.b)]
        np.testing.assert_allclose(both("cascade"), expected, rtol=0, atol=1e-13)
        self.save("late.wav", np.pad(2 * self.a, ((0, 0), (70, 0))))
        for how in ("energy", "vector"):  # one response twice: its peak where the first has it, and the mean power
            mean = self.run_response("--mean", how, "a.wav", "late.wav")
            np.testing.assert_allclose(mean[:, :4000], np.sqrt(2.5) * self.a[:, :4000], rtol=0, atol=1e-3)
        self.save("one.wav", self.a[0])
        np.testing.assert_array_equal(self.run_response("--combine", "channels", "one.wav", "a.wav"), self.a[[0, 0, 1]])
        cut = self.run_response("--combine", "sum", "--align", 0, "--ir-length", 500, "a.wav", "b.wav")
        np.testing.assert_allclose(cut, self.a[:, 100:600] + self.b[:, 40:540], rtol=0, atol=1e-16)

    def test_minimum_phase_and_level(self):
        # Zeros outside of the circle are reflected; those here are apart from it, so that cepstra do not wrap.
        zeros = np.append(self.random.uniform(0.5, 0.9, 5), self.random.uniform(1.1, 1.6, 5))
        zeros = zeros * np.exp(1j * self.random.uniform(0.1, 3, 10))
        whole = lambda z: np.poly(np.append(z, z.conj())).real
        outside = np.abs(zeros) > 1
        expected = whole(np.where(outside, 1 / zeros.conj(), zeros)) * np.prod(np.abs(zeros[outside])) ** 2
        self.save("c.wav", np.pad(whole(zeros), (30, 50)))
        got = self.run_response("--minimum-phase", "c.wav")[0]
        np.testing.assert_allclose(got, np.pad(expected, (0, 80)), rtol=0, atol=1e-10 * np.abs(expected).max())
        for level in (0, -3):
            got = self.run_response("--normalize=%d" % level, "a.wav")
            np.testing.assert_allclose(got, self.a / 0.5 * 10 ** (level / 20), rtol=1e-14)

    def test_texts(self):
        self.save("one.wav", self.a[0])
        spectrum = np.fft.rfft(np.roll(np.pad(self.a[0], (0, 8192 - 4800)), -100))[1:]
        for name, gap in (("t.txt", None), ("t.frd", None), ("t.csv", ",")):
            self.run_program("response", "one.wav", name)
            f, decibels, degrees = np.loadtxt(name, delimiter=gap, skiprows=1).T
            np.testing.assert_allclose(f, np.arange(1, 4097) * RATE / 8192, rtol=1e-8)
            got = 10 ** (decibels / 20) * np.exp(1j * np.radians(degrees))
            np.testing.assert_allclose(got, spectrum, rtol=1e-6, atol=1e-6)
            # Back again, with the peak at a quarter of the transform; only the mean, which no text has, is lost.
            back = self.run_response("--rate", "48k", name)[0]
            expected = np.roll(np.pad(self.a[0], (0, 8192 - 4800)), 2048 - 100)
            self.assertLess(np.abs(back - back.mean() - expected + expected.mean()).max(), 1e-5)
        self.assertTrue(self.read("t.txt").startswith(b"* Freq(Hz)\tSPL(dB)\tPhase(degrees)\n"))
        self.fails("response", "a.wav", "u.frd", says="u.frd: a text has one channel, and the response 2; use .wav")
        self.write("old.frd", self.read("t.frd").replace(b"\n", b"\r"))  # line breaks of old files
        np.testing.assert_array_equal(self.run_response("--rate", "48k", "old.frd"), self.run_response("--rate", "48k", "t.frd"))
        self.run_program("invert", "one.wav", "taps.txt")  # one number a line is no table
        self.assertEqual(self.run_response("--rate", "48k", "taps.txt").shape, (1, 65536))

    def test_impulse_responses_of_room_eq_wizard(self):
        """As version 5.31 exports them; samples are as they stand there."""
        header = ("* Impulse Response data saved by REW V5.31.3\n* IR is not normalised\n* Measurement: left # 1 %s\n"
                  "* Response measured over: 2,9 to 24 000,0 Hz\n0.5 // Peak value before normalisation\n"
                  "100 // Peak index\n4800 // Response length\n%s // Sample interval (seconds)\n"
                  "-0.0021 // Start time (seconds)\n* Data start\n")
        taps = "".join("%.17g\n" % x for x in self.a[0])
        for interval, rate in (("1.1337868480725624E-5", 88200), ("2.0833333333333333E-5", RATE),
                               ("2.083333E-5", RATE)):
            text = header % ("long" * 99, interval) + taps
            for data in (text, text.replace("\n", "\r\n")):
                self.write("rew.txt", data.encode())
                np.testing.assert_array_equal(self.run_response("rew.txt"), self.a[:1])
                self.assertEqual(parse_wav(self.read("out.wav"))[0], rate)
        self.run_program("convolve", "-o", "f64", "rew.txt", "a.wav", "c.wav")
        expected = [np.convolve(x, self.a[0]) for x in self.a]
        self.close(parse_wav(self.read("c.wav"))[1].T, expected, limit=rig.gate("f4"))
        for old, new, says in (("2.083333E-5", "2,083", "line 8: '2,083': must be the seconds between samples, such as "
                                "2.08E-5"), ("2.083333E-5", "0", "line 8: '0': must be"),
                               ("* Data start", "", "no line '* Data start', with which the header of Room EQ Wizard")):
            self.write("bad.txt", self.read("rew.txt").replace(old.encode(), new.encode()))
            self.fails("response", "bad.txt", "f.wav", says="bad.txt: " + says)

    def test_json(self):
        self.save("long.wav", [decay(self.random, RATE, 100, 0.5), decay(self.random, RATE, 130, -0.3)])
        report = lambda *given: schemas.load(self.run_program("response", "--json", "--replace", *given).stdout)
        said = report("-o", "f64", "long.wav", "out.wav")
        self.assertEqual((said["files"], said["frames"], said["rate_hz"]), (1, RATE, RATE))
        n = 1 << 16
        f = np.arange(n // 2) * RATE / n
        for x, channel in zip(parse_wav(self.read("out.wav"))[1].T, said["channels"]):
            peak = np.argmax(np.abs(x))
            self.assertEqual((channel["delay_frames"], channel["peak"]), (peak, abs(x[peak])))
            self.assertEqual(channel["delay_seconds"], peak / RATE)
            self.assertAlmostEqual(channel["level_db"], 10 * np.log10(np.sum(x ** 2)), delta=1e-9)
            power = np.abs(np.fft.rfft(x, n)[:n // 2]) ** 2
            self.assertEqual(len(channel["bands_db"]), 44 - 13)
            for k, level in enumerate(channel["bands_db"], 13):
                inside = abs(np.log10(np.maximum(f, 1)) - k / 10) < 0.05
                self.assertAlmostEqual(level, 10 * np.log10(power[inside].mean()), delta=1e-6)
        np.save("high.npy", self.a[0])
        bands = report("--rate", "1M", "high.npy", "out.wav")["channels"][0]["bands_db"]
        self.assertIsNone(bands[0])  # 2^17 frames of 1 MHz have a frequency each 7.6 Hz
        self.assertEqual(len(report("--rate", "8k", "high.npy", "out.wav")["channels"][0]["bands_db"]), 23)  # to 3.5 kHz

    def test_resampling_keeps_the_frequency_response(self):
        f = np.arange(100, 15000, 100)
        response = lambda h, rate: scipy.signal.freqz(h, worN=f, fs=rate)[1]
        for rate in (44100, 96000):
            got = self.run_response("--resample", rate, "a.wav")
            self.assertEqual(parse_wav(self.read("out.wav"))[0], rate)
            for c in range(2):
                expected = response(self.a[c], RATE)
                # Time 0 stays; the pulses of the resampler end below 1 % of the peak where the lead is cut.
                self.assertLess(np.abs(response(got[c], rate) - expected).max(), 0.01 * np.abs(expected).max())
        self.save("click.wav", np.eye(1, 400))
        late = self.run_response("--resample", 44100, "click.wav")[0]
        self.assertEqual(np.argmax(late), 512)  # the pulse before its peak is kept, and delays

    def test_plot(self):
        self.draws(90 + 2 * 470, "response", "--smoothing", 6, "--plot", "p.png", "a.wav", "out.wav")
        self.fails("response", "--plot", "no/p.png", "a.wav", "g.wav", says="no/p.png")

    def test_bad_input(self):
        self.save("one.wav", self.a[0])
        self.save("44.wav", self.a, rate=44100)
        self.save("silent.wav", 0 * self.a)
        self.save("tone.wav", np.sin(np.arange(48000)))
        np.save("h.npy", self.a)
        for arguments, rc, says in (
                (["silent.wav"], 1, "silent.wav: the response is silent"),
                (["--smoothing", 3, "tone.wav"], 1, "tone.wav: channel 1: has no peak"),
                (["--smoothing", 3, "--combine", "sum", "a.wav", "silent.wav"], 1, "silent.wav: channel 1: is silent"),
                (["a.wav", "44.wav"], 1, "44.wav: sample rate 44100 Hz differs from the 48000 Hz of a.wav; use"),
                (["a.wav", "one.wav"], 1, "one.wav: 1 channels differ from the 2 of a.wav"),
                (["--first", "1s", "a.wav"], 1, "--first 48000: nothing of a.wav is left"),
                (["--window", "0.5", "a.wav"], 2, "--window 0.5: is not a number from 1 to 10000"),
                (["--combine", "product", "a.wav"], 2, "--combine product: must be one of average|sum|cascade|"),
                (["h.npy"], 2, "h.npy: its sample rate is unknown; add --rate"),
                (["absent.frd"], 2, "absent.frd: a text of frequencies has no sample rate")):
            with self.subTest(arguments=arguments):
                self.fails("response", *arguments, "f.wav", rc=rc, says=says)
        self.fails("response", "--rate", "48k", "absent.frd", "f.wav", says="absent.frd: cannot open")
        self.fails("response", "a.wav", "a.wav", says="a.wav: is the input")
        for command in ("response", "invert"):  # whose output was forgotten
            self.fails(command, "a.wav", "b.wav", "44.wav", says="44.wav: exists; name the output last, or replace it "
                       "with --replace")
        self.assertEqual(parse_wav(self.read("44.wav"))[0], 44100)
        self.run_program("response", "--replace", "a.wav", "44.wav")
        self.assertEqual(parse_wav(self.read("44.wav"))[0], RATE)
        self.run_program("response", "a.wav", "/dev/null", "-o", "f32")  # which is no file
        for text, says in (("100 1 1e308\n200 1 -1e308\n", "100 Hz with 1e+308 degrees: must be within 1e+09"),
                           ("100 1\ninf 3\n", "inf Hz with 3 dB: a frequency is above 0 and finite")):
            self.write("t.frd", text.encode())
            self.fails("response", "--rate", "48k", "t.frd", "f.wav", says="t.frd: " + says)
        self.save("loud.wav", 1e300 * self.a)
        beyond = "f.wav: a sample is beyond the largest number; use a lower level"
        self.fails("response", "loud.wav", "f.wav", says=beyond + ", or --output-format f64")
        self.fails("response", "-o", "f64", "--combine", "cascade", "loud.wav", "loud.wav", "f.wav", says=beyond + "\n")
        self.assertFalse(os.path.exists("f.wav"))


if __name__ == "__main__":
    rig.main()

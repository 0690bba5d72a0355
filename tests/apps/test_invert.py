#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`partita invert`: filters measured with NumPy on rooms of image sources, from nothing but a sweep, and bad input."""
import itertools
import os

import numpy as np
import scipy.signal

import rig
import schemas
from rig import Case, parse_wav, wav_bytes
from test_deconvolve import decay, sweep

RATE = 48000


def seconds_of_sweep(seconds):
    """From 10 Hz to 22 kHz, at the rate of these tests."""
    t = np.arange(int(seconds * RATE)) / RATE
    constant = seconds / np.log(2200)
    return 0.5 * np.sin(20 * np.pi * constant * np.expm1(t / constant)) * scipy.signal.windows.tukey(len(t), 0.02)


def images(seat, size=np.array((5.1, 3.9, 2.7)), source=np.array((0.7, 0.6, 1.0)), n=4800):
    """The response of a room: delays of image sources, each with its own gain, after a loudspeaker without bass."""
    h = np.zeros(n)
    for cell in itertools.product(range(-3, 4), repeat=3):
        for mirrored in itertools.product((0, 1), repeat=3):
            m, c = np.array(mirrored), np.array(cell)
            away = np.linalg.norm((1 - 2 * m) * source + 2 * c * size - seat)
            at = int(away / 343 * RATE)
            if at < n:
                h[at] += 0.7 ** np.sum(abs(c - m) + abs(c)) / away
    return scipy.signal.lfilter(*scipy.signal.butter(2, 45, "high", fs=RATE), h)


def deviations(power, low, high, curve=((400, 0), (12800, -5), (20000, -6))):
    """Mean powers of 1/6 octave in dB, every 1/12 octave, less those of a target; their mean is 0."""
    points = low * 2 ** np.arange(0, np.log2(high / low), 1 / 12)
    f = np.arange(len(power)) * RATE / 2 / (len(power) - 1)
    level = [10 * np.log10(power[(f >= p * 2 ** (-1 / 12)) & (f <= p * 2 ** (1 / 12))].mean()) for p in points]
    x, y = np.array(curve).T
    rest = level - np.interp(np.log(points), np.log(x), y)
    return rest - rest.mean()


class Invert(Case):
    def save(self, name, h, rate=RATE):
        h = np.asarray(h)
        self.write(name, wav_bytes(h if h.ndim == 1 else h.T, rate=rate, bits=64))

    def invert(self, *arguments, out="f.wav"):
        """The report, and the taps [channels, frames]."""
        said = schemas.load(self.run_program("invert", "-o", "f64", "--replace", "--json", *arguments, out).stdout)
        return said, parse_wav(self.read(out))[1].T

    def test_rooms_from_nothing_but_a_sweep(self):
        """Ten seats: deconvolve, invert, and the sweep through the filter, recorded again in the same rooms. The
        filter is smoothed by 1/12 octave, so that less than 1 dB is left over 1/6 octave; a limit of 24 dB allows all
        corrections."""
        seats = self.random.uniform((2.5, 1.5, 1), (4, 2.8, 1.4), (10, 3))
        rooms = [images(seat) for seat in seats]
        played = seconds_of_sweep(1.5)
        self.save("sweep.wav", played)
        for i, h in enumerate(rooms):
            self.save("recorded.wav", np.append(scipy.signal.fftconvolve(played, h), np.zeros(9600)))
            self.run_program("deconvolve", "-o", "f64", "sweep.wav", "recorded.wav", "seat%d.wav" % i)
        for phase in ("minimum", "mixed"):
            said, _ = self.invert("--target", "bk", "--low", 30, "--high", "16k", "--boost", 24, "--phase", phase,
                                  *("seat%d.wav" % i for i in range(10)))
            self.run_program("convolve", "-o", "f64", "f.wav", "sweep.wav", "corrected.wav")
            corrected = parse_wav(self.read("corrected.wav"))[1][:, 0]
            n = 1 << 18
            power = np.abs(np.fft.rfft([scipy.signal.fftconvolve(corrected, h) for h in rooms], n)) ** 2
            power /= np.abs(np.fft.rfft(played, n)) ** 2
            # Seats count as they do in the filter: with equal power over the logarithm of the frequency.
            f = np.arange(1, n // 2) * RATE / n
            inside = np.flatnonzero((f >= 30) & (f <= 16000)) + 1
            before = np.abs(np.fft.rfft(rooms, n)) ** 2
            weights = 1 / ((before[:, inside] / inside).sum(axis=1))
            self.assertGreater(np.abs(deviations(weights @ before, 30, 16000)).max(), 5)
            after = np.abs(deviations(weights @ power, 30, 16000)).max()
            self.assertLess(after, 1)
            (channel,) = said["channels"]
            self.assertLess(channel["after_max_db"], 1)
            if phase == "mixed":
                self.assertLessEqual(channel["pre_ringing_db"], -30)

    def test_report_is_what_the_taps_do(self):
        self.save("a.wav", np.stack([decay(self.random, 4800, 30, 0.5), decay(self.random, 4800, 90, -0.8)]))
        for phase in ("minimum", "linear", "mixed"):
            said, taps = self.invert("--phase", phase, "--taps", 16384, "--boost", 9, "--match", "no", "a.wav")
            self.assertEqual((said["frames"], said["positions"], len(said["channels"])), (16384, 1, 2))
            for h, channel in zip(taps, said["channels"]):
                gain = 20 * np.log10(np.abs(np.fft.rfft(h, 1 << 18)))
                self.assertAlmostEqual(channel["boost_db"], gain.max(), delta=0.05)
                self.assertLessEqual(channel["boost_db"], 9.1)
                self.assertAlmostEqual(channel["safe_gain_db"], -20 * np.log10(np.abs(h).sum()), places=9)
                self.assertEqual(channel["delay_frames"], np.argmax(np.abs(h)))
                self.assertEqual((channel["match_db"], channel["match_frames"]), (0, 0))
                self.assertLess(channel["after_rms_db"], channel["before_rms_db"])
            if phase == "linear":
                np.testing.assert_allclose(taps[:, 1:], taps[:, :0:-1], rtol=0, atol=1e-14)
        text = self.run_program("invert", "--replace", "a.wav", "f.wav").stdout.decode()
        self.assertEqual(text.count("\n  before   "), 2)
        self.assertRegex(text, r"channel 2\n  before   [0-9.]+ dB from the target at most, [0-9.]+ dB rms\n  after ")
        self.assertIn("; no pre-ringing\n", text)
        self.assertEqual(self.run_program("invert", "--quiet", "--replace", "a.wav", "f.wav").stdout, b"")

    def test_channels_are_matched(self):
        h = decay(self.random, 4800, 100, 0.5)
        late = np.stack([np.pad(h, (0, 70)), 2 * np.pad(h, (70, 0))])
        self.save("a.wav", late)
        said, taps = self.invert("--taps", 8192, "a.wav")
        self.assertEqual(taps.shape, (2, 8192 + 70))
        both = [np.convolve(g, t) for g, t in zip(late, taps)]
        self.assertLess(np.abs(both[0] - both[1])[:12000].max(), 1e-9)
        self.assertAlmostEqual(said["channels"][1]["match_db"], -20 * np.log10(2), places=9)
        self.assertEqual([c["match_frames"] for c in said["channels"]], [70, 0])
        one, _ = self.invert("--positions", "a.wav")
        self.assertEqual((one["positions"], len(one["channels"])), (2, 1))
        self.save("b.wav", late[0])
        self.save("c.wav", late[1])
        self.assertEqual(self.invert("b.wav", "c.wav")[0]["channels"], one["channels"])

    def test_boost_is_limited_down_to_nothing(self):
        self.save("a.wav", decay(self.random, 9600, 0, 1))
        for boost in (0, 0.5, 3):
            self.assertLessEqual(self.invert("--boost", boost, "a.wav")[0]["channels"][0]["boost_db"], boost + 0.05)
        self.assertLessEqual(self.invert("--attenuation", 2, "a.wav")[0]["channels"][0]["attenuation_db"], 2.05)

    def measurement(self, h, level, phase=True):
        """A text as REW exports it, with the peak 60 frames after time 0."""
        x = np.fft.rfft(np.roll(np.pad(h, (0, 50000 - len(h))), 60 - np.argmax(np.abs(h))))
        f = np.arange(len(x)) * RATE / 2 / (len(x) - 1)
        rows = [(a, 20 * np.log10(abs(b)) + level, np.angle(b, deg=True)) for a, b in zip(f, x) if 15 <= a <= 22000]
        head = "* Measurement data measured by REW V5.20\r\n*\r\n* Freq(Hz)\tSPL(dB)\tPhase(degrees)\r\n"
        return head + "".join("\t".join("%.7g" % v for v in row[:3 if phase else 2]) + "\r\n" for row in rows)

    def test_texts_are_responses(self):
        """Points every 0.96 Hz, between which the phase turns by 0.03 where the response has decayed to 37 %, give it
        back within the square of that. Decimal marks, headings and the level do not matter."""
        h = decay(self.random, 4800, 200, 0.5)
        self.save("a.wav", h)
        text = self.measurement(h, 75)
        self.write("a.txt", text.encode())
        self.write("b.frd", text.replace(".", ",").encode())
        rows = self.measurement(h, -10).split("degrees)\r\n")[1].replace("\t", ",")
        self.write("c.csv", ("\ufeffHz,dB,degrees\n" + rows).encode())
        mixed = ("--rate", "48k", "--low", 30, "--phase", "mixed", "--taps", 16384)
        options = (*mixed, "--high", "16k")
        expected = self.invert(*options, "a.wav")[1]
        for name in ("a.txt", "b.frd", "c.csv"):
            got = self.invert(*options, name)[1]
            self.assertLess(np.abs(got - expected).max(), 1e-3 * np.abs(expected).max(), name)
        self.write("d.txt", self.measurement(h, 0, phase=False).encode())  # minimum phase: no excess to correct
        self.assertLess(self.invert(*options, "d.txt")[0]["channels"][0]["pre_ringing_db"], -60)
        self.assertGreater(self.invert(*options, "a.txt")[0]["channels"][0]["pre_ringing_db"], -60)
        # A delay needs no correction. Its phase turns by up to 130 degrees from point to point.
        f = 20 * 2 ** np.arange(0, 9, 1 / 24)
        self.write("e.txt", "".join("%g 0 %g\n" % (a, (180 - a * 60 / RATE * 360) % 360 - 180) for a in f).encode())
        (taps,) = self.invert(*mixed, "--high", "8k", "--phase-limit", "8k", "e.txt")[1]
        self.assertEqual(np.argmax(taps), 960)
        self.assertLess(np.abs(np.delete(taps, 960)).max(), 0.05 * taps[960])
        self.fails("invert", "a.txt", "f2.wav", rc=2, says="a.txt: a text of frequencies has no sample rate; add")
        # Sound pressure in pascals.
        level = [self.invert(*options, name)[0]["channels"][0]["level_db"] for name in ("a.wav", "a.txt", "c.csv")]
        np.testing.assert_allclose(np.diff(level), (75 - 94, -10 - 75 + 94), atol=0.05)

    def test_plot(self):
        self.save("a.wav", np.stack([decay(self.random, 4800, 30, 0.5)] * 2))
        self.draws(90 + 2 * 470, "invert", "--plot", "p.png", "a.wav", "f.wav")
        self.fails("invert", "--plot", "p.pdf", "a.wav", "g.wav", says="p.pdf: the picture is a PNG")
        self.fails("invert", "--plot", "a.wav", "a.wav", "g.wav", says="a.wav")
        self.fails("invert", "--plot", "no/p.png", "a.wav", "g.wav", says="no/p.png")

    def test_responses_that_clipped_or_wrapped_are_said(self):
        """A sweep that clipped has harmonics, which are responses before the peak of the recording's own."""
        h = images((3.3, 2.1, 1.2))
        played = seconds_of_sweep(1)
        self.save("sweep.wav", played)
        early = "^partita invert: a.wav: channel 1 has [0-9]+ % of its energy more than 20 ms before its peak"
        for level, says in ((0.5, None), (0.4, early), (0.2, early)):
            recorded = scipy.signal.fftconvolve(np.clip(played, -level, level), h)
            self.save("recorded.wav", np.pad(recorded, (RATE, 9600)))
            self.run_program("deconvolve", "sweep.wav", "recorded.wav", "a.wav")
            said = self.run_program("invert", "--replace", "a.wav", "f.wav").stderr.decode()
            self.assertRegex(said, says or "^$")
        self.save("a.wav", np.roll(decay(self.random, 9600, 0, 1), -30))
        self.assertRegex(self.run_program("invert", "--replace", "a.wav", "f.wav").stderr.decode(), early)
        self.assertEqual(self.run_program("invert", "--quiet", "--replace", "a.wav", "f.wav").stderr, b"")
        self.save("a.wav", np.clip(h / np.abs(h).max(), -0.3, 0.3))
        self.assertRegex(self.run_program("invert", "--replace", "a.wav", "f.wav").stderr.decode(),
                         "^partita invert: a.wav: channel 1 has [0-9]+ samples of its largest magnitude: it clipped\n$")

    def test_bad_input(self):
        h = decay(self.random, 4800, 30, 0.5)
        self.save("a.wav", h)
        self.save("two.wav", np.stack([h, h]))
        self.save("quiet.wav", np.stack([h, 0 * h]))
        self.save("44.wav", h, rate=44100)
        self.save("tone.wav", np.sin(np.arange(48000)))
        np.save("h.npy", h)
        np.save("z.npy", h * 1j)
        self.write("far.txt", b"0.02 0\n10 -3\n")
        self.write("bad.txt", b"20 0\nx 0\n")
        self.write("low.csv", b"-20 0\n40 3\n")
        for arguments, rc, says in (
                (["quiet.wav"], 1, "quiet.wav: channel 2: is silent"),
                (["a.wav", "tone.wav"], 1, "tone.wav: channel 1: has no peak; partita deconvolve makes"),
                (["--positions", "two.wav", "quiet.wav"], 1, "quiet.wav: channel 2: is silent"),
                (["a.wav", "44.wav"], 1, "44.wav: sample rate 44100 Hz differs from the 48000 Hz of a.wav"),
                (["two.wav", "a.wav"], 1, "a.wav: 1 channels differ from the 2 of two.wav; all need the same"),
                (["h.npy"], 2, "h.npy: its sample rate is unknown; add --rate"),
                (["z.npy"], 1, "z.npy: complex samples"),
                (["absent.wav"], 1, "absent.wav: cannot open"),
                (["--rate", "48k", "low.csv"], 1, "low.csv: -20 Hz with 0 dB"),
                (["--target", "nice", "a.wav"], 1, "--target nice: is neither a file nor one of flat, bk and"),
                (["--target", "absent.txt", "a.wav"], 1, "absent.txt: cannot open"),
                (["--target", "bad.txt", "a.wav"], 1, "bad.txt: line 2"),
                (["--target", "far.txt", "a.wav"], 1, "--target: has points from 0.02 to 10, outside of the range"),
                (["--high", "30k", "a.wav"], 1, "--high 30000: must be from"),
                (["--low", "19k", "a.wav"], 1, "--low 19000: must be from"),
                (["--taps", 1000, "a.wav"], 1, "--taps 1000: must be from 4800, 2 periods of --low, to 262144"),
                (["--phase", "mixed", "--phase-limit", 5, "a.wav"], 1, "--phase-limit 5: must be from 20 to 20000"),
                (["--phase", "mixed", "--pre-time", "900ms", "a.wav"], 1, "--pre-time 0.9: must be from 0.001 to 0.34"),
                (["--phase", "mixed", "--pre-time", 0, "a.wav"], 2, "--pre-time 0: use --phase minimum"),
                (["--pre-time", 10, "a.wav"], 2, "--phase-limit, --pre-time and --pre-level need --phase mixed"),
                (["--pre-time", -1, "a.wav"], 2, "--pre-time -1: is not a time in seconds from 0 to 60"),
                (["--boost", 61, "a.wav"], 2, "--boost 61: is not a number of decibels from 0 to 60"),
                ([], 2, "needs RESPONSE... FILTER, but 1 file name is given")):
            with self.subTest(arguments=arguments):
                said = self.fails("invert", *arguments, "f.wav", rc=rc, says=says)
                self.assertNotIn("correction.", said)
        self.save("long.wav", np.append(h, np.zeros(1 << 22)))
        for command in (["invert"], ["response", "--smoothing", 6]):
            self.fails(*command, "long.wav", "f.wav", says="a response has 4199104 frames, which are too many; cut it off, for "
                       "example by partita response --ir-length 2s")
        self.fails("invert", "a.wav", "a.wav", says="a.wav: is the input")
        self.fails("invert", "a.wav", "f", says="f: the name does not imply a format; use .wav")
        self.fails("invert", "two.wav", "f.txt", says="f.txt: a text has one channel")
        self.fails("invert", "-o", "cf32", "a.wav", "f.raw", says="f.raw: cannot store cf32 samples")
        self.run_program("invert", "a.wav", "f.txt")
        self.assertEqual(len(np.loadtxt("f.txt")), 65536)


if __name__ == "__main__":
    rig.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`partita design eq` and `crossover`: taps against biquads in double, lists that Python reads as well, and wrong usage."""
import os
import subprocess
import sys

import numpy as np
import scipy.signal

import rig
import schemas
from rig import Case

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import equalizers  # noqa: E402
from equalizers import LISTS, biquad, magnitude_and_delay, text_of  # noqa: E402

KINDS = {"peak": "peak", "low-shelf": "lowshelf", "high-shelf": "highshelf", "low-pass": "lowpass", "notch": "notch",
         "high-pass": "highpass"}
FIELDS = {"frequency": "hz", "gain": "db", "q": "q", "bandwidth": "oct", "slope": "slope"}
TONES = np.geomspace(20, 20000, 200)


class Equalizer(Case):
    def design(self, *arguments, rate=48000, out="out.npy"):
        """The taps, a row for each way, and the report."""
        said = self.run_program("design", *arguments, "--rate", rate, "-o", "f64", "--json", out).stdout
        return np.atleast_2d(np.load(out)), schemas.load(said)

    def list_taps(self, text, *arguments):
        self.write("list.txt", text.encode())
        return self.design("eq", "list.txt", *arguments)[0][0]

    def refused(self, *arguments, says, rc=2):
        done = self.run_program("design", *arguments, rc=rc)
        self.assertIn(says, done.stderr.decode())
        self.assertEqual(done.stderr.count(b"\n"), 1 if rc == 1 else 2, done.stderr)
        self.assertFalse(os.path.exists("out.npy"))

    def test_headphones(self):
        """Magnitude within 0.05 dB and group delay within 0.1 frames of the cookbook's biquads, and the recursion in
        double: errors of states, some u times the gain of the poles at these frequencies."""
        for i, (name, (level, filters)) in enumerate(LISTS.items()):
            rate = (44100, 48000, 96000)[i % 3]
            self.write("list.txt", text_of(level, filters).encode())
            taps, said = self.design("eq", "list.txt", rate=rate)
            sections = np.array([biquad(*f, rate) for f in filters])
            w = 2 * np.pi * TONES / rate
            wanted = np.sum([magnitude_and_delay(s[:3], s[3:], w) for s in sections], axis=0) + [[level], [0]]
            got = magnitude_and_delay(taps[0], [1.0], w)
            self.assertLess(np.abs(got[0] - wanted[0]).max(), 0.05, name)
            self.assertLess(np.abs(got[1] - wanted[1]).max(), 0.1, name)
            impulse = 10**(level / 20) * np.eye(1, taps.size)[0]
            np.testing.assert_allclose(taps[0], scipy.signal.sosfilt(sections / sections[:, 3:4], impulse), rtol=0, atol=1e-11)
            self.assertGreaterEqual(said["tail_db"], 160)
            self.assertLess(said["deviation_db"], 0.01)
            self.assertAlmostEqual(said["gain_db"], max(got[0].max(), said["gain_db"]), delta=0.01)

    def test_linear_phase(self):
        level, filters = LISTS["AKG K702"]
        own = self.list_taps(text_of(level, filters))
        linear = self.list_taps(text_of(level, filters), "--linear-phase")
        w = 2 * np.pi * TONES / 48000
        np.testing.assert_array_equal(linear, linear[::-1])
        self.assertLess(np.abs(np.subtract(*(magnitude_and_delay(h, [1.0], w)[0] for h in (own, linear)))).max(), 0.05)

    def test_lines_are_those_of_python(self):
        for line, section in equalizers.LINES:
            words = [KINDS[section["kind"]]] + ["%s %.17g" % (FIELDS[k], v) for k, v in section.items() if k != "kind"]
            expected = self.design("eq", "--section", " ".join(words), "--taps", 999)[0][0]
            np.testing.assert_allclose(self.list_taps("Filter " + line, "--taps", "999"), expected, rtol=0, atol=1e-13,
                                       err_msg=line)
        self.assertGreater(len(equalizers.LINES), 10)

    def test_lists_that_python_refuses(self):
        for text, _ in equalizers.REFUSED:
            self.write("list.txt", text.encode())
            self.refused("eq", "list.txt", "--rate", "48k", "out.npy", says="list.txt: ", rc=1)

    def test_files_of_lists(self):
        text = ("\ufeffPreamp: 1 dB\r\nFilter Settings file\r\nRoom EQ V5.20\r\nNotes: Filter\r\nEqualiser: Generic\r\n# Filter: ON PK\r\n"
                "Filter  1: OFF PK Fc 50 Hz Gain 1 dB Q 1\r\nFilter 2: ON  None\r\nPreamp: -3,5 dB\r\n")
        np.testing.assert_allclose(self.list_taps(text), [10**(-2.5 / 20)], rtol=1e-14)
        table = self.list_taps("Preamp: -6 dB\nGraphicEQ: 20 -1,5; 1000 0,25; 19871 -3", "--width", "100")
        self.write("table.txt", b"20 -7.5\n1000 -5.75\n19871 -9\n")
        np.testing.assert_allclose(table, self.design("table", "table.txt", "--minimum-phase", "--width", "100")[0][0], rtol=0,
                                   atol=1e-13)
        louder = self.list_taps("GraphicEQ: 20 -1.5; 1000 3", "--gain", "auto", "--linear-phase")
        np.testing.assert_allclose(magnitude_and_delay(louder, [1.0], 2 * np.pi * np.array([20, 5e3]) / 48000)[0], [-4.5, 0],
                                   atol=0.1)  # the detail of 24 Hz smooths the slope at 20 Hz
        self.assertGreater(len(louder), 5000)
        warned = self.run_program("design", "eq", "list.txt", "--rate", "48k", "out.npy").stderr.decode()
        self.assertIn("list.txt: amplifies by up to 3.00 dB, by which loud signals clip unless --gain lowers them\n", warned)

    def test_camilladsp(self):
        """The filters of the first channel, as --config of convolve has them."""
        head = "devices: {samplerate: 48000, capture: {channels: 2}}\nfilters:\n"
        filters = ("  low: {type: Biquad, parameters: {type: Lowshelf, freq: 105, q: 0.7, gain: 6.2}}\n"
                   "  less: {type: Gain, parameters: {gain: -6, inverted: true}}\n"
                   "  peaks: {type: BiquadCombo, parameters: {type: ButterworthHighpass, freq: 30, order: 4}}\n"
                   "  fir: {type: Conv, parameters: {type: Values, values: [1, 2]}}\n")
        pipeline = ("pipeline:\n- {type: Filter, channels: [0, 1], names: [low, less]}\n"
                    "- {type: Filter, channels: [%s], names: [%s]}\n")
        self.write("a.yml", (head + filters + pipeline % ("0", "peaks")).encode())
        done = self.run_program("design", "eq", "a.yml", "--rate", "48k", "-o", "f64", "a.npy", rc=None)
        if b"without libyaml" in done.stderr:
            return
        words = ("--section", "lowshelf 105 6.2 q 0.7", "--section", "gain -6", "--section", "highpass 30 bw4")
        np.testing.assert_allclose(-np.load("a.npy"), self.design("eq", *words)[0][0], rtol=0, atol=1e-13)
        self.write("a.yml", (head + filters + "  loud: {type: Loudness, parameters: {reference_level: -25}}\n" + pipeline % ("0", "loud")).encode())
        said = self.run_program("design", "eq", "a.yml", "--rate", "48k", "b.npy").stderr
        self.assertIn(b"a.yml:7: Loudness follows a volume, and is computed for one of 0 dB", said)
        self.write("a.yml", (head + filters + pipeline % ("1", "fir")).encode())
        self.design("eq", "a.yml")
        os.unlink("out.npy")
        self.write("a.yml", (head + filters + pipeline % ("0", "fir")).encode())
        self.refused("eq", "a.yml", "--rate", "48k", "out.npy", says="a.yml:6: the first channel has more than equalizers", rc=1)
        self.refused("eq", "a.yml", "--rate", "96k", "out.npy", says="a.yml: is for 48000 Hz, not for --rate 96000", rc=1)

        mixer = ("mixers: {m: {channels: {in: 2, out: 1}, mapping: [{dest: 0, sources: [%s]}]}}\n"
                 "pipeline: [{type: Mixer, name: m}]\n")
        for sources in ("{channel: 0}, {channel: 0}", "{channel: 0, mute: true}"):
            self.write("a.yml", (head + filters + mixer % sources).encode())
            self.refused("eq", "a.yml", "--rate", "48k", "out.npy", says="a.yml: a mixer adds to the first", rc=1)

    def test_words(self):
        """Sections of all kinds and families, against SciPy's recursion of the formulas."""
        sos = {"highpass 900 bw5": scipy.signal.butter(5, 900, "high", fs=48000, output="sos"),
               "lowpass 900 lr4": np.tile(scipy.signal.butter(2, 900, fs=48000, output="sos"), (2, 1)),
               "lowpass 0.9k bessel7": scipy.signal.bessel(7, 900, norm="mag", fs=48000, output="sos"),
               "peak 1k -6dB q 2": np.array([biquad("PK", 1000, -6, 2, 48000)]),
               "lowshelf 1k 3 q0.7": np.array([biquad("LSC", 1000, 3, 0.7, 48000)])}
        for words, s in sos.items():
            taps = self.design("eq", "--section", words)[0][0]
            expected = scipy.signal.sosfilt(s / s[:, 3:4], np.eye(1, len(taps))[0])
            # The poles of Bessel's filters have 8 digits.
            np.testing.assert_allclose(taps, expected, rtol=0, atol=1e-7 if "bessel" in words else 1e-12, err_msg=words)
        w = 2 * np.pi * np.array([20.0, 620, 20000]) / 48000
        for words, decibels in (("tilt 6", [-3, 0, 3]), ("gain -4", [-4] * 3), ("linkwitz-transform 60 q 0.9 fp 30 qp 0.7", None),
                                ("allpass 500 q 0.7", [0] * 3), ("bandpass 620 oct 1", None), ("notch 500", None)):
            taps = self.design("eq", "--section", words)[0][0]
            if decibels:
                np.testing.assert_allclose(magnitude_and_delay(taps, [1.0], w)[0], decibels, atol=0.7 if "tilt" in words else 1e-3)

    def test_graphic_equalizer(self):
        f, gains = 31.25 * 2.0**np.arange(10), [6, -4, 3, 0, 0, -8, 8, -8, 2, 5]
        words = [part for a, g in zip(f, gains) for part in ("--section", "peak %g %g oct 1" % (a, g))]
        got = magnitude_and_delay(self.design("eq", *words, "--exact-gains")[0][0], [1.0], 2 * np.pi * f / 48000)[0]
        np.testing.assert_allclose(got, gains, atol=1e-3)

    def test_a_list_of_many_points(self):
        """The time grows as the number of points does. If it grew as its square, the time limit of the rig would end it."""
        points = ["%.2f %.1f" % (20 + i / 10, -(i % 7)) for i in range(150000)]
        self.write("list.txt", ("GraphicEQ: " + "; ".join(points)).encode())
        self.run_program("design", "eq", "list.txt", "--rate", "48k", "--taps", 999, "out.npy")
        self.write("list.txt", b"Filter: ON PK Fc 100" + b" " * 6000000 + b"Hz Gain 3 dB Q 1\n")
        self.run_program("design", "eq", "list.txt", "--rate", "48k", "--taps", 99, "out.npy")

    def test_taps_that_out_cannot_hold(self):
        loud = [word for _ in range(6) for word in ("--section", "gain 149")]
        self.refused("eq", *loud, "--rate", "48k", "out.npy", rc=1,
                     says="out.npy: a sample is beyond the largest number; use a lower level, or --output-format f64")
        self.assertAlmostEqual(self.design("eq", *loud)[0][0][0] / 10**44.7, 1, delta=1e-12)
        loud = ("eq", "--section", "gain 6", "--rate", "48k")
        for more, says in ((["o.flac"], "o.flac: 1 sample clipped; use a .wav"),
                           (["-o", "i16", "o.wav"], "o.wav: 1 sample clipped; use --output-format f32")):
            self.assertEqual(self.run_program("design", *loud, *more).stderr.decode(), "partita design: %s\n" % says)
        os.remove("out.npy")
        self.refused(*loud, "-o", "f32", "o.flac", rc=1, says="o.flac: cannot store f32 samples; use --output-format i24")

    def test_gain(self):
        peak = ("eq", "--section", "peak 1k 6 q 2")
        plain, said = self.design(*peak)
        self.assertAlmostEqual(said["gain_db"], 6, delta=1e-3)
        lower, said = self.design(*peak, "--gain", "auto")
        np.testing.assert_allclose(lower, plain * 10**(-6 / 20), rtol=1e-3)
        self.assertAlmostEqual(said["gain_db"], 0, delta=1e-9)
        np.testing.assert_allclose(self.design(*peak, "--gain", "-3dB")[0], plain * 10**(-3 / 20), rtol=1e-12)
        told = self.run_program("design", *peak, "--rate", "48k", "out.wav").stdout.decode()
        self.assertRegex(told, r"gain +6\.00 dB at \d+\.?\d* Hz, by which loud signals clip unless --gain lowers them\n")

    def test_crossovers(self):
        made, said = self.design("crossover", 300, "3k")
        self.assertEqual((len(made), said["channels"]), (3, 3))
        w = 2 * np.pi * TONES / 48000
        self.assertLess(np.abs(magnitude_and_delay(made.sum(0), [1.0], w)[0]).max(), 0.05)
        self.assertLess(said["deviation_db"], 1e-3)
        other = self.design("crossover", "300:bw3", "3k:lr8", "--tail", 180)[0]
        self.assertLess(np.abs(magnitude_and_delay(other.sum(0), [1.0], w)[0]).max(), 0.05)
        sos = scipy.signal.butter(4, 3000, "high", fs=48000, output="sos")
        sos = np.vstack([sos, sos, scipy.signal.butter(3, 300, "high", fs=48000, output="sos")])
        np.testing.assert_allclose(other[2], scipy.signal.sosfilt(sos, np.eye(1, other.shape[1])[0]), rtol=0, atol=1e-10)

    def test_rounding(self):
        """Of 16 bits: errors are uniform within half a step, 2^-16 of full scale, for each tap."""
        peak = ("eq", "--section", "peak 1k -6 q 2", "--rate", "48k", "--taps", 500, "--json")
        exact = self.design(*peak[:3], "--taps", 500)
        self.assertIsNone(exact[1]["rounding_db"])
        said = schemas.load(self.run_program("design", *peak, "-o", "i16", "i.wav").stdout)
        stored = rig.parse_wav(self.read("i.wav"))[1][:, 0]
        self.assertAlmostEqual(said["rounding_db"], 10 * np.log10(((stored - exact[0][0])**2).sum()), places=6)

    def test_ways(self):
        linear = ("crossover", 300, "--linear-phase", "--taps", 999)
        plain = self.design(*linear)[0]
        louder = self.design(*linear, "--gain", "0,6", "--delay", "62.5us,0", "--invert", 1)[0]
        np.testing.assert_allclose(louder[1], plain[1] * 10**0.3, rtol=1e-14)
        np.testing.assert_allclose(louder[0, 3:], -plain[0, :-3], rtol=1e-14)

    def test_a_loudspeaker_plays(self):
        """Each way of a WAV filters the one channel of IN."""
        self.run_program("design", "crossover", 300, 3000, "--rate", "48k", "ways.wav")
        x = self.random.standard_normal(4000).astype("f4") / 8
        self.write("in.wav", rig.wav_bytes(x, bits=32))
        self.run_program("convolve", "ways.wav", "in.wav", "out.wav")
        ways, y = (rig.parse_wav(self.read(name))[1] for name in ("ways.wav", "out.wav"))
        self.assertEqual(y.shape[1], 3)
        for i in range(3):
            self.assertLess(np.abs(y[:, i] - np.convolve(x, ways[:, i])).max(), 1e-5)

    def test_pictures(self):
        """Of an equalizer, of a table and of a crossover."""
        self.write("list.txt", b"GraphicEQ: 20 -4; 1000 0; 2000 -3")
        for arguments in (("eq", "--section", "peak 1k 6 q 2"), ("eq", "list.txt"), ("crossover", "300", "3k:bw3")):
            self.draws(1040, "design", *arguments, "--rate", "48k", "--plot", "p.png", "out.npy")

    def test_wrong_usage(self):
        eq, rate = ("eq", "--section"), ("--rate", "48k", "out.npy")
        for arguments, says in (
                ((*eq, "pek 100", *rate), "pek 100: begins with no kind of section (did you mean peak?)"),
                ((*eq, "", *rate), ": begins with no kind"),
                ((*eq, "peak 100 3 z", *rate), "'z' is neither a number nor q, oct, lr or the like with one"),
                ((*eq, "peak 100 3 q", *rate), "'q' is neither"),
                ((*eq, "peak 100 3" + 90 * " q 1", *rate), "is longer than 255 characters"),
                ((*eq, "peak 100 3 1", *rate), "'1' is neither"),
                ((*eq, "peak 30k 3", *rate), "frequency = 30000: must be above 0 and below 24000"),
                ((*eq, "peak 1k 900", *rate), "gain = 900: must be from -150 to 150"),
                ((*eq, "lowpass 1k lr3", *rate), "order = 3: must be even for Linkwitz-Riley"),
                ((*eq, "lowpass 1k bw2.5", *rate), "'bw2.5' is neither"),
                ((*eq, "peak 1k 3", "out.npy"), "eq needs --rate"),
                (("eq", *rate), "eq needs one list or --section, and OUT, but 1 name is given"),
                (("eq", "a.txt", "b.txt", *rate), "eq needs one list or --section, and OUT, but 3 names are given"),
                ((*eq, "peak", "1k", "3", *rate), "OUT, but 3 names are given; a section of several words stands in quotes"),
                ((*eq, "gain 1", "--invert", "1", *rate), "--invert does not go with eq"),
                ((*eq, "gain 1", "--gain", "1,2", *rate), "--gain 1,2: is no list of decibels of length 1"),
                ((*eq, "gain 1", "--cutoff", "1k", *rate), "--cutoff does not go with eq"),
                ((*eq, "peak 1k 3", "--taps", "4", "--linear-phase", *rate), "taps = 4: must be odd"),
                (("crossover", *rate), "crossover needs 1 to 7 frequencies, and OUT"),
                (("crossover", *map(str, range(100, 900, 100)), *rate), "crossover needs 1 to 7 frequencies"),
                (("crossover", "low", *rate), "low: is no frequency such as 3k or 3k:lr8"),
                (("crossover", "300,3k", *rate), "300,3k: is no frequency such as 3k or 3k:lr8; several stand apart, as in 300 3k"),
                (("crossover", "300:xx", *rate), "300:xx: 'xx' is neither"),
                (("crossover", 120 * "1" + ":lr4", *rate), "1:lr4: is no frequency such as 3k"),
                (("crossover", "300:lr4" + 300 * " " + "q 1", *rate), "300:lr4             ..: is longer than a frequency and"),
                (("crossover", "300:q2", *rate), "300:q2: needs lr4, bw3, bessel2 or the like"),
                (("crossover", "300:bessel9", *rate), "300:bessel9: order = 9: must be from 0 to 8"),
                (("crossover", "--cutoff", "300", *rate), "--cutoff does not go with crossover, whose frequencies stand before OUT"),
                (("crossover", "300", "200", *rate), "200: must be above 300 before it"),
                (("crossover", "300", "--gain", "1", *rate), "--gain 1: is no list of decibels of length 2"),
                (("crossover", "300", "--delay", "0,2s", *rate), "--delay 0,2s: is not within 0 to 65536 frames"),
                (("crossover", "300", "--delay", "0,-1", *rate), "--delay 0,-1: is not within"),
                (("crossover", "300", "--invert", "3", *rate), "--invert 3: is no list of ways from 1 to 2"),
                ((*eq, "peak 100 3 q 0", *rate), "peak 100 3 q 0: q 0: must be above 0"),
                ((*eq, "peak 100 3 oct 0", *rate), "oct 0: must be above 0"),
                ((*eq, "lowpass 100 lr0", *rate), "lr 0: must be above 0"),
                (("lowpass", "--cutoff", "1k", "--width", "100", "--tail", "100", *rate), "--tail does not go with lowpass")):
            with self.subTest(arguments=arguments):
                done = subprocess.run([rig.PROGRAM, "design", *arguments], stderr=subprocess.PIPE, cwd=self.folder)
                self.assertIn(says, done.stderr.decode())
                self.assertEqual((done.returncode, done.stderr.count(b"\n")), (1, 1) if b"odd" in done.stderr else (2, 2))
                self.assertFalse(os.path.exists("out.npy"))
        self.write("list.txt", b"Preamp: -3 dB\nFilter: ON PK Fc 30000 Hz Gain 3 dB Q 1\n")
        self.refused("eq", "list.txt", *rate, says="list.txt: line 2: frequency = 30000: must be above 0", rc=1)
        self.write("list.txt", b"Filter: ON PK Fc 300 Hz Gain 3 dB Q 0\n")
        self.refused("eq", "list.txt", *rate, says="list.txt: line 1: q 0: must be above 0", rc=1)
        self.refused("crossover", "300", "--rate", "48k", "w.txt", says="w.txt: a text has one channel; use .wav", rc=1)
        self.refused("eq", "none.txt", *rate, says="none.txt: cannot open", rc=1)
        self.refused("eq", *eq[1:], "gain 1", ".", *rate, says=".: cannot open: is not a regular file", rc=1)
        before = b"Preamp: -3 dB\nFilter 1: OFF PK\n"
        self.write("list.txt", before)
        done = self.run_program("design", *eq, "gain 1", "--rate", "48k", "list.txt", rc=2)
        self.assertIn(b"list.txt: is a list, which taps would replace; name OUT", done.stderr)
        self.assertEqual(self.read("list.txt"), before)
        self.write("list.txt", b"1\n")
        self.run_program("design", *eq, "gain 1", "--rate", "48k", "list.txt")
        self.write("list.txt", b"Preamp: -3 dB\n\0")
        self.refused("eq", "list.txt", *rate, says="list.txt: holds a zero byte", rc=1)
        self.write("list.txt", b"GraphicEQ: 20 1; 30 2\nPreamp: 0 dB\n")
        self.refused("eq", "list.txt", "--tail", "99", *rate, says="GraphicEQ goes with neither --tail", rc=1)
        self.refused("eq", "list.txt", "--section", "peak 100 3", *rate, says="list.txt: ", rc=1)


if __name__ == "__main__":
    rig.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The commands of docs/tutorials.md and of README.md, run in the order of the page; their results against SciPy; what the
tutorials show against what they print."""
import importlib.machinery
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from scipy import signal

import rig
from rig import Case, parse_wav, wav_bytes

TUTORIALS, README = (pathlib.Path(sys.argv.pop(2)).read_text() for _ in range(2))
SECTIONS = {text.split("\n", 1)[0]: text for text in re.split(r"^## ", TUTORIALS, flags=re.M)}
TESTED = {"A reverb", "Correct a room", "A crossover for three ways", "A radio channel", "A long recording", "An array of sensors", "A layer"}
MAKE_FILES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "make_files.py"
STEP = 2.0**-15  # of samples of 16 bits
FULL_SCALE = 1 - STEP
# Harman's curve in rooms, as points: Hz, dB.
HARMAN = (52.5, 210, 2500, 10000, 20000), (6, 0, 0, -2.5, -3.75)


class Page(Case):
    """Runs the commands of a page on the files of examples/make_files.py."""

    def setUp(self):
        super().setUp()
        os.mkdir("bin")
        os.symlink(os.path.abspath(rig.PROGRAM), "bin/partita")
        self.path = os.path.abspath("bin") + ":" + os.environ["PATH"]
        self.home = os.getcwd()

    MADE = tempfile.TemporaryDirectory()  # once for all tests

    def make_files(self):
        if not os.listdir(self.MADE.name):
            subprocess.run([sys.executable, str(MAKE_FILES), self.MADE.name], check=True)
        shutil.copytree(self.MADE.name, ".", dirs_exist_ok=True)

    def run_blocks(self, text):
        """Runs the commands of a text. For each block: what it printed, and what the page shows until the next."""
        env = {**os.environ, "PATH": self.path, "XDG_CACHE_HOME": self.home}
        pairs = []
        for block in text.split("```sh\n")[1:]:
            commands, rest = block.split("```\n", 1)
            done = subprocess.run(["sh", "-e", "-c", commands], env=env, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=60)
            self.assertEqual(done.returncode, 0, commands + done.stdout.decode())
            shown = re.search(r"```text\n(.*?)```", rest, re.S)
            pairs.append((done.stdout.decode(), shown.group(1) if shown else ""))
        return pairs

    def sound(self, name):
        return parse_wav(self.read(name))[1]

    def same_sound(self, name, expected, peak):
        """Samples of 16 bits are rounded by up to half a step; the errors of single precision, some 1e-6 of the peak,
        are less than a tenth of a step."""
        got = parse_wav(self.read(name))[1]
        self.assertEqual(got.shape, expected.shape)
        self.assertLess(np.abs(got - expected * (peak / np.abs(expected).max())).max(), 0.6 * STEP)

    BURSTS = (80004, 160004, 240004)

    def are_the_bursts(self, printed):
        lines = printed.splitlines()[1:]
        self.assertEqual(len(lines), len(self.BURSTS), printed)
        for line, start in zip(lines, self.BURSTS):
            # The filter delays by 128 frames; the middle of a symbol of 8 samples is 3.5 samples after its first.
            position = (start + 128 + 3.5) / 8
            self.assertEqual(int(line.split()[0]), round(position))
            self.assertAlmostEqual(float(line.split()[1]), position, delta=0.05)


class Tutorials(Page):
    def test_all_commands_are_run(self):
        self.assertEqual({title for title, text in SECTIONS.items() if "```sh" in text}, TESTED)

    def test_a_reverb(self):
        self.make_files()
        hall, church, voice, piano = (self.sound(name + ".wav") for name in ("hall", "church", "voice", "piano"))
        (quiet, _), (printed, shown) = self.run_blocks(SECTIONS["A reverb"])
        self.assertEqual(quiet, "")
        wet = signal.fftconvolve(voice, hall, axes=0)[:len(voice)]
        self.same_sound("wet.wav", voice + 10 ** (-9 / 20) * wet, 10 ** (-1 / 20) * FULL_SCALE)
        left, right = piano[:, :1], piano[:, 1:]
        wide = signal.fftconvolve(left, church[:, :2], axes=0) + signal.fftconvolve(right, church[:, 2:], axes=0)
        self.assertGreater(np.abs(wide).max(), 1)  # it would clip
        self.same_sound("wide.wav", wide, FULL_SCALE)
        self.assertEqual([line[:12] for line in printed.splitlines()], [line[:12] for line in shown.splitlines()])
        counts = shown.splitlines()[1].split(", latency")[0]  # the latency depends on the machine
        self.assertIn(counts, printed)

    # Middles of bands of 1/6 octave from 30 Hz to 16 kHz, 1/12 octave apart.
    BANDS = 30 * 2 ** np.arange(0, np.log2(16000 / 30), 1 / 12)

    def bands(self, *responses):
        """The power of each response in each band."""
        powers = [np.abs(np.fft.rfft(h, 1 << 17)) ** 2 for h in responses]
        f = np.fft.rfftfreq(1 << 17, 1 / 48000)
        return np.array([[p[np.abs(np.log2(f[1:] / b)) <= 1 / 12 + 1e-9].mean() for b in self.BANDS]
                         for p in (p[1:] for p in powers)])

    def true_rooms(self):
        """The response of the loudspeaker at the delays of the paths to each seat."""
        files = importlib.machinery.SourceFileLoader("make_files", str(MAKE_FILES)).load_module()
        played = np.array(files.loudspeaker([1.0] + 14399 * [0.0]))
        rooms = np.zeros((len(files.SEATS), 14400))
        for room, seat in zip(rooms, files.SEATS):
            for delay, gain in files.images(seat):
                room[delay:] += 0.25 * gain * played[:14400 - delay]
        return rooms

    def test_correct_a_room(self):
        self.make_files()
        (measured, shown_measured), (designed, shown), _, (by_music, shown_music) = self.run_blocks(SECTIONS["Correct a room"])
        self.same_words(measured, shown_measured)
        self.same_words(designed, shown)
        rooms = self.true_rooms()
        before, after, estimates = (self.bands(*hs) for hs in (rooms, [signal.fftconvolve(h, self.taps()) for h in rooms],
                                                               [self.sound(f"room{n}.wav")[:, 0] for n in (1, 2, 3)]))
        # The noise lies 85 dB below the sweep, whose power at 22 kHz is 33 dB below that at 10 Hz: 2 * 10^((33 - 85) / 20) is
        # 0.5 % of a band.
        self.assertLess(np.abs(10 * np.log10(estimates / before)).max(), 0.02)
        # Positions count equally. The filter smooths by 1/12 octave, which leaves 1 dB in bands of 1/6 octave where the limit of
        # boost, which begins 2 dB below it, does not act.
        weights = 1 / np.sum(before * self.BANDS, axis=1, keepdims=True)
        before, after = (10 * np.log10((p * weights).sum(axis=0)) for p in (before, after))
        target = np.interp(np.log(self.BANDS), np.log(HARMAN[0]), HARMAN[1])
        level, gain = np.mean(before - target), after - before
        self.assertLess(np.abs(after - target - level)[gain < 4].max(), 1)
        self.assertLess(np.sqrt(np.mean((after - target - level) ** 2)), 0.5)
        self.assertGreater(np.sqrt(np.mean((before - target - level) ** 2)), 3)
        # The largest gain is that of the page.
        self.assertAlmostEqual(20 * np.log10(np.abs(np.fft.rfft(self.taps(), 1 << 18)).max()), 6, delta=0.05)
        expected = signal.fftconvolve(self.sound("voice.wav")[:, 0], self.taps())[:48000, None]
        self.same_sound("corrected.wav", expected, min(np.abs(expected).max(), FULL_SCALE))
        self.same_words(by_music, shown_music)
        # OUT begins 4800 / 8 frames before the peak. That the error is as printed, within 1 dB, test_identify.py derives.
        song, echo, error = self.sound("song.wav")[:, 0], rooms[0][:4800], -np.append(np.zeros(179), rooms[0])
        error[:4800] += self.sound("music-room.wav")[:, 0]
        power = [np.mean(signal.fftconvolve(song, h)**2) for h in (error, echo)]
        self.assertAlmostEqual(10 * np.log10(power[0] / power[1]), float(re.search(r"misadjustment (\S+)", by_music)[1]), delta=1)

    def taps(self):
        return self.sound("filter.wav")[:, 0]

    def test_a_crossover_for_three_ways(self):
        self.make_files()
        self.run_blocks(SECTIONS["Correct a room"])
        (printed, shown), _, _ = self.run_blocks(SECTIONS["A crossover for three ways"])
        self.assertEqual([line[:20] for line in printed.splitlines()[:2]], [line[:20] for line in shown.splitlines()[:2]])
        self.assertEqual([line[:13] for line in printed.splitlines()], [line[:13] for line in shown.splitlines()])
        ways, drivers = self.sound("ways.wav"), self.sound("drivers.wav")
        self.assertEqual(ways.shape, (806, 3))
        # Rounding to single precision: 2^-25 of taps whose energy is 1.
        response = np.fft.rfft(ways, 48000, axis=0)  # a bin each Hz
        self.assertLess(np.abs(20 * np.log10(np.abs(response.sum(axis=1)))).max(), 1e-3)
        # Neighbours meet at -6 dB; an octave beside it 1 / (1 + 2^4) is left of a way. The bilinear transform moves
        # frequencies around 3 kHz by 1 %, which is 4 % of 2^4.
        for way, hz, expected in ((0, 300, 1 / 2), (1, 300, 1 / 2), (1, 3000, 1 / 2), (2, 3000, 1 / 2), (0, 600, 1 / 17),
                                  (1, 150, 1 / 17), (2, 1500, 1 / 17)):
            self.assertAlmostEqual(abs(response[hz, way]), expected, delta=0.05 * expected)
        expected = ways * (1, -1, 10 ** (-3 / 20))
        expected[:, 2] = np.roll(expected[:, 2], 10)  # 0.2 ms are 9.6 frames; the taps of the tweeter end early
        np.testing.assert_allclose(drivers, expected, rtol=0, atol=1e-7)
        three = signal.fftconvolve(self.sound("sweep.wav"), ways, axes=0)
        self.same_sound("three.wav", three, np.abs(three).max())
        corrected = signal.fftconvolve(self.sound("voice.wav"), self.taps()[:, None], axes=0)
        speakers = signal.fftconvolve(corrected, drivers, axes=0)
        self.same_sound("speakers.wav", speakers, min(np.abs(speakers).max(), FULL_SCALE))

    def test_a_radio_channel(self):
        self.make_files()
        capture = np.load("capture.npy")
        tuned = capture * np.exp(-0.2j * np.pi * np.arange(capture.size))
        (design, shown_design), _, (peaks, shown_peaks), _, _ = self.run_blocks(SECTIONS["A radio channel"])
        for printed, shown in ((design, shown_design), (peaks, shown_peaks)):
            self.same_words(printed, shown)
        self.are_the_bursts(peaks)
        for name, taps, gain, ratio in (("baseband", "channel", 1, (1, 8)),
                                        ("at-300k", "channel-3M", 10 ** (9.54 / 20), (3, 10))):
            expected = gain * signal.upfirdn(np.load(taps + ".npy").astype("f8"), tuned, *ratio)
            # Errors are relative to the capture, whose strongest part the filter stops.
            self.close(np.load(name + ".npy"), expected, typical=1)
        one, other = (np.fromfile("channels/%s.sigmf-data" % name, "c8") for name in ("bursts", "neighbour"))
        self.close(one, np.load("baseband.npy")[:one.size], 2 * rig.gate("c8"), typical=1)
        self.assertLess(np.abs(np.abs(other[other.size // 2:]) - 1).max(), 0.1)  # its tone, and noise of 0.05 in all 1 MHz
        meta = json.loads(self.read("channels/neighbour.sigmf-meta"))
        self.assertEqual((meta["captures"][0]["core:frequency"], meta["global"]["core:sample_rate"]), (434.2e6, 25000))

    def same_words(self, printed, shown):
        """Decimal fractions may differ by 2 %. The noise within the channel is a tenth of 0.005, half of it in quadrature with a
        burst of energy 8: the phases of 1.57 have a standard deviation of 0.0055."""
        self.assertEqual(len(printed.splitlines()), len(shown.splitlines()), printed)
        for got, expected in zip(printed.split(), shown.split(), strict=True):
            if re.fullmatch(r"-?\d+\.\d+", expected):
                self.assertAlmostEqual(float(got), float(expected), delta=0.02 * abs(float(expected)))
            else:
                self.assertEqual(got, expected)

    def test_a_long_recording(self):
        self.make_files()
        hall, day = self.sound("hall.wav"), self.sound("day.wav")
        self.run_blocks(SECTIONS["A long recording"])
        expected = signal.fftconvolve(day, hall, axes=0)
        self.same_sound("day-wet.wav", expected, np.abs(expected).max())

    def test_an_array_of_sensors(self):
        self.make_files()
        for printed, shown in self.run_blocks(SECTIONS["An array of sensors"]):
            self.same_words(printed, shown)
        x = np.load("array.npy").astype("f8")
        windows = [w - w.mean(1, keepdims=True) for w in (x[:, s:s + 2000] for s in range(0, 18001, 1000))]
        expected = np.mean([[signal.correlate(v, u)[1999 - 25:2000 + 25] / np.linalg.norm(u) / np.linalg.norm(v) for u, v in
                             ((w[i], w[j]) for i in range(3) for j in range(i, 3))] for w in windows], axis=0)
        self.close(np.load("pairs.npy"), expected, typical=1)

    def test_a_layer(self):
        """The reference sums in double; both gradients are adjoints of the layer."""
        self.make_files()
        x, w, b, gy = (np.load(name + ".npy") for name in ("x", "w", "b", "gy"))
        (printed, shown), _ = self.run_blocks(SECTIONS["A layer"])
        zeros_around = np.pad(x.astype("f8"), ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(zeros_around, (3, 3), axis=(2, 3))
        self.close(np.load("y.npy"), np.einsum("nchwrs,ocrs->nohw", windows, w) + b[:, None, None])
        self.close(np.load("gw.npy"), np.einsum("nchwrs,nohw->ocrs", windows, gy))
        self.close(np.load("gb.npy"), gy.sum(axis=(0, 2, 3), dtype="f8"))
        padded = np.zeros((2, 3, 34, 34))
        for r in range(3):
            for s in range(3):
                padded[:, :, r:r + 32, s:s + 32] += np.einsum("nohw,oc->nchw", gy, w[:, :, r, s], dtype="f8")
        self.close(np.load("gx.npy"), padded[:, :, 1:-1, 1:-1])
        problem = re.match(r".*(?=; cpu)", shown).group(0)
        self.assertEqual(printed[:len(problem)], problem)
        self.assertIn("<- chosen\n", printed)


class Readme(Page):
    def test_commands(self):
        """In an empty folder that stands for a clone, in the order of the page; the first block builds the program."""
        demo, make, *blocks = README.split("```sh\n")[1:]
        self.assertTrue(demo.startswith("tools/demo.sh "))
        self.assertEqual(make.split("```")[0], "PATH=$PWD/build-demo/apps:$PATH\n"
                         "python3 examples/make_files.py try && cd try\n")
        os.mkdir("try")
        os.chdir("try")
        self.make_files()
        noisy = np.load("noisy.npy")
        printed = [text for text, _ in self.run_blocks("".join("```sh\n" + block for block in blocks))]
        low_pass, clean = np.load("low-pass.npy"), np.load("clean.npy")
        self.close(clean, signal.fftconvolve(noisy, low_pass, mode="same"), typical=1)
        # The line of the mains hum has a magnitude of 0.15 before. Afterwards what is left there are side lobes of the
        # stretch of 3.7 s: of lines of at most 0.3 that are 37 bins away, 0.3 / (37 pi) = 0.003 each.
        middle = slice(low_pass.size, -low_pass.size)
        hum = np.exp(0.1j * np.pi * np.arange(noisy.size))[middle]
        self.assertGreater(abs(np.mean(noisy[middle] * hum)), 0.1)
        self.assertLess(abs(np.mean(clean[middle] * hum)), 1e-2)
        tables = [text[text.index("#"):] for text in printed if "#" in text]
        self.assertEqual(len(tables), 1)
        self.are_the_bursts(tables[0])
        self.assertEqual(self.read("joined.wav"), self.read("day-wet.wav"))


if __name__ == "__main__":
    rig.main()

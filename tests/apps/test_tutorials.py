#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The commands of docs/tutorials.md and of README.md, run in the order of the page; their results against SciPy; what the
tutorials show against what they print."""
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
from scipy import signal

import rig
from rig import Case, parse_wav, wav_bytes

TUTORIALS, README = (pathlib.Path(sys.argv.pop(2)).read_text() for _ in range(2))
SECTIONS = {text.split("\n", 1)[0]: text for text in re.split(r"^## ", TUTORIALS, flags=re.M)}
TESTED = {"A reverb", "A radio channel", "A long recording", "A layer"}
STEP = 2.0**-15  # of samples of 16 bits
FULL_SCALE = 1 - STEP


class Page(Case):
    """Runs the commands of a page, and makes the files that they read."""

    def setUp(self):
        super().setUp()
        os.mkdir("bin")
        os.symlink(os.path.abspath(rig.PROGRAM), "bin/partita")

    def run_blocks(self, text):
        """Runs the commands of a text. For each block: what it printed, and what the page shows until the next."""
        env = {**os.environ, "PATH": os.path.abspath("bin") + ":" + os.environ["PATH"], "XDG_CACHE_HOME": os.getcwd()}
        pairs = []
        for block in text.split("```sh\n")[1:]:
            commands, rest = block.split("```\n", 1)
            done = subprocess.run(["sh", "-e", "-c", commands], env=env, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=60)
            self.assertEqual(done.returncode, 0, commands + done.stdout.decode())
            shown = re.search(r"```text\n(.*?)```", rest, re.S)
            pairs.append((done.stdout.decode(), shown.group(1) if shown else ""))
        return pairs

    def sound(self, name, frames, bits):
        self.write(name, wav_bytes(frames, bits=bits))
        return parse_wav(self.read(name))[1]

    def response(self, name, n, channels):
        decay = 0.05 * 10 ** (-3 * np.arange(n) / n)
        return self.sound(name, (decay[:, None] * self.random.standard_normal((n, channels))).astype("f4"), 32)

    def notes(self, name, *hz):
        t = np.arange(48000) / 48000
        return self.sound(name, np.rint([8000 * np.sin(2 * np.pi * f * t) for f in hz]).astype(int).T, 16)

    def same_sound(self, name, expected, peak):
        """Samples of 16 bits are rounded by up to half a step; the errors of single precision, some 1e-6 of the peak,
        are less than a tenth of a step."""
        got = parse_wav(self.read(name))[1]
        self.assertEqual(got.shape, expected.shape)
        self.assertLess(np.abs(got - expected * (peak / np.abs(expected).max())).max(), 0.6 * STEP)

    BURSTS = (80004, 160004, 240004)

    def capture(self):
        """A strong neighbour 200 kHz above the channel, three bursts of 256 symbols of 8 samples, and noise."""
        n = 300000
        at = np.arange(n)
        burst = np.exp(1j * np.pi * np.arange(256) ** 2 / 256)  # a Zadoff-Chu sequence
        channel = np.zeros(n, complex)
        for start in self.BURSTS:
            channel[start:start + 2048] = 0.2j * np.repeat(burst, 8)
        noise = 0.05 * (self.random.standard_normal(n) + 1j * self.random.standard_normal(n))
        capture = (channel * np.exp(0.2j * np.pi * at) + np.exp(0.6j * np.pi * at) + noise).astype("c8")
        np.save("capture.npy", capture)
        np.save("burst.npy", burst.astype("c8"))
        return capture

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
        hall, church = self.response("hall.wav", 12000, 2), self.response("church.wav", 24000, 4)
        voice, piano = self.notes("voice.wav", 220), self.notes("piano.wav", 220, 330)
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

    def test_a_radio_channel(self):
        capture = self.capture()
        tuned = capture * np.exp(-0.2j * np.pi * np.arange(capture.size))
        (design, shown_design), _, (peaks, shown_peaks), _ = self.run_blocks(SECTIONS["A radio channel"])
        for printed, shown in ((design, shown_design), (peaks, shown_peaks)):
            self.same_words(printed, shown)
        self.are_the_bursts(peaks)
        for name, taps, gain, ratio in (("baseband", "channel", 1, (1, 8)),
                                        ("at-300k", "channel-3M", 10 ** (9.54 / 20), (3, 10))):
            expected = gain * signal.upfirdn(np.load(taps + ".npy").astype("f8"), tuned, *ratio)
            # Errors are relative to the capture, whose strongest part the filter stops.
            self.close(np.load(name + ".npy"), expected, typical=1)

    def same_words(self, printed, shown):
        """Decimal fractions may differ by 2 %. The noise within the channel is a tenth of 0.005, half of it in quadrature with a
        burst of energy 8: the phases of 1.57 have a standard deviation of 0.0055."""
        self.assertEqual(len(printed.splitlines()), len(shown.splitlines()), printed)
        for got, expected in zip(printed.split(), shown.split(), strict=True):
            if re.fullmatch(r"\d+\.\d+", expected):
                self.assertAlmostEqual(float(got), float(expected), delta=0.02 * float(expected))
            else:
                self.assertEqual(got, expected)

    def test_a_long_recording(self):
        hall, day = self.response("hall.wav", 12000, 2), self.notes("day.wav", 220, 330)
        self.run_blocks(SECTIONS["A long recording"])
        expected = signal.fftconvolve(day, hall, axes=0)
        self.same_sound("day-wet.wav", expected, np.abs(expected).max())

    def test_a_layer(self):
        """The reference sums in double; both gradients are adjoints of the layer."""
        x, w, b, gy = (self.random.standard_normal(shape).astype("f4")
                       for shape in ((2, 3, 32, 32), (8, 3, 3, 3), 8, (2, 8, 32, 32)))
        for name, array in (("x", x), ("w", w), ("b", b), ("gy", gy)):
            np.save(name + ".npy", array)
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
        """First those of the five tasks, then those at the top, which read a filter that the tasks make."""
        for name, n, channels in (("hall", 12000, 2), ("church", 24000, 4)):
            self.response(name + ".wav", n, channels)
        self.notes("voice.wav", 220)
        self.notes("piano.wav", 220, 330)
        self.notes("day.wav", 220, 330)
        self.capture()
        os.symlink("capture.npy", "in.npy")
        time = np.arange(4000) / 1000
        slow, hum = np.sin(2 * np.pi * 10 * time), np.sin(2 * np.pi * 50 * time)
        np.save("noisy.npy", (slow + hum).astype("f4"))
        top, tasks = README.split("## Install")
        printed = [text for text, _ in self.run_blocks(tasks)] + [text for text, _ in self.run_blocks(top)]
        # 80 dB of attenuation are a deviation of 1e-4 in both bands; the ends lack samples under the taps.
        clean, beyond = np.load("clean.npy"), np.load("low-pass.npy").size
        self.assertLess(np.abs(clean - slow)[beyond:-beyond].max(), 2e-4)
        tables = [text[text.index("#"):] for text in printed if "#" in text]
        self.assertEqual(len(tables), 2)
        for table in tables:
            self.are_the_bursts(table)
        self.assertEqual(self.read("joined.wav"), self.read("day-wet.wav"))


if __name__ == "__main__":
    rig.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Configurations of jconvolver, Convolver and CamillaDSP. Each is compared with the sum over its paths that NumPy
computes in double precision; what is refused is named with file, line, value and remedy."""
import json
import os
import re
import shutil
import subprocess

import numpy as np

import rig
from rig import Case, parse_wav, wav_bytes

N = 700


def delayed(taps, delay=0, gain=1.0):
    return gain * np.concatenate((np.zeros(delay), np.asarray(taps, "f8")))


def hilbert(length):
    """Odd taps of 2 / (pi k) with the window 0.43 + 0.57 cos, negative after the middle."""
    half = length // 2
    h = np.zeros(length)
    for k in range(1, half, 2):
        h[half + k] = -2 / (np.pi * k) * (0.43 + 0.57 * np.cos(np.pi * k / half))
        h[half - k] = -h[half + k]
    return h


class Config(Case):
    def setUp(self):
        super().setUp()
        self.ir = (self.random.standard_normal((300, 3)) / 8).astype("f4")
        self.write("ir.wav", wav_bytes(self.ir, bits=32))
        self.signal(2)

    def signal(self, channels, rate=48000, n=N):
        self.x = self.random.standard_normal((n, channels)).astype("f4")
        self.write("x.wav", wav_bytes(self.x, bits=32, rate=rate))

    def text(self, name, *lines):
        self.write(name, ("\n".join(lines) + "\n").encode())
        return name

    def expected(self, paths, n_out):
        """paths: of (out, in), lists of responses that are added."""
        length = max(len(h) for hs in paths.values() for h in hs)
        y = np.zeros((len(self.x) + length - 1, n_out))
        for (out, channel), responses in paths.items():
            for h in responses:
                part = np.convolve(self.x[:, channel].astype("f8"), h)
                y[:len(part), out] += part
        return y

    def result(self, config, *arguments):
        self.run_program("convolve", *arguments, "--config", config, "x.wav", "y.wav")
        return parse_wav(self.read("y.wav"))[1]

    def matches(self, config, paths, n_out, *arguments):
        y, expected = self.result(config, *arguments), self.expected(paths, n_out)
        # Paths that overlap-save computes together have the error of the loudest.
        self.close(y.astype("f4"), expected, typical=np.sqrt(np.mean(expected**2)))

    def refuses(self, name, lines, *says, rc=1):
        self.text(name, *lines)
        self.fails("convolve", "--config", name, "x.wav", "out.wav", says=says, rc=rc)


class Jconvolver(Config):
    def test_all_commands(self):
        self.text("all.conf", "# comment", "/cd .", "/convolver/new 2 3 256 4096 0.5", "/input/name 1 In.L",
                  "/output/name 3 Out.3 system:playback_1",
                  "/impulse/read 1 1 0.5 7 20 100 2 ir.wav", "/impulse/copy 2 3 1 1", '/impulse/read 1 1 -2 0 250 0 3 "ir.wav" # added',
                  "/impulse/dirac 2 2 0.25 900", "\t/impulse/hilbert 1 3 1.5 400 128")
        first = [delayed(self.ir[20:120, 1], 7, 0.5), delayed(self.ir[250:, 2], 0, -2)]
        self.matches("all.conf", {(0, 0): first, (2, 1): first, (1, 1): [delayed([1], 900, 0.25)],
                                  (2, 0): [delayed(hilbert(128), 400 - 64, 1.5)]}, 3)

    def test_files_beside_the_configuration_and_below_cd(self):
        os.makedirs("halls/big")
        os.rename("ir.wav", "halls/ir.wav")
        self.text("halls/a.conf", "/convolver/new 2 1 64 1000", "/impulse/read 2 1 1 0 0 0 1 ir.wav")
        self.matches("halls/a.conf", {(0, 1): [self.ir[:, 0]]}, 1)
        os.rename("halls/ir.wav", "halls/big/ir.wav")
        self.text("halls/a.conf", "/cd halls/big", "/convolver/new 2 1 64 1000", "/impulse/read 2 1 1 0 0 0 1 ir.wav")
        self.matches("halls/a.conf", {(0, 1): [self.ir[:, 0]]}, 1)

    def test_responses_end_at_the_maximum_length(self):
        self.text("short.conf", "/convolver/new 2 2 64 200", "/impulse/read 1 1 1 50 0 0 1 ir.wav",
                  "/impulse/dirac 2 2 1 199", "/impulse/dirac 2 2 1 200")
        done = self.run_program("convolve", "--config", "short.conf", "x.wav", "y.wav")
        self.assertIn(b"short.conf:2: 150 frames of the response are beyond the maximum length of 200", done.stderr)
        self.assertIn(b"short.conf:4: 1 frames", done.stderr)
        self.matches("short.conf", {(0, 0): [delayed(self.ir[:150, 0], 50)], (1, 1): [delayed([1], 199)]}, 2)

    def test_levels_and_the_dry_signal(self):
        self.text("a.conf", "/convolver/new 2 2 64 1000", "/impulse/read 2 1 1 0 0 0 1 ir.wav")
        wet, dry = 10**(-6 / 20), 10**(-3 / 20)
        self.matches("a.conf", {(0, 1): [2 * wet * self.ir[:, 0]], (0, 0): [np.array([2 * dry])],
                                (1, 1): [np.array([2 * dry])]}, 2, "--gain", 20 * np.log10(2), "--wet", -6, "--dry", -3)

    def test_other_rates(self):
        """What resampling makes of the files is what it makes of an impulse response."""
        self.signal(2, rate=44100)
        self.text("a.conf", "/convolver/new 2 2 64 1000", "/impulse/read 1 1 1 0 0 0 1 ir.wav",
                  "/impulse/read 2 2 0.5 0 0 0 2 ir.wav")
        self.fails("convolve", "--config", "a.conf", "x.wav", "out.wav",
                   says=["a.conf:2:", "ir.wav", "48000", "44100", "--resample-ir"])
        self.write("two.wav", wav_bytes(self.ir[:, :2] * np.array([1, 0.5], "f4"), bits=32))
        self.run_program("convolve", "--resample-ir", "two.wav", "x.wav", "expected.wav")
        expected = parse_wav(self.read("expected.wav"))[1]
        y = self.result("a.conf", "--resample-ir")
        self.close(y.astype("f4"), expected, 2 * rig.gate("f4"))

    def test_shards_of_a_sparse_matrix(self):
        self.signal(3, n=5000)
        self.text("a.conf", "/convolver/new 3 2 64 1000", "/impulse/read 1 1 1 0 0 0 1 ir.wav",
                  "/impulse/read 3 2 1 100 0 0 2 ir.wav")
        for k in (1, 2):
            self.run_program("convolve", "--range", "%d/2" % k, "--config", "a.conf", "x.wav", "y%d.wav" % k)
        self.run_program("join", "y.wav", "y1.wav", "y2.wav")
        self.run_program("convolve", "--range", "1/1", "--config", "a.conf", "x.wav", "whole.wav")
        self.assertEqual(self.read("y.wav"), self.read("whole.wav"))
        expected = self.expected({(0, 0): [self.ir[:, 0]], (1, 2): [delayed(self.ir[:, 1], 100)]}, 2)
        self.close(parse_wav(self.read("y.wav"))[1].astype("f4"), expected, typical=np.sqrt(np.mean(expected**2)))

    def test_a_stream_of_a_sparse_matrix(self):
        self.signal(3)
        self.text("a.conf", "/convolver/new 3 2 64 4000", "/impulse/read 1 1 1 0 0 0 1 ir.wav",
                  "/impulse/read 3 2 1 3000 0 0 2 ir.wav")
        paths = {(0, 0): [self.ir[:, 0]], (1, 2): [delayed(self.ir[:, 1], 3000)]}
        for engine in ("cpu/direct", "cpu/overlap-save", "cpu/partitioned"):
            with self.subTest(engine):
                self.matches("a.conf", paths, 2, "--block", 64, "--engine", engine)

    def test_refusals(self):
        new = "/convolver/new 2 2 64 1000"
        dirac = "/impulse/dirac 1 1 1 0"
        cases = [
            ([new, "/impulse/raed 1 1"], "a.conf:2: '/impulse/raed' is no command"),
            (["hello"], "a.conf:1: 'hello' is no command"),
            ([dirac], "a.conf:1: /impulse/dirac comes before /convolver/new"),
            ([new, new], "a.conf:2: /convolver/new is given twice"),
            (["/convolver/new 0 2 64 1000"], "a.conf:1: number of inputs: '0' is not a whole number from 1 to 256"),
            (["/convolver/new 2 2 64"], "a.conf:1: /convolver/new needs INPUTS OUTPUTS PARTITION LENGTH"),
            (["/convolver/new 2 2 64 1000 2"], "density: '2'"),
            ([new, "/impulse/dirac 3 1 1 0"], "a.conf:2: input: '3' is not a whole number from 1 to 2"),
            ([new, "/impulse/dirac 1 1 nan 0"], "gain: 'nan'"),
            ([new, "/impulse/dirac 1 1 1 -1"], "delay: '-1'"),
            ([new, "/impulse/hilbert 1 1 1 10 64"], "delay: 10 is less than half of the length, 32"),
            ([new, "/impulse/hilbert 1 1 1 10 63"], "length: '63'"),
            ([new, '/impulse/read 1 1 1 0 0 0 1 "ir.wav'], "closing quotation mark"),
            ([new, "/impulse/read 1 1 1 0 0 0 4 ir.wav"], 
             "a.conf:2: ir.wav: has 3 channels; channel 4 is not from 1 to 3"),
            ([new, "/impulse/read 1 1 1 0 300 0 1 ir.wav"], "ir.wav: has 300 frames; an offset of 300 leaves none"),
            ([new, "/impulse/read 1 1 1 0 0 0 1 absent.wav"], "a.conf:2: absent.wav: cannot open"),
            ([new, "/impulse/copy 1 1 2 2"], "a.conf:2: input 2, output 2 has no response yet"),
            ([new, dirac, "/impulse/copy 1 1 2 2"], "a.conf:3: input 1, output 1 has a response since line 2"),
            ([new, "/impulse/copy 1 1 1 1"], "is copied to itself"),
            ([new, dirac, "/impulse/copy 2 2 1 1", "/impulse/dirac 2 2 1 0"], "a.conf:4: input 2, output 2 is a copy since line 3"),
            ([new, dirac, "/impulse/copy 2 2 1 1", "/impulse/copy 1 2 2 2"], "a.conf:4: input 2, output 2 is a copy itself"),
            ([new, "/input/name 1 a:b"], "a.conf:2: 'a:b' is not the name of a port"),
            ([new, "/input/name 1 a", "/input/name 2 a"], "a.conf:3: a: another port has this name"),
            ([new, "/impulse/read 1 1 1 0 0 0 1 pipe.wav"], "a.conf:2: pipe.wav: is not a regular file"),
            ([new, "/impulse/read 1 1 1 0 0 0 1 -"], "a.conf:2: -: taps of a configuration or a chain are in files"),
            # 2^8 of the longest transformers have 2^24 taps.
            ([new] + ["/impulse/hilbert 1 1 1 32768 65536"] * 257, "a.conf:258: more than 16777216 taps"),
            ([new], "a.conf: has no impulse response"),
            (["# nothing"], "a.conf: has no /convolver/new"),
        ]
        os.mkfifo("pipe.wav")
        for lines, words in cases:
            with self.subTest(lines):
                self.refuses("a.conf", lines, words)

    def test_a_byte_order_mark(self):
        self.text("a.conf", "\ufeff/convolver/new 2 2 64 1000", "/impulse/dirac 1 2 1 3")
        self.matches("a.conf", {(1, 0): [delayed([1], 3)]}, 2)

    def test_recordings_are_not_replaced(self):
        meta = {"global": {"core:datatype": "rf32_le", "core:version": "1.0.0"}, "captures": [{"core:sample_start": 0}],
                "annotations": []}
        self.write("ir.sigmf-meta", json.dumps(meta).encode())
        self.write("ir.sigmf-data", self.ir[:, 0].tobytes())
        for name in ("ir.sigmf-meta", "ir"):
            self.text("a.conf", "/convolver/new 2 2 64 1000", "/impulse/read 1 1 1 0 0 0 1 " + name)
            self.matches("a.conf", {(0, 0): [self.ir[:, 0]]}, 2)
            self.fails("convolve", "--config", "a.conf", "x.wav", "ir.sigmf-data", says="ir.sigmf-data: is the input")
            self.assertEqual(self.read("ir.sigmf-data"), self.ir[:, 0].tobytes())

    def test_usage(self):
        self.text("a.conf", "/convolver/new 2 2 64 1000", "/impulse/dirac 1 1 1 0")
        self.fails("convolve", "--config", "a.conf", "x.wav", rc=2, says="needs IN and OUT besides --config")
        self.fails("convolve", "--config", "a.conf", "--matrix", "x.wav", "out.wav", rc=2, says="leave out")
        self.write("wave.conf", self.read("x.wav"))
        self.fails("convolve", "--config", "wave.conf", "x.wav", "out.wav", says=["wave.conf: ", "it is no text"])
        self.text("a.txt", "/convolver/new 2 2 64 1000")
        self.fails("convolve", "--config", "a.txt", "x.wav", "out.wav", says=["a.txt", ".conf (jconvolver)"])
        self.fails("convolve", "--config", "absent.conf", "x.wav", "out.wav", says="absent.conf: cannot open")
        os.mkdir("folder.conf")
        self.fails("convolve", "--config", "folder.conf", "x.wav", "out.wav", says="folder.conf: cannot open: is not a regular file")
        for name in ("a.conf", "ir.wav"):
            self.text("a.conf", "/convolver/new 2 2 64 1000", "/impulse/read 1 1 1 0 0 0 1 ir.wav")
            before = self.read(name)
            self.fails("convolve", "--config", "a.conf", "x.wav", name, says=name)
            self.assertEqual(self.read(name), before)
        self.signal(3)
        self.fails("convolve", "--config", "a.conf", "x.wav", "out.wav", says="is for 2 input channels; x.wav has 3")

    def test_json_names_the_configuration(self):
        self.text("a.conf", "/convolver/new 2 2 64 1000", "/impulse/dirac 1 1 1 0")
        done = self.run_program("convolve", "--json", "--config", "a.conf", "x.wav", "y.wav")
        self.assertEqual(json.loads(done.stdout)["ir"], "a.conf")


class Convolver(Config):
    def test_paths(self):
        """Weights stand behind the point of channels; paths to one output are added; delays in milliseconds."""
        self.text("a.cfg", "48000 2 3 0", "0 2", "1 0 0", "ir.wav", "0", "0.0", "0.0", "", ".\\ir.wav", "2",
                  "0.5 -1.25", "2.0 -0.75")
        left, right = delayed(self.ir[:, 2], 0, 0.5), delayed(self.ir[:, 2], 96, -0.25)
        self.matches("a.cfg", {(0, 0): [delayed(self.ir[:, 0], 48), delayed(left, 48, -0.75)], (2, 0): [left],
                               (2, 1): [right], (0, 1): [delayed(right, 48, -0.75)]}, 3)

    def test_inversion_without_weight(self):
        self.text("a.cfg", "48000 2 1 0", "0 0", "0", "ir.wav", "0", "-0.0 -1", "0")
        self.matches("a.cfg", {(0, 0): [-self.ir[:, 0]], (0, 1): [-self.ir[:, 0]]}, 1)

    def test_lists_for_several_rates(self):
        """Of the configurations in a list the first for the rate of IN is taken."""
        os.makedirs("rates")
        for name, rate, channel in (("44", 44100, 0), ("48", 48000, 1), ("again", 48000, 2)):
            self.write("rates/%s.wav" % name, wav_bytes(self.ir[:, channel:channel + 1], bits=32, rate=rate))
            self.text("rates/%s.cfg" % name, "%d 2 1 0" % rate, "0 0", "0", name + ".wav", "0", "1.0", "0.0")
        self.text("all.cfg", "", "  rates\\44.cfg ", "", "rates/48.CFG", "rates/again.cfg")
        os.rename("rates/48.cfg", "rates/48.CFG")
        self.matches("all.cfg", {(0, 1): [self.ir[:, 1]]}, 1)
        self.signal(2, rate=44100)
        self.matches("all.cfg", {(0, 1): [self.ir[:, 0]]}, 1)
        listed = self.read("all.cfg")
        self.write("all.cfg", b"\xef\xbb\xbf" + listed.lstrip())
        self.matches("all.cfg", {(0, 1): [self.ir[:, 0]]}, 1)
        self.write("all.cfg", listed + b"\0rates/again.cfg\n")
        self.fails("convolve", "--config", "all.cfg", "x.wav", "out.wav", says="all.cfg: holds a zero byte")
        self.write("all.cfg", listed)
        self.fails("convolve", "--up", 2, "--config", "all.cfg", "x.wav", "out.wav",
                   says="lists no configuration for the 44100 Hz of x.wav times 2;")
        np.save("x.npy", self.x.T)
        self.fails("convolve", "--config", "all.cfg", "x.npy", "out.npy",
                   says="x.npy: has no sample rate, by which a configuration of all.cfg is chosen; add --rate")
        self.run_program("convolve", "--rate", 44100, "--config", "all.cfg", "x.npy", "y.npy")
        self.signal(2, rate=96000)
        self.fails("convolve", "--config", "all.cfg", "x.wav", "out.wav",
                   says=["all.cfg", "rates/44.cfg", "44100", "96000", "--resample-ir"])
        self.run_program("convolve", "--resample-ir", "--config", "all.cfg", "x.wav", "y.wav")
        for out in ("all.cfg", "rates/44.cfg", "rates/44.wav", "rates/again.cfg", "rates/again.wav"):
            before = self.read(out)
            self.run_program("convolve", "--config", "all.cfg", "x.wav", out, rc=None)
            self.assertEqual(self.read(out), before)

    def test_refusals_of_lists(self):
        self.text("empty.cfg")
        self.text("good.cfg", "48000 2 1 0", "0 0", "0", "ir.wav", "0", "1.0", "0.0")
        self.text("inner.cfg", "good.cfg", "good.cfg")
        os.mkfifo("pipe.cfg")
        cases = [
            (["good.cfg", "none.cfg"], "a.cfg:2: none.cfg: cannot open: No such file"),
            (["good.cfg", "", "empty.cfg"], "a.cfg:3: empty.cfg:1: the file ends"),
            (["good.cfg", "ir.wav"], "a.cfg:2: 'ir.wav': a list has a configuration (.cfg) in each line"),
            (["good.cfg", "inner.cfg"], "a.cfg:2: inner.cfg: is a list"),
            (["good.cfg", "a.cfg"], "a.cfg:2: a.cfg: is a list"),
            (["good.cfg", "pipe.cfg"], "a.cfg:2: pipe.cfg: is not a regular file"),
            (65 * ["good.cfg"], "a.cfg:65: more than 64 configurations"),
        ]
        for lines, words in cases:
            with self.subTest(lines):
                self.refuses("a.cfg", lines, words)

    def test_the_rate_is_that_of_the_configuration(self):
        self.text("a.cfg", "44100 2 2 0", "0 0", "0 0", "ir.wav", "0", "0.0", "0.0")
        self.fails("convolve", "--config", "a.cfg", "x.wav", "out.wav",
                   says="a.cfg: is for 44100 Hz, not for the 48000 Hz of x.wav;")
        self.fails("convolve", "--up", 2, "--config", "a.cfg", "x.wav", "out.wav",
                   says="a.cfg: is for 44100 Hz, not for the 48000 Hz of x.wav times 2;")

    def test_refusals(self):
        head = ["48000 2 2 0", "0 0", "0 0"]
        cases = [
            ([], "a.cfg:1: the file ends where it should have sample rate"),
            (["48000 2"], "a.cfg:1: needs sample rate, inputs, outputs and mask"),
            (["fast 2 2 0"], "a.cfg:1: sample rate: 'fast'"),
            (["48000 2 2 left"], "'left' is not a mask"),
            (["48000 2 2 0", "0"], "a.cfg:2: has 1 delays; inputs need 2"),
            (["48000 2 2 0", "0 0 0"], "a.cfg:2: has more than 2 delays"),
            (["48000 2 2 0", "0 0", "0 -1"], "a.cfg:3: delay in ms: '-1'"),
            (head, "a.cfg: has no path"),
            (head + ["ir.wav"], "a.cfg:4: the file ends where it should have the channel of the file"),
            (head + ["ir.wav", "one"], "a.cfg:5: channel of the file: 'one'"),
            (head + ["ir.wav", "0", "x"], "a.cfg:6: 'x' is not a channel and its weight"),
            (head + ["ir.wav", "0", "2.0"], "a.cfg:6: '2.0': there is no channel 2; they are counted from 0 to 1"),
            (head + ["ir.wav", "0", "0.0"], "the file ends where it should have the outputs of a path"),
            (head + ["ir.wav", "3", "0.0", "0.0"], 
             "a.cfg:4: ir.wav: has 3 channels; channel 3 is not from 0 to 2"),
        ]
        for lines, words in cases:
            with self.subTest(lines):
                self.refuses("a.cfg", lines, words)


CAMILLA = """
devices:
  samplerate: 48000
  chunksize: 1024
  capture: {type: Alsa, channels: 2, device: hw}
  playback: {type: Alsa, channels: %d, device: hw}
"""


class WithYaml(Config):
    def setUp(self):
        super().setUp()
        self.text("a.yml", "devices: {samplerate: 48000, capture: {channels: 2}}")
        done = self.run_program("convolve", "--config", "a.yml", "x.wav", "y.wav", rc=None)
        if b"without libyaml" in done.stderr:
            self.skipTest("built without libyaml")

    def yaml(self, body, outputs=2):
        self.text("a.yml", CAMILLA % outputs + body)
        return "a.yml"


class CamillaDSP(WithYaml):
    def test_a_pipeline(self):
        self.text("taps.txt", "a header", "0.5", "-0.25", "0.125", "9")
        raw = (self.random.standard_normal(50) * 8000).astype("<i2")
        self.write("taps_48000_2.raw", raw.tobytes())
        self.yaml("""
filters:
  room: {type: Conv, parameters: {type: Wav, filename: ir.wav, channel: 1}}
  text: {type: Conv, parameters: {type: Raw, filename: taps.txt, skip_bytes_lines: 1, read_bytes_lines: 3}}
  raw:
    type: Conv
    parameters: {type: Raw, format: S16LE, filename: taps_$samplerate$_$channels$.raw, skip_bytes_lines: 4}
  list: {type: Conv, parameters: {type: Values, values: [1.0, 0.5, 1e-1]}}
  fir: {type: DiffEq, parameters: {a: [1.0], b: [0.5, 0.5]}}
  half: {type: Gain, parameters: {gain: 0.5, scale: linear, inverted: true}}
  quiet: {type: Gain, parameters: {gain: -6.0}}
  late: {type: Delay, parameters: {delay: 1.0, unit: ms}}
  sound: {type: Delay, parameters: {delay: 343, delay_unit: mm}}
  unused: {type: Biquad, parameters: {type: Lowpass, freq: 100, q: 0.5}}
mixers:
  split:
    channels: {in: 2, out: 3}
    mapping:
      - dest: 0
        sources: [{channel: 0, gain: 0}, {channel: 1, gain: -6.0, inverted: true}]
      - dest: 2
        sources: [{channel: 1, gain: 0.25, scale: linear}, {channel: 0, mute: true}]
      - {dest: 1, mute: true, sources: [{channel: 1}]}
pipeline:
  - {type: Filter, channel: 1, names: [late, list, half]}
  - {type: Mixer, name: split}
  - {type: Filter, channels: [0], names: [room, text]}
  - {type: Filter, channels: [2, 0], names: [late, sound]}
  - {type: Filter, names: [quiet, raw, fir]}
  - {type: Filter, names: [unused], bypassed: true}
""", 3)
        quiet = 10**(-6 / 20)
        tail = np.convolve(quiet * raw[2:] / 32768, [0.5, 0.5])
        first = delayed(np.convolve(np.convolve(self.ir[:, 1], [0.5, -0.25, 0.125]), tail), 48 + 48)
        right = delayed([1, 0.5, 0.1], 48, -0.5)
        self.matches("a.yml", {(0, 0): [first], (0, 1): [np.convolve(first, right) * -quiet],
                               (2, 1): [delayed(np.convolve(right, tail) * 0.25, 96)]}, 3)

    def test_names_with_tokens(self):
        self.yaml("filters: {f_48000: {type: Gain, parameters: {gain: 0.5, scale: linear}}}\n"
                  "mixers: {m2_48000_2: {channels: {in: 2, out: 1}, mapping: [{dest: 0, sources: [{channel: 1}]}]}}\n"
                  "pipeline: [{type: Filter, names: [f_$samplerate$]}, {type: Mixer, name: m$channels$_$samplerate$_$channels$}]", 1)
        self.matches("a.yml", {(0, 1): [np.array([0.5])]}, 1)
        for name in (4096 * "x", 400 * "$samplerate$"):
            self.yaml("pipeline: [{type: Filter, names: [%s]}]" % name)
            self.fails("convolve", "--config", "a.yml", "x.wav", "out.wav",
                       says="a.yml:7: there is no filter" if name[0] == "$" else "a.yml:7: a name is longer than 4095")

    def test_nothing_is_the_identity(self):
        self.yaml("pipeline: null")
        self.close(self.result("a.yml").astype("f4"), self.x.astype("f8"), 0)

    def test_repeated_filters(self):
        """The taps of a filter are kept once: 500 times 40000 taps are more than a configuration may hold. What it
        would filter is muted, so that nothing has to be computed."""
        filters = "filters: {m: {type: Gain, parameters: {gain: 0, mute: true}}, f: {type: Conv, parameters: {type: Values, values: [%s]}}}\n"
        self.yaml(filters % ("1," * 40000) + "pipeline: [{type: Filter, channel: 0, names: [m%s]}]" % (", f" * 500))
        self.matches("a.yml", {(1, 1): [np.ones(1)]}, 2)
        self.yaml(filters % "1" + "pipeline: [{type: Filter, names: [m%s]}]" % (",m" * (1 << 16)))
        self.fails("convolve", "--config", "a.yml", "x.wav", "out.wav", says="a.yml: more than 65536 filters and mixers")

    def test_other_rates(self):
        """Delays are times; without a rate of their own taps have that of the configuration."""
        self.signal(2, rate=96000)
        self.yaml("""
filters:
  late: {type: Delay, parameters: {delay: 10, unit: samples}}
pipeline:
  - {type: Filter, channels: [0, 1], names: [late]}
""")
        self.fails("convolve", "--config", "a.yml", "x.wav", "out.wav",
                   says="a.yml: is for 48000 Hz, not for the 96000 Hz of x.wav; use --resample-ir")
        self.matches("a.yml", {(c, c): [delayed([1], 20)] for c in range(2)}, 2, "--resample-ir")

    def test_refusals(self):
        step = "\npipeline:\n  - {type: Filter, channel: 0, names: [f]}\n"
        line = "a.yml:8: "

        def one(text):
            return "filters:\n  f: {" + text + "}" + step

        cases = [
            (one("type: Dither, parameters: {type: None}"), line + "filter 'f': Dither cannot be convolved; take it out of the pipeline"),
            (one("type: Gain, parameters: {gain: loud}"), line + "gain: 'loud' is not a number"),
            (one("type: Gain, parameters: {gain: 0, scale: watt}"), "scale: 'watt' is neither dB nor linear"),
            (one("type: Gain, parameters: {gian: 0}"), "'gian' is not one of the keys gain|scale|inverted|mute"),
            (one("type: Gain, parameters: {gain: 0, mute: maybe}"), "mute: 'maybe' is neither true nor false"),
            (one("type: Gain"), "filter 'f' has no parameters"),
            (one("type: Delay, parameters: {delay: -1}"), "delay: '-1'"),
            (one("type: Delay, parameters: {delay: 1, unit: mile}"), "unit: 'mile' is none of ms, us, s, mm"),
            (one("type: Delay, parameters: {delay: 1, subsample: 1}"), "subsample: '1' is neither true nor false"),
            (one("type: DiffEq, parameters: {a: [1, 0.5], b: [1]}"), "a: only [1] can be convolved"),
            (one("type: Conv, parameters: {type: Values, values: []}"), "needs a list of numbers"),
            (one("type: Conv, parameters: {type: Values, values: [x]}"), "value: 'x' is not a number"),
            (one("type: Conv, parameters: {type: Wav}"), "needs a value of filename"),
            (one("type: Conv, parameters: {type: Wav, filename: ir.wav, channel: 3}"), 
             line + "ir.wav: has 3 channels; channel 3 is not from 0 to 2"),
            (one("type: Conv, parameters: {type: Raw, filename: ir.wav, format: S24LE}"), "format: 'S24LE' is none of"),
            (one("type: Conv, parameters: {type: Raw, filename: ir.wav, format: S16LE, skip_bytes_lines: 3}"),
             "multiples of 2"),
            (one("type: Conv, parameters: {type: Tape}"), "type: 'Tape' is none of Wav, Raw, Values and Dummy"),
            ("pipeline: [{type: Filter, names: [g]}]", "there is no filter 'g'"),
            ("pipeline: [{type: Filter, channel: 2, names: [g]}]", "channel: '2' is not a whole number from 0 to 1"),
            ("pipeline: [{type: Filter}]", "needs names of filters"),
            ("pipeline: [{type: Mixer, name: m}]", "there is no mixer 'm'"),
            ("pipeline: [{type: Processor, name: c}]", "type: 'Processor' is no linear filter"),
            ("pipeline: {type: Filter}", "pipeline: needs a list"),
            ("pipeline: [a]", "is no step of a pipeline"),
            ("mixers: {m: {channels: {in: 3, out: 2}}}\npipeline: [{type: Mixer, name: m}]",
             "mixer 'm' has 3 inputs; the pipeline has 2 channels there"),
            ("mixers: {m: {channels: {in: 2, out: 2}, mapping: [{dest: 2}]}}\npipeline: [{type: Mixer, name: m}]",
             "dest: '2' is not a whole number from 0 to 1"),
            ("mixers: {m: {channels: {in: 2, out: 3}}}\npipeline: [{type: Mixer, name: m}]",
             "has 2 channels; the pipeline ends with 3"),
            ("pipeline: [", "a.yml:8: is no YAML: "),
        ]
        for body, words in cases:
            with self.subTest(body):
                self.yaml(body)
                self.fails("convolve", "--config", "a.yml", "x.wav", "out.wav", says=["a.yml:", words])
        for text, words in (("", "no configuration of CamillaDSP"), ("devices: {samplerate: 1}", "capture: channels"),
                            ("pipeline: []", "a.yml:1: devices: needs samplerate"), ("- a", "is no configuration")):
            self.refuses("a.yml", [text], words)


class Page(WithYaml):
    """The commands of docs/configurations.md, and the message that it shows."""

    def test_the_page(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "configurations.md")) as f:
            page = f.read()
        commands = re.search(r"```sh\n(.*?)```", page, re.S).group(1)
        shown = re.search(r"```text\n(partita convolve: .*?)```", page, re.S).group(1)
        self.assertEqual(commands.count("--config"), 3)
        os.mkdir("bin")
        os.symlink(rig.PROGRAM, "bin/partita")
        for name, rate in (("piano.wav", 48000), ("studio.wav", 44100)):
            self.signal(2, rate=rate)
            os.rename("x.wav", name)
        self.text("room.conf", "/convolver/new 2 2 64 1000", "/impulse/read 1 1 1 0 0 0 1 ir.wav",
                  "/impulse/copy 2 2 1 1")
        body = ("filters:\n  bass:\n    type: %s\n    parameters: {type: Wav, filename: ir.wav}\n"
                "pipeline:\n  - {type: Filter, channel: 0, names: [bass]}\n")
        # The message shows line 9, where the type of the filter is.
        os.rename(self.yaml("# a comment\n" + body % "Conv"), "crossover.yml")
        done = subprocess.run(["sh", "-e", "-c", commands], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                              env={**os.environ, "PATH": os.path.abspath("bin") + ":" + os.environ["PATH"],
                                   "XDG_CACHE_HOME": self.folder + "/cache"})
        self.assertEqual((done.returncode, done.stdout), (0, b""))
        for name in ("room.wav", "ways.wav"):
            self.assertEqual(parse_wav(self.read(name))[1].shape[1], 2)
        os.rename(self.yaml(body % "Limiter"), "crossover.yml")
        done = self.run_program("convolve", "--config", "crossover.yml", "piano.wav", "out.wav", rc=1)
        self.assertEqual(done.stderr.decode(), shown)


class Peers(Config):
    """fconvolver with the same configurations, where it is installed."""

    FOLDER = "/usr/share/jconvolver/config-files/"

    def setUp(self):
        if not shutil.which("fconvolver"):
            self.skipTest("fconvolver is not installed")
        super().setUp()

    def null(self, config, channels):
        if config.startswith("/") and not os.path.exists(config):
            self.skipTest("jconvolver-config-files is not installed")
        n = 16384 # a multiple of its blocks, whose remainder it would not fill with zeros
        x = self.random.standard_normal((n, channels)).astype("f4") / 16
        self.write("x.wav", wav_bytes(x, bits=32))
        subprocess.run(["fconvolver", config, "x.wav", "peer.wav"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=100)
        y, peer = self.result(config, "-q"), parse_wav(self.read("peer.wav"))[1]
        # Both compute in float, with errors below the gate each.
        self.close(y[:n].astype("f4"), peer[:n], 2 * rig.gate("f4"))

    def test_all_commands(self):
        self.text("all.conf", "/convolver/new 2 3 256 4096 0.5",
                  "/impulse/read 1 1 0.5 7 20 100 2 ir.wav", "/impulse/read 1 1 -2 0 250 0 3 ir.wav",
                  "/impulse/dirac 2 2 0.25 900", "/impulse/copy 2 3 2 2", "/impulse/hilbert 1 3 1.5 400 128", "/impulse/copy 1 2 1 3",
                  "/impulse/read 2 2 1 0 0 0 1 ir.wav", "/impulse/dirac 2 1 1 4096", "/impulse/dirac 2 1 1 4095")
        self.null("all.conf", 2)

    def test_hilbert(self):
        self.null(self.FOLDER + "hilbert.conf", 1)

    def test_ambisonics(self):
        self.null(self.FOLDER + "ambisonic/uhjenc.conf", 4)
        self.null(self.FOLDER + "ambisonic/uhjdec.conf", 2)

    def test_files(self):
        self.null(self.FOLDER + "demo-reverbs/street.conf", 1)
        self.null(self.FOLDER + "xtalk-cancel/EYCv2-48.conf", 2)
        self.null(self.FOLDER + "octave-band/octband-48.conf", 1)

    def test_64_channels(self):
        self.null(self.FOLDER + "stresstest/stress1.conf", 64)


if __name__ == "__main__":
    rig.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Results of `partita convolve` and `correlate` against scipy.signal in double precision: modes, slices, lags,
decimation, channels, sample types, resampling, values."""
import itertools
import re

import numpy as np
import scipy.signal

import rig
import schemas
from rig import Case, gate, parse_wav, wav_bytes


def expect(x, h, mode="full", correlate=False):
    """SciPy's result in double precision, channel by channel for x [channels, frames]."""
    wide = [np.asarray(a, "c16" if a.dtype.kind == "c" else "f8") for a in (x, h)]
    apply = scipy.signal.correlate if correlate else scipy.signal.convolve
    if wide[0].ndim == 1:
        return apply(wide[0], wide[1], mode, "direct" if len(x) < 300 else "auto")
    rows = wide[1] if wide[1].ndim == 2 else [wide[1]] * len(wide[0])
    return np.stack([apply(row, taps, mode, "auto") for row, taps in zip(wide[0], rows)])


def typical(x, h):
    """RMS of an output that depends on all taps."""
    return np.sqrt(np.mean(np.abs(x)**2)) * np.linalg.norm(h)


class ArrayCase(Case):
    def noise(self, *shape, dtype="f4"):
        x = self.random.standard_normal(shape)
        if np.dtype(dtype).kind == "c":
            x = x + 1j * self.random.standard_normal(shape)
        return x.astype(dtype)

    def filter(self, x, h, *options, command="convolve", out="y.npy"):
        np.save("x.npy", x)
        np.save("h.npy", h)
        self.run_program(command, *options, "h.npy", "x.npy", out)
        return np.load(out) if out.endswith(".npy") else None


class Results(ArrayCase):
    def test_modes_types_lengths(self):
        lengths = [(1, 1), (1, 5), (5, 1), (7, 7), (8, 3), (3, 8), (200, 64), (64, 201), (5000, 333), (40000, 4097)]
        for (n, m), mode, command in itertools.product(lengths, ("full", "same", "valid"), ("convolve", "correlate")):
            for dtype in ("f4", "f8", "c8", "c16"):
                x, h = self.noise(n, dtype=dtype), self.noise(m, dtype=dtype)
                with self.subTest(n=n, m=m, mode=mode, command=command, dtype=dtype):
                    y = self.filter(x, h, "--mode", mode, command=command)
                    self.assertEqual(y.dtype, x.dtype)
                    self.close(y, expect(x, h, mode, command == "correlate"), gate(dtype), typical(x, h))

    def test_mixed_types_promote_as_in_scipy(self):
        for a, b in itertools.product(("f4", "f8", "c8", "c16"), repeat=2):
            x, h = self.noise(900, dtype=a), self.noise(50, dtype=b)
            with self.subTest(signal=a, taps=b):
                y = self.filter(x, h)
                self.assertEqual(y.dtype, np.result_type(a, b))
                self.close(y, expect(x, h))

    def test_pipes_in_every_mode(self):
        for n, m, mode in itertools.product((1, 30, 5000), (1, 31, 800), ("full", "same", "valid")):
            x, h = self.noise(n), self.noise(m)
            np.save("h.npy", h)
            with self.subTest(n=n, m=m, mode=mode):
                done = self.run_program("convolve", "--mode", mode, "--format", "rf32_le", "h.npy", "-", "-",
                                        stdin=x.tobytes())
                self.close(np.frombuffer(done.stdout, "<f4"), expect(x, h, mode), None, typical(x, h))

    def test_slices(self):
        x, h = self.noise(3000), self.noise(257)
        full = expect(x, h)
        for first, last in [(0, 1), (0, 3256), (1000, 1001), (255, 258), (3255, 3256), (2999, 3256), (500, 2800)]:
            with self.subTest(first=first, last=last):
                self.close(self.filter(x, h, "--first", first, "--last", last), full[first:last], None, typical(x, h))
        self.close(self.filter(x, h, "--first", 2000), full[2000:])
        self.close(self.filter(x, h, "--last", 77), full[:77])

    def test_slices_beyond_the_result_are_zero(self):
        x, h = self.noise(100), self.noise(10)
        y = self.filter(x, h, "--first", -5, "--last", 120)
        self.close(y, np.concatenate([np.zeros(5), expect(x, h), np.zeros(11)]))
        self.assertTrue(np.all(y[:5] == 0) and np.abs(y[-11:]).max() < 1e-5)
        far = self.filter(x, h, "--first", 1000, "--last", 1010)
        self.assertTrue(np.array_equal(far, np.zeros(10, "f4")))

    def test_slices_of_correlation_are_lags(self):
        x, h = self.noise(400), self.noise(60)
        full = expect(x, h, correlate=True)  # lag 0 is sample 59
        self.close(self.filter(x, h, "--first", -10, "--last", 20, command="correlate"), full[49:79])

    def test_max_lag(self):
        x, h = self.noise(2000, dtype="c8"), self.noise(500, dtype="c8")
        full = np.concatenate([np.zeros(400), expect(x, h, correlate=True), np.zeros(400)])
        for lag in (0, 1, 30, 499, 600):
            with self.subTest(lag=lag):
                y = self.filter(x, h, "--max-lag", lag, command="correlate")
                self.close(y, full[400 + 499 - lag:400 + 499 + lag + 1], None, typical(x, h))

    def test_template_is_found_at_its_position(self):
        h = self.noise(300)
        x = 0.01 * self.noise(5000)
        x[1234:1534] += h
        y = self.filter(x, h, "--first", 0, command="correlate")
        self.assertEqual(int(np.argmax(y)), 1234)

    def test_stride(self):
        x, h = self.noise(5003), self.noise(129)
        full = expect(x, h)
        for stride in (2, 3, 7, 64):
            with self.subTest(stride=stride):
                self.close(self.filter(x, h, "--stride", stride), full[::stride])
                self.close(self.filter(x, h, "--stride", stride, "--mode", "same"), full[64:64 + 5003][::stride])
                self.close(self.filter(x, h, "--stride", stride, "--first", 1001, "--last", 2000),
                           full[1001:2000:stride])
                self.close(self.filter(x, h, "--stride", stride, "--threads", 2), full[::stride])

    def test_engines_agree(self):
        x, h = self.noise(2, 20000), self.noise(2, 400)
        for engine in ("direct", "cpu/direct", "overlap-save", "cpu/overlap-discard", "partitioned"):
            with self.subTest(engine=engine):
                self.close(self.filter(x, h, "--engine", engine), expect(x, h))
        for engine in ("cpu/overlap-add", "overlap-add:steps", "cpu/overlap-add:5-steps"):
            self.close(self.filter(x, h, "--engine", engine, "--threads", 2), expect(x, h))

    def test_block_limits_do_not_change_results(self):
        x, h = self.noise(3, 9000), self.noise(1500)
        reference = expect(x, h)
        for block in (1, 16, 100, 1 << 20):
            with self.subTest(block=block):
                self.close(self.filter(x, h, "--block", block), reference)

    def test_long_filters_in_small_calls(self):
        """With --block 64 and a long filter the planner chooses partitions; the result is the same."""
        x, h = self.noise(2, 30000), self.noise(40000) / 200
        self.close(self.filter(x, h, "--block", 64), expect(x, h))
        self.close(self.filter(x, h, "--block", 64, "--engine", "partitioned", "--stride", 3), expect(x, h)[..., ::3])
        done = self.run_program("convolve", "--block", 64, "--json", "h.npy", "x.npy", "y.npy")
        self.assertEqual(schemas.load(done.stdout)["engine"], "cpu/partitioned")
        alone = self.read("y.npy")
        done = self.run_program("convolve", "--block", 64, "--json", "--threads", 2, "h.npy", "x.npy", "y.npy")
        self.assertEqual(schemas.load(done.stdout)["calls"]["frames"], 64)
        self.assertEqual(self.read("y.npy"), alone) # bit for bit

    def test_threads(self):
        for dtype, channels in (("f4", 1), ("c16", 2), ("f8", 3), ("c8", 1)):
            x, h = self.noise(channels, 30000, dtype=dtype), self.noise(4000, dtype=dtype)
            for command in ("convolve", "correlate"):
                with self.subTest(dtype=dtype, command=command):
                    y = self.filter(x, h, "--threads", 2, command=command)
                    self.close(y, expect(x, h, correlate=command == "correlate"))

    def test_threads_on_short_files(self):
        """One segment as long as the signal and its tail, for any stride and start."""
        np.save("h.npy", self.noise(600))
        np.save("x.npy", self.noise(4000))
        said = self.run_program("convolve", "-v", "-t", 2, "h.npy", "x.npy", "y.npy").stderr.decode()
        self.assertNotRegex(said, r"\d{6}")
        for n in (0, 1, 599, 4000):
            x, h = self.noise(n), self.noise(600)
            full = np.convolve(x, h) if n else np.zeros(0)
            for stride, first in ((1, 0), (7, 0), (7, 3), (1000, 599)):
                with self.subTest(n=n, stride=stride, first=first):
                    np.save("h.npy", h)
                    np.save("x.npy", x)
                    self.run_program("convolve", "-t", 2, "--stride", stride, "--first", first, "h.npy", "x.npy", "y.npy")
                    self.close(np.load("y.npy"), full[first::stride], typical=np.sqrt(np.mean(full**2)) if n else 0)

    def test_threads_over_several_segments(self):
        """With eight channels segments have 131072 frames; there are four, the last one shorter."""
        x, h = self.noise(8, 400000), self.noise(8, 700)
        for command in ("convolve", "correlate"):
            y = self.filter(x, h, "--threads", 2, command=command)
            taps = h[:, ::-1] if command == "correlate" else h
            self.close(y, scipy.signal.oaconvolve(x.astype("f8"), taps.astype("f8"), axes=1))

    def test_parallel_segments_give_the_same_bytes(self):
        """With two and three threads each segment is filtered by one thread; five threads are more
        than there are segments."""
        x, h = self.noise(8, 500000), self.noise(8, 700)
        for options in ((), ("--stride", 3, "--first", 5), ("--first", -300, "--last", 400100)):
            y = [self.filter(x, h, "--threads", threads, *options) for threads in (2, 3, 5)]
            self.assertEqual(y[0].tobytes(), y[1].tobytes())
            self.assertEqual(y[0].tobytes(), y[2].tobytes())

    def test_one_channel_over_many_segments(self):
        """Nine segments, more than there are buffers, read to where they are filtered and written from there. Shards
        are the oracle of the last bits: one thread, in the same segments."""
        x, h = self.noise(9 << 20), self.noise(300)
        for options in ((), ("--first", 1500000), ("--stride", 3, "--last", 9000001)):
            y = self.filter(x, h, "--threads", 2, *options)
            self.assertEqual(self.filter(x, h, "--range", "1/1", *options).tobytes(), y.tobytes())
            if not options:
                self.close(y, expect(x, h))

    def test_faults_with_segments_in_flight(self):
        x, h = self.noise(8, 500000), self.noise(8, 700)
        x[3, 450000] = np.nan
        np.save("h.npy", h)
        np.save("x.npy", x)
        run = ("convolve", "--threads", 3)
        self.fails(*run, "--nan", "error", "h.npy", "x.npy", "y.npy", says="NaN")
        self.fails(*run, "h.npy", "x.npy", "/dev/full", says="No space")

    def test_gain(self):
        x, h = self.noise(100), self.noise(5)
        self.close(self.filter(x, h, "--gain", -20), expect(x, h) / 10)

    def test_precision(self):
        x, h = self.noise(5000), self.noise(800)
        y = self.filter(x, h, "--precision", "f64")
        self.assertEqual(y.dtype, np.dtype("f8"))
        self.close(y, expect(x, h))
        narrow = self.filter(x.astype("f8"), h.astype("f8"), "--precision", "f32")
        self.assertEqual(narrow.dtype, np.dtype("f4"))


class TakenWithAWord(ArrayCase):
    def test_what_is_probably_a_slip_is_said(self):
        self.write("ir.wav", wav_bytes(np.full((100, 1), 300), rate=48000))
        self.write("in.wav", wav_bytes(np.full((500, 1), 3000), rate=48000))
        self.write("silence.wav", wav_bytes(np.zeros((500, 1), int), rate=48000))
        np.save("in.npy", np.ones(500, "f4"))
        for arguments, says in (
                (["--first", -5, "ir.wav", "in.wav"], "--first -5: the result begins with 5 frames of silence"),
                (["--ir-fade", "100s", "ir.wav", "in.wav"], "--ir-fade: 4800000 frames are more than the 100 of ir.wav"),
                (["--normalize=-1", "ir.wav", "silence.wav"], "--normalize: the result is silent and stays so"),
                (["ir.wav", "in.npy"], "in.npy: has no sample rate and is taken to have the 48000 Hz of ir.wav")):
            for quiet in ([], ["-q"]):
                said = self.run_program("convolve", *quiet, *arguments, "y.wav").stderr.decode()
                self.assertEqual(says in said, not quiet, said)
        # IR and IN exchanged: the long recording is named first.
        self.write("long.wav", wav_bytes(np.full((61000, 1), 300), rate=1000))
        self.write("minute.wav", wav_bytes(np.full((60000, 1), 300), rate=1000))
        self.write("short.wav", wav_bytes(np.full((6000, 1), 300), rate=1000))
        self.write("half.wav", wav_bytes(np.full((6100, 1), 300), rate=1000))
        says = "long.wav is more than ten times as long as short.wav; if they were exchanged by mistake, IR comes before IN"
        for arguments, hint in ((["long.wav", "short.wav"], True), (["long.wav", "half.wav"], False),
                                (["minute.wav", "one.txt"], False), (["short.wav", "long.wav"], False),
                                (["--up", 2, "--resample-ir", "long.wav", "short.wav"], True)):
            self.write("one.txt", b"1\n")
            said = self.run_program("convolve", "--gain", -90, *(["--rate", 1000] if "one.txt" in arguments else []),
                                    *arguments, "y.wav").stderr.decode()
            self.assertEqual(says in said, hint, said)
            self.assertEqual("exchanged" in said, hint, said)
        for arguments in (["--first", 5, "ir.wav", "in.wav"], ["--ir-fade", 50, "ir.wav", "in.wav"],
                          ["--rate", 8000, "in.npy", "in.npy"], ["--normalize=-1", "ir.wav", "in.wav"]):
            self.assertEqual(self.run_program("convolve", *arguments, "y.wav").stderr, b"")


class Muted(Case):
    def test_a_configuration_that_mutes_all_is_silent(self):
        self.write("in.wav", wav_bytes(np.full((500, 2), 3000), rate=8000))
        self.write("mute.yml", b"""devices:
  samplerate: 8000
  capture: {type: Stdin, channels: 2, format: S16LE}
  playback: {type: Stdout, channels: 2, format: S16LE}
mixers:
  none:
    channels: {in: 2, out: 2}
    mapping:
      - {dest: 0, sources: [{channel: 0, gain: 0, mute: true}]}
      - {dest: 1, mute: true, sources: [{channel: 1, gain: 0}]}
pipeline:
  - {type: Mixer, name: none}
""")
        said = self.run_program("convolve", "--config", "mute.yml", "in.wav", "y.wav").stderr.decode()
        self.assertIn("mute.yml: has no path from an input to an output: the result is silent", said)
        y = parse_wav(self.read("y.wav"))[1]
        self.assertEqual((y.shape, abs(y).max()), ((500, 2), 0))


class ErrorReach(ArrayCase):
    def test_a_quiet_passage_after_a_loud_one(self):
        """180 dB apart. Beyond the taps the quiet results are sums of quiet products: with a reach of 1 their error is at
        most 2000 roundings of 2^-24 of the sum of magnitudes, which is about sqrt(2000) times a result. By transforms,
        the default, it is that of the loud passage."""
        x, h = self.noise(60000), self.noise(2000)
        x[:30000] *= 1e6
        x[30000:] *= 1e-3
        expected = expect(x, h)
        quiet = slice(32000, 60000)
        bound = 2000 * 2.0 ** -24 * expect(abs(x), abs(h))[quiet].max()
        for more in ([], ["--threads", 2], ["--block", 256], ["--range", "1/1"]):
            plain = abs(self.filter(x, h, *more) - expected)[quiet].max()
            exact = abs(self.filter(x, h, "--error-reach", 1, *more) - expected)[quiet].max()
            self.assertLess(exact, bound)
            if more != ["--block", 256]:  # whose transforms are short
                self.assertGreater(plain, bound)
        # A reach of 512 frames: right 512 frames behind the taps.
        near = self.filter(x, h, "--error-reach", 512)
        self.assertLess(abs(near - expected)[32512:60000].max(), bound)
        self.fails("convolve", "--error-reach", 0, "h.npy", "x.npy", "y.npy", rc=2, says="--error-reach 0")


class Channels(ArrayCase):
    def test_mono_taps_for_every_channel(self):
        x, h = self.noise(5, 700), self.noise(40)
        self.close(self.filter(x, h), expect(x, h))

    def test_as_many_taps_as_channels(self):
        x, h = self.noise(3, 700, dtype="f8"), self.noise(3, 40, dtype="f8")
        self.close(self.filter(x, h), expect(x, h))

    def test_mono_input_to_many(self):
        x, h = self.noise(700), self.noise(4, 40)
        self.close(self.filter(x, h), expect(np.stack([x] * 4), h))

    def test_matrix(self):
        x, paths = self.noise(2, 700), self.noise(3, 2, 40)
        y = self.filter(x, paths.reshape(6, 40), "--matrix")
        expected = [sum(expect(x[i], paths[o, i]) for i in range(2)) for o in range(3)]
        self.close(y, np.stack(expected))

    def test_matrix_of_one_input(self):
        x, paths = self.noise(100), self.noise(3, 9)
        self.close(self.filter(x, paths, "--matrix"), expect(np.stack([x] * 3), paths))

    def test_channel_mismatches_are_refused(self):
        np.save("x.npy", self.noise(2, 50))
        np.save("h.npy", self.noise(3, 5))
        self.fails("convolve", "h.npy", "x.npy", "y.npy", 
                   says=["h.npy: 3 channels of 5 frames ([channels, frames]); x.npy has 2 channels", "1 or 2", "--matrix"])
        self.fails("convolve", "--matrix", "h.npy", "x.npy", "y.npy", says=["3 channels", "2 channels", "multiple"])


class Warnings(Case):
    def said(self, *arguments, stdin=b""):
        return self.run_program("convolve", *arguments, stdin=stdin).stderr.decode()

    def test_clipping_warning_suggests_a_gain(self):
        """The suggested gain avoids clipping; float samples are suggested only if the file can store them."""
        self.write("h.txt", b"2.54\n")
        self.write("in.wav", wav_bytes(self.random.integers(-32768, 32767, (4000, 1))))
        for out, more, floats in (("y.flac", [], False), ("y.flac", ["-o", "i24"], False), ("y.wav", [], True),
                                  ("y.wav", ["-o", "u8"], True), ("y.aiff", [], True), ("y.raw", ["-o", "i16"], True)):
            for gain in (0, -3.2):
                with self.subTest(out=out, more=more, gain=gain):
                    arguments = [*more, "--gain", gain, "h.txt", "in.wav", out]
                    said = self.said(*arguments)
                    self.assertEqual("--output-format f32" in said, floats)
                    fits = float(re.search(r"clipped; --gain (\S+) or --gain auto avoids it", said).group(1))
                    self.assertLess(fits, -8)
                    self.assertGreater(fits, -8.4)
                    arguments[arguments.index(gain)] = fits
                    self.assertEqual(self.said(*arguments), "")
        self.run_program("convolve", "-o", "f32", "h.txt", "in.wav", "y.wav")

    def test_empty_inputs(self):
        self.write("h.txt", b"1\n")
        np.save("x.npy", np.zeros(0, "f4"))
        self.assertEqual(self.said("h.txt", "x.npy", "y.npy"), "partita convolve: x.npy: has no samples\n")
        self.assertEqual(self.said("-f", "f32", "h.txt", "-", "-"), "partita convolve: standard input: has no samples\n")
        self.assertEqual(self.said("-q", "h.txt", "x.npy", "y.npy"), "")
        np.save("x.npy", np.zeros(5, "f4"))
        self.assertIn("5 frames of silence", self.said("--first", -5, "--last", 0, "h.txt", "x.npy", "y.npy"))

    def test_level_of_silence(self):
        self.write("h.txt", b"1\n")
        np.save("x.npy", np.zeros(50, "f4"))
        said = self.said("--stats", "h.txt", "x.npy", "y.npy")
        self.assertRegex(said, r"peak +0 \(-inf dBFS\)\nrms +0 \(-inf dBFS\)")

    def test_standard_input_is_named(self):
        self.write("hall.wav", wav_bytes(np.ones((5, 1), int)))
        np.save("h.npy", np.ones((3, 5), "f4"))
        self.fails("convolve", "-f", "f32", "-r", 1000000, "hall.wav", "-", "-",
                   says="hall.wav: sample rate 48000 Hz differs from the 1000000 Hz of standard input")
        self.fails("convolve", "-f", "f32", "-c", 2, "h.npy", "-", "-", says="standard input has 2 channels")


class Audio(Case):
    def convolve(self, x, h, *options, bits=16, rate=48000, ir_rate=48000, out="out.wav", rc=0):
        self.write("in.wav", wav_bytes(x, rate=rate, bits=bits))
        self.write("ir.wav", wav_bytes(np.asarray(h, "f4"), rate=ir_rate, bits=32))
        self.run_program("convolve", *options, "ir.wav", "in.wav", out, rc=rc)
        return parse_wav(self.read(out)) if out.endswith(".wav") else None

    def test_every_sample_type_survives_an_identity(self):
        for bits, scale in ((8, 127), (16, 32767), (24, 2**23 - 1)):
            x = self.random.integers(-scale - 1, scale, (999, 2), endpoint=True)
            with self.subTest(bits=bits):
                rate, y, got_bits, _ = self.convolve(x, [1.0], *(["-o", "u8"] if bits == 8 else []), bits=bits)
                self.assertEqual((rate, got_bits), (48000, bits))
                self.assertTrue(np.array_equal(y * (scale + 1), x))

    def test_floats_survive_an_identity(self):
        for bits in (32, 64):
            x = self.random.standard_normal((999, 2)).astype("f%d" % (bits // 8))
            with self.subTest(bits=bits):
                _, y, got_bits, _ = self.convolve(x, [1.0], bits=bits)
                self.assertEqual(got_bits, bits)
                self.assertTrue(np.array_equal(y, x))

    def test_pcm_rounds_to_the_nearest(self):
        x = self.random.integers(-20000, 20000, (500, 1))
        _, y, _, _ = self.convolve(x, [0.37])
        exact = x * float(np.float32(0.37))
        self.assertLessEqual(np.abs(y * 32768 - exact).max(), 0.5 + 1e-2)

    def test_over_range_clips_counts_and_never_wraps(self):
        x = np.array([[30000], [-30000], [100]] * 10)
        self.write("in.wav", wav_bytes(x))
        self.write("ir.wav", wav_bytes(np.array([2.0], "f4"), bits=32))
        done = self.run_program("convolve", "--json", "ir.wav", "in.wav", "out.wav")
        _, y, _, _ = parse_wav(self.read("out.wav"))
        self.assertTrue(np.array_equal(y[:, 0] * 32768, np.tile([32767, -32768, 200], 10)))
        self.assertEqual(schemas.load(done.stdout)["clipped"], 20)
        self.assertIn(b"20 samples clipped", done.stderr)

    def test_float_output_stores_values_beyond_full_scale(self):
        _, y, bits, _ = self.convolve(np.array([[30000]] * 5), [4.0], "--output-format", "f32")
        self.assertEqual(bits, 32)
        self.assertTrue(np.allclose(y, 30000 / 32768 * 4))

    def test_output_formats(self):
        for name, bits in (("u8", 8), ("i16", 16), ("i24", 24), ("i32", 32), ("f32", 32), ("f64", 64)):
            with self.subTest(name=name):
                _, y, got, _ = self.convolve(np.array([[16384], [-8192]]), [1.0], "--output-format", name)
                self.assertEqual(got, bits)
                self.assertTrue(np.allclose(y[:, 0], [0.5, -0.25]))

    def test_decimation_lowers_the_rate(self):
        rate, y, _, _ = self.convolve(np.arange(10).reshape(-1, 1) * 100, [1.0], "--stride", 3)
        self.assertEqual(rate, 16000)
        self.assertTrue(np.array_equal(y[:, 0] * 32768, [0, 300, 600, 900]))

    def test_rates_must_agree(self):
        self.write("in.wav", wav_bytes(np.zeros((10, 1), int), rate=48000))
        self.write("ir.wav", wav_bytes(np.ones((10, 1), int), rate=44100))
        self.fails("convolve", "ir.wav", "in.wav", "out.wav",
                   says=["ir.wav", "44100", "in.wav", "48000", "--resample-ir"])

    def test_resampled_taps_keep_their_response(self):
        """The gain is exact within 0.01 dB up to 20 kHz, for responses that start with their peak."""
        responses = {"impulse": np.eye(1, 64)[0], "decay": np.exp(-np.arange(2000) / 200.0) / 200,
                     "low-pass": scipy.signal.firwin(255, 0.5)}
        for name, h in responses.items():
            h = h.astype("f4")
            for ir_rate, rate in ((44100, 48000), (96000, 48000), (48000, 44100), (44101, 48000)):
                with self.subTest(name=name, ir_rate=ir_rate, rate=rate):
                    impulse = np.zeros((6000, 1), "f4")
                    impulse[3000] = 1
                    _, y, _, _ = self.convolve(impulse, h, "--resample-ir", "--precision", "f64", bits=32, rate=rate,
                                               ir_rate=ir_rate)
                    hz = np.array([50.0, 1000.0, 5000.0, 9000.0, 15000.0, 20000.0])
                    if name == "low-pass":
                        hz = hz[:4] * ir_rate / 48000
                    before = scipy.signal.freqz(h.astype("f8"), worN=hz, fs=ir_rate)[1]
                    after = scipy.signal.freqz(y[:, 0], worN=hz, fs=rate)[1]
                    decibels = 20 * np.log10(np.abs(after) / np.abs(before))
                    self.assertLess(np.abs(decibels).max(), 0.01, decibels)
                    delay = np.angle(after / before * np.exp(2j * np.pi * hz * 3000 / rate))
                    self.assertLess(np.abs(delay[:2]).max(), 1e-2, delay)

    def test_resampled_result_has_the_nominal_length(self):
        impulse = np.zeros((1000, 1), "f4")
        _, y, _, _ = self.convolve(impulse, np.ones(441), "--resample-ir", bits=32, rate=48000, ir_rate=44100)
        self.assertEqual(len(y), 1000 + 480 - 1)

    def test_flac_in_and_out(self):
        x = self.random.integers(-9000, 9000, (3000, 2))
        self.write("in.wav", wav_bytes(x))
        self.write("ir.txt", b"1\n")
        self.run_program("convolve", "ir.txt", "in.wav", "mid.flac")
        self.run_program("convolve", "ir.txt", "mid.flac", "out.wav")
        _, y, bits, _ = parse_wav(self.read("out.wav"))
        self.assertEqual(bits, 16)
        self.assertTrue(np.array_equal(y * 32768, x))

    def test_libsndfile_formats_round_trip(self):
        x = self.random.integers(-9000, 9000, (3000, 2))
        self.write("in.wav", wav_bytes(x))
        self.write("ir.txt", b"1\n")
        for name in ("a.aiff", "a.au", "a.caf", "a.w64"):
            with self.subTest(name=name):
                self.run_program("convolve", "ir.txt", "in.wav", name)
                self.run_program("convolve", "ir.txt", name, "back.wav")
                self.assertTrue(np.array_equal(parse_wav(self.read("back.wav"))[1] * 32768, x))

    def test_stats_are_correct(self):
        x = (self.random.standard_normal((5000, 2)) * 0.1).astype("f4")
        self.write("in.wav", wav_bytes(x, bits=32))
        self.write("ir.wav", wav_bytes(np.array([0.5, 0.25, 0.125], "f4"), bits=32))
        stats = schemas.load(self.run_program("convolve", "--json", "ir.wav", "in.wav", "out.wav").stdout)
        y = parse_wav(self.read("out.wav"))[1]
        self.assertAlmostEqual(stats["peak"], np.abs(y).max(), places=6)
        self.assertAlmostEqual(stats["rms"], np.sqrt(np.mean(y**2)), places=6)
        self.assertEqual((stats["frames_in"], stats["frames_out"], stats["tail"], stats["taps"]), (5000, 5002, 2, 3))
        text = self.run_program("convolve", "--stats", "ir.wav", "in.wav", "out.wav").stderr.decode()
        for word in ("peak", "rms", "tail 2", "times real time"):
            self.assertIn(word, text)
        # What means nothing for a file, or did not happen.
        for word in ("clipped", "not finite", "latency", "call"):
            self.assertNotIn(word, text)
        x[0] = np.nan
        self.write("in.wav", wav_bytes(100 * x, bits=32))
        text = self.run_program("convolve", "--stats", "--block", 64, "-o", "i16", "ir.wav", "in.wav", "out.wav").stderr.decode()
        for word in ("clipped ", "not finite  2 samples read, set to 0", "latency removed 0", "call time"):
            self.assertIn(word, text)

    def test_calls_are_timed(self):
        self.write("in.wav", wav_bytes(np.zeros((6400, 1), "f4"), bits=32))
        self.write("x.raw", b"\0" * 4 * 6400)
        self.write("ir.txt", b"1\n")
        calls = schemas.load(self.run_program("convolve", "--block", 64, "--json", "ir.txt", "in.wav", "o.wav").stdout)["calls"]
        self.assertGreaterEqual(calls["count"], 100)
        self.assertEqual(calls["frames"], 64)
        self.assertGreaterEqual(calls["missed"], 0)
        for less, more in (("p50", "p99"), ("p99", "p999"), ("p999", "max"), ("mean", "max")):
            self.assertLessEqual(calls[less], calls[more])
        raw = self.run_program("convolve", "--json", "-f", "f32", "ir.txt", "x.raw", "o.raw")
        self.assertIsNone(schemas.load(raw.stdout)["calls"]["missed"]) # no rate, no deadline
        segments = self.run_program("convolve", "--threads", 2, "--json", "ir.txt", "in.wav", "o.wav")
        self.assertIsNone(schemas.load(segments.stdout)["calls"])

    def test_verbose_reports_resampling(self):
        self.write("in.wav", wav_bytes(np.zeros((10, 1), int)))
        self.write("ir.wav", wav_bytes(np.ones((441, 1), int), rate=44100))
        done = self.run_program("convolve", "-v", "--resample-ir", "ir.wav", "in.wav", "out.wav")
        self.assertIn(b"ir.wav: resampled from 44100 Hz to the 48000 Hz of in.wav, 441 frames to 480", done.stderr)

    def test_rate_must_not_contradict_the_file(self):
        self.write("in.wav", wav_bytes(np.zeros((10, 1), int)))
        self.write("ir.txt", b"1\n")
        self.fails("convolve", "--rate", 44100, "ir.txt", "in.wav", "out.wav",
                   says="--rate 44100: in.wav has 48000 Hz; leave out --rate")
        self.run_program("convolve", "--rate", 48000, "ir.txt", "in.wav", "out.wav")

    def test_json_is_not_mixed_with_samples(self):
        self.write("in.wav", wav_bytes(np.ones((10, 1), int)))
        self.write("ir.txt", b"1\n")
        done = self.run_program("convolve", "--json", "ir.txt", "in.wav", "-")
        self.assertEqual(len(parse_wav(done.stdout)[1]), 10)
        self.assertEqual(schemas.load(done.stderr)["frames_out"], 10)


class Values(Case):
    def save(self, x, h):
        np.save("x.npy", x)
        np.save("h.npy", h)

    def test_nan_is_replaced_and_counted(self):
        x = self.random.standard_normal(2000).astype("f4")
        x[[3, 700]] = np.nan
        x[1500] = np.inf
        h = self.random.standard_normal(50).astype("f4")
        self.save(x, h)
        done = self.run_program("convolve", "--json", "h.npy", "x.npy", "y.npy")
        clean = np.where(np.isfinite(x), x, 0)
        self.close(np.load("y.npy"), scipy.signal.convolve(clean.astype("f8"), h.astype("f8")))
        self.assertEqual(schemas.load(done.stdout)["not_finite_read"], 3)
        self.assertIn(b"3 NaN or infinite samples were read as 0", done.stderr)

    def test_nan_error(self):
        x = np.zeros(20000, "f4")
        x[17000] = np.nan
        self.save(x, np.ones(3, "f4"))
        self.fails("convolve", "--nan", "error", "h.npy", "x.npy", "y.npy", says=["x.npy", "NaN"])

    def test_a_propagated_nan_is_counted_and_ends(self):
        x = np.ones(60000, "f4")
        x[100] = np.nan
        self.save(x, np.ones(9, "f4"))
        done = self.run_program("convolve", "--json", "--nan", "propagate", "--engine", "direct", "h.npy", "x.npy", "y.npy")
        y = np.load("y.npy")
        self.assertTrue(np.array_equal(np.flatnonzero(np.isnan(y)), np.arange(100, 109)))
        self.assertEqual(schemas.load(done.stdout)["not_finite_written"], 9)

    def test_a_propagated_nan_reaches_the_same_frames_everywhere(self):
        """257 taps: 1000..1009 reach 1000..1265, with every engine, in shards, by calls and on several threads."""
        h = self.random.standard_normal(257).astype("f4")
        for shape in ((60000,), (2, 60000)):
            x = self.random.standard_normal(shape).astype("f4")
            x[..., 1000:1010] = np.nan
            x[..., 40000] = np.inf
            self.save(x, h)
            reached = np.zeros(60256, bool)
            reached[1000:1266] = reached[40000:40257] = True
            ways = [[], ["--engine", "direct"], ["--engine", "overlap-save"], ["--engine", "partitioned"],
                    ["--block", "64"], ["--block", "1000"], ["--threads", "2"], ["--range"],
                    ["--range", "--engine", "overlap-add"], ["--range", "--engine", "overlap-save"],
                    ["--range", "--engine", "direct"]]
            for way, stride in itertools.product(ways, (1, 3)):
                options = ["--nan", "propagate", "--stride", stride, *way[1 if "--range" in way else 0:], "h.npy", "x.npy"]
                if "--range" in way:
                    shards = [f"s{k}.npy" for k in (1, 2, 3)]
                    for k in (1, 2, 3):
                        self.run_program("convolve", "--range", f"{k}/3", *options, shards[k - 1])
                    self.run_program("join", "y.npy", *shards)
                else:
                    self.run_program("convolve", *options, "y.npy")
                y = np.load("y.npy")
                for row in y.reshape(-1, y.shape[-1]):
                    self.assertTrue(np.array_equal(~np.isfinite(row), reached[::stride]), (way, stride))

    def test_nan_becomes_zero_in_pcm(self):
        x = np.zeros(50, "f4")
        x[10] = np.nan
        self.save(x, np.ones(1, "f4"))
        self.run_program("convolve", "--nan", "propagate", "--rate", 48000, "--output-format", "i16", "--engine", "direct",
                         "h.npy", "x.npy", "out.wav")
        self.assertTrue(np.array_equal(parse_wav(self.read("out.wav"))[1], np.zeros((50, 1))))

    def test_taps_must_be_finite(self):
        for bad in (np.nan, np.inf):
            h = np.ones(9, "f4")
            h[4] = bad
            self.save(np.ones(5, "f4"), h)
            self.fails("convolve", "h.npy", "x.npy", "y.npy", says=["h.npy", "frame 4", "finite"])

    def test_zero_taps_give_zero(self):
        self.save(self.random.standard_normal(500).astype("f4"), np.zeros(100, "f4"))
        self.run_program("convolve", "h.npy", "x.npy", "y.npy")
        self.assertTrue(np.array_equal(np.load("y.npy"), np.zeros(599, "f4")))

    def test_no_taps_are_an_error(self):
        self.save(np.ones(5, "f4"), np.ones(0, "f4"))
        self.fails("convolve", "h.npy", "x.npy", "y.npy", says=["h.npy", "no samples"])

    def test_no_input_gives_no_output(self):
        for mode in ("full", "same", "valid"):
            self.save(np.ones(0, "f4"), np.ones(4, "f4"))
            self.run_program("convolve", "--mode", mode, "h.npy", "x.npy", "y.npy")
            self.assertEqual(np.load("y.npy").shape, (0,))

    def test_largest_floats_do_not_trap(self):
        x = np.array([3e38, -3e38, 3e38, 0, 0, 1], "f4")
        self.save(x, np.ones(2, "f4"))
        done = self.run_program("convolve", "--engine", "direct", "h.npy", "x.npy", "y.npy")
        y = np.load("y.npy")
        self.assertEqual(y[0], np.float32(3e38))
        self.assertEqual(y[1], 0)

    def test_accuracy_after_a_level_drop(self):
        x = 1e-4 * self.random.standard_normal(60000)
        x[:512] = self.random.standard_normal(512)
        h = np.exp(-np.arange(2000) / 200.0) * self.random.standard_normal(2000)
        x, h = x.astype("f4"), h.astype("f4")
        self.save(x, h)
        self.run_program("convolve", "--block", 4096, "h.npy", "x.npy", "y.npy")
        expected = scipy.signal.convolve(x.astype("f8"), h.astype("f8"), method="direct")
        self.close(np.load("y.npy")[20000:], expected[20000:], 1e-6)


if __name__ == "__main__":
    rig.main()

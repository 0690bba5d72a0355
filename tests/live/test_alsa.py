#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`partita live` and `partita devices` with PortAudio's ALSA code and files as devices: the output,
bit by bit, and all errors before playing starts."""
import os
import re
import signal
import termios
import time

import numpy as np

import rig_live
from rig_live import FILES, Live, convolve, diagonal, dyadic, received_sweep, rig

import schemas # rig_live makes it known
from rig import gate, parse_wav


class Devices(Live):
    def test_table_and_json(self):
        self.alsa()
        text = self.run_program("devices", env=self.environment())
        self.assertEqual(text.stderr, b"")
        for word in (b"index", b"fl_null", b"fl_in", b"fl_out", b"ALSA"):
            self.assertIn(word, text.stdout)
        listed = self.audio_devices()
        names = {d["name"]: d for d in listed}
        self.assertEqual([d["index"] for d in listed], list(range(len(listed))))
        self.assertEqual(names["fl_out"]["api"], "ALSA")
        self.assertGreaterEqual(names["fl_out"]["out_channels"], 2)
        self.assertEqual(names["fl_in"]["rate"], 48000)
        self.assertGreater(names["fl_in"]["in_latency"]["low"], 0)

    def test_none(self):
        done = self.run_program("devices", env=self.environment())
        self.assertTrue(done.stdout.startswith(b"cpu ")) # there is always a compute device
        self.assertNotIn(b"index", done.stdout)
        self.assertIn(b"no audio device", done.stderr)
        self.assertFalse(done.stdout.endswith(b"\n\n"))
        self.assertEqual(self.audio_devices(), [])

    def test_compute_devices(self):
        """The same devices in the text and, after the audio devices, in the JSON."""
        self.alsa()
        listed = self.listed_devices()
        compute = [d for d in listed if d["kind"] == "compute"]
        self.assertEqual(listed, self.audio_devices() + compute)
        self.assertEqual((compute[0]["name"], compute[0]["available"]), ("cpu", True))
        text = self.run_program("devices", env=self.environment()).stdout.decode().split("\n\n")[0]
        self.assertEqual(text.splitlines(), ["%-8s %s" % (d["name"], d["description"]) for d in compute])

    def test_library_messages_need_verbose(self):
        self.assertIn(b"ALSA lib", self.run_program("devices", "-v", env=self.environment()).stderr)
        self.alsa()
        self.ir(np.ones((1, 2)))
        said = self.live("--ir", "ir.wav", *FILES, "--duration", 0.01, "-v").stderr
        self.assertIn(b"cpu/direct", said)
        self.assertNotIn(b"ALSA lib", said)
        self.assertNotIn(b"ALSA lib", self.run_program("devices", env=self.environment()).stderr)


class Samples(Live):
    """From a file to a file."""

    def run_case(self, x, taps, n, *arguments, ir="ir.wav", outputs=None, exact=True, expected=None):
        self.alsa(x, outputs=outputs or x.shape[1])
        self.live("--ir", ir, *FILES, "--duration", n / 48000, "--record", "rec.wav", "-q", *arguments)
        expected = convolve(x, taps)[:n] if expected is None else expected
        rate, recorded, bits, _ = parse_wav(self.read("rec.wav"))
        self.assertEqual((rate, bits), (48000, 32))
        self.assertEqual(recorded.shape, expected.shape)
        if exact:
            np.testing.assert_array_equal(recorded, expected)
        else:
            self.close(recorded.astype("f4"), expected)
        whole, first, played = self.played(expected.shape[1], n)
        silent = np.flatnonzero(np.abs(expected).max(axis=1))[0]
        np.testing.assert_array_equal(played[:n - silent], recorded[silent:], "what is played is not what is recorded")
        self.assertFalse(whole[first + n - silent:].any(), "something sounds after the end")
        return recorded

    def test_exact_for_any_block(self):
        """With short taps and few bits all products and sums are exact, so the result equals the
        oracle's."""
        x, taps = dyadic(self.random, (6000, 2)), dyadic(self.random, (9, 2))
        self.ir(taps)
        for block in (0, 1, 7, 64, 100, 1000, 4096):
            with self.subTest(block=block):
                self.run_case(x, diagonal(taps), 5000, "--block", block, "--engine", "direct")

    def test_long_filter_within_the_gate(self):
        x = self.random.standard_normal((30000, 2)).astype("f4") / 16
        taps = (self.random.standard_normal((20000, 2)) / 200).astype("f4")
        self.ir(taps)
        for block in (0, 7, 64, 1024):
            with self.subTest(block=block):
                self.run_case(x, diagonal(taps), 24000, "--block", block, exact=False)

    def test_one_channel(self):
        x, taps = dyadic(self.random, (3000, 1)), dyadic(self.random, (5, 1))
        self.ir(taps)
        self.run_case(x, diagonal(taps), 2500, "--channels", 1, "--engine", "direct")

    def test_mono_to_stereo(self):
        x, taps = dyadic(self.random, (3000, 1)), dyadic(self.random, (5, 2))
        self.ir(taps)
        self.run_case(x, [[taps[:, 0]], [taps[:, 1]]], 2500, "--channels", 1, "--engine", "direct", outputs=2)

    def test_one_response_from_one_input_to_every_output(self):
        x, taps = dyadic(self.random, (3000, 1)), dyadic(self.random, (5, 1))
        self.ir(taps)
        self.run_case(x, [[taps[:, 0]]] * 3, 2500, "--channels", 1, "--out-channels", 3, "--engine", "direct",
                      outputs=3)

    def test_one_response_for_every_channel(self):
        x, taps = dyadic(self.random, (3000, 2)), dyadic(self.random, (5, 1))
        self.ir(taps)
        self.run_case(x, diagonal(np.hstack([taps, taps])), 2500, "--engine", "direct")

    def test_eight_channels(self):
        x, taps = dyadic(self.random, (3000, 8)), dyadic(self.random, (5, 8))
        self.ir(taps)
        self.run_case(x, diagonal(taps), 2500, "--engine", "direct", outputs=8)
        long_taps = (self.random.standard_normal((4000, 8)) / 100).astype("f4")
        self.ir(long_taps)
        self.run_case(x, diagonal(long_taps), 2500, "--block", 64, exact=False)

    def test_matrix(self):
        x, taps = dyadic(self.random, (3000, 2)), dyadic(self.random, (5, 4))
        self.ir(taps)
        self.run_case(x, [[taps[:, 0], taps[:, 1]], [taps[:, 2], taps[:, 3]]], 2500, "--matrix", "--engine", "direct")
        taps = dyadic(self.random, (5, 6))
        self.ir(taps)
        self.run_case(x, taps.T.reshape(3, 2, 5), 2500, "--matrix", "--engine", "direct", outputs=3)

    def test_several_threads_give_the_same(self):
        x = self.random.standard_normal((30000, 2)).astype("f4") / 16
        taps = (self.random.standard_normal((20000, 2)) / 200).astype("f4")
        self.ir(taps)
        one = self.run_case(x, diagonal(taps), 24000, "--block", 64, exact=False)
        two = self.run_case(x, diagonal(taps), 24000, "--block", 64, "--threads", 2, exact=False)
        np.testing.assert_array_equal(one, two)

    def test_denormals_with_several_threads(self):
        """Denormal products are zero on all threads, and are not slower."""
        self.alsa((self.random.standard_normal((30000, 2)) * 2.0**-62).astype("f4"))
        self.ir((self.random.standard_normal((20000, 2)) * 2.0**-62).astype("f4"))
        recorded = []
        for threads in (1, 2, 3):
            self.live("--ir", "ir.wav", *FILES, "--duration", 24000 / 48000, "--record", "rec.wav", "-q", "--block", 64,
                      "--threads", threads)
            recorded.append(parse_wav(self.read("rec.wav"))[1])
        self.assertGreater(np.abs(recorded[0]).max(), 0)
        np.testing.assert_array_equal(recorded[0], recorded[1])
        np.testing.assert_array_equal(recorded[0], recorded[2])

    def test_gain_and_dry(self):
        """-6.02 dB is not a power of two: the result has three more roundings than the exact one."""
        x, taps = dyadic(self.random, (3000, 2)), dyadic(self.random, (5, 2))
        self.ir(taps)
        self.alsa(x)
        self.live("--ir", "ir.wav", *FILES, "--duration", 2500 / 48000, "--record", "rec.wav", "--gain", -3, "--dry",
                  -9, "-q")
        expected = 10**(-3 / 20) * (convolve(x, diagonal(taps))[:2500] + 10**(-9 / 20) * x[:2500].astype("f8"))
        got = parse_wav(self.read("rec.wav"))[1]
        self.assertLessEqual(np.abs(got - expected).max(), 4 * 2.0**-24 * (np.abs(expected).max() + 1))

    def test_resampled_response(self):
        """A response at 44.1 kHz is refused. Resampled it has the same level and position, except
        for a lead of less than a millisecond, which is part of the onset."""
        taps = np.zeros((2000, 1), "f4")
        taps[882] = 1
        self.ir(taps, rate=44100)
        x = np.zeros((8000, 2), "f4")
        x[1000] = 0.5
        self.alsa(x)
        self.fails_live("--ir", "ir.wav", *FILES, "--rate", 48000, says=["44100", "48000", "--resample-ir"])
        done = self.live("--ir", "ir.wav", *FILES, "--rate", 48000, "--duration", 7000 / 48000, "--record", "rec.wav", "--resample-ir",
                         "-q", "--json")
        status = schemas.load(done.stdout.splitlines()[-1])
        got = parse_wav(self.read("rec.wav"))[1][:, 0]
        peak = abs(got).argmax()
        self.assertGreaterEqual(peak, 1000 + 960)
        self.assertLess(peak, 1000 + 960 + 48)
        self.assertEqual(round(status["latency"]["onset"] * 48000), np.flatnonzero(abs(got) >= 0.1 * abs(got[peak]))[0] - 1000)
        self.assertAlmostEqual(got.sum(), 0.5, places=2) # the gain at 0 Hz


class Cancel(Live):
    """--cancel: the echo of the last inputs is removed from the first ones."""

    def echoes(self, microphones, loudspeakers, n):
        """A voice of each microphone, which begins late, what it receives, and what the loudspeakers play."""
        played = self.random.standard_normal((n, loudspeakers)) / 10
        voices = self.random.standard_normal((n, microphones)) / 100
        voices[:2 * n // 3] = 0
        rooms = self.random.standard_normal((microphones, loudspeakers, 600)) * np.exp(-np.arange(600) / 80) / 20
        return voices, convolve(played, rooms), played

    def play(self, microphones, loudspeakers, n, *arguments, taps=((1,),)):
        """Voices and residuals, filtered, in the last quarter, and the status."""
        voices, echoes, played = self.echoes(microphones, loudspeakers, n)
        self.alsa(np.hstack([voices + echoes, played]), outputs=microphones)
        done = self.live("--cancel", 640, *FILES, "--duration", n / 48000, "--record", "rec.wav", "--limiter", "off", "--json", *arguments)
        got = parse_wav(self.read("rec.wav"))[1]
        late = np.vstack([np.zeros((256, microphones)), voices])[:n]
        return convolve(late, diagonal(np.tile(taps, (1, microphones))))[-n // 4:], got[-n // 4:], schemas.load(done.stdout.splitlines()[-1])

    def test_one(self):
        """Without a filter. After two thirds of the run the filter knows the path; the voice is then the power of the microphone
        less an echo that is 20 dB louder."""
        voices, got, status = self.play(1, 1, 96000)
        self.assertEqual(got.shape, voices.shape)
        self.assertLess(np.mean((got - voices)**2), np.mean(voices**2) / 10)
        self.assertEqual({**status["cancel"], "microphones": 1}, {"microphones": 1, "far_end": 1, "taps": 640, "latency": 0.00533333})
        self.assertEqual((len(status["in"]), len(status["out"]), status["filter"], status["taps"]), (2, 1, "", 1))

    def test_several(self):
        """Two microphones, two loudspeakers, and a filter behind the residuals."""
        taps = dyadic(self.random, (9, 1))
        self.ir(taps)
        voices, got, status = self.play(2, 2, 96000, "--ir", "ir.wav", "--far-end", 2, "--channels", 2, taps=taps)
        self.assertLess(np.mean((got - voices)**2), np.mean(voices**2) / 10)
        self.assertEqual((len(status["cancel"]["microphones"]), status["cancel"]["far_end"], len(status["in"])), (2, 2, 4))

    def test_erle(self):
        """Without a voice the echo vanishes."""
        _, echoes, played = self.echoes(1, 1, 48000)
        self.alsa(np.hstack([echoes, played]), outputs=1)
        done = self.live("--cancel", "15ms", *FILES, "--duration", 1, "--json")
        status = schemas.load(done.stdout.splitlines()[-1])["cancel"]
        self.assertGreater(status["microphones"][0]["erle"], 30)
        self.assertEqual(status["taps"], 720)

    def test_said(self):
        self.alsa(np.zeros((60000, 3)))
        done = self.live("--cancel", "10ms", "--channels", 2, *FILES, "--duration", 0.01)
        self.assertIn(b"microphones: inputs 1 to 2; far end: inputs 3 to 3; echoes up to 10.0 ms", done.stderr)
        child, controller, _ = self.open_terminal("--cancel", "10ms", "--channels", 2, *FILES[:2], "--output", "fl_null")
        seen = self.until(controller, b"keys")
        for words in (b"mic  1 [", b"mic  2 [", b"far  3 [", b"cancel  ERLE 0.0 0.0 dB, echoes up to 10.0 ms, 5.8 ms late"):
            self.assertIn(words, seen)
        os.write(controller, b"r")
        self.until(controller, b"there is no filter whose file could be read again")
        os.write(controller, b"q")
        self.ends(child)
        child, controller, _ = self.open_terminal("--cancel", 99, *FILES[:2], "--output", "fl_null", rows=4)
        self.until(controller, b" dB, ERLE 0.0 dB, load ")
        os.write(controller, b"q")
        self.ends(child)

    def test_mistakes(self):
        self.alsa()
        self.ir(np.ones((3, 2)))
        for arguments, says in ((["--ir", "ir.wav", "--far-end", 1], "--far-end is for --cancel"),
                                (["--measure", "m.wav", "--cancel", 99], "--retry, --cancel"),
                                (["--cancel", 0], "--cancel 0"), (["--cancel", "1e9"], "--cancel 1e9"), (["--cancel", "loud"], "--cancel loud"),
                                (["--cancel", 99, "--far-end", 0], "--far-end 0")):
            with self.subTest(arguments=arguments):
                self.fails_live(*arguments, rc=2, says=says)
        self.fails_live("--cancel", 99, "--far-end", 1024, *FILES, says=["fl_in: has ", " input channels; --cancel needs 1025"])
        self.fails_live("--cancel", 99, "--channels", 500, *FILES, says=["--channels 500: the device has", "free input channels"])


class Guards(Live):
    def counts(self, *arguments, rc=0):
        done = self.live(*arguments, "--json", "-q", rc=rc)
        return schemas.load(done.stdout.splitlines()[-1])

    def test_limiter(self):
        x = dyadic(self.random, (6000, 2))
        self.ir(np.ones((1, 2)))
        self.alsa(x)
        status = self.counts("--ir", "ir.wav", *FILES, "--duration", 0.1, "--gain", 40, "--record", "rec.wav")
        got = parse_wav(self.read("rec.wav"))[1]
        self.assertLessEqual(np.abs(got).max(), 1)
        self.assertGreater(np.abs(got).max(), 0.99)
        self.assertGreater(status["limited"], 1000)
        status = self.counts("--ir", "ir.wav", *FILES, "--duration", 0.1, "--gain", 40, "--record", "rec.wav",
                           "--limiter", "off")
        self.assertGreater(np.abs(parse_wav(self.read("rec.wav"))[1]).max(), 10)
        self.assertEqual(status["limited"], 0)

    def test_nonfinite_samples(self):
        """Non-finite samples are played as silence and do not spread."""
        x, taps = dyadic(self.random, (6000, 2)), dyadic(self.random, (5, 2))
        self.ir(taps)
        sick = x.copy()
        sick[100, 0], sick[2000, 1], sick[2001, 1] = np.nan, np.inf, -np.inf
        x[100, 0] = x[2000:2002, 1] = 0
        self.alsa(sick)
        status = self.counts("--ir", "ir.wav", *FILES, "--duration", 5000 / 48000, "--record", "rec.wav")
        np.testing.assert_array_equal(parse_wav(self.read("rec.wav"))[1], convolve(x, diagonal(taps))[:5000])
        self.assertEqual((status["not_finite_in"], status["not_finite_out"]), (3, 0))

    def test_recording_that_cannot_be_written(self):
        self.alsa(dyadic(self.random, (48000, 2)))
        self.ir(np.ones((1, 2)))
        os.symlink("/dev/full", "full.raw")
        done = self.live("--ir", "ir.wav", *FILES, "--duration", 0.9, "--record", "full.raw", rc=1)
        self.assertIn(b"full.raw: cannot write: No space left", done.stderr)
        self.assertEqual(len(np.fromfile("out.raw", "<f4")) // 2 // 1000, 43) # the output is complete

    def test_device_that_cannot_be_written(self):
        """ALSA's file has no space: the program ends, with or without an error, and the recording
        is complete."""
        x = dyadic(self.random, (24000, 2))
        self.alsa(x)
        self.ir(np.ones((1, 2)))
        child = self.start("--ir", "ir.wav", "--input", "fl_in", "--output", "fl_full", "--duration", 0.4, "--record",
                           "rec.wav")
        child.communicate(timeout=120 * rig_live.SLOWER)
        self.assertIn(child.returncode, (0, 4))
        got = parse_wav(self.read("rec.wav"))[1]
        self.assertGreater(len(got), 0)
        np.testing.assert_array_equal(got, x[:len(got)])

    def test_formats_of_recordings(self):
        x = dyadic(self.random, (6000, 2))
        self.ir(np.ones((1, 2)))
        self.alsa(x)
        # The record of an old shard is removed with its file.
        self.run_program("convolve", "--range", "1/1", "ir.wav", "ir.wav", "rec.wav")
        self.assertTrue(os.path.exists("rec.wav.range"))
        for name, more in (("rec.flac", []), ("rec.npy", []), ("rec.wav", ["-o", "i16"]), ("rec.raw", [])):
            self.live("--ir", "ir.wav", *FILES, "--duration", 0.1, "--record", name, "-q", *more)
            self.assertGreater(os.stat(name).st_size, 4800)
        self.assertFalse(os.path.exists("rec.wav.range"))
        np.testing.assert_array_equal(np.load("rec.npy").T, x[:4800])
        self.assertEqual(parse_wav(self.read("rec.wav"))[2], 16)
        np.testing.assert_array_equal(parse_wav(self.read("rec.wav"))[1], x[:4800])
        for name, more, says in (("rec.txt", [], "text files hold taps only"), ("rec", [], "does not imply a format"), ("rec.flac", ["-o", "f32"], "f32"),
                                 ("rec.wav", ["-o", "cf32"], "cannot store cf32"), ("nowhere/rec.wav", [], "nowhere/rec.wav")):
            self.fails_live("--ir", "ir.wav", *FILES, "--duration", 0.1, "--record", name, *more, says=says)


class Wrong(Live):
    """Every message says what was found and what to do."""

    def setUp(self):
        super().setUp()
        self.alsa()
        self.ir(np.ones((3, 2)))

    def test_usage(self):
        for arguments, says in (([], "--ir"), (["--ir", "ir.wav", "--measure", "m.wav"], "leave out --ir"),
                                (["--measure", "m.wav", "--retry"], "--retry"), (["--ir", "ir.wav", "--latency", "soon"], "soon"),
                                (["--ir", "ir.wav", "--latency", "11"], "11"), (["--ir", "ir.wav", "--latency", "0"], "0"),
                                (["--ir", "ir.wav", "--block", "-1"], "--block"), (["--ir", "ir.wav", "--block", "1e9"], "--block"),
                                (["--ir", "ir.wav", "--fade", "-1"], "--fade"), (["--ir", "ir.wav", "--duration", "nan"], "--duration"),
                                (["--ir", "ir.wav", "--gain", "1000"], "--gain"), (["--ir", "ir.wav", "--limiter", "soft"], "on|off"),
                                (["--ir", "ir.wav", "--engine", "cpu/magic"], "cpu/magic"),
                                (["--ir", "ir.wav", "--engine", "cuda/direct"], "live computes on the CPU"), (["--ir", "ir.wav", "-q", "-v"], "contradict"),
                                (["--ir", "head.sofa", "--matrix"], "head.sofa: the responses of a SOFA file"),
                                (["--ir", "matrix:head.sofa"], "leave out matrix:"),
                                (["--ir", "ir.wav", "--azimuth", "30"], "--azimuth"),
                                (["--ir", "ir.wav", "--record", "-"], "pipe"), (["--measure", "m.wav", "--duration", "700"], "700"), (["ir.wav"], "--ir"),
                                (["--ir", "ir.wav", "--mode", "full"], "--mode")):
            with self.subTest(arguments=arguments):
                self.fails_live(*arguments, rc=2, says=says)

    def test_doubtful_levels(self):
        play = ["--ir", "ir.wav", *FILES, "--duration", 0.01]
        for more, says in ((["--gain", 60], b"--gain 60: multiplies samples by 1e+03"), (["--dry", 31], b"--dry 31: multiplies")):
            self.assertIn(says, self.live(*play, *more).stderr)
        self.assertNotIn(b"multiplies", self.live(*play, "--gain", 30, "--dry", 30).stderr)

    def test_documented_filters(self):
        """The filters of every command of docs/live.md and of the help, of files as they are described there."""
        self.ir(np.ones((9, 2)), "hall.wav")
        self.ir(np.ones((9, 4)), "church.wav")
        with open(os.path.join(os.path.dirname(rig_live.__file__), "..", "..", "docs", "live.md")) as page:
            lines = page.readlines()
        lines += self.run_program("live", "--help", env=self.environment()).stdout.decode().splitlines()
        commands = {tuple(re.findall(r"--ir (\S+)", l)) for l in lines if l.strip().startswith("partita live --ir")}
        self.assertIn(("hall.wav", "true-stereo:church.wav"), commands)
        for irs in commands - {("head.sofa",)}:
            with self.subTest(irs=irs):
                self.live(*(w for ir in irs for w in ("--ir", ir)), *FILES, "--duration", 0.01)

    def test_values_are_checked_before_devices(self):
        """A device that does not exist is not reached: each value outside its range is a usage error."""
        ports = ["99999", "65536", "0", "-1", "1e3", "9000x", "", "127.0.0.1:70000", "[::1]:", "nowhere.example:9000", ":9000x"]
        values = {"--osc": ports, "--control": ["", "x" * 200], "--name": ["", "a:b", "x" * 100], "--latency": ["0", "-1", "11", "11s"],
                  "--rate": ["0", "-1", "48kB", "1e9"], "--block": ["-1", "-1ms", "65537", "70k", "1.5"],
                  "--channels": ["0", "1025"], "--out-channels": ["0", "1025"], "--max-channels": ["0", "1e9"],
                  "--threads": ["0", "4097", "all"], "--gain": ["-301", "301", "nan"], "--dry": ["-301", "301", "inf"],
                  "--fade": ["-1", "60001", "61s"], "--duration": ["-1", "-1ms", "1e10"], "--max-taps": ["0", "-1s", "1e9"],
                  "--azimuth": ["-361", "361"], "--elevation": ["-91", "91"]}
        for name, wrong in values.items():
            for value in wrong:
                with self.subTest(name=name, value=value):
                    self.fails_live("--ir", "ir.wav", "--device", "none", name + "=" + value, rc=2, says=[name, value])
        for name, value in (("--block", "2s"), ("--max-taps", "100min"), ("--max-taps", "1us")): # a range in frames
            with self.subTest(name=name, value=value):
                self.fails_live("--ir", "ir.wav", "--device", "none", "--rate", "48k", name, value, rc=2, says=[name, value, "48000 Hz"])
        for more, says in ((["rec.zzz"], "does not imply a format"), (["rec.txt"], "text files"), (["rec.wav", "-o", "cf32"], "cf32 samples; use --output-format f32")):
            with self.subTest(record=more):
                self.fails_live("--ir", "ir.wav", "--device", "none", "--record", *more, says=says)
        # Values at the ends of ranges get as far as the device.
        for more in (["--osc", "1"], ["--osc", "127.0.0.1:65535"], ["--osc", "::1:9000"], ["--latency", "10"], ["--block", "0"], ["--fade", "60s"],
                     ["--rate", "48k", "--block", "1s"]):
            with self.subTest(more=more):
                self.fails_live("--ir", "ir.wav", "--device", "none", *more, says="device none: no such device")

    def test_devices(self):
        for arguments, says in ((["--device", "grand piano"], ["grand piano", "partita devices"]),
                                (["--device", "77"], ["77", "partita devices"]), (["--device", "fl_"], ["fl_in", "fl_out", "index"]),
                                (["--device", "99999999999999999999"], "partita devices")):
            with self.subTest(arguments=arguments):
                self.fails_live("--ir", "ir.wav", *arguments, says=says)

    def test_selection_by_index_and_part_of_a_name(self):
        listed = self.audio_devices()
        index = {d["name"]: d["index"] for d in listed}
        for a, b in ((index["fl_in"], index["fl_out"]), ("_IN", "l_out"), ("fl_in, ALSA", "fl_out")):
            done = self.live("--ir", "ir.wav", "--input", a, "--output", b, "--duration", 0.01)
            self.assertIn(b"fl_in to fl_out", done.stderr)

    def test_rate_of_the_filter_if_the_device_supports_it(self):
        """ALSA's null device accepts any rate, and reports 44100 Hz as its own."""
        for rate in (22050, 48000, 96000):
            self.ir(np.ones((3, 2)), rate=rate)
            status = schemas.load(self.live("--ir", "ir.wav", "--device", "fl_null", "--duration", 0.01, "--json", "-q").stdout)
            self.assertEqual(status["rate"], rate)
        self.fails_live("--ir", "ir.wav", "--device", "fl_null", "--rate", 44100, says=["96000", "44100"])

    def test_filters(self):
        self.ir(np.ones((3, 3)), "three.wav")
        self.ir(np.full((3, 2), np.nan), "nan.wav")
        self.write("empty.wav", b"")
        for arguments, says in ((["none.wav"], ["none.wav", "No such file"]), (["empty.wav"], "empty.wav"),
                                (["nan.wav"], ["nan.wav", "finite"]), (["three.wav", "--channels", 2], ["three.wav", "3", "2"]),
                                (["three.wav", "--channels", 2, "--matrix"], ["three.wav", "multiple"]),
                                (["ir.wav", "--channels", 500], ["--channels 500"]),
                                (["ir.wav", "--out-channels", 3], ["ir.wav", "3"])):
            with self.subTest(arguments=arguments):
                self.fails_live("--ir", *arguments, *FILES, "--duration", 0.01, says=says)
        self.fails_live("--ir", "ir.wav", "--ir", "three.wav", *FILES, "--duration", 0.01, says=["three.wav"])

    def test_no_device_at_all(self):
        os.unlink(".asoundrc")
        begin = time.monotonic()
        self.fails_live("--ir", "ir.wav", says=["no audio device", "ALSA", "JACK"])
        self.assertLess(time.monotonic() - begin, 2 * rig_live.SLOWER)

    def test_retry_waits_for_a_device_until_interrupted(self):
        os.unlink(".asoundrc")
        child = self.start("--ir", "ir.wav", "--retry")
        self.assertIn(b"waiting for it", child.stderr.readline())
        child.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        self.assertIsNone(child.poll())
        child.send_signal(signal.SIGINT)
        self.assertIn("ended while there was no audio device", self.ends(child, within=30)[1])

    def test_retry_does_not_wait_for_permanent_errors(self):
        self.fails_live("--ir", "ir.wav", "--device", "fl_", "--retry", says="is ambiguous")
        self.fails_live("--ir", "ir.wav", *FILES, "--no-connect", "--retry", says=["--no-connect", "ALSA", "JACK"])
        said = self.live("--ir", "ir.wav", *FILES, "--rate", 1234, "--resample-ir", "--retry", rc=1).stderr
        self.assertIn(b"fl_out: does not run at 1234 Hz; without --rate it runs at 48000 Hz", said)
        self.assertNotIn(b"waiting", said)

    def test_retry_opens_the_device_when_it_appears(self):
        os.rename(".asoundrc", "later")
        child = self.start("--ir", "ir.wav", *FILES, "--retry", "--duration", 0.01)
        self.assertIn(b"waiting for it", child.stderr.readline())
        os.rename("later", ".asoundrc")
        self.ends(child)


class Control(Live):
    """Keys, signals and lines of JSON, on a device that consumes samples at once."""

    def setUp(self):
        super().setUp()
        self.alsa()
        self.ir(np.ones((1, 2)) * 0.5)
        self.ir(np.ones((4, 2)) * 0.25, "b.wav")

    def test_one_line_per_second(self):
        child = self.start("--ir", "ir.wav", *FILES, "--json")
        begin = time.monotonic()
        first, second = self.line(child), self.line(child)
        self.assertGreater(time.monotonic() - begin, 1.5) # later on a busy machine
        self.assertEqual(first["state"], "running")
        self.assertGreater(second["frames"], first["frames"])
        for name in ("rate", "in", "out", "load", "latency", "losses", "xruns", "limited", "filter", "taps", "engine"):
            self.assertIn(name, first)
        self.assertEqual(set(first["latency"]), {"in", "out", "engine", "onset"})
        self.assertEqual(first["latency"]["engine"], 0)
        child.send_signal(signal.SIGINT)
        out, err = self.ends(child)
        self.assertEqual(schemas.load(out.splitlines()[-1])["state"], "ended")
        self.assertEqual(err, "")

    def test_sigterm_ends_cleanly(self):
        child = self.start("--ir", "ir.wav", *FILES)
        self.assertIn(b"fl_in to fl_out", child.stderr.readline())
        child.send_signal(signal.SIGTERM)
        self.ends(child)

    def test_sighup_reloads_the_filter(self):
        child = self.start("--ir", "ir.wav", *FILES, "--json", "--max-taps", 100)
        self.assertEqual(self.line(child)["taps"], 1)
        self.ir(np.ones((77, 2)) / 77)
        child.send_signal(signal.SIGHUP)
        self.wait_for(lambda: self.line(child)["taps"] == 77)
        self.assertEqual(child.stderr.readline(), b"partita live: ir.wav: read again\n")
        # With unusable files the filter stays, and the reason is printed.
        for bad, says in ((b"", "ir.wav"), (b"RIFF not at all", "ir.wav"), (None, "No such file"),
                          (rig.wav_bytes(np.full((5, 2), np.inf, "f4"), bits=32), "finite"),
                          (rig.wav_bytes(np.ones((101, 2), "f4"), bits=32), "101 taps, more than the 100 that are reserved"),
                          (rig.wav_bytes(np.ones((5, 3), "f4"), bits=32), "3 channels"),
                          (rig.wav_bytes(np.ones((50, 2), "f4"), bits=32)[:-80], "ir.wav"),
                          (rig.wav_bytes(np.ones((5, 2), "f4"), bits=32, rate=96000), "96000")):
            if bad is None:
                os.unlink("ir.wav")
            else:
                self.write("ir.wav", bad)
            child.send_signal(signal.SIGHUP)
            said = child.stderr.readline().decode()
            self.assertIn(says, said)
            self.assertIn("the old filter stays", said)
            self.assertEqual(self.line(child)["taps"], 77)
        child.send_signal(signal.SIGINT)
        self.ends(child)

    def test_keys(self):
        child, controller, terminal = self.open_terminal("--ir", "ir.wav", "--ir", "b.wav", *FILES)
        self.until(controller, b"1/2 ir.wav, +0.0 dB")
        for words in (b"load", b"xruns", b"latency", b"device", b"onset", b"in   1 [", b"out  2 [", b"q quit"):
            self.until(controller, words)
        self.assertFalse(termios.tcgetattr(terminal)[3] & (termios.ICANON | termios.ECHO))
        for key, words in ((b"m", b"MUTE"), (b"b", b"MUTE, BYPASS"), (b"m", b"dB, BYPASS"), (b"b", b"ir.wav, +0.0 dB\r"),
                           (b"+", b"+1.0 dB"), (b"--", b"-1.0 dB"), (b"n", b"2/2 b.wav"), (b"n", b"1/2 ir.wav"),
                           (b"p", b"2/2 b.wav"), (b"r", b"b.wav: read again")):
            os.write(controller, key)
            self.until(controller, words)
        os.unlink("b.wav")
        os.mkfifo("b.wav")
        os.write(controller, b"r")
        self.until(controller, b"b.wav: is not a regular file")
        os.write(controller, b"n")
        self.until(controller, b"1/2 ir.wav")
        os.unlink("b.wav")
        os.write(controller, b"p")
        self.until(controller, b"2/2 b.wav")
        os.write(controller, b"r")
        self.until(controller, b"the old filter stays")
        os.write(controller, b"q")
        child.wait(timeout=60 * rig_live.SLOWER)
        self.assertEqual(child.returncode, 0)
        self.assertTrue(termios.tcgetattr(terminal)[3] & termios.ICANON)
        self.assertTrue(termios.tcgetattr(terminal)[3] & termios.ECHO)

    def test_interrupts_restore_the_terminal(self):
        for how in (signal.SIGINT, signal.SIGTERM):
            child, controller, terminal = self.open_terminal("--ir", "ir.wav", *FILES)
            self.until(controller, b"q quit")
            child.send_signal(how)
            child.wait(timeout=60 * rig_live.SLOWER)
            self.assertEqual(child.returncode, 0)
            self.assertTrue(termios.tcgetattr(terminal)[3] & termios.ECHO)


class Measure(Live):
    """The input is made with the sweep's formula; the printed and written response is that path."""

    def hear(self, paths):
        self.alsa(received_sweep(paths, 1), outputs=1)

    def test_latency_and_response(self):
        self.hear([[(1234, 0.5), (3000, -0.125)], [(77, -0.25)]])
        done = self.live("--measure", "m.wav", *FILES, "--duration", 1)
        self.assertIn(b"channel 1: latency 1234 frames, 25.708 ms; level -6.0 dB; noise ", done.stdout)
        self.assertIn(b"channel 2: latency 77 frames, 1.604 ms; level -12.0 dB; noise ", done.stdout)
        rate, response, _, _ = parse_wav(self.read("m.wav"))
        self.assertEqual((rate, response.shape), (48000, (48000, 2)))
        # The response is band-limited: its peak is that of the sweep's response to itself, by the formula of
        # partita_deconvolve, but for the pulses of the other path.
        q = np.abs(np.fft.rfft(received_sweep([[(0, 1)]], 1)[:, 0].astype("f8")))**2
        peak = np.fft.irfft((q / q.max())**2 / ((q / q.max())**2 + 1e-12))[0]
        for frame, channel, gain in ((1234, 0, 0.5), (3000, 0, -0.125), (77, 1, -0.25)):
            self.assertAlmostEqual(response[frame, channel], peak * gain, delta=0.01 * 0.5)
        # As a filter the response acts like the path within the band, except for the part of the
        # pulses before lag 0, which is missing: 2 % at a distance of 1234 frames.
        f = np.arange(100, 19000, 37)
        path = 0.5 * np.exp(-2j * np.pi * f * 1234 / 48000) - 0.125 * np.exp(-2j * np.pi * f * 3000 / 48000)
        self.assertLess(np.abs(np.fft.rfft(response[:, 0])[f] - path).max(), 0.02 * 0.625)

    def test_output_is_checked_before_playing(self):
        self.hear([[(500, 1)]])
        for name in ("m.txt", "m", "nowhere/m.wav"):
            self.fails_live("--measure", name, *FILES, "--duration", 1, says=name)
        self.fails_live("--measure", "m.wav", *FILES, "--gain", 13, rc=2, says=["--gain 13", "12"])
        self.assertEqual(os.stat("out.raw").st_size, 0)

    def test_json(self):
        self.hear([[(500, 1)]])
        status = schemas.load(self.live("--measure", "m.wav", *FILES, "--duration", 1, "--json", "--channels", 1).stdout)
        self.assertEqual([(p["channel"], p["latency_frames"]) for p in status["channels"]], [(1, 500)])

    def test_no_response(self):
        for received in (np.zeros((130000, 1), "f4"), self.random.standard_normal((130000, 1)).astype("f4") / 10):
            self.alsa(received, outputs=1)
            done = self.live("--measure", "m.wav", *FILES, "--duration", 1, "--channels", 1, rc=1)
            self.assertIn(b"channel 1: no response", done.stdout)
            self.assertIn(b"connect output 1", done.stderr)
            self.assertFalse(os.path.exists("m.wav"))


if __name__ == "__main__":
    rig.main()

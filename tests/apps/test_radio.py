#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What receivers of radio signals do: names of sample types, recordings in 8 bits, tuning."""
import json
import struct

import numpy as np

import rig
from rig import Case, chunk, parse_wav, wav_bytes


class Types(Case):
    def setUp(self):
        super().setUp()
        self.write("one.txt", b"1\n")

    def complex(self, n):
        return (self.random.standard_normal(n) + 1j * self.random.standard_normal(n)).astype("c8")

    def test_the_suffix_of_in_is_its_type(self):
        x = self.complex(50)
        for suffix in ("cf32", "cfile", "fc32", "CF32_le", "c64", "complex64"):
            with self.subTest(suffix):
                self.write("x." + suffix, x.tobytes())
                self.run_program("convolve", "one.txt", "x." + suffix, "y.npy")
                self.assertEqual(np.load("y.npy").tolist(), x.tolist())
        self.write("x.cs16", np.arange(-4, 4, dtype="<i2").tobytes())
        self.run_program("convolve", "one.txt", "x.cs16", "y.npy")
        self.assertEqual(np.load("y.npy").tolist(), (np.array([-4 - 3j, -2 - 1j, 0 + 1j, 2 + 3j]) / 32768).tolist())

    def test_raw_taps_by_suffix_and_channels_of_raw_samples(self):
        self.write("h.f32", np.array([0, 1], "<f4").tobytes())
        self.write("x.f32", np.arange(6, dtype="<f4").tobytes())
        self.run_program("convolve", "--channels", 2, "h.f32", "x.f32", "y.npy")
        self.assertEqual(np.load("y.npy").tolist(), [[0, 0, 2, 4], [0, 1, 3, 5]])
        self.fails("convolve", "--channels", 2, "h.f32", "x.wav", "y.npy", rc=2, says=["--channels 2", "leave it out"])

    def test_format_overrides_the_suffix(self):
        self.write("x.cf32", np.arange(6, dtype="<i2").tobytes())
        self.run_program("convolve", "-f", "i16", "one.txt", "x.cf32", "y.npy")
        self.assertEqual((np.load("y.npy") * 32768).tolist(), list(range(6)))

    def test_iq_is_read_as_cf32_with_a_note(self):
        self.write("x.iq", self.complex(5).tobytes())
        done = self.run_program("convolve", "one.txt", "x.iq", "y.npy")
        self.assertEqual(done.stderr.decode(), "partita convolve: x.iq: is read as cf32; if it has another type, "
                         "add --format\n")
        self.assertEqual(self.run_program("convolve", "-f", "cf32", "one.txt", "x.iq", "y.npy").stderr, b"")

    def test_unknown_types(self):
        said = self.fails("convolve", "-f", "cf23", "one.txt", "-", "-", rc=2,
                          says=["--format cf23: unknown sample type (did you mean cf32?)", "there are f32, f64, i8"])
        self.assertIn("cu32, and with be at the end big endian ones", said)
        self.assertNotIn("did you mean", self.fails("convolve", "-o", "out.wav", "a", "b", "c", rc=2))

    def test_eight_bits_become_float(self):
        x = self.random.integers(0, 256, 400).astype("u1")
        self.write("x.cu8", x.tobytes())
        self.write("half.txt", b"0.3\n")
        iq = ((x.astype("f4") - 128) / 128).view("c8")
        done = self.run_program("convolve", "half.txt", "x.cu8", "y.raw")
        self.assertEqual(done.stderr.decode(), "partita convolve: x.cu8: samples of cu8 are written as cf32; to keep "
                         "their type, use --output-format cu8\n")
        self.close(np.fromfile("y.raw", "c8"), np.float32(0.3) * iq)
        for more, out in ((["-o", "cu8"], "y.raw"), ([], "y.cu8"), (["-q"], "y.raw"), ([], "y.npy")):
            self.assertEqual(self.run_program("convolve", *more, "half.txt", "x.cu8", out).stderr, b"")
        self.assertEqual(len(self.read("y.cu8")), 400)
        self.write("x.wav", wav_bytes(self.random.integers(-128, 127, (100, 1)), bits=8))
        self.assertIn(b"samples of u8 are written as f32", self.run_program("convolve", "one.txt", "x.wav", "y.wav").stderr)
        self.assertEqual(parse_wav(self.read("y.wav"))[2], 32)


class Tune(Case):
    RATE, HZ = 240000, 31250.5

    def setUp(self):
        super().setUp()
        np.save("h.npy", np.hanning(65)[1:-1].astype("f4"))
        self.x = (self.random.standard_normal(30000) + 1j * self.random.standard_normal(30000)).astype("c8")
        np.save("x.npy", self.x)

    def shifted(self, x, hz=HZ):
        """Phases are computed from whole numbers: HZ is a multiple of 1/2 Hz."""
        n = np.arange(len(x)) * int(2 * hz) % (2 * self.RATE)
        return x * np.exp(-2j * np.pi * n / (2 * self.RATE))

    def tune(self, out, *more, source="x.npy", hz=HZ):
        self.run_program("convolve", "--rate", self.RATE, "--tune", hz, *more, "h.npy", source, out)
        return out

    def test_complex_and_real_signals(self):
        h = np.load("h.npy").astype("f8")
        for hz in (self.HZ, -self.HZ, 0, 120000):
            self.close(np.load(self.tune("y.npy", hz=hz)), np.convolve(self.shifted(self.x, hz), h))
        np.save("r.npy", self.x.real)
        self.close(np.load(self.tune("y.npy", source="r.npy")), np.convolve(self.shifted(self.x.real), h))
        self.close(np.load(self.tune("y.npy", "--stride", 5, "--precision", "f64")),
                   np.convolve(self.shifted(self.x), h)[::5])

    def test_channels_are_tuned_alike(self):
        np.save("two.npy", np.stack([self.x, self.x.conj()]))
        y = np.load(self.tune("y.npy", source="two.npy"))
        h = np.load("h.npy").astype("f8")
        self.close(y, np.stack([np.convolve(self.shifted(x), h) for x in (self.x, self.x.conj())]))

    def test_the_phase_counts_from_the_first_sample_of_in(self):
        """The same bits whether computed at once, from a slice, in blocks, by threads or in shards."""
        whole = np.load(self.tune("whole.npy", "--engine", "direct"))
        for more in (["--block", 64], ["--threads", 2]):
            self.assertEqual(np.load(self.tune("y.npy", "--engine", "direct", *more)).tobytes(), whole.tobytes())
        y = np.load(self.tune("y.npy", "--engine", "direct", "--first", 12345))
        self.assertEqual(y.tobytes(), whole[12345:].tobytes())
        for k in (1, 2, 3):
            self.tune("%d.npy" % k, "--range", "%d/3" % k)
        self.run_program("join", "joined.npy", "1.npy", "2.npy", "3.npy")
        self.assertEqual(self.read("joined.npy"), self.read(self.tune("one.npy", "--range", "1/1")))
        self.tune("2.npy", "--range", "2/3", hz=0)
        self.fails("join", "joined.npy", "1.npy", "2.npy", "3.npy", says="2.npy")

    def test_frequency_of_a_recording(self):
        def recording(name, **capture):
            meta = {"global": {"core:datatype": "cf32_le", "core:version": "1.0.0", "core:sample_rate": self.RATE},
                    "captures": [{"core:sample_start": 0, **capture}], "annotations": []}
            self.write(name + ".sigmf-data", self.x.tobytes())
            self.write(name + ".sigmf-meta", json.dumps(meta).encode())
            return name + ".sigmf-meta"

        def frequency(source, *more):
            self.run_program("convolve", *more, "h.npy", source, "out.sigmf-data")
            return json.loads(self.read("out.sigmf-meta"))["captures"][0].get("core:frequency")

        known, unknown = recording("a", **{"core:frequency": 433920000.0}), recording("b")
        self.assertEqual(frequency(known), 433920000)
        self.assertEqual(frequency(known, "--tune", -1000.25), 433918999.75)
        self.assertIsNone(frequency(unknown, "--tune", 1000))

    def test_refused(self):
        self.fails("convolve", "--tune", 1, "h.npy", "x.npy", "y.npy", rc=2, says=["--tune 1", "x.npy", "--rate"])
        self.fails("convolve", "--tune", "120000.5", "--rate", self.RATE, "h.npy", "x.npy", "y.npy", rc=2,
                   says=["--tune 120000.5", "half the sample rate of x.npy"])
        self.fails("convolve", "--tune", "1x", "h.npy", "x.npy", "y.npy", rc=2, says="--tune 1x")
        self.write("in.wav", wav_bytes(np.ones((10, 1), int)))
        self.fails("convolve", "--tune", 1, "h.npy", "in.wav", "y.wav", says=["complex", ".npy"])


class Up(Case):
    """Results are those of a convolution with the zeros, of which every STRIDE-th is kept."""
    N, RATIOS = 7001, ((2, 1), (3, 2), (2, 3), (4, 6), (160, 147), (1, 1))

    def setUp(self):
        super().setUp()
        self.x = self.random.standard_normal(self.N)
        np.save("x.npy", self.x)
        self.h = self.random.standard_normal(90)
        np.save("h.npy", self.h)

    def zeros_inserted(self, up):
        x = np.zeros(self.N * up)
        x[::up] = self.x
        return x

    def filter(self, *more, out="y.npy"):
        self.run_program("convolve", *more, "h.npy", "x.npy", out)
        return np.load(out)

    def test_modes_and_ratios(self):
        for up, stride in self.RATIOS:
            ratio = ["--up", up, "--stride", stride]
            full = np.convolve(self.zeros_inserted(up), self.h)
            with self.subTest(up=up, stride=stride):
                self.close(self.filter(*ratio), full[::stride])
                self.close(self.filter(*ratio, "--mode", "valid"), full[89:self.N * up][::stride])
                self.close(self.filter(*ratio, "--mode", "same"), full[44:44 + self.N * up][::stride])
                self.close(self.filter(*ratio, "--first", 1001, "--last", 4003), full[1001:4003:stride])
                self.close(self.filter(*ratio, "--first", -25), np.append(np.zeros(25), full)[::stride])

    def test_pipes_blocks_and_threads(self):
        full = np.convolve(self.zeros_inserted(3), self.h)[::2].astype("f4")
        x = self.x.astype("<f4").tobytes()
        for more in ([], ["--block", 64], ["--block", 256, "--engine", "overlap-save"], ["--threads", 2]):
            done = self.run_program("convolve", "--up", 3, "--stride", 2, "-f", "f32", "-p", "f32", *more, "h.npy", "-", "-",
                                    stdin=x)
            self.close(np.frombuffer(done.stdout, "f4"), full)
        done = self.run_program("convolve", "--up", 3, "--stride", 2, "-f", "f32", "--mode", "valid", "h.npy", "-", "-",
                                stdin=x[:40])
        self.assertEqual(len(done.stdout) // 4, -(-(90 - 30 + 1) // 2))

    def test_shards_have_the_bits_of_one_run(self):
        for up, stride in ((3, 2), (2, 5)):
            ratio = ["--up", up, "--stride", stride, "--first", 7]
            for k in (1, 2, 3):
                self.filter(*ratio, "--range", "%d/3" % k, out="%d.npy" % k)
            self.run_program("join", "joined.npy", "1.npy", "2.npy", "3.npy")
            self.filter(*ratio, "--range", "1/1", out="one.npy")
            self.assertEqual(self.read("joined.npy"), self.read("one.npy"))
            self.close(np.load("one.npy"), np.convolve(self.zeros_inserted(up), self.h)[7::stride])

    def test_rates(self):
        self.write("in.wav", wav_bytes(np.ones((500, 1), int), rate=44100))
        self.write("one.txt", b"1\n")
        for up, stride, rate, said in ((160, 147, 48000, b""), (2, 1, 88200, b""), (1, 8, 5513, b"5512.5 Hz is stored as 5513")):
            done = self.run_program("convolve", "--up", up, "--stride", stride, "one.txt", "in.wav", "out.wav")
            self.assertEqual(parse_wav(self.read("out.wav"))[0], rate)
            self.assertIn(said, done.stderr)
            self.assertEqual(bool(done.stderr), bool(said))
        done = self.run_program("convolve", "--up", 100000, "--last", 10, "one.txt", "in.wav", "out.wav")
        self.assertIn(b"4410000000 Hz is stored as 4294967295 Hz", done.stderr)
        self.write("ir.wav", wav_bytes(np.full((1, 1), 32767), rate=48000))
        self.fails("convolve", "--up", 2, "ir.wav", "in.wav", "out.wav", says="48000 Hz differs from the 44100 Hz of in.wav times 2")

    def test_metadata_of_a_recording(self):
        """Sample s becomes sample (3 s - 600) / 2; the result begins 0.2 s after IN."""
        self.x.astype("c8").tofile("in.sigmf-data")
        self.write("one.txt", b"1\n")
        at = {"core:sample_start": 1000, "core:datetime": "2026-01-01T00:00:01Z"}
        meta = {"global": {"core:datatype": "cf32_le", "core:version": "1.0.0", "core:sample_rate": 1000},
                "captures": [{"core:sample_start": 0, "core:datetime": "2026-01-01T00:00:00Z"}, at],
                "annotations": [{"core:sample_start": 1000, "core:sample_count": 500}]}
        self.write("in.sigmf-meta", json.dumps(meta).encode())
        self.run_program("convolve", "--up", 3, "--stride", 2, "--first", 600, "one.txt", "in.sigmf-meta", "out.sigmf-data")
        out = json.loads(self.read("out.sigmf-meta"))
        self.assertEqual(out["global"]["core:sample_rate"], 1500)
        self.assertEqual(out["captures"], [{"core:sample_start": 0, "core:datetime": "2026-01-01T00:00:00.2Z"},
                                           {**at, "core:sample_start": 1200}])
        self.assertEqual(out["annotations"], [{"core:sample_start": 1200, "core:sample_count": 750}])

    def test_plan_and_refusals(self):
        said = self.run_program("plan", "--taps", 3201, "--up", 160, "--stride", 147).stdout.decode()
        self.assertIn("up 160, stride 147", said)
        self.fails("correlate", "--up", 2, "h.npy", "x.npy", "y.npy", rc=2, says="no such option")
        self.fails("convolve", "--up", 0, "h.npy", "x.npy", "y.npy", rc=2, says="--up 0: is not a whole number from 1 to 1048576")
        self.fails("convolve", "--up", 2, "--device", "cuda", "h.npy", "x.npy", "y.npy", says=[])


class Pairs(Case):
    """I and Q in the two channels of a WAV: --iq, and the chunk auxi of SDR programs."""

    def setUp(self):
        super().setUp()
        self.x = self.random.integers(-9000, 9000, (3000, 2))
        self.z = (self.x[:, 0] + 1j * self.x[:, 1]) / 32768
        self.h = self.random.standard_normal(50).astype("f4") / 50
        np.save("h.npy", self.h)
        self.expected = np.convolve(self.z, self.h)
        time = struct.pack("<8H", 2026, 1, 6, 31, 23, 59, 59, 250)
        self.auxi = chunk(b"auxi", time + time + struct.pack("<IIII", 100000000, 2400000, 0, 0) + bytes(16))

    def pair(self, name):
        y = parse_wav(self.read(name))[1]
        self.assertEqual(y.shape[1], 2)
        return y[:, 0] + 1j * y[:, 1]

    def test_option(self):
        self.write("iq.wav", wav_bytes(self.x, rate=250000))
        self.run_program("convolve", "--iq", "h.npy", "iq.wav", "y.npy")
        self.close(np.load("y.npy"), self.expected.astype("c8"))
        self.run_program("convolve", "--iq", "--output-format", "f32", "h.npy", "iq.wav", "y.wav")
        self.close(self.pair("y.wav").astype("c8"), self.expected.astype("c8"))
        self.run_program("convolve", "--iq", "h.npy", "iq.wav", "y.wav")
        np.testing.assert_allclose(self.pair("y.wav"), self.expected, atol=0.8 / 32768)  # rounded to 16 bits
        self.run_program("convolve", "--iq", "h.npy", "-", "y.npy", stdin=self.read("iq.wav"))
        self.close(np.load("y.npy"), self.expected.astype("c8"))
        self.run_program("convolve", "--iq", "--output-format", "i16", "--gain", "auto", "h.npy", "iq.wav", "y.flac")
        self.run_program("convolve", "--iq", "h.npy", "y.flac", "z.npy")
        self.assertTrue(np.iscomplexobj(np.load("z.npy")))

    def test_tuned(self):
        self.write("iq.wav", wav_bytes(self.x, rate=250000))
        self.run_program("convolve", "--iq", "--tune", "100k", "--stride", 5, "--output-format", "f32", "h.npy", "iq.wav",
                         "y.wav")
        n = np.arange(3000)
        expected = np.convolve(self.z * np.exp(-2j * np.pi * 0.4 * n), self.h)[::5]
        np.testing.assert_allclose(self.pair("y.wav"), expected, atol=1e-5)
        self.assertEqual(parse_wav(self.read("y.wav"))[0], 50000)

    def test_chunk(self):
        for before, after in ((self.auxi, b""), (b"", self.auxi), (chunk(b"auxi", b"<?xml version='1.0'?><x/>"), b"")):
            self.write("iq.wav", wav_bytes(self.x, rate=250000, before=before, after=after))
            self.run_program("convolve", "h.npy", "iq.wav", "y.npy")
            self.close(np.load("y.npy"), self.expected.astype("c8"))
            self.run_program("convolve", "--tune", "10k", "--output-format", "f32", "h.npy", "iq.wav", "y.wav")
            data = self.read("y.wav")
            at = data.index(b"auxi") + 8
            if b"xml" not in before:
                self.assertEqual(struct.unpack_from("<I", data, at + 32)[0], 100010000)
                self.assertEqual(struct.unpack_from("<H", data, at)[0], 2026)
            self.run_program("convolve", "h.npy", "y.wav", "z.npy")  # known again
            self.assertTrue(np.iscomplexobj(np.load("z.npy")))
            self.run_program("convolve", "--first", 100, "h.npy", "iq.wav", "y.wav")
            data = self.read("y.wav")
            if b"xml" not in before:
                self.assertEqual(data[data.index(b"auxi") + 8:][:32], bytes(32))

    def test_mono_with_the_chunk_is_real(self):
        self.write("in.wav", wav_bytes(self.x[:, :1], before=self.auxi))
        self.run_program("convolve", "h.npy", "in.wav", "y.npy")
        self.assertFalse(np.iscomplexobj(np.load("y.npy")))

    def test_correlate(self):
        self.write("iq.wav", wav_bytes(self.x, rate=250000))
        self.write("t.wav", wav_bytes(self.x[1234:1300], rate=250000))
        done = self.run_program("correlate", "--iq", "--peaks", 1, "--json", "t.wav", "iq.wav", "y.wav")
        self.assertEqual(json.loads(done.stderr.splitlines()[0] if not done.stdout else done.stdout.splitlines()[0])["sample"],
                         1234)
        expected = np.correlate(self.z, self.z[1234:1300], "full")
        y = parse_wav(self.read("y.wav"))[1]
        self.assertEqual(y.shape, (len(expected), 2))

    def test_shards(self):
        self.write("iq.wav", wav_bytes(self.x, rate=250000, before=self.auxi))
        for k in (1, 2):
            self.run_program("convolve", "--range", "%d/2" % k, "--output-format", "f32", "h.npy", "iq.wav", "s%d.wav" % k)
        self.run_program("join", "y.wav", "s1.wav", "s2.wav")
        self.close(self.pair("y.wav").astype("c8"), self.expected.astype("c8"))

    def test_refusals(self):
        self.write("in.wav", wav_bytes(self.x[:, :1]))
        self.fails("convolve", "--iq", "h.npy", "in.wav", "y.wav", says=["in.wav", "--iq needs I and Q in the two channels"])
        np.save("pair.npy", self.x.T)
        self.fails("convolve", "--iq", "h.npy", "pair.npy", "y.npy", says="--iq needs")
        np.save("z.npy", self.z.astype("c8"))
        self.fails("convolve", "--rate", 48000, "h.npy", "z.npy", "y.wav", says="or --iq for I and Q")
        self.run_program("convolve", "--rate", 48000, "--iq", "h.npy", "z.npy", "y.wav")
        np.testing.assert_allclose(self.pair("y.wav"), self.expected, atol=1e-5)


if __name__ == "__main__":
    rig.main()

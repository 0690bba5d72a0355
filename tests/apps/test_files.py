#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Valid and invalid files: headers of WAV, RF64 and .npy, raw samples, text taps. For each invalid
one: exit status, message, and that there is no output file."""
import io
import os
import struct
import subprocess

import numpy as np

import rig
from rig import Case, chunk, parse_wav, wav_bytes

RAMP = np.arange(1, 11).reshape(-1, 1) * 1000


class Wav(Case):
    def setUp(self):
        super().setUp()
        self.write("ir.txt", b"1\n")

    def good(self, data, frames=RAMP, rc=0, pipe=True):
        """The identity filter applied to `data`, as a file and through a pipe, gives `frames`."""
        self.write("in.wav", data)
        done = self.run_program("convolve", "ir.txt", "in.wav", "out.wav", rc=rc)
        self.assertTrue(np.array_equal(parse_wav(self.read("out.wav"))[1] * 32768, frames))
        os.remove("out.wav")
        if pipe:
            piped = self.run_program("convolve", "ir.txt", "-", "-", stdin=data, rc=rc)
            self.assertTrue(np.array_equal(parse_wav(piped.stdout)[1] * 32768, frames))
        return done.stderr.decode()

    def bad(self, data, *says):
        self.write("in.wav", data)
        self.fails("convolve", "ir.txt", "in.wav", "out.wav", says=("in.wav",) + says)
        self.fails("convolve", "ir.txt", "-", "out.wav", stdin=data, says=("standard input",) + says)

    def test_plain(self):
        self.assertEqual(self.good(wav_bytes(RAMP)), "")

    def test_empty_and_incomplete_headers(self):
        whole = wav_bytes(RAMP)
        self.write("in.wav", b"")
        self.fails("convolve", "ir.txt", "in.wav", "out.wav", says=["in.wav", "is empty"])
        for n in range(1, 44):
            self.write("in.wav", whole[:n])
            with self.subTest(bytes=n):
                self.fails("convolve", "ir.txt", "in.wav", "out.wav", says=["in.wav", "not a", "WAV"])
                self.fails("convolve", "in.wav", "ir.txt", "out.wav", says=["in.wav", "not a", "WAV"])

    def test_fields_out_of_range(self):
        self.bad(wav_bytes(RAMP, channels=0), "0 channels")
        self.bad(wav_bytes(RAMP, rate=0), "sample rate 0")
        header = bytearray(wav_bytes(RAMP))
        for bits in (0, 7, 12, 17, 64):
            struct.pack_into("<H", header, 34, bits)
            self.bad(bytes(header), "%d bits" % bits)
        self.bad(wav_bytes(RAMP, align=4), "block align 4", "make 2")
        self.bad(wav_bytes(RAMP, align=0), "block align 0")

    def test_many_channels_need_max_channels(self):
        data = wav_bytes(np.zeros((2, 1025), int))
        self.bad(data, "1025 channels", "1024", "--max-channels")
        self.write("in.wav", data)
        self.run_program("convolve", "--max-channels", 1025, "ir.txt", "in.wav", "out.wav")
        self.bad(wav_bytes(RAMP, channels=65535, align=65534), "65535 channels")

    def test_truncated_files_are_used_and_reported(self):
        said = self.good(wav_bytes(RAMP)[:44 + 14], RAMP[:7], rc=3)
        self.assertIn("in.wav: ends after 7 of 10 frames", said)
        self.good(wav_bytes(RAMP)[:44 + 13], RAMP[:6], rc=3)
        self.good(wav_bytes(RAMP)[:44], np.zeros((0, 1)), rc=3)

    def test_placeholder_sizes_are_read_to_the_end(self):
        for size in (0, 0x7FFFF000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFF0):
            with self.subTest(size=hex(size)):
                self.assertEqual(self.good(wav_bytes(RAMP, data=size, riff=size)), "")
        self.good(wav_bytes(RAMP, data=0, riff=36), RAMP)

    def test_empty_file_is_not_a_placeholder(self):
        said = self.good(wav_bytes(np.zeros((0, 1), int)), np.zeros((0, 1)))
        self.assertIn("in.wav: has no samples", said)
        self.assertEqual(self.run_program("convolve", "-q", "ir.txt", "in.wav", "out.wav").stderr, b"")
        self.good(wav_bytes(np.zeros((0, 1), int), after=chunk(b"LIST", b"some words!!")), np.zeros((0, 1)))

    def test_programs_in_a_pipe(self):
        self.write("in.wav", wav_bytes(RAMP))
        for maker in (["sox", "in.wav", "-t", "wav", "-"],
                      ["ffmpeg", "-v", "error", "-i", "in.wav", "-f", "wav", "-"]):
            with self.subTest(maker=maker[0]):
                with subprocess.Popen(maker, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as source:
                    data = source.stdout.read()
                self.good(data)
        ours = self.run_program("convolve", "ir.txt", "in.wav", "-").stdout
        for reader in (["sox", "-t", "wav", "-", "-t", "s16", "-"],
                       ["ffmpeg", "-v", "error", "-i", "-", "-f", "s16le", "-"]):
            with self.subTest(reader=reader[0]):
                done = subprocess.run(reader, input=ours, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                self.assertTrue(np.array_equal(np.frombuffer(done.stdout, "<i2"), RAMP[:, 0]))

    def test_chunks_around_the_samples(self):
        self.good(wav_bytes(RAMP, before=chunk(b"LIST", b"odd")))
        self.good(wav_bytes(RAMP, before=chunk(b"LIST", b"odd", pad=False)))
        self.good(wav_bytes(RAMP, before=chunk(b"JUNK", b"\0" * 5000) + chunk(b"abcd", b"")))
        self.good(wav_bytes(RAMP, after=chunk(b"LIST", b"odd") + chunk(b"data", b"\1\2\3\4")))
        self.bad(wav_bytes(RAMP, before=b"LIST\xff\xff\xff\x7f"), "not a complete WAV")
        self.bad(wav_bytes(RAMP)[:12] + chunk(b"data", b"\0" * 8), "data chunk before the format")
        self.bad(wav_bytes(RAMP, before=chunk(b"fmt ", b"\0" * 8)), "format chunk of 8 bytes")
        self.bad(wav_bytes(RAMP, before=wav_bytes(RAMP)[12:36]), "two format chunks")

    def test_extensible(self):
        fmt = struct.pack("<HHIIHH", 0xFFFE, 1, 48000, 96000, 2, 16) + struct.pack("<HHIH", 22, 16, 4, 1)
        fmt += bytes.fromhex("000000001000800000aa00389b71")
        body = RAMP.astype("<i2").tobytes()
        self.good(b"RIFF" + struct.pack("<I", 80) + b"WAVE" + chunk(b"fmt ", fmt) + chunk(b"data", body))
        self.bad(b"RIFF" + struct.pack("<I", 80) + b"WAVE" + chunk(b"fmt ", fmt[:20]) + chunk(b"data", body), "40 needed")

    def test_rf64(self):
        body = RAMP.astype("<i2").tobytes()
        ds64 = struct.pack("<QQQI", 100, len(body), 10, 0)
        data = wav_bytes(RAMP, form=b"RF64", riff=0xFFFFFFFF, data=0xFFFFFFFF)
        self.good(data[:12] + chunk(b"ds64", ds64) + data[12:])
        self.bad(data[:12] + chunk(b"ds64", ds64[:20]) + data[12:], "ds64 chunk of 20 bytes")
        longer = struct.pack("<QQQI", 100, 1 << 40, 10, 0)
        self.good(data[:12] + chunk(b"ds64", longer) + data[12:], rc=3)

    def test_codings_left_to_libsndfile(self):
        self.write("in.wav", wav_bytes(RAMP))
        subprocess.run(["sox", "in.wav", "-e", "a-law", "alaw.wav"], check=True)
        self.run_program("convolve", "ir.txt", "alaw.wav", "out.wav")
        y = parse_wav(self.read("out.wav"))[1][:, 0] * 32768
        self.assertLess(np.abs(y / RAMP[:, 0] - 1).max(), 0.05)
        self.fails("convolve", "ir.txt", "-", "out2.wav", stdin=self.read("alaw.wav"), says=["coding 0x0006"])

    def test_beyond_four_gigabytes(self):
        """A sparse RF64 of 6 GB: frames beyond 2^31 are reached by seeking, not by reading."""
        n = 6 * 10**9
        head = wav_bytes(np.zeros((0, 1), int), bits=8, form=b"RF64", riff=0xFFFFFFFF, data=0xFFFFFFFF)
        head = head[:12] + chunk(b"ds64", struct.pack("<QQQI", n + 72, n, n, 0)) + head[12:]
        with open("big.wav", "wb") as f:
            f.write(head)
            f.truncate(len(head) + n)
            f.seek(len(head) + n - 5)
            f.write(bytes([129, 130, 131, 132, 133]))
        self.run_program("convolve", "--first", n - 6, "--last", n, "--json", "ir.txt", "big.wav", "out.wav")
        y = parse_wav(self.read("out.wav"))[1][:, 0] * 128
        # Holes are read as zero bytes, the lowest value of unsigned samples.
        self.assertTrue(np.array_equal(y, [-128, 1, 2, 3, 4, 5]))

    def test_output_headers(self):
        self.write("in.wav", wav_bytes(np.zeros((3, 1), int), bits=8))
        self.run_program("convolve", "-o", "u8", "ir.txt", "in.wav", "out.wav")
        data = self.read("out.wav")
        self.assertEqual(struct.unpack_from("<I", data, 4)[0], len(data) - 8)
        self.assertEqual(len(data) % 2, 0)
        self.assertEqual(parse_wav(data)[3], 3)
        piped = self.run_program("convolve", "ir.txt", "in.wav", "-").stdout
        self.assertEqual((struct.unpack_from("<I", piped, 4)[0], parse_wav(piped)[3]), (0xFFFFFFFF, 0xFFFFFFFF))
        with open("redirected.wav", "wb") as f:
            subprocess.run([rig.PROGRAM, "convolve", "-o", "u8", "ir.txt", "in.wav", "-"], stdout=f, check=True)
        self.assertEqual(self.read("redirected.wav"), data)
        with open("appended", "wb") as f:
            f.write(b"before")
        with open("appended", "ab") as f:
            subprocess.run([rig.PROGRAM, "convolve", "ir.txt", "in.wav", "-"], stdout=f, check=True)
        self.assertEqual(self.read("appended"), b"before" + piped)


class Libsndfile(Case):
    def encode(self, channels, name):
        self.write("a.wav", wav_bytes(self.random.integers(-9000, 9000, (20000, channels))))
        self.run_program("convolve", "one.txt", "a.wav", name)
        data, at, last = self.read(name), 4, False
        while not last:
            last = data[at] & 0x80
            at += 4 + int.from_bytes(data[at + 1:at + 4], "big")
        return data, at

    def test_flac_with_changing_channels_fails(self):
        """Frames of a stereo file follow those of a mono file whose header has neither a length nor
        a checksum."""
        self.write("one.txt", b"1\n")
        mono, start = self.encode(1, "m.flac")
        stereo, at = self.encode(2, "s.flac")
        header = bytearray(mono[:start])
        header[21] &= 0xF0
        header[22:42] = bytes(20)
        self.write("both.flac", bytes(header) + mono[start:] + stereo[at:])
        self.fails("convolve", "one.txt", "both.flac", "out.wav", says=["both.flac", "after", "frames"])

    def test_damaged_files_fail(self):
        self.write("one.txt", b"1\n")
        data, start = self.encode(1, "m.flac")
        self.write("bad.flac", data[:start + 5000] + bytes(100) + data[start + 5100:])
        self.fails("convolve", "one.txt", "bad.flac", "out.wav", says=["bad.flac", "frames"])

    def test_truncated_files_degrade(self):
        """libsndfile treats most of them as complete."""
        self.write("one.txt", b"1\n")
        for name in ("m.flac", "m.aiff", "m.au", "m.w64", "m.ogg"):
            data = self.encoded(name)
            self.write("cut." + name[2:], data[:len(data) // 2])
            with self.subTest(name=name):
                self.run_program("convolve", "one.txt", name, "out.wav")
                done = self.run_program("convolve", "one.txt", "cut." + name[2:], "out.wav", rc=3)
                self.assertIn(b"cut." + name[2:].encode(), done.stderr)
                self.assertGreater(len(parse_wav(self.read("out.wav"))[1]), 5000)

    def encoded(self, name):
        self.write("a.wav", wav_bytes(self.random.integers(-9000, 9000, (100000, 1))))
        self.run_program("convolve", "one.txt", "a.wav", name)
        return self.read(name)


class Npy(Case):
    def header(self, text, version=1, length=None):
        size = struct.pack("<H" if version == 1 else "<I", len(text) if length is None else length)
        return b"\x93NUMPY" + bytes([version, 0]) + size + text.encode("utf-8")

    def test_versions_orders_and_byte_orders(self):
        x = self.random.standard_normal((3, 50))
        self.write("one.txt", b"1\n")
        for dtype in ("<f4", ">f4", "<f8", ">f8", "<c8", ">c8", "<c16", ">c16"):
            for version in ((1, 0), (2, 0), (3, 0)):
                for array in (x.astype(dtype), np.asfortranarray(x.astype(dtype)), x[0].astype(dtype)):
                    with open("x.npy", "wb") as f:
                        np.lib.format.write_array(f, array, version)
                    with self.subTest(dtype=dtype, version=version):
                        self.run_program("convolve", "one.txt", "x.npy", "y.npy")
                        y = np.load("y.npy")
                        self.assertEqual((y.dtype, y.shape), (np.dtype(dtype).newbyteorder("="), array.shape))
                        self.assertTrue(np.array_equal(y, array))

    def test_integers_are_numbers(self):
        """As in NumPy: the samples have the values of the array, in the narrowest float that has all of them."""
        self.write("one.txt", b"1\n")
        for dtype in ("i1", "u1", "?", "<i2", ">i2", "<u2", "<i4", ">i4", "<u4", "<i8", ">i8", "<u8"):
            kind = np.dtype(dtype)
            values = [0, 1] if kind == bool else [np.iinfo(kind).min, 0, 1, np.iinfo(kind).max]
            x = np.array([values, values[::-1]], kind)
            for array in (x, np.asfortranarray(x), x[0]):
                np.save("x.npy", array)
                with self.subTest(dtype=dtype, shape=array.shape):
                    self.run_program("convolve", "one.txt", "x.npy", "y.npy")
                    y = np.load("y.npy")
                    self.assertEqual(y.dtype, "f8" if kind.itemsize >= 4 else "f4")
                    self.assertTrue(np.array_equal(y, array.astype("f8")))
            self.run_program("convolve", "x.npy", "one.txt", "y.npy")
            self.assertTrue(np.array_equal(np.load("y.npy"), array.astype("f8")))

    def test_integers_in_audio_files(self):
        self.write("one.txt", b"1\n")
        np.save("x.npy", np.array([0, -32768, 300], "i2"))
        done = self.run_program("convolve", "--rate", "48k", "one.txt", "x.npy", "y.wav")
        self.assertIn(b"x.npy: its integers are numbers", done.stderr)
        self.assertIn(b"--normalize sets the level of y.wav", done.stderr)
        self.assertTrue(np.array_equal(parse_wav(self.read("y.wav"))[1].ravel(), [0, -32768, 300]))
        done = self.run_program("convolve", "--normalize", "-o", "i16", "--rate", "48k", "one.txt", "x.npy", "y.wav")
        self.assertEqual(done.stderr, b"")

    def test_halves(self):
        """Every value of 16 bits. Those that are not finite are replaced by 0, or kept."""
        self.write("one.txt", b"1\n")
        for order in "<>":
            x = np.arange(65536, dtype="u2").view("<f2").astype(order + "f2")
            np.save("x.npy", x)
            self.run_program("convolve", "one.txt", "x.npy", "y.npy")
            y = np.load("y.npy")
            self.assertEqual(y.dtype, "f4")
            self.assertTrue(np.array_equal(y, np.where(np.isfinite(x), x, 0)))
            self.run_program("convolve", "--nan", "propagate", "one.txt", "x.npy", "y.npy")
            self.assertTrue(np.array_equal(np.load("y.npy"), x.astype("f4"), equal_nan=True))

    def test_pipes(self):
        self.write("one.txt", b"1\n")
        x = self.random.standard_normal((3, 50)).astype("f4")
        np.save("x.npy", np.asfortranarray(x))
        done = self.run_program("convolve", "one.txt", "-", "-", stdin=self.read("x.npy"))
        self.write("y.npy", done.stdout)
        self.assertTrue(np.array_equal(np.load("y.npy"), x))
        np.save("x.npy", x)
        self.fails("convolve", "one.txt", "-", "-", stdin=self.read("x.npy"), says=["asfortranarray"])
        self.fails("correlate", "--format", "f32", "one.txt", "-", "/dev/stdout", "-", rc=2)

    def test_length_must_be_known_for_a_pipe(self):
        self.write("one.txt", b"1\n")
        wav = wav_bytes(RAMP, data=0xFFFFFFFF)
        os.mkfifo("pipe.npy")
        reader = subprocess.Popen(["cat", "pipe.npy"], stdout=subprocess.DEVNULL)
        self.run_program("convolve", "one.txt", "-", "pipe.npy", stdin=wav, rc=1)
        reader.wait()

    def test_bad_headers(self):
        body = b"\0" * 400
        plain = "{'descr': '<f4', 'fortran_order': False, 'shape': (100,), }\n"
        np.save("one.npy", np.ones(1, "f4"))
        cases = [
            (self.header(plain, length=60000), "ends early"),
            (self.header(plain, version=2, length=0xFFFFFFFF), "4294967295 bytes; more"),
            (self.header(plain, version=9), "version 9"),
            (self.header(plain, version=0), "version 0"),
            (self.header(plain.replace("100,", "-1,")), "no valid size"),
            (self.header(plain.replace("100,", "99999999999999999999,")), "too big"),
            (self.header(plain.replace("100,", "4294967296, 4294967296,")), "channels"),
            (self.header(plain.replace("100,", "8, 4611686018427387904,")), "beyond"),
            (self.header(plain.replace("100,", "2, 1152921504606846976,")), "beyond"),
            (self.header(plain.replace("100,", "")), "without dimensions"),
            (self.header(plain.replace("100,", "0, 5,")), "0 channels"),
            (self.header(plain.replace("100,", "2, 5, 10")), "3 dimensions"),
            (self.header(plain.replace("100,", "2, 5, 1, 10")), "more than 3 dimensions"),
            (self.header(plain.replace("'<f4'", "'|O'")), "never unpickled"),
            (self.header(plain.replace("'<f4'", "[('a', '<f4')]")), "no plain type"),
            (self.header(plain.replace("'<f4'", "'<m8'")), "'<m8'; save its numbers, x.astype('f8')"),
            (self.header(plain.replace("'<f4'", "'|i2'")), "'|i2'"),
            (self.header(plain.replace("'<f4'", "'<i1'")), "'<i1'"),
            (self.header(plain.replace("'<f4'", "'f4'")), "'f4'"),
            (self.header(plain.replace("False", "0")), "Expected true or false"),
            (self.header(plain.replace("'descr'", "'dtype'")), "not found: descr"),
            (self.header(plain.replace("{", "{'dtype': 1, ")), "left unpacked: dtype"),
            (self.header(plain.replace("'shape': (100,), ", "")), "not found: shape"),
            (self.header(plain.replace("{", "{'shape': (1,), ")), "duplicate"),
            (self.header("__import__('os')"), "no dictionary"),
            (self.header(plain + "x"), "end of file expected"),
            (self.header(""), "no dictionary"),
            (b"\x93NUMPY", "version 0"),
            (b"\x93NUMPX\1\0" + b"\0" * 20, "not an .npy"),
        ]
        for data, says in cases:
            self.write("x.npy", data + body)
            with self.subTest(says=says):
                self.fails("convolve", "one.npy", "x.npy", "y.npy", says=["x.npy", says])
        self.write("x.npy", b"\x93NUMPY")
        self.fails("convolve", "one.npy", "x.npy", "y.npy", says=["x.npy", "not an .npy"])
        self.write("x.npy", b"\x93NUMPY\1\0")
        self.fails("convolve", "one.npy", "x.npy", "y.npy", says=["x.npy", "8 bytes"])

    def test_empty_file(self):
        np.save("one.npy", np.ones(1, "f4"))
        self.write("x.npy", b"")
        self.fails("convolve", "one.npy", "x.npy", "y.npy", says="x.npy: is empty")
        self.fails("convolve", "x.npy", "one.npy", "y.npy", says="x.npy: is empty")

    def test_axes_in_the_other_order(self):
        """With [frames, channels] every frame would be a channel; --max-channels confirms many
        channels."""
        np.save("one.npy", np.ones(1, "f4"))
        for shape in ((1000, 2), (257, 2), (1000, 1), (1024, 2), (1000, 16)):
            np.save("x.npy", np.ones(shape, "f4"))
            with self.subTest(shape=shape):
                self.fails("convolve", "one.npy", "x.npy", "y.npy",
                           says=["x.npy", "[channels, frames]", "x.T", "--max-channels %d" % shape[0]])
                self.fails("convolve", "x.npy", "one.npy", "y.npy", says=["x.npy", "[channels, frames]", "x.T"])
                self.fails("convolve", "one.npy", "-", "-", stdin=self.fortran(shape), says=["standard input", "x.T"])
                self.run_program("convolve", "--max-channels", shape[0], "one.npy", "x.npy", "y.npy")
                self.assertEqual(np.load("y.npy").shape, shape)
                os.remove("y.npy")
        for shape in ((48000, 2), (2000, 1)):
            np.save("x.npy", np.ones(shape, "f4"))
            self.fails("convolve", "one.npy", "x.npy", "y.npy",
                       says=["x.npy: %d channels" % shape[0], "1024 of --max-channels", "[channels, frames]", "x.T"])

    def test_many_channels_of_few_frames(self):
        """No mistakes: matrix filters with many channels, and short signals of some channels."""
        np.save("one.npy", np.ones(1, "f4"))
        for shape in ((64, 10), (64, 7), (256, 1), (16, 2), (256, 64), (3, 2), (1000, 0)):
            np.save("x.npy", np.ones(shape, "f4"))
            with self.subTest(shape=shape):
                self.run_program("convolve", "one.npy", "x.npy", "y.npy")
                self.assertEqual(np.load("y.npy").shape, shape)
        np.save("x.npy", np.ones((500, 2), "f4")) # one filter per channel
        self.run_program("convolve", "x.npy", "x.npy", "y.npy")
        self.assertEqual(np.load("y.npy").shape, (500, 3))
        np.save("h.npy", np.ones((256, 1), "f4"))
        np.save("x.npy", np.ones((16, 500), "f4"))
        self.run_program("convolve", "--matrix", "h.npy", "x.npy", "y.npy")
        self.assertEqual(np.load("y.npy").tolist(), np.full((16, 500), 16).tolist())

    @staticmethod
    def fortran(shape):
        file = io.BytesIO()
        np.save(file, np.asfortranarray(np.ones(shape, "f4")))
        return file.getvalue()

    def test_truncated(self):
        np.save("one.npy", np.ones(1, "f4"))
        for array in (np.arange(100, dtype="f4"), np.asfortranarray(np.ones((2, 50), "f4"))):
            np.save("x.npy", array)
            self.write("x.npy", self.read("x.npy")[:-42])
            self.run_program("convolve", "one.npy", "x.npy", "y.npy", rc=3)
        self.write("h.npy", self.read("x.npy"))
        np.save("x.npy", np.ones((2, 5), "f4"))
        self.run_program("convolve", "h.npy", "x.npy", "y.npy", rc=3)

    def test_a_rate_is_needed_for_audio(self):
        np.save("x.npy", np.ones(10, "f4"))
        self.fails("convolve", "x.npy", "x.npy", "out.wav", says=["out.wav", "sample rate", "--rate"])
        self.fails("convolve", "x.npy", "x.npy", "out.flac", says=["out.flac", "sample rate", "--rate"])
        self.run_program("convolve", "--rate", 8000, "x.npy", "x.npy", "out.wav")
        self.assertEqual(parse_wav(self.read("out.wav"))[0], 8000)

    def test_complex_samples_need_a_complex_format(self):
        np.save("x.npy", np.ones(10, "c8"))
        self.fails("convolve", "--rate", 8000, "x.npy", "x.npy", "out.wav", says=["out.wav", "complex", ".npy"])
        self.fails("convolve", "--output-format", "f32", "x.npy", "x.npy", "out.raw", says=["out.raw", "complex", "cf32 or cf64"])


class Raw(Case):
    TYPES = {"rf32_le": "<f4", "rf32_be": ">f4", "rf64_le": "<f8", "ri16_le": "<i2", "ri16_be": ">i2", "ri32_le": "<i4",
             "ru16_le": "<u2", "ru32_be": ">u4", "ri8": "i1", "ru8": "u1", "cf32_le": "<c8", "cf64_be": ">c16"}
    ALIASES = {"f32le": "<f4", "s16le": "<i2", "u8": "u1", "f64be": ">f8", "cf32": "<c8", "i16": "<i2", "CF32": "<c8",
               "s8": "i1"}

    def values(self, dtype):
        kind = np.dtype(dtype).kind
        if kind == "f":
            return self.random.standard_normal(100).astype(dtype)
        if kind == "c":
            return (self.random.standard_normal(100) + 1j).astype(dtype)
        info = np.iinfo(dtype)
        # 24 bits, which float represents exactly.
        return (self.random.integers(info.min >> 8, info.max >> 8, 100) << 8 if info.bits > 24
                else self.random.integers(info.min, info.max, 100)).astype(dtype)

    def test_every_name(self):
        self.write("one.txt", b"1\n")
        for name, dtype in list(self.TYPES.items()) + list(self.ALIASES.items()):
            x = self.values(dtype)
            with self.subTest(name=name):
                done = self.run_program("convolve", "-f", name, "-o", name, "one.txt", "-", "-", stdin=x.tobytes())
                self.assertEqual(done.stdout, x.tobytes())

    def test_complex_integers(self):
        self.write("one.txt", b"1\n")
        for name, dtype in (("ci16_le", "<i2"), ("cu8", "u1"), ("CS16", "<i2"), ("ci8", "i1")):
            x = self.values(dtype)
            with self.subTest(name=name):
                done = self.run_program("convolve", "-f", name, "-o", name, "one.txt", "-", "-", stdin=x.tobytes())
                self.assertEqual(done.stdout, x.tobytes())

    def test_channels(self):
        self.write("h.txt", b"0\n1\n")
        x = np.arange(12, dtype="<f4")
        done = self.run_program("convolve", "-f", "f32", "-c", 3, "h.txt", "-", "-", stdin=x.tobytes())
        self.assertTrue(np.array_equal(np.frombuffer(done.stdout, "<f4"), np.concatenate([[0, 0, 0], x])))

    def test_taps(self):
        self.write("h.raw", np.array([0, 16384], "<i2").tobytes())
        done = self.run_program("convolve", "-f", "f32", "--ir-format", "ri16_le", "h.raw", "-", "-",
                                stdin=np.ones(2, "<f4").tobytes())
        self.assertTrue(np.array_equal(np.frombuffer(done.stdout, "<f4"), np.array([0, 0.5, 0.5], "f4")))

    def test_suffix_naming_a_sample_type(self):
        self.write("one.txt", b"1\n")
        self.write("x.raw", np.ones(4, "<f4").tobytes())
        self.run_program("convolve", "-f", "f32", "one.txt", "x.raw", "y.ri16_le")
        self.assertEqual(self.read("y.ri16_le"), np.array([32767] * 4, "<i2").tobytes())

    def test_incomplete_frames_degrade(self):
        self.write("one.txt", b"1\n")
        whole = np.arange(4, dtype="<i2").tobytes()
        for data, pipe in ((whole + b"x", True), (whole + b"x", False)):
            self.write("x.raw", data)
            done = self.run_program("convolve", "-f", "s16le", "one.txt", "-" if pipe else "x.raw", "-",
                                    stdin=data if pipe else b"", rc=3)
            self.assertEqual(done.stdout, whole)
            self.assertIn(b"1 bytes of a frame of 2", done.stderr)

    def test_bad_names(self):
        self.write("one.txt", b"1\n")
        for name in ("f16", "i64", "u24le_", "cx32", "", "r", "f", "f32_xe", "u12", "c", "f32f32f32f32f32", "i16_le "):
            with self.subTest(name=name):
                self.fails("convolve", "-f", name, "one.txt", "-", "-", rc=2, says=["--format", "sample type"])

    def test_a_file_with_a_header_is_not_raw(self):
        self.write("one.txt", b"1\n")
        self.write("in.wav", wav_bytes(RAMP))
        self.fails("convolve", "-f", "f32", "one.txt", "in.wav", "out.raw", rc=2, says=["--format", "in.wav"])

    def test_unknown_bytes_on_a_pipe(self):
        self.write("one.txt", b"1\n")
        self.fails("convolve", "one.txt", "-", "-", stdin=b"fLaC" + b"\0" * 100, says=["standard input", "--format"])
        self.fails("convolve", "one.txt", "-", "-", stdin=b"caff" + b"\0" * 100, says=["standard input", "--format"])
        self.fails("convolve", "one.txt", "-", "-", stdin=b"", says=["standard input"])


class Text(Case):
    def setUp(self):
        super().setUp()
        np.save("x.npy", np.ones(1, "f8"))

    def taps(self, data):
        self.write("h.txt", data)
        self.run_program("convolve", "h.txt", "x.npy", "y.npy")
        return np.load("y.npy").tolist()

    def test_ignored_characters(self):
        self.assertEqual(self.taps(b"1\n2\n3"), [1, 2, 3])
        self.assertEqual(self.taps(b"\xef\xbb\xbf1\r\n\r\n  2  \r\n\n# note, 5\n-3e0 # end\n"), [1, 2, -3])
        self.assertEqual(self.taps(b"0x1p-3\n+.5\n"), [0.125, 0.5])

    def test_locale_does_not_matter(self):
        self.write("h.txt", b"0.5\n")
        for locale in ("de_DE.UTF-8", "C.UTF-8", "fr_FR"):
            self.run_program("convolve", "h.txt", "x.npy", "y.npy", env={"LC_ALL": locale, "LANG": locale})
            self.assertEqual(np.load("y.npy").tolist(), [0.5])

    def test_errors_name_the_line(self):
        cases = [(b"1\nnan\n", "line 2", "not a number"), (b"1\n\n1e999\n", "line 3", "too large"),
                 (b"-inf\n", "line 1", "infinite"), (b"1,5\n", "line 1", "point"), (b"1\n2 3\n", "line 2", "one number"),
                 (b"1\nx\n", "line 2", "one number"), (b"1\n" + b"9" * 300 + b"\n", "line 2", "longer"),
                 (b"1\n2\0\n", "line 2", "zero byte"), (b"1\n\0\n", "line 2", "")]
        for data, line, why in cases:
            self.write("h.txt", data)
            with self.subTest(data=data[:20]):
                self.fails("convolve", "h.txt", "x.npy", "y.npy", says=["h.txt", line, why])

    def test_no_values(self):
        for data in (b"", b"\n\n", b"# nothing\n"):
            self.write("h.txt", data)
            self.fails("convolve", "h.txt", "x.npy", "y.npy", says=["h.txt", "no samples"])

    def test_many_lines(self):
        self.write("h.txt", b"0\n" * 999999 + b"1\n")
        self.run_program("convolve", "--first", 999998, "--last", 1000001, "h.txt", "x.npy", "y.npy")
        self.close(np.load("y.npy"), np.array([0.0, 1.0, 0.0]), 1e-9)


class Channels(Case):
    """More channels than a chunk of frames has samples."""

    def test_many_channels(self):
        self.write("h.txt", b"1\n0.5\n0.25\n")
        for channels in (70000, 262143, 262144, 262145, 270000):
            x = self.random.standard_normal((2, channels)).astype("<f4")
            self.write("x.f32", x.tobytes())
            expected = np.zeros((4, channels))
            for k, tap in enumerate((1, 0.5, 0.25)):
                expected[k:k + 2] += tap * x
            for options, first, last in (([], 0, 4), (["--first", 0, "--last", 2], 0, 2), (["--range", "2/2"], 2, 4),
                                         (["--threads", 2], 0, 4), (["--block", 64], 0, 4)):
                with self.subTest(channels=channels, options=options):
                    self.run_program("convolve", "-f", "f32", "-c", channels, "--max-channels", 1000000, *options, "h.txt",
                                     "x.f32", "y.f32")
                    y = np.fromfile("y.f32", "<f4").reshape(-1, channels)
                    self.close(y, expected[first:last].astype("f4"))
                    os.remove("y.f32")

    def test_many_channels_resampled(self):
        h = self.random.standard_normal(30).astype("f4")
        np.save("h.npy", h)
        for channels, frames in ((1500, 900), (70000, 40)):
            x = self.random.standard_normal((frames, channels)).astype("<f4")
            self.write("x.f32", x.tobytes())
            stuffed = np.zeros((3 * frames + 29, channels))
            for k in range(30):
                stuffed[k:k + 3 * frames:3] += float(h[k]) * x
            for options, expected in ((["--up", 3], stuffed), (["--up", 3, "--stride", 2], stuffed[::2])):
                self.run_program("convolve", "-e", "cpu/direct", "-f", "f32", "-c", channels, "--max-channels", channels,
                                 *options, "h.npy", "x.f32", "y.f32")
                y = np.fromfile("y.f32", "<f4").reshape(-1, channels)
                self.close(y[:len(expected)], expected.astype("f4"))
                self.assertFalse(y[len(expected):].any())

    def test_join(self):
        x = self.random.standard_normal((2, 270000)).astype("<f4")
        self.write("x.f32", x.tobytes())
        self.write("one.txt", b"1\n")
        shape = ["-c", 270000, "--max-channels", 1000000]
        for k in (1, 2):
            self.run_program("convolve", "-f", "f32", *shape, "--range", "%d/2" % k, "one.txt", "x.f32", "s%d.f32" % k)
        self.run_program("join", *shape, "--max-memory", "200M", "y.f32", "s1.f32", "s2.f32")
        np.testing.assert_array_equal(np.fromfile("y.f32", "<f4").reshape(2, -1), x)


class Taps(Case):
    def test_one_tap_and_longer_than_the_signal(self):
        np.save("x.npy", np.array([1.0, 2.0]))
        np.save("h.npy", np.array([3.0]))
        self.run_program("convolve", "h.npy", "x.npy", "y.npy")
        self.assertEqual(np.load("y.npy").tolist(), [3, 6])
        h = self.random.standard_normal(30000)
        np.save("h.npy", h)
        self.run_program("convolve", "h.npy", "x.npy", "y.npy")
        self.close(np.load("y.npy"), np.convolve([1.0, 2.0], h))

    def test_endless_taps_are_refused(self):
        np.save("x.npy", np.array([1.0, 2.0]))
        self.fails("convolve", "--ir-format", "u8", "/dev/zero", "x.npy", "y.npy", says=["/dev/zero", "too long"])
        with open("h.raw", "wb") as f:
            f.truncate(4 << 31)
        self.fails("convolve", "--ir-format", "f32", "h.raw", "x.npy", "y.npy", says=["h.raw", "too long"])

    def test_two_files_beyond_memory(self):
        with open("h.raw", "wb") as f:
            f.truncate(1 << 42)
        form = ["--ir-format", "f32", "--format", "f32", "--rate", 1]
        self.fails("convolve", *form, "h.raw", "h.raw", "y.npy", says=["h.raw", "too long", "GiB", "exchanged"])
        self.fails("correlate", *form, "h.raw", "h.raw", "y.npy", says=["h.raw", "too long", "GiB"])

    def test_one_text_for_both_sides(self):
        self.write("h.txt", b"1\n2\n")
        self.run_program("convolve", "h.txt", "h.txt", "y.npy")
        self.assertEqual(np.load("y.npy").tolist(), [1, 4, 4])


if __name__ == "__main__":
    rig.main()

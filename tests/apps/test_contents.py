#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files whose name promises one thing and whose first bytes another: every format under every name, as IN, IR, standard
input and impulse of a configuration. Either the samples are right or one line says what the file begins like."""
import json
import os
import struct
import subprocess

import numpy as np

import rig
from rig import Case, chunk, parse_wav, wav_bytes

FRAMES = 2000
FOUR_GIB = 1 << 32

# Suffixes of real formats, of none, and of raw samples.
HEADED = (".wav", ".WAV", ".rf64", ".RF64", ".npy", ".flac", ".FLAC", ".au", ".txt", ".raw", "")
RAW = (".f32", ".F64", ".cu8", ".iq")
FOREIGN = {"PNG": b"\x89PNG\r\n\x1a\n", "HDF5": b"\x89HDF\r\n\x1a\n", "ZIP": b"PK\x03\x04", "PDF": b"%PDF-1.7\n",
           "gzip": b"\x1f\x8b\x08\x00", "MP4": b"\0\0\0\x20ftypM4A "}


def rf64(frames, form=b"RF64"):
    data = wav_bytes(frames, form=form, riff=0xFFFFFFFF, data=0xFFFFFFFF)
    sizes = struct.pack("<QQQI", len(data) + 28, 2 * frames.size, len(frames), 0)
    return data[:12] + chunk(b"ds64", sizes) + data[12:]


class Contents(Case):
    def setUp(self):
        super().setUp()
        self.x = (self.random.standard_normal((FRAMES, 2)) * 3000).astype(int)
        self.write("one.txt", b"1\n")
        self.write("one.wav", wav_bytes(np.array([[1.0, 1.0]], "f4"), bits=32))
        self.write("source.wav", wav_bytes(self.x))

    def formats(self):
        """(name in messages, bytes)"""
        yield "WAV", wav_bytes(self.x)
        yield "RF64", rf64(self.x)
        yield "BW64", rf64(self.x, b"BW64")
        np.save("made.npy", (self.x / 32768).T.astype("f4"))
        yield ".npy", self.read("made.npy")
        for name, suffix in (("FLAC", "flac"), ("AIFF", "aiff"), ("CAF", "caf"), ("AU", "au"), ("W64", "w64")):
            self.run_program("convolve", "--output-format", "i16", "one.txt", "source.wav", "made." + suffix)
            yield name, self.read("made." + suffix)

    def check(self, arguments, name, readable, label, **more):
        with self.subTest(label=label, arguments=arguments):
            if readable:
                self.run_program("convolve", "--rate", 48000, "--output-format", "f64", *arguments, "out.wav", **more)
                np.testing.assert_array_equal(np.rint(parse_wav(self.read("out.wav"))[1] * 32768), self.x)
                os.remove("out.wav")
            else:
                said = self.fails("convolve", *arguments, "out.wav", says="begins like", **more)
                self.assertIn("begins like " + name, said.replace("a ZIP", "ZIP"))

    def test_formats_under_all_names(self):
        # The rate of the file is the one that --rate gives, or --rate would be refused.
        for name, data in list(self.formats()):
            for suffix in HEADED + RAW + (".sofa", ".SOFA"):
                path = self.write("x" + suffix, data)
                readable = suffix not in RAW and "sofa" not in suffix.lower()
                if suffix in (".wav", ".WAV", "", ".txt") or suffix in RAW:  # SOFA files: test_sofa.py
                    self.check([path, "one.wav"], name, readable, name + suffix)
                self.check(["one.txt", path], name, readable, name + suffix)
                os.remove(path)

    def test_headers_where_raw_samples_are_promised(self):
        for name, data in list(self.formats()):
            path = self.write("x.bin", data)
            self.check(["--format", "s16", "-c", "2", "one.txt", path], name, False, name)
            self.check(["--format", "s16", "-c", "2", "one.txt", "-"], name, False, name, stdin=data)

    def test_pipes(self):
        for name, data in list(self.formats()):
            piped = name in ("WAV", "RF64", "BW64")
            if name != ".npy":  # in pipes only in Fortran order
                self.check(["one.txt", "-"], name, piped, name, stdin=data)

    def test_foreign_files(self):
        for name, magic in FOREIGN.items():
            for suffix in (".wav", ".NPY", ".txt", ".flac", ".raw", "") + RAW[:2]:
                path = self.write("x" + suffix, magic + bytes(5000))
                self.check(["one.txt", path], name, False, name + suffix)
                self.check([path, "source.wav"], name, False, name + suffix)
                os.remove(path)

    def test_text(self):
        for suffix in (".wav", ".WAV", ".rf64", ".flac", ".dat", ""):
            path = self.write("x" + suffix, b"\xef\xbb\xbf# taps\n0.5\n0.25\n")
            self.fails("convolve", path, "source.wav", "out.wav", says=["begins like text", ".txt"])
        self.fails("convolve", self.write("x.npy", b"0.5\n0.25\n"), "source.wav", "out.wav", says="not an .npy file")

    def test_empty_files(self):
        for suffix in (".wav", ".rf64", ".npy", ".flac", ".dat", ""):
            path = self.write("x" + suffix, b"")
            self.fails("convolve", path, "source.wav", "out.wav", says=[path, "is empty"])
            self.fails("convolve", "one.txt", path, "out.wav", says=[path, "is empty"])
        self.fails("convolve", "one.txt", "-", "out.wav", says="standard input: is empty")

    def test_impulses_of_configurations(self):
        for name, data in list(self.formats()):
            for suffix in (".wav", ".rf64", ".f64"):
                self.write("x" + suffix, data)
                self.write("c.conf", b"/convolver/new 1 1 256 4000\n/impulse/read 1 1 1 0 0 0 1 x%s\n" % suffix.encode())
                self.write("mono.wav", wav_bytes(self.x[:, :1]))
                with self.subTest(name=name, suffix=suffix):
                    if suffix == ".f64":
                        self.fails("convolve", "--config", "c.conf", "mono.wav", "out.wav", says="begins like " + name)
                    else:
                        self.run_program("convolve", "--config", "c.conf", "mono.wav", "out.wav")

    def test_names_and_contents_of_configurations(self):
        jconvolver = b"/convolver/new 2 2 256 4000\n/impulse/dirac 1 1 1 0\n/impulse/dirac 2 2 1 0\n"
        for name, data, says in (("c.conf", self.read("source.wav"), "it is no text"), ("c.YML", b"", "no configuration"),
                                 ("c.cfg", b"", "the file ends"), ("c.CONF", b"", "no configuration of jconvolver"),
                                 ("c.yaml", jconvolver, "no configuration of CamillaDSP"),
                                 ("c.conf", b"devices: {samplerate: 48000}", "no command of jconvolver"),
                                 ("c.wav", jconvolver, "the name of a configuration ends with"),
                                 ("c", jconvolver, "the name of a configuration ends with")):
            self.write(name, data)
            self.fails("convolve", "--config", name, "source.wav", "out.wav", says=[name, says])
        for name in ("c.conf", "C.CONF"):
            self.write(name, jconvolver)
            self.run_program("convolve", "--config", name, "source.wav", "out.wav")

    def test_camilladsp_may_skip_a_header(self):
        self.write("x.wav", wav_bytes(self.x[:, :1]))
        text = ("devices: {samplerate: 48000, chunksize: 64, capture: {channels: 1}, playback: {channels: 1}}\n"
                "filters: {f: {type: Conv, parameters: {type: Raw, filename: x.wav, format: S16LE%s}}}\n"
                "pipeline: [{type: Filter, channel: 0, names: [f]}]\n")
        self.write("mono.wav", wav_bytes(np.array([[16384]])))
        self.write("c.yml", (text % ", skip_bytes_lines: 44").encode())
        self.run_program("convolve", "--config", "c.yml", "--output-format", "f64", "mono.wav", "out.wav")
        np.testing.assert_array_equal(np.rint(parse_wav(self.read("out.wav"))[1] * 65536), self.x[:, :1])
        os.remove("out.wav")
        self.write("c.yml", (text % "").encode())
        self.fails("convolve", "--config", "c.yml", "mono.wav", "out.wav", says="begins like WAV")

    def test_metadata_of_sigmf_under_upper_case_names(self):
        meta = {"global": {"core:datatype": "ri16_le", "core:version": "1.0.0", "core:sample_rate": 48000,
                           "core:num_channels": 2}, "captures": [{"core:sample_start": 0}], "annotations": []}
        for data, description in ((".sigmf-data", ".sigmf-meta"), (".SIGMF-DATA", ".SIGMF-META")):
            self.write("r" + data, self.x.astype("<i2").tobytes())
            self.write("r" + description, json.dumps(meta).encode())
            for name in ("r" + data, "r" + description):
                self.check(["one.txt", name], "", True, name)
            self.write("r" + data, wav_bytes(self.x))
            self.fails("convolve", "one.txt", "r" + description, "out.wav", says="begins like WAV")
            for wrong in (b"", wav_bytes(self.x), b"\x89PNG\r\n\x1a\n"):
                self.write("r" + description, wrong)
                self.fails("convolve", "one.txt", "r" + description, "out.wav", says="is not JSON")


class Rf64(Case):
    """What the program writes under .rf64 it reads again, in all roles."""

    def test_round_trip(self):
        x = (self.random.standard_normal((3000, 2)) * 1000000).astype(int)
        self.write("in.wav", wav_bytes(x, bits=24))
        self.write("one.txt", b"1\n")
        for suffix in (".rf64", ".RF64", ".bw64"):
            name = "x" + suffix
            self.run_program("convolve", "--precision", "f64", "one.txt", "in.wav", name)
            self.run_program("convolve", "--precision", "f64", "one.txt", name, "y.wav")
            rate, y, bits, _ = parse_wav(self.read("y.wav"))
            self.assertEqual((rate, bits, y.shape), (48000, 24, x.shape))
            np.testing.assert_array_equal(np.rint(y * 2**23), x)
            self.run_program("convolve", "--precision", "f64", "--output-format", "f64", name, "one.txt", "z.wav",
                             "--rate", 48000)
            np.testing.assert_array_equal(np.rint(parse_wav(self.read("z.wav"))[1] * 2**23), x)
            self.fails("convolve", "--format", "f64", "one.txt", name, "out.wav", rc=2, says="with a header")


class Sizes(Case):
    """Files that are longer than their headers say. Sparse files: what is not written are zeros."""

    def setUp(self):
        super().setUp()
        self.write("one.txt", b"1\n")

    def sparse(self, name, header, size, tail, after=b""):
        """`size` bytes of samples, the last of which are `tail`."""
        with open(name, "wb") as f:
            f.write(header)
            f.seek(len(header) + size - len(tail))
            f.write(tail + after)
        return name

    def last_frames(self, name, frames, rc=0):
        done = self.run_program("convolve", "--first", frames - 10, "--last", frames, "one.txt", name, "out.wav", rc=rc)
        return np.rint(parse_wav(self.read("out.wav"))[1] * 32768), done.stderr.decode()

    def test_sizes_that_wrapped(self):
        tail = np.arange(1, 21, dtype="<i2")
        for wraps, rest, after in ((1, 80000, b""), (1, 80000, chunk(b"LIST", b"INFO") + chunk(b"abcd", b"x")),
                                   (3, 40, b""), (1, 0, b"")):
            size = wraps * FOUR_GIB + rest
            header = wav_bytes(np.zeros((0, 2), int), channels=2, align=4, data=rest, riff=(rest + 36) % FOUR_GIB)
            self.sparse("in.wav", header, size, tail.tobytes(), after)
            with self.subTest(wraps=wraps, rest=rest, after=after):
                y, said = self.last_frames("in.wav", size // 4)
                np.testing.assert_array_equal(y, tail.reshape(-1, 2))
                if rest:  # 0 stands for the end
                    self.assertIn("longer by %d bytes than its header can count" % (wraps * FOUR_GIB), said)

    def test_placeholders_of_longer_files(self):
        tail = np.arange(1, 21, dtype="<i2")
        header = wav_bytes(np.zeros((0, 2), int), channels=2, align=4, data=0x7FFFF000, riff=0x7FFFF024)
        self.sparse("in.wav", header, 0x80001000, tail.tobytes())
        y, said = self.last_frames("in.wav", 0x80001000 // 4)
        np.testing.assert_array_equal(y, tail.reshape(-1, 2))
        self.assertEqual(said, "")

    def test_chunks_behind_the_samples_are_not_samples(self):
        x = np.arange(1, 1001)
        for after in (chunk(b"LIST", b"INFO"), chunk(b"id3 ", bytes(3001)), chunk(b"bext", bytes(700)) * 3):
            data = wav_bytes(x, after=after)
            for more in ({"stdin": data}, {}):
                self.write("in.wav", data)
                done = self.run_program("convolve", "one.txt", "-" if more else "in.wav", "out.wav", **more)
                self.assertEqual(done.stderr, b"")
                self.assertEqual(len(parse_wav(self.read("out.wav"))[1]), 1000)

    def test_samples_behind_the_stated_end_are_said(self):
        x = self.random.integers(-30000, 30000, 1000)
        data = wav_bytes(x, data=600)
        self.write("in.wav", data)
        done = self.run_program("convolve", "one.txt", "in.wav", "out.wav")
        self.assertIn(b"in.wav: 1400 bytes follow the samples that its header counts, and are not read", done.stderr)
        self.assertEqual(len(parse_wav(self.read("out.wav"))[1]), 300)
        done = self.run_program("convolve", "in.wav", "one.txt", "out.wav")
        self.assertIn(b"in.wav: 1400 bytes follow", done.stderr)
        done = self.run_program("convolve", "one.txt", "-", "out.wav", stdin=data)
        self.assertIn(b"standard input: goes on after the samples that its header counts", done.stderr)
        self.write("two.wav", wav_bytes(np.concatenate((x[:300], np.zeros(600, int), x[300:500])), data=1800))
        done = self.run_program("deconvolve", "in.wav", "two.wav", "out.wav")
        self.assertIn(b"in.wav: 1400 bytes follow", done.stderr)
        self.assertIn(b"two.wav: 400 bytes follow", done.stderr)
        self.write("c.conf", b"/convolver/new 1 1 256 4000\n/impulse/read 1 1 1 0 0 0 1 in.wav\n")
        done = self.run_program("convolve", "--config", "c.conf", "two.wav", "out.wav")
        self.assertIn(b"in.wav: 1400 bytes follow", done.stderr)

    def test_a_pipe_with_two_files(self):
        x = np.arange(1, 1001)
        data = wav_bytes(x)
        read, write = os.pipe()
        os.write(write, data + data)
        os.close(write)
        for _ in range(2):  # the second file is still in the pipe
            subprocess.run([rig.PROGRAM, "convolve", "-q", "one.txt", "-", "out.wav"], stdin=read, check=True)
            np.testing.assert_array_equal(np.rint(parse_wav(self.read("out.wav"))[1][:, 0] * 32768), x)
        os.close(read)

    def test_sizes_of_ds64(self):
        x = np.arange(1, 1001)
        whole = rf64(x)
        at = whole.index(b"ds64") + 16
        for size, frames, rc in ((2000, 1000, 0), (0, 1000, 0), ((1 << 64) - 1, 1000, 0), (1000, 500, 0), (4000, 1000, 3),
                                 (1 << 40, 1000, 3), (1 << 62, 1000, 3), (1 << 63, 1000, 3), ((1 << 64) - 2, 1000, 3)):
            data = bytearray(whole)
            struct.pack_into("<Q", data, at, size)
            if size == 0:
                struct.pack_into("<Q", data, at - 8, 0)  # that of the file, too
            for more in ({}, {"stdin": bytes(data)}):
                with self.subTest(size=size, pipe=bool(more)):
                    self.write("in.rf64", data)
                    done = self.run_program("convolve", "one.txt", "-" if more else "in.rf64", "out.wav", rc=rc, **more)
                    y = parse_wav(self.read("out.wav"))[1][:, 0]
                    np.testing.assert_array_equal(np.rint(y * 32768), x[:frames])
                    self.assertEqual(done.stderr != b"", rc == 3 or frames < 1000)

    def test_ds64_with_a_short_size_of_zero(self):
        x = np.arange(1, 1001)
        data = bytearray(rf64(x))
        struct.pack_into("<I", data, data.index(b"data") + 4, 0)
        self.write("in.wav", data)
        self.run_program("convolve", "one.txt", "in.wav", "out.wav")
        self.assertEqual(len(parse_wav(self.read("out.wav"))[1]), 1000)


if __name__ == "__main__":
    rig.main()

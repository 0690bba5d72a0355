#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""WAV files whose chunks or sizes are at the edge of the format: the rule of the manual page (FILES AND CHANNELS), and
what SoX, ffmpeg and libsndfile read of the same bytes, from files and pipes, where they are installed.

The rule: the first data chunk holds the samples, and what follows is not read. Its size counts, but not beyond the end
of the file, which is a loss (status 3). Sizes that programs write into pipes, because they do not know it, stand for
the end: 0, if the size of the whole file is not that of a file without samples and with other chunks; 0x7ffff000 to
0x80000000 and 0xfffff000 to 0xffffffff, if a file is shorter."""
import ctypes
import ctypes.util
import os
import shutil
import struct
import subprocess

import numpy as np

import rig
from rig import Case, chunk, parse_wav, wav_bytes

FRAMES = 100
RAMP = np.arange(1, FRAMES + 1) * 100
TEXT = b"INFOISFT\3\0\0\0abc"  # of an odd size
WORDS = chunk(b"LIST", TEXT)
SAMPLES = np.frombuffer(chunk(b"LIST", b"INFOword"), "<i2")  # an even chunk, read as samples
MORE = chunk(b"data", (-RAMP[:50]).astype("<i2").tobytes())
PLACEHOLDERS = (0x7FFFF000, 0x7FFFFFFF, 0x80000000, 0xFFFFF000, 0xFFFFFFFE, 0xFFFFFFFF)
PROMISES = (0x7FFFEFFE, 0x80000002, 0xC0000000, 0xFFFFEFFE)  # no placeholders


def edges():
    """(name, bytes, samples by the rule, status); None: refused."""
    yield "plain", wav_bytes(RAMP), RAMP, 0
    yield "odd-list-before-format", wav_bytes(RAMP, before=WORDS), RAMP, 0
    yield "odd-list-without-pad", wav_bytes(RAMP, before=chunk(b"LIST", TEXT, pad=False)), RAMP, 0
    whole = wav_bytes(RAMP)
    yield "odd-list-before-data", whole[:36] + WORDS + whole[36:], RAMP, 0
    yield "odd-list-pad-not-zero", whole[:36] + WORDS[:-1] + b"\x55" + whole[36:], RAMP, 0
    yield "odd-list-after-data", wav_bytes(RAMP, after=WORDS), RAMP, 0
    yield "unknown-chunks", wav_bytes(RAMP, before=chunk(b"JUNK", bytes(77)) + chunk(b"abcd", b"")), RAMP, 0
    yield "list-longer-than-file", wav_bytes(RAMP, before=b"LIST" + struct.pack("<I", 0x7FFFF000)), None, 1
    yield "data-before-format", whole[:12] + whole[36:] + whole[12:36], None, 1
    yield "two-data-chunks", wav_bytes(RAMP, after=MORE), RAMP, 0
    yield "two-data-chunks-with-list", wav_bytes(RAMP, after=WORDS + MORE), RAMP, 0
    yield "second-data-chunk-only", wav_bytes(RAMP[:0], after=MORE), RAMP[:0], 0
    yield "odd-data-size", wav_bytes(RAMP, data=2 * FRAMES - 1), RAMP[:-1], 0
    yield "data-size-too-small", wav_bytes(RAMP, data=100), RAMP[:50], 0
    yield "riff-size-0", wav_bytes(RAMP, riff=0), RAMP, 0
    yield "riff-size-too-small", wav_bytes(RAMP, riff=60), RAMP, 0
    yield "riff-size-too-large", wav_bytes(RAMP, riff=0xFFFFFFFF), RAMP, 0
    yield "both-sizes-0", wav_bytes(RAMP, riff=0, data=0), RAMP, 0
    for size in PLACEHOLDERS:
        yield "size-%x" % size, wav_bytes(RAMP, data=size, riff=min(size + 36, 0xFFFFFFFF)), RAMP, 0
    for size in PROMISES:
        yield "size-%x" % size, wav_bytes(RAMP, data=size, riff=size + 36), RAMP, 3
    for size in (0x7FFFF000, 0xFFFFFFFF):
        yield ("size-%x-and-list" % size, wav_bytes(RAMP, data=size, after=chunk(b"LIST", b"INFOword")),
               np.concatenate((RAMP, SAMPLES)), 0)


# What SoX 14.4.2, ffmpeg 5.1 and libsndfile 1.2.0 make of these bytes where the rule says something else, with the
# reason for the rule; (name, True): of a pipe alone.
BOTH = np.concatenate((RAMP, -RAMP[:50]))
OTHERS = {
    # A missing pad byte is forgiven where a known chunk follows: the others lose all samples.
    "sox": {"odd-list-without-pad": None,
            # Placeholders in both places are what a program that was stopped leaves: ffmpeg reads on, too.
            "both-sizes-0": RAMP[:0]},
    # ffmpeg plays the second data chunk of files, and both of pipes; libsndfile refuses them in files.
    "ffmpeg": {"odd-list-without-pad": None, "data-before-format": RAMP, "two-data-chunks": -RAMP[:50],
               ("two-data-chunks", True): BOTH, "two-data-chunks-with-list": -RAMP[:50],
               ("two-data-chunks-with-list", True): BOTH,
               # An empty chunk, it says, goes on to the end of the file.
               "second-data-chunk-only": np.concatenate((np.frombuffer(MORE[:8], "<i2"), -RAMP[:50]))},
    "libsndfile": {"odd-list-without-pad": None, "two-data-chunks": None, "two-data-chunks-with-list": None,
                   "second-data-chunk-only": None, "both-sizes-0": RAMP[:0]}}


class Info(ctypes.Structure):
    _fields_ = [("frames", ctypes.c_int64)] + [(name, ctypes.c_int) for name in
                                              ("samplerate", "channels", "format", "sections", "seekable")]


def read_libsndfile(data, pipe):
    """Through sf_open_fd: 16-bit samples, or None."""
    library = ctypes.CDLL(ctypes.util.find_library("sndfile"))
    library.sf_open_fd.restype = ctypes.c_void_p
    library.sf_readf_short.restype = ctypes.c_int64
    library.sf_readf_short.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    library.sf_close.argtypes = [ctypes.c_void_p]
    if pipe:
        fd, end = os.pipe()
        os.write(end, data)  # less than a pipe holds
        os.close(end)
    else:
        fd = os.open("in.wav", os.O_RDONLY)
    info, frames, got = Info(), np.zeros(4096, "<i2"), 0
    handle = library.sf_open_fd(fd, 0x10, ctypes.byref(info), 1)  # closes it, also on failure
    if handle:
        got = library.sf_readf_short(handle, frames.ctypes.data, len(frames))
        library.sf_close(handle)
    return frames[:got] if handle else None


def read_with(command):
    def read(data, pipe):
        words = [word if word != "IN" else "-" if pipe else "in.wav" for word in command]
        done = subprocess.run(words, input=data if pipe else b"", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              timeout=60)
        samples = np.frombuffer(done.stdout[:len(done.stdout) // 2 * 2], "<i2")
        return samples if len(samples) or done.returncode == 0 else None
    return read


READERS = {"sox": read_with(["sox", "-t", "wav", "IN", "-t", "s16", "-L", "-"]),
           "ffmpeg": read_with(["ffmpeg", "-v", "error", "-f", "wav", "-i", "IN", "-f", "s16le", "-"]),
           "libsndfile": read_libsndfile}


def is_installed(reader):
    return ctypes.util.find_library("sndfile") if reader == "libsndfile" else shutil.which(reader)


class Sizes(Case):
    def setUp(self):
        super().setUp()
        self.write("ir.txt", b"1\n")

    def ours(self, name, pipe, status):
        done = self.run_program("convolve", "ir.txt", "-" if pipe else "in.wav", "out.wav", rc=status,
                                stdin=self.read("in.wav") if pipe else b"")
        if status == 1:
            self.assertFalse(os.path.exists("out.wav"))
            return None
        self.assertEqual(b"frames" in done.stderr, status == 3, (name, done.stderr))
        samples = np.rint(parse_wav(self.read("out.wav"))[1][:, 0] * 32768)
        os.remove("out.wav")
        return samples

    def same(self, name, got, expected):
        if expected is None:
            self.assertIsNone(got, name)
        else:
            self.assertIsNotNone(got, name)
            np.testing.assert_array_equal(got, expected, name)

    def test_the_rule(self):
        for name, data, expected, status in edges():
            self.write("in.wav", data)
            for pipe in (False, True):
                with self.subTest(name=name, pipe=pipe):
                    self.same(name, self.ours(name, pipe, status), expected)

    def check_reader(self, reader):
        if not is_installed(reader):
            self.skipTest(reader + " is not installed")
        for name, data, expected, _ in edges():
            self.write("in.wav", data)
            for pipe in (False, True):
                with self.subTest(reader=reader, name=name, pipe=pipe):
                    read, others = READERS[reader](data, pipe), OTHERS[reader]
                    try:
                        self.same(name, read, expected)
                    except AssertionError:
                        if name not in others:
                            raise
                        self.same(name, read, others.get((name, pipe), others[name]))

    def test_sox(self):
        self.check_reader("sox")

    def test_ffmpeg(self):
        self.check_reader("ffmpeg")

    def test_libsndfile(self):
        self.check_reader("libsndfile")


if __name__ == "__main__":
    rig.main()

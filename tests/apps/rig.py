# SPDX-License-Identifier: MIT
"""Shared by the tests of the program: runs it, composes input files, reads outputs, reports as TAP.

Cases are unittest methods; `main()` prints one TAP line for each, named after the method. The program is the first
argument. Error gates are those of the library: relative L2 error of 3 u sqrt(log2 N) for FFT sizes
N up to 2**20.
"""
import importlib
import math
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import traceback
import unittest
import zlib

import numpy as np

PROGRAM = ""
SOFA = "/usr/share/libmysofa/MIT_KEMAR_normal_pinna.sofa"
U = {np.dtype("f4"): 2.0**-24, np.dtype("c8"): 2.0**-24, np.dtype("f8"): 2.0**-53, np.dtype("c16"): 2.0**-53}


def gate(dtype):
    return 3 * U[np.dtype(dtype)] * math.sqrt(20)


def unfiltered(kind, row, above):
    """The bytes of a row of a PNG of 3 bytes a pixel, by the filter that it begins with."""
    if kind < 2:
        return np.cumsum(row.reshape(-1, 3), axis=0, dtype="u1").ravel() if kind else row
    if kind == 2:
        return row + above
    row, above = [int(v) for v in row], [0, 0, 0] + [int(v) for v in above]
    for i, up in enumerate(above[3:]):
        left, corner = (row[i - 3], above[i]) if i > 2 else (0, 0)
        guess = (left + up) // 2
        if kind == 4:
            guess = min((left, up, corner), key=lambda v: abs(left + up - corner - v))
        row[i] = (row[i] + guess) % 256
    return np.array(row, "u1")


def picture(data):
    """[height][width][3] of a PNG of 8 bits; only what cairo writes."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, body, size = 8, b"", None
    while at < len(data):
        length, = struct.unpack_from(">I", data, at)
        name, chunk = data[at + 4:at + 8], data[at + 8:at + 8 + length]
        assert zlib.crc32(name + chunk) == struct.unpack_from(">I", data, at + 8 + length)[0]
        if name == b"IHDR":
            size = struct.unpack(">II", chunk[:8])
        if name == b"IDAT":
            body += chunk
        at += 12 + length
    rows = [np.zeros(3 * size[0], "u1")]
    for row in np.frombuffer(zlib.decompress(body), "u1").reshape(size[1], 1 + 3 * size[0]):
        rows.append(unfiltered(row[0], row[1:], rows[-1]))
    return np.reshape(rows[1:], (size[1], size[0], 3))


def wav_bytes(frames, rate=48000, bits=16, tag=None, riff=None, data=None, before=b"", after=b"", align=None,
              channels=None, form=b"RIFF"):
    """A WAV file; `riff` and `data` override the sizes in the header, `before` and `after` are whole chunks."""
    frames = np.asarray(frames)
    frames = frames.reshape(len(frames), -1) if frames.size else frames.reshape(0, 1)
    n_channels = frames.shape[1] if channels is None else channels
    tag = tag if tag is not None else (3 if frames.dtype.kind == "f" else 1)
    body = pack(frames, bits)
    block = n_channels * bits // 8 if align is None else align
    fmt = struct.pack("<HHIIHH", tag, n_channels, rate, (rate * block) & 0xFFFFFFFF, block, bits)
    chunks = before + chunk(b"fmt ", fmt) + b"data" + struct.pack("<I", len(body) if data is None else data) + body
    chunks += b"\0" * (len(body) & 1) + after
    return form + struct.pack("<I", 4 + len(chunks) if riff is None else riff) + b"WAVE" + chunks


def pack(frames, bits):
    """Floats unchanged; little-endian integers of `bits` bits, 8 bits unsigned as in WAV."""
    if frames.dtype.kind == "f":
        return frames.astype("<f%d" % (bits // 8)).tobytes()
    if bits == 8:
        return (frames.astype(int) + 128).astype("u1").tobytes()
    if bits == 24:
        return frames.astype("<i4").reshape(-1, 1).view("u1")[:, :3].tobytes()
    return frames.astype("<i%d" % (bits // 8)).tobytes()


def chunk(name, body, pad=True):
    return name + struct.pack("<I", len(body)) + body + (b"\0" * (len(body) & 1) if pad else b"")


def parse_wav(data):
    """Of a WAV or RF64: (rate, frames as float64 [frames, channels], bits, size in the data chunk)."""
    assert data[:4] in (b"RIFF", b"RF64") and data[8:12] == b"WAVE", data[:12]
    at, long_size, fmt = 12, None, None
    while True:
        name, size = data[at:at + 4], struct.unpack_from("<I", data, at + 4)[0]
        at += 8
        if name == b"ds64":
            long_size = struct.unpack_from("<Q", data, at + 8)[0]
        elif name == b"fmt ":
            fmt = struct.unpack_from("<HHIIHH", data, at)
            if fmt[0] == 0xFFFE:
                fmt = (struct.unpack_from("<H", data, at + 24)[0],) + fmt[1:]
        elif name == b"data":
            break
        at += size + (size & 1)
    tag, channels, rate, _, _, bits = fmt
    declared = size
    n = len(data) - at if size == 0xFFFFFFFF and long_size is None else long_size if size == 0xFFFFFFFF else size
    return rate, unpack(data[at:at + n], tag, bits).reshape(-1, channels), bits, declared


def unpack(body, tag, bits):
    if tag == 3:
        return np.frombuffer(body, "<f%d" % (bits // 8)).astype("f8")
    if bits == 8:
        return (np.frombuffer(body, "u1").astype("f8") - 128) / 128
    if bits == 24:
        wide = np.zeros((len(body) // 3, 4), "u1")
        wide[:, 1:] = np.frombuffer(body, "u1").reshape(-1, 3)
        return wide.view("<i4")[:, 0] / 2.0**31
    return np.frombuffer(body, "<i%d" % (bits // 8)) / 2.0**(bits - 1)


def measured_pair(azimuth, elevation):
    """The oracle: the responses [2, taps] that were measured nearest to a direction."""
    with importlib.import_module("h5py").File(SOFA) as file:
        az, el = np.radians(file["SourcePosition"][:, 0]), np.radians(file["SourcePosition"][:, 1])
        a, e = np.radians(azimuth), np.radians(elevation)
        cosine = np.sin(el) * np.sin(e) + np.cos(el) * np.cos(e) * np.cos(az - a)
        return file["Data.IR"][cosine.argmax()]


class Case(unittest.TestCase):
    """Each case runs in a folder of its own."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="partita-test-")
        self.before = os.getcwd()
        os.chdir(self.folder)
        self.random = np.random.default_rng(2026)

    def tearDown(self):
        os.chdir(self.before)
        shutil.rmtree(self.folder, ignore_errors=True)

    def run_program(self, *arguments, stdin=b"", rc=0, env=None, **more):
        """Runs the program and checks its exit status, unless `rc` is None."""
        environment = {**os.environ, "XDG_CACHE_HOME": self.folder + "/cache", **(env or {})}
        command = [PROGRAM] + [os.fsencode(a) if isinstance(a, str) else a for a in map(self.plain, arguments)]
        done = subprocess.run(command, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
                              timeout=120, **more)
        if rc is not None:
            self.assertEqual(done.returncode, rc, (arguments, done.stderr.decode(errors="replace")))
        return done

    def draws(self, height, *arguments):
        """Runs a command that draws p.png, whose picture must have that height and be neither blank nor broken off."""
        done = self.run_program(*arguments, rc=None)
        if b"without cairo" in done.stderr:
            self.assertEqual(done.returncode, 1)
            self.skipTest("built without cairo")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        drawn = picture(self.read("p.png"))
        self.assertEqual(drawn.shape, (height, 1400, 3))
        self.assertGreater(len(np.unique(drawn, axis=0)), 300)

    @staticmethod
    def plain(argument):
        return argument if isinstance(argument, (str, bytes)) else str(argument)

    def write(self, name, data):
        with open(name, "wb") as f:
            f.write(data)
        return name

    def read(self, name):
        with open(name, "rb") as f:
            return f.read()

    def fails(self, *arguments, rc=1, says=(), stdin=b"", out="out.wav", **more):
        """Runs the program, which must fail, leave no files, and print one line that contains all
        of `says`."""
        before = set(os.listdir("."))
        done = self.run_program(*arguments, rc=rc, stdin=stdin, **more)
        text = done.stderr.decode(errors="replace")
        self.assertTrue(text.startswith("partita"), text)
        if rc == 1:
            self.assertEqual(text.count("\n"), 1, text)
        for word in [says] if isinstance(says, str) else says:
            self.assertIn(word, text)
        self.assertEqual(set(os.listdir(".")) - {"cache"}, before - {"cache"}, "files left behind")
        return text

    def close(self, got, expected, limit=None, typical=0):
        """The relative L2 error must be within the gate. `typical` is the RMS of outputs in the
        middle of the full result: transforms spread their error evenly, also over outputs that
        depend on few taps. Errors of single outputs are nearly normal with a standard deviation of
        half the gate, so with few outputs up to four deviations are allowed."""
        got, expected = np.asarray(got), np.asarray(expected)
        self.assertEqual(got.shape, expected.shape)
        limit = gate(got.dtype) if limit is None else limit
        root = math.sqrt(max(expected.size, 1))
        limit *= max(1, 0.5 * (root + 4) / root)
        scale = max(np.linalg.norm(expected), typical * root)
        error = np.linalg.norm(got.astype(expected.dtype) - expected)
        self.assertLessEqual(error, limit * scale, "relative error %g" % (error / (scale or 1)))


class Tap(unittest.TestResult):
    """Prints a TAP line at the end of each case; a case with failed subtests is one failure that
    lists them all."""

    count = 0

    def startTest(self, test):
        super().startTest(test)
        self.errors_here, self.skipped_here = [], None

    def stopTest(self, test):
        super().stopTest(test)
        self.count += 1
        skipped = " # SKIP " + self.skipped_here if self.skipped_here else ""
        name = "%s.%s" % (type(test).__name__, getattr(test, "_testMethodName", ""))
        print("%s %d - %s%s" % ("not ok" if self.errors_here else "ok", self.count, name, skipped), flush=True)
        for test_or_sub, error in self.errors_here:
            text = "".join(traceback.format_exception(*error))
            print("\n".join("# " + line for line in [str(test_or_sub)] + text.splitlines()), flush=True)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.errors_here.append((test, err))

    def addError(self, test, err):
        super().addError(test, err)
        self.errors_here.append((test, err))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.errors_here.append((subtest, err))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.skipped_here = reason


def main():
    global PROGRAM
    # A shell starts what it runs in the background with interrupts ignored, which programs inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.modules["rig"].PROGRAM = PROGRAM = os.path.abspath(sys.argv.pop(1))
    names = sys.argv[1:]
    loader = unittest.defaultTestLoader
    module = sys.modules["__main__"]
    suite = loader.loadTestsFromNames(names, module) if names else loader.loadTestsFromModule(module)
    print("1..%d" % suite.countTestCases())
    result = Tap()
    suite.run(result)
    sys.exit(0 if result.wasSuccessful() else 1)

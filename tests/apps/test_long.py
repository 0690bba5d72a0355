#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files of gigabytes: outputs beyond 4 GiB become RF64, memory does not grow with the length."""
import hashlib
import os
import shutil
import struct
import subprocess
import time

import numpy as np

import rig
from rig import Case, wav_bytes


class Long(Case):
    def test_output_beyond_four_gigabytes(self):
        """1.1e9 frames of 8 bits, all but the last in a hole of the file, written as 4.4 GB of
        float."""
        n = 1100 * 10**6
        if shutil.disk_usage(self.folder).free < 6 * 10**9:
            self.skipTest("needs 6 GB of disk")
        self.write("one.txt", b"1\n")
        head = wav_bytes(np.zeros((0, 1), int), bits=8, data=n, riff=n + 36)
        with open("in.wav", "wb") as f:
            f.write(head)
            f.truncate(len(head) + n)
            f.seek(len(head) + n - 1)
            f.write(b"\xc0")
        self.run_program("convolve", "-o", "f32", "--engine", "direct", "one.txt", "in.wav", "out.wav")
        with open("out.wav", "rb") as f:
            header = f.read(200)
            f.seek(-8, os.SEEK_END)
            last = np.frombuffer(f.read(), "<f4")
        self.assertEqual((header[:4], header[12:16]), (b"RF64", b"ds64"))
        riff, data, frames = struct.unpack_from("<QQQ", header, 20)
        self.assertEqual((data, frames, riff), (4 * n, n, os.stat("out.wav").st_size - 8))
        self.assertEqual(last.tolist(), [-1.0, 0.5])
        os.remove("in.wav")
        self.run_program("convolve", "--first", n - 2, "one.txt", "out.wav", "end.npy")
        self.assertEqual(np.load("end.npy").tolist(), [-1.0, 0.5])

    def watched(self, *arguments, kill_after=None):
        """Runs the program, or kills it after some seconds; returns its exit status and peak
        resident memory in KiB."""
        environment = dict(os.environ, XDG_CACHE_HOME=self.folder + "/cache")
        child = subprocess.Popen([rig.PROGRAM] + [str(a) for a in arguments], env=environment)
        begun, peak = time.time(), 0
        while child.poll() is None:
            try:
                with open("/proc/%d/status" % child.pid) as f:
                    peak = max(peak, next((int(line.split()[1]) for line in f if line.startswith("VmHWM")), 0))
            except OSError:
                break
            if kill_after is not None and time.time() - begun > kill_after:
                child.kill()
            time.sleep(0.02)
        return child.wait(), peak

    def checksum(self, name):
        digest = hashlib.blake2b()
        with open(name, "rb") as f:
            for data in iter(lambda: f.read(1 << 22), b""):
                digest.update(data)
        os.remove(name)
        return digest.hexdigest()

    def test_four_gigabytes_whole_in_shards_and_resumed(self):
        """A file of noise with 65536 taps (PARTITA_LONG_BYTES sets its size): whole, in shards and
        resumed, it gives the same bytes, within 128 MiB of memory."""
        size = int(os.environ.get("PARTITA_LONG_BYTES", 1 << 32))
        if shutil.disk_usage(self.folder).free < 4 * size:
            self.skipTest("needs %d bytes of disk" % (4 * size))
        np.save("h.npy", self.random.standard_normal(65536).astype("f4"))
        with open("x.raw", "wb") as f:
            for _ in range(size >> 22):
                f.write(self.random.standard_normal(1 << 20).astype("<f4").tobytes())
        run = ("convolve", "-q", "-f", "f32_le")
        begun = time.time()
        status, peak = self.watched(*run, "h.npy", "x.raw", "y.raw")
        seconds = time.time() - begun
        self.assertEqual(status, 0)
        self.assertGreater(peak, 0)
        if not os.environ.get("SANITIZED"):
            self.assertLess(peak, 128 * 1024, "KiB resident")
        whole = self.checksum("y.raw")
        for k in (2, 3, 1):
            self.assertEqual(self.watched(*run, "--range", "%d/3" % k, "h.npy", "x.raw", "%d.raw" % k)[0], 0)
        self.run_program("join", "y.raw", "3.raw", "1.raw", "2.raw")
        self.assertEqual(self.checksum("y.raw"), whole)
        for k in (1, 2, 3):
            os.remove("%d.raw" % k)
        killed = 0
        while self.watched(*run, "--resume", "h.npy", "x.raw", "y.raw",
                           kill_after=seconds * self.random.uniform(0.3, 0.8))[0]:
            killed += 1
            self.assertLess(killed, 50)
        self.assertEqual(self.checksum("y.raw"), whole)
        self.assertGreater(killed, 0)

    def test_memory_of_ten_gigabytes(self):
        self.write("h.txt", b"".join(b"%g\n" % (0.99**i) for i in range(500)))
        child = subprocess.Popen([rig.PROGRAM, "convolve", "-q", "-f", "ri16_le", "-c", "2", "h.txt", "/dev/zero", "-"],
                                 stdout=subprocess.PIPE)
        total = peak = 0
        while total < 10 * 10**9:
            total += len(os.read(child.stdout.fileno(), 1 << 20))
            if total % (1 << 26) < 1 << 16:
                with open("/proc/%d/status" % child.pid) as f:
                    peak = int(next(line for line in f if line.startswith("VmHWM")).split()[1])
        child.kill()
        child.wait()
        child.stdout.close()
        self.assertGreater(peak, 0)
        if not os.environ.get("SANITIZED"):
            self.assertLess(peak, 64 * 1024, "KiB resident")


if __name__ == "__main__":
    rig.main()

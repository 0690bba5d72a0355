#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs of gigabytes: outputs beyond 4 GiB become RF64, memory does not grow with the length."""
import os
import shutil
import struct
import subprocess

import numpy as np

import rig
from rig import Case, wav_bytes


class Long(Case):
    def test_output_beyond_four_gigabytes(self):
        """1.1e9 frames of 8 bits, all but the last in a hole of the file, written as 4.4 GB of float."""
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

    def test_ten_gigabytes_in_little_memory(self):
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

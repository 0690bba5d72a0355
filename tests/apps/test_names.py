#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""File names: one file as input and output, missing files, permissions, directories, links, pipes,
devices, arbitrary bytes."""
import os
import socket
import stat
import subprocess

import numpy as np

import rig
from rig import Case, parse_wav, wav_bytes

RAMP = np.arange(1, 11).reshape(-1, 1) * 1000


class Names(Case):
    def setUp(self):
        super().setUp()
        self.write("ir.txt", b"1\n")
        self.write("in.wav", wav_bytes(RAMP))

    def test_same_file_for_input_and_output(self):
        before = self.read("in.wav")
        os.symlink("in.wav", "link.wav")
        os.link("in.wav", "hard.wav")
        for name in ("in.wav", "./in.wav", "link.wav", "hard.wav"):
            self.fails("convolve", "ir.txt", "in.wav", name, says=["is the input"])
            self.fails("convolve", "in.wav", "ir.txt", name, says=["is the input"])
        with open("in.wav", "rb") as i, open("in.wav", "ab") as o:
            done = subprocess.run([rig.PROGRAM, "convolve", "ir.txt", "-", "-"], stdin=i, stdout=o,
                                  stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.read("in.wav"), before)

    def test_missing_and_unreadable(self):
        self.fails("convolve", "none.wav", "in.wav", "out.wav", says=["none.wav", "No such file"])
        self.fails("convolve", "ir.txt", "none.wav", "out.wav", says=["none.wav", "No such file"])
        self.fails("convolve", "ir.txt", "in.wav", "none/out.wav", says=["none/out.wav", "No such file"])
        self.fails("convolve", "ir.txt", "in.wav/x", "out.wav", says=["in.wav/x", "Not a directory"])
        self.fails("convolve", "ir.txt", "", "out.wav", says=["No such file"])
        self.fails("convolve", "ir.txt", "in.wav", "", says=["format"])

    def test_permissions(self):
        if os.geteuid() == 0:
            demote = dict(user=65534, group=65534)
            os.chmod(self.folder, 0o755)
        else:
            demote = {}
        os.chmod("in.wav", 0)
        self.fails("convolve", "ir.txt", "in.wav", "out.wav", says=["in.wav", "Permission denied"], **demote)
        os.chmod("in.wav", 0o644)
        os.mkdir("sealed", 0o555)
        self.fails("convolve", "ir.txt", "in.wav", "sealed/out.wav", says=["sealed/out.wav", "Permission"], **demote)
        self.write("old.wav", b"old")
        os.chmod("old.wav", 0o444)
        self.fails("convolve", "ir.txt", "in.wav", "old.wav", says=["old.wav", "Permission"], **demote)
        self.assertEqual(self.read("old.wav"), b"old")

    def test_directories(self):
        os.mkdir("folder.wav")
        self.fails("convolve", "ir.txt", "folder.wav", "out.wav", says=["folder.wav", "is a directory"])
        self.fails("convolve", "folder.wav", "in.wav", "out.wav", says=["folder.wav", "is a directory"])
        self.fails("convolve", "ir.txt", "in.wav", "folder.wav", says=["folder.wav", "is a directory"])

    def test_symbolic_links_are_kept(self):
        self.write("real.wav", b"old")
        os.symlink("real.wav", "link.wav")
        self.run_program("convolve", "ir.txt", "in.wav", "link.wav")
        self.assertTrue(os.path.islink("link.wav"))
        self.assertEqual(len(parse_wav(self.read("real.wav"))[1]), 10)
        os.symlink("nowhere.wav", "dangling.wav")
        self.fails("convolve", "ir.txt", "in.wav", "dangling.wav", says=["dangling.wav"])

    def test_modes_of_files(self):
        self.write("old.wav", b"old")
        os.chmod("old.wav", 0o640)
        self.run_program("convolve", "ir.txt", "in.wav", "old.wav")
        self.assertEqual(stat.S_IMODE(os.stat("old.wav").st_mode), 0o640)
        mask = os.umask(0o027)
        self.run_program("convolve", "ir.txt", "in.wav", "new.wav")
        os.umask(mask)
        self.assertEqual(stat.S_IMODE(os.stat("new.wav").st_mode), 0o640)

    def test_fifos(self):
        os.mkfifo("in.fifo")
        os.mkfifo("out.fifo")
        feeder = subprocess.Popen("cat in.wav > in.fifo", shell=True)
        catcher = subprocess.Popen("cat out.fifo > caught.wav", shell=True)
        self.run_program("convolve", "ir.txt", "in.fifo", "out.fifo")
        feeder.wait()
        catcher.wait()
        self.assertEqual(len(parse_wav(self.read("caught.wav"))[1]), 10)
        self.assertTrue(stat.S_ISFIFO(os.stat("out.fifo").st_mode))

    def test_devices(self):
        self.run_program("convolve", "ir.txt", "in.wav", "/dev/null")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        self.fails("convolve", "ir.txt", "/dev/null", "out.wav", says=["/dev/null"])
        self.run_program("convolve", "--format", "f32", "ir.txt", "/dev/null", "empty.raw")
        self.assertEqual(self.read("empty.raw"), b"")
        done = self.run_program("convolve", "--format", "s16le", "--last", 1000, "ir.txt", "/dev/zero", "-")
        self.assertEqual(done.stdout, b"\0" * 2000)

    def test_sockets(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.bind("socket.wav")
            self.fails("convolve", "ir.txt", "socket.wav", "out.wav", says=["socket.wav"])
            self.fails("convolve", "ir.txt", "in.wav", "socket.wav", says=["socket.wav"])

    def test_names_without_a_format(self):
        self.fails("convolve", "ir.txt", "in.wav", "out", says=["out", "format"])
        self.fails("convolve", "ir.txt", "in.wav", "out.txt", says=["out.txt", "text"])

    def test_names_of_any_bytes(self):
        name = b"\xff\xfe \x1b[31m\n.wav"
        self.write(name, wav_bytes(RAMP))
        done = self.run_program("convolve", "--json", "ir.txt", name, b"out\x80.wav")
        self.assertTrue(done.stdout.decode("utf-8"))
        self.assertEqual(len(parse_wav(self.read(b"out\x80.wav"))[1]), 10)
        done = self.run_program("convolve", "ir.txt", b"no" + name, "x.wav", rc=1)
        self.assertNotIn(b"\x1b", done.stderr)


if __name__ == "__main__":
    rig.main()

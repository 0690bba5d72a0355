#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What whoever starts the program may do around it: closed standard descriptors, few descriptors, blocked signals, a
locale with decimal commas. Outputs have the same bytes, or the program says why there are none."""
import os
import resource
import signal
import subprocess

import numpy as np

import rig
from rig import Case, wav_bytes

COMMA = 'LC_NUMERIC\ndecimal_point ","\nthousands_sep ""\ngrouping -1\nEND LC_NUMERIC\n'


class Hosts(Case):
    def setUp(self):
        super().setUp()
        self.write("ir.txt", b"0.5\n0.25\n")
        self.write("in.wav", wav_bytes(self.random.integers(-9000, 9000, (3000, 2))))
        self.run_program("convolve", "--gain", "-1.5", "ir.txt", "in.wav", "out.wav")
        self.expected = self.read("out.wav")
        os.remove("out.wav")

    def same(self, *options, **more):
        """Runs the program and returns what it prints; the output must be the one expected."""
        done = self.run_program("convolve", *options, "--gain", "-1.5", "ir.txt", "in.wav", "out.wav", **more)
        self.assertEqual(self.read("out.wav"), self.expected)
        os.remove("out.wav")
        return done.stdout, done.stderr

    def test_messages_go_to_no_file(self):
        """A file that is opened while descriptor 1 or 2 is closed must not become that one."""
        for closed in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)):
            for options in (["-v"], ["--stats"], ["--json"], ["-v", "--json"]):
                with self.subTest(closed=closed, options=options):
                    # Without standard output the line of --json is lost, which is a failure; the file is whole.
                    rc = 1 if 1 in closed and "--json" in options else 0
                    self.same(*options, rc=rc, preexec_fn=lambda closed=closed: [os.close(fd) for fd in closed])
        self.run_program("help", rc=1, preexec_fn=lambda: os.close(1))

    def test_closed_input_is_not_another_file(self):
        """ir.txt would be opened as descriptor 0 and then read as standard input."""
        said = self.fails("convolve", "-f", "f32", "ir.txt", "-", "out.raw", says=["standard input", "cannot read"],
                          preexec_fn=lambda: os.close(0))
        self.assertIn("Bad file descriptor", said)

    def test_few_descriptors(self):
        """From 4 on: the loader of shared libraries needs one beside the standard ones."""
        if "SANITIZED" in os.environ:
            self.skipTest("a sanitizer opens files of its own")
        succeeded = []
        for n in range(4, 16):
            done = subprocess.run([rig.PROGRAM, "convolve", "--gain", "-1.5", "ir.txt", "in.wav", "out.wav"],
                                  preexec_fn=lambda n=n: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
            said = done.stderr.decode()
            self.assertIn(done.returncode, (0, 1), (n, said))
            if done.returncode:
                self.assertRegex(said, "^partita convolve: [^\n]*\n$")
                self.assertEqual(set(os.listdir(".")) - {"cache"}, {"ir.txt", "in.wav"})
                continue
            succeeded.append(n)
            self.assertEqual(self.read("out.wav"), self.expected)
            os.remove("out.wav")
        self.assertEqual(succeeded[-1:], [15])

    def test_blocked_signals(self):
        blocked = set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}
        self.same(preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, blocked))

    def test_decimal_commas(self):
        self.write("comma.src", COMMA.encode())
        try:
            subprocess.run(["localedef", "-c", "-i", "comma.src", "./comma"], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, timeout=60)
        except FileNotFoundError:
            self.skipTest("no localedef")
        env = {"LOCPATH": self.folder, "LC_ALL": "comma"}
        printed = subprocess.run(["bash", "-c", "printf %.1f 1,5"], env={**os.environ, **env}, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL).stdout
        if printed != b"1,5":
            self.skipTest("localedef made no locale")
        self.assertNotRegex(self.same("--stats", env=env)[1], rb"[0-9],[0-9]")
        plan = ["plan", "--block", 64, "--taps", 3000]
        self.assertEqual(self.run_program(*plan, env=env).stdout, self.run_program(*plan).stdout)
        np.save("x.npy", np.array([1, 0], "f4"))
        self.run_program("convolve", "--rate", "8000", "ir.txt", "x.npy", "y.npy", env=env)
        self.assertEqual(np.load("y.npy").tolist(), [0.5, 0.25, 0])


if __name__ == "__main__":
    rig.main()

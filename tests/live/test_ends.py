#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How sessions of `partita live` end: files are complete, the terminal is restored, playing is not
interrupted by output errors. With devices made of files and PortAudio's ALSA code."""
import fcntl
import os
import pty
import resource
import signal
import subprocess
import termios
import time

import numpy as np

from rig_live import FILES, SLOWER, Live, dyadic, rig

import schemas # rig_live makes it known
from rig import parse_wav

F_SETPIPE_SZ = 1031 # the name is in fcntl from Python 3.10 on

# Devices made of files run many times faster than real time, perhaps faster than the disk: a session that plays until
# something ends it can lose frames of its recording. It then says so and ends with this status.
RECORDING_HAS_GAPS = 3



class Files(Live):
    def setUp(self):
        super().setUp()
        self.x = dyadic(self.random, (48000, 2))
        self.alsa(self.x)
        self.ir(np.ones((1, 2)))

    def test_filters_are_not_overwritten(self):
        before = self.read("ir.wav")
        self.ir(np.ones((3, 2)), "b.wav")
        os.symlink("ir.wav", "link.wav")
        os.link("ir.wav", "hard.csv")
        for arguments, says in ((["--record", "ir.wav"], ["ir.wav", "name another"]), (["--record", "./ir.wav"], "ir.wav"),
                                (["--record", "link.wav"], "link.wav"), (["--calls", "ir.wav"], "ir.wav"),
                                (["--calls", "hard.csv"], "hard.csv"), (["--ir", "b.wav", "--record", "b.wav"], "b.wav"),
                                (["--record", "new.wav", "--calls", "./new.wav"], ["--record", "--calls"]),
                                (["--record", self.folder + "/new.wav", "--calls", "new.wav"], ["--record", "--calls"])):
            with self.subTest(arguments=arguments):
                self.fails_live("--ir", "ir.wav", *arguments, *FILES, "--duration", 0.01, says=says)
        self.assertEqual(self.read("ir.wav"), before)
        # Other files are allowed, and /dev/null for both.
        self.write("old.csv", b"")
        for record, calls in (("a/new.wav", "new.wav"), ("new.wav", "old.csv"), ("/dev/null", "/dev/null")):
            os.makedirs("a", exist_ok=True)
            self.live("--ir", "ir.wav", *FILES, "--duration", 0.01, "--record", record, "--calls", calls, "-q")

    def record_in_little_space(self, name, space=3000003):
        """Records until the file size limit, this many bytes after the start; returns the messages.
        The limit is set when all devices are open, because JACK's library writes files too."""
        child = self.start("--ir", "ir.wav", "--input", "fl_in", "--output", "fl_null", "--record", name)
        self.assertIn(b"fl_in to fl_null", child.stderr.readline())
        size = os.stat(name + ".partial").st_size
        resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (size + space, size + space))
        self.assertIn(name.encode() + b": cannot write: File too large; playing continues without recording", child.stderr.readline())
        child.send_signal(signal.SIGINT)
        said = self.ends(child, rc=1)[1]
        self.assertFalse(os.path.exists(name + ".partial"))
        return said

    def killed(self, name):
        """A run that was killed after some seconds of sound, whose recording has a name that users see."""
        child = self.start("--ir", "ir.wav", "--input", "fl_in", "--output", "fl_null", "--record", name)
        self.wait_for(lambda: os.path.exists(name + ".partial") and os.stat(name + ".partial").st_size > 2000000)
        child.kill()
        child.wait()
        self.assertFalse(os.path.exists(name))

    def test_killed(self):
        """The header tells all but the last second of sound and one write of the recorder."""
        missing_at_most = 8 * (48000 + 4096 + 1)
        for name in ("rec.wav", "rec.npy", "rec.aiff", "rec.w64", "rec.caf", "rec.au", "rec.raw", "rec.flac"):
            with self.subTest(name=name):
                self.killed(name)
                size = os.stat(name + ".partial").st_size
                os.rename(name + ".partial", name)
                raw = ["--format", "f32", "--channels", 2] if name == "rec.raw" else []
                done = self.run_program("convolve", "-q", *raw, "ir.wav", name, "out.npy")
                self.assertEqual(done.stderr, b"")
                got = np.load("out.npy").T
                if name != "rec.flac": # whose header has no length, and which is compressed
                    self.assertLess(size - 8 * len(got), missing_at_most)
                self.assertGreater(len(got), len(self.x))
                np.testing.assert_allclose(got[:len(self.x)], self.x, atol=2.0**-23)
        # What other programs believe.
        data = self.read("rec.wav")
        _, got, _, declared = parse_wav(data)
        self.assertEqual((declared, len(got)), (8 * len(got), declared // 8))
        self.assertLess(len(data) - declared, missing_at_most)
        self.assertLess(os.stat("rec.npy").st_size - np.load("rec.npy").nbytes, missing_at_most)

    def test_recordings_of_killed_runs_stay(self):
        """The next run says where they are, and does not overwrite them; that of a run which still plays is not such."""
        self.killed("rec.wav")
        self.write("rec-2.wav.partial", b"a later take")
        before = self.read("rec.wav.partial")
        play = ["--ir", "ir.wav", *FILES, "--duration", 0.1, "--record", "rec.wav"]
        for i in range(2):
            said = self.live(*play).stderr.decode()
            for name in ("rec.wav.partial", "rec-2.wav.partial"):
                self.assertIn(name + ": is the recording of a run that was killed", said)
            self.assertEqual(len(parse_wav(self.read("rec.wav"))[1]), 4800)
            self.assertEqual(self.read("rec.wav.partial"), before)
            self.assertFalse(os.path.exists("rec.wav.2.partial"))
        self.assertEqual(self.read("rec-2.wav.partial"), b"a later take")
        os.unlink("rec.wav.partial")
        os.unlink("rec-2.wav.partial")
        child = self.start("--ir", "ir.wav", "--input", "fl_in", "--output", "fl_null", "--record", "rec.wav")
        self.wait_for(lambda: os.path.exists("rec.wav.partial"))
        self.assertNotIn("killed", self.live(*play).stderr.decode())
        child.kill()
        child.wait()
        self.assertTrue(os.path.exists("rec.wav.partial"))

    def test_longest_name(self):
        """As long as file systems permit, so that nothing can be appended."""
        name = "a/" + "n" * 251 + ".wav"
        os.mkdir("a")
        self.live("--ir", "ir.wav", *FILES, "--duration", 0.1, "--record", name, "-q")
        self.assertEqual(os.listdir("a"), [name[2:]])
        self.assertEqual(len(parse_wav(self.read(name))[1]), 4800)

    def test_signals_complete_the_recording(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT):
            with self.subTest(number=number):
                child = self.start("--ir", "ir.wav", "--input", "fl_in", "--output", "fl_null", "--record", "rec.wav")
                self.wait_for(lambda: os.path.exists("rec.wav.partial") and os.stat("rec.wav.partial").st_size > 100000)
                child.send_signal(number)
                child.wait(timeout=60 * SLOWER)
                self.assertIn(child.returncode, (0, RECORDING_HAS_GAPS))
                data = self.read("rec.wav")
                self.assertEqual(parse_wav(data)[3], len(data) - data.index(b"data") - 8)
                os.unlink("rec.wav")
                self.assertFalse(os.path.exists("rec.wav.partial"))

    def is_what_was_played(self, got):
        self.assertGreater(len(got), len(self.x))
        np.testing.assert_allclose(got[:len(self.x)], self.x, atol=2.0**-23)

    def test_full_disk_keeps_the_recording(self):
        """The file has all complete frames that were written, its final name, and a header with its
        length."""
        for space in (3000003, 3000006):
            with self.subTest(space=space):
                said = self.record_in_little_space("rec.wav", space)
                data = self.read("rec.wav")
                _, got, _, declared = parse_wav(data)
                self.assertEqual(declared, len(data) - data.index(b"data") - 8)
                self.assertEqual(declared, 8 * len(got))
                self.assertIn("rec.wav: cannot write: File too large; it holds the first %.1f s" % (len(got) / 48000), said)
                self.is_what_was_played(got)
        self.record_in_little_space("rec.npy")
        self.is_what_was_played(np.load("rec.npy").T)
        self.record_in_little_space("rec.raw")
        self.assertEqual(os.stat("rec.raw").st_size % 8, 0)
        self.is_what_was_played(np.fromfile("rec.raw", "<f4").reshape(-1, 2))



def own_terminal():
    """In the child: standard input becomes the controlling terminal of a new session."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL) # a background job ignores some of them
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal(Live):
    """With a terminal of its own and job control."""

    def setUp(self):
        super().setUp()
        self.alsa()
        self.ir(np.ones((1, 2)) * 0.5)
        self.play = ["--ir", "ir.wav", *FILES, "--record", "rec.wav"]

    def ends_at_last(self, child, rc=0):
        child.wait(timeout=60 * SLOWER)
        self.assertEqual(child.returncode, rc)

    def test_quit_key(self):
        """Like an interrupt: the terminal is restored, and the recording is complete."""
        child, controller, terminal = self.open_terminal(*self.play, preexec_fn=own_terminal)
        self.until(controller, b"q quit")
        os.write(controller, b"\x1c")
        child.wait(timeout=60 * SLOWER)
        self.assertIn(child.returncode, (0, RECORDING_HAS_GAPS))
        self.assertTrue(termios.tcgetattr(terminal)[3] & termios.ECHO)
        self.assertGreater(len(parse_wav(self.read("rec.wav"))[1]), 0)
        self.assertFalse(os.path.exists("rec.wav.partial"))

    def test_terminal_closed(self):
        """After a hang-up nobody can end it by keys: it ends, with complete files."""
        child = self.close_terminal(self.play)
        child.wait(timeout=60 * SLOWER)
        self.assertIn(child.returncode, (0, RECORDING_HAS_GAPS))
        self.assertGreater(len(parse_wav(self.read("rec.wav"))[1]), 0)

    def test_terminal_closed_with_nohup(self):
        """Started with SIGHUP ignored, as by nohup, it continues, without busy-waiting."""
        def ignore():
            own_terminal()
            signal.signal(signal.SIGHUP, signal.SIG_IGN)

        child = self.close_terminal(["--ir", "ir.wav", "--device", "fl_null", "--latency", "1", "--json"], ignore,
                                    subprocess.PIPE)
        self.assertEqual(self.line(child)["state"], "running")
        child.send_signal(signal.SIGTERM)
        self.ends_at_last(child)

    def close_terminal(self, arguments, before=own_terminal, stdout=None):
        controller, terminal = pty.openpty()
        child = self.start(*arguments, stdin=terminal, stderr=terminal, stdout=stdout or terminal, preexec_fn=before)
        self.wait_for(lambda: not termios.tcgetattr(terminal)[3] & termios.ECHO)
        os.close(terminal)
        os.close(controller)
        return child

    def test_narrow_screen(self):
        """With texts of maximum length every line is one row: the second screen overwrites the
        first."""
        name = "d" * 100 + ".wav"
        os.rename("ir.wav", name)
        child, controller, terminal = self.open_terminal("--ir", name, *FILES, preexec_fn=own_terminal, columns=60)
        self.until(controller, b"q quit")
        self.write(name, b"")
        os.write(controller, b"r")
        seen = self.until(controller, b"the old filter stays")
        if b"\033[?7h" not in seen.split(b"the old filter stays")[-1]: # the screen is incomplete
            seen += self.until(controller, b"\033[?7h")
        rows = [p for p in seen.split(b"\033[?7l") if b"the old filter stays" in p][0].split(b"\n")
        self.assertIn(b"\033[%dA" % (len(rows) - 1), rows[0])
        self.assertIn(b"\r\033[Kfilter  1/1 " + b"d" * 35 + b".wav, +0.0 dB\r", rows)
        self.assertIn(b"the old filter stays", rows[-2])
        os.write(controller, b"q")
        self.ends_at_last(child)

    def test_in_the_background(self):
        """A background job does not change the terminal, and is not stopped by it."""
        for more in ([], ["--json"], ["--quiet"]):
            script = ["sh", "-m", "-c", '"$@" >said & wait $!', "sh", rig.PROGRAM, "live", *self.play, "--duration", "0.01"]
            controller, terminal = pty.openpty()
            child = subprocess.Popen(script + more, stdin=terminal, stderr=terminal, stdout=terminal,
                                     preexec_fn=own_terminal, env=self.environment())
            self.children.append(child)
            self.wait_for(lambda: os.path.exists("rec.wav"), within=10)
            self.ends_at_last(child)
            self.assertTrue(termios.tcgetattr(terminal)[3] & termios.ECHO)
            os.close(terminal)
            os.close(controller)
            os.unlink("rec.wav")


class Lines(Live):
    """Standard output is not read, or its reader is gone."""

    def setUp(self):
        super().setUp()
        self.alsa()
        self.ir(np.ones((1, 2)) * 0.5)
        self.play = ["--ir", "ir.wav", *FILES, "--record", "rec.wav", "--json"]

    def is_well_or_has_gaps(self, child):
        said = child.stderr.read()
        self.assertIn(child.returncode, (0, RECORDING_HAS_GAPS), said)
        if child.returncode:
            self.assertIn(b"rec.wav", said)
        else:
            self.assertEqual(said, b"")

    def test_reader_is_gone(self):
        child = self.start(*self.play)
        self.assertEqual(self.line(child)["state"], "running")
        child.stdout.close()
        child.stdout = None
        child.wait(timeout=10 * SLOWER)
        self.is_well_or_has_gaps(child)
        self.assertGreater(len(parse_wav(self.read("rec.wav"))[1]), 0)

    def test_reader_does_not_read(self):
        """The first interrupt ends playing and completes the recording; the last line is written
        when it is read."""
        there, here = os.pipe()
        self.addCleanup(os.close, there)
        size = fcntl.fcntl(here, F_SETPIPE_SZ, 4096)
        os.write(here, b"-" * (size - 1) + b"\n")
        child = self.start(*self.play, stdout=here)
        os.close(here)
        time.sleep(1.5) # the first line is due
        child.send_signal(signal.SIGINT)
        self.wait_for(lambda: os.path.exists("rec.wav"), within=5)
        status = b""
        while (some := os.read(there, 65536)):
            status += some
        child.wait(timeout=10 * SLOWER)
        self.is_well_or_has_gaps(child)
        self.assertEqual(schemas.load(status.splitlines()[-1])["state"], "ended")

    def test_full_disk(self):
        """Lines stop with a warning; playing continues."""
        with open("/dev/full", "wb") as full:
            child = self.start(*self.play, stdout=full)
        self.assertIn(b"standard output: cannot write: No space left", child.stderr.readline())
        time.sleep(0.3)
        self.assertIsNone(child.poll())
        child.send_signal(signal.SIGINT)
        child.wait(timeout=10 * SLOWER)
        self.assertEqual(child.returncode, 1)
        self.assertGreater(len(parse_wav(self.read("rec.wav"))[1]), 0)


if __name__ == "__main__":
    rig.main()

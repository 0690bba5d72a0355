#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""System faults (short reads and writes, full disks, closed pipes, signals, stalls, slow readers)
and errors on the command line. The second argument is the fault-injecting library."""
import fcntl
import os
import resource
import signal
import struct
import subprocess
import sys
import termios
import time

import numpy as np

import rig
from rig import Case, parse_wav, wav_bytes

SHIM = os.path.abspath(sys.argv.pop(2))


def noise_wav(n, channels=2):
    x = np.random.default_rng(7).integers(-9000, 9000, (n, channels))
    return wav_bytes(x)


class Faults(Case):
    def setUp(self):
        super().setUp()
        self.write("ir.txt", b"0.5\n0.25\n")

    def with_shim(self, **settings):
        asan = os.environ.get("ASAN_OPTIONS", "")
        return dict(settings, LD_PRELOAD=SHIM, ASAN_OPTIONS=asan + ":verify_asan_link_order=0")

    def start(self, *arguments, **more):
        environment = dict(os.environ, XDG_CACHE_HOME=self.folder + "/cache")
        return subprocess.Popen([rig.PROGRAM] + list(map(str, arguments)), env=environment, **more)


class ShortTransfers(Faults):
    def test_files_and_pipes(self):
        data = noise_wav(3000)
        self.write("in.wav", data)
        self.run_program("convolve", "ir.txt", "in.wav", "plain.wav")
        piped = self.run_program("convolve", "ir.txt", "in.wav", "-").stdout
        env = self.with_shim(SHORT_IO="1")
        self.run_program("convolve", "ir.txt", "in.wav", "out.wav", env=env)
        self.assertEqual(self.read("out.wav"), self.read("plain.wav"))
        self.run_program("convolve", "ir.txt", "-", "out2.wav", env=env, stdin=data)
        self.assertEqual(self.read("out2.wav"), self.read("plain.wav"))
        self.assertEqual(self.run_program("convolve", "ir.txt", "-", "-", env=env, stdin=data).stdout, piped)

    def test_other_formats(self):
        x = self.random.standard_normal((2, 500)).astype("f4")
        np.save("x.npy", x)
        env = self.with_shim(SHORT_IO="1")
        self.run_program("convolve", "ir.txt", "x.npy", "y.npy")
        self.run_program("convolve", "ir.txt", "x.npy", "z.npy", env=env)
        self.assertEqual(self.read("y.npy"), self.read("z.npy"))
        self.run_program("convolve", "--rate", 8000, "ir.txt", "x.npy", "y.flac")
        self.run_program("convolve", "--rate", 8000, "ir.txt", "x.npy", "z.flac", env=env)
        self.run_program("convolve", "ir.txt", "y.flac", "y.wav")
        self.run_program("convolve", "ir.txt", "z.flac", "z.wav", env=env)
        self.assertEqual(self.read("y.wav"), self.read("z.wav"))

    def test_pipe_delivering_single_bytes(self):
        """The pipe is written byte by byte, so that headers and frames arrive incomplete."""
        data = noise_wav(40)
        expected = self.run_program("convolve", "ir.txt", "-", "-", stdin=data).stdout
        child = self.start("convolve", "ir.txt", "-", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for i in range(len(data)):
            child.stdin.write(data[i:i + 1])
            child.stdin.flush()
        child.stdin.close()
        self.assertEqual(child.stdout.read(), expected)
        self.assertEqual(child.wait(timeout=60), 0)
        child.stdout.close()

    def test_non_blocking_pipes(self):
        data = noise_wav(100000)
        expected = self.run_program("convolve", "ir.txt", "-", "-", stdin=data).stdout
        in_read, in_write = os.pipe()
        out_read, out_write = os.pipe()
        for fd in (in_read, out_write):
            fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_NONBLOCK)
        child = self.start("convolve", "ir.txt", "-", "-", stdin=in_read, stdout=out_write)
        os.close(in_read)
        os.close(out_write)
        feeder = os.fork()
        if feeder == 0:
            os.close(out_read)
            time.sleep(0.2)
            at = 0
            while at < len(data):
                at += os.write(in_write, data[at:at + 30000])
                time.sleep(0.002)
            os._exit(0)
        os.close(in_write)
        time.sleep(0.4)
        got = b""
        while True:
            chunk = os.read(out_read, 5000)
            if not chunk:
                break
            got += chunk
        os.close(out_read)
        os.waitpid(feeder, 0)
        self.assertEqual(child.wait(timeout=60), 0)
        self.assertEqual(got, expected)


class Shares(Faults):
    """Outputs and records of --range and --resume."""

    def setUp(self):
        super().setUp()
        np.save("x.npy", np.ones(500, "f4"))

    def test_short_transfers(self):
        for option in (["--range", "1/1"], ["--resume"]):
            self.run_program("convolve", *option, "ir.txt", "x.npy", "y.npy", env=self.with_shim(SHORT_IO="1"))
        self.run_program("convolve", "--range", "1/1", "ir.txt", "x.npy", "y.npy")
        self.run_program("join", "z.npy", "y.npy")

    def test_files_are_synced_before_they_are_renamed(self):
        self.fails("convolve", "--range", "1/1", "ir.txt", "x.npy", "y.npy", says=["y.npy", "Input/output error"],
                   env=self.with_shim(FAIL_SYNC="1"))
        done = self.run_program("convolve", "--resume", "ir.txt", "x.npy", "y.npy", rc=1,
                                env=self.with_shim(FAIL_SYNC="2"))
        self.assertIn(b"y.npy: cannot synchronise its folder", done.stderr)
        self.assertTrue(os.path.exists("y.npy.partial.range"))
        self.run_program("convolve", "ir.txt", "x.npy", "plain.npy", env=self.with_shim(FAIL_SYNC="2"))
        self.run_program("convolve", "--resume", "ir.txt", "x.npy", "y.npy")
        self.assertEqual(np.load("y.npy").tolist(), np.load("plain.npy").tolist())


class FullDisks(Faults):
    def test_small_and_large_outputs(self):
        for n in (10, 24000, 3000000):
            self.write("in.wav", noise_wav(n))
            with self.subTest(frames=n):
                self.fails("convolve", "ir.txt", "in.wav", "/dev/full", says=["/dev/full", "No space"])
                with open("/dev/full", "wb") as full:
                    child = self.start("convolve", "ir.txt", "in.wav", "-", stdout=full, stderr=subprocess.PIPE)
                    said = child.communicate(timeout=60)[1]
                self.assertEqual(child.returncode, 1)
                self.assertIn(b"standard output: cannot write: No space", said)

    def test_reports(self):
        """A failure is said once, by the command or when the output is closed."""
        for arguments in (["eq", "--section", "gain -1"], ["lowpass", "--cutoff", "1k", "--width", "500"]):
            for more in ([], ["--json"]):
                with open("/dev/full", "wb") as full:
                    child = self.start("design", *arguments, "--rate", "48k", *more, "o.npy", stdout=full, stderr=subprocess.PIPE)
                    said = child.communicate(timeout=60)[1]
                self.assertEqual(child.returncode, 1)
                self.assertRegex(said, b"^partita design: standard output: cannot write[^\n]*\n$")
        with open("/dev/full", "wb") as full:
            child = self.start("devices", "--json", stdout=full, stderr=subprocess.PIPE)
            self.assertIn(b"partita devices: standard output: cannot write", child.communicate(timeout=60)[1])

    def test_text_output(self):
        for arguments in (["help"], ["help", "--man"], ["--version"], ["plan"], ["convolve", "--help"]):
            with open("/dev/full", "wb") as full:
                child = self.start(*arguments, stdout=full, stderr=subprocess.PIPE)
                self.assertIn(b"standard output", child.communicate(timeout=60)[1])
            self.assertEqual(child.returncode, 1, arguments)
        self.write("in.wav", noise_wav(10))
        with open("/dev/full", "wb") as full:
            child = self.start("convolve", "--json", "ir.txt", "in.wav", "out.wav", stdout=full, stderr=subprocess.PIPE)
            child.communicate(timeout=60)
        self.assertEqual(child.returncode, 1)

    def test_failing_writes(self):
        """EIO at the nth write and at close: exit status 1, no new file, the old file unchanged."""
        self.write("in.wav", noise_wav(60000))
        self.write("old.wav", b"old")
        for name in ("out.wav", "old.wav", "out.npy", "out.raw", "out.flac", "out.aiff"):
            for n in (1, 2, 3, 4):
                before = set(os.listdir("."))
                done = subprocess.run([rig.PROGRAM, "convolve", "ir.txt", "in.wav", name], stderr=subprocess.PIPE,
                                      env=dict(os.environ, **self.with_shim(FAIL_WRITE=str(n))))
                with self.subTest(name=name, nth=n):
                    self.assertEqual(done.returncode, 1, done.stderr)
                    self.assertIn(b"Input/output error", done.stderr)
                    self.assertEqual(set(os.listdir(".")), before)
            with self.subTest(name=name, at="close"):
                self.fails("convolve", "ir.txt", "in.wav", name, env=self.with_shim(FAIL_CLOSE="1"),
                           says=[name, "Input/output error"])
        self.assertEqual(self.read("old.wav"), b"old")

    def test_failing_reads(self):
        self.write("in.wav", noise_wav(60000))
        self.run_program("convolve", "ir.txt", "in.wav", "in.flac")
        for source in ("in.wav", "in.flac"):
            for n in (2, 3, 4, 5):
                with self.subTest(source=source, nth=n):
                    self.fails("convolve", "ir.txt", source, "out.wav", env=self.with_shim(FAIL_READ=str(n)),
                               says=["Input/output error"])

    def test_file_size_limit(self):
        self.write("in.wav", noise_wav(60000))

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))

        self.fails("convolve", "ir.txt", "in.wav", "out.wav", says=["out.wav", "File too large"], preexec_fn=limit)


class Readers(Faults):
    def test_closed_pipe_ends_the_program_silently(self):
        self.write("in.wav", noise_wav(2000000))
        done = subprocess.run(["bash", "-c", '"$0" convolve ir.txt in.wav - | head -c 100 > /dev/null; '
                               'echo ${PIPESTATUS[0]}', rig.PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((done.stdout, done.stderr), (b"141\n", b""))
        done = subprocess.run(["bash", "-c", 'trap "" PIPE; "$0" convolve ir.txt in.wav - | head -c 100 > /dev/null; '
                               'echo ${PIPESTATUS[0]}', rig.PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((done.stdout, done.stderr), (b"141\n", b""))

    def test_closed_standard_streams(self):
        self.write("in.wav", noise_wav(10))
        for close in ("<&-", ">&-", "<&- >&- 2>&-"):
            done = subprocess.run(["bash", "-c", '"$0" convolve ir.txt in.wav out.wav ' + close, rig.PROGRAM])
            self.assertEqual(done.returncode, 0, close)
            self.assertEqual(len(parse_wav(self.read("out.wav"))[1]), 11)
        done = subprocess.run(["bash", "-c", '"$0" convolve ir.txt - out.wav <&- 2>/dev/null', rig.PROGRAM])
        self.assertEqual(done.returncode, 1)
        done = subprocess.run(["bash", "-c", '"$0" convolve ir.txt in.wav - >&- 2>/dev/null', rig.PROGRAM])
        self.assertEqual(done.returncode, 1)

    def test_terminals_are_refused(self):
        self.write("in.wav", noise_wav(10))
        controller, terminal = os.openpty()
        for arguments, streams in ((["ir.txt", "-", "out.wav"], {"stdin": terminal}),
                                   (["ir.txt", "in.wav", "-"], {"stdout": terminal})):
            child = self.start("convolve", *arguments, stderr=subprocess.PIPE, **streams)
            self.assertIn(b"is a terminal", child.communicate(timeout=60)[1])
            self.assertEqual(child.returncode, 1)
        os.close(controller)
        os.close(terminal)

    def test_output_is_written_without_delay(self):
        """With --block 64 the result of the input so far arrives before more input is sent."""
        child = self.start("convolve", "--block", 64, "-f", "f32", "ir.txt", "-", "-", stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE)
        sent, got = np.arange(2048, dtype="<f4"), b""
        for chunk in sent.reshape(-1, 256):
            child.stdin.write(chunk.tobytes())
            child.stdin.flush()
            deadline = time.monotonic() + 20
            goal = len(got) + 4 * 256 - (4 * 64 if not got else 0)
            while len(got) < goal and time.monotonic() < deadline:
                got += os.read(child.stdout.fileno(), goal - len(got))
            self.assertGreaterEqual(len(got), goal)
        child.stdin.close()
        got += child.stdout.read()
        child.stdout.close()
        self.assertEqual(child.wait(timeout=60), 0)
        self.close(np.frombuffer(got, "<f4"), np.convolve(sent, [0.5, 0.25]))

    def test_memory_of_a_long_pipe(self):
        """120 MB of stereo through 65536 taps: peak resident memory stays below 64 MiB."""
        self.write("ir.raw", (np.random.default_rng(1).standard_normal(65536) / 256).astype("<f4").tobytes())
        n = 15000000
        script = ('import sys\nb=bytes(range(256))*4096\n'
                  'for i in range(%d): sys.stdout.buffer.write(b)' % (n * 8 // (256 * 4096)))
        source = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
        child = self.start("convolve", "-q", "-f", "ri16_le", "-c", 2, "--ir-format", "f32", "ir.raw", "-", "-",
                           stdin=source.stdout, stdout=subprocess.PIPE)
        source.stdout.close()
        total = peak = 0
        while True:
            chunk = os.read(child.stdout.fileno(), 1 << 16)
            if not chunk:
                break
            if total >> 22 != total + len(chunk) >> 22:
                peak = self.peak_kib(child.pid) # of this process; rusage would include its parent
            total += len(chunk)
        child.stdout.close()
        source.wait()
        self.assertEqual(child.wait(timeout=60), 0)
        self.assertEqual(total, (n * 8 // (256 * 4096) * 256 * 4096) + 65535 * 4)
        self.assertGreater(peak, 0)
        if not os.environ.get("SANITIZED"):
            self.assertLess(peak, 64 * 1024, "KiB resident")

    def test_slow_reader_blocks_the_program(self):
        child = self.start("convolve", "-f", "f32", "ir.txt", "/dev/zero", "-", stdout=subprocess.PIPE)
        time.sleep(0.5)
        cpu = self.cpu_seconds(child.pid)
        time.sleep(0.5)
        self.assertLess(self.cpu_seconds(child.pid) - cpu, 0.1)
        child.kill()
        child.wait(timeout=60)
        child.stdout.close()

    @staticmethod
    def peak_kib(pid):
        with open("/proc/%d/status" % pid) as f:
            return int(next(line for line in f if line.startswith("VmHWM")).split()[1])

    @staticmethod
    def cpu_seconds(pid):
        with open("/proc/%d/stat" % pid) as f:
            fields = f.read().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Signals(Faults):
    def wait_for(self, condition):
        deadline = time.monotonic() + 20
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def temporaries(self):
        return [n for n in os.listdir(".") if n.startswith(".")]

    def start_endless(self, out="out.raw"):
        """A run that has started to write and never ends by itself."""
        child = self.start("convolve", "-f", "f32", "ir.txt", "/dev/zero", out, stderr=subprocess.PIPE)
        self.wait_for(lambda: self.temporaries() and os.stat(self.temporaries()[0]).st_size > 0)
        return child

    def test_signals_remove_the_unfinished_file(self):
        # The tests may have been started with SIGHUP ignored (nohup), which children inherit.
        self.addCleanup(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_DFL))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.write("out.raw", b"old")
            child = self.start_endless()
            child.send_signal(number)
            child.communicate(timeout=60)
            with self.subTest(number=number):
                self.assertEqual(child.returncode, -number)
                self.assertEqual(self.temporaries(), [])
                self.assertEqual(self.read("out.raw"), b"old")

    def test_kill_keeps_the_old_file(self):
        for before in (None, b"old"):
            if before:
                self.write("out.raw", before)
            child = self.start_endless()
            child.kill()
            child.communicate(timeout=60)
            self.assertEqual(self.read("out.raw") if before else os.path.exists("out.raw"), before or False)
            for name in self.temporaries():
                os.remove(name)

    def test_interrupting_a_stalled_pipe_keeps_its_output(self):
        """SIGINT ends an endless input; until then the program does not busy-wait."""
        child = self.start("convolve", "ir.txt", "-", "out.wav", stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        child.stdin.write(wav_bytes(np.ones((5000, 1), int) * 1000, data=0xFFFFFFFF))
        child.stdin.flush()
        self.wait_for(self.temporaries)
        time.sleep(0.5)
        self.assertLess(Readers.cpu_seconds(child.pid), 0.4)
        child.send_signal(signal.SIGINT)
        said = child.stderr.read()
        child.stderr.close()
        self.assertEqual(child.wait(timeout=60), 3)
        child.stdin.close()
        self.assertIn(b"interrupted after 5000 frames", said)
        data = self.read("out.wav")
        self.assertEqual(struct.unpack_from("<I", data, 4)[0], len(data) - 8)
        self.assertEqual(parse_wav(data)[3], 5001 * 2)

    def test_interrupting_a_redirected_file_ends_it(self):
        with open("huge.raw", "wb") as f:
            f.truncate(1 << 40)
        with open("huge.raw", "rb") as f:
            child = self.start("convolve", "-f", "f32", "ir.txt", "-", "out.raw", stdin=f)
        self.wait_for(lambda: self.temporaries() and os.stat(self.temporaries()[0]).st_size > 0)
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.wait(timeout=60), -signal.SIGINT)
        self.assertEqual(self.temporaries(), [])

    def test_second_interrupt_ends_at_once(self):
        os.mkfifo("out.fifo")
        keep = os.open("out.fifo", os.O_RDWR)
        child = self.start("convolve", "-f", "f32", "ir.txt", "-", "out.fifo", stdin=subprocess.PIPE,
                           stderr=subprocess.DEVNULL)
        fcntl.fcntl(child.stdin, fcntl.F_SETFL, os.O_NONBLOCK)

        def stuck(): # blocked by an output that nobody reads
            try:
                os.write(child.stdin.fileno(), b"\0" * 65536)
            except BlockingIOError:
                pass
            waiting = fcntl.ioctl(keep, termios.FIONREAD, b"\0" * 4)
            return struct.unpack("i", waiting)[0] == fcntl.fcntl(keep, fcntl.F_GETPIPE_SZ)

        self.wait_for(stuck)
        child.send_signal(signal.SIGINT)
        time.sleep(0.2)
        self.assertIsNone(child.poll())
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.wait(timeout=60), -signal.SIGINT)
        child.stdin.close()
        os.close(keep)

    def test_ignored_signals_stay_ignored(self):
        child = subprocess.Popen(["bash", "-c", 'trap "" HUP; exec "$0" convolve -f f32 ir.txt - out.raw', rig.PROGRAM],
                                 stdin=subprocess.PIPE)
        child.stdin.write(b"\0" * 400)
        child.stdin.flush()
        self.wait_for(self.temporaries)
        child.send_signal(signal.SIGHUP)
        child.stdin.close()
        self.assertEqual(child.wait(timeout=60), 0)
        self.assertEqual(len(self.read("out.raw")), 404)


class Arguments(Faults):
    def usage(self, *arguments, says=()):
        return self.fails(*arguments, rc=2, says=says)

    def test_no_or_unknown_command(self):
        self.usage(says="no command given")
        self.usage("", says="no command given")
        self.usage("convolute", says="convolute")
        self.usage("help", "convolute", says="convolute")
        self.usage("help", "convolve", "plan", says="2 names")

    def test_operands(self):
        self.usage("convolve", says="IR... IN OUT")
        self.usage("convolve", "a", says="1 file name is given")
        self.usage("convolve", "a", "b", says="2 file names are given")
        self.usage("correlate", "a", "b", "c", "d", says="TEMPLATE IN [OUT]")
        self.usage("plan", "a", says="1 is given")
        self.usage("devices", "a", "b", says="2 are given")
        self.usage("convolve", *["x"] * 5000, says="4998 file names")
        for line in self.usage("plan", "a").splitlines():
            self.assertNotIn("[options]  ", line.replace("[options]   (", ""))

    def test_file_name_as_sample_type(self):
        """-o does not name OUT, and --ir-fo abbreviates --ir-format: their value is checked before the
        number of operands."""
        three = "file names are given without options: IR... IN OUT"
        self.usage("convolve", "hall.wav", "voice.wav", "-o", "wet.wav",
                   says=["--output-format wet.wav: unknown sample type", three])
        self.usage("convolve", "--ir-fo", "hall.wav", "voice.wav", "wet.wav", says=["--ir-format hall.wav", three])
        self.usage("correlate", "--format", "x.wav", "a", "b", says=["--format x.wav", "TEMPLATE IN [OUT]"])

    def test_abbreviated_options(self):
        for written in ("--res", "--re", "--re=3"):
            self.assertIn("--resample-ir, --resume", self.usage("convolve", written, says=[written, "ambiguous"]))
        self.usage("convolve", "--resam=3", says="--resample-ir takes no value")
        self.usage("convolve", "--matrix=2", says="--matrix takes no value")
        self.usage("convolve", "--resumed", says="--resumed: no such option")
        self.usage("convolve", "--=3", says="no such option")

    def test_options(self):
        three = ["ir.txt", "in.wav", "out.wav"]
        for arguments, says in (
                (["--frobnicate"], "--frobnicate"), (["-Z"], "-Z"), (["--mode", "most"], "full|same|valid"),
                (["--mode"], "value"), (["--gain", "loud"], "--gain loud"), (["--gain", "nan"], "--gain"),
                (["--gain", "1e999"], "--gain"), (["--threads", "0"], "from 1 to"), (["--threads", "-3"], "from 1 to"),
                (["--block", "1000000000"], "--block"), (["--block", "99999999999999999999"], "from 1 to"),
                (["--block", "12x"], "whole number"), (["--block", ""], "whole number"), (["--block", "1.5"], "whole"),
                (["--first", "1", "--first", "2"], "twice"), (["-m", "full", "--mode", "full"], "twice"),
                (["--mode", "same", "--first", "3"], "--mode"), (["--first", "9", "--last", "9"], "in between"),
                (["--channels", "2"], "leave it out"), (["--quiet", "--verbose"], "contradict"),
                (["--output-format", "f99"], "f99"), (["--stride", "0"], "--stride"), (["--max-lag", "5"], "--max-lag"),
                (["--matrix=2"], "--matrix"), (["--rate", "0"], "--rate")):
            self.write("in.wav", noise_wav(5))
            with self.subTest(arguments=arguments):
                self.fails("convolve", *arguments, *(three if says != "value" else []), rc=2, says=says)
        self.usage("correlate", "--max-lag", "5", "--last", "3", *three, says="--max-lag")
        self.usage("correlate", "--max-lag", "-5", *three, says="from 0 on")
        self.usage("convolve", "-", "-", "out.wav", says="standard input")

    def test_engines_and_devices(self):
        self.write("in.wav", noise_wav(5))
        self.usage("convolve", "--engine", "cpu/magic", "ir.txt", "in.wav", "out.wav",
                   says="--engine cpu/magic: no such engine; choose one of cpu/gemm, cpu/direct, cpu/winograd, cpu/tiles")
        self.usage("convolve", "--engine", "x" * 500, "ir.txt", "in.wav", "out.wav")
        self.fails("convolve", "--device", "abacus", "ir.txt", "in.wav", "out.wav", says='--device "abacus": no such')
        self.usage("convolve", "--engine", "cuda/direct", "ir.txt", "in.wav", "out.wav", says="needs --device cuda")

    def test_engine_for_bounded_signals_suggests_threads(self):
        self.write("in.wav", noise_wav(500))
        three = ("ir.txt", "in.wav", "out.wav")
        self.fails("convolve", "-e", "blocks", *three, says=["not on streams", "; --threads 2 filters in segments"])
        self.fails("convolve", "-e", "blocks", "-b", 64, *three, says="leave out --block: --threads 2")
        self.run_program("convolve", "-e", "blocks", "--threads", 2, *three)

    def test_options_may_follow_names_and_end(self):
        self.write("in.wav", noise_wav(5))
        self.run_program("convolve", "ir.txt", "in.wav", "out.wav", "--gain", "-6")
        os.rename("in.wav", "-in.wav")
        self.run_program("convolve", "--", "ir.txt", "-in.wav", "out.wav")

    def test_quiet_prints_nothing(self):
        self.write("in.wav", wav_bytes(np.array([[30000]] * 50)))
        done = self.run_program("convolve", "-q", "--gain", 20, "ir.txt", "in.wav", "out.wav")
        self.assertEqual(done.stderr, b"")

    def test_verbose_explains(self):
        self.write("in.wav", noise_wav(5))
        done = self.run_program("convolve", "-v", "ir.txt", "in.wav", "out.wav")
        for word in (b"cpu/direct", b"cpu/overlap-save", b"chosen"):
            self.assertIn(word, done.stderr)

    def test_progress_needs_a_terminal(self):
        controller, terminal = os.openpty()
        child = self.start("convolve", "-f", "f32", "ir.txt", "/dev/zero", "/dev/null", stderr=terminal)
        os.close(terminal)
        time.sleep(1.3)
        child.kill()
        child.wait(timeout=60)
        said = os.read(controller, 4096)
        os.close(controller)
        self.assertIn(b"frames", said)
        child = self.start("convolve", "-f", "f32", "ir.txt", "/dev/zero", "/dev/null", stderr=subprocess.PIPE)
        time.sleep(1.3)
        child.kill()
        self.assertEqual(child.communicate(timeout=60)[1], b"")


if __name__ == "__main__":
    rig.main()

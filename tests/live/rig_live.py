# SPDX-License-Identifier: MIT
"""Shared by the tests of `partita live`: a home folder with ALSA devices made of files, a JACK
server, and the program as a background process."""
import contextlib
import fcntl
import glob
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "apps"))

import rig  # noqa: E402
import schemas  # noqa: E402
from rig import Case, wav_bytes  # noqa: E402

# The program keeps ignoring SIGHUP if its parent does, as nohup makes it.
for ignored in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(ignored, signal.SIG_DFL)

# Time limits only end processes that hang; a case that tests a time limit says so.
SLOWER = 4 if os.environ.get("SANITIZED") else 1

# Devices made of files run many times faster than real time, so nothing here depends on time. The slave has a fixed
# format, because otherwise PortAudio and the file could disagree on it. Input and output are two devices, because a
# single one would write its input into the output file.
ASOUNDRC = """
pcm.fl_null {{ type null }}
pcm.fl_in {{ type plug slave {{ pcm {{ type file slave.pcm "fl_null" file "/dev/null" infile "{folder}/in.raw"
    format "raw" }} format FLOAT_LE channels {inputs} rate {rate} }} }}
pcm.fl_out {{ type plug slave {{ pcm {{ type file slave.pcm "fl_null" file "{folder}/out.raw" format "raw" }}
    format FLOAT_LE channels {outputs} rate {rate} }} }}
pcm.fl_full {{ type plug slave {{ pcm {{ type file slave.pcm "fl_null" file "/dev/full" format "raw" }}
    format FLOAT_LE channels {outputs} rate {rate} }} }}
"""
FILES = ["--input", "fl_in", "--output", "fl_out"]


def dyadic(random, shape, bits=7):
    """Samples whose sums of products with other such samples are exact in float."""
    return (random.integers(-2**bits + 1, 2**bits, shape) / 2.0**(bits + 2)).astype("f4")


def convolve(x, taps):
    """The oracle in double precision: columns of x [frames, in] filtered with taps [out][in][n],
    summed over inputs, as long as x."""
    x = np.asarray(x, "f8")
    y = np.zeros((len(x), len(taps)))
    for k, row in enumerate(taps):
        for c, h in enumerate(row):
            if h is not None:
                n = 1 << (len(x) + len(h)).bit_length()
                if len(h) <= 64:
                    y[:, k] += np.convolve(x[:, c], np.asarray(h, "f8"))[:len(x)]
                else:
                    y[:, k] += np.fft.irfft(np.fft.rfft(x[:, c], n) * np.fft.rfft(np.asarray(h, "f8"), n), n)[:len(x)]
    return y


def diagonal(taps):
    """taps [n, channels] from each input to the output of the same number."""
    n = taps.shape[1]
    return [[taps[:, c] if c == k else None for c in range(n)] for k in range(n)]


def received_sweep(paths, seconds, rate=48000):
    """What inputs receive of the sweep of --measure: for each a list of (delay in frames, gain)."""
    n = int(seconds * rate)
    t = np.arange(n) / rate
    constant = n / rate / np.log(0.45 * rate / 20)
    fade = lambda t, length: np.where(t >= length, 1, 0.5 - 0.5 * np.cos(np.pi * t / length))
    sweep = (np.sin(2 * np.pi * 20 * constant * np.expm1(t / constant)) * fade(t, 0.05) *
             fade((n - 1) / rate - t, 0.005)) / 4
    received = np.zeros((n + 24000 + 48000 + 4096, len(paths)), "f4")
    for c, path in enumerate(paths):
        for delay, gain in path:
            received[24000 + delay:24000 + delay + n, c] += gain * sweep
    return received


def remove_locked_jack_database():
    """JACK's database of metadata, if no process uses it. A killed JACK program can leave it locked, and every later
    one, server or client, would wait for it without end."""
    folder = "/dev/shm/jack_db-%d" % os.getuid()
    for maps in glob.glob("/proc/[0-9]*/maps"):
        with contextlib.suppress(OSError), open(maps) as lines:
            if folder + "/" in lines.read():
                return
    shutil.rmtree(folder, ignore_errors=True)


class Live(Case):
    def setUp(self):
        super().setUp()
        remove_locked_jack_database()
        self.children = []

    def tearDown(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait()
            for stream in (child.stdin, child.stdout, child.stderr):
                if stream:
                    stream.close()
        super().tearDown()

    def environment(self, **more):
        return {**os.environ, "HOME": self.folder, "XDG_CACHE_HOME": self.folder + "/cache", **more}

    def alsa(self, x=None, inputs=2, outputs=2, rate=48000):
        """Creates devices made of files; x [frames, inputs] is the input of fl_in."""
        if x is not None:
            inputs = np.asarray(x).shape[1]
            self.write("in.raw", np.asarray(x, "<f4").tobytes())
        elif not os.path.exists("in.raw"):
            self.write("in.raw", bytes(4 * inputs * 100000))
        self.write("out.raw", b"") # ALSA creates it whenever PortAudio probes the device
        self.write(".asoundrc", ASOUNDRC.format(folder=self.folder, inputs=inputs, outputs=outputs, rate=rate).encode())

    def ir(self, taps, name="ir.wav", rate=48000):
        self.write(name, wav_bytes(np.asarray(taps, "f4"), rate=rate, bits=32))
        return name

    def live(self, *arguments, rc=0, env=None, **more):
        return self.run_program("live", *arguments, rc=rc, env=self.environment(**(env or {})), **more)

    def fails_live(self, *arguments, rc=1, says=()):
        return self.fails("live", *arguments, rc=rc, says=says, env=self.environment())

    def listed_devices(self):
        return schemas.load(self.run_program("devices", "--json", env=self.environment()).stdout)["devices"]

    def audio_devices(self):
        return [d for d in self.listed_devices() if d["kind"] == "audio"]

    def start(self, *arguments, env=None, **more):
        """Starts the program in the background."""
        more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        child = subprocess.Popen([rig.PROGRAM, "live"] + [str(a) for a in arguments],
                                 env=self.environment(**(env or {})), **more)
        self.children.append(child)
        return child

    def ends(self, child, rc=0, within=120):
        """Waits for the end of the program and returns its messages."""
        out, err = child.communicate(timeout=within * SLOWER)
        self.assertEqual(child.returncode, rc, err.decode(errors="replace") if err else "")
        return (out or b"").decode(), (err or b"").decode(errors="replace")

    def line(self, child):
        """The next line of JSON."""
        text = child.stdout.readline()
        self.assertTrue(text, "ended: " + (child.stderr.read().decode() if not text else ""))
        return schemas.load(text)

    def wait_for(self, condition, within=60):
        deadline = time.monotonic() + within * SLOWER
        while not condition():
            self.assertLess(time.monotonic(), deadline, "nothing happened")
            time.sleep(0.01)

    def open_terminal(self, *arguments, columns=80, rows=40, **more):
        controller, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
        child = self.start(*arguments, stdin=terminal, stderr=terminal, **{"stdout": terminal, **more})
        self.addCleanup(os.close, controller)
        self.addCleanup(os.close, terminal)
        self.seen = b""
        return child, controller, terminal

    def until(self, controller, words):
        """Reads the screen until the words have appeared."""
        self.seen = b""
        deadline = time.monotonic() + 60 * SLOWER
        while words not in self.seen:
            self.assertLess(time.monotonic(), deadline, (words, self.seen[-2000:]))
            if select.select([controller], [], [], 1)[0]:
                self.seen += os.read(controller, 65536)
        return self.seen

    def played(self, channels, frames):
        """The output to fl_out, without the silence with which ALSA first fills its buffer."""
        y = np.fromfile("out.raw", "<f4").reshape(-1, channels)
        sounding = np.flatnonzero(np.abs(y).max(axis=1))
        self.assertTrue(len(sounding), "silence")
        return y, sounding[0], y[sounding[0]:sounding[0] + frames]


def has_jack():
    return all(map(shutil.which, ("jackd", "jack_lsp", "jack_connect")))


def claim_server_name():
    """A server name that no other run uses, and the lock on it. JACK allows eight servers and
    forgets a killed one only when another with its name starts, so there are few names."""
    for i in range(4):
        lock = open(os.path.join(tempfile.gettempdir(), ".partita-test-jack-%d-%d" % (os.getuid(), i)), "w")
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return "partita-test-%d" % i, lock
        lock.close()
    raise RuntimeError("four test runs with JACK servers are under way already")


def may_run_in_real_time():
    """Whether the system permits real-time scheduling."""
    return subprocess.run(["chrt", "-f", "10", "true"], stderr=subprocess.DEVNULL).returncode == 0


class Jack(Live):
    """Cases with their own JACK server without hardware, in real time or nearly so."""

    def setUp(self):
        if not has_jack():
            self.skipTest("jackd2 is not installed")
        super().setUp()
        self.server_name, self.server_lock = claim_server_name()
        self.server = None

    def tearDown(self):
        self.stop_server()
        self.server_lock.close()
        super().tearDown()

    def environment(self, **more):
        return super().environment(JACK_DEFAULT_SERVER=self.server_name, JACK_NO_AUDIO_RESERVATION="1",
                                   JACK_NO_START_SERVER="1", **more)

    def start_server(self, period=256, rate=48000, channels=2, realtime=False):
        """realtime: the server and the audio threads of its clients have real-time scheduling, and
        the server waits for its clients. Otherwise a server that wakes up late would continue
        before they have finished."""
        self.log = open("jackd.log", "ab")
        how = ["-R", "-P", "10", "-S"] if realtime else ["-r"]
        # The server ends with the test even if that is killed: otherwise its name stays taken.
        self.server = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "jackd", *how, "-m", "-d", "dummy", "-r", str(rate), "-p", str(period), "-C",
                                        str(channels), "-P", str(channels)], env=self.environment(), stdout=self.log,
                                       stderr=self.log, stdin=subprocess.DEVNULL)
        self.log.close()
        self.wait_for(lambda: b"system:playback_1" in self.tool("jack_lsp"))

    def stop_server(self):
        if self.server and self.server.poll() is None:
            self.server.send_signal(signal.SIGCONT)
            self.server.terminate()
            try:
                self.server.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self.server.kill()
                self.server.wait()
        self.server = None

    def tool(self, *command):
        """The output of one of JACK's own programs; empty if the server does not respond."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return subprocess.run(command, env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  timeout=10 * SLOWER).stdout
        return b""

    def runs(self):
        """Whether the program is connected."""
        return b"partita:out_0" in self.tool("jack_lsp")

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`partita live` steered while it plays: by the control socket and `partita control`, by keys, in
small terminals. With PortAudio's ALSA code and devices made of files."""
import contextlib
import importlib.util
import os
import signal
import socket
import stat
import struct
import subprocess
import threading
import time

import numpy as np

import rig_live
from rig_live import Live, rig

import schemas # rig_live makes it known
from rig import SOFA, gate, measured_pair, parse_wav

PATH = "s.socket"
DEVICES = ["--input", "fl_in", "--output", "fl_null"] # silence, played as fast as possible


class Steered(Live):
    def setUp(self):
        super().setUp()
        self.alsa()
        self.ir(np.ones((1, 2)) * 0.5)
        self.ir(np.ones((4, 2)) * 0.25, "b.wav")

    def begin(self, *arguments, irs=("ir.wav", "b.wav")):
        named = [word for ir in irs for word in ("--ir", ir)]
        child = self.start(*named, *DEVICES, "--control", PATH, *arguments)
        self.wait_for(lambda: os.path.exists(PATH) or self.assertIsNone(child.poll(), "the program ended"))
        return child

    def connect(self):
        """A connection as a file of lines; the server may listen a moment later."""
        connection = socket.socket(socket.AF_UNIX)
        self.addCleanup(connection.close)
        connection.settimeout(60 * rig_live.SLOWER)
        self.wait_for(lambda: connection.connect_ex(PATH) == 0)
        return connection.makefile("rwb", buffering=0)

    def ask(self, line, connection=None):
        connection = connection or self.connection
        connection.write(line.encode() + b"\n")
        return schemas.load(connection.readline())

    def ok(self, line, **expected):
        answer = self.ask(line)
        self.assertTrue(answer["ok"], answer)
        for name, value in expected.items():
            self.assertEqual(answer[name], value, (line, name))
        return answer

    def refused(self, line, *says):
        answer = self.ask(line)
        self.assertFalse(answer["ok"], line)
        for word in says:
            self.assertIn(word, answer["error"])

    def quits(self, child, rc=0):
        self.ok("quit")
        said = self.ends(child, rc)
        self.assertFalse(os.path.exists(PATH))
        return said


class Socket(Steered):
    def test_commands(self):
        child = self.begin("--max-taps", 100)
        self.assertEqual(stat.S_IMODE(os.stat(PATH).st_mode), 0o700)
        self.connection = self.connect()
        self.ok("gain -6", gain=-6, mute=False, filter="ir.wav", filter_number=1, dry=None)
        self.ok("gain up 1.5", gain=-4.5)
        self.ok("gain down 300", gain=-300)
        self.ok("dry up 3", dry=-57)
        self.ok("dry down 4", dry=None)
        self.ok("wet off", wet=None)
        self.ok("wet -3", wet=-3)
        self.ok("input-gain 2", input_gain=2)
        self.ok("mute on", mute=True)
        self.ok("bypass toggle", bypass=True)
        self.ok("next", filter="b.wav", filter_number=2)
        self.ok("next", filter="ir.wav")
        self.ok("previous", filter="b.wav")
        self.ok("filter 1", filter="ir.wav")
        self.ok("fade 10ms", fade=10)
        self.ok("fade 100", fade=100)
        for line in ("azimuth 30", "azimuth up 1", "elevation 10"): # neither filter has directions
            self.refused(line, line.split()[0], "no filter of this run is from a SOFA file")
        self.ok("status", azimuth=0, elevation=0, fade=100)
        for line, field in (("gain 60", "gain"), ("dry up 100", "dry"), ("input-gain 31", "input_gain")):
            answer = self.ok(line)
            self.assertIn("%s %g: multiplies samples by" % (line.split()[0], answer[field]), answer["warning"])
        for line in ("gain 30", "gain 0", "dry off", "input-gain 0", "mute on"):
            self.assertNotIn("warning", self.ok(line))
        self.refused("filter 3", "filter 3", "there are 2")
        self.refused("wet loud", "wet loud", "off")
        self.refused("nonsense", "no such command", "help")
        self.assertIn("load", [c["name"] for c in self.ok("help")["commands"]])
        status = self.ok("status", state="running", filters=["ir.wav", "b.wav"], taps=1, rate=48000)
        for name in ("in", "out", "load", "latency", "xruns", "seconds"):
            self.assertIn(name, status)
        self.quits(child)

    def test_load_and_reload(self):
        child = self.begin("--max-taps", 100)
        self.connection = self.connect()
        self.ir(np.ones((7, 2)), "c d.wav")
        self.ok("load c d.wav", filter="c d.wav", filter_number=1)
        self.assertEqual(self.ok("status")["taps"], 7)
        self.ir(np.ones((9, 2)), "c d.wav")
        self.ok("reload", filter="c d.wav")
        self.assertEqual(self.ok("status", filters=["c d.wav", "b.wav"])["taps"], 9)
        self.ir(np.ones((101, 2)), "long.wav")
        self.ir(np.ones((9, 2)), "open.wav")
        whole = self.read("open.wav")
        at = whole.index(b"data") + 4
        self.write("open.wav", whole[:at] + b"\x10\0\0\0" + whole[at + 4:])  # fewer bytes than follow
        self.ok("load open.wav", filter="open.wav", filter_number=1)
        self.ok("load c d.wav", filter="c d.wav")
        self.write("empty.wav", b"")
        os.mkfifo("pipe.wav")
        os.mkfifo("x.sigmf-data")
        self.write("x.sigmf-meta", b'{"global": {"core:datatype": "rf32_le"}, "captures": []}')
        self.ir(np.ones((9, 2)), "room44.wav", rate=44100)
        remedy = " (an option of `partita live`, which has to be started with it); the old filter stays"
        for name, says in (("none.wav", "No such file"), ("long.wav", "(--max-taps)" + remedy), ("empty.wav", "empty.wav"),
                           ("room44.wav", "use --resample-ir" + remedy),
                           ("pipe.wav", "not a regular file"), (".", "not a regular file")):
            self.refused("load " + name, name, says)
        self.refused("load x.sigmf-meta", "x.sigmf-data", "not a regular file")
        self.write("pipe.conf", b"/convolver/new 2 2 64 100\n/impulse/read 1 1 1 0 0 0 1 pipe.wav\n")
        self.refused("load pipe.conf", "pipe.conf:2: pipe.wav", "not a regular file")
        self.refused("load matrix:pipe.conf", "pipe.conf", "leave out matrix:")
        self.ok("status", filter="c d.wav", taps=9)
        said = self.quits(child)[1]
        self.assertIn("c d.wav: loaded\n", said)
        self.assertIn("c d.wav: read again\n", said)
        self.assertRegex(said, r"open\.wav: loaded; open\.wav: [0-9]+ bytes follow the samples that its header counts, and are not read\n")
        self.assertIn("long.wav: 101 taps, more than the 100 that are reserved (--max-taps)" + remedy, said)

    def test_matrix_of_one_filter(self):
        """From a stereo filter to a true-stereo one. The channels of a matrix are [out][in]."""
        matrix = np.zeros((3, 4))
        matrix[2] = [0.5, 0.25, 0.125, 1]
        self.ir(matrix, "four.wav")
        child = self.begin(irs=("ir.wav", "matrix:four.wav"))
        self.connection = self.connect()
        self.ok("status", filters=["ir.wav", "four.wav"], taps=1)
        self.ok("next", filter="four.wav")
        self.ok("load matrix:four.wav", filter="four.wav")
        self.refused("load four.wav", "4 channels", "name it true-stereo:", "four.wav")
        self.ok("load true-stereo:four.wav", filter="four.wav")
        self.ok("load ir.wav", filter="ir.wav")
        self.quits(child)

    def test_subscribers_and_other_clients(self):
        child = self.begin("-q")
        self.connection, other = self.connect(), self.connect()
        self.ok("subscribe 20")
        for _ in range(3):
            self.assertEqual(schemas.load(self.connection.readline())["event"], "status")
        self.assertTrue(self.ask("gain -1", other)["ok"])
        while schemas.load(self.connection.readline()).get("gain") != -1:
            pass
        self.connection.write(b"\0\n" + b"x" * 10000)
        seen = b""
        while (some := self.connection.read(65536)):
            seen += some
        self.assertIn(b"zero byte", seen)
        self.assertIn(b"too long", seen)
        self.connection = other
        self.assertEqual(self.quits(child)[1], "")

    def test_path_in_use(self):
        child = self.begin()
        self.connection = self.connect()
        self.ok("status")
        self.fails_live("--ir", "ir.wav", *DEVICES, "--control", PATH, says=[PATH, "another program"])
        self.fails_live("--ir", "ir.wav", *DEVICES, "--control", "ir.wav", says=["ir.wav", "not a socket"])
        self.fails_live("--measure", "m.wav", "--control", PATH, rc=2, says="--control")
        child.kill()
        child.wait()
        self.assertTrue(os.path.exists(PATH))
        child = self.begin() # the dead socket is replaced
        self.connection = self.connect()
        child.send_signal(signal.SIGINT)
        self.ends(child)
        self.assertFalse(os.path.exists(PATH))


class Waiting(Steered):
    """With --retry and without a device the commands are answered, and the program ends when it is told to."""

    def setUp(self):
        super().setUp()
        os.rename(".asoundrc", "later")

    def wait_begins(self, *more):
        child = self.begin("--retry", *more)
        self.assertIn(b"waiting for it", child.stderr.readline())
        self.connection = self.connect()
        return child

    def test_commands(self):
        child = self.wait_begins()
        status = self.ok("status", state="waiting", seconds=0)
        self.assertIn("fl_in", status["waiting_for"])
        self.assertIn("load", [c["name"] for c in self.ok("help")["commands"]])
        for line in ("gain 3", "load ir.wav", "subscribe 500", "next"):
            self.refused(line, line.split()[0] + ": is not possible while the program waits for the audio device", "fl_in", "status")
        self.refused("nonsense", "no such command")
        os.rename("later", ".asoundrc")
        self.wait_for(lambda: self.ok("status")["state"] == "running") # the same connection goes on
        self.ok("gain 3", gain=3)
        self.quits(child)

    def test_ends(self):
        """The exit status is 0, as when it is ended while it plays, and the socket is removed."""
        child = self.wait_begins()
        self.ok("quit", state="ending")
        self.assertIn("ended while there was no audio device", self.ends(child)[1])
        self.assertFalse(os.path.exists(PATH))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT):
            with self.subTest(number=number):
                child = self.wait_begins()
                child.send_signal(number)
                self.ends(child)
                self.assertFalse(os.path.exists(PATH))


class Command(Steered):
    def control(self, *words, rc=0, cwd=None):
        return self.run_program("control", *words, rc=rc, cwd=cwd)

    def test_partita_control(self):
        child = self.begin()
        self.connection = self.connect()
        self.assertEqual(schemas.load(self.control(PATH, "gain", "-6").stdout)["gain"], -6)
        self.assertEqual(schemas.load(self.control(PATH, "gain -7").stdout)["gain"], -7)
        self.assertIn("gain x", schemas.load(self.control(PATH, "gain", "x", rc=1).stdout)["error"])
        os.mkdir("sub")
        self.ir(np.ones((1, 2)), "sub/my own.wav")
        path = os.path.join("..", PATH)
        answer = schemas.load(self.control(path, "load", "my own.wav", cwd="sub").stdout)
        self.assertTrue(answer["filter"].endswith("/sub/my own.wav"), answer)
        self.ir(np.ones((1, 4)), "sub/four.wav")
        answer = schemas.load(self.control(path, "load", "true-stereo:four.wav", cwd="sub").stdout)
        self.assertTrue(answer["filter"].endswith("/sub/four.wav"), answer)
        answer = schemas.load(self.control(path, "load", "my own.wav+true-stereo:four.wav", cwd="sub").stdout)
        self.assertTrue(answer["filter"].endswith("/sub/my own.wav+true-stereo:" + os.path.abspath("sub/four.wav")), answer)
        follower = subprocess.Popen([rig.PROGRAM, "control", PATH, "subscribe", "20"], stdout=subprocess.PIPE)
        self.children.append(follower)
        self.assertTrue(schemas.load(follower.stdout.readline())["ok"])
        self.assertEqual(schemas.load(follower.stdout.readline())["event"], "status")
        self.control(PATH, "quit")
        follower.stdout.read()
        self.assertEqual(follower.wait(), 0)
        self.ends(child)
        dead = socket.socket(socket.AF_UNIX)
        dead.bind("dead")
        dead.close()
        for words, says in (((PATH, "status"), ["cannot connect", "--control"]), (("x" * 200, "status"), ["107"]),
                            (("ir.wav", "gain", "3"), ["ir.wav: is not a socket", "before the command"]),
                            (("dead", "status"), ["dead: cannot connect: the program", "has ended", "--control dead"])):
            self.fails("control", *words, says=says)
        self.fails("control", PATH, rc=2, says="COMMAND")
        self.fails("control", PATH, "gain\n3", rc=2, says="one line")
        self.fails("control", PATH, "x" * 9000, rc=2, says="longer")


def osc_text(text):
    data = text.encode() + b"\0"
    return data + bytes(-len(data) % 4)


def osc_message(path, types="", *arguments):
    """A message as the OSC 1.0 specification has it."""
    body = b"".join(osc_text(a) if t == "s" else struct.pack(">" + t, a) for t, a in zip(types, arguments))
    return osc_text(path) + osc_text("," + types) + body


def osc_parse(data):
    """Path and arguments of a message."""
    def text(at):
        end = data.index(b"\0", at)
        return data[at:end].decode(), (end // 4 + 1) * 4

    path, at = text(0)
    types, at = text(at)
    arguments = []
    for t in types[1:]:
        if t == "s":
            value, at = text(at)
        else:
            value, at = struct.unpack_from(">" + t, data, at)[0], at + 4
        arguments.append(value)
    return path, arguments


class Osc(Steered):
    def setUp(self):
        super().setUp()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        said = self.run_program("live", "--ir", "ir.wav", *DEVICES, "--osc", "x", rc=2, env=self.environment()).stderr
        if b"without liblo" in said:
            self.skipTest("built without liblo")
        self.assertIn(b"--osc x: must be PORT or ADDRESS:PORT", said)
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(self.udp.close)
        self.udp.connect(("127.0.0.1", self.port))
        self.udp.settimeout(60 * rig_live.SLOWER)

    def status(self, **wanted):
        """Sends /partita/status until the values are as wanted, and returns them all."""
        wanted = {"/partita/" + name.replace("_", "-"): value for name, value in wanted.items()}
        for _ in range(100):
            self.udp.send(osc_message("/partita/status"))
            seen = {}
            while "/partita/xruns" not in seen:
                path, arguments = osc_parse(self.udp.recv(65536))
                seen[path] = arguments
            if all(seen[name] == value for name, value in wanted.items()):
                return seen
        self.fail((wanted, seen))

    def test_messages(self):
        child = self.begin("--osc", self.port)
        self.connection = self.connect()
        several = b"#bundle\0" + bytes(7) + b"\1"
        for part in (osc_message("/partita/wet", "f", -2), osc_message("/partita/mute", "i", 1)):
            several += struct.pack(">i", len(part)) + part
        for packet in (osc_message("/partita/gain", "f", -6.5), osc_message("/partita/gain", "sf", "up", 1.5), several,
                       osc_message("/partita/next", "f", 1.0), osc_message("/partita/next", "f", 0.0),
                       osc_message("/partita/dry", "i", -9), osc_message("/other/gain", "f", 3.0)):
            self.udp.send(packet)
        seen = self.status(gain=[-5], wet=[-2], mute=[1], filter=[2, "b.wav"], dry=[-9], input_gain=[0], bypass=[0])
        self.assertEqual(len(seen["/partita/in/1"] + seen["/partita/out/2"] + seen["/partita/load"]), 5)
        self.udp.send(osc_message("/partita/load", "s", "none.wav"))
        path, (text,) = osc_parse(self.udp.recv(65536))
        self.assertEqual(path, "/partita/error")
        self.assertIn("none.wav", text)
        self.udp.send(osc_message("/partita/load", "s", os.path.abspath("ir.wav")))
        self.assertEqual(osc_parse(self.udp.recv(65536)), ("/partita/filter", [2, os.path.abspath("ir.wav")]))
        self.udp.send(osc_message("/partita/gain", "s", "much"))
        self.assertIn("gain much", osc_parse(self.udp.recv(65536))[1][0])
        self.fails_live("--ir", "ir.wav", *DEVICES, "--osc", self.port, says=["--osc", "in use"])
        self.quits(child)

    def test_while_it_waits_for_a_device(self):
        os.rename(".asoundrc", "later")
        child = self.begin("--retry", "--osc", self.port)
        self.assertIn(b"waiting for it", child.stderr.readline())
        for message, says in ((osc_message("/partita/status"), "waiting for the audio device"),
                              (osc_message("/partita/gain", "f", 3), "gain: is not possible while the program waits")):
            self.udp.send(message)
            path, (text,) = osc_parse(self.udp.recv(65536))
            self.assertEqual(path, "/partita/error")
            self.assertIn(says, text)
        self.udp.send(osc_message("/partita/quit"))
        self.ends(child)

    def test_garbage(self):
        """Packets that are no messages, or too long, are ignored."""
        child = self.begin("--osc", "127.0.0.1:%d" % self.port)
        self.connection = self.connect()
        good = osc_message("/partita/gain", "f", 1)
        self.udp.send(bytes(60000))
        for n in range(len(good)):
            self.udp.send(good[:n])
        for n in (0, 4, 7, 8, 15, 16, 17, 400):
            self.udp.send(b"#bundle\0" + self.random.bytes(n))
        for _ in range(300):
            self.udp.send(self.random.bytes(int(self.random.integers(0, 60))))
            packet = bytearray(good)
            packet[int(self.random.integers(len("/partita/"), len(good)))] = int(self.random.integers(0, 256))
            self.udp.send(packet)

        def is_understood():
            self.udp.send(osc_message("/partita/gain", "f", -7)) # the kernel may drop packets of a flood
            return self.ok("status")["gain"] == -7

        self.wait_for(is_understood)
        self.quits(child)


class Clocked(Steered):
    """The input is a pipe, filled in real time, so that the device keeps time; where the pipe is empty
    ALSA inserts silence."""

    PERIOD, RATE = 2205, 44100

    def feed(self):
        """Feeds an impulse of 1/2 in every period."""
        os.unlink("in.raw")
        os.mkfifo("in.raw")
        pipe = os.open("in.raw", os.O_RDWR | os.O_NONBLOCK)
        block = np.zeros(self.PERIOD, "<f4")
        block[0] = 0.5
        stop = threading.Event()

        def run():
            begin, n = time.monotonic(), 0
            while not stop.is_set():
                if n * self.PERIOD / self.RATE > time.monotonic() - begin:
                    time.sleep(0.005)
                    continue
                with contextlib.suppress(BlockingIOError):
                    os.write(pipe, block.tobytes())
                n += 1

        feeder = threading.Thread(target=run)
        feeder.start()

        def end():
            stop.set()
            feeder.join()
            os.close(pipe)

        self.addCleanup(end)

    @staticmethod
    def scheduling(child):
        """The scheduling classes of the program's threads; FF: of real time."""
        command = ["ps", "-L", "-o", "cls=", "-p", str(child.pid)]
        return subprocess.run(command, stdout=subprocess.PIPE).stdout.decode().split()

    def test_head_related_responses(self):
        """Against the file, read by another library, at the nearest of its positions."""
        if not os.path.exists(SOFA) or not importlib.util.find_spec("h5py"):
            self.skipTest("libmysofa's data or python3-h5py are not installed")
        self.alsa(inputs=1, rate=self.RATE)
        command = [rig.PROGRAM, "live", "--ir", SOFA, *DEVICES, "--rate", "48000", "--duration", "0.01"]
        said = subprocess.run(command, env=self.environment(), stderr=subprocess.PIPE).stderr
        if b"without libmysofa" in said:
            self.skipTest("built without libmysofa")
        self.feed()
        child = self.begin("--record", "rec.wav", "--limiter", "off", "--fade", 0, "--azimuth", 45, "--elevation", 10, irs=(SOFA,))
        self.connection = self.connect()
        self.ok("status", azimuth=45, elevation=10)
        time.sleep(0.5)
        directions = [(0, 0), (90, 0), (-90, 0), (-30, 40)]
        for azimuth, elevation in directions:
            self.ok("azimuth %d" % azimuth)
            self.ok("elevation %d" % elevation, azimuth=azimuth, elevation=elevation)
            time.sleep(0.5)
        self.refused("elevation 91", "-90", "90")
        if rig_live.may_run_in_real_time():
            self.wait_for(lambda: "FF" in self.scheduling(child))
        self.quits(child)
        played = parse_wav(self.read("rec.wav"))[1]
        sounding = np.flatnonzero(np.abs(played).max(axis=1))
        starts = sounding[1:][np.diff(sounding) > self.PERIOD // 2]
        blocks = [played[k:k + self.PERIOD // 2] for k in starts if k + self.PERIOD < len(played)]
        for azimuth, elevation in [(45, 10), *directions]:
            pair = measured_pair(azimuth, elevation) / 2
            lead = np.flatnonzero(np.abs(pair).max(axis=0))[0]
            expected = np.zeros((self.PERIOD // 2, 2))
            expected[:pair.shape[1] - lead] = pair.T[lead:]
            found = sum(np.linalg.norm(b - expected) <= gate("f4") * np.linalg.norm(expected) for b in blocks)
            self.assertGreater(found, 2, (azimuth, elevation))


class Screen(Steered):
    """`screen` is what a terminal of these columns and rows shows."""

    def screen(self, data, columns, rows):
        lines, row, column = [[" "] * columns for _ in range(rows)], 0, 0
        at, wraps = 0, True
        while at < len(data):
            c = data[at:at + 1]
            if c == b"\x1b":
                end = at + 2
                while not data[end:end + 1].isalpha():
                    end += 1
                argument, kind = data[at + 2:end], data[end:end + 1]
                if kind == b"A":
                    row = max(0, row - int(argument))
                elif argument == b"?7":
                    wraps = kind == b"h"
                elif kind == b"H":
                    row = column = 0
                elif kind == b"K":
                    lines[row][column:] = [" "] * (columns - column)
                elif kind == b"J":
                    lines[row][column:] = [" "] * (columns - column)
                    lines[row + 1:] = [[" "] * columns for _ in range(rows - row - 1)]
                at = end
            elif c == b"\r":
                column = 0
            else:
                if c == b"\n" or (wraps and column == columns):
                    row += 1
                    column = 0 if c != b"\n" else column
                if row == rows:
                    row, lines = rows - 1, lines[1:] + [[" "] * columns]
                if c != b"\n":
                    self.assertLess(column, columns, "a line is too long: %r" % data[max(0, at - 200):at + 20])
                    lines[row][column] = c.decode("latin-1")
                    column += 1
            at += 1
        return ["".join(l).rstrip() for l in lines]

    def open_screen(self, columns, rows, *arguments):
        child, controller, terminal = self.open_terminal("--ir", "ir.wav", "--ir", "b.wav", *DEVICES, *arguments,
                                                         columns=columns, rows=rows)
        self.until(controller, b"\033[?7h")
        data = self.seen
        return child, controller, data

    def more(self, controller, data, words):
        data += self.until(controller, words)
        return data + self.until(controller, b"\033[?7h")

    def test_sizes(self):
        for columns, rows, words in ((40, 10, ["in -99.9 out -99.9 dB, load", "xruns 0"]), (200, 40, ["latency", "rms", "q quit"]),
                                     (40, 24, ["latency", "peak", "keys"]), (12, 2, ["in -99.9"])):
            with self.subTest(columns=columns, rows=rows):
                child, controller, data = self.open_screen(columns, rows)
                first = self.screen(data, columns, rows)
                for word in words:
                    self.assertIn(word, "\n".join(first))
                # Redrawn in place: nothing is left behind, nothing scrolls.
                os.write(controller, b"mn")
                data = self.more(controller, data, b"MUTE")
                last = self.screen(data, columns, rows)
                self.assertEqual(len([l for l in last if l]), len([l for l in first if l]), (first, last))
                os.write(controller, b"q")
                child.wait(timeout=60 * rig_live.SLOWER)
                self.assertEqual(child.returncode, 0)

    def test_keys(self):
        child, controller, data = self.open_screen(80, 24)
        for key, words in ((b"?", b"input"), (b"?", b"latency"), (b"D", b"dry -57.0 dB"), (b"d", b"+0.0 dB\r"),
                           (b"w", b"wet -1.0 dB"), (b"II", b"input +2.0 dB"), (b"2", b"2/2 b.wav"), (b"9", b"there are 2")):
            os.write(controller, key)
            data = self.more(controller, data, words)
        keys = self.screen(data, 80, 24)
        self.assertIn("filter 9: there are 2", "\n".join(keys))
        os.write(controller, b"q")
        child.wait(timeout=60 * rig_live.SLOWER)
        self.assertEqual(child.returncode, 0)


if __name__ == "__main__":
    rig.main()

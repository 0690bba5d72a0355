#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`partita live` on a JACK server without hardware: samples, delay and gaps as another client
receives them, late callbacks, filter changes under load, servers that stop, die and restart. The
second argument is that client."""
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np

PROBE = os.path.abspath(sys.argv.pop(2))

import rig_live
from rig_live import Jack, convolve, dyadic, rig

import schemas # rig_live makes it known
from rig import parse_wav

F_SETPIPE_SZ = 1031 # the name is in fcntl from Python 3.10 on

SYSTEM = ["--device", "system"]


class Connected(Jack):
    def setUp(self):
        super().setUp()
        self.taps = dyadic(self.random, (33, 1))
        self.ir(self.taps)

    def probe(self, sent, frames, *more):
        """Returns the received samples, the server's period, and how often the server was late."""
        self.write("sent.raw", np.asarray(sent, "<f4").tobytes())
        done = subprocess.run([PROBE, "sent.raw", "received.raw", str(frames), *more], env=self.environment(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=90 * rig_live.SLOWER)
        self.assertEqual(done.returncode, 0, done.stderr)
        period, xruns = map(int, done.stdout.split())
        return np.fromfile("received.raw", "<f4"), period, xruns

    def compare(self, received, sent, taps, whole=True):
        """Checks that every sample equals the oracle's at one delay, which is returned."""
        expected = convolve(sent[:, None], [[taps]])[:, 0]
        begin = np.flatnonzero(received)[0] - np.flatnonzero(expected)[0]
        n = min(len(expected), len(received) - begin)
        wrong = np.flatnonzero(received[begin:begin + n] != expected[:n])
        if whole:
            self.assertEqual(len(wrong), 0, "first wrong sample: %s" % wrong[:1])
        return begin, wrong


class Sound(Connected):
    def test_bits_and_delay(self):
        """The delay is one period, that of the loop between the two clients; the program adds none.
        If the server itself was late, on a busy machine, the test is repeated."""
        sent = dyadic(self.random, 40000)
        self.start_server(period=1024)
        self.start("--ir", "ir.wav", *SYSTEM, "--engine", "direct", "--channels", 1)
        for _ in range(20):
            received, period, xruns = self.probe(sent, 44000)
            begin, wrong = self.compare(received, sent, self.taps[:, 0], whole=False)
            if not xruns:
                break
        self.assertEqual(xruns, 0, "the server was late in each of 20 runs")
        self.assertEqual(len(wrong), 0)
        self.assertEqual((period, begin), (1024, 1024))

    def test_freewheel(self):
        """Twenty seconds of audio as fast as possible, bit by bit: a freewheeling server waits for
        its clients."""
        sent = dyadic(self.random, 1 << 20)
        self.start_server(period=1024)
        child = self.start("--ir", "ir.wav", *SYSTEM, "--engine", "direct", "--channels", 1, "--json")
        received, period, _ = self.probe(sent, 1 << 20, "freewheel")
        begin, _ = self.compare(received, sent, self.taps[:, 0])
        self.assertEqual(begin, period)
        child.send_signal(signal.SIGINT)
        status = schemas.load(self.ends(child)[0].splitlines()[-1])
        self.assertEqual(status["state"], "ended")

    def test_long_filter_in_freewheel(self):
        taps = (self.random.standard_normal(20000) / 200).astype("f4")
        sent = (self.random.standard_normal(300000) / 16).astype("f4")
        self.ir(taps[:, None])
        self.start_server(period=64)
        self.start("--ir", "ir.wav", *SYSTEM, "--channels", 1)
        received, period, _ = self.probe(sent, 300000 + 64, "freewheel")
        self.close(received[period:period + 300000], convolve(sent[:, None], [[taps]])[:, 0])

    def test_block_sizes_that_differ_from_the_server_s(self):
        """PortAudio adapts the block size; the delay is larger but constant, the samples are the
        same."""
        sent = dyadic(self.random, 200000)
        self.start_server(period=256)
        for block in (100, 64, 1000):
            with self.subTest(block=block):
                child = self.start("--ir", "ir.wav", *SYSTEM, "--engine", "direct", "--channels", 1, "--block", block)
                received, period, _ = self.probe(sent, 210000, "freewheel")
                begin, _ = self.compare(received, sent, self.taps[:, 0])
                self.assertIn(begin, range(period, period + 2 * max(block, period) + 1))
                child.send_signal(signal.SIGINT)
                self.ends(child)

    def test_stereo_and_tables(self):
        self.start_server(period=256, channels=2)
        listed = self.audio_devices()
        system = [d for d in listed if d["name"] == "system"][0]
        self.assertEqual((system["in_channels"], system["out_channels"], system["rate"]), (2, 2, 48000))
        self.assertIn("JACK", system["api"])
        self.live("--ir", "ir.wav", "--duration", 0.2) # the default is the only device
        self.ir(self.taps, "44.wav", rate=44100)
        self.fails_live("--ir", "44.wav", *SYSTEM, "--rate", 44100, says=["system", "44100"])
        # The remedy for the wrong rate is not --resample-ir.
        self.fails_live("--ir", "ir.wav", *SYSTEM, "--rate", 96000,
                        says="system: does not run at 96000 Hz; without --rate it runs at 48000 Hz")

    def test_name_and_connections(self):
        """--name names the client; with --no-connect its ports stay alone."""
        self.start_server(period=256)
        first = self.start("--ir", "ir.wav", *SYSTEM, "--channels", 1, "--name", "hall")
        self.wait_for(lambda: b"system:playback_1" in self.tool("jack_lsp", "-c", "hall:out_0"))
        second = self.start("--ir", "ir.wav", *SYSTEM, "--channels", 1, "--name", "lonely", "--no-connect", "--json")
        self.line(second) # it plays
        self.assertEqual(sorted(self.tool("jack_lsp", "-c", "lonely:").split()), [b"lonely:in_0", b"lonely:out_0"])
        for child in (first, second):
            child.send_signal(signal.SIGINT)
            self.ends(child)
        self.fails_live("--ir", "ir.wav", *SYSTEM, "--name", "x" * 100, rc=2, says=["--name", "too long"])
        self.fails_live("--ir", "ir.wav", *SYSTEM, "--name", "a:b", rc=2, says=["a:b", "colon"])

    def test_measure(self):
        """The loop from a client to itself has one period of delay."""
        self.start_server(period=512)
        for _ in range(20):
            child = self.start("--measure", "m.wav", *SYSTEM, "--duration", 1, "--channels", 1)
            self.wait_for(self.runs)
            self.tool("jack_connect", "partita:out_0", "partita:in_0")
            out, err = child.communicate(timeout=120)
            if child.returncode != 3: # the server was late while the sweep played
                break
        self.assertEqual(child.returncode, 0, err)
        self.assertIn(b"channel 1: latency 512 frames, 10.667 ms; level ", out)
        response = parse_wav(self.read("m.wav"))[1][:, 0]
        self.assertEqual(np.abs(response).argmax(), 512)


class Load(Connected):
    def test_filter_changes_under_load_without_clicks(self):
        """A constant passes filters of gain 1 and 1/2, which are reloaded repeatedly: no step is
        larger than the fade's, up to the error of the transforms, and both levels are reached."""
        def write(gain):
            taps = np.zeros((20000, 1), "f4")
            taps[[0, 19999]] = gain / 2
            self.ir(taps, "new.wav")
            os.rename("new.wav", "ir.wav")

        write(1)
        self.start_server(period=64)
        child = self.start("--ir", "ir.wav", *SYSTEM, "--channels", 1, "--fade", 50, "--json")
        self.wait_for(self.runs)
        frames = 12000000 // rig_live.SLOWER**2 # some seconds in freewheel mode
        self.write("sent.raw", np.full(frames, 0.25, "<f4").tobytes())
        probe = subprocess.Popen([PROBE, "sent.raw", "received.raw", str(frames), "freewheel"], env=self.environment(),
                                 stdout=subprocess.PIPE)
        self.children.append(probe)
        gain = 1
        while probe.poll() is None:
            gain = 1.5 - gain
            write(gain)
            child.send_signal(signal.SIGHUP)
            # Not a multiple of the program's polling interval, or it would always find the same
            # file.
            time.sleep(self.random.uniform(0.01, 0.15))
        self.assertEqual(probe.returncode, 0)
        received = np.fromfile("received.raw", "<f4")[64 + 20000:].astype("f8")
        steps = np.abs(np.diff(received))
        self.assertLess(steps.max(), 0.125 / 2401 + 3e-7)
        self.assertGreater(received.max(), 0.249)
        self.assertLess(received.min(), 0.126)
        changes = np.count_nonzero(np.diff((received > 0.1875).astype(int)))
        self.assertGreater(changes, 2 if rig_live.SLOWER == 1 else 0) # a sanitized run receives a shorter part
        child.send_signal(signal.SIGINT)
        self.ends(child)

    def test_late_callbacks(self):
        """1 440 000 products per sample in calls of 64 take longer than real time. The program
        reports it and continues."""
        taps = np.zeros((1440000 // rig_live.SLOWER**2, 2), "f4")
        taps[0] = 1
        self.ir(taps)
        self.start_server(period=64)
        child = self.start("--ir", "ir.wav", *SYSTEM, "--engine", "direct", "--strict", "--duration", 2, "--json")
        status = schemas.load(self.ends(child, rc=3)[0].splitlines()[-1])
        self.assertGreater(status["load"]["late"], 10)
        self.assertGreater(status["load"]["mean"], 1)
        self.assertGreater(status["xruns"], 0)
        self.assertEqual(status["frames"], 96000)

    def test_stopped_and_continued_program(self):
        """The program is stopped for a while: xruns, but no false alarm, and afterwards the samples
        are exact again."""
        sent = dyadic(self.random, 50000)
        self.start_server(period=256)
        child = self.start("--ir", "ir.wav", *SYSTEM, "--engine", "direct", "--channels", 1, "--json")
        self.wait_for(self.runs)
        before = self.line(child)
        for _ in range(3):
            child.send_signal(signal.SIGSTOP)
            time.sleep(0.3)
            child.send_signal(signal.SIGCONT)
            time.sleep(0.3)
        received, _, _ = self.probe(sent, 60000, "freewheel")
        self.compare(received, sent, self.taps[:, 0])
        child.send_signal(signal.SIGINT)
        status = schemas.load(self.ends(child)[0].splitlines()[-1])
        self.assertGreater(status["xruns"], before["xruns"])
        self.assertEqual(sum(status["losses"].values()), status["xruns"])
        self.assertEqual(status["losses"]["several"], status["xruns"]) # JACK's losses are of both directions


class Played(Connected):
    def play(self, *more):
        """Starts the program on a server, which plays and records for a second."""
        self.start_server(period=256)
        child = self.start("--ir", "ir.wav", *SYSTEM, "--record", "rec.wav", *more)
        self.assertIn(b"system", child.stderr.readline())
        self.wait_for(lambda: self.recorded() > 48000 * 8 / rig_live.SLOWER)
        self.assertIsNone(child.poll())
        return child

    def recorded(self):
        """The present size of the recording; a frame has at most eight bytes."""
        return os.stat("rec.wav.partial").st_size if os.path.exists("rec.wav.partial") else 0

    def says(self, child, words):
        """Reads the messages until the words have appeared."""
        said = b""
        while words not in said:
            said = child.stderr.readline()
            self.assertTrue(said, "ended without a word")

    def ask(self, line):
        """A command by a connection of its own."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60 * rig_live.SLOWER)
            connection.connect("s.socket")
            connection.sendall(line.encode() + b"\n")
            return schemas.load(connection.makefile("rb").readline())

    def whole(self, name, seconds=0.5):
        frames = parse_wav(self.read(name))
        self.assertGreater(len(frames[1]), seconds * 48000 / rig_live.SLOWER)
        data = self.read(name)
        self.assertEqual(frames[3], len(data) - data.index(b"data") - 8, "the header does not tell the length")


class Lost(Played):
    def test_server_killed(self):
        """The loss is detected within 2 s, the recording is complete, the exit status is 4,
        although PortAudio never returns."""
        for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP):
            with self.subTest(how=how):
                child = self.play()
                self.server.send_signal(how)
                begin = time.monotonic()
                self.says(child, b"system: the audio device is lost")
                self.assertLess(time.monotonic() - begin, 2 * rig_live.SLOWER)
                self.ends(child, rc=4, within=5)
                self.whole("rec.wav")
                self.assertFalse(os.path.exists("rec.wav.partial"))
                self.stop_server()

    def test_retry(self):
        """The user's changes, the time played and the number of the recording are kept, twice."""
        duration = 5 + 2 * rig_live.SLOWER # two restarts, and what is typed, take less
        self.ir(self.taps[:5], "b.wav")
        self.start_server(period=256)
        child, controller, _ = self.open_terminal("--ir", "ir.wav", "--ir", "b.wav", *SYSTEM, "--record", "rec.wav",
                                                  "--gain", -6, "--retry", "--duration", duration, "--fade", 20, "--json",
                                                  stdout=subprocess.PIPE)
        self.line(child)
        os.write(controller, b"+nbmwDI")
        self.wait_for(lambda: self.line(child)["mute"])
        for _ in range(2):
            self.server.kill()
            self.server.wait()
            self.until(controller, b"system: the audio device is lost")
            while (status := self.line(child))["state"] == "running":
                pass
            self.assertEqual(status["state"], "lost")
            self.until(controller, b"waiting for it")
            self.start_server(period=128)
            status = self.line(child)
            self.assertEqual((status["state"], status["gain"], status["mute"], status["bypass"], status["filter"], status["taps"]),
                             ("running", -5, True, True, "b.wav", 5))
            self.assertEqual((status["wet"], status["dry"], status["input_gain"], status["fade"]), (-1, -57, 1, 20))
        child.wait(timeout=20 * rig_live.SLOWER)
        self.assertEqual(child.returncode, 0)
        frames = [len(parse_wav(self.read(name))[1]) for name in ("rec.wav", "rec-2.wav", "rec-3.wav")]
        self.assertGreater(min(frames), 0)
        self.assertLess(abs(sum(frames) - duration * 48000), 3)

    def test_control_while_it_waits_for_a_server(self):
        """The socket exists all the time, also while the program executes itself anew; what was set stays."""
        child = self.play("--retry", "--control", "s.socket")
        file = os.stat("s.socket").st_ino
        self.assertTrue(self.ask("fade 77")["ok"])
        follower = socket.socket(socket.AF_UNIX)
        self.addCleanup(follower.close)
        follower.settimeout(60 * rig_live.SLOWER)
        follower.connect("s.socket")
        follower.sendall(b"subscribe 300\n") # what is not read fits the buffers
        lines = follower.makefile("rb")
        self.assertTrue(schemas.load(lines.readline())["ok"])
        frames = schemas.load(lines.readline())["frames"]
        for take in (2, 3):
            self.server.kill()
            self.server.wait()
            self.says(child, b"lost")
            self.wait_for(lambda: self.ask("status")["state"] == "waiting")
            self.assertGreater(self.ask("status")["seconds"], 0)
            self.assertFalse(self.ask("gain 3")["ok"])
            if take == 3:
                break
            self.start_server(period=128)
            self.wait_for(lambda: self.ask("status")["state"] == "running")
            self.assertEqual(self.ask("status")["fade"], 77)
            self.assertEqual(os.stat("s.socket").st_ino, file)
            # Events on the same connection, up to one of the next process, which counts anew.
            while (now := schemas.load(lines.readline())["frames"]) >= frames:
                frames = now
        child.send_signal(signal.SIGINT)
        self.ends(child)
        self.assertFalse(os.path.exists("s.socket"))
        self.whole("rec.wav")
        self.assertTrue(os.path.exists("rec-2.wav"))

    def test_interrupted_without_a_server(self):
        """The first interrupt waits for a server that does not respond; the second does not wait."""
        child = self.play()
        self.server.send_signal(signal.SIGSTOP)
        child.send_signal(signal.SIGINT)
        time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        child.wait(timeout=2 * rig_live.SLOWER)
        self.assertEqual(child.returncode, -signal.SIGINT)
        self.assertIn(b"the unfinished recording is rec.wav.partial\n", child.stderr.read())
        self.assertTrue(os.path.exists("rec.wav.partial"))

    def test_interrupted_once_with_a_server(self):
        child = self.play()
        child.send_signal(signal.SIGINT)
        self.ends(child)
        self.whole("rec.wav")

    def test_period_changes(self):
        """When the server changes its period the program continues, or reports the loss of the
        device."""
        child = self.play()
        self.tool("jack_bufsize", "512")
        time.sleep(1)
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
        self.assertIn(child.returncode, (0, 4))
        self.whole("rec.wav")

    def test_killed(self):
        """The recording can be read, and what its header says is there; live-ends has other formats."""
        child = self.play()
        self.wait_for(lambda: self.recorded() > 2 * 48000 * 8) # the header tells all but the last second
        child.kill()
        child.wait()
        os.rename("rec.wav.partial", "left.wav")
        done = self.run_program("convolve", "ir.wav", "left.wav", "out.wav", "-q")
        self.assertEqual(done.returncode, 0)
        self.assertGreater(len(parse_wav(self.read("out.wav"))[1]), 0.5 * 48000 / rig_live.SLOWER)


class Stalled(Played):
    def test_stopped_server(self):
        """The program does not hang. With --retry it tries until the server responds, which must
        see that the old client is gone before the new one connects. SIGHUP is ignored meanwhile,
        since no filter is loaded."""
        child = self.play("--retry", "--control", "s.socket")
        self.server.send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        others = [self.start("--ir", "ir.wav", *SYSTEM, "--record", "other.wav"),
                  self.start("--measure", "m.wav", *SYSTEM),
                  subprocess.Popen([rig.PROGRAM, "devices"], env=self.environment(), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)]
        self.children.append(others[2])
        for other, rc in zip(others, (4, 4, 1)):
            message = self.ends(other, rc, within=10)[1]
            self.assertIn("the audio server does not answer", message)
            self.assertIn("delete /dev/shm/jack_db-%d" % os.getuid(), message)
        self.assertLess(time.monotonic() - begin, 10 * rig_live.SLOWER)
        self.assertEqual([n for n in os.listdir(".") if "other" in n], [])
        self.says(child, b"lost")
        self.says(child, b"; waiting for it")
        child.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        self.assertIsNone(child.poll())
        # While PortAudio hangs and the program executes itself anew, again and again.
        for _ in range(20):
            self.assertEqual(self.ask("status")["state"], "waiting")
            time.sleep(0.3)
        self.server.send_signal(signal.SIGCONT)
        self.wait_for(self.runs)
        self.wait_for(lambda: b"partita-01" not in self.tool("jack_lsp"), within=10)
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        self.ends(child, within=10)
        self.whole("rec.wav")
        self.assertGreater(len(parse_wav(self.read("rec-2.wav"))[1]), 0)

    def test_server_resumes_while_it_is_closed(self):
        """Callbacks resume after the recording is completed and before the stream is closed: they
        output silence. A call log that nobody reads makes that time long."""
        os.mkfifo("calls")
        calls = os.open("calls", os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, calls)
        fcntl.fcntl(calls, F_SETPIPE_SZ, 4096)
        child = self.play("--calls", "calls")
        self.server.send_signal(signal.SIGSTOP)
        self.says(child, b"lost")
        self.wait_for(lambda: os.path.exists("rec.wav"))
        self.server.send_signal(signal.SIGCONT)
        time.sleep(0.5)
        os.set_blocking(calls, True)
        while os.read(calls, 65536):
            pass
        self.ends(child, rc=4, within=5)
        self.whole("rec.wav")


if __name__ == "__main__":
    rig.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`partita live --scene FILE`: filters with levels under names, from a file that is read again when it changes. With
PortAudio's ALSA code and devices made of files; what sounds is compared with the filter and the gains of the file."""
import os
import signal
import socket
import sys
import time

import numpy as np

import rig_live
from rig_live import Jack, convolve, diagonal, dyadic, rig
import test_control
from test_control import Steered, osc_message, osc_parse

SCENES = """\
scenes:
  morning: {filter: ir.wav, gain: -3, wet: 0}
  evening:
    filter: b.wav
    gain: 1.5
    dry: -20
    wet: off
    input-gain: 2
    fade: 10
"""
LOOKS = 0.3  # seconds, more than between two looks at the file


class Scenes(Steered):
    def setUp(self):
        super().setUp()
        self.write("s.yaml", SCENES.encode())

    def begin(self, *arguments):
        child = super().begin("--scene", "s.yaml", *arguments, irs=())
        self.connection = self.connect()
        return child

    def edit(self, text):
        """Replaces the file, and waits until the program has seen it."""
        self.write("s.yaml", text.encode())

    def says(self, child, words):
        """Reads messages until one has these words."""
        while words not in (line := child.stderr.readline().decode()):
            self.assertTrue(line, words)
        return line

    def test_commands(self):
        child = self.begin("--dry", -7)
        morning = {"scene": "morning", "filter": "ir.wav", "gain": -3, "wet": 0, "dry": -7, "input_gain": 0, "fade": 50}
        evening = {"scene": "evening", "filter": "b.wav", "gain": 1.5, "wet": None, "dry": -20, "input_gain": 2, "fade": 10}
        self.ok("status", scenes=["morning", "evening"], filters=["ir.wav", "b.wav"], **morning)
        self.ok("scene evening", **evening)
        self.ok("next", **morning)
        self.ok("previous", **evening)
        self.ok("filter 1", **morning)
        self.refused("filter 3", "filter 3: there are 2")
        self.ok("mute on")
        self.ok("gain 6", gain=6, scene="morning")
        self.ok("scene morning", mute=True, **morning)
        self.refused("scene evenin", "evenin: s.yaml has no such scene (did you mean evening?)")
        self.ok("load b.wav", filter="b.wav", scene="morning")
        self.ok("scene morning", **morning) # whose file is read again
        self.quits(child)
        child = Steered.begin(self)
        self.connection = self.connect()
        self.refused("scene morning", "morning: a run without --scene has no such scene")
        self.quits(child)

    def test_start(self):
        self.edit("start: b\nscenes: {a: {filter: ir.wav}, b: {filter: b.wav, gain: -2}, c: {filter: ir.wav, gain: 3}}")
        child = self.begin("--gain", -1)
        self.ok("status", scene="b", gain=-2, filter="b.wav", filters=["b.wav", "ir.wav"])
        self.ok("scene a", gain=-1, filter="ir.wav")
        self.ok("scene c", gain=3, filter="ir.wav")
        self.quits(child)

    def test_sound(self):
        """The scene that starts, to the sample, with its gains in front of and behind the filter."""
        os.mkdir("sub")
        x, taps = dyadic(self.random, (5000, 2)), dyadic(self.random, (33, 2))
        self.alsa(x)
        self.ir(taps, "sub/f.wav")
        self.ir([[0.5, 0.5]], "sub/half.wav")
        self.write("sub/s.yaml", b"scenes: {a: {filter: [f.wav, half.wav], gain: -6, input-gain: 3, dry: -12}}")
        self.live("--scene", "sub/s.yaml", "--input", "fl_in", "--output", "fl_out", "--limiter", "off", "--duration",
                  3000 / 48000)
        played = self.played(2, 2000)[2]
        factor = lambda decibels: 10**(decibels / 20)
        expected = factor(-3) * (0.5 * convolve(x, diagonal(taps)) + factor(-12) * x)[:2000]
        # Each sample is a sum of products of floats, with a rounding of each and of three gains.
        tolerance = (33 + 6) * 2.0**-24 * np.abs(taps).sum(axis=0).max() * np.abs(x).max() * 2
        np.testing.assert_allclose(played, expected, rtol=0, atol=tolerance)

    def test_change(self):
        child = self.begin("--max-taps", 100)
        self.ir(np.ones((7, 2)), "new.wav")
        self.edit(SCENES.replace("gain: -3", "gain: -4").replace("b.wav", "new.wav"))
        self.says(child, "s.yaml: read again\n")
        self.ok("status", scene="morning", gain=-4, filters=["ir.wav", "b.wav"])
        self.ok("scene evening", filter="new.wav", gain=1.5)
        self.ok("status", filters=["ir.wav", "b.wav", "new.wav"], taps=7)
        self.ok("scene morning", filter="ir.wav", gain=-4)
        self.edit(SCENES.replace("ir.wav", "new.wav"))
        self.says(child, "s.yaml: read again\n")
        self.ok("status", scene="morning", gain=-3, filter="new.wav")
        self.edit("scenes: {night: {filter: ir.wav, gain: -9}}")
        self.says(child, "the scene that plays is not in it any more, and goes on")
        self.ok("status", scene=None, scenes=["night"], gain=-3, filter="new.wav")
        self.ok("next", scene=None)
        self.ok("scene night", scene="night", gain=-9, filter="ir.wav")
        self.quits(child)

    def test_bad_change(self):
        """One line, and the old state plays on."""
        child = self.begin()
        for text, says in MISTAKES:
            self.edit(text)
            line = self.says(child, "; the old scenes stay\n")
            self.assertEqual(line, "partita live: s.yaml%s; the old scenes stay\n" % says)
        os.unlink("s.yaml")
        time.sleep(LOOKS)
        self.ok("status", scene="morning", gain=-3, filter="ir.wav", scenes=["morning", "evening"])
        # Its filter is found to be too long only when it is read.
        self.ir(np.ones((99, 2)), "long.wav")
        self.edit(SCENES.replace("b.wav", "long.wav"))
        self.says(child, "read again")
        self.refused("scene evening", "s.yaml:4: long.wav: 99 taps, more than the 4", "--max-taps", "the old filter stays")
        self.ok("status", scene="morning", gain=-3, filter="ir.wav")
        self.quits(child)

    def test_mistakes(self):
        for text, says in MISTAKES:
            self.edit(text)
            said = self.fails_live("--scene", "s.yaml", says="s.yaml" + says + "\n")
            self.assertEqual(said.count("\n"), 1)
        self.write("junk.wav", b"no audio")
        self.ir(np.ones((9, 3)), "wide.wav")
        self.ir(np.ones((9, 2)), "good.wav")
        for text, says in (("filter: junk.wav", "s.yaml:4: junk.wav: "), ("filter: wide.wav", "s.yaml:4: wide.wav: 3 channels"),
                           ("filter: [good.wav, wide.wav]", "s.yaml:4: good.wav+wide.wav: ")):
            self.edit("scenes:\n  a: {filter: ir.wav}\n  b:\n    %s" % text)
            self.fails_live("--scene", "s.yaml", says=says)
        self.edit(SCENES)
        os.mkfifo("pipe")
        self.fails_live("--scene", "pipe", says=["pipe: ", "is not a regular file"])
        self.fails_live("--scene", "none.yaml", says="none.yaml: cannot open: No such file")
        self.fails_live("--scene", "s.yaml", "--ir", "ir.wav", rc=2, says="--scene names the filters; leave out --ir")
        self.fails_live("--scene", "s.yaml", "--measure", "m.wav", rc=2, says="--scene")

    def test_audio_thread(self):
        """Nothing allocates, locks or calls the system on it while scenes change and their file is read again."""
        if not WATCH:
            self.skipTest("needs gcc and the C library of GNU, without a sanitizer")
        self.alsa(dyadic(self.random, (100000, 2)))
        child = self.start("--scene", "s.yaml", *rig_live.FILES[:2], "--output", "fl_null", "--control", test_control.PATH,
                           env={"LD_PRELOAD": WATCH, "WATCHED_AUDIO": "watched"})
        self.wait_for(lambda: os.path.exists("watched") or self.assertIsNone(child.poll()))
        self.connection = self.connect()
        for line in ("scene evening", "next", "gain -3", "mute toggle", "status", "load ./b.wav", "scene evening", "scene morning"):
            self.ok(line)
        self.edit(SCENES.replace("b.wav", "./b.wav"))
        self.says(child, "read again")
        self.ok("scene evening", filter="./b.wav")
        self.quits(child)

    def test_keys(self):
        child, controller, _ = self.open_terminal("--scene", "s.yaml", "--input", "fl_in", "--output", "fl_null")
        self.until(controller, b"1/2 morning: ir.wav, -3.0 dB")
        for key, words in ((b"n", b"2/2 evening: b.wav, +1.5 dB, wet off, dry -20.0 dB"), (b"1", b"1/2 morning: ir.wav, -3.0 dB"),
                           (b"3", b"filter 3: there are 2")):
            os.write(controller, key)
            self.until(controller, words)
        os.write(controller, b"q")
        self.ends(child)

    def test_osc(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(udp.close)
        udp.connect(("127.0.0.1", port))
        udp.settimeout(60 * rig_live.SLOWER)
        child = self.begin("--osc", port)
        udp.send(osc_message("/partita/scene", "s", "evening"))
        self.wait_for(lambda: self.ok("status")["scene"] == "evening")
        udp.send(osc_message("/partita/status"))
        seen = {}
        while "/partita/xruns" not in seen:
            path, arguments = osc_parse(udp.recv(65536))
            seen[path] = arguments
        self.assertEqual((seen["/partita/scene"], seen["/partita/gain"]), (["evening"], [1.5]))
        udp.send(osc_message("/partita/scene", "s", "none"))
        self.assertIn("none: s.yaml has no such scene", osc_parse(udp.recv(65536))[1][0])
        self.quits(child)


class Lost(Jack, Steered):
    def test_retry(self):
        """The scene and what the user has changed in it go on when the device is there again."""
        self.write("s.yaml", SCENES.encode())
        self.start_server()
        child = self.start("--scene", "s.yaml", "--device", "system", "--control", test_control.PATH, "--retry")
        self.wait_for(lambda: os.path.exists(test_control.PATH))
        self.connection = self.connect()
        self.ok("scene evening")
        self.ok("gain 5")
        self.server.kill()
        self.server.wait()
        self.wait_for(lambda: self.ok("status")["state"] == "waiting")
        self.start_server()
        self.wait_for(lambda: self.ok("status")["state"] == "running")
        self.ok("status", scene="evening", filter="b.wav", filters=["ir.wav", "b.wav"], gain=5, input_gain=2)
        child.send_signal(signal.SIGINT)
        self.ends(child)


KEYS = "filter|gain|wet|dry|input-gain|fade|azimuth|elevation"
MISTAKES = (
    ("", ": is empty"),
    ("a: [", ":2: is no YAML: did not find expected node content"),
    ("\0", ": holds a zero byte; it is no text"),
    ("filters: {}", ":1: 'filters' is not one of the keys scenes|start"),
    ("scenes: []", ":1: scenes: needs 1 to 64 names with scenes"),
    ("start: a", ":1: scenes: needs 1 to 64 names with scenes"),
    ("scenes: {%s}" % ", ".join("s%d: {filter: ir.wav}" % i for i in range(65)), ":1: scenes: needs 1 to 64 names with scenes"),
    ("scenes:\n  a: ir.wav", ":2: needs keys and values: " + KEYS),
    ("scenes:\n  a: {gain: 3}", ":2: needs a filter: a file"),
    ("scenes:\n  a: {filter: {ir.wav: 3}}", ":2: needs a filter: a file"),
    ("scenes:\n  a: {filter: [ir.wav, [b.wav]]}", ":2: needs a filter: a file"),
    ("scenes:\n  a: {filter: [ir.wav, no.wav]}", ":2: no.wav: cannot open: No such file or directory"),
    ("scenes:\n  a: {filter: %s.wav}" % ("x" * 5000), ":2: the name of the filter is too long"),
    ("scenes:\n  a: {filter: ir.wav}\n  b:\n    filter: no.wav", ":4: no.wav: cannot open: No such file or directory"),
    ("scenes:\n  a:\n    filter: .", ":3: .: is not a regular file, as it must be here"),
    ("scenes:\n  a:\n    filtre: ir.wav", ":3: 'filtre' is not one of the keys " + KEYS),
    ("scenes:\n  a:\n    filter: ir.wav\n    gain: loud", ":4: gain loud: needs a number"),
    ("scenes:\n  a:\n    filter: ir.wav\n    gain: [1]", ":4: gain: needs a number"),
    ("scenes:\n  a:\n    filter: ir.wav\n    gain: up 3", ":4: gain up 3: needs a number"),
    ("scenes:\n  a:\n    filter: ir.wav\n    dry: loud", ":4: dry loud: needs a number or off"),
    ("scenes:\n  a:\n    filter: ir.wav\n    fade: 1e9", ":4: fade 1e9: is not between 0 and 60000"),
    ("scenes:\n  a: {filter: ir.wav}\n  a: {filter: ir.wav}", ":2: a: is there twice"),
    ("scenes:\n  %s: {filter: ir.wav}" % ("n" * 64), ":2: the name of a scene has 1 to 63 characters"),
    ("scenes:\n  [a]: {filter: ir.wav}", ":2: the name of a scene has 1 to 63 characters"),
    ("start: abd\nscenes: {abc: {filter: ir.wav}}", ":1: start: abd: s.yaml has no such scene (did you mean abc?)"),
)

WATCH = os.path.abspath(sys.argv.pop(2)) if len(sys.argv) > 2 else None

if __name__ == "__main__":
    rig.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`partita live --config`: the samples that a configuration gives, how it is read again, the names and connections of
its JACK ports, and the same configuration in jconvolver. The second argument is the JACK client of test_jack.py."""
import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np

PROBE = os.path.abspath(sys.argv.pop(2))

import rig_live
from rig_live import FILES, Jack, Live, convolve, dyadic, rig

from rig import parse_wav


def write_text(case, name, *lines):
    case.write(name, ("\n".join(lines) + "\n").encode())
    return name


class Played(Live):
    """From a file to a file."""

    def setUp(self):
        super().setUp()
        self.x, self.taps = dyadic(self.random, (3000, 2)), dyadic(self.random, (9, 2))
        self.ir(self.taps)
        self.h = self.taps.T.astype("f8")
        write_text(self, "a.conf", "/convolver/new 2 3 64 200", "/impulse/read 1 3 0.5 0 0 0 2 ir.wav",
                   "/impulse/read 2 1 1 4 0 0 1 ir.wav", "/impulse/dirac 2 1 -1 30")

    def expected(self):
        second = np.zeros(31)
        second[4:13] = self.h[0]
        second[30] -= 1
        return convolve(self.x, [[None, second], [None, None], [0.5 * self.h[1], None]])

    def plays(self, *arguments, outputs=3):
        self.alsa(self.x, outputs=outputs)
        self.live(*FILES, "--duration", 2500 / 48000, "--record", "rec.wav", "-q", "--engine", "direct", *arguments)
        return parse_wav(self.read("rec.wav"))[1]

    def test_a_sparse_matrix(self):
        """With short taps and few bits all products and sums are exact."""
        expected = self.expected()[:2500]
        for arguments in (["--config", "a.conf"], ["--ir", "a.conf"]):
            np.testing.assert_array_equal(self.plays(*arguments), expected)
        partitioned = self.plays("--config", "a.conf", "--block", 64)
        np.testing.assert_array_equal(partitioned, expected)

    def test_feedback(self):
        """A biquad of CamillaDSP, as its recursion but for roundoff and for the end of its response."""
        write_text(self, "a.yml", "devices: {samplerate: 48000, capture: {channels: 2}}", "filters:",
                   "  f: {type: Biquad, parameters: {type: Free, b0: 0.125, b1: 0.0625, b2: 0, a1: -1.5, a2: 0.75}}",
                   "pipeline: [{type: Filter, channels: [1], names: [f]}]")
        if b"without libyaml" in self.run_program("convolve", "--config", "a.yml", "ir.wav", "out.wav", rc=None).stderr:
            self.skipTest("built without libyaml")
        y = self.plays("--config", "a.yml", outputs=2)
        expected = self.x[:2500].astype("f8")
        for t, x in enumerate(self.x[:2500, 1]):
            before = [expected[t - k, 1] if t >= k else 0 for k in (1, 2)]
            expected[t, 1] = 0.125 * x + 0.0625 * (self.x[t - 1, 1] if t else 0) + 1.5 * before[0] - 0.75 * before[1]
        self.close(y.astype("f4"), expected)
        write_text(self, "b.yml", "devices: {samplerate: 48000, capture: {channels: 2}}", "filters:",
                   "  f: {type: Biquad, parameters: {type: Free, b0: 1, b1: 0, b2: 0, a1: -2, a2: 1}}",
                   "pipeline: [{type: Filter, channels: [1], names: [f]}]")
        self.fails_live("--config", "b.yml", *FILES, says="b.yml:3: is unstable")

    def test_an_own_signal_is_added_once(self):
        write_text(self, "b.conf", "/convolver/new 2 2 64 200", "/impulse/read 2 2 1 0 0 0 1 ir.wav")
        expected = convolve(self.x, [[None, None], [None, self.h[0]]]) + self.x
        np.testing.assert_array_equal(self.plays("--config", "b.conf", "--dry", 0, "--limiter", "off", outputs=2),
                                      expected[:2500])

    def test_chains(self):
        """As exact as its only filter would be, since the second one has so few bits."""
        self.ir(np.array([[0], [0], [1], [-0.5]]), "late.wav")
        late = [np.convolve(h, [0, 0, 1, -0.5]) for h in self.h]
        expected = convolve(self.x, [[late[0], None], [None, late[1]]])[:2500]
        np.testing.assert_array_equal(self.plays("--ir", "ir.wav+late.wav", outputs=2), expected)
        np.testing.assert_array_equal(self.plays("--ir", "late.wav+ir.wav", outputs=2), expected)
        said = self.live(*FILES, "--duration", 0.01, "--ir", "ir.wav+late.wav", "-v").stderr.decode()
        peak = np.abs(late).max(0).argmax()
        self.assertIn("ir.wav+late.wav: 12 taps, with their peak at frame %d\n" % peak, said)
        self.fails_live("--ir", "ir.wav+late.wav", *FILES, "--record", "late.wav", says="late.wav: is the input")
        self.fails_live("--ir", "ir.wav+absent.wav", *FILES, says="absent.wav: cannot open")
        self.fails_live("--ir", "ir.wav+a.conf", *FILES, says="a.conf: a configuration cannot be part of a chain")

    def test_layouts(self):
        pairs = dyadic(self.random, (9, 14))
        self.ir(pairs, "surround.wav")
        pairs = pairs.T.astype("f8")
        expected = convolve(self.x, [[pairs[0], pairs[8]], [pairs[1], pairs[7]]])[:2500]
        np.testing.assert_array_equal(self.plays("--ir", "hesuvi:surround.wav", "--layout", "2.0", outputs=2), expected)
        self.fails_live("--ir", "hesuvi:surround.wav", "--channels", 2, *FILES, says="the audio device: 2 channels; surround.wav takes 8")
        self.fails_live("--ir", "ir.wav", "--layout", "2.0", *FILES, rc=2, says="ir.wav: --layout and --lfe need a SOFA file")
        self.write("x.wav", rig.wav_bytes(self.x, bits=32, rate=44100))
        if os.path.exists(rig.SOFA):
            done = self.run_program("convolve", "--layout", "2.0", rig.SOFA, "x.wav", "y.wav", rc=None)
            if b"without libmysofa" not in done.stderr:
                self.alsa(self.x, rate=44100)
                self.live(*FILES, "--duration", 2500 / 44100, "--record", "rec.wav", "-q", "--ir", rig.SOFA, "--layout", "2.0",
                          "--limiter", "off")
                self.close(parse_wav(self.read("rec.wav"))[1].astype("f4"), parse_wav(self.read("y.wav"))[1][:2500], 2 * rig.gate("f4"))

    def test_channels_of_a_file(self):
        self.ir(np.hstack([0 * self.taps, self.taps[:, ::-1]]), "four.wav")
        expected = convolve(self.x, [[self.h[0], None], [None, self.h[1]]])[:2500]
        np.testing.assert_array_equal(self.plays("--ir", "four.wav", "--ir-channel", "4,3", outputs=2), expected)
        self.fails_live("--ir", "four.wav", "--ir-channel", "4,5", *FILES, rc=2, says="must be numbers from 1 to 4")
        for ir in ("a.conf", "ir.wav+four.wav"):
            self.fails_live("--ir", ir, "--ir-channel", 1, *FILES, rc=2, says="--ir-channel is for the channels of one file")

    def test_refusals(self):
        self.alsa(self.x, outputs=3)
        write_text(self, "bad.conf", "/convolver/new 2 2 64 200", "/impulse/dirac 1 9 1 0")
        self.fails_live("--config", "bad.conf", *FILES, says="bad.conf:2: output: '9'")
        for option in ("--record", "--calls"):
            before = self.read("ir.wav")
            self.fails_live("--config", "a.conf", *FILES, option, "ir.wav", says="ir.wav")
            self.assertEqual(self.read("ir.wav"), before)
        self.fails_live("--config", "a.conf", "--matrix", *FILES, rc=2, says="a.conf: a configuration names")
        self.fails_live("--ir", "matrix:a.conf", *FILES, rc=2, says="leave out matrix:")
        meta = {"global": {"core:datatype": "rf32_le", "core:version": "1.0.0"}, "captures": [{"core:sample_start": 0}],
                "annotations": []}
        self.write("r.sigmf-meta", json.dumps(meta).encode())
        self.write("r.sigmf-data", self.taps[:, 0].tobytes())
        write_text(self, "r.conf", "/convolver/new 2 3 64 200", "/impulse/read 1 1 1 0 0 0 1 r.sigmf-meta")
        for named in ("r.conf", "r.sigmf-meta"):
            self.fails_live("--ir", named, *FILES, "--record", "r.sigmf-data", says="r.sigmf-data: is the input")
            self.assertEqual(self.read("r.sigmf-data"), self.taps[:, 0].tobytes())
        self.fails_live("--config", "absent.yml", *FILES, says="absent.yml: cannot open")
        self.fails_live("--config", "a.conf", "--channels", 1, *FILES,
                        says="a.conf: is for 2 input channels; the audio device has 1")
        self.fails_live("--config", "a.conf", "--out-channels", 2, *FILES, says="a.conf: gives 3 output channels")

    def test_a_configuration_is_read_again(self):
        """With an error in it the old filter stays."""
        self.alsa(outputs=2)
        self.ir(np.ones((7, 1)))
        head = "/convolver/new 2 2 64 200"
        write_text(self, "b.conf", head, "/impulse/read 1 1 1 0 0 3 1 ir.wav")
        child = self.start("--config", "b.conf", *FILES, "--json", "--max-taps", 100)
        self.assertEqual(self.line(child)["taps"], 3)
        write_text(self, "b.conf", head, "/impulse/dirac 1 1 1")
        child.send_signal(signal.SIGHUP)
        self.assertEqual(child.stderr.readline(), b"partita live: b.conf:2: /impulse/dirac needs INPUT OUTPUT "
                         b"GAIN DELAY; the old filter stays\n")
        write_text(self, "b.conf", head, "/impulse/read 2 1 1 0 0 5 1 ir.wav")
        child.send_signal(signal.SIGHUP)
        self.wait_for(lambda: self.line(child)["taps"] == 5)
        child.send_signal(signal.SIGINT)
        self.ends(child)


class Client(Jack):
    def setUp(self):
        super().setUp()
        self.taps = (self.random.standard_normal((3000, 2)) / 100).astype("f4")
        self.ir(self.taps)
        write_text(self, "hall.conf", "/convolver/new 2 2 256 4096", "/input/name 1 In.L system:capture_2",
                   "/input/name 2 In.R", "/output/name 1 Out.L system:playback_2", "/output/name 2 Out.R",
                   "/impulse/read 1 1 0.5 100 0 0 1 ir.wav", "/impulse/read 2 2 1 0 10 2000 2 ir.wav",
                   "/impulse/dirac 1 2 -0.25 7", "/impulse/hilbert 2 1 0.5 600 1024")

    def connections(self, port):
        return sorted(self.tool("jack_lsp", "-c", port).decode().split())


class Ports(Client):
    def test_names_and_connections(self):
        self.start_server(period=256)
        child = self.start("--config", "hall.conf", "--device", "system", "--json")
        self.line(child)
        self.assertEqual(self.connections("partita:In.L"), ["partita:In.L", "system:capture_2"])
        self.assertEqual(self.connections("partita:In.R"), ["partita:In.R", "system:capture_2"])
        self.assertEqual(self.connections("partita:Out.L"), ["partita:Out.L", "system:playback_2"])
        self.assertEqual(self.connections("partita:Out.R"), ["partita:Out.R", "system:playback_2"])
        child.send_signal(signal.SIGINT)
        self.ends(child)

    def test_names_that_other_ports_have(self):
        self.start_server(period=256)
        for lines in (["/input/name 1 in_1"], ["/output/name 1 in_0"], ["/input/name 1 a", "/output/name 1 a"]):
            with self.subTest(lines):
                write_text(self, "a.conf", "/convolver/new 2 1 256 4096", *lines, "/impulse/dirac 1 1 1 0")
                self.fails_live("--config", "a.conf", "--device", "system", "--duration", 0.1,
                                says="a.conf: two ports of JACK would have the name " + lines[0].split()[-1])

    def test_a_port_that_is_absent(self):
        write_text(self, "a.conf", "/convolver/new 1 1 256 4096", "/input/name 1 in nobody:out", "/impulse/dirac 1 1 1 0")
        self.start_server(period=256)
        done = self.live("--config", "a.conf", "--device", "system", "--duration", 0.1)
        self.assertIn(b"a.conf: no connection could be made to nobody:out", done.stderr)


class Peer(Client):
    """jconvolver on the same server, which waits for both."""

    def setUp(self):
        if not shutil.which("jconvolver"):
            self.skipTest("jconvolver is not installed")
        super().setUp()
        with open("hall.conf") as config:
            lines = config.read().replace(" system:capture_2", "").replace(" system:playback_2", "")
        self.write("hall.conf", lines.encode())

    def received(self, client, source, destination, frames):
        """Samples and delay of one path through a client."""
        done = subprocess.run([PROBE, "sent.raw", "received.raw", str(frames), "freewheel", client + ":" + source,
                               client + ":" + destination], env=self.environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=90 * rig_live.SLOWER)
        self.assertEqual(done.returncode, 0, done.stderr)
        return np.fromfile("received.raw", "<f4")

    def test_null(self):
        sent = (self.random.standard_normal(48000) / 16).astype("f4")
        self.write("sent.raw", sent.tobytes())
        self.start_server(period=256)
        peer = subprocess.Popen(["jconvolver", "-N", "peer", "hall.conf"], env=self.environment(),
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(peer.wait)
        self.addCleanup(peer.kill)
        self.start("--config", "hall.conf", "--device", "system", "--no-connect", "--limiter", "off")
        for source in ("In.L", "In.R"):
            for destination in ("Out.L", "Out.R"):
                with self.subTest(source + " to " + destination):
                    theirs = self.received("peer", source, destination, 52000)
                    ours = self.received("partita", source, destination, 52000)
                    self.assertGreater(np.abs(theirs).max(), 0.01)
                    # Both compute in float, with errors below the gate each.
                    self.close(ours, theirs.astype("f8"), 2 * rig.gate("f4"))


if __name__ == "__main__":
    rig.main()

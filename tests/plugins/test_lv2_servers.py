#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The plug-ins in jalv, on a JACK server without hardware. The second argument is a JACK client that
sends and receives sound."""
import os
import shutil
import subprocess
import sys
import time

import numpy as np

PROBE = os.path.abspath(sys.argv.pop(2))

from rig_lv2 import PREFIX, WithStates

import rig
from rig_live import Jack, convolve

# As docs/plugin.md describes it.
PRESET = """@prefix atom: <http://lv2plug.in/ns/ext/atom#> .
@prefix lv2: <http://lv2plug.in/ns/lv2core#> .
@prefix pset: <http://lv2plug.in/ns/ext/presets#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix state: <http://lv2plug.in/ns/ext/state#> .
<urn:example:new> a pset:Preset ; lv2:appliesTo <{uri}> ; rdfs:label "New" ; rdfs:seeAlso <> ;
    state:state [ <urn:partita:lv2:impulse-response> "{path}"^^atom:Path ] .
"""


class Jalv(WithStates, Jack):
    def setUp(self):
        if not shutil.which("jalv"):
            self.skipTest("jalv is not installed")
        super().setUp()

    def host(self, variant, *options, **environment):
        """Starts jalv, whose client is named `host`."""
        child = subprocess.Popen(["jalv", "-n", "host", *options, PREFIX + variant],
                                 env={**self.environment(), **environment}, stdin=subprocess.PIPE,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.children.append(child)
        self.wait_for(lambda: b"host:output_1" in self.tool("jack_lsp"))
        return child

    def probe(self, sent, frames, ports):
        self.write("sent.raw", np.asarray(sent, "<f4").tobytes())
        done = subprocess.run([PROBE, "sent.raw", "received.raw", str(frames), "freewheel", *ports],
                              env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=90)
        self.assertEqual(done.returncode, 0, done.stderr)
        period, _ = map(int, done.stdout.split())
        return np.fromfile("received.raw", "<f4"), period

    def test_null(self):
        """Twenty seconds, as fast as possible, through a response of 20000 taps. The delay is one
        period, that of the loop between the two clients."""
        taps = self.response("ir.wav", 1, 20000)[:, 0]
        sent = (self.random.standard_normal(900000) / 16).astype("f4")
        self.start_server(period=256)
        self.host("mono", "-l", self.state("mono", "ir.wav"))
        received, period = self.probe(sent, 960000, ["host:input_1", "host:output_1"])
        expected = convolve(sent[:, None], [[taps]])[:, 0]
        self.close(received[period:period + len(expected)], expected)

    def test_true_stereo_path(self):
        """Left input to right output: the second response of LL LR RL RR."""
        taps = self.response("ir.wav", 4, 3000)
        sent = (self.random.standard_normal(90000) / 16).astype("f4")
        self.start_server(period=64)
        self.host("true-stereo", "-l", self.state("true-stereo", "ir.wav"))
        received, period = self.probe(sent, 96000, ["host:input_1", "host:output_2"])
        expected = convolve(sent[:, None], [[taps[:, 1]]])[:, 0]
        self.close(received[period:period + len(expected)], expected)

    def test_preset(self):
        """A preset that is chosen while the plug-in plays; the old response contributes nothing after
        the fade."""
        self.response("old.wav", 1, 3000)
        taps = self.response("new.wav", 1, 4000)[:, 0]
        os.makedirs("presets/new.preset.lv2")
        self.write("presets/new.preset.lv2/manifest.ttl",
                   PRESET.format(uri=PREFIX + "mono", path=os.path.abspath("new.wav")).encode())
        sent = (self.random.standard_normal(90000) / 16).astype("f4")
        self.start_server(period=256)
        child = self.host("mono", "-l", self.state("mono", "old.wav"),
                          LV2_PATH="%s:%s/presets:/usr/lib/lv2" % (os.environ["LV2_PATH"], self.folder))
        child.stdin.write(b"preset urn:example:new\n")
        child.stdin.flush()
        time.sleep(2)
        received, period = self.probe(sent, 96000, ["host:input_1", "host:output_1"])
        expected = convolve(sent[:, None], [[taps]])[:, 0]
        self.close(received[period:period + len(expected)], expected)


if __name__ == "__main__":
    rig.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The plug-ins in jalv, on a JACK server without hardware, and in PipeWire's filter chain. The second
argument is a JACK client that sends and receives sound."""
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np

PROBE = os.path.abspath(sys.argv.pop(2))

from rig_lv2 import PREFIX, WithStates

import rig
from rig_live import Jack, convolve

from rig import wav_bytes

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


SERVER = """context.properties = {{ core.daemon = true core.name = pipewire-0 mem.allow-mlock = false }}
context.spa-libs = {{ audio.convert.* = audioconvert/libspa-audioconvert support.* = support/libspa-support }}
context.modules = [ {modules} ]
context.objects = [
  {{ factory = adapter args = {{ factory.name = support.null-audio-sink node.name = clock media.class = Audio/Sink object.linger = true
     audio.position = [ FL FR ] {ports} }} }} ]
"""
CHAIN = """context.spa-libs = {{ audio.convert.* = audioconvert/libspa-audioconvert support.* = support/libspa-support }}
context.modules = [ {modules} {{ name = libpipewire-module-filter-chain args = {{
  filter.graph = {{ nodes = [ {{ type = lv2 name = hall plugin = "urn:partita:lv2:stereo" control = {{ "dry" = 0.0 }} }} ] }}
  audio.rate = 48000 audio.channels = 2 audio.position = [ FL FR ]
  capture.props = {{ node.name = chain_in media.class = Audio/Sink {ports} }}
  playback.props = {{ node.name = chain_out node.autoconnect = false {ports} }} }} }} ]
"""
# Where no session manager runs, nodes configure their ports themselves.
PORTS = "adapter.auto-port-config = { mode = dsp position = preserve }"
CLIENT = ["protocol-native", "client-node", "adapter"]


class PipeWire(WithStates, Jack):
    def setUp(self):
        if not all(map(shutil.which, ("pipewire", "pw-link", "pw-play", "pw-record"))):
            self.skipTest("PipeWire is not installed")
        super().setUp()
        os.mkdir("run", 0o700)

    def client(self, *command):
        child = subprocess.Popen(command, env={**os.environ, "XDG_RUNTIME_DIR": os.path.abspath("run")},
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.children.append(child)
        return child

    def daemon(self, name, template, modules):
        text = template.format(ports=PORTS, modules=" ".join("{ name = libpipewire-module-%s }" % m for m in modules))
        self.write(name, text.encode())
        return self.client("pipewire", "-c", os.path.abspath(name))

    def link(self, source, sink):
        for channel in ("FL", "FR"):
            self.wait_for(lambda: self.client("pw-link", f"{source}_{channel}", f"{sink}_{channel}").wait(10) == 0)

    def test_the_dry_signal_passes_through_the_filter_chain(self):
        """PipeWire 0.3.65 restores no state of LV2 plug-ins, so that there is no impulse response."""
        sent = (self.random.standard_normal((480000, 2)) / 16).astype("f4")
        self.write("sent.wav", wav_bytes(sent, bits=32))
        self.daemon("server.conf", SERVER, CLIENT + ["spa-node-factory", "link-factory", "access"])
        self.wait_for(lambda: os.path.exists("run/pipewire-0"))
        self.daemon("chain.conf", CHAIN, CLIENT)
        own = "{ node.name = %s node.autoconnect = false " + PORTS + " }"
        recorder = self.client("pw-record", "-P", own % "recorder", "--rate", "48000", "--channels", "2", "--format", "f32",
                               "got.wav")
        self.link("chain_out:output", "clock:playback")
        self.link("chain_out:output", "recorder:input")
        self.client("pw-play", "-P", own % "player", "sent.wav")
        self.link("player:output", "chain_in:playback")
        time.sleep(3)
        recorder.send_signal(signal.SIGINT)
        recorder.wait(20)
        data = self.read("got.wav")
        got = np.frombuffer(data[data.index(b"data") + 8:], "<f4")
        got = got[:len(got) // 2 * 2].reshape(-1, 2)
        first = np.flatnonzero((got == sent[60000]).all(axis=1))
        self.assertEqual(len(first), 1, "the sound does not arrive")
        self.assertTrue(np.array_equal(got[first[0]:first[0] + 24000], sent[60000:84000]))


if __name__ == "__main__":
    rig.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every command with a failing call: the n-th allocation, open, read, write, seek, sync, rename,
mapping or thread. The program may succeed with the same result, or fail with one line and no new
file; it never crashes, and never succeeds with another result. The second argument is the
fault-injecting library. With EVERY_FAULT in the environment every n is tried, else some."""
import contextlib
import os
import socket
import sys
import tempfile
import threading

import numpy as np

import rig
from fault_rig import NAMES, FaultCase
from rig import wav_bytes

FaultCase.shim = os.path.abspath(sys.argv.pop(2))


def answer_all(server):
    """Answers one line of each client, and then keeps the connection until the client closes it."""
    while server.fileno() >= 0:
        with contextlib.suppress(OSError), server.accept()[0] as client:
            client.settimeout(100)
            if client.recv(4096):
                client.sendall(b'{"event": "status"}\n{"ok": true}\n')
                client.recv(1)


# Libraries that use memory without checking that they got it, or end the process without it.
FRAGILE = ("libsndfile", "libFLAC", "libfftw3")


class EveryFault(FaultCase):
    def setUp(self):
        super().setUp()
        self.write("ir.txt", b"0.5\n0.25\n")
        self.write("in.wav", wav_bytes(self.random.integers(-9000, 9000, (3000, 2))))
        for name in ("x.npy", "in.npy"):
            np.save(name, self.random.standard_normal(3000).astype("f4"))

    def every(self, *arguments, rc=0, may_stay=(), crashes=()):
        """may_stay: files that a failed run may leave, besides those that stood there. crashes: functions
        whose failure some libraries do not survive."""
        before = self.attempt(["--version"])[3]
        out, files, counts = self.counted(arguments, rc)
        for name in NAMES:
            for n in self.calls(counts[name]):
                with self.subTest(arguments=arguments, fault="%s:%d" % (name, n)):
                    status, said, got_out, got = self.attempt(arguments, FAULT="%s:%d" % (name, n))
                    if name in crashes and self.crashed_in(status).startswith(FRAGILE):
                        continue
                    self.assertIn(status, (rc, 1), said)
                    if status == rc:
                        self.assertEqual(got_out, out)
                        differing = {k for k in set(got) | set(files) if got.get(k) != files.get(k)}
                        self.assertEqual(differing - set(may_stay), set())
                        continue
                    # Where it has no memory or no threads, OpenMP ends the process with status 1.
                    if not said.startswith("\nlibgomp: "):
                        self.assertEqual(said.count("\n"), 1, said)
                        self.assertRegex(said, "^partita[ :]")
                    self.assertEqual(set(got) - set(before) - set(may_stay), set(), said)
                    kept = {k: v for k, v in got.items() if k in before and k not in may_stay}
                    self.assertTrue(kept == {k: v for k, v in before.items() if k not in may_stay}, said)

    def test_convolve(self):
        self.every("convolve", "ir.txt", "in.wav", "out.wav")
        self.every("convolve", "--threads", 2, "ir.txt", "x.npy", "out.npy")

    def test_resample_and_level(self):
        self.every("convolve", "--up", 3, "--stride", 2, "--normalize=-1", "ir.txt", "in.wav", "out.wav")

    def test_configurations(self):
        self.write("a.conf", b"/convolver/new 2 3 64 100\n/input/name 1 left\n/impulse/read 1 1 0.5 7 0 0 1 ir.txt\n"
                   b"/impulse/hilbert 2 3 1 40 64\n/impulse/copy 2 2 1 1\n")
        self.every("convolve", "--config", "a.conf", "in.wav", "out.wav")
        self.write("a.cfg", b"48000 2 1 0\n0 0\n1\nir.txt\n0\n0.5 1.0\n0.0\n")
        self.every("convolve", "--config", "a.cfg", "in.wav", "out.wav")
        self.write("a.yml", b"devices: {samplerate: 48000, capture: {channels: 2}}\nfilters:\n"
                   b"  a: {type: Conv, parameters: {type: Raw, filename: ir.txt}}\n"
                   b"  b: {type: Conv, parameters: {type: Values, values: [1, 2]}}\n"
                   b"  c: {type: Biquad, parameters: {type: Peaking, freq: 9000, q: 1, gain: 3}}\n"
                   b"  d: {type: BiquadCombo, parameters: {type: GraphicEqualizer, gains: [1, 2]}}\n"
                   b"pipeline: [{type: Filter, names: [a, b, c, d]}]\n")
        if b"without libyaml" not in self.run_program("convolve", "--config", "a.yml", "in.wav", "out.wav", rc=None).stderr:
            os.unlink("out.wav")
            self.every("convolve", "--config", "a.yml", "in.wav", "out.wav")

    def test_chains(self):
        self.write("pair.wav", wav_bytes(self.random.integers(-9000, 9000, (30, 2))))
        self.every("convolve", "ir.txt+pair.wav", "in.wav", "out.wav")
        self.write("hall.wav", wav_bytes(self.random.integers(-9000, 9000, (30, 14))))
        self.every("convolve", "--layout", "2.0", "hesuvi:hall.wav", "in.wav", "out.wav")

    def test_rate_out(self):
        self.every("convolve", "--rate-out", "24k", "ir.txt", "in.wav", "out.wav")
        self.every("convolve", "--rate-out", "32k", "in.wav", "out.wav")

    def test_design(self):
        self.write("table.txt", b"100 0\n1000 -20\n")
        self.every("design", "lowpass", "--equiripple", "--cutoff", "0.2", "--width", "0.1", "out.npy")
        self.every("design", "table", "--rate", "8k", "--width", "500", "table.txt", "out.wav")
        self.write("list.txt", b"Preamp: -3 dB\nFilter: ON PK Fc 900 Hz Gain 3 dB Q 1\n" * 20)
        self.every("design", "eq", "--section", "peak 1k 3", "--rate", "8k", "--taps", 99, "list.txt", "out.wav")
        self.write("graphic.txt", b"GraphicEQ: " + b"; ".join(b"%d 1" % f for f in range(100, 3000, 100)))
        self.every("design", "eq", "--rate", "8k", "--taps", 99, "graphic.txt", "out.npy")
        self.write("a.yml", b"devices: {samplerate: 8000, capture: {channels: 1}}\nfilters: {a: {type: Biquad, parameters: "
                   b"{type: Peaking, freq: 900, q: 2, gain: 3}}}\npipeline: [{type: Filter, channel: 0, names: [a]}]\n")
        if b"without libyaml" not in self.run_program("design", "eq", "a.yml", "--rate", "8k", "a.npy", rc=None).stderr:
            self.every("design", "eq", "--rate", "8k", "--taps", 99, "a.yml", "out.npy")
        self.every("design", "crossover", "--rate", "8k", "--taps", 99, "900", "2k:bw3", "out.wav")
        if b"without cairo" not in self.run_program("design", "lowpass", "--cutoff", ".2", "--width", ".1", "--plot", "p.png",
                                                    "p.npy", rc=None).stderr:
            self.settings = {"FAULT_OWN": "1"}  # cairo uses memory without checking that it got it
            self.every("design", "lowpass", "--cutoff", ".2", "--width", ".1", "--plot", "out.png", "out.npy",
                       may_stay=["out.png"])
            self.every("design", "crossover", "900", "--rate", "8k", "--plot", "out.png", "out.npy", may_stay=["out.png"])

    def test_channelize(self):
        self.write("t.csv", b"name,centre,rate,taps\nout,100,4000,ir.txt\n")
        self.every("channelize", "--rate", 8000, "t.csv", "x.npy", "{name}.sigmf-data", may_stay=["out.sigmf-data"])
        self.write("t.json", b'[{"name": "out", "frequency": 100, "rate": "16k", "attenuation": 30}]')
        self.every("channelize", "--rate", 8000, "--frequency", 0, "--resume", "t.json", "x.npy", "{name}.npy",
                   may_stay=["out.npy", "out.npy.partial", "out.npy.partial.range"])
        if b"without cairo" not in self.run_program("channelize", "--rate", 8000, "--plot", "p.png", "t.csv", "x.npy",
                                                    "{name}.npy", rc=None).stderr:
            self.settings = {"FAULT_OWN": "1"}  # cairo uses memory without checking that it got it
            self.every("channelize", "--rate", 8000, "--plot", "out.png", "t.csv", "x.npy", "{name}.npy",
                       may_stay=["out.npy", "out.png"])

    def test_deconvolve(self):
        sweep = self.random.standard_normal(3000) / 9
        np.save("sweep.npy", sweep)
        np.save("room.npy", np.append(0.5 * sweep, np.zeros(1000)))
        self.every("deconvolve", "sweep.npy", "room.npy", "out.npy", crashes=["alloc"])
        np.save("song.npy", sweep.reshape(2, 1500))
        np.save("room.npy", sweep.reshape(2, 1500).sum(axis=0) + 0.01 * self.random.standard_normal(1500))
        self.every("identify", "--ir-length", 64, "song.npy", "room.npy", "out.npy", crashes=["alloc"])
        self.every("identify", "--ir-length", 64, "--json", "--first", 0, "song.npy", "room.npy", "out.npy", crashes=["alloc"])

    def test_invert(self):
        self.write("rew.txt", b"Hz dB degrees\n100 70 0\n400 73 -10\n4000 64 0\n")
        self.write("room.wav", wav_bytes(np.append([[20000, 9000]], self.random.integers(-900, 900, (900, 2)), axis=0), rate=8000))
        options = ("--low", 200, "--taps", 256, "--phase", "mixed")
        self.every("invert", *options, "--target", "bk", "room.wav", "room.wav", "out.wav")
        self.every("invert", *options, "--rate", 8000, "--target", "rew.txt", "--json", "rew.txt", "out.npy")
        if b"without cairo" not in self.run_program("invert", *options, "--plot", "p.png", "room.wav", "p.wav", rc=None).stderr:
            self.settings = {"FAULT_OWN": "1"}  # cairo uses memory without checking that it got it
            self.every("invert", *options, "--plot", "out.png", "room.wav", "out.wav", may_stay=["out.png"])

    def test_response(self):
        self.write("rew.txt", b"Hz dB degrees\n100 70 0\n400 73 -10\n4000 64 0\n")
        self.write("room.wav", wav_bytes(np.append([[20000]], self.random.integers(-900, 900, (900, 1)), axis=0), rate=8000))
        self.every("response", "--smoothing", 3, "--trim", -50, "room.wav", "room.wav", "out.wav")
        self.every("response", "--combine", "cascade", "--json", "--rate", 8000, "--minimum-phase", "rew.txt", "room.wav", "out.frd")
        self.settings = {"FAULT_OWN": "1"}  # libsoxr and cairo use memory without checking that they got it
        self.every("response", "--combine", "channels", "--resample", 6000, "room.wav", "room.wav", "out.npy")
        if b"without cairo" not in self.run_program("response", "--plot", "p.png", "room.wav", "p.wav", rc=None).stderr:
            self.every("response", "--plot", "out.png", "room.wav", "out.wav", may_stay=["out.png"])

    def test_control(self):
        with tempfile.TemporaryDirectory(prefix="partita-") as folder, socket.socket(socket.AF_UNIX) as server:
            path = os.path.join(folder, "control")
            server.bind(path)
            server.listen()
            threading.Thread(target=answer_all, args=(server,), daemon=True).start()
            self.every("control", path, "status")
            self.every("control", path, "load", "ir.txt")

    def test_correlate(self):
        self.every("correlate", "x.npy", "x.npy", "out.npy")
        self.write("template.txt", b"0.5\n0.25\n-1\n")
        self.every("correlate", "--templates", "template.txt", "--mad", 8, "x.npy")

    def test_pairs(self):
        self.every("pairs", "--max-lag", 20, "--window", 1000, "--normalised", "x.npy", "in.npy", "out.npy")
        self.write("list.txt", b"0 1\n0 0\n")
        self.every("pairs", "--max-lag", 20, "--window", 1000, "--list", "list.txt", "--stack", "phase-weighted", "--json",
                   "x.npy", "in.npy", "out.npy")

    def test_libsndfile(self):
        self.run_program("convolve", "ir.txt", "in.wav", "in.flac")
        # libsndfile 1.2.0 uses the memory of its FLAC codec without checking that it got it.
        self.every("convolve", "ir.txt", "in.flac", "out.wav", crashes=["alloc"])
        self.every("convolve", "ir.txt", "in.wav", "out.flac", crashes=["alloc"])

    def test_range(self):
        self.every("convolve", "--range", "1/2", "ir.txt", "in.wav", "out.wav", may_stay=["out.wav"])

    def test_resume(self):
        self.every("convolve", "--resume", "ir.txt", "in.wav", "out.wav",
                   may_stay=["out.wav", "out.wav.partial", "out.wav.partial.range"])

    def test_join(self):
        for k in (1, 2):
            self.run_program("convolve", "--range", "%d/2" % k, "ir.txt", "in.wav", "s%d.wav" % k)
        self.every("join", "out.wav", "s1.wav", "s2.wav")

    def test_sigmf(self):
        self.run_program("convolve", "--rate", 8000, "ir.txt", "x.npy", "x.sigmf-data")
        # The samples are renamed first.
        self.every("convolve", "ir.txt", "x.sigmf-meta", "out.sigmf-data", may_stay=["out.sigmf-data"])
        self.every("correlate", "--normalised", "--peaks", 3, "--annotate", "found.sigmf-meta", "ir.txt", "x.sigmf-meta",
                   may_stay=["found.sigmf-meta"])
        self.every("correlate", "--normalised=zero-mean", "ir.txt", "x.sigmf-meta", "out.npy")

    def test_plan(self):
        self.every("plan", "--taps", 3000)

    def test_layer(self):
        np.save("w.npy", self.random.standard_normal((2, 3, 3, 3)).astype("f4"))
        np.save("image.npy", self.random.standard_normal((1, 3, 9, 9)).astype("f4"))
        self.every("layer", "forward", "-i", "image.npy", "-w", "w.npy", "--output", "out.npy")


if __name__ == "__main__":
    rig.main()

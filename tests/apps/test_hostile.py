#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hostile files: headers that promise more than the file has, names beside outputs that lead elsewhere, SigMF
metadata that contradict their samples, absurd rates, chunks of RIFF files at the edge of the format."""
import hashlib
import json
import os
import resource
import struct
import subprocess

import numpy as np

import rig
from rig import Case, chunk, parse_wav, wav_bytes

RAMP = np.arange(1, 4001).reshape(-1, 1)
HUGE = 1 << 40


def limit_output():
    """Zeros without end stop at 16 MiB, with another message than the tests expect."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 24, 1 << 24))


def patched(data, mark, offset, form, value):
    """The bytes with a number `offset` behind the chunk's name replaced."""
    data = bytearray(data)
    struct.pack_into(form, data, data.index(mark) + offset, value)
    return bytes(data)


def rf64(size):
    data = wav_bytes(RAMP, form=b"RF64", riff=0xFFFFFFFF, data=0xFFFFFFFF)
    return data[:12] + chunk(b"ds64", struct.pack("<QQQI", 100, size, 10, 0)) + data[12:]


class Promises(Case):
    """The length of a regular file is what it has."""

    def setUp(self):
        super().setUp()
        self.write("ir.txt", b"0.5\n0.25\n")
        self.write("in.wav", wav_bytes(RAMP))

    def encoded(self, name):
        self.run_program("convolve", "ir.txt", "in.wav", name)
        data = self.read(name)
        os.remove(name)
        return data

    def array(self, shape, promised):
        np.save("x.npy", np.ones(shape, "f4"))
        data = self.read("x.npy")
        os.remove("x.npy")
        n = struct.unpack_from("<H", data, 8)[0] + 10
        header = data[10:n].replace(b"4000", b"%d" % promised).rstrip() + b" " * n
        return data[:10] + header[:n - 11] + b"\n" + data[n:]

    def promising(self):
        yield "a.wav", wav_bytes(RAMP, data=0x70000000), 4000
        yield "b.wav", rf64(HUGE), 4000
        yield "c.npy", self.array(4000, HUGE), 4000
        yield "d.npy", self.array((2, 4000), HUGE), 0  # channel after channel: no frame is complete
        yield "e.au", patched(self.encoded("e.au"), b".snd", 8, ">I", 0x70000000), None
        yield "f.w64", patched(patched(self.encoded("f.w64"), b"riff", 16, "<Q", HUGE), b"data", 16, "<Q", HUGE), None
        yield "g.aiff", patched(patched(self.encoded("g.aiff"), b"SSND", 4, ">I", 0x70000000), b"COMM", 10, ">I",
                                0x38000000), None
        flac = bytearray(self.encoded("h.flac"))
        flac[21] |= 15
        flac[22:26] = b"\xff\xff\xff\xf0"
        yield "h.flac", bytes(flac), 4001

    def test_shards_and_resumed_runs_end(self):
        for name, data, _ in self.promising():
            self.write(name, data)
            out = "y.npy" if name.endswith("npy") else "y.wav"
            for options in (["--range", "1/2"], ["--range", "2/2"], ["--range", "1/1", "--last", 100000000], ["--resume"]):
                with self.subTest(name=name, options=options):
                    done = subprocess.run([rig.PROGRAM, "convolve", *map(str, options), "ir.txt", name, out],
                                          preexec_fn=limit_output, stderr=subprocess.PIPE, timeout=30)
                    self.assertEqual(done.returncode, 1, done.stderr)
                    self.assertRegex(done.stderr.decode(), "ends after|its header counts|cannot seek to frame")
                    for left in ("y.wav.partial", "y.wav.partial.range"):  # what the samples of a FLAC file allowed
                        if name == "h.flac" and os.path.exists(left):
                            os.remove(left)
                    self.assertEqual([n for n in os.listdir(".") if n.startswith("y.")], [])

    def test_other_runs_use_what_is_there(self):
        for name, data, n in self.promising():
            self.write(name, data)
            with self.subTest(name=name):
                out = "y.npy" if name.endswith("npy") else "y.wav"
                said = self.run_program("convolve", "ir.txt", name, out, rc=3, preexec_fn=limit_output).stderr.decode()
                self.assertIn(name, said)
                if n is not None:
                    self.assertRegex(said, "ends after %d of [0-9]{9,} frames" % n)
                os.remove(out)

    def test_pipes_end_with_their_bytes(self):
        for data in (wav_bytes(RAMP, data=0x70000000), rf64(HUGE), self.array(4000, HUGE)):
            done = self.run_program("convolve", "--rate", 48000, "ir.txt", "-", "y.wav", stdin=data, rc=3,
                                    preexec_fn=limit_output)
            self.assertIn(b"ends after 4000 of", done.stderr)

    def test_sizes_that_no_file_has_are_promises_too(self):
        for size in (1 << 62, 1 << 63, (1 << 64) - 2):
            self.write("b.wav", rf64(size))
            for options in (["--range", "1/1"], ["--resume"]):
                said = self.run_program("convolve", *options, "ir.txt", "b.wav", "y.wav", rc=1).stderr
                self.assertIn(b"ends after 4000 of", said)
            for name, more in (("b.wav", {}), ("-", {"stdin": rf64(size)})):
                said = self.run_program("convolve", "ir.txt", name, "y.wav", rc=3, preexec_fn=limit_output, **more).stderr
                self.assertRegex(said.decode(), "ends after 4000 of|its header counts [0-9]{18,} frames")
                self.assertEqual(len(parse_wav(self.read("y.wav"))[1]), 4001)

    def test_the_largest_size_stands_for_the_end(self):
        self.write("b.wav", rf64((1 << 64) - 1))
        for options in ([], ["--range", "1/1"], ["--resume"]):
            self.run_program("convolve", *options, "ir.txt", "b.wav", "y.wav", preexec_fn=limit_output)
            self.assertEqual(len(parse_wav(self.read("y.wav"))[1]), 4001)
        self.run_program("convolve", "ir.txt", "-", "y.wav", stdin=rf64((1 << 64) - 1), preexec_fn=limit_output)
        self.assertEqual(len(parse_wav(self.read("y.wav"))[1]), 4001)

    def test_filters_and_layers_are_not_allocated_before(self):
        self.write("h.npy", self.array(4000, 100000000000))
        self.run_program("convolve", "--rate", 48000, "h.npy", "in.wav", "y.npy", rc=3)
        np.save("image.npy", np.ones((1, 1, 9), "f4"))
        self.write("w.npy", self.array((1, 1, 4000), HUGE))
        self.fails("layer", "forward", "-i", "image.npy", "-w", "w.npy", "--output", "y2.npy", says=["16000 bytes of samples"])

    def test_join_of_shards_that_promise_more(self):
        for k in (1, 2):
            self.run_program("convolve", "--range", "%d/2" % k, "ir.txt", "in.wav", "s%d.wav" % k)
        self.write("s1.wav", patched(self.read("s1.wav"), b"data", 4, "<I", 0x70000000))
        self.run_program("join", "y.wav", "s1.wav", "s2.wav", rc=1, preexec_fn=limit_output)
        self.assertFalse(os.path.exists("y.wav"))


class NamesBeside(Case):
    """Files that the program names itself: no link is followed, and nothing of others is replaced."""

    def setUp(self):
        super().setUp()
        self.write("ir.txt", b"0.5\n0.25\n")
        np.save("x.npy", self.random.standard_normal(3000).astype("f4"))
        self.write("precious", b"precious")

    def untouched(self, *arguments, rc=0):
        self.run_program("convolve", *arguments, rc=rc)
        self.assertEqual(self.read("precious"), b"precious")

    def test_records_follow_no_links(self):
        for options, names in ((["--range", "1/2"], ["y.npy.range~"]),
                               (["--resume"], ["y.npy.partial.range~"])):
            for name in names:
                os.symlink("precious", name)
                self.untouched(*options, "ir.txt", "x.npy", "y.npy")
                self.assertTrue(os.path.islink(name))
                os.remove(name)
                self.write(name, b"another's")
                self.untouched(*options, "ir.txt", "x.npy", "y.npy")
                self.assertEqual(self.read(name), b"another's")
        for name, options in (("y.npy.range", ["--range", "1/2"]), ("y.npy.partial", ["--resume"]),
                              ("y.npy.partial.range", ["--resume"])):
            if os.path.lexists(name):
                os.remove(name)
            os.symlink("precious", name)
            self.untouched(*options, "ir.txt", "x.npy", "y.npy", rc=1)
            os.remove(name)

    def test_inputs_with_names_of_temporary_files(self):
        """x.npy.range~ was the temporary name of a record."""
        np.save("x.npy", np.ones(100, "f4"))
        os.rename("x.npy", "y.npy.range~")
        data = self.read("y.npy.range~")
        self.run_program("convolve", "--range", "1/1", "ir.txt", "y.npy.range~", "y.npy")
        self.assertEqual(self.read("y.npy.range~"), data)

    def test_pipes_with_names_of_records(self):
        for name, options in (("y.npy.range", ["--range", "1/2"]), ("y.npy.partial.range", ["--resume"])):
            os.mkfifo(name)
            self.run_program("convolve", *options, "ir.txt", "x.npy", "y.npy", rc=1)
            os.remove(name)
        os.mkfifo("y.sigmf-meta")
        self.write("y.sigmf-data", bytes(40))
        self.fails("convolve", "ir.txt", "y.sigmf-data", "z.npy", says=["y.sigmf-meta"])

    def test_metadata_follow_no_links(self):
        os.symlink("precious", "y.sigmf-meta")
        self.untouched("--rate", 8000, "ir.txt", "x.npy", "y.sigmf-data", rc=1)
        self.assertFalse(os.path.exists("y.sigmf-data"))
        os.remove("y.sigmf-meta")
        os.symlink("nowhere", "y.sigmf-meta")
        self.untouched("--rate", 8000, "ir.txt", "x.npy", "y.sigmf-data", rc=1)
        self.assertFalse(os.path.exists("nowhere"))

    def test_metadata_of_another_dataset_stay(self):
        self.run_program("convolve", "--rate", 8000, "ir.txt", "x.npy", "y.sigmf-data")
        self.run_program("convolve", "--rate", 8000, "ir.txt", "x.npy", "y.sigmf-data")
        meta = json.loads(self.read("y.sigmf-meta"))
        others = [{**meta, "global": {**meta["global"], "core:dataset": "precious"}},
                  {**meta, "global": {**meta["global"], "core:metadata_only": True}}, {"mine": 1}]
        os.remove("y.sigmf-data")
        for other in others:
            self.write("y.sigmf-meta", json.dumps(other).encode())
            self.fails("convolve", "--rate", 8000, "ir.txt", "x.npy", "y.sigmf-data", says=["y.sigmf-meta", "another output"])
            self.assertEqual(json.loads(self.read("y.sigmf-meta")), other)

    def test_samples_that_metadata_name_are_an_input(self):
        self.run_program("convolve", "--rate", 8000, "ir.txt", "x.npy", "y.sigmf-data")
        meta = json.loads(self.read("y.sigmf-meta"))
        meta["global"]["core:dataset"] = "samples.cf32"
        meta["global"]["core:datatype"] = "cf32_le"
        os.rename("y.sigmf-data", "samples.cf32")
        self.write("y.sigmf-meta", json.dumps(meta).encode())
        data = self.read("samples.cf32")
        self.fails("convolve", "ir.txt", "y.sigmf-meta", "samples.cf32", says=["is the input"])
        self.assertEqual(self.read("samples.cf32"), data)

    def test_wisdom_that_is_no_file(self):
        os.makedirs("cache/partita")
        os.mkfifo("cache/partita/wisdom")
        self.run_program("convolve", "ir.txt", "x.npy", "y.npy")
        os.remove("cache/partita/wisdom")
        os.mkdir("cache/partita/wisdom")
        self.run_program("convolve", "ir.txt", "x.npy", "y.npy")
        os.rmdir("cache/partita/wisdom")
        self.write("cache/partita/wisdom", b"x")
        os.chmod("cache/partita/wisdom", 0)
        self.run_program("convolve", "ir.txt", "x.npy", "y.npy")


class SigMF(Case):
    def setUp(self):
        super().setUp()
        self.write("ir.txt", b"0.5\n0.25\n")
        np.save("x.npy", self.random.standard_normal(30000).astype("f4"))
        self.run_program("convolve", "--rate", 8000, "ir.txt", "x.npy", "x.sigmf-data")
        self.meta = json.loads(self.read("x.sigmf-meta"))

    def with_fields(self, capture=(), **fields):
        meta = json.loads(json.dumps(self.meta))
        meta["global"].update({"core:" + k: v for k, v in fields.items()})
        meta["captures"][0].update(dict(capture))
        self.write("x.sigmf-meta", json.dumps(meta).encode())

    def test_numbers_of_bytes(self):
        for value in (0.5, -1, "8", True, 1e300, [], 120005, 2**63 - 1):
            with self.subTest(value=value):
                self.with_fields(trailing_bytes=value)
                self.fails("convolve", "ir.txt", "x.sigmf-meta", "y.npy", says=["core:trailing_bytes"])
                self.with_fields(capture={"core:header_bytes": value})
                self.fails("convolve", "ir.txt", "x.sigmf-meta", "y.npy", says=["core:header_bytes"])
        for n in (0, 8, 120004):
            self.with_fields(capture={"core:header_bytes": n}, trailing_bytes=0)
            self.run_program("convolve", "-q", "ir.txt", "x.sigmf-meta", "y.npy")
        self.with_fields(capture={"core:sample_start": -1, "core:header_bytes": 8})
        self.fails("convolve", "ir.txt", "x.sigmf-meta", "z.npy", says=["x.sigmf-meta", "capture 0", "core:sample_start"])

    def test_sums(self):
        data = self.read("x.sigmf-data")
        total = hashlib.sha512(data).hexdigest()
        for text in (total, total.upper()):
            self.with_fields(sha512=text)
            for threads in (1, 2):
                self.run_program("convolve", "--threads", threads, "ir.txt", "x.sigmf-meta", "y.npy")
        os.remove("y.npy")
        for text in ("", "abc", total[:-1], total + "0", "g" + total[1:], 5, None):
            self.with_fields(sha512=text)
            self.fails("convolve", "ir.txt", "x.sigmf-meta", "y.npy", says=["core:sha512"])
        self.with_fields(sha512=total)
        for at in (0, 5000, len(data) - 1):
            self.write("x.sigmf-data", data[:at] + bytes([data[at] ^ 1]) + data[at + 1:])
            self.fails("convolve", "ir.txt", "x.sigmf-meta", "y.npy", says=["core:sha512"])
        self.write("x.sigmf-data", data[:-4])
        self.fails("convolve", "ir.txt", "x.sigmf-meta", "y.npy", says=["core:sha512"])
        self.write("x.sigmf-data", data + b"\0")
        self.fails("convolve", "ir.txt", "x.sigmf-meta", "y.npy", says=["core:sha512"])

    def test_sums_of_any_length(self):
        """Around the blocks of 128 bytes and their padding."""
        for n in (1, 14, 15, 27, 28, 29, 30, 31, 32, 33, 60, 64):
            data = self.random.bytes(4 * n)
            self.write("x.sigmf-data", data)
            self.with_fields(sha512=hashlib.sha512(data).hexdigest())
            self.run_program("convolve", "ir.txt", "x.sigmf-meta", "y.npy", "--nan", "zero", "-q")


class Memory(Case):
    """--max-memory is kept, and what would exceed it is named before it is allocated."""

    def setUp(self):
        super().setUp()
        np.save("h.npy", self.random.standard_normal(1 << 18).astype("f4"))
        np.save("x.npy", self.random.standard_normal((2, 1 << 19)).astype("f4"))
        np.save("room.npy", np.append(0.5 * np.load("h.npy"), np.zeros(1000, "f4")))
        np.save("click.npy", np.eye(1, 200000, 99, "f4"))
        np.save("w.npy", self.random.standard_normal((32, 32, 3, 3)).astype("f4"))
        np.save("image.npy", self.random.standard_normal((1, 32, 200, 200)).astype("f4"))
        for k in (1, 2):
            self.run_program("convolve", "--range", "%d/2" % k, "h.npy", "x.npy", "s%d.npy" % k)

    def commands(self):
        yield ("convolve",), ("h.npy", "x.npy", "y.npy")
        yield ("convolve", "--threads", 2), ("h.npy", "x.npy", "y.npy")
        yield ("convolve", "--mode", "valid"), ("h.npy", "x.npy", "y.npy")
        yield ("correlate", "--block", 1024), ("h.npy", "x.npy", "y.npy")
        yield ("join",), ("y.npy", "s1.npy", "s2.npy")
        yield ("convolve", "--normalize=-1"), ("h.npy", "x.npy", "y.npy")
        yield ("layer",), ("forward", "-i", "image.npy", "-w", "w.npy", "--output", "y.npy")
        yield ("deconvolve",), ("h.npy", "room.npy", "y.npy")
        yield ("identify", "--ir-length", 500), ("h.npy", "room.npy", "y.npy")
        yield ("invert", "--rate", "48k"), ("click.npy", "y.npy")
        yield ("response", "--rate", "48k", "--combine", "cascade", "--minimum-phase"), ("click.npy", "h.npy", "y.npy")

    def test_limits_are_kept(self):
        """Doubled until it suffices: each refusal is one line, and the memory in use stays below the limit."""
        for command, operands in self.commands():
            self.run_program(*command, *operands)
            whole = self.read("y.npy")
            os.remove("y.npy")
            limit, refused = 1 << 16, 0
            while not os.path.exists("y.npy"):
                limit, refused = 2 * limit, refused + 1
                self.assertLess(limit, 1 << 32)
                done = subprocess.run([rig.PROGRAM, *map(str, command), "--max-memory", str(limit), *operands],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=120,
                                      env={**os.environ, "XDG_CACHE_HOME": self.folder + "/cache"})
                if done.returncode:
                    self.assertEqual(done.returncode, 1)
                    self.assertRegex(done.stderr.decode(), "^partita [a-z]+: .*more of memory are needed, but "
                                     "--max-memory is [0-9.]+ [KM]iB, of which [0-9.]+ [KM]iB are in use; "
                                     "add --max-memory [0-9]+M or more\n$")
            self.assertGreater(refused, 1, command)
            self.assertEqual(self.read("y.npy"), whole, command)
            os.remove("y.npy")

    def test_the_default_follows_the_machine(self):
        """Half of the memory that this process may have. A delay of 50 million samples is one long filter."""
        if "SANITIZED" in os.environ:
            self.skipTest("a sanitizer reserves address space")
        np.save("one.npy", np.ones(100, "f4"))
        self.write("delay.yml", b"""devices:
  samplerate: 8000
  capture: {type: Stdin, channels: 1, format: S16LE}
  playback: {type: Stdout, channels: 1, format: S16LE}
filters:
  d: {type: Delay, parameters: {delay: 50000000, unit: samples}}
  v: {type: Conv, parameters: {type: Values, values: [1.0, 0.5, 0.25]}}
pipeline:
  - {type: Filter, channel: 0, names: [d, v]}
""")
        limit = (1 << 30, 1 << 30)
        self.fails("convolve", "--config", "delay.yml", "-r", 8000, "one.npy", "y.npy",
                   says=["more of memory are needed, but 512 MiB, half of what there is, is the limit", "add --max-memory "],
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))

    def test_the_process_stays_small(self):
        if "SANITIZED" in os.environ:
            self.skipTest("a sanitizer's own memory counts too")
        done = self.run_program("convolve", "--json", "--max-memory", 64 << 20, "h.npy", "x.npy", "y.npy",
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (160 << 20, 160 << 20)))
        self.assertTrue(done.stdout)

    def test_sizes_without_a_limit(self):
        if "SANITIZED" in os.environ:
            self.skipTest("a sanitizer reserves address space")
        self.fails("convolve", "h.npy", "x.npy", "y.npy", says=["out of memory: ", "MiB more are needed"],
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (8 << 20, 8 << 20)))


class Space(Case):
    def test_results_that_the_disk_cannot_hold(self):
        """Refused before a sample is written; to a device, whose samples are not kept, they are written."""
        np.save("x.npy", np.ones((2, 100), "f4"))
        self.write("h.txt", b"1\n0.5\n")
        for out in ("y.npy", "y.f32", "y.w64", "y.aiff", "y.caf", "y.au"):
            self.fails("convolve", "--last", "2e18", "--rate", 8000, "h.txt", "x.npy", out,
                       says=[out + ": 2000000000000000000 frames need", "B free", "--last", "another disk"])
        with open("out", "wb") as out:
            done = subprocess.run([rig.PROGRAM, "convolve", "--last", "2e18", "h.txt", "x.npy", "-"], stdout=out,
                                  stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"standard output: 2000000000000000000 frames need", done.stderr)
        self.fails("convolve", "--last", "2e18", "--resume", "h.txt", "x.npy", "y.npy", says="B free")
        self.fails("convolve", "--last", "2e18", "--threads", 2, "h.txt", "x.npy", "y.npy", says="B free")
        self.fails("convolve", "--last", "2e18", "--channels", 2, "--format", "f32", "h.txt", "-", "y.f32", stdin=bytes(400), says="B free")
        self.run_program("convolve", "--last", "1e6", "h.txt", "x.npy", "/dev/null")


class Rates(Case):
    def test_absurd_ratios_are_refused(self):
        self.write("in.wav", wav_bytes(RAMP))
        for rate, rc in ((1, 1), (47, 1), (1000, 0), (48000 * 1001, 1), (4294967295, 1)):
            self.write("ir.wav", wav_bytes(np.array([[9000], [3000]]), rate=rate))
            with self.subTest(rate=rate):
                said = self.run_program("convolve", "--resample-ir", "ir.wav", "in.wav", "y.wav", rc=rc).stderr
                self.assertTrue(rc == 0 or b"factor of 1000" in said, said)


if __name__ == "__main__":
    rig.main()

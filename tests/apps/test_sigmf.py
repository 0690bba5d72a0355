#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""SigMF: metadata that outputs take over, captures, headers within the data, archives, names."""
import hashlib
import io
import json
import os
import tarfile

import numpy as np

import rig
from rig import Case

GLOBAL = {"core:datatype": "cf32_le", "core:version": "1.2.0", "core:sample_rate": 1000, "core:author": "A. Nyone",
          "core:description": "a test", "core:license": "https://spdx.org/licenses/MIT"}
CAPTURE = {"core:sample_start": 0, "core:frequency": 433.9e6, "core:datetime": "2026-01-31T23:59:59.5Z"}


class Recordings(Case):
    def setUp(self):
        super().setUp()
        self.x = (self.random.standard_normal(1000) + 1j * self.random.standard_normal(1000)).astype("c8")
        self.write("one.txt", b"1\n")
        self.write("low.txt", b"0.25\n0.5\n0.25\n")

    def recording(self, name="in", captures=(CAPTURE,), annotations=(), data=None, **fields):
        meta = {"global": {**GLOBAL, **{"core:" + k: v for k, v in fields.items()}}, "captures": list(captures),
                "annotations": list(annotations)}
        self.write(name + ".sigmf-data", self.x.tobytes() if data is None else data)
        self.write(name + ".sigmf-meta", json.dumps(meta).encode())
        return meta

    def meta(self, name="out"):
        return json.loads(self.read(name + ".sigmf-meta"))

    def convolve(self, *options, taps="one.txt", to="out.sigmf-data", command="convolve"):
        self.run_program(command, *options, taps, "in.sigmf-meta", to)
        return self.meta() if to.startswith("out") else None


class Carried(Recordings):
    def test_global_fields_and_first_capture(self):
        before = self.recording(sha512=hashlib.sha512(self.x.tobytes()).hexdigest(), extensions=[], offset=0)
        meta = self.convolve()
        self.assertRegex(meta["global"].pop("core:recorder"), r"^partita \d")
        self.assertEqual(meta["global"].pop("core:num_channels"), 1)
        self.assertEqual(meta["global"], {**GLOBAL, "core:extensions": []})
        self.assertEqual(meta["captures"], before["captures"])
        self.run_program("convolve", "one.txt", "out.sigmf-meta", "again.sigmf-data")
        self.assertEqual(self.meta("again"), self.meta())

    def test_annotations_move_with_the_samples(self):
        """A filter of linear phase and 101 taps delays by 50; --first 20 starts there; every fourth sample."""
        np.save("fir.npy", np.hanning(103)[1:-1])
        spans = ((0, 10), (100, 7), (101, 0), (900, 300), (5, None), (3000, 4), (1030, 10))
        self.recording(annotations=[{"core:sample_start": s, "core:label": str(k), "core:freq_lower_edge": 4e8,
                                     **({} if c is None else {"core:sample_count": c})} for k, (s, c) in enumerate(spans)])
        for options, shift, stride in (([], 50, 1), (["--mode", "same"], 0, 1), (["--first", 20], 30, 1),
                                       (["--first", 20, "--stride", 4], 30, 4), (["--mode", "valid"], -50, 1)):
            meta = self.convolve(*options, taps="fir.npy")
            frames, expected = os.path.getsize("out.sigmf-data") // 8, []
            for k, (s, c) in enumerate(spans):
                at, end = (s + shift) // stride, -(-(s + (c or 0) + shift) // stride)
                if at >= frames or (c and end <= 0) or (c == 0 and at < 0):
                    continue
                more = {} if c is None else {"core:sample_count": min(end, frames) - max(at, 0) if c else 0}
                expected.append({"core:sample_start": max(at, 0), "core:label": str(k), "core:freq_lower_edge": 4e8, **more})
            expected.sort(key=lambda a: a["core:sample_start"])
            self.assertEqual(meta["annotations"], expected, options)

    def test_a_found_template_is_where_it_was(self):
        self.recording(annotations=[{"core:sample_start": 300, "core:sample_count": 20}])
        np.save("h.npy", self.x[300:320])
        meta = self.convolve("--mode", "valid", command="correlate", taps="h.npy")
        self.assertEqual(meta["annotations"][0]["core:sample_start"], 300)
        self.assertEqual(np.argmax(abs(np.fromfile("out.sigmf-data", "c8"))), 300)
        meta = self.convolve("--first", 100, command="correlate", taps="h.npy")
        self.assertEqual(meta["annotations"][0]["core:sample_start"], 200)

    def test_time_of_the_first_sample(self):
        self.recording()
        for options, time in ((["--first", 750], "2026-02-01T00:00:00.25Z"), (["--first", -500], "2026-01-31T23:59:59.0Z"),
                              (["--first", 1, "--stride", 2], "2026-01-31T23:59:59.501Z")):
            self.assertEqual(self.convolve(*options)["captures"], [{**CAPTURE, "core:datetime": time}])

    def test_several_captures(self):
        """Of one frequency, with gaps in time: they restart where their samples are."""
        second = {**CAPTURE, "core:sample_start": 401, "core:datetime": "2026-02-01T00:00:10Z", "core:global_index": 9000}
        self.recording(captures=[CAPTURE, second, {**CAPTURE, "core:sample_start": 5000}])
        self.assertEqual(self.convolve()["captures"], [CAPTURE, second])
        got = self.convolve("--stride", 4)["captures"]
        self.assertEqual(got[1], {**second, "core:sample_start": 101, "core:datetime": "2026-02-01T00:00:10.003Z",
                                  "core:global_index": 2250})
        got = self.convolve("--first", 601)["captures"]
        self.assertEqual(got, [{**second, "core:sample_start": 0, "core:datetime": "2026-02-01T00:00:10.2Z",
                                "core:global_index": 9200}])

    def test_captures_of_different_frequencies(self):
        other = {**CAPTURE, "core:sample_start": 400, "core:frequency": 868.3e6}
        self.recording(captures=[CAPTURE, other])
        self.fails("convolve", "one.txt", "in.sigmf-meta", "out.npy",
                   says=["in.sigmf-meta", "captures 0 and 1", "433900000 and 868300000 Hz"])
        # Ranges whose samples, with those before them that the taps reach, are in one capture.
        self.write("five.txt", b"1\n2\n3\n4\n5\n")
        for command, taps, first, last in (("convolve", "one.txt", 400, 1000), ("convolve", "five.txt", 404, 1000),
                                           ("correlate", "five.txt", 400, 996)):
            for begin, end in ((0, last - 600), (first, last)):
                self.run_program(command, "--first", begin, "--last", end, taps, "in.sigmf-meta", "out.npy")
            said = self.fails(command, "--first", first - 1, taps, "in.sigmf-meta", "out.npy", says="captures 0 and 1")
            self.assertIn("select capture 0 with --first 0 --last %d\n" % (last - 600), said)
            self.fails(command, "--last", last - 599, taps, "in.sigmf-meta", "out.npy", says="captures 0 and 1")
        self.run_program("convolve", "--up", 3, "--first", 1204, "five.txt", "in.sigmf-meta", "out.npy")
        self.run_program("convolve", "--up", 3, "--last", 1200, "five.txt", "in.sigmf-meta", "out.npy")
        for more in (("--first", 1203), ("--last", 1201)):
            self.fails("convolve", "--up", 3, *more, "five.txt", "in.sigmf-meta", "out.npy", says="--first 0 --last 1200")
        self.assertEqual(self.convolve("--first", 400)["captures"], [{**other, "core:sample_start": 0}])
        for taps in ("in.sigmf-meta", "in.sigmf-data"):
            self.fails("convolve", taps, "one.txt", "out.npy", says="select capture 0 with --first 0 --last 400")
        self.recording(captures=[CAPTURE, {**other, "core:sample_start": 3}])
        self.fails("correlate", "five.txt", "in.sigmf-meta", "out.npy", says="capture 0 is shorter than the taps")
        self.recording(captures=[CAPTURE, {**other, "core:sample_start": 1000}])
        self.convolve()
        self.recording(captures=[CAPTURE, {**other, "core:frequency": 433900000}])
        self.convolve()

    def test_shards_and_their_union(self):
        note = {"core:sample_start": 480, "core:sample_count": 40, "core:label": "across"}
        self.recording(annotations=[note, {**note, "core:sample_start": 990}],
                       captures=[CAPTURE, {**CAPTURE, "core:sample_start": 700}])
        self.convolve("--range", "1/1", taps="low.txt")
        for k in (1, 2):
            self.run_program("convolve", "--range", "%d/2" % k, "low.txt", "in.sigmf-meta", "%d.sigmf-data" % k)
        self.assertEqual(self.meta("2")["global"]["core:offset"], 501)
        self.run_program("join", "whole.sigmf-data", "2.sigmf-data", "1.sigmf-data")
        self.run_program("convolve", "--resume", "low.txt", "in.sigmf-meta", "resumed.sigmf-data")
        for name in ("whole", "resumed"):
            self.assertEqual(self.read(name + ".sigmf-data"), self.read("out.sigmf-data"))
            self.assertEqual(self.read(name + ".sigmf-meta"), self.read("out.sigmf-meta"))
        self.run_program("convolve", "one.txt", "2.sigmf-data", "last.sigmf-data")
        self.assertEqual(self.meta("last")["annotations"],
                         [{**note, "core:sample_start": 0, "core:sample_count": 20}, {**note, "core:sample_start": 490,
                                                                                       "core:sample_count": 11}])

    def test_hostile_positions(self):
        for value in (-5, 1.5, "7", None, [], True, 1e300):
            self.recording(annotations=[{"core:sample_start": 0}, {"core:sample_start": value}])
            self.fails("convolve", "one.txt", "in.sigmf-meta", "out.sigmf-data",
                       says=["in.sigmf-meta", "core:sample_start of annotation 1"])
            self.run_program("convolve", "one.txt", "in.sigmf-meta", "other.npy")
            self.recording(captures=[{"core:sample_start": value}])
            self.fails("convolve", "one.txt", "in.sigmf-meta", "out.sigmf-data", says=["capture 0"])
        for annotations in ([3], "x", {"a": 1}):
            self.recording()
            meta = self.meta("in")
            self.write("in.sigmf-meta", json.dumps({**meta, "annotations": annotations}).encode())
            self.fails("convolve", "one.txt", "in.sigmf-meta", "out.sigmf-data", says=["in.sigmf-meta", "annotation"])
        self.write("in.sigmf-meta", json.dumps(meta).replace('"captures": [{', '"captures": [{"a": 1' + "0" * 30 + ",").encode())
        self.fails("convolve", "one.txt", "in.sigmf-meta", "out.sigmf-data", says=["in.sigmf-meta", "too big"])

    def test_hostile_values_are_no_harm(self):
        big = 2**63 - 1
        for time in ("", "yesterday", "2026-01-31T23:59:59", "9999-12-31T23:59:59Z", "2026-01-31T23:59:59." + "9" * 5000 + "Z",
                     5, None):
            self.recording(captures=[{**CAPTURE, "core:datetime": time, "core:global_index": big}], author=[1], offset=0,
                           annotations=[{"core:sample_start": big, "core:sample_count": big}])
            self.assertEqual(self.convolve("--first", 400, "--last", 600)["annotations"], [])
            self.convolve("--first", -5000)
        self.recording(captures=[{**CAPTURE, "core:sample_start": big}], offset=big)
        self.convolve("--first", 400)
        self.recording(captures=[{**CAPTURE, "core:sample_start": big}])
        self.convolve("--first", -400)


class Datasets(Recordings):
    def test_headers_and_trailing_bytes(self):
        raw = self.x.tobytes()
        data = b"HEAD" + raw[:3200] + b"another" + raw[3200:] + b"tail!"
        captures = [{"core:sample_start": 0, "core:header_bytes": 4}, {"core:sample_start": 400, "core:header_bytes": 7}]
        for sha in ({}, {"sha512": hashlib.sha512(data).hexdigest()}):
            self.recording(captures=captures, data=data, trailing_bytes=5, **sha)
            for options in ([], ["--block", 3], ["--threads", 2]):
                meta = self.convolve(*options)
                self.assertEqual(self.read("out.sigmf-data"), raw)
                self.assertEqual(meta["captures"], [{"core:sample_start": 0}, {"core:sample_start": 400}])
                self.assertNotIn("core:trailing_bytes", meta["global"])
            for first in (0, 399, 400, 401, 999):
                self.convolve("--first", first)
                self.assertEqual(self.read("out.sigmf-data"), raw[8 * first:])
        for at in (2, 5, 3206, len(data) - 1):
            self.write("in.sigmf-data", data[:at] + bytes([data[at] ^ 1]) + data[at + 1:])
            self.fails("convolve", "one.txt", "in.sigmf-meta", "o.npy", says=["core:sha512"])

    def test_headers_out_of_order(self):
        self.recording(captures=[{"core:sample_start": 400, "core:header_bytes": 7},
                                 {"core:sample_start": 0, "core:header_bytes": 4}])
        self.fails("convolve", "one.txt", "in.sigmf-meta", "o.npy", says=["in.sigmf-meta", "capture 1", "core:header_bytes"])

    def test_names(self):
        self.recording("capture")
        for name in ("capture", "capture.sigmf", "capture.sigmf-meta", "capture.sigmf-data"):
            self.run_program("convolve", "one.txt", name, "out.npy")
            self.assertEqual(np.load("out.npy").tobytes(), self.x.tobytes())
        self.fails("convolve", "one.txt", "capture", "capture.sigmf-data", says="is the input")
        self.fails("convolve", "one.txt", "capture", "out.sigmf", says=["out.sigmf", "out.sigmf-data"])
        self.write("capture", b"1\n2\n")
        self.fails("convolve", "one.txt", "capture", "out2.npy", says="no known format")


class Names(Recordings):
    def test_standard_input_is_no_dataset(self):
        for name in ("-", "", "/dev/zero", "../in.sigmf-data"):
            self.recording(dataset=name)
            self.fails("convolve", "one.txt", "in.sigmf-meta", "o.npy", says=["in.sigmf-meta", "core:dataset", "file name"],
                       stdin=b"samples!")


class Archives(Recordings):
    def archive(self, files, name="x.sigmf", format=tarfile.PAX_FORMAT):
        with tarfile.open(name, "w", format=format) as tar:
            for entry, data in files:
                info = tarfile.TarInfo(entry)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        return name

    def parts(self, name="in", **fields):
        self.recording(**fields)
        return [(name + s, self.read("in" + s)) for s in (".sigmf-meta", ".sigmf-data")]

    def test_archives(self):
        meta, data = self.parts(sha512=hashlib.sha512(self.x.tobytes()).hexdigest())
        self.archive([meta, data])
        if b"without libarchive" in self.run_program("convolve", "one.txt", "x.sigmf", "y.npy", rc=None).stderr:
            self.skipTest("built without libarchive")
        other, folder = ("note.txt", b"hello" * 300), "some/folder/" + 30 * "long" + "/"
        deep = [(folder + n, d) for n, d in (meta, data)]
        for files in ([meta, data], [data, meta], [other, meta, other, data, other], deep, deep[::-1]):
            for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
                self.archive(files, format=form)
                self.run_program("convolve", "one.txt", "x.sigmf", "out.sigmf-data")
                self.assertEqual(self.read("out.sigmf-data"), self.x.tobytes())
                self.assertEqual(self.meta()["global"]["core:author"], "A. Nyone")
        self.run_program("convolve", "--range", "2/2", "one.txt", "x.sigmf", "half.npy")
        self.assertEqual(np.load("half.npy").tobytes(), self.x[500:].tobytes())
        self.fails("convolve", "one.txt", "x.sigmf", "x.sigmf", says="x.sigmf")
        self.archive([meta, (data[0], data[1][:-8])])
        self.fails("convolve", "one.txt", "x.sigmf", "o.npy", says="core:sha512")
        self.broken(meta, data)

    def broken(self, meta, data):
        two = [(n.replace("in.", "other."), d) for n, d in (meta, data)]
        for files, says in (([meta], "holds no in.sigmf-data"), ([data], "holds no .sigmf-meta"), ([], "holds no .sigmf-meta"),
                            ([meta, data, *two], ["several recordings", "in.sigmf-meta", "other.sigmf-meta", "tar -xf"]),
                            ([meta, data, (data[0], bytes(8000))], ["holds in.sigmf-data twice", "tar -xf"]),
                            ([meta, meta, data], "several recordings"),
                            ([("in.sigmf-meta", b"{"), data], "is not JSON")):
            self.archive(files)
            self.fails("convolve", "one.txt", "x.sigmf", "o.npy", says=["x.sigmf"] + ([says] if isinstance(says, str) else says))
        whole = self.read(self.archive([meta, data]))
        for n in (0, 100, 700, 2000, 5000):
            self.write("x.sigmf", whole[:n])
            self.fails("convolve", "one.txt", "x.sigmf", "o.npy", says="x.sigmf")
        self.write("x.sigmf", self.random.bytes(5000))
        self.fails("convolve", "one.txt", "x.sigmf", "o.npy", says=["x.sigmf", "tar"])
        # Metadata of which the archive has only the header.
        claim = tarfile.TarInfo("in.sigmf-meta")
        claim.size = 1 << 27
        self.write("x.sigmf", claim.tobuf() + bytes(5000))
        self.fails("convolve", "one.txt", "x.sigmf", "o.npy", says=["x.sigmf", "ends before the %d bytes" % claim.size])
        os.remove("x.sigmf")
        os.mkfifo("x.sigmf")
        with open("x.sigmf", "r+b", buffering=0) as pipe:
            pipe.write(bytes(64))
            self.fails("convolve", "one.txt", "x.sigmf", "o.npy", says="x.sigmf")


if __name__ == "__main__":
    rig.main()

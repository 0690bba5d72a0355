#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shards (--range, join) and resumed runs (--resume) give the same bytes as one run, for any N and
any point of interruption. Also changing inputs, shards of different results, and full disks."""
import fcntl
import json
import os
import resource
import signal
import subprocess
import time

import numpy as np

import rig
from rig import Case, wav_bytes


class Shards(Case):
    def noise(self, name, n, channels=1, dtype="f4"):
        x = self.random.standard_normal((channels, n) if channels > 1 else n)
        if dtype == "c8":
            x = x + 1j * self.random.standard_normal(n)
        np.save(name, x.astype(dtype))
        return name

    def joined(self, n, out, *arguments, command="convolve", suffix=".npy"):
        """Computes the shards in another order than they are joined."""
        shards = ["shard%d%s" % (k, suffix) for k in range(1, n + 1)]
        for k in reversed(range(n)):
            self.run_program(command, "--range", "%d/%d" % (k + 1, n), *arguments, shards[k])
        self.run_program("join", out, *shards[n // 2:], *shards[:n // 2])
        data = self.read(out)
        for name in shards + [out]:
            os.remove(name)
        return data


class Ranges(Shards):
    def test_joined_shards_equal_the_whole_for_any_number(self):
        self.noise("h.npy", 3000)
        self.noise("x.npy", 150001)
        for options in ([], ["--mode", "valid"], ["--mode", "same", "--stride", "3"], ["--first", "-50", "--last", "99999"],
                        ["--precision", "f64"], ["--threads", "3"], ["--first", "-1000", "--stride", "7"],
                        ["--first", "200000", "--last", "200010"], ["--first", "-20", "--last", "-10"]):
            with self.subTest(options=options):
                whole = self.joined(1, "y.npy", *options, "h.npy", "x.npy")
                for n in (2, 3, 7):
                    self.assertEqual(self.joined(n, "y.npy", *options, "h.npy", "x.npy"), whole)
                self.run_program("convolve", *options, "h.npy", "x.npy", "plain.npy")
                self.close(np.load("plain.npy"), self.loaded(whole), typical=30)

    def loaded(self, data):
        self.write("loaded.npy", data)
        return np.load("loaded.npy")

    def test_any_number_of_threads_gives_the_bytes_of_shards(self):
        """One included, also if there is only one processor; plain convolve filters a stream."""
        for taps, n in ((700, 2500000), (20000, 60000)):
            self.noise("h.npy", taps)
            self.noise("x.npy", n)
            whole = self.joined(1, "z.npy", "h.npy", "x.npy")
            self.assertEqual(self.joined(4, "z.npy", "h.npy", "x.npy"), whole)
            one = dict(preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}))
            for threads, more in ((1, {}), (2, {}), (3, {}), ("auto", {}), ("auto", one)):
                self.run_program("convolve", "--threads", threads, "h.npy", "x.npy", "y.npy", **more)
                self.assertEqual(self.read("y.npy"), whole, threads)

    def test_results_in_rows_equal_interleaved_ones(self):
        """Statistics need interleaved results; pipes have no thread that writes. The first of the results are dropped."""
        for channels in (2, 3):
            self.noise("h.npy", 300, channels)
            self.write("x.wav", wav_bytes(self.random.integers(-9000, 9000, (1200000, channels))))
            run = ["convolve", "--first", "777", "--last", "1199000", "-o", "f32_le", "h.npy", "x.wav"]
            self.run_program(*run[:-2], "--stats", "--threads", 2, *run[-2:], "whole.raw")
            whole = self.read("whole.raw")
            for options in (["--threads", 2], ["--threads", 3], ["--threads", 1, "--range", "1/1"]):
                self.run_program(*run[:-2], *options, *run[-2:], "y.raw")
                self.assertEqual(self.read("y.raw"), whole)
            piped = self.run_program(*run[:-2], "--threads", 2, *run[-2:], "-").stdout
            self.assertEqual(piped[-len(whole):], whole) # behind a header
            for name in ("y.raw", "y.raw.range", "whole.raw"):
                os.remove(name)

    def test_other_formats_commands_and_channels(self):
        self.noise("h.npy", 500, dtype="c8")
        self.noise("x.npy", 40000, dtype="c8")
        lags = ["--max-lag", "1000", "h.npy", "x.npy"]
        self.assertEqual(self.joined(1, "y.npy", *lags, command="correlate"),
                         self.joined(5, "y.npy", *lags, command="correlate"))
        raw = self.joined(3, "y.raw", "-o", "cf32_le", "h.npy", "x.npy", suffix=".raw")
        self.assertEqual(len(raw), 8 * 40499)
        self.write("h.txt", b"0.5\n0.25\n0.125\n")
        self.write("x.wav", wav_bytes(self.random.integers(-9000, 9000, (30000, 2))))
        self.assertEqual(self.joined(1, "y.wav", "h.txt", "x.wav", suffix=".wav"),
                         self.joined(4, "y.wav", "h.txt", "x.wav", suffix=".wav"))

    def test_more_shards_than_samples(self):
        self.write("h.txt", b"1\n")
        np.save("x.npy", np.arange(3, dtype="f4"))
        self.assertEqual(self.loaded(self.joined(5, "y.npy", "h.txt", "x.npy")).tolist(), [0, 1, 2])

    def test_mismatched_shards_are_refused(self):
        self.noise("h.npy", 10)
        self.noise("x.npy", 1000)
        self.noise("other.npy", 10)
        for k, n, name in ((1, 3, "a"), (2, 3, "b"), (3, 3, "c"), (2, 2, "half"), (1, 2, "first")):
            self.run_program("convolve", "--range", "%d/%d" % (k, n), "h.npy", "x.npy", name + ".npy")
        self.run_program("convolve", "--range", "2/3", "other.npy", "x.npy", "o.npy")
        self.fails("join", "y.npy", "a.npy", "c.npy", says=["samples 336 to 671 are missing before c.npy"])
        self.fails("join", "y.npy", "b.npy", "c.npy", says=["samples 0 to 335 are missing before b.npy"])
        self.fails("join", "y.npy", "a.npy", "b.npy", says=["samples 672 to 1008 are missing after b.npy"])
        self.fails("join", "y.npy", "a.npy", "b.npy", "half.npy", says=["half.npy: begins at sample 504, but b.npy ends"])
        self.fails("join", "y.npy", "a.npy", "b.npy", "b.npy", "c.npy", says=["b.npy: begins at sample 336, but b.npy"])
        self.fails("join", "y.npy", "a.npy", "o.npy", "c.npy", says=["a.npy and o.npy", "one result"])
        self.fails("join", "y.wav", "a.npy", "b.npy", "c.npy", says=["y.wav", "another format"])
        self.fails("join", "a.npy", "a.npy", "b.npy", "c.npy", says=["is the input"])
        self.fails("join", "y.npy", "x.npy", says=["x.npy.range is missing"])
        data = self.read("b.npy")
        self.write("b.npy", data[:-8])
        self.fails("join", "y.npy", "a.npy", "b.npy", "c.npy", says=["b.npy"])
        self.write("b.npy", data)
        self.write("b.npy.range", b"{}")
        self.fails("join", "y.npy", "a.npy", "b.npy", "c.npy", says=["b.npy.range", "not the record of a shard"])
        self.write("b.npy.range", b"\0\xff")
        self.fails("join", "y.npy", "a.npy", "b.npy", "c.npy", says=["b.npy.range", "not the record of a shard"])
        self.run_program("join", "y.npy", "first.npy", "half.npy")

    def test_shards_of_different_inputs_are_refused(self):
        self.write("h.txt", b"1\n2\n")
        self.noise("x.npy", 1000)
        self.run_program("convolve", "--range", "1/2", "h.txt", "x.npy", "a.npy")
        self.noise("x.npy", 1010)
        self.run_program("convolve", "--range", "2/2", "h.txt", "x.npy", "b.npy")
        self.fails("join", "y.npy", "a.npy", "b.npy", says=["one result"])

    def shards_of(self, inputs, *options, taps="h.npy", suffix=".npy"):
        """One shard of each input, in order."""
        names = ["s%d%s" % (k, suffix) for k in range(len(inputs))]
        for k, (x, name) in enumerate(zip(inputs, names)):
            self.run_program("convolve", *options, "--range", "%d/%d" % (k + 1, len(inputs)), taps, x, name)
        return names

    def test_shards_of_other_inputs_of_one_length_are_refused(self):
        """Small inputs are compared as a whole, long ones where all runs look."""
        self.noise("h.npy", 100)
        for n in (1000, 4000000):
            self.noise("monday.npy", n)
            x = np.load("monday.npy")
            np.save("tuesday.npy", 2 * x)
            x[n // 2] += 1
            np.save("spot.npy", x)
            others = ["tuesday.npy"] + ["spot.npy"] * (n == 1000)
            for other in others:
                for inputs in ((other, "monday.npy"), ("monday.npy", other), ("monday.npy", "monday.npy", other)):
                    said = self.fails("join", "y.npy", *self.shards_of(inputs), says=["inputs of one length", "copies"])
                    self.assertIn("s0.npy and s%d.npy" % (len(inputs) - 1 - (inputs[0] == other) * (len(inputs) - 2)), said)

    def test_copies_of_an_input_are_one_input(self):
        self.noise("h.npy", 100)
        self.noise("x.npy", 3000000)
        self.write("copy.npy", self.read("x.npy"))
        os.utime("copy.npy", (5, 5))
        self.run_program("join", "y.npy", *self.shards_of(["x.npy", "copy.npy", "x.npy"]))
        self.run_program("convolve", "--range", "1/1", "h.npy", "x.npy", "whole.npy")
        self.assertEqual(self.read("y.npy"), self.read("whole.npy"))

    def test_shards_whose_samples_have_changed_are_refused(self):
        self.noise("h.npy", 100)
        x = self.random.integers(-9000, 9000, (300000, 2))
        for suffix, more in ((".wav", ["-o", "i16"]), (".wav", ["-o", "i24"]), (".npy", []), (".raw", ["-o", "f32_be"]),
                             (".raw", ["-o", "u8"]), (".flac", ["-o", "i24"]), (".aiff", ["-o", "i16"])):
            with self.subTest(suffix=suffix, more=more):
                self.write("x.wav", wav_bytes(x))
                names = self.shards_of(["x.wav"] * 3, "-g", -30, *more, suffix=suffix)
                join = ["join"] + (["--channels", 2] if suffix == ".raw" else []) + ["y" + suffix]
                self.run_program(*join, *names)
                self.run_program("convolve", "-g", -30, *more, "--range", "1/1", "h.npy", "x.wav", "whole" + suffix)
                self.assertEqual(self.read("y" + suffix), self.read("whole" + suffix))
                os.remove("y" + suffix)
                if suffix == ".flac": # has sums of its own
                    continue
                data = self.read(names[1])
                for n, at in ((1000, len(data) // 2), (1, len(data) - 1), (1000, 500)):
                    with open(names[1], "r+b") as f:
                        f.seek(at)
                        f.write(bytes(b ^ 1 for b in data[at:at + n]))
                    self.fails(*join, *names, says=[names[1] + ": its samples have changed", "compute the shard again"])
                    self.write(names[1], data)
                self.run_program(*join, *names)
                os.remove("y" + suffix)

    def test_shards_compressed_with_loss_are_refused(self):
        """Before they are computed: what is read from them is not what was written."""
        self.noise("h.npy", 100)
        self.write("x.wav", wav_bytes(self.random.integers(-9000, 9000, (5000, 2))))
        for name in ("y.ogg", "y.OGA", "y.opus"):
            self.fails("convolve", "--range", "1/2", "h.npy", "x.wav", name, says=[name + ": is compressed with loss", ".flac"])
            self.assertFalse(os.path.exists(name) or os.path.exists(name + ".range"))
            self.run_program("convolve", "--mode", "same", "h.npy", "x.wav", name)

    def test_changed_shards_are_computed_again_after_they_were_removed(self):
        """--resume takes a shard as complete by its record, so join says what to do."""
        self.noise("h.npy", 100)
        self.noise("x.npy", 10000)
        names = self.shards_of(["x.npy"] * 3)
        with open(names[1], "r+b") as f:
            f.seek(3000)
            f.write(b"other")
        self.fails("join", "y.npy", *names, says=[names[1] + ": its samples have changed", "remove it and compute"])
        os.remove(names[1])
        self.run_program("convolve", "--resume", "--range", "2/3", "h.npy", "x.npy", names[1])
        self.run_program("join", "y.npy", *names)

    def test_records_of_another_kind_are_refused(self):
        self.noise("h.npy", 100)
        self.noise("x.npy", 1000)
        names = self.shards_of(["x.npy"] * 2)
        record = json.loads(self.read(names[1] + ".range"))
        record["kind"] = "partita part 1"
        del record["input"], record["digest"]
        self.write(names[1] + ".range", json.dumps(record).encode())
        self.fails("join", "y.npy", *names, says=names[1] + ".range: is not the record of a shard")

    def test_wrong_usage(self):
        self.write("h.txt", b"1\n")
        self.noise("x.npy", 100)
        for word in ("0/2", "3/2", "1", "1/2x", "-1/2", "a/b", "1/0", "1/-2", "1/+2", "1/ 2", " 1/2", "+1/2", "1/", "/2",
                     "1/2/3", "1/99999999999999999999"):
            self.fails("convolve", "--range", word, "h.txt", "x.npy", "y.npy", rc=2, says=["--range " + word, "K/N"])
        self.fails("convolve", "--range", "1/2", "--block", 64, "h.txt", "x.npy", "y.npy", rc=2, says=["--block"])
        self.fails("convolve", "--range", "1/2", "-f", "f32", "h.txt", "-", "y.npy", stdin=bytes(400), says=["length"])
        self.fails("join", "y.npy", rc=2, says=["OUT SHARD"])

    def test_outputs_that_are_not_files(self):
        self.write("h.txt", b"1\n")
        self.noise("x.npy", 100)
        for option in (["--range", "1/2"], ["--resume"]):
            self.fails("convolve", *option, "h.txt", "x.npy", "-", rc=2, says=[option[0], "standard output"])
            for name in ("/dev/null", "/dev/full"):
                self.fails("convolve", *option, "h.txt", "x.npy", name, says=[name, option[0], "file of its own"])
                self.assertFalse(os.path.exists(name + ".range"))

    def test_inputs_must_not_be_records(self):
        """Nor may other files have the names of records."""
        self.write("h.txt", b"1\n")
        self.write("y.raw.range", bytes(400))
        run = ("convolve", "-f", "f32")
        self.fails(*run, "--range", "1/1", "h.txt", "y.raw.range", "y.raw", says=["y.raw.range", "is the input"])
        self.write("x.raw", bytes(400))
        self.fails(*run, "--range", "1/1", "h.txt", "x.raw", "y.raw", says=["y.raw.range", "not the record of a shard"])
        self.run_program(*run, "h.txt", "y.raw.range", "y.raw")
        self.assertEqual(self.read("y.raw.range"), bytes(400))

    def test_old_records_are_removed(self):
        self.noise("h.npy", 10)
        self.noise("x.npy", 1000)
        share = ("convolve", "--range", "1/2", "h.npy", "x.npy", "a.npy")
        self.run_program("convolve", "--range", "2/2", "h.npy", "x.npy", "b.npy")
        os.symlink("a.npy", "link.npy")
        for command in (("convolve", "h.npy", "x.npy", "a.npy"), ("convolve", "--resume", "h.npy", "x.npy", "a.npy"),
                        ("convolve", "h.npy", "x.npy", "link.npy"), ("join", "a.npy", "whole.npy")):
            self.run_program("convolve", "--range", "1/1", "h.npy", "x.npy", "whole.npy")
            self.run_program(*share)
            with self.subTest(command=command):
                self.run_program(*command)
                self.assertFalse(os.path.exists("a.npy.range"))
                self.fails("join", "y.npy", "a.npy", "b.npy", says=["a.npy.range is missing"])

    def test_shards_of_different_tap_shapes_are_refused(self):
        """The same numbers are one filter of 1000 taps, or two of 500."""
        taps = self.random.standard_normal(1000).astype("f4")
        np.save("one.npy", taps)
        np.save("two.npy", taps.reshape(2, 500))
        self.noise("x.npy", 5000)
        slice_ = ["--first", 0, "--last", 4000]
        self.run_program("convolve", "--range", "1/2", *slice_, "one.npy", "x.npy", "a.npy")
        self.run_program("convolve", "--range", "2/2", *slice_, "two.npy", "x.npy", "b.npy")
        self.fails("join", "y.npy", "a.npy", "b.npy", says=["one result"])

    def plans(self, *arguments, **environment):
        """The plan as printed by -v: the instruction set and the last line."""
        lines = self.run_program("convolve", "-v", *arguments, env=environment).stderr.decode().splitlines()
        first = next(line for line in lines if "; cpu x" in line)
        return first.split()[-1], lines[-1]

    def test_shards_of_other_instruction_sets_are_refused(self):
        self.noise("h.npy", 500)
        self.noise("x.npy", 5000)
        run = ("convolve", "--range")
        files = ("h.npy", "x.npy")
        if self.plans(*files, "y.npy")[0] == self.plans(*files, "y.npy", PARTITA_CPU="c")[0]:
            self.skipTest("one processor level")
        self.run_program(*run, "1/2", *files, "a.npy")
        self.run_program(*run, "2/2", *files, "b.npy")
        self.run_program("join", "y.npy", "a.npy", "b.npy")
        self.run_program(*run, "2/2", "--threads", 3, *files, "b.npy")
        self.run_program("join", "y.npy", "a.npy", "b.npy")
        self.run_program(*run, "2/2", *files, "b.npy", env={"PARTITA_CPU": "c"})
        self.fails("join", "y.npy", "a.npy", "b.npy", says=["one result"])


class Resumed(Shards):
    def start(self, *arguments):
        environment = dict(os.environ, XDG_CACHE_HOME=self.folder + "/cache")
        return subprocess.Popen([rig.PROGRAM, "convolve", "--resume"] + list(map(str, arguments)), env=environment,
                                stderr=subprocess.PIPE)

    def noted(self, path):
        """The frames counted in the progress file; 0 without one. It is renamed into place, so it
        is never incomplete."""
        try:
            return int(json.loads(self.read(path))["done"])
        except FileNotFoundError:
            return 0

    def until_noted(self, child, path="y.npy.partial.range"):
        limit = time.time() + 60
        while not self.noted(path) and child.poll() is None and time.time() < limit:
            time.sleep(0.005)

    def test_killed_at_random_points(self):
        """Progress is saved once a second, first with the first segment; a long filter makes the
        run slow. The first run is killed as soon as it has saved progress; later ones may end before
        they are killed, also between the output's new name and the removal of its record."""
        self.noise("h.npy", 200000)
        self.noise("x.npy", 12000000)
        self.run_program("convolve", "--resume", "h.npy", "x.npy", "whole.npy")
        whole = self.read("whole.npy")
        self.assertFalse([name for name in os.listdir(".") if "partial" in name])
        killed = 0
        for attempt in range(20):
            child = self.start("h.npy", "x.npy", "y.npy")
            self.until_noted(child)
            if attempt:
                time.sleep(float(self.random.uniform(0, 0.1)))
            child.send_signal(signal.SIGKILL)
            child.wait()
            child.stderr.close()
            self.assertIn(child.returncode, (0, -signal.SIGKILL))
            if os.path.exists("y.npy"):
                break
            killed += 1
            self.assertGreater(self.noted("y.npy.partial.range"), 0)
        self.assertGreater(killed, 0)
        self.run_program("convolve", "--resume", "h.npy", "x.npy", "y.npy")
        self.assertEqual(self.read("y.npy"), whole)
        # A process that is killed while it writes a record leaves the record's temporary file, .NAME.XXXXXX.
        self.assertFalse([name for name in os.listdir(".") if name.startswith("y.npy.partial")])

    def killed(self, out="y.npy"):
        self.noise("h.npy", 200000)
        self.noise("x.npy", 12000000)
        child = self.start("h.npy", "x.npy", out)
        self.until_noted(child, out + ".partial.range")
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stderr.close()
        if not os.path.exists(out + ".partial"):
            self.skipTest("done before it was killed")

    def test_another_command_does_not_resume(self):
        self.killed()
        self.noise("h2.npy", 200000)
        self.fails("convolve", "--resume", "h2.npy", "x.npy", "y.npy", says=["y.npy.partial", "another command"])
        self.fails("convolve", "--resume", "-g", 1, "h.npy", "x.npy", "y.npy", says=["y.npy.partial", "another command"])
        with open("x.npy", "r+b") as f:
            before = f.read()[5000:5004]
            f.seek(5000)
            f.write(b"1234")
        self.fails("convolve", "--resume", "h.npy", "x.npy", "y.npy", says=["x.npy: has changed"])
        os.utime("x.npy", ns=(0, int(json.loads(self.read("y.npy.partial.range"))["input_time"])))
        self.fails("convolve", "--resume", "h.npy", "x.npy", "y.npy", says=["x.npy: has changed"])
        with open("x.npy", "r+b") as f:
            f.seek(5000)
            f.write(before)
        self.write("y.npy.partial", b"short")
        os.utime("x.npy", ns=(0, int(json.loads(self.read("y.npy.partial.range"))["input_time"])))
        self.fails("convolve", "--resume", "h.npy", "x.npy", "y.npy", says=["y.npy.partial", "shorter"])
        os.remove("y.npy.partial")
        self.run_program("convolve", "--resume", "h.npy", "x.npy", "y.npy")

    def test_resume_after_a_full_disk(self):
        self.noise("h.npy", 3000)
        self.noise("x.npy", 1000000)
        self.run_program("convolve", "--resume", "h.npy", "x.npy", "whole.npy")
        limit = lambda: (resource.setrlimit(resource.RLIMIT_FSIZE, (1000000, 1000000)),
                         signal.signal(signal.SIGXFSZ, signal.SIG_IGN))
        done = self.run_program("convolve", "--resume", "h.npy", "x.npy", "y.npy", rc=1, preexec_fn=limit)
        self.assertIn(b"File too large", done.stderr)
        self.assertFalse(os.path.exists("y.npy"))
        self.run_program("convolve", "--resume", "h.npy", "x.npy", "y.npy")
        self.assertEqual(self.read("y.npy"), self.read("whole.npy"))
        self.fails("convolve", "--resume", "h.npy", "x.npy", "/dev/full", says=["/dev/full", "file of its own"])

    def test_input_changing_while_it_is_read(self):
        self.noise("h.npy", 200000)
        for change in (-4000000, 4000000):
            self.noise("x.npy", 12000000)
            child = self.start("h.npy", "x.npy", "y.npy")
            self.until_noted(child)
            running = child.poll() is None
            os.truncate("x.npy", 48000128 + change)
            text = child.communicate()[1].decode()
            if running and child.returncode:
                self.assertIn("x.npy", text)
                self.assertFalse(os.path.exists("y.npy"))
            for name in ("y.npy", "y.npy.partial", "y.npy.partial.range"):
                if os.path.exists(name):
                    os.remove(name)

    def test_resumed_shard(self):
        self.noise("h.npy", 3000)
        self.noise("x.npy", 500000)
        self.run_program("convolve", "--range", "1/2", "--resume", "h.npy", "x.npy", "a.npy")
        self.run_program("convolve", "--range", "2/2", "h.npy", "x.npy", "b.npy")
        self.run_program("join", "y.npy", "a.npy", "b.npy")
        self.run_program("convolve", "--resume", "h.npy", "x.npy", "whole.npy")
        self.assertEqual(self.read("y.npy"), self.read("whole.npy"))

    def test_resumed_shard_has_the_sums_of_one_run(self):
        self.noise("h.npy", 200000)
        self.noise("x.npy", 12000000)
        child = self.start("--range", "1/2", "h.npy", "x.npy", "a.npy")
        self.until_noted(child, "a.npy.partial.range")
        child.kill()
        child.communicate()
        if not os.path.exists("a.npy.partial"):
            self.skipTest("done before it was killed")
        self.run_program("convolve", "--range", "1/2", "--resume", "h.npy", "x.npy", "a.npy")
        self.run_program("convolve", "--range", "2/2", "h.npy", "x.npy", "b.npy")
        self.run_program("join", "y.npy", "a.npy", "b.npy")

    def test_complete_shard_is_not_computed_again(self):
        """Requeued jobs run all their commands again. The mark shows that nothing was written."""
        self.noise("h.npy", 300)
        self.noise("x.npy", 100000)
        run = ("convolve", "--range", "1/2", "--resume", "h.npy", "x.npy", "a.npy")
        self.run_program(*run)
        whole = self.read("a.npy")
        marked = whole[:-4] + b"mark"
        self.write("a.npy", marked)
        said = self.run_program(*run).stderr.decode()
        self.assertIn("a.npy: is complete", said)
        self.assertEqual(self.read("a.npy"), marked)
        self.assertEqual(sorted(name for name in os.listdir(".") if name.startswith("a.npy")), ["a.npy", "a.npy.range"])
        for change in (lambda: os.truncate("a.npy", len(whole) - 4), lambda: os.remove("a.npy"),
                       lambda: os.remove("a.npy.range"), lambda: os.utime("x.npy", (1, 1)),
                       lambda: self.noise("h.npy", 300), lambda: self.noise("x.npy", 100000)):
            self.run_program(*run)
            with open("a.npy", "r+b") as f:
                f.seek(-4, os.SEEK_END)
                f.write(b"mark")
            change()
            self.assertNotIn("complete", self.run_program(*run).stderr.decode())
            self.assertNotEqual(self.read("a.npy")[-4:], b"mark")
        self.run_program(*run[:1], "--json", *run[1:]) # reports about samples, which it computes

    def test_unfinished_file_as_input_is_refused(self):
        self.write("h.raw", bytes(40))
        self.write("y.raw.partial", bytes(range(200)) * 2)
        before = self.read("y.raw.partial")
        os.link("y.raw.partial", "same.raw")
        run = ("convolve", "--resume", "-f", "f32", "--ir-format", "f32")
        for files in (("h.raw", "y.raw.partial"), ("y.raw.partial", "h.raw"), ("h.raw", "same.raw")):
            self.fails(*run, *files, "y.raw", says=["y.raw.partial: is the input " + files[files[0] == "h.raw"]])
            self.assertEqual(self.read("y.raw.partial"), before)
        os.remove("y.raw.partial")
        os.rename("same.raw", "y.raw.partial.range")
        self.fails(*run, "h.raw", "y.raw.partial.range", "y.raw", says=["y.raw.partial.range: is the input"])
        self.fails(*run, "h.raw", "h.raw", "y.raw", says=["y.raw.partial.range: is not the record of a shard"])
        self.assertEqual(self.read("y.raw.partial.range"), before)

    def test_other_files_are_not_continued(self):
        self.write("h.txt", b"1\n")
        self.noise("x.npy", 100)
        run = ("convolve", "--resume", "h.txt", "x.npy", "y.npy")
        self.write("y.npy.partial", b"someone else's")
        self.fails(*run, says=["y.npy.partial: is not empty", "y.npy.partial.range", "missing", "remove it"])
        self.assertEqual(self.read("y.npy.partial"), b"someone else's")
        os.rename("y.npy.partial", "other")
        os.symlink("other", "y.npy.partial")
        self.fails(*run, says=["y.npy.partial"])
        self.assertEqual(self.read("other"), b"someone else's")
        os.remove("y.npy.partial")
        os.mkfifo("y.npy.partial")
        self.fails(*run, says=["y.npy.partial"])
        os.remove("y.npy.partial")
        self.write("y.npy.partial", b"")
        self.run_program(*run)

    def test_progress_without_its_file_is_ignored(self):
        self.killed()
        os.remove("y.npy.partial")
        self.noise("x.npy", 1000)
        self.run_program("convolve", "--resume", "h.npy", "x.npy", "y.npy")
        self.assertFalse([name for name in os.listdir(".") if "partial" in name])

    def test_concurrent_runs_are_refused(self):
        self.noise("h.npy", 200000)
        self.noise("x.npy", 12000000)
        child = self.start("h.npy", "x.npy", "y.npy")
        self.until_noted(child)
        child.send_signal(signal.SIGSTOP)
        try:
            os.waitpid(child.pid, os.WUNTRACED) # all its threads are stopped now
            if os.path.exists("y.npy.partial"):
                before = os.stat("y.npy.partial").st_size
                done = self.run_program("convolve", "--resume", "h.npy", "x.npy", "y.npy", rc=1)
                self.assertIn(b"y.npy.partial: another run is writing this file", done.stderr)
                self.assertEqual(os.stat("y.npy.partial").st_size, before)
        finally:
            child.send_signal(signal.SIGCONT) # a stopped process cannot be waited for
        self.assertEqual(child.communicate()[1], b"")
        self.assertEqual(child.returncode, 0)
        self.write("z.npy.partial", b"")
        with open("z.npy.partial", "wb") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            self.fails("convolve", "--resume", "h.npy", "x.npy", "z.npy", says=["z.npy.partial: another run"])

    def test_another_plan_does_not_resume(self):
        self.killed()
        before = self.read("y.npy.partial.range")
        self.fails("convolve", "--resume", "h.npy", "x.npy", "y.npy", says=["y.npy.partial", "another plan"],
                   env={"PARTITA_CPU": "c"})
        self.assertEqual(self.read("y.npy.partial.range"), before)
        self.run_program("convolve", "--resume", "h.npy", "x.npy", "y.npy")

    def test_links_modes_and_permissions_of_outputs(self):
        self.write("h.txt", b"1\n")
        self.noise("x.npy", 100)
        run = ("convolve", "--resume", "h.txt", "x.npy")
        os.mkdir("far")
        self.write("far/real.npy", b"old")
        os.chmod("far/real.npy", 0o640)
        os.symlink("far/real.npy", "link.npy")
        self.run_program(*run, "link.npy")
        self.assertTrue(os.path.islink("link.npy"))
        self.assertEqual(len(np.load("far/real.npy")), 100)
        self.assertEqual(os.stat("far/real.npy").st_mode & 0o7777, 0o640)
        self.assertEqual(os.listdir("far"), ["real.npy"])
        os.symlink("nowhere.npy", "dangling.npy")
        self.fails(*run, "dangling.npy", says=["dangling.npy"])
        os.mkdir("folder.npy")
        self.fails(*run, "folder.npy", says=["folder.npy: is a directory"])
        demote = dict(user=65534, group=65534) if os.geteuid() == 0 else {}
        os.chmod(self.folder, 0o777)
        self.write("old.npy", b"old")
        os.chmod("old.npy", 0o444)
        self.fails(*run, "old.npy", says=["old.npy: cannot write: Permission"], **demote)
        self.assertEqual(self.read("old.npy"), b"old")

    def test_formats_that_cannot_be_resumed(self):
        self.write("h.txt", b"1\n")
        self.write("x.wav", wav_bytes(np.arange(100)))
        self.fails("convolve", "--resume", "h.txt", "x.wav", "y.flac", says=["--resume writes .wav, .npy and raw"])
        self.run_program("convolve", "--resume", "h.txt", "x.wav", "y.wav")
        self.run_program("convolve", "--threads", 2, "h.txt", "x.wav", "z.wav")
        self.assertEqual(self.read("y.wav"), self.read("z.wav"))


if __name__ == "__main__":
    rig.main()

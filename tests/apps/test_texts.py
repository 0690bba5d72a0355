#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Texts of the program: help, manual page, completions, version; `partita plan` and stored
measurements."""
import os
import re
import shutil
import subprocess

import numpy as np

import rig
import schemas
from rig import Case

COMMANDS = ("convolve", "correlate", "channelize", "pairs", "live", "control", "devices", "plan", "deconvolve", "identify", "layer",
            "design", "invert", "response", "help")


class Help(Case):
    def out(self, *arguments):
        done = self.run_program(*arguments)
        self.assertEqual(done.stderr, b"")
        return done.stdout.decode()

    def options(self, command):
        listed = self.out(command, "--help").split("\nExamples:")[0]
        return set(re.findall(r"^ .*?--([a-z0-9-]+)", listed, re.M))

    def test_help_is_on_standard_output(self):
        overview = self.out("help")
        self.assertEqual(overview, self.out("--help"))
        for command in COMMANDS:
            self.assertIn("partita " + command, overview)
            self.assertEqual(self.out("help", command), self.out(command, "--help"))
            self.assertEqual(self.out(command, "-h"), self.out(command, "--help"))

    def test_overview_is_in_columns(self):
        """All summaries start in the same column, on a line of their own after long operands."""
        lines = [l for l in self.out("help").splitlines() if l.startswith("  ")]
        self.assertEqual({l[40] != " " and l[39] == " " for l in lines if len(l) > 59}, {True}, lines)
        self.assertIn("\n" + " " * 40 + "runs a layer", self.out("help"))

    def test_no_space_ends_a_line(self):
        for command in COMMANDS:
            self.assertNotRegex(self.out(command, "--help"), r"(?m) $")

    def test_help_mentions_only_its_command(self):
        self.assertNotIn("for plan", self.out("convolve", "--help") + self.out("join", "--help"))
        self.assertNotIn("audio libraries", self.out("layer", "--help") + self.out("convolve", "--help"))
        self.assertIn("audio libraries", self.out("live", "--help"))

    def test_help_ignores_missing_operands(self):
        self.assertIn("--mode", self.out("convolve", "--help", "one"))

    def test_lines_are_short(self):
        for command in COMMANDS:
            for line in self.out(command, "--help").splitlines():
                self.assertLessEqual(len(line), 79, line)

    def test_every_option_works_as_documented(self):
        """Every option in the help is known: with a wrong value or none the error is never "no such
        option"."""
        for command in COMMANDS:
            self.assertIn("help", self.options(command))
            for option in self.options(command):
                done = subprocess.run([rig.PROGRAM, command, "--" + option], stderr=subprocess.PIPE,
                                      stdout=subprocess.DEVNULL, cwd=self.folder,
                                      env=dict(os.environ, XDG_CACHE_HOME=self.folder))
                self.assertNotIn(b"no such option", done.stderr, option)

    def test_operands_have_the_names_of_the_command(self):
        self.assertNotRegex(self.out("correlate", "--help"), r"\bIR\b")
        self.assertRegex(self.out("correlate", "--help"), r"TEMPLATE is raw")
        self.assertRegex(self.out("convolve", "--help"), r"\bIR\b")

    def test_no_blank_lines_in_a_row(self):
        for command in COMMANDS:
            self.assertNotIn("\n\n\n", self.out(command, "--help"))

    def test_version(self):
        self.assertRegex(self.out("--version"), r"^partita \d+\.\d+\.\d+\n$")
        self.assertEqual(self.out("-V"), self.out("--version"))

    def test_manual_has_every_option(self):
        page = self.out("help", "--man")
        plain = page.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "").replace("\\fI", "")
        for command in COMMANDS:
            self.assertIn("partita " + command, plain)
            for option in self.options(command):
                self.assertIn("--" + option, plain)
        for status in ("EXIT STATUS", ".B 0", ".B 1", ".B 2", ".B 3", ".B 4", ".B 141"):
            self.assertIn(status, page)

    def test_formats_are_named(self):
        page = self.out("help", "--man").replace("\\-", "-")
        for text in (page, self.out("convolve", "--help"), self.out("correlate", "--help")):
            for word in (".wav", ".npy", ".flac", ".raw", ".txt", ".sigmf-data", ".sigmf-meta"):
                self.assertIn(word, text)

    def test_every_command_has_examples(self):
        for command in (*COMMANDS, "join"):
            examples = self.out(command, "--help").split("\nExamples:")[1].split("\n\n")[0]
            self.assertEqual(len(re.findall(r"^  partita %s" % command, examples, re.M)), 3 + (command in ("convolve", "correlate", "design", "live")))

    def files_of_examples(self):
        rng = np.random.default_rng(1)
        for name, rate in (("hall.wav", 44100), ("voice.wav", 44100), ("voice48.wav", 48000), ("left.wav", 48000),
                           ("right.wav", 48000)):
            self.write(name, rig.wav_bytes(rng.integers(-900, 900, 500), rate=rate))
        self.write("one.txt", b"1\n")
        self.write("low-pass.txt", b"0.5\n0.5\n")
        self.write("room.conf", b"/convolver/new 1 2 64 1000\n/impulse/read 1 1 1 0 0 0 1 hall.wav\n"
                   b"/impulse/dirac 1 2 1 10\n")
        self.write("target.txt", b"20 3\n200 0\n20000 -2\n")
        self.run_program("convolve", "one.txt", "voice48.wav", "voice.flac")
        for name, n in (("burst", 50), ("capture", 500)):
            x = (rng.standard_normal(n) + 1j).astype("c8")
            np.save(name + ".npy", x)
            self.run_program("convolve", "--rate", "1M", "one.txt", name + ".npy", name + ".sigmf-data")
        self.write("channels.csv", b"name,centre,rate\nlow,-100k,25k\nhigh,200k,50k\n")
        self.write("channels.json", b'[{"name": "beacon", "frequency": "434.1M", "rate": 25000}]')
        self.write("in.cf32", self.read("capture.sigmf-data"))
        sweep = rng.integers(-9000, 9000, 3000)
        self.write("sweep.wav", rig.wav_bytes(sweep, rate=44100))
        self.write("recorded.wav", rig.wav_bytes(np.concatenate([np.zeros(110, int), sweep, np.zeros(400, int)]), rate=44100))
        for name, channels in (("song", 1), ("stereo", 2)):
            song = rng.integers(-9000, 9000, (50000, channels))
            for end, samples in (("", song), ("-in-room", song.sum(axis=1, keepdims=True) // 3)):
                self.write(name + end + ".wav", rig.wav_bytes(samples, rate=44100))
                np.save(name + end + ".npy", samples.T / 32768)
        click = np.pad(np.exp(-np.arange(4000) / 300), (100, 0)) * rng.standard_normal(4100)
        self.write("seat1.wav", rig.wav_bytes(click.astype("f8"), bits=64))
        self.write("seat2.wav", rig.wav_bytes(np.roll(click, 9).astype("f8"), bits=64))
        self.write("rew.txt", b"* Freq(Hz) SPL(dB)\n20 70\n200 75\n20000 74\n")
        for k in ("1", "2"):
            self.run_program("convolve", "--range", k + "/2", "hall.wav", "voice.wav", "wet-%s.wav" % k)
            self.run_program("correlate", "--range", k + "/2", "burst.npy", "capture.npy", "match-%s.npy" % k)
            self.run_program("convolve", "--format", "cf32", "--channels", 2, "--range", k + "/2", "one.txt", "in.cf32",
                             "out-%s.cf32" % k)
        np.save("record.npy", rng.standard_normal((3, 900)))
        np.savez("events.npz", quake=rng.standard_normal((3, 50)), blast=rng.standard_normal((3, 40)))
        for name, shape in (("x", (2, 4, 9)), ("w", (5, 4, 3)), ("gy", (2, 5, 7)), ("b", (5,))):
            np.save(name + ".npy", rng.standard_normal(shape).astype("f4"))

    def test_examples_of_the_manual_work(self):
        self.files_of_examples()
        page = self.out("help", "--man").replace("\\-", "-").split(".SH EXAMPLES")[1].split(".SH")[0]
        examples = re.findall(r"^\.B partita (.*)", page, re.M)
        self.assertEqual(len(examples), 3 * (len(COMMANDS) + 1) + 4)
        for example in examples:
            if example.startswith(("live", "control", "devices")):  # they need audio devices
                self.assertLessEqual(set(re.findall(r"--([a-z-]+)", example)), self.options(example.split()[0]))
                continue
            with self.subTest(example=example):
                done = subprocess.run(
                    ["bash", "-c", '"$0" ' + example, rig.PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    env=dict(os.environ, XDG_CACHE_HOME=self.folder))
                if b"built without" in done.stderr:
                    continue
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn(b"clipped;", done.stderr)

    def test_manual_is_correct_roff(self):
        self.write("partita.1", self.out("help", "--man").encode())
        checked = False
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-ww", "-Tascii", "-P-cbou", "partita.1"], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
            self.assertEqual(done.stderr, b"")
            self.assertIn("--resample-ir", done.stdout.decode())
            checked = True
        if shutil.which("mandoc"):
            done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", "partita.1"], stdout=subprocess.PIPE)
            said = [l for l in done.stdout.decode().splitlines() if "missing date" not in l]
            self.assertEqual(said, [])
            checked = True
        if not checked:
            self.skipTest("neither groff nor mandoc is installed")

    def test_bash_completes(self):
        self.write("c.bash", self.out("help", "--completion", "bash").encode())
        self.write("song.wav", b"")

        def complete(*words):
            script = ('source ./c.bash; compopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); '
                      '_partita; printf "%s\\n" "${COMPREPLY[@]}"')
            done = subprocess.run(["bash", "-c", script, "bash"] + list(words), stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
            self.assertEqual(done.stderr, b"")
            return done.stdout.decode().split()

        self.assertEqual(complete("partita", "conv"), ["convolve"])
        self.assertEqual(complete("partita", "convolve", "--mo"), ["--mode"])
        self.assertEqual(complete("partita", "convolve", "--mode", "v"), ["valid"])
        self.assertEqual(complete("partita", "convolve", "--engine", "cpu/p"), ["cpu/partitioned"])
        self.assertEqual(complete("partita", "convolve", "--matrix-order", ""), ["out,in", "in,out"])
        self.assertEqual(complete("partita", "convolve", "--format", "cu"), ["cu8", "cu16", "cu24", "cu32"])
        self.assertEqual(complete("partita", "correlate", "--max-l"), ["--max-lag"])
        self.assertEqual(complete("partita", "correlate", "--normalised="), ["--normalised=zero-mean"])
        self.assertEqual(complete("partita", "convolve", "son"), ["song.wav"])
        for command in COMMANDS:
            names = {word.split("=")[0] for word in complete("partita", command, "--")}
            self.assertEqual(names, {"--" + o for o in self.options(command)}, command)
        self.assertLess({"--error-reach", "--iq"}, set(complete("partita", "convolve", "--")))

    def test_zsh_and_fish_parse(self):
        self.write("_partita", self.out("help", "--completion", "zsh").encode())
        self.write("partita.fish", self.out("help", "--completion", "fish").encode())
        for text in (self.read("_partita"), self.read("partita.fish")):
            for word in (b"resample-ir", b"full same valid", b"correlate", b"cpu/gemm cpu/direct", b"zero-mean", b"error-reach",
                         b"iq"):
                self.assertIn(word, text)
        for shell, name in (("zsh", "_partita"), ("fish", "partita.fish")):
            if shutil.which(shell):
                subprocess.run([shell, "-n", name], check=True)


class Plan(Case):
    def test_explains(self):
        arguments = ("plan", "--taps", 4096, "--block", 256, "--latency", 4096, "--channels", 2)
        text = self.run_program(*arguments, "-v").stdout.decode()
        for word in ("cpu/direct", "cpu/overlap-save", "cpu/overlap-add", "cpu/partitioned", "chosen", "4096", "latency"):
            self.assertIn(word, text)
        self.assertIn("  cpu/overlap-add   no: works on bounded signals, not on streams\n", text)
        text = self.run_program(*arguments).stdout.decode()
        self.assertRegex(text, r"^cpu/overlap-save: a call of 256 frames takes about [0-9.]+ us on average and [0-9.]+ us "
                               r"at most; the output is delayed by 4096 frames\n")
        self.assertNotIn(" no: ", text)
        self.assertRegex(text, r"\n  6 more engines cannot be used; --verbose says why\n$")

    def test_json(self):
        live = schemas.load(self.run_program("plan", "--json", "--taps", 4096, "--block", 64).stdout)
        self.assertEqual((live["engine"], live["latency_frames"], live["call"]["frames"]), ("cpu/partitioned", 0, 64))
        self.assertGreaterEqual(live["call"]["worst"], live["call"]["mean"])
        whole = schemas.load(self.run_program("plan", "--json", "--taps", 4096, "--size", 100000, "-e", "direct").stdout)
        self.assertEqual((whole["engine"], whole["call"]), ("cpu/direct", None))
        self.assertIn("cpu/direct", "".join(whole["explanation"]))

    def test_types_are_those_asked_for(self):
        for signal, real in (("f32", "f32"), ("f64", "f64"), ("cf32", "f32"), ("cf64", "f64")):
            for taps, name in (("same", signal), ("real", real)):
                said = self.run_program("plan", "--type", signal, "--taps-type", taps).stdout.decode()
                self.assertIn("\nstream %s convolve 4096 %s taps" % (signal, name), said)

    def test_all_problem_options(self):
        for arguments in (["--size", 100000], ["--type", "cf32", "--taps-type", "real"], ["--type", "cf64"],
                          ["--type", "f64", "--stride", 4], ["--channels", 3, "--out-channels", 2],
                          ["--channels", 4, "--groups", 2], ["--engine", "direct"],
                          ["--latency", 0, "--taps", 64], ["--size", 5000, "--threads", 2]):
            with self.subTest(arguments=arguments):
                self.assertIn(b"chosen", self.run_program("plan", *arguments).stdout)

    def test_requested_engines_are_marked(self):
        said = lambda *more: self.run_program("plan", "--taps", 100, "--size", 5000, *more).stdout.decode()
        self.assertIn("; chosen by the cost model\n", said())
        self.assertIn("; the engine as asked, its sizes by the cost model\n", said("--engine", "direct"))
        self.assertIn("; as asked\n", said("--parts", "50,100"))
        self.assertIn("; the engine as asked, its sizes by the cost model\n", said("--engine", "blocks"))

    def test_a_block_alone_means_a_live_filter(self):
        """--block without --latency means latency 0; without both, any latency is allowed."""
        self.assertIn("latency at most 0;", self.run_program("plan", "--block", 64).stdout.decode())
        self.assertIn("latency at most 64;", self.run_program("plan", "--block", 64, "--latency", 64).stdout.decode())
        self.assertIn("any latency;", self.run_program("plan").stdout.decode())
        self.assertIn("latency at most 7;", self.run_program("plan", "--latency", 7).stdout.decode())

    def test_partitions_and_their_work_are_shown(self):
        text = self.run_program("plan", "--block", 64, "--taps", 480000).stdout.decode()
        self.assertRegex(text, r"cpu/partitioned .*latency 0  <- chosen")
        self.assertRegex(text, r"\n +head +0 \.\. \d+ +summed directly")
        levels = re.findall(r"\n +\d+ +(\d+) \.\. (\d+) +\d+ x \d+ ", text)
        self.assertEqual(levels[-1][1], "479999")
        self.assertRegex(text, r"a call of 64 frames takes [0-9.]+ us in the mean, [0-9.]+ us at worst")
        rows = re.findall(r"\n +(\w+) \|(.*)\|", text)
        self.assertEqual([name for name, _ in rows], ["head"] + [str(i) for i in range(len(levels))] + ["total"])
        self.assertEqual({len(row) for _, row in rows}, {64})
        self.assertIn("@", rows[-1][1])

    def test_threads_of_a_stream_are_printed(self):
        said = b"on one thread; 3 share it"
        self.assertIn(said, self.run_program("plan", "--block", 64, "--taps", 480000, "--threads", 3).stdout)
        self.assertNotIn(said, self.run_program("plan", "--block", 64, "--taps", 480000).stdout)

    def test_impossible_problems_fail_with_a_reason(self):
        for arguments, says in ((["--channels", 3, "--groups", 2], "groups"),
                                (["--engine", "cpu/overlap-save", "--latency", 0], "overlap-save")):
            self.fails("plan", *arguments, says=says, rc=2 if says == "groups" else 1)

    def test_library_messages_name_options(self):
        for arguments, says in ((["--groups", 3, "--channels", 4, "--out-channels", 2],
                                 "--groups 3 does not divide --channels 4 and --out-channels 2"),
                                (["--whole-blocks", "--block", 20], "multiple of 16 frames, not --block 20"),
                                (["--taps", 1 << 60], "--taps %d: at most" % (1 << 60)),
                                (["--device", "abacus"], '--device "abacus": no such device'),
                                (["--engine", "blocks"], "add --size")):
            with self.subTest(arguments=arguments):
                said = self.fails("plan", *arguments, says=says, rc=2 if says[:5] in ("--gro", "--tap") else 1)
                self.assertNotRegex(said, r"options\.|problem\.")

    def test_engines_of_another_device(self):
        self.fails("plan", "--engine", "cuda/direct", rc=2, says="--engine cuda/direct: needs --device cuda")
        self.fails("plan", "--engine", "direct", "--device", "cuda", rc=2, says="is not an engine of --device cuda")

    def test_build_without_cuda(self):
        """The message is not the dynamic linker's about a missing file."""
        done = subprocess.run([rig.PROGRAM, "plan", "--device", "cuda"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertNotIn(b"cannot open shared object file", done.stderr)
        if b"there is no libpartita-cuda.so" in done.stderr:
            self.assertIn(b"-Dcuda", done.stderr)

    def test_list_of_engine_names_is_complete(self):
        engines = set(re.findall(r"\bcpu/[a-z-]+", self.run_program("plan", "-v").stdout.decode()))
        said = self.fails("plan", "--engine", "cpu/magic", rc=2)
        self.assertEqual(engines, set(re.findall(r"cpu/[a-z-]+", said)) - {"cpu/magic"})

    def test_work_is_a_table(self):
        """Its figures are compared with counters in test_work.c."""
        text = self.run_program("plan", "--size", 60, "--taps", 36, "--parts", "6,12", "--table").stdout.decode()
        rows = {row.split()[0]: row.split()[1:] for row in text.splitlines()}
        self.assertEqual(rows.pop("engine"), "groups samples steps workspace reads writes".split())
        self.assertEqual(list(rows), ["cpu/overlap-save", *(f"cpu/overlap-add:{k}steps" for k in ("", "3-", "4-")),
                                      "cpu/blocks:divisions", "cpu/blocks:private-divisions"])
        one, all_at_once = rows["cpu/blocks:divisions"], rows["cpu/blocks:private-divisions"]
        self.assertEqual(one[:3] + one[4:], ["14", "17", "3", "60", str(95 + 14 * 17)])
        self.assertEqual(all_at_once[:3] + all_at_once[4:], ["14", "17", "2", "60", str(5 * 95 + 14 * 17)])
        self.assertEqual(int(all_at_once[3]) - int(one[3]), 2 * 384)
        text = self.run_program("plan", "--size", 60, "--taps", 36, "--parts", "6,12", "--stride", 2, "--table").stdout.decode()
        self.assertIn("\ncpu/blocks:divisions         no: cpu/blocks: parts of given sizes need a stride of 1\n", text)
        for more in ([], ["--size", 60, "--engine", "direct"], ["--size", 60, "--json"], ["--size", 60, "--up", 2]):
            self.fails("plan", "--taps", 36, *more, "--table", rc=2, says="--table needs --size")

    def test_one_thread_by_default(self):
        self.assertIn("cpu x1", self.run_program("plan", "--size", 1000).stdout.decode())

    def test_calibration_is_stored(self):
        done = self.run_program("plan", "--calibrate")
        path = self.folder + "/cache/partita/wisdom"
        self.assertIn(path.encode(), done.stdout)
        self.assertGreater(os.stat(path).st_size, 0)
        self.run_program("plan")
        home = dict(XDG_CACHE_HOME="", HOME=self.folder)
        done = self.run_program("plan", "--calibrate", env=home)
        self.assertTrue(os.path.exists(self.folder + "/.cache/partita/wisdom"))
        os.remove(self.folder + "/.cache/partita/wisdom")
        self.run_program("plan", "--calibrate", env=dict(XDG_CACHE_HOME="relative", HOME=self.folder))
        self.assertTrue(os.path.exists(self.folder + "/.cache/partita/wisdom"))
        self.assertFalse(os.path.exists("relative"))
        self.fails("plan", "--calibrate", env=dict(XDG_CACHE_HOME="", HOME=""), says="HOME")
        self.write("file", b"")
        self.fails("plan", "--calibrate", env=dict(XDG_CACHE_HOME=self.folder + "/file"), says="file/partita")

    def test_damaged_wisdom_files_are_ignored(self):
        os.makedirs("cache/partita")
        self.write("one.txt", b"1\n")
        for data in (b"", b"nonsense" * 1000, b"\0" * 5000):
            self.write("cache/partita/wisdom", data)
            done = self.run_program("convolve", "-f", "f32", "one.txt", "-", "-", stdin=b"\0" * 400)
            self.assertEqual((done.stdout, done.stderr), (b"\0" * 400, b""))
        os.remove("cache/partita/wisdom")
        os.mkdir("cache/partita/wisdom")
        self.run_program("convolve", "-f", "f32", "one.txt", "-", "-", stdin=b"\0" * 400)


if __name__ == "__main__":
    rig.main()

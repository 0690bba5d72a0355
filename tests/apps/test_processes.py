#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Several processes of mpirun (processes/): the bytes, statistics and peaks of one process, for any number of them; a
process that fails or is killed ends all, and --resume continues."""
import glob
import json
import os
import signal
import subprocess
import sys
import time
import unittest

import numpy as np

import rig
from rig import Case, wav_bytes

MPIRUN = sys.argv.pop(2)
# Open MPI: more processes than cores, as root.
LAUNCHER = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
            "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}


def needs_mpi(function):
    """The sanitizers report what MPI itself does."""
    return unittest.skipIf("SANITIZED" in os.environ or not MPIRUN, "needs MPI without sanitizers")(function)


@needs_mpi
class Processes(Case):
    def setUp(self):
        super().setUp()
        self.environment = {**os.environ, **LAUNCHER, "XDG_CACHE_HOME": self.folder + "/cache"}

    def noise(self, name, n, channels=1, dtype="f4"):
        x = self.random.standard_normal((channels, n) if channels > 1 else n)
        if dtype == "c8":
            x = x + 1j * self.random.standard_normal(x.shape)
        np.save(name, x.astype(dtype))

    def start(self, n, *arguments, shell=None):
        program = [rig.PROGRAM, *map(str, arguments)]
        if shell:
            program = ["sh", "-c", shell + ' exec "$@"', "sh", *program]
        return subprocess.Popen([MPIRUN, "-n", str(n), *program], env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def together(self, n, *arguments, rc=0, **more):
        """Runs n processes; returns what they wrote to standard output and the program's lines of standard error."""
        child = self.start(n, *arguments, **more)
        out, err = child.communicate(timeout=120)
        said = [line for line in err.decode().splitlines() if line.startswith("partita ")]
        self.assertEqual(child.returncode, rc, err.decode())
        return out.decode(), said

    def alone(self, *arguments):
        """The same by one process, as a part that is the whole."""
        return self.run_program(arguments[0], "--range", "1/1", *arguments[1:]).stdout.decode()

    def check(self, n, suffix, command, *arguments):
        self.alone(command, *arguments, "whole" + suffix)
        self.together(n, command, *arguments, "y" + suffix)
        self.assertEqual(self.read("y" + suffix), self.read("whole" + suffix), (n, command, arguments))
        self.assertEqual(glob.glob("y.*") + glob.glob(".y*"), ["y" + suffix])
        os.remove("y" + suffix)

    def check_statistics(self, n, *arguments):
        """Sums of energies are rounded in another order: n sums of squares, each exact to 2**-53 a term."""
        one, several = (json.loads(text) for text in (self.alone("convolve", "--json", *arguments, "whole.wav"),
                                                      self.together(n, "convolve", "--json", *arguments, "y.wav")[0]))
        self.assertAlmostEqual(several["rms"], one["rms"], delta=1e-12 * one["rms"])
        for name in ("rms", "out", "seconds", "times_real_time"):
            del one[name], several[name]
        self.assertEqual(several, one)
        self.assertEqual(self.read("y.wav"), self.read("whole.wav"))

    def check_peaks(self, n, *arguments):
        self.assertEqual(self.together(n, "correlate", *arguments)[0], self.alone("correlate", *arguments))

    def fails_together(self, n, *arguments, says, rc=1, **more):
        """One line of one process; no file stays."""
        before = set(os.listdir("."))
        said = self.together(n, *arguments, rc=rc, **more)[1]
        self.assertEqual(len(said), 1, said)
        for word in says:
            self.assertIn(word, said[0])
        self.assertEqual(set(os.listdir(".")) - {"cache"}, before - {"cache"})

    def wav_with_faults(self):
        """Samples that clip and that are not finite, in the input frames of all parts."""
        x = self.random.standard_normal((300000, 2)).astype("f4")
        x[::1000, 0] = np.nan
        x[70000:70100] = np.inf
        self.write("x.wav", wav_bytes(x, bits=32))
        self.write("h.wav", wav_bytes(self.random.standard_normal(2000).astype("f4") / 100, bits=32))


class Brief(Processes):
    """Few starts of mpirun, which take most of the time."""

    def test_bytes_of_one_process(self):
        self.noise("h.npy", 3000)
        self.noise("x.npy", 9000001)
        self.check(2, ".npy", "convolve", "h.npy", "x.npy") # two rounds of each process
        self.noise("h.npy", 50, dtype="c8")
        self.noise("x.npy", 4001, dtype="c8")
        self.check(5, ".raw", "correlate", "--max-lag", 700, "h.npy", "x.npy")

    def test_statistics_and_peaks(self):
        self.wav_with_faults()
        self.check_statistics(2, "-o", "i16", "--dither", "tpdf", "h.wav", "x.wav")
        self.noise("t.npy", 300)
        self.noise("s.npy", 200000)
        self.check_peaks(5, "--peaks", 30, "t.npy", "s.npy")
        # Every maximum is within the distance of the next and larger, then smaller: parts depend on the far ends.
        np.save("ramp.npy", 2 - abs(np.linspace(-1, 1, 200000)) + 1e-4 * abs(self.random.standard_normal(200000)))
        np.save("one.npy", np.ones(1))
        self.check_peaks(3, "--threshold", 0, "--min-distance", 400, "one.npy", "ramp.npy")

    def test_templates_are_shared(self):
        """Every process searches some of them and the longest, by which the matches have the bits of one process."""
        os.mkdir("bank")
        x = self.random.standard_normal((2, 30000))
        for k, length in enumerate((80, 200, 61, 80, 150)):
            h = self.random.standard_normal((2, length))
            np.save("bank/t%d.npy" % k, h)
            for at in (1000 + 4000 * k, 3000 + 4000 * k):
                x[:, at:at + length] += h
        np.save("x.npy", x.astype("f4"))
        arguments = ("correlate", "--templates", "bank", "--mad", 8, "--normalised=zero-mean", "--json", "x.npy")
        expected = self.run_program(*arguments).stdout.decode()
        self.assertGreaterEqual(expected.count('"peak"'), 10)
        for n in (2, 7):
            self.assertEqual(self.together(n, *arguments), (expected, []))
        self.assertEqual(self.together(3, *arguments[:-2], "--peaks", 4, "x.npy")[0],
                         self.run_program(*arguments[:-2], "--peaks", 4, "x.npy").stdout.decode())
        x = self.random.integers(-99, 100, (2, 9000000)).astype("i2")
        for at in range(2000, 9000000, 999999):  # in all three pieces, some at their ends
            x[:, at:at + 61] += (99 * np.load("bank/t2.npy")).astype("i2")
        np.save("long.npy", x)
        expected = self.run_program(*arguments[:-1], "long.npy").stdout.decode()
        self.assertGreaterEqual(expected.count('"t2"'), 9)
        for n in (2, 3, 6):  # which share three pieces by time, the last the templates, too
            self.assertEqual(self.together(n, *arguments[:-1], "long.npy"), (expected, []))
        np.save("bank/t2.npy", np.zeros((2, 61)))
        self.fails_together(3, *arguments, says=["bank: channel 0 of template t2 is constant"])
        self.fails_together(2, *arguments[:-1], "none.npy", says=["none.npy: cannot open"])
        self.fails_together(2, *arguments[:-1], "-", says=["mpirun: all processes read"], rc=2)

    def test_channels_are_shared(self):
        """Every process computes some of them; files and report are those of one, also where filters are the same."""
        self.noise("x.npy", 300001, dtype="c8")
        rows = ["name,centre,rate,bandwidth"] + ["c%d,%d,%s,%s" % (i, 7000 * i - 40000, ("8k", "12k")[i // 3 % 2], ("", "5k")[i % 2])
                                                for i in range(7)]
        self.write("t.csv", "\n".join(rows).encode())
        arguments = ("channelize", "--rate", "96k", "--frequency", "1M", "--json", "t.csv", "x.npy")
        one = json.loads(self.run_program(*arguments, "one").stdout)
        for n in (2, 3, 9):  # the last has more processes than channels
            said = self.together(n, *arguments, "y")[0]
            self.assertEqual(json.loads(said.replace("y/c", "one/c")), one)
            for name in sorted(os.listdir("one")):
                self.assertEqual(self.read("y/" + name), self.read("one/" + name), name)
            self.assertEqual(sorted(os.listdir("y")), sorted(os.listdir("one")))
        self.together(3, *arguments, "--resume", "y/{name}.cf32")
        self.together(2, *arguments, "--resume", "y/{name}.cf32")
        self.assertEqual(self.read("y/c6.cf32"), self.read("one/c6.sigmf-data"))
        os.mkdir("z")
        os.symlink("/dev/full", "z/c1.cf32")
        os.symlink("/dev/full", "z/c5.cf32")
        said = self.together(3, *arguments, "z/{name}.cf32", rc=1)[1]
        self.assertEqual([line.split("row ")[1][:6] for line in said], ["2 (c1)", "6 (c5)"])
        self.assertIn("5 of 7 outputs are complete", said[0])
        self.assertEqual(self.read("z/c6.cf32"), self.read("y/c6.cf32"))
        self.fails_together(3, *arguments[:-1], "none.npy", "z", says=["none.npy: cannot open"])
        self.fails_together(2, *arguments[:-1], "-", "z", says=["mpirun: all processes read"], rc=2)

    def test_a_fault_is_said_once(self):
        self.noise("h.npy", 300)
        self.noise("x.npy", 6000000)
        self.fails_together(3, "convolve", "h.npy", "missing.npy", "y.npy", says=["missing.npy: cannot open"])
        # Blocks of 512 bytes: the last process's part is beyond 20 MB, the shared memory of Open MPI (4 MB) is not.
        self.fails_together(3, "convolve", "h.npy", "x.npy", "y.npy", shell="trap '' XFSZ; ulimit -f 40000;",
                            says=["y.npy: cannot write"])

    def test_progress_is_recorded_and_printed(self):
        """After each segment of each process: two have two each. Percents are those of the job."""
        self.noise("h.npy", 8000)
        self.noise("x.npy", 4 * 2**20)
        child = self.start(2, "convolve", "--resume", "-e", "direct", "--progress", "1us", "h.npy", "x.npy", "y.npy")
        seen = []

        def recorded():
            try:
                seen.append(int(json.loads(self.read("y.npy.partial.range"))["done"]))
            except FileNotFoundError:
                pass
            return seen and seen[-1]

        until(recorded, child)
        self.assertIsNone(child.poll())
        said = child.communicate(timeout=60)[1].decode().splitlines()
        self.assertEqual(child.returncode, 0)
        self.assertEqual(seen[-1], 2**20)
        percents = [int(line.split()[2]) for line in said]
        self.assertEqual(percents, sorted(percents))
        self.assertEqual(percents[-1], 100)

    def test_a_fault_after_the_last_round(self):
        """Each process reads a file of its own that is not on the disk: zeros, for one round of four segments of 2**20
        frames each. That of the second one changes all the time, which it finds at the end."""
        self.write("h.txt", b"1\n")
        for rank in "01":
            os.mkdir(rank)
            self.write(rank + "/x.raw", b"")
            os.truncate(rank + "/x.raw", 2 * 4 * 2**20 * 2)
        child = self.start(2, "convolve", "--format", "i16", "../h.txt", "x.raw", "../y.npy",
                           shell="cd $OMPI_COMM_WORLD_RANK;")
        self.addCleanup(child.terminate)
        until(lambda: os.utime("1/x.raw"), child)
        said = child.communicate(timeout=20)[1].decode()
        self.assertRegex(said, "partita convolve: x.raw: changed while it was read")
        self.assertEqual(sorted(set(os.listdir(".")) - {"cache"}), ["0", "1", "h.txt"])

    def test_one_process_is_alone(self):
        """It writes to pipes, also where MPI itself has to tell that there is one."""
        self.write("h.txt", b"1\n")
        self.noise("x.npy", 9)
        for shell in ("", "unset OMPI_COMM_WORLD_SIZE;"):
            self.assertIn("null", self.together(1, "convolve", "--json", "h.txt", "x.npy", "/dev/null", shell=shell)[0])


class Launchers(Case):
    """What launchers of MPI say in the environment."""

    def test_one_process_is_alone(self):
        self.write("h.txt", b"1\n")
        np.save("x.npy", np.arange(9, dtype="f4"))
        run = ("convolve", "--block", 4, "h.txt", "x.npy", "-")
        alone = self.run_program(*run).stdout
        for said in ({"OMPI_COMM_WORLD_SIZE": "1", "PMIX_RANK": "0"}, {"PMI_SIZE": "1"},
                     {"PMIX_RANK": "0", "SLURM_STEP_NUM_TASKS": "1"}):
            self.assertEqual(self.run_program(*run, env=said).stdout, alone)


    def test_one_process_has_the_bytes_of_several(self):
        """Those of --range 1/1, for files."""
        self.write("x.wav", wav_bytes(self.random.integers(-9000, 9000, (70000, 2))))
        np.save("h.npy", self.random.standard_normal(20000).astype("f4"))
        for command in (["convolve"], ["correlate"], ["correlate", "--normalised"],
                        ["correlate", "--normalised=zero-mean"]):
            files = ["h.npy", "x.wav", "y.wav"]
            self.run_program(*command, "--range", "1/1", *files)
            whole = self.read("y.wav")
            for said in ({"OMPI_COMM_WORLD_SIZE": "1"}, {"PMI_SIZE": "1"}, {"PMIX_RANK": "0", "SLURM_STEP_NUM_TASKS": "1"}):
                self.run_program(*command, *files, env=said)
                self.assertEqual(self.read("y.wav"), whole)


class Absent(Case):
    @unittest.skipIf(MPIRUN, "the program has MPI")
    def test_without_mpi(self):
        """Processes that know nothing of each other must not all write the same file."""
        self.write("h.txt", b"1\n")
        np.save("x.npy", np.arange(9, dtype="f4"))
        run = ("h.txt", "x.npy", "y.npy")
        for said in ({"OMPI_COMM_WORLD_SIZE": "2"}, {"PMI_SIZE": "2"}, {"PMIX_RANK": "0"},
                     {"PMIX_RANK": "1", "SLURM_STEP_NUM_TASKS": "2"}):
            self.fails("convolve", *run, says=["no MPI", "--range"], env=said)
        self.run_program("convolve", "--range", "1/1", *run, env={"OMPI_COMM_WORLD_SIZE": "2"})


class Results(Processes):
    def test_any_number_of_processes(self):
        self.noise("h.npy", 3000)
        self.noise("x.npy", 150001)
        for options in ([], ["--mode", "same", "--stride", 3], ["--first", -1000, "--stride", 7], ["--up", 3],
                        ["--threads", 3, "--precision", "f64"], ["--first", 200000, "--last", 200010]):
            with self.subTest(options=options):
                for n in (2, 3, 5):
                    self.check(n, ".npy", "convolve", *options, "h.npy", "x.npy")

    def test_formats(self):
        self.wav_with_faults()
        self.noise("h.npy", 500, channels=2)
        self.noise("x.npy", 40000, channels=2)
        for n in (2, 5):
            self.check(n, ".wav", "convolve", "-o", "i24", "h.wav", "x.wav")
            self.check(n, ".raw", "convolve", "-o", "i16_be", "h.npy", "x.npy")
            self.check(n, ".npy", "convolve", "h.npy", "x.npy")
            self.check(n, ".npy", "correlate", "--normalised", "h.npy", "x.npy")
            self.check(n, ".npy", "correlate", "--normalised=zero-mean", "h.npy", "x.npy")
            self.check_statistics(n, "-o", "i16", "h.wav", "x.wav")

    def test_metadata(self):
        """The text chunks of a WAV follow its samples; those of a SigMF recording are in a file beside them."""
        info = b"INFOINAM\6\0\0\0tune\0\0"
        x = self.random.integers(-9000, 9000, (30001, 1))
        self.write("x.wav", wav_bytes(x, bits=24, after=b"LIST" + len(info).to_bytes(4, "little") + info))
        self.write("h.txt", b"0.5\n0.25\n")
        self.check(3, ".wav", "convolve", "h.txt", "x.wav")
        self.assertIn(b"tune", self.read("whole.wav"))

    def test_more_processes_than_samples(self):
        self.write("h.txt", b"1\n")
        np.save("x.npy", np.arange(3, dtype="f4"))
        self.check(5, ".npy", "convolve", "h.txt", "x.npy")

    def test_peaks(self):
        self.noise("t.npy", 300, dtype="c8")
        x = (self.random.standard_normal(400000) + 1j * self.random.standard_normal(400000)).astype("c8")
        x[1000:1300] += 9 * np.load("t.npy")
        x[301000:301300] += 9 * np.load("t.npy")
        np.save("s.npy", x)
        for n in (2, 3, 5):
            self.check_peaks(n, "--peaks", 2, "t.npy", "s.npy")
            self.check_peaks(n, "--threshold", 60, "--min-distance", 20, "t.npy", "s.npy")
            self.check_peaks(n, "--peaks", 3, "--json", "--normalised", "t.npy", "s.npy")
            self.check_peaks(n, "--peaks", 3, "--json", "--normalised=zero-mean", "t.npy", "s.npy")
            self.check_peaks(n, "--peaks", 3, "--threshold", 1e9, "t.npy", "s.npy")

    def check_peaks(self, n, *arguments):
        if "--json" not in arguments:
            return super().check_peaks(n, *arguments)
        one, several = ([json.loads(line) for line in text.splitlines()] for text in (
            self.alone("correlate", *arguments), self.together(n, "correlate", *arguments)[0]))
        self.assertEqual(several[:-1], one[:-1])
        for name in ("frames_in", "frames_out", "peak"):
            self.assertEqual(several[-1][name], one[-1][name])
        return self.assertAlmostEqual(several[-1]["rms"], one[-1]["rms"], delta=1e-12 * one[-1]["rms"])

    def test_annotations(self):
        self.noise("t.npy", 300)
        self.noise("s.npy", 200000)
        run = ("--peaks", 5, "--annotate", "found.sigmf-meta", "t.npy", "s.npy")
        self.alone("correlate", *run)
        alone = self.read("found.sigmf-meta")
        os.remove("found.sigmf-meta")
        self.together(3, "correlate", *run)
        self.assertEqual(self.read("found.sigmf-meta"), alone)


class Failures(Processes):
    def test_usage(self):
        self.noise("h.npy", 10)
        self.noise("x.npy", 1000)
        for options, says in ((["--block", 64], ["--block", "mpirun cannot split"]),
                              (["--gain", "auto"], ["--gain auto", "mpirun"])):
            said = self.together(3, "convolve", *options, "h.npy", "x.npy", "y.npy", rc=2)[1]
            self.assertEqual(len(said), 1, said)
            for word in says:
                self.assertIn(word, said[0])
        self.fails_together(2, "convolve", "--rate", "48k", "h.npy", "x.npy", "y.flac", says=["y.flac", ".wav, .npy and raw"])
        self.fails_together(2, "convolve", "h.npy", "x.npy", "/dev/null", says=["/dev/null", "mpirun", "file of its own"])
        self.fails_together(2, "convolve", "h.npy", "x.npy", "x.npy", says=["x.npy: is the input"])
        self.fails_together(2, "convolve", "h.npy", "x.npy", "none/y.npy", says=["none/y.npy: cannot create"])
        said = self.together(2, "correlate", "--peaks", 2, "h.npy", "x.npy", "y.npy", rc=2)[1]
        self.assertIn("mpirun with --peaks", said[0])

    def test_arguments_that_differ(self):
        """Each has an output of its own; --range 1/1 says that this is meant."""
        self.noise("h.npy", 10)
        self.noise("x.npy", 1000)
        own = 'set -- "$@" y$OMPI_COMM_WORLD_RANK.npy;'
        self.fails_together(2, "convolve", "h.npy", "x.npy", shell=own, says=["different arguments", "--range 1/1"])
        self.together(2, "convolve", "--range", "1/1", "h.npy", "x.npy", shell=own)
        self.assertEqual(self.read("y0.npy"), self.read("y1.npy"))

    def test_plans_that_differ(self):
        self.noise("h.npy", 500)
        self.noise("x.npy", 5000)
        first = self.run_program("plan", "--taps", 500).stdout
        if first == self.run_program("plan", "--taps", 500, env={"PARTITA_CPU": "c"}).stdout:
            self.skipTest("one processor level")
        self.fails_together(2, "convolve", "h.npy", "x.npy", "y.npy", says=["other inputs or plans"],
                            shell="test $OMPI_COMM_WORLD_RANK = 0 || export PARTITA_CPU=c;")

    def test_inputs_that_differ(self):
        """Recordings of one length, on disks of their own that should be one."""
        self.write("h.txt", b"1\n0.5\n")
        for rank in "01":
            os.mkdir(rank)
            self.noise(rank + "/x.npy", 300000)
        self.fails_together(2, "convolve", "../h.txt", "x.npy", "../y.npy", says=["other inputs or plans"],
                            shell="cd $OMPI_COMM_WORLD_RANK;")

    def test_a_fault_in_the_middle(self):
        """A sample that is refused, in the part of one process."""
        self.noise("h.npy", 300)
        x = self.random.standard_normal(2000000).astype("f4")
        for at in (100, 1000000, 1999999):
            y = x.copy()
            y[at] = np.nan
            np.save("x.npy", y)
            self.fails_together(3, "convolve", "--nan", "error", "h.npy", "x.npy", "y.npy", says=["x.npy: NaN or infinite"])
        self.fails_together(3, "correlate", "--nan", "error", "--peaks", 3, "h.npy", "x.npy", says=["x.npy: NaN or infinite"])

    def test_a_signal_leaves_no_file(self):
        self.noise("h.npy", 200000)
        self.noise("x.npy", 16000000)
        child = self.start(2, "convolve", "h.npy", "x.npy", "y.npy")
        until(lambda: glob.glob(".y.npy*"), child)
        os.kill(processes_of(child)[1], signal.SIGTERM)
        child.communicate(timeout=60)
        self.assertNotEqual(child.returncode, 0)
        self.assertEqual(sorted(set(os.listdir(".")) - {"cache"}), ["h.npy", "x.npy"])


def until(condition, child):
    limit = time.time() + 60
    while not condition() and child.poll() is None and time.time() < limit:
        time.sleep(0.005)


def processes_of(child):
    """The processes of the program that mpirun has started, in the order of their numbers."""
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as f:
                stat = f.read()
        except OSError:
            continue
        if int(stat.rpartition(")")[2].split()[1]) == child.pid and "partita" in stat:
            found.append(int(stat.split()[0]))
    return sorted(found)


class Resumed(Processes):
    """In double, which takes long enough to be killed."""
    INPUTS = ("--precision", "f64", "-o", "f32", "h.npy", "x.npy")
    RUN = ("convolve", "--resume", *INPUTS, "y.npy")

    def setUp(self):
        super().setUp()
        self.noise("h.npy", 200000)
        self.noise("x.npy", 24000000)

    def recorded(self):
        """Frames of each process."""
        try:
            return int(json.loads(self.read("y.npy.partial.range"))["done"])
        except FileNotFoundError:
            return 0

    def killed(self, n, which, signal_number=signal.SIGKILL):
        child = self.start(n, *self.RUN)
        until(lambda: len(processes_of(child)) == n, child)
        processes = processes_of(child)
        until(self.recorded, child)
        os.kill(processes[which], signal_number)
        child.communicate(timeout=60)
        self.assertNotEqual(child.returncode, 0)
        self.assertFalse(os.path.exists("y.npy"))
        return self.recorded()

    def test_a_killed_process_ends_all_and_resume_continues(self):
        self.run_program("convolve", "--range", "1/1", *self.INPUTS, "whole.npy")
        whole = self.read("whole.npy")
        for n, which in ((2, 0), (3, 1), (3, 2)):
            with self.subTest(n=n, which=which):
                done = self.killed(n, which)
                self.assertGreater(done, 0)
                # A mark in what is done stays: nothing is computed twice.
                at = 128 + 4 * (len(whole) // 4 // n + done // 2)
                with open("y.npy.partial", "r+b") as f:
                    f.seek(at)
                    f.write(b"mark")
                self.together(n, *self.RUN)
                data = self.read("y.npy")
                self.assertEqual(data[at:at + 4], b"mark")
                self.assertEqual(data[:at] + whole[at:at + 4] + data[at + 4:], whole)
                self.assertEqual(glob.glob("y.npy.*"), [])
                os.remove("y.npy")

    def test_what_does_not_continue(self):
        self.killed(3, 1)
        before = self.read("y.npy.partial.range")
        self.fails_together(2, *self.RUN, says=["y.npy.partial", "number of processes", "remove it"])
        said = self.run_program(*self.RUN, rc=1).stderr.decode()
        self.assertIn("y.npy.partial: was started by another command", said)
        self.assertEqual(self.read("y.npy.partial.range"), before)
        self.write("y.npy.partial", b"")
        self.fails_together(3, *self.RUN, says=["y.npy.partial: is shorter than its progress record"])
        self.noise("x.npy", 24000000)
        self.fails_together(3, *self.RUN, says=["x.npy: has changed"])

    def test_one_process_continues_as_by_itself(self):
        self.run_program("convolve", "--range", "1/1", *self.INPUTS, "whole.npy")
        self.killed(1, 0, signal.SIGTERM)
        self.run_program(*self.RUN)
        self.assertEqual(self.read("y.npy"), self.read("whole.npy"))


if __name__ == "__main__":
    rig.main()

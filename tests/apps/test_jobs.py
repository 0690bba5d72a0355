#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What jobs need: the recipes of docs/jobs.md, run as their schedulers would run them, progress in logs, threads by
the processors of the job, and the fields of --json."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np

import rig
import schemas
from rig import Case, wav_bytes

PAGE_PATH = pathlib.Path(sys.argv.pop(2)).resolve()
PAGE = PAGE_PATH.read_text()
PARTS = 8

# Runs the pods of a Job one after the other, pod 3 first with a disk that is full, and notes what is complete.
KUBECTL = r"""#!/bin/sh
set -e
if [ "$1" = wait ]; then
    for word; do :; done
    echo "$word" >>log
    exit
fi
sed -n '/- |$/,$ s/^              //p' "$3" >pod.sh
PARTS=$(sed -n 's/.*name: PARTS, value: "\([0-9]*\)".*/\1/p' "$3")
completions=$(sed -n 's/^  completions: //p' "$3")
JOB_COMPLETION_INDEX=0
export PARTS JOB_COMPLETION_INDEX
while [ "$JOB_COMPLETION_INDEX" -lt "${completions:-1}" ]; do
    [ "$JOB_COMPLETION_INDEX" != 3 ] || ! (trap '' XFSZ; ulimit -f 8; sh pod.sh)
    sh pod.sh
    echo "$JOB_COMPLETION_INDEX" >>log
    JOB_COMPLETION_INDEX=$((JOB_COMPLETION_INDEX + 1))
done
"""


def recipe(name):
    """The text of a file that the page shows."""
    return re.search(r"<!-- file: %s -->\n```\w+\n(.*?)```" % re.escape(name), PAGE, re.S).group(1)


class Recipes(Case):
    def setUp(self):
        super().setUp()
        self.write("ir.wav", wav_bytes(self.random.standard_normal(500).astype("f4"), bits=32))
        self.write("week.wav", wav_bytes(self.random.standard_normal((40000, 2)).astype("f4"), bits=32))
        os.mkdir("bin")
        os.symlink(os.path.abspath(rig.PROGRAM), "bin/partita")
        self.run_program("convolve", "--range", "1/1", "ir.wav", "week.wav", "whole.wav")

    def sh(self, *command, **variables):
        env = {**os.environ, "PATH": os.path.abspath("bin") + ":" + os.environ["PATH"],
               "XDG_CACHE_HOME": self.folder + "/cache", **variables}
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout.decode())
        return done.stdout.decode()

    def check(self):
        self.assertEqual(self.read("week-wet.wav"), self.read("whole.wav"))

    def test_slurm_array(self):
        """A task knows its number and the number of tasks, in any order; the second job waits for all."""
        self.write("filter.sh", recipe("filter.sh").encode())
        for k in (3, 8, 1, 2, 7, 6, 5, 4):
            self.sh("sh", "filter.sh", SLURM_ARRAY_TASK_ID=str(k), SLURM_ARRAY_TASK_COUNT=str(PARTS))
        again = self.sh("sh", "filter.sh", SLURM_ARRAY_TASK_ID="3", SLURM_ARRAY_TASK_COUNT=str(PARTS)) # requeued
        self.assertIn("part3.wav: is complete", again)
        self.sh("sh", "-c", re.search(r'--wrap "(.*)"$', PAGE, re.M).group(1))
        self.check()

    def test_kubernetes(self):
        """The page's commands; kubectl is a script that runs the pods of a Job."""
        for name in ("filter.yaml", "join.yaml"):
            self.write(name, recipe(name).encode())
        self.write("bin/kubectl", KUBECTL.encode())
        os.chmod("bin/kubectl", 0o755)
        commands = re.findall(r"^    (kubectl .*)$", PAGE, re.M)
        self.assertEqual(len(commands), 3)
        for command in commands:
            self.sh("sh", "-c", command)
        self.assertEqual(self.read("log").decode().split(), [*"01234567", "job/filter", "0"])
        self.check()

    def test_image(self):
        """tests/debian.sh makes the packages and installs them in a bare root; here only the names are compared."""
        source, text = PAGE_PATH.parent.parent, recipe("Dockerfile")
        self.assertTrue(os.access(source / re.search(r"^RUN (packaging/\S+) /debs$", text, re.M).group(1), os.X_OK))
        control = (source / re.search(r"build-dep .*\./(.*)", text).group(1) / "debian/control").read_text()
        self.assertIn(" -t " + re.search("image: (.*)", recipe("filter.yaml")).group(1) + " ", PAGE)
        for name in re.findall(r"/debs/(\w+)_\*", text):
            self.assertIn("Package: %s\n" % name, control)

    def test_mpi(self):
        """The script's command; test_processes.py runs it with several processes."""
        self.write("mpi.sh", recipe("mpi.sh").encode())
        self.write("bin/mpirun", b'#!/bin/sh\nexec "$@"\n')
        os.chmod("bin/mpirun", 0o755)
        self.sh("sh", "mpi.sh")
        self.check()

    def test_make(self):
        if not shutil.which("make"):
            self.skipTest("make is not installed")
        self.write("Makefile", recipe("Makefile").encode())
        self.sh("make", "-j2")
        self.check()
        os.remove("part3.wav")
        self.assertEqual(self.sh("make").count("partita convolve"), 1)
        self.check()

    def test_snakemake(self):
        if not shutil.which("snakemake"):
            self.skipTest("snakemake is not installed")
        self.write("Snakefile", recipe("Snakefile").encode())
        self.sh("snakemake", "--cores", "2", "--quiet", HOME=os.getcwd())
        self.check()


class Reports(Case):
    def setUp(self):
        super().setUp()
        np.save("h.npy", self.random.standard_normal(300).astype("f4"))
        np.save("x.npy", self.random.standard_normal(3000000).astype("f4"))

    def check_lines(self, lines):
        """Percents of the run's own results, which grow from 0 to 100; the time left is known after the first results."""
        found = [re.fullmatch(r"partita \w+: +(\d+) %, \d+\.\d s(, \d+ s left)?", line) for line in lines]
        self.assertTrue(all(found), lines)
        percents = [int(match[1]) for match in found]
        self.assertEqual(percents, sorted(percents))
        self.assertLess(percents[0], 40) # pieces of a third of the results
        self.assertEqual(percents[-1], 100)
        self.assertTrue(found[-1][2])

    def test_progress_is_the_share_of_the_run(self):
        """Of ranges and slices, also while the last results are computed, when all of IN has been read."""
        for more in (["--range", "1/8"], ["--range", "5/8"], ["--range", "8/8"], ["--first", 100, "--last", 400000],
                     ["--threads", 2], ["--mode", "valid", "--stride", 3], ["--up", 2], ["--first", 2900000]):
            with self.subTest(more=more):
                said = self.run_program("convolve", "-e", "direct", "--progress", "1us", *more, "h.npy", "x.npy", "y.npy")
                self.check_lines(said.stderr.decode().splitlines())

    def test_progress_is_printed_in_lines(self):
        """Pieces are larger than 100 frames, so every one is due."""
        said = self.run_program("convolve", "--progress", "1us", "h.npy", "x.npy", "y.npy").stderr.decode()
        lines = said.splitlines()
        self.assertGreater(len(lines), 2)
        self.check_lines(lines)
        self.assertEqual(self.run_program("convolve", "-q", "--progress", "1us", "h.npy", "x.npy", "y.npy").stderr, b"")
        self.assertEqual(self.run_program("convolve", "h.npy", "x.npy", "y.npy").stderr, b"")

    def test_threads_auto_takes_the_processors_of_the_job(self):
        def engine(*arguments):
            return self.run_program("convolve", *arguments, "h.npy", "x.npy", "y.npy").stdout

        engine("-t", "auto")
        two = self.read("y.npy")
        engine("-t", "2")
        self.assertEqual(self.read("y.npy"), two)
        text = self.run_program("plan", "-t", "auto", "--taps", "300", "--size", "3000000").stdout
        same = self.run_program("plan", "-t", str(len(os.sched_getaffinity(0))), "--taps", "300", "--size", "3000000").stdout
        self.assertEqual(text, same)

    def test_report(self):
        done = self.run_program("convolve", "--json", "h.npy", "x.npy", "y.npy")
        report = schemas.load(done.stdout)
        self.assertEqual(report["schema"], "partita-filter/1")
        for unknown in ("rate", "times_real_time"):
            self.assertIsNone(report[unknown])
        done = self.run_program("convolve", "--json", "--rate", "48k", "--block", "1000", "h.npy", "x.npy", "y.npy")
        report = schemas.load(done.stdout)
        self.assertEqual(report["rate"], 48000)
        self.assertAlmostEqual(report["times_real_time"], 3000000 / 48000 / report["seconds"])
        self.assertEqual(report["calls"]["frames"], 1000)


if __name__ == "__main__":
    rig.main()

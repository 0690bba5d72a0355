#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What jobs need: the recipes of docs/jobs.md, run as their schedulers would run them, progress in logs, threads by
the processors of the job, and the fields of --json."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np

import rig
from rig import Case, wav_bytes

PAGE = pathlib.Path(sys.argv.pop(2)).read_text()
PARTS = 8


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
        env = {**os.environ, "PATH": os.path.abspath("bin") + ":" + os.environ["PATH"], **variables}
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout.decode())
        return done.stdout.decode()

    def check(self):
        self.assertEqual(self.read("week-wet.wav"), self.read("whole.wav"))

    def test_slurm_array(self):
        """A task knows its number and the number of tasks, in any order; the second job waits for all."""
        self.write("filter.sh", recipe("filter.sh").encode())
        self.write("join.sh", recipe("join.sh").encode())
        for k in (3, 8, 1, 2, 7, 6, 5, 4):
            self.sh("sh", "filter.sh", SLURM_ARRAY_TASK_ID=str(k), SLURM_ARRAY_TASK_COUNT=str(PARTS))
        self.sh("sh", "join.sh")
        self.check()

    def test_kubernetes_index(self):
        self.write("task.sh", recipe("kubernetes.sh").encode())
        for k in range(PARTS):
            self.sh("sh", "task.sh", JOB_COMPLETION_INDEX=str(k))
        self.run_program("join", "week-wet.wav", *("part%d.wav" % k for k in range(1, PARTS + 1)))
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

    def test_progress_is_printed_in_lines(self):
        """Pieces are larger than 100 frames, so every one is due."""
        said = self.run_program("convolve", "--progress", "1us", "h.npy", "x.npy", "y.npy").stderr.decode()
        lines = said.splitlines()
        self.assertGreater(len(lines), 2)
        for line in lines:
            self.assertRegex(line, r"^partita convolve: +\d+ %, \d+\.\d s, \d+ s left$")
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

    def test_fields_of_the_report_are_those_of_the_page(self):
        table = PAGE[PAGE.index("| field |"):]
        listed = [name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])]
        done = self.run_program("convolve", "--json", "h.npy", "x.npy", "y.npy")
        report = json.loads(done.stdout)
        self.assertEqual(list(report), listed)
        self.assertEqual(report["schema"], "partita-filter/1")
        for unknown in ("rate", "times_real_time"):
            self.assertIsNone(report[unknown])
        done = self.run_program("convolve", "--json", "--rate", "48k", "--block", "1000", "h.npy", "x.npy", "y.npy")
        report = json.loads(done.stdout)
        self.assertEqual(report["rate"], 48000)
        self.assertAlmostEqual(report["times_real_time"], 3000000 / 48000 / report["seconds"])
        self.assertEqual(report["calls"]["frames"], 1000)


if __name__ == "__main__":
    rig.main()

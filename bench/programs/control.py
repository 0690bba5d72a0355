#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the control of tasks and copies cost in a stream, as a share of its time: perf samples which function runs while
bench_control processes frames. Multiply-adds and transforms are the functions of ARITHMETIC; all else that the stream's
calls execute, memmove of the C library included, is control or a copy. Prints two rows a case; without
perf only the head of the table.
    bench/programs/control.py BUILD [--quick]"""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import rows as bench_rows

ARITHMETIC = re.compile(r"k_(fir|cmac)\w*|fft_\w+|run_leaves|(forward|inverse)_nodes")
TAPS = (4800,) if "--quick" in sys.argv else (4800, 48000)
if len(sys.argv) < 2:
    sys.exit("usage: control.py BUILD [--quick]")
BUILD = pathlib.Path(sys.argv[1]).resolve()


def sample(taps, folder):
    """Time of a frame in ns, its spread, and the number of samples of each function of a user's program."""
    control, data = f"{folder}/control", f"{folder}/samples"
    os.mkfifo(control)
    # The descriptor 9 of the shell is the profiler's control.
    words = f"exec 9>{control}; exec {BUILD}/bench/bench_control {taps} 9"
    printed = subprocess.run(["perf", "record", "-q", "-D", "-1", "--control", f"fifo:{control}", "-F", "5000", "-e",
                              "cpu-clock:u", "-o", data, "sh", "-c", words], check=True, capture_output=True, text=True)
    script = subprocess.run(["perf", "script", "-i", data, "-F", "ip,sym"], check=True, capture_output=True, text=True)
    os.unlink(control)
    ns, spread = printed.stdout.split()
    return float(ns), spread, collections.Counter(line.split()[-1] for line in script.stdout.splitlines() if line.split())


def main():
    print(bench_rows.HEADER)
    if shutil.which("perf") is None:
        print("perf is not installed", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder:
        for taps in TAPS:
            ns, spread, counts = sample(taps, folder)
            arithmetic = sum(n for name, n in counts.items() if ARITHMETIC.fullmatch(name))
            share = 1 - arithmetic / counts.total()
            print(f"mono-b64-t{taps},cpu/partitioned,1,{ns:.5g},{spread},,,", flush=True)
            print(f"mono-b64-t{taps},control-and-copies,1,{ns * share:.5g},{spread},,,", flush=True)


main()

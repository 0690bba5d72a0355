#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Filters a file of 4 GiB with the program, on all cores. Contenders are the same filter over a signal in memory by
partita_convolve, and cp, which is a bound for any program that reads one file and writes another. Prints rows as the
other benchmarks do: medians of three runs. Answers are checked against SciPy in float64 at three positions.
    bench/programs/long_file.py BUILD [--quick]     (--quick: 256 MiB)"""
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import rows as bench_rows
import scipy.signal

TAPS = 65536
BUILD = pathlib.Path(sys.argv[1])
FRAMES = 2**26 if "--quick" in sys.argv else 2**30
IN_MEMORY = 2**26
RUNS = 3


def signal_at(first, count):
    """Samples of the signal, which repeats one random period of 2^22 samples."""
    return np.take(PERIOD, range(first, first + count), mode="wrap")


def error_of(outputs, first):
    """Relative L2 distance of the outputs that begin at `first` from SciPy's in float64."""
    begin = max(first - TAPS + 1, 0)
    x = signal_at(begin, first - begin + len(outputs)).astype(np.float64)
    expected = scipy.signal.oaconvolve(x, TAPS_H.astype(np.float64))[first - begin:first - begin + len(outputs)]
    return float(np.linalg.norm(outputs - expected) / np.linalg.norm(expected))


def run_command(words, folder):
    """Seconds and peak resident bytes of a command. Earlier writes are flushed, so that it need not wait for them."""
    pathlib.Path(f"{folder}/out.raw").unlink(missing_ok=True)
    os.sync()
    begin, peak = time.monotonic(), 0
    child = subprocess.Popen(words)
    while child.poll() is None:
        try:
            lines = pathlib.Path(f"/proc/{child.pid}/status").read_text().splitlines()
            peak = max([peak] + [int(line.split()[1]) for line in lines if line.startswith("VmHWM")])
        except OSError:
            pass
        time.sleep(0.01)
    if child.returncode:
        sys.exit(f"{words[0]} failed with status {child.returncode}")
    return time.monotonic() - begin, 1024 * peak


def run_file(folder):
    seconds, peak = run_command([str(BUILD / "apps/partita"), "convolve", "--quiet", "--threads", str(os.cpu_count()),
                                 "--format", "f32le", "--rate", "48000", f"{folder}/ir.npy", f"{folder}/in.raw",
                                 f"{folder}/out.raw"], folder)
    y = np.memmap(f"{folder}/out.raw", np.float32, "r")
    if len(y) != FRAMES + TAPS - 1:
        sys.exit(f"{len(y)} samples came out")
    return seconds / FRAMES, peak, max(error_of(np.array(y[at:at + 4096]), at) for at in PLACES)


def run_copy(folder):
    seconds, _ = run_command(["cp", f"{folder}/in.raw", f"{folder}/out.raw"], folder)
    return seconds / FRAMES, 0, 0


def run_memory(library, x, y):
    begin = time.monotonic()
    status = library.partita_convolve_sized(0, y.ctypes.data_as(ctypes.c_void_p), x.ctypes.data_as(ctypes.c_void_p),
                                      ctypes.c_size_t(len(x)), TAPS_H.ctypes.data_as(ctypes.c_void_p),
                                      ctypes.c_size_t(TAPS), None, None, ctypes.c_size_t(0))
    seconds = time.monotonic() - begin
    if status:
        sys.exit(f"partita_convolve: status {status}")
    return seconds / len(x), 0, error_of(y[200000:204096], 200000)


random = np.random.default_rng(1)
PERIOD = random.standard_normal(2**22).astype(np.float32)
TAPS_H = (random.standard_normal(TAPS) / TAPS).astype(np.float32)
PLACES = [200000, FRAMES // 2 + 12345, FRAMES - 4096]
rows = {"partita": [], "cp": [], "in-memory": []}
with tempfile.TemporaryDirectory(dir=BUILD) as folder:
    np.save(f"{folder}/ir.npy", TAPS_H)
    with open(f"{folder}/in.raw", "wb") as file:
        for _ in range(FRAMES // len(PERIOD)):
            PERIOD.tofile(file)
    library = ctypes.CDLL(str(BUILD / "lib/libpartita.so"))
    x, y = signal_at(0, IN_MEMORY), np.zeros(IN_MEMORY + TAPS - 1, np.float32)
    for _ in range(RUNS):
        rows["partita"].append(run_file(folder))
        rows["cp"].append(run_copy(folder))
        rows["in-memory"].append(run_memory(library, x, y))

print(bench_rows.HEADER)
for name, runs in rows.items():
    bench_rows.print_row("file-4G-t65536", name, os.cpu_count(), [seconds for seconds, _, _ in runs],
                         max(error for _, _, error in runs), max(peak for _, peak, _ in runs))

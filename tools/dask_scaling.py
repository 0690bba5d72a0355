#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures partita.dask on a scheduler and worker processes of this machine, and computes from that how long a year of
samples takes on many machines. Needs the environment of tools/python_env.sh, an idle machine of two cores or more, and a
minute.

    build-ci/python/bin/python tools/dask_scaling.py measure FILE     writes FILE, JSON
    build-ci/python/bin/python tools/dask_scaling.py table FILE       prints the tables of docs/many-machines.md
"""
import argparse
import contextlib
import heapq
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

TAPS = 2**16                    # of the filter whose times are measured
CHUNKS = (2**20, 2**22, 2**24, 2**26)  # samples of f32
YEAR = 365 * 86_400 * 100_000   # samples: a year at 100 kHz
WORKERS = (1, 10, 100, 1000)
# What a cluster is assumed to have, since one machine cannot show it: bytes per second of a worker's network, and the
# seconds until data begin to arrive there.
NETWORK, LATENCY = 1.25e9, 1e-3


def noise(block_info=None):
    """A chunk of the signal, made where it is needed."""
    shape, number = block_info[None]["chunk-shape"], block_info[None]["chunk-location"][0]
    return np.random.default_rng(number).standard_normal(shape, np.float32)


def last_sample(chunk):
    return chunk[-1:]


def filtered(chunks, size, taps):
    """A filtered signal of so many chunks, of which one sample each is kept, so that results need not be stored."""
    import dask.array as da

    from partita import dask as parallel

    x = da.map_blocks(noise, chunks=((size,) * chunks,), dtype=np.float32, meta=np.empty(0, np.float32))
    y = parallel.convolve(x, np.ones(taps, np.float32), slice(0, chunks * size), parts=(taps, min(size, 4 * TAPS)))
    return y.map_blocks(last_sample, chunks=((1,) * chunks,), dtype=np.float32)


@contextlib.contextmanager
def cluster(workers):
    """A client of a scheduler and workers with a thread each, all of them processes."""
    import distributed

    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "scheduler.json")
        common = ["--scheduler-file", str(file), "--host", "127.0.0.1", "--no-dashboard"]
        words = [["distributed.cli.dask_scheduler", "--port", "0"]]
        words += [["distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", "--memory-limit", "0",
                   "--local-directory", folder]] * workers
        with contextlib.ExitStack() as stack:
            for word in words:
                child = subprocess.Popen([sys.executable, "-m", *word, *common], stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"})
                stack.callback(child.wait)
                stack.callback(child.terminate)
            with distributed.Client(scheduler_file=str(file), timeout=60) as client:
                client.wait_for_workers(workers, timeout=60)
                yield client


def cpu_seconds(dask_scheduler):
    return time.process_time()


def run(client, array):
    """Seconds of a run, and the seconds that the scheduler computed meanwhile."""
    before = client.run_on_scheduler(cpu_seconds)
    begin = time.perf_counter()
    client.compute(array).result(timeout=100)
    return time.perf_counter() - begin, client.run_on_scheduler(cpu_seconds) - before


def measure(path):
    import dask

    found = {"taps": TAPS}
    begin = time.perf_counter()
    tasks = len(filtered(50_000, 2**16, 11).__dask_graph__())
    found["build"] = {"tasks": tasks, "seconds": time.perf_counter() - begin}
    with cluster(1) as client:
        run(client, filtered(10, 2**20, TAPS))
        found["one"] = run(client, filtered(100, 2**20, TAPS))[0]
        chunks = 2500
        array = filtered(chunks, 16, 3)
        (array,) = dask.optimize(array)
        found["tasks"] = len(array.__dask_graph__())
        found["run"], found["scheduler"] = run(client, array)
    with cluster(2) as client:
        run(client, filtered(20, 2**20, TAPS))
        found["two"] = run(client, filtered(100, 2**20, TAPS))[0]
    found["chunks"] = {}
    for size in CHUNKS:
        array = filtered(3, size, TAPS)
        array.compute(scheduler="synchronous")  # modules are imported, plans are made
        begin = time.perf_counter()
        array.compute(scheduler="synchronous")
        found["chunks"][size] = (time.perf_counter() - begin) / 3
    path.write_text(json.dumps(found, indent=1) + "\n")


def simulate(chunks, workers, task, overhead, halo):
    """Seconds of a run. One scheduler serves one task at a time, `overhead` seconds each. A chunk has three of them, which
    read it, cut the next one's halo and filter it; they go to the worker that is free first, which waits for the halo of
    the chunk before and then computes for `task` seconds."""
    free = [0.0] * workers
    clock = 0.0
    for _ in range(chunks):
        clock += 3 * overhead
        begin = max(clock, heapq.heappop(free))
        heapq.heappush(free, begin + LATENCY + halo / NETWORK + task)
    return max(free)


def spoken(seconds):
    for unit, name in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.1f} s"


def table(path):
    found = json.loads(path.read_text())
    overhead = found["scheduler"] / found["tasks"]
    print(f"""| measured | |
|---|---|
| graph of {found['build']['tasks']} tasks, built | {found['build']['seconds']:.1f} s |
| a run of {found['tasks']} tasks that compute next to nothing, for each task | {found['run'] / found['tasks'] * 1e6:.0f} us |
| of that, the scheduler's processor time | {overhead * 1e6:.0f} us |
| 100 chunks of 2^20 samples, one worker | {found['one']:.2f} s |
| the same, two workers | {found['two']:.2f} s, {found['one'] / found['two']:.2f} times as fast |""")
    for size, seconds in found["chunks"].items():
        print(f"| a chunk of 2^{int(size).bit_length() - 1} samples, made and filtered | {seconds * 1e3:.0f} ms |")
    print("\n| chunk |" + "".join(f" {n} worker{'s' * (n > 1)} |" for n in WORKERS) + "\n|---|" + "---|" * len(WORKERS))
    for size, seconds in found["chunks"].items():
        chunks = -(-YEAR // int(size))
        cells = []
        for workers in WORKERS:
            total = simulate(chunks, workers, seconds, overhead, 4 * found["taps"])
            cells.append(f" {spoken(total)}, {100 * chunks * seconds / (workers * total):.0f} % |")
        print(f"| 2^{int(size).bit_length() - 1} |" + "".join(cells))


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("what", choices=("measure", "table"))
    arguments.add_argument("file", type=pathlib.Path)
    given = arguments.parse_args()
    {"measure": measure, "table": table}[given.what](given.file)

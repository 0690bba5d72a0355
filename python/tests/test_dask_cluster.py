# SPDX-License-Identifier: MIT
"""partita.dask on a scheduler and four worker processes of this machine, some of which are killed, stopped or run out of
memory: results are complete and have the bits of one process. Long runs: with PARTITA_SLOW=1."""
import contextlib
import os
import pathlib
import signal as signals
import subprocess
import sys
import time

import numpy as np
import pytest
import signal_oracle as oracle
from test_signal_templates import archive

da = pytest.importorskip("dask.array", exc_type=ImportError)
distributed = pytest.importorskip("distributed", exc_type=ImportError)
import dask  # noqa: E402

from partita import dask as parallel  # noqa: E402
from partita import signal  # noqa: E402
from partita._signal import templates  # noqa: E402

pytestmark = pytest.mark.skipif(not os.environ.get("PARTITA_SLOW"), reason="a long run: PARTITA_SLOW=1")
SECONDS = 90  # for any wait; runs take a few
# What is minutes by default: how long a worker may be silent, and a connection to it. A hundred kilobytes of results stay
# in a worker's memory; it is killed at 95 % of its limit.
SETTINGS = {"distributed.scheduler.worker-ttl": "10s", "distributed.comm.timeouts.tcp": "12s",
            "distributed.comm.timeouts.connect": "12s", "distributed.worker.memory.target": 1e-4}


@contextlib.contextmanager
def cluster(workers):
    """A client of a new cluster, whose workers write all results but the last ones to disk."""
    with (dask.config.set(SETTINGS),
          distributed.LocalCluster(n_workers=workers, threads_per_worker=1, host="127.0.0.1", memory_limit="1GB",
                                   dashboard_address="127.0.0.1:0") as made,
          distributed.Client(made, timeout=SECONDS) as client):
        yield client


@pytest.fixture(scope="module")
def shared():
    with cluster(4) as client:
        yield client


@pytest.fixture
def client(shared):
    """The cluster of all tests, with all workers."""
    shared.wait_for_workers(4, timeout=SECONDS)
    return shared


def slowly(chunk):
    """A source that takes its time, so that a run can be disturbed in the middle."""
    time.sleep(0.1)
    return chunk


def problem(seed):
    """Taps in several parts, and a signal in chunks. Another seed for each test: a cluster knows what it has computed."""
    rng = np.random.default_rng(seed)
    x, h = oracle.noise(rng, 100_000, "f4"), oracle.noise(rng, 5000, "f4")
    return parallel.convolve(da.from_array(x, chunks=2000).map_blocks(slowly, dtype="f4"), h, parts=(1300, 1000))


def check(y, seed):
    """The result has the bits of one process."""
    assert y.tobytes() == problem(seed).compute(scheduler="threads", num_workers=16).tobytes()


def wait_for(condition):
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "nothing came of it"
        time.sleep(0.02)


def in_memory(dask_scheduler):
    return sum(task.state == "memory" for task in dask_scheduler.tasks.values())


def spilled(dask_worker):
    return len(dask_worker.data.slow)


def test_results_are_spilled(client):
    y = client.persist(problem(1))
    distributed.wait(y, timeout=SECONDS)
    assert sum(client.run(spilled).values()) > 10
    check(client.compute(y).result(timeout=SECONDS), 1)


def test_templates_are_searched(client, monkeypatch):
    x, events, search = archive()
    monkeypatch.setattr(templates, "_PIECE", 6000)
    found = signal.match_templates(da.from_array(x, chunks=(1, 7000)).map_blocks(slowly, dtype="f4"), events, **search)
    assert found.tobytes() == signal.match_templates(x, events, **search).tobytes()
    assert sum(client.run(lambda: "partita._signal.templates" in sys.modules).values()) > 1


@pytest.mark.parametrize("blow", [signals.SIGKILL, signals.SIGSTOP], ids=["killed", "paused"])
def test_a_worker_is_lost(client, blow):
    future = client.compute(problem(int(blow)))
    wait_for(lambda: client.run_on_scheduler(in_memory) >= 10)
    victim = next(iter(client.run(os.getpid).values()))
    os.kill(victim, blow)
    try:
        assert not future.done()
        check(future.result(timeout=SECONDS), int(blow))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signals.SIGKILL)


def greedy(chunk, mark):
    """Takes memory until its worker is killed, but only once."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return chunk
    kept = []
    while True:
        kept.append(np.ones(2**22))
        time.sleep(0.01)


def test_a_worker_runs_out_of_memory(client, tmp_path):
    y = problem(2).map_blocks(greedy, str(tmp_path / "mark"), meta=np.empty(0, "f4"))
    check(client.compute(y).result(timeout=SECONDS), 2)
    assert (tmp_path / "mark").exists()


PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import test_dask_cluster as here
if __name__ == "__main__":
    with here.cluster(2):
        print(here.parallel.to_zarr(here.problem(3), sys.argv[2]))
"""


def test_a_run_is_killed_and_restarted(tmp_path):
    """Scheduler, workers and the program that began the run are killed; a second run goes on."""
    pytest.importorskip("zarr")
    target, program = tmp_path / "y.zarr", tmp_path / "program.py"
    program.write_text(PROGRAM)
    words = [sys.executable, str(program), str(pathlib.Path(__file__).parent), str(target)]
    child = subprocess.Popen(words, start_new_session=True)
    wait_for(lambda: len(list(target.glob("c/*"))) >= 10)
    os.killpg(child.pid, signals.SIGKILL)
    child.wait()
    there = len([path for path in target.glob("c/*") if path.name.isdigit()])
    again = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=True)
    assert int(again.stdout) == problem(3).npartitions - there > 0
    check(da.from_zarr(str(target)).compute(), 3)

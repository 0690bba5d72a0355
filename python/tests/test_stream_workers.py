# SPDX-License-Identifier: MIT
"""examples/stream_workers.py: streams on several processes that are killed, stopped and moved; no bit differs from those of
one process."""
import contextlib
import importlib.util
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest

import partita

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/stream_workers.py"
spec = importlib.util.spec_from_file_location("stream_workers", EXAMPLE)
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)

KEYS = ["hall", "plate", "room", "spring", "church", "garden"]


@contextlib.contextmanager
def workers(n, **environment):
    """n processes: {address: process}."""
    started = [subprocess.Popen([sys.executable, EXAMPLE, "worker"], stdout=subprocess.PIPE, text=True,
                                env={**os.environ, **environment}) for _ in range(n)]
    try:
        yield {p.stdout.readline().split()[-1]: p for p in started}
    finally:
        for p in started:
            p.kill()
            p.wait()
            p.stdout.close()


@pytest.fixture
def signals():
    """Filters that are longer than a block, of several segments, and inputs: the state is more than the last block."""
    random = np.random.default_rng(7)
    taps = {key: random.standard_normal(5000) for key in KEYS}
    x = {key: random.standard_normal(120 * example.BLOCK).astype("f4") for key in KEYS}
    return taps, x


def of_one_process(taps, x):
    return {key: partita.Stream(taps[key].astype("f4"), block=example.BLOCK).process(x[key]) for key in taps}


def run(supervisor, x, events):
    """Filters all of x; before block i calls events[i]."""
    y = {key: [] for key in x}
    for i in range(len(x[KEYS[0]]) // example.BLOCK):
        events.pop(i, lambda: None)()
        blocks = {key: x[key][i * example.BLOCK:(i + 1) * example.BLOCK] for key in x}
        for key, result in supervisor.process(blocks).items():
            y[key].append(result)
    assert not events
    return {key: np.concatenate(y[key]) for key in x}


def owner(supervisor, processes):
    """A worker that has streams: its address and process."""
    address = next(iter(supervisor.owners.values()))
    return address, processes[address]


def test_killed_stopped_and_moved(signals):
    """Events fall on blocks after which states are saved, and on others."""
    taps, x = signals
    with workers(4) as processes:
        supervisor = example.Supervisor(processes, taps, save_every=16, timeout=2)
        first = dict(supervisor.owners)
        assert len(set(first.values())) > 1
        doomed = []

        def end(signal_number):
            address, process = owner(supervisor, processes)
            doomed.append(address)
            process.send_signal(signal_number)

        def move():
            target = next(address for address in supervisor.workers if address != supervisor.owners["hall"])
            supervisor.move("hall", target)
            assert supervisor.owners["hall"] == target

        y = run(supervisor, x, {9: move, 23: lambda: end(signal.SIGKILL), 63: lambda: end(signal.SIGSTOP), 80: move})
        assert len(supervisor.workers) == 2 and not set(doomed) & set(supervisor.workers)
        # Streams of workers that were not lost stayed where they were.
        assert all(supervisor.owners[key] == first[key] for key in KEYS if key != "hall" and first[key] not in doomed)
        expected = of_one_process(taps, x)
        for key in KEYS:
            np.testing.assert_array_equal(y[key], expected[key])


def test_killed_within_a_call(signals, monkeypatch):
    """After the worker has filtered the block and before its answer is read."""
    taps, x = signals
    with workers(3) as processes:
        supervisor = example.Supervisor(processes, taps, save_every=4, timeout=2)
        answer, left = supervisor._answer, iter(range(100))

        def lose_first(address):
            if next(left) in (20, 33) and len(supervisor.workers) > 1:
                processes[address].kill()
                processes[address].wait()
                supervisor._lose(address)
            return answer(address)

        monkeypatch.setattr(supervisor, "_answer", lose_first)
        short = {key: x[key][:30 * example.BLOCK] for key in KEYS}
        y = run(supervisor, short, {})
        assert len(supervisor.workers) == 1
        expected = of_one_process(taps, short)
        for key in KEYS:
            np.testing.assert_array_equal(y[key], expected[key])


@pytest.mark.parametrize("n_blocks", [0, 11])
def test_lost_while_streams_are_opened(signals, monkeypatch, n_blocks):
    """The worker that opened the first of several streams is lost: at the beginning, or when those of a killed worker move."""
    taps, x = signals
    open_stream, opened = example.Supervisor._open, []

    def lose_first(supervisor, key, address):
        if supervisor.n_blocks == n_blocks:
            opened.append(address)
            if len(opened) == 2:
                processes[opened[0]].kill()
                supervisor._lose(opened[0])
        return open_stream(supervisor, key, address)

    monkeypatch.setattr(example.Supervisor, "_open", lose_first)
    with workers(3) as processes:
        supervisor = example.Supervisor(processes, taps, save_every=4, timeout=2)
        assert set(supervisor.owners.values()) <= set(supervisor.workers)

        def kill_largest():
            processes[max(processes, key=list(supervisor.owners.values()).count)].kill()

        short = {key: x[key][:20 * example.BLOCK] for key in KEYS}
        y = run(supervisor, short, {n_blocks - 1: kill_largest} if n_blocks else {})
        assert len(supervisor.workers) == (1 if n_blocks else 2)
        expected = of_one_process(taps, short)
        for key in KEYS:
            np.testing.assert_array_equal(y[key], expected[key])


def test_no_worker_left(signals):
    taps, x = signals
    with workers(1) as processes:
        supervisor = example.Supervisor(processes, taps)
        _, process = owner(supervisor, processes)
        with pytest.raises(RuntimeError, match="no worker answers"):
            run(supervisor, x, {3: process.kill})


def free_address():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return "%s:%d" % listener.getsockname()


def test_a_worker_that_is_down_at_the_beginning(signals, capsys):
    taps, x = signals
    down = free_address()
    with workers(2) as processes:
        supervisor = example.Supervisor([down, *processes], taps, timeout=0.5)
        assert set(supervisor.workers) == set(processes)
        assert f"{down}: does not answer" in capsys.readouterr().err
        short = {key: x[key][:20 * example.BLOCK] for key in KEYS}
        y = run(supervisor, short, {})
        expected = of_one_process(taps, short)
        for key in KEYS:
            np.testing.assert_array_equal(y[key], expected[key])
    with pytest.raises(RuntimeError, match="no worker answers"):
        example.Supervisor([down], taps, timeout=0.2)


def test_a_worker_that_starts_after_the_supervisor(signals):
    taps, _ = signals
    late, started = free_address(), []

    def start():
        started.append(subprocess.Popen([sys.executable, EXAMPLE, "worker", late], stdout=subprocess.DEVNULL))

    timer = threading.Timer(0.5, start)
    timer.start()
    try:
        assert list(example.Supervisor([late], taps, timeout=30).workers) == [late]
    finally:
        timer.join()
        started[0].kill()
        started[0].wait()


def test_commands_of_the_page(tmp_path, signals):
    taps, x = signals
    np.save(tmp_path / "taps.npy", np.array([taps[key] for key in KEYS]))
    rows = np.array([x[key][:2000] for key in KEYS]) # not whole blocks
    np.save(tmp_path / "in.npy", rows)
    with workers(2) as processes:
        subprocess.run([sys.executable, EXAMPLE, "filter", "taps.npy", "in.npy", "out.npy", *processes], cwd=tmp_path,
                       check=True, timeout=60)
    expected = of_one_process(taps, dict(zip(KEYS, rows)))
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), [expected[key] for key in KEYS])

# SPDX-License-Identifier: MIT
"""Several threads of Python, and processes that are made by fork()."""
import concurrent.futures
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import partita


def test_eight_threads_on_one_plan():
    plan = partita.Plan(partita.Problem(kernel=500, size=20_000, pad=499))
    filter = plan.filter(np.random.default_rng(1).normal(size=500))
    signals = np.random.default_rng(2).normal(size=(8, 20_000)).astype(np.float32)
    expected = [plan.forward(filter, x) for x in signals]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            for y, right in zip(pool.map(lambda x: plan.forward(filter, x), signals), expected):
                np.testing.assert_array_equal(y, right)


def test_messages_belong_to_the_thread_that_failed():
    def fail(size):
        with pytest.raises(ValueError) as caught:
            partita.Plan(partita.Problem(kernel=size + 5, size=size))
        return str(caught.value)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for size, text in zip(range(1, 200), pool.map(fail, range(1, 200))):
            assert f"size {size}," in text and "\n" not in text


def test_two_threads_in_one_stream():
    stream = partita.Stream(np.ones(8, np.float32))
    with stream._alone():
        caught = []

        def second():
            for call in (lambda: stream.process(np.ones(4, np.float32)), stream.save, stream.drain, stream.reset):
                with pytest.raises(RuntimeError, match="another thread is in a call of this stream"):
                    call()
                caught.append(call)

        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert len(caught) == 4
    assert len(stream.process(np.ones(4, np.float32))) == 4


def test_swaps_from_another_thread_while_the_stream_runs():
    stream, stop, errors = partita.Stream(np.zeros(3000), block=64), threading.Event(), []

    def swap():
        try:
            for gain in range(1, 30):
                stream.swap(np.r_[gain, np.zeros(20)], fade=10)
                stream.wait()
        except Exception as error:  # noqa: BLE001 # shown by the main thread
            errors.append(error)
        stop.set()

    thread = threading.Thread(target=swap)
    thread.start()
    x = np.ones(64)
    while not stop.is_set():
        stream.process(x)
    thread.join()
    assert not errors
    np.testing.assert_allclose(stream.process(x)[-1], 29, atol=1e-9)


FORK = """
    import os, sys
    import numpy as np
    import partita
    x, h = np.ones(2_000_000, np.float32), np.ones(20_000, np.float32)
    plan = partita.Plan(partita.Problem(kernel=20_000, size=2_000_000), threads=2)
    filter = plan.filter(h)
    threaded = partita.Stream(h, threads=2)
    plain = partita.Stream(h)
    y = plan.forward(filter, x)
    first = threaded.process(x[:1000]), plain.process(x[:1000])
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert partita.get_threads() == 1
            assert np.array_equal(plan.forward(filter, x), y)
            again = partita.Plan(plan.problem)
            assert np.array_equal(again.forward(again.filter(h), x), y)
            plain.process(x[:1000])
            try:
                threaded.process(x[:1000])
            except partita.StateError as error:
                status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert partita.get_threads() is None
    threaded.process(x[:1000])
"""


def test_a_child_after_fork():
    subprocess.run([sys.executable, "-c", textwrap.dedent(FORK)], check=True, timeout=120)

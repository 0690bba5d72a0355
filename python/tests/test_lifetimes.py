# SPDX-License-Identifier: MIT
"""Objects are released after those that use them, in whatever order Python lets them go."""
import gc
import itertools
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import partita

X = np.arange(64, dtype=np.float32)


def make():
    plan = partita.Plan(partita.Problem(kernel=2000, block=64))
    filter = plan.filter(np.r_[1, np.zeros(1999)])
    return [plan, filter, partita.Stream(filter=filter)]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_objects_let_go_in_any_order(order):
    objects = make()
    for i in order:
        objects[i] = None
        gc.collect()
        if objects[2]:
            np.testing.assert_allclose(objects[2].process(X), X, atol=1e-4)


class Cycle:
    """What programs have: an object that refers to itself, so that only the collector of cycles lets it go."""

    def __init__(self, parts):
        self.parts, self.me = parts, self


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_cycles_with_objects_in_any_order(order):
    for _ in range(20):
        objects = make()
        Cycle([Cycle(objects[i]) for i in order])
        del objects
    gc.collect()


def test_a_stream_outlives_the_filters_that_it_had():
    stream = make()[2]
    for gain in 2, 3, 4:
        stream.swap(np.r_[gain, np.zeros(10)])
        gc.collect()
        stream.process(X)
    while stream.swapping:
        stream.process(X)
    np.testing.assert_allclose(stream.process(X), 4 * X, atol=1e-3)
    clone = stream.clone()
    del stream
    gc.collect()
    np.testing.assert_allclose(clone.process(X), 4 * X, atol=1e-3)


def test_spectra_saved_transforms_and_wisdom():
    problem = partita.Problem(op="correlate", kernel=9, size=(40, 40), pad=4, in_channels=4, out_channels=4)
    plan = partita.Plan(problem, engine="cpu/tiles", wisdom=partita.Wisdom())
    parts = [plan.saved(), plan.filter(np.zeros(problem.taps_shape)), partita.Spectrum(X), plan]
    del plan
    while parts:
        parts.pop()
        gc.collect()


def test_memory_is_released():
    code = """
        import gc, resource, numpy, partita
        def once():
            stream = partita.Stream(numpy.ones(100_000, numpy.float32), block=64)
            stream.swap(numpy.zeros(100_000, numpy.float32))
            stream.process(numpy.ones(5000, numpy.float32))
        for i in range(120):
            once()
            if i == 20:
                before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 20_000, grown  # KiB; 100 streams hold 100 times more than 1 MB
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)

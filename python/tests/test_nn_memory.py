# SPDX-License-Identifier: MIT
"""Memory that layers keep between calls stays within its limit, and results do not depend on it."""
import subprocess
import sys
import threading

import numpy
import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

import torch.nn.functional as F  # noqa: E402
from nn_checks import random, require_close, require_same_layer  # noqa: E402

import partita.nn  # noqa: E402
import partita.nn.functional as ours  # noqa: E402
from partita.nn import _cache, _calls  # noqa: E402

cache = _cache.cache
MANY_LENGTHS = """
import random, sys, torch, partita.nn
torch.set_num_threads(1)
torch.manual_seed(0)
training = sys.argv[1] == "training"
channels, calls, longest = map(int, sys.argv[2:])
model = torch.nn.Sequential(*[torch.nn.Conv1d(channels, channels, k, padding=k // 2) for k in (15, 15, 31)])

def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024

def after_many_lengths():
    lengths = random.Random(1)
    for _ in range(calls):
        x = torch.randn(1, channels, lengths.randrange(500, longest), requires_grad=training)
        with torch.set_grad_enabled(training):
            y = model(x)
        if training:
            y.square().mean().backward()
    return resident()

stock = after_many_lengths()
assert len(partita.nn.replace_(model, where=lambda layer: True)) == 3
print(stock, after_many_lengths())
"""


@pytest.fixture(autouse=True)
def restored_limit():
    yield
    partita.nn.set_cache_limit(None)


@pytest.mark.parametrize("mode, channels, calls, longest", [("inference", 256, 12, 1500), ("training", 64, 40, 3000)])
def test_resident_memory_after_many_lengths(mode, channels, calls, longest):
    """Without a limit it is 1.8 to 2 times that of PyTorch's layers."""
    run = subprocess.run([sys.executable, "-c", MANY_LENGTHS, mode, *map(str, (channels, calls, longest))],
                         capture_output=True, text=True, check=True)
    stock, replaced = map(float, run.stdout.split())
    assert replaced < 1.3 * stock


class Bytes(_cache.Held):
    """An object that holds nothing but a number."""

    def __init__(self, family, form, again=True):
        self.family, self.form, self.again, self.last = family, form, again, _cache.now()

    def drop(self):
        self.n_bytes = 0


@pytest.fixture
def empty(monkeypatch):
    """A limit without the objects of other tests."""
    made = _cache._Cache()
    made.limit = 100
    return made


def add(cache, n_bytes, *arguments):
    held = Bytes(*arguments)
    cache.add(held, n_bytes)
    return held


def test_what_was_used_least_recently_goes_first(empty):
    first, second = add(empty, 40, "a", 1), add(empty, 40, "a", 2)
    first.last = _cache.now()
    third = add(empty, 40, "a", 3)
    assert [h.n_bytes for h in (first, second, third)] == [40, 0, 40] and empty.used() == 80


def test_what_calls_need_again_stays_beyond_the_limit(empty):
    layers = [add(empty, 60, f"taps {i}", 1) for i in range(3)]
    assert empty.used() == 180
    other = add(empty, 60, "taps 0", 2)  # a newer form
    add(empty, 10, "taps 3", 1)
    assert layers[0].n_bytes == 0 and other.n_bytes == 60
    layers[1].last -= 2 * _cache._RECENT
    add(empty, 10, "taps 4", 1)
    assert layers[1].n_bytes == 0 and layers[2].n_bytes == 60


def test_what_one_call_has_used_gets_a_quarter(empty):
    again = add(empty, 70, "a", 1)
    once = [add(empty, 10, "b", i, False) for i in range(5)]
    assert again.n_bytes == 70 and [h.n_bytes for h in once] == [0, 0, 0, 10, 10]


def test_default_limit_is_256_mib_or_a_quarter_of_the_weights(empty):
    empty.limit = None
    assert empty._allowed([]) == 1 << 28
    held = [Bytes("w", 1), Bytes("w", 2), Bytes("v", 1)]
    for h, weights in zip(held, ((1, 1 << 30), (1, 1 << 30), (2, 1 << 28))):
        h.weights, h.n_bytes = weights, 1
    assert empty._allowed(held) == (1 << 28) + (1 << 26)  # taps in two forms count once


def forms_of(w):
    return [kept for kept in cache._all() if kept.weights[:1] == (id(w),) and kept.n_bytes]


def test_counted_bytes_are_those_of_packed_taps():
    w = random(2, 64, 64, 15, grad=False)
    ours.conv1d(random(1, 1, 64, 999, grad=False), w)
    n_bytes, = (kept.n_bytes for kept in forms_of(w))
    assert w.nbytes < n_bytes < 30 * w.nbytes
    before = cache.used()
    partita.nn.forget(w)
    assert not forms_of(w) and cache.used() == before - n_bytes


def test_dropped_taps_are_packed_again():
    x, w, b = random(1, 2, 4, 50), random(2, 4, 4, 7), random(3, 4)
    partita.nn.set_cache_limit(0)
    other = random(4, 4, 4, 7, grad=False)
    for size in (50, 40, 50):
        with torch.no_grad():
            for taps in (w, other):
                require_close(ours.conv1d(x[..., :size], taps, b), F.conv1d(x[..., :size].double(), taps.double(), b.double()))
        require_same_layer(ours.conv1d, F.conv1d, x, w, b)
        assert len(forms_of(w)) <= 1


def test_threads_with_a_limit_of_nothing():
    partita.nn.set_cache_limit(0)
    xs, w = [random(k, 1, 4, 60 + k, grad=False) for k in range(12)], random(2, 4, 4, 9, grad=False)
    failures = []

    def work(k):
        try:
            for i in range(40):
                x = xs[(i * (k + 1)) % 12]
                require_close(ours.conv1d(x, w), F.conv1d(x.double(), w.double()))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_workspaces_shrink():
    thread = _calls._Thread()
    thread.with_workspace(10_000)
    assert thread.size == thread.held.n_bytes == 10_000
    for _ in range(2 * _calls._MANY_CALLS):
        thread.with_workspace(1000)
    assert thread.size == thread.held.n_bytes == 1000


def test_limits_that_are_refused():
    for wrong in (-1, 1.5, "1"):
        with pytest.raises((TypeError, ValueError), match="n_bytes = "):
            partita.nn.set_cache_limit(wrong)
    partita.nn.set_cache_limit(numpy.int64(1 << 30))
    assert _cache.cache.limit == 1 << 30


def test_calls_that_measure_do_not_count():
    x, w = random(1, 1, 2, 30, grad=False), random(2, 2, 2, 3, grad=False)
    with cache.trial():
        for _ in range(3):
            ours.conv1d(x, w)
    kept, = forms_of(w)
    seen = []
    for _ in range(2):
        seen.append(kept.again)
        ours.conv1d(x, w)
    assert seen == [False, False] and kept.again


def test_views_of_the_same_memory_are_other_taps():
    """`.data` of other strides has the address and the version of before."""
    x, w = random(1, 1, 3, 30, grad=False), torch.nn.Parameter(random(2, 3, 3, 3, grad=False))
    with torch.no_grad():
        for _ in range(2):
            require_close(ours.conv1d(x, w), F.conv1d(x.double(), w.double()))
            w.data = w.data.transpose(0, 1)


def test_more_forms_than_are_kept():
    w = random(2, 2, 2, 3, grad=False)
    for size in range(20, 40):
        x = random(size, 1, 2, size, grad=False)
        require_close(ours.conv1d(x, w), F.conv1d(x.double(), w.double()))
    assert len(_calls._forms(w)) == _calls._MAX_FORMS

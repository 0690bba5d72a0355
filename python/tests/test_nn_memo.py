# SPDX-License-Identifier: MIT
"""Memories of calls (python/memo.h): which calls are recognised, against keys that are made in Python."""
import gc
import subprocess
import sys
import threading
import weakref

import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import partita  # noqa: E402
from partita.nn import _ops  # noqa: E402
from partita.nn._ops import Memo  # noqa: E402


class Derived(torch.Tensor):
    pass


def tensor(shape, dtype, wants, is_parameter, order):
    t = torch.zeros([shape[i] for i in order], dtype=dtype).permute([order.index(i) for i in range(len(shape))])
    if is_parameter:
        return torch.nn.Parameter(t, wants)
    return t.requires_grad_(wants)


TENSORS = st.lists(st.integers(0, 3), max_size=3).flatmap(lambda shape: st.builds(
    tensor, st.just(shape), st.sampled_from([torch.float32, torch.float64, torch.bfloat16]), st.booleans(),
    st.booleans(), st.permutations(range(len(shape)))))
NUMBERS = st.integers(-2, 2) | st.sampled_from([2 ** 40, -2 ** 40])
PLAIN = NUMBERS | st.sampled_from([None, True, False, "", "same", "valid", "zeros"])
ARGUMENTS = st.lists(TENSORS | PLAIN | st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3)), max_size=4)


def key(a):
    """An argument as a key of a dict; tuples and lists are the same."""
    if isinstance(a, torch.Tensor):
        return (type(a), tuple(a.shape), a.stride(), a.dtype, a.requires_grad and torch.is_grad_enabled())
    return ("sequence", *map(key, a)) if isinstance(a, (tuple, list)) else (type(a), a)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(ARGUMENTS, st.booleans()), max_size=12), st.data())
def test_calls_are_recognised_by_all_that_they_depend_on(calls, data):
    memo, expected = Memo(64), {}
    for step in range(3 * len(calls)):
        arguments, grad = data.draw(st.sampled_from(calls))
        with torch.set_grad_enabled(grad):
            described = grad, *map(key, arguments)
            assert memo.find(*arguments) == expected.get(described)
            expected[described] = step
            memo.keep(step, *map(tuple_of, arguments))


def tuple_of(argument):
    return tuple(map(tuple_of, argument)) if isinstance(argument, list) else argument


X = torch.ones(2, 3)
OTHER_MODES = {
    "gradients": torch.no_grad, "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "forward derivatives": torch.autograd.forward_ad.dual_level, "profile": torch.profiler.profile,
    "flops": lambda: __import__("torch.utils.flop_counter").utils.flop_counter.FlopCounterMode(display=False),
    "functions": lambda: __import__("torch.overrides").overrides.BaseTorchFunctionMode(),
}


@pytest.mark.parametrize("mode", OTHER_MODES)
def test_modes_are_part_of_a_call(mode):
    memo, some = Memo(4), Memo(4, _ops.UNDISPATCHED)
    memo.keep(1, X)
    some.keep(1, X)
    with OTHER_MODES[mode]():
        assert memo.find(X) is None
        assert some.find(X) == (1 if mode in ("profile", "flops", "functions") else None)
    assert memo.find(X) == some.find(X) == 1


def test_threads_transforms_and_traces_are_modes():
    memo, found = Memo(4), []

    def observe(x):
        found.append(memo.find(X))
        return x

    memo.keep(1, X)
    torch.vmap(observe)(X)
    torch.jit.trace(observe, X, check_trace=False)
    n = torch.get_num_threads()
    torch.set_num_threads(n + 1)
    observe(X)
    torch.set_num_threads(n)
    partita.set_threads(3)
    observe(X)
    partita.set_threads(None)
    assert found == [None] * 4 and memo.find(X) == 1


REFUSED = [
    X.to("meta"), X.to_sparse(), X.as_subclass(Derived), torch._neg_view(X), X.to_mkldnn(), 1.5, 2 ** 70, "a" * 25,
    b"", {}, (1, [2.5]), [0] * 200, torch.nested.nested_tensor([X, X[:1]]), "\ud800",
]


@pytest.mark.parametrize("argument", REFUSED, ids=lambda a: type(a).__name__)
def test_other_arguments_are_not_kept(argument):
    memo = Memo(4)
    memo.keep(1, argument)
    assert memo.find(argument) is None


def test_batches_of_gradients_are_not_kept():
    memo, found = Memo(4), []
    x = torch.ones(3, requires_grad=True)
    y = 2 * x

    def hook(g):
        memo.keep(1, g)
        found.append(memo.find(g))

    y.register_hook(hook)
    torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True)
    assert found == [None]


def test_a_full_memory_begins_anew_and_releases_its_values():
    memo, calls = Memo(8), []

    class Value:
        def __del__(self):
            calls.append(memo.find(0))  # without a deadlock

    values = [Value() for _ in range(7)]
    alive = [weakref.ref(v) for v in values]
    for i, v in enumerate(values):
        memo.keep(v, i)
    memo.keep("other", 0)  # takes the place of the first one
    memo.keep("last", 7)
    del values, v
    gc.collect()
    assert [r() is None for r in alive] == [True] + [False] * 6 and memo.find(6) is alive[6]()
    memo.keep(1, 8)
    assert not any(r() for r in alive) and memo.find(8) == 1 and memo.find(7) is None and len(calls) == 7
    memo.clear()
    assert memo.find(8) is None


def test_versions_of_pytorch_without_the_exchange():
    code = ("import sys, torch, pytest; del torch.Tensor.__dlpack_c_exchange_api__;"
            "sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '-k', 'not versions and not threads and not modes', sys.argv[1]]))")
    done = subprocess.run([sys.executable, "-c", code, __file__], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("given", [(0,), (-1,), (2 ** 21,), (1.5,), (4, 0), (4, 99)])
def test_sizes_are_limited(given):
    with pytest.raises((ValueError, OverflowError, TypeError)):
        Memo(*given)


def test_threads_may_share_a_memory():
    memo, failed = Memo(16), []

    def use(first):
        for i in range(2000):
            memo.keep(i % 40, X, i % 40)
            found = memo.find(X, (i + first) % 40)
            if found not in (None, (i + first) % 40):
                failed.append(found)

    workers = [threading.Thread(target=use, args=(i,)) for i in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not failed

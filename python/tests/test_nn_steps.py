# SPDX-License-Identifier: MIT
"""Training steps that share transforms: gradients are those of PyTorch, memory stays within its limit."""
import gc

import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

import torch.nn.functional as F  # noqa: E402
from nn_checks import random, require_close, require_same_layer  # noqa: E402

import partita.nn  # noqa: E402
import partita.nn.functional as ours  # noqa: E402
from partita.nn import _cache, _steps  # noqa: E402

LAYER = {"padding": 4}


@pytest.fixture(autouse=True)
def restored_limit():
    before = _steps._limit
    partita.nn.set_saved_memory(0)
    assert used() == 0  # of other tests
    partita.nn.set_saved_memory(before)
    yield
    partita.nn.set_saved_memory(before)


def used():
    """Bytes of saved transforms."""
    return _cache.cache.used(_steps._Saved)


@pytest.fixture
def steps(monkeypatch):
    """The steps that are begun."""
    begun = []

    class Counted(_steps.Step):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            begun.append((self.layer, self.saved))

    monkeypatch.setattr(_steps, "Step", Counted)
    return begun


def operands(dtype=torch.float32):
    return random(1, 4, 16, 24, 24, dtype=dtype), random(2, 16, 16, 9, 9, dtype=dtype), random(3, 16, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_are_those_of_pytorch(steps, dtype):
    for _ in range(3):
        require_same_layer(ours.conv2d, F.conv2d, *operands(dtype), **LAYER)
    x, w, b = operands(dtype)
    last = x.detach().to(memory_format=torch.channels_last).requires_grad_()
    require_same_layer(ours.conv2d, F.conv2d, last, w, b, **LAYER)
    apart = x.detach().transpose(2, 3).requires_grad_()
    require_same_layer(ours.conv2d, F.conv2d, apart, w, b, **LAYER)
    assert len(steps) == 5
    assert steps[0][1] is steps[1][1] is steps[2][1]  # the transforms of the step before


def test_gradcheck(steps):
    x, w, b = operands(torch.float64)
    torch.autograd.gradcheck(lambda *t: ours.conv2d(*t, **LAYER), (x, w, b), fast_mode=True)
    torch.autograd.gradgradcheck(lambda *t: ours.conv2d(*t, **LAYER), (x, w, b), fast_mode=True)
    assert steps


def test_second_gradients_of_one_graph():
    x, w, b = operands()
    y = ours.conv2d(x, w, b, **LAYER)
    first, second, third = (torch.autograd.grad(y, (x, w, b), torch.full_like(y, scale), retain_graph=True)
                            for scale in (1, 2, 2))
    for one, two, three in zip(first, second, third):
        require_close(two, 2 * one.double())
        assert torch.equal(two, three)


def test_one_gradient_alone_shares_nothing(steps):
    x, w, b = operands()
    ours.conv2d(x.detach(), w, b, **LAYER).sum().backward()
    ours.conv2d(x, w.detach(), b, **LAYER).sum().backward()
    assert not steps
    y = ours.conv2d(x, w, b, **LAYER)
    gradient, = torch.autograd.grad(y.sum(), (w,))
    assert len(steps) == 1
    wide = [t.detach().double().requires_grad_() for t in (x, w, b)]
    require_close(gradient, *torch.autograd.grad(F.conv2d(*wide, **LAYER).sum(), (wide[1],)))


def test_changed_operands_are_refused(steps):
    x, w, b = operands()
    for changed in (x, w):
        y = ours.conv2d(x, w, b, **LAYER)
        with torch.no_grad():
            changed.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
    assert len(steps) == 2


def test_memory(steps):
    x, w, b = operands()
    y = ours.conv2d(x, w, b, **LAYER)
    layer = steps[0][0]
    one = layer.saved_bytes
    assert used() == one > 0 and not layer.waiting_saved
    y.sum().backward()
    assert used() == one and len(layer.waiting_saved) == 1  # waits for the next step
    partita.nn.set_saved_memory(one + one // 2)
    first, second = (ours.conv2d(x, w, b, **LAYER) for _ in range(2))
    assert len(steps) == 2 and used() == one  # the second one computes by itself
    (first + second).sum().backward()
    y = ours.conv2d(x, w, b, **LAYER)
    del y, first, second  # without gradients
    gc.collect()
    assert used() == one and len(steps[1][0].waiting_saved) == 1
    other = random(1, 2, 16, 24, 24)
    ours.conv2d(other, w, b, **LAYER).sum().backward()  # takes the memory of those that wait, if it needs it
    assert used() <= one + one // 2
    begun = len(steps)
    partita.nn.set_saved_memory(0)
    assert used() == 0 and not steps[1][0].waiting_saved
    ours.conv2d(x, w, b, **LAYER).sum().backward()
    assert len(steps) == begun
    for wrong in (-1, 1.5, None):
        with pytest.raises((TypeError, ValueError), match="n_bytes = "):
            partita.nn.set_saved_memory(wrong)


def test_layers_without_common_transforms_begin_no_steps(steps):
    require_same_layer(ours.conv1d, F.conv1d, random(1, 2, 3, 50), random(2, 4, 3, 3), random(3, 4))
    assert not steps

# SPDX-License-Identifier: MIT
"""The operators partita::conv, conv_input and conv_weight under what PyTorch does with operators: checks of gradients,
schemas, compilation, vmap; and what is kept between calls."""
import threading

import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

import torch.nn.functional as F  # noqa: E402
from nn_checks import double, random, require_close  # noqa: E402

import partita  # noqa: E402
import partita.nn.functional as ours  # noqa: E402
from partita.nn import _calls  # noqa: E402

ops = torch.ops.partita
# stride, pad, dilation, groups, engine
LAYERS = {
    "1d": ((2, 4, 9), (2, 2, 3), ([2], [1, 2], [1], 2, "")),
    "2d": ((1, 2, 5, 4), (4, 1, 2, 3), ([1, 2], [1, 0], [2, 1], 2, "")),
    "3d": ((1, 1, 3, 4, 4), (2, 1, 2, 2, 1), ([1, 1, 1], [0, 1, 0], [1, 1, 2], 1, "")),
}


def operands(name, dtype=torch.float64):
    x, w, layer = LAYERS[name]
    x, w, b = random(1, *x, dtype=dtype), random(2, *w, dtype=dtype), random(3, w[0], dtype=dtype)
    gy = random(4, *ops.conv(x, w, b, *layer).shape, dtype=dtype)
    return x, w, b, gy, layer


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_and_their_gradients(name):
    x, w, b, gy, layer = operands(name)
    torch.autograd.gradcheck(lambda x, w, b: ops.conv(x, w, b, *layer), (x, w, b))
    torch.autograd.gradgradcheck(lambda x, w, b: ops.conv(x, w, b, *layer), (x, w, b))
    torch.autograd.gradcheck(lambda gy, w: ops.conv_input(gy, w, x.shape, *layer), (gy, w))
    torch.autograd.gradgradcheck(lambda gy, w: ops.conv_input(gy, w, x.shape, *layer), (gy, w))
    torch.autograd.gradcheck(lambda x, gy: ops.conv_weight(x, gy, w.shape, *layer), (x, gy))
    torch.autograd.gradgradcheck(lambda x, gy: ops.conv_weight(x, gy, w.shape, *layer), (x, gy))


@pytest.mark.parametrize("name", ["1d", "2d"])
def test_complex_gradients(name):
    x, w, b, _, layer = operands(name, torch.complex128)
    # One random direction of each operand.
    torch.autograd.gradcheck(lambda x, w, b: ops.conv(x, w, b, *layer), (x, w, b), fast_mode=True)
    torch.autograd.gradgradcheck(lambda x, w, b: ops.conv(x, w, b, *layer), (x, w, b), fast_mode=True)


def test_operators_pass_opcheck():
    x, w, b, gy, layer = operands("2d", torch.float32)
    dense = x.detach().permute(3, 0, 2, 1).contiguous().permute(1, 3, 2, 0).requires_grad_()
    torch.library.opcheck(ops.conv, (dense, w, b, *layer))
    torch.library.opcheck(ops.conv_input, (gy, w, list(x.shape), *layer))
    torch.library.opcheck(ops.conv_weight, (x, gy, list(w.shape), *layer))
    last = {"memory_format": torch.channels_last}
    x, gy = (t.detach().to(**last).requires_grad_() for t in (x, gy))
    torch.library.opcheck(ops.conv, (x, w, b, *layer))
    torch.library.opcheck(ops.conv_input, (gy, w, list(x.shape), *layer))
    torch.library.opcheck(ops.conv_weight, (x, gy, list(w.shape), *layer))


def test_compiled_once_for_all_sizes():
    graphs = []

    def backend(graph, examples):
        graphs.append(graph)
        return graph.forward

    def network(x, w, v):
        y = ours.conv2d(x, w, padding="same").relu()
        return ours.conv_transpose2d(y, v, stride=2, padding=1).sum((2, 3))

    w, v = random(2, 4, 3, 3, 3), random(3, 4, 2, 2, 2)
    torch._dynamo.reset()
    compiled = torch.compile(network, backend=backend, fullgraph=True, dynamic=True)
    # At first all sizes differ: equal ones would become one symbol.
    for batch, height, width in ((7, 9, 11), (10, 12, 8), (13, 6, 6)):
        x = random(1, batch, 3, height, width)
        assert torch.equal(compiled(x, w, v), network(x, w, v))
    assert len(graphs) == 1


def test_compiled_gradients():
    torch._dynamo.reset()
    w = random(2, 4, 3, 3)
    compiled = torch.compile(lambda x: ours.conv1d(x, w, padding=1).square().sum(), backend="aot_eager", fullgraph=True,
                             dynamic=True)
    for size in (8, 11):
        x = random(1, 2, 3, size)
        gradients = torch.autograd.grad(compiled(x), (x, w))
        wide = double(x), double(w)
        expected = torch.autograd.grad(F.conv1d(*wide, padding=1).square().sum(), wide)
        for gradient, wanted in zip(gradients, expected):
            require_close(gradient, wanted, 2)  # two layers after each other


@pytest.mark.parametrize("mapped", range(1, 8))
def test_vmap(mapped):
    _, _, _, _, layer = operands("2d")
    x, w, b = random(1, 3, 2, 2, 5, 6), random(2, 3, 4, 1, 2, 3), random(3, 3, 4)
    dims = tuple(0 if mapped >> i & 1 else None for i in range(3))
    given = [t if d == 0 else t[0] for t, d in zip((x, w, b), dims)]
    for tensors, of in ((given, dims), ([given[0].movedim(0, 2) if dims[0] == 0 else given[0], *given[1:]],
                                        (2 if dims[0] == 0 else None, *dims[1:]))):
        y = torch.vmap(lambda x, w, b: ops.conv(x, w, b, *layer), of)(*tensors)
        for i in range(3):
            one = [t[i] if d == 0 else t for t, d in zip(given, dims)]
            require_close(y[i], F.conv2d(*(double(t) for t in one), (1, 2), (1, 0), (2, 1), 2))


def test_gradients_by_torch_func():
    """Of each item by itself. Custom operators have no rules for torch.func: PyTorch's convolution is used instead."""
    x, w = random(1, 3, 2, 9, grad=False), random(2, 4, 2, 3, grad=False)

    def loss(w, x, conv):
        return conv(x.unsqueeze(0), w).square().sum()

    each = torch.vmap(torch.func.grad(loss, (0, 1)), (None, 0, None))
    for gradient, wanted in zip(each(w, x, ours.conv1d), each(w.double(), x.double(), F.conv1d)):
        require_close(gradient, wanted, 2)
    primal, tangent = torch.func.jvp(lambda x: ours.conv1d(x, w), (x,), (x,))
    assert torch.equal(primal, tangent)


def test_vmap_of_the_transposes():
    _, _, _, _, layer = operands("2d")
    x, w = random(1, 3, 2, 2, 5, 6), random(2, 3, 4, 1, 2, 3)
    gy = random(4, 3, *ops.conv(x[0], w[0], None, *layer).shape)
    for gy_dim, w_dim in ((0, None), (None, 0), (0, 0)):
        given = gy if gy_dim == 0 else gy[0], w if w_dim == 0 else w[0]
        gx = torch.vmap(lambda gy, w: ops.conv_input(gy, w, x.shape[1:], *layer), (gy_dim, w_dim))(*given)
        for i in range(3):
            one = [t[i] if d == 0 else t for t, d in zip(given, (gy_dim, w_dim))]
            require_close(gx[i], ops.conv_input(*(double(t) for t in one), x.shape[1:], *layer))
    for x_dim, gy_dim in ((0, None), (None, 0), (0, 0)):
        given = x if x_dim == 0 else x[0], gy if gy_dim == 0 else gy[0]
        gw = torch.vmap(lambda x, gy: ops.conv_weight(x, gy, w.shape[1:], *layer), (x_dim, gy_dim))(*given)
        for i in range(3):
            one = [t[i] if d == 0 else t for t, d in zip(given, (x_dim, gy_dim))]
            require_close(gw[i], ops.conv_weight(*(double(t) for t in one), w.shape[1:], *layer))


def test_operands_that_do_not_fit_are_refused():
    x, w, b, gy, layer = operands("1d")
    for call in (lambda: ops.conv(x, w[:, :1], b, *layer), lambda: ops.conv(x, w.float(), b, *layer),
                 lambda: ops.conv(x, w, b[:1], *layer), lambda: ops.conv(x[0], w, b, *layer),
                 lambda: ops.conv_input(gy[..., 1:], w, x.shape, *layer),
                 lambda: ops.conv_weight(x, gy[:1], w.shape, *layer)):
        with pytest.raises((ValueError, RuntimeError)):
            call()


def test_engines_by_name():
    x, w, _, _, (*layer, _) = operands("1d", torch.float32)
    direct = ops.conv(x, w, None, *layer, "cpu/direct")
    require_close(direct, ops.conv(x.double(), w.double(), None, *layer, ""))
    with pytest.raises(partita.UnsupportedError):
        ops.conv(x, w, None, *layer, "cpu/partitioned")  # of streams


# What is kept between calls.

def changed_in_place(w):
    w.mul_(2)


def changed_without_a_version(w):
    w.data.mul_(2)


def changed_one_tap_by_numpy(w):
    w.detach().numpy()[0, 0, 1] += 1


def changed_memory(w):
    w.data = w.data * 3


CHANGES = [(change, taps) for change in (changed_in_place, changed_without_a_version, changed_memory)
           for taps in (5, 30000)] + [(changed_one_tap_by_numpy, 5)]  # of large tensors a sample is compared


@pytest.mark.parametrize("change, taps", CHANGES)
def test_changed_taps_are_noticed(change, taps):
    x, w = random(1, 1, 2, taps + 100), random(2, 2, 2, taps)
    with torch.no_grad():
        for _ in range(3):
            y = ours.conv1d(x, w)
            require_close(y, F.conv1d(x.double(), w.double()))
            assert torch.equal(y, ours.conv1d(x, w))
            change(w)
        b = random(3, 2)
        for _ in range(2):
            require_close(ours.conv1d(x, w, b), F.conv1d(x.double(), w.double(), b.double()))
            b.data.add_(1)


def layer_of(x, w, groups=1, uses=0):
    """The layer of a call of conv1d that has been made before."""
    misses = _calls.planned.cache_info().misses
    layer = _calls.forward_layer(x, w, ((1,), (0,), (1,), groups, ""), uses)
    assert _calls.planned.cache_info().misses == misses
    return layer


def test_large_kernels_of_two_bytes_take_the_engines_of_f32():
    x, w = (random(1, *shape, dtype=torch.bfloat16, grad=False) for shape in ((1, 2, 4000), (2, 1, 500)))
    for _ in range(2):
        require_close(ours.conv1d(x, w, groups=2), F.conv1d(x.double(), w.double(), groups=2))
        w.mul_(2)
    assert layer_of(x, w, 2).dtype == torch.float32
    ours.conv1d(x, w[..., :2], groups=2)
    assert layer_of(x, w[..., :2], 2).dtype == torch.bfloat16


def test_kept_filters_are_released_with_their_taps():
    x = random(1, 1, 1, 50)
    before = len(_calls._taps)
    with torch.no_grad():
        w = random(2, 1, 1, 3)
        ours.conv1d(x, w)
        assert len(_calls._taps) == before + 1
        del w
        assert len(_calls._taps) == before


def test_values_of_large_taps_are_compared_where_they_are():
    w = random(1, 96, 96, 3, 3, grad=False)
    for taps in (w, w.to(memory_format=torch.channels_last), w.transpose(0, 1)):
        assert _calls._sample(taps).untyped_storage().data_ptr() == taps.untyped_storage().data_ptr()


def test_filters_of_training_are_shared():
    x, first, second = random(1, 1, 1, 60), random(2, 1, 1, 7), random(3, 1, 1, 7)
    ours.conv1d(x, first)
    kept = len(_calls._taps)
    for w in (second, first, second):
        require_close(ours.conv1d(x, w), F.conv1d(x.double(), w.double()))
    assert len(_calls._taps) == kept and len(layer_of(x, first, uses=1).waiting[False]) == 1


def test_inference_mode():
    with torch.inference_mode():
        x, w = random(1, 1, 2, 20, grad=False), random(2, 3, 2, 4, grad=False)
        for _ in range(2):
            require_close(ours.conv1d(x, w), F.conv1d(x.double(), w.double()))
            w.mul_(2)


def test_threads_follow_torch():
    x, w = random(1, 8, 16, 64, 64), random(2, 16, 16, 3, 3)
    before, results = torch.get_num_threads(), []
    try:
        for n in (1, 2):
            torch.set_num_threads(n)
            misses = _calls.planned.cache_info().misses
            with torch.no_grad():
                results.append(ours.conv2d(x, w))
            assert _calls.planned.cache_info().misses == misses + 1
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*results)


def test_several_threads_share_filters():
    x, w = random(1, 2, 4, 200, grad=False), random(2, 4, 4, 9, grad=False)
    versions = {float(k): F.conv1d(x.double(), k * w.double()) for k in (1, 2)}
    failures = []

    def work(k):
        try:
            for _ in range(50):
                require_close(ours.conv1d(x, w if k == 1 else k * w), versions[k])
        except BaseException as error:
            failures.append(error)

    with torch.no_grad():
        threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2, 1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures

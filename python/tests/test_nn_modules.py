# SPDX-License-Identifier: MIT
"""Layers of partita.nn in networks: replaced, trained, saved, in workers, as streams."""
import copy
import io
import pickle

import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

import numpy as np  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from nn_checks import random, require_close  # noqa: E402

import partita.nn as ours  # noqa: E402
from partita.nn.testing import dispatch_mode  # noqa: E402


def network(seed=5):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1, padding_mode="reflect"), torch.nn.GELU(),
        torch.nn.Conv2d(8, 8, 9, padding="same", groups=8), torch.nn.GELU(), torch.nn.Conv2d(8, 4, 1, bias=False),
        torch.nn.ConvTranspose2d(4, 3, 2, stride=2))


def everything(layer):
    return True


def test_replace_and_restore():
    model = network()
    assert ours.replace_(model, where=lambda layer: layer.kernel_size == (9, 9)) == ["2"]
    assert ours.replace_(model, where=everything) == ["0", "2", "4", "5"]
    assert [type(layer) for layer in model if hasattr(layer, "weight")] == [ours.Conv2d] * 3 + [ours.ConvTranspose2d]
    assert repr(model).count(", partita)") == 4
    assert ours.restore_(model, lambda layer: layer is model[4]) == ["4"]
    assert ours.restore_(model) == ["0", "2", "5"] and ours.restore_(model) == []
    assert type(model[2]) is torch.nn.Conv2d and repr(model) == repr(network())
    single = torch.nn.Conv1d(1, 1, 9)
    assert ours.replace_(single, where=everything) == [""] and type(single) is ours.Conv1d


PADDINGS = [("zeros", 2), ("zeros", "same"), ("zeros", "valid"), ("reflect", 2), ("replicate", "same"), ("circular", 2)]


@pytest.mark.parametrize("mode, padding", PADDINGS)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_layers_with_padding(rank, mode, padding):
    name = f"Conv{rank}d"
    torch.manual_seed(1)
    theirs = getattr(torch.nn, name)(2, 4, 4, padding=padding, padding_mode=mode, groups=2, dtype=torch.float64)
    layer = getattr(ours, name)(2, 4, 4, padding=padding, padding_mode=mode, groups=2, dtype=torch.float64)
    layer.load_state_dict(theirs.state_dict())
    x = random(2, 2, 2, *(7, 6, 5)[:rank], dtype=torch.float64)
    require_close(layer(x), theirs(x))
    require_close(layer(x[0]), theirs(x[0]))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_transposed_layers(rank):
    name = f"ConvTranspose{rank}d"
    torch.manual_seed(1)
    theirs = getattr(torch.nn, name)(2, 3, 3, stride=2, padding=1, dtype=torch.float64)
    layer = getattr(ours, name)(2, 3, 3, stride=2, padding=1, dtype=torch.float64)
    layer.load_state_dict(theirs.state_dict())
    x = random(2, 2, 2, *(4, 3, 5)[:rank], dtype=torch.float64)
    for size in (None, [2 * n for n in x.shape[2:]]):
        require_close(layer(x, output_size=size), theirs(x, output_size=size))
    with pytest.raises(ValueError, match="requested an output size"):
        layer(x, output_size=[99] * rank)


def train(model, steps, dtype):
    model = model.to(dtype)
    x, target = random(1, 2, 3, 12, 12, dtype=dtype, grad=False), random(2, 2, 3, 24, 24, dtype=dtype, grad=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        (model(x) - target).square().mean().backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_training_equals_torchs():
    model = network()
    ours.replace_(model, where=everything)
    with dispatch_mode() as mode:
        trained = train(copy.deepcopy(model), 3, torch.float64)
    # Of the four layers the last is transposed, and the first needs no gradient of its input.
    assert mode.counts() == {
        "native": {"partita.conv": 3 * (3 + 1), "partita.conv_input": 3 * (1 + 2), "partita.conv_weight": 3 * 4},
        "fallback": {}}
    require_close(trained, train(network(), 3, torch.float64), 12)  # four layers, three steps after each other
    # The first steps of training follow the gradient; the error of each is the layers'.
    require_close(train(copy.deepcopy(model), 3, torch.float32), trained, 12)


def test_gradients_of_micro_batches_add_up_in_one_array():
    model = torch.nn.Conv2d(3, 8, 5)
    assert ours.replace_(model, where=everything) == [""]
    x = torch.randn(4, 3, 20, 20)
    model(x).sum().backward()
    whole, model.weight.grad = model.weight.grad, None
    for i, part in enumerate(x.split(1)):
        model(part).sum().backward()
        memory = memory if i else model.weight.grad.data_ptr()
        assert model.weight.grad.data_ptr() == memory
    require_close(model.weight.grad, whole, 4)


@pytest.mark.parametrize("write", (lambda w: w.data, lambda w: w.detach().numpy()), ids=("data", "numpy"))
@pytest.mark.parametrize("make, size", [(lambda: torch.nn.Conv2d(64, 64, 7), (20, 20)),
                                        (lambda: torch.nn.Conv1d(96, 96, 15), (40,)),
                                        (lambda: torch.nn.ConvTranspose2d(64, 64, 7), (9, 9))])
def test_large_taps_are_forgotten(make, size, write):
    """A tap that the sample of _calls._sample does not hold is written where PyTorch does not count it."""
    torch.manual_seed(0)
    layer = make()
    assert ours.replace_(layer, where=everything) == [""]
    x = torch.rand(1, layer.in_channels, *size)
    with torch.no_grad():
        before = layer(x)
        write(layer.weight).reshape(-1)[1] = 1000.0  # samples are an odd number of taps apart, from tap 0 on
        assert torch.equal(layer(x), before)
        ours.forget(layer)
        after = layer(x)
    ours.restore_(layer)
    with torch.no_grad():
        expected = layer(x)
    assert (after - before).abs().max() > 100
    # Sums of 64 * 49 terms, or 96 * 15, of taps below 1 and one of 1000: 2 n u times the largest term, in f32.
    torch.testing.assert_close(after, expected, rtol=0, atol=2 * 3136 * 2**-24 * 1000)


def test_state_and_pickle():
    model = network()
    state = copy.deepcopy(model.state_dict())
    ours.replace_(model, where=everything)
    assert list(model.state_dict()) == list(state)
    fresh = network(6)
    ours.replace_(fresh, where=everything)
    fresh.load_state_dict(model.state_dict())
    file = io.BytesIO()
    torch.save(fresh, file)
    file.seek(0)
    x = random(1, 1, 3, 8, 8, grad=False)
    with torch.no_grad():
        loaded = torch.load(file, weights_only=False)
        assert torch.equal(loaded(x), model(x)) and type(loaded[2]) is ours.Conv2d
        require_close(model(x), network()(x).double(), 8)
        state["2.weight"].mul_(3)
        model.load_state_dict(state)  # writes into weights whose filters are kept
        plain = network()
        plain.load_state_dict(state)
        require_close(model(x), plain(x).double(), 8)


class Filtered(torch.utils.data.Dataset):
    def __init__(self, layer):
        self.layer = layer

    def __len__(self):
        return 4

    def __getitem__(self, i):
        with torch.no_grad():
            return self.layer(random(i, 3, 64, 64, grad=False))


def test_workers_of_a_data_loader():
    """They are forked after the parent's threads have run."""
    torch.manual_seed(1)
    layer = ours.Conv2d(3, 4, 9)
    dataset = Filtered(layer)
    with torch.no_grad():
        layer(random(9, 8, 3, 128, 128))
    loader = torch.utils.data.DataLoader(dataset, batch_size=2, num_workers=2, multiprocessing_context="fork",
                                         timeout=300)  # an error in place of a test that waits for ever
    for i, batch in enumerate(loader):
        for k in range(2):
            require_close(batch[k], dataset[2 * i + k].double())


CAUSAL = [
    {"kernel_size": 5, "bias": False},
    {"kernel_size": 4, "groups": 2, "padding": 6, "dilation": 2},
    {"kernel_size": 3, "groups": 4, "dtype": torch.float64},
    {"kernel_size": 64, "padding": "valid"},
    {"kernel_size": 1, "padding": "same"},
]


@pytest.mark.parametrize("case", range(len(CAUSAL)))
def test_stream_of_a_causal_layer(case):
    torch.manual_seed(2)
    layer = ours.Conv1d(4, 8, **CAUSAL[case])
    x = random(3, 4, 500, dtype=layer.weight.dtype, grad=False)
    past = layer.dilation[0] * (layer.kernel_size[0] - 1)
    bias = None if layer.bias is None else layer.bias.double()
    with torch.no_grad():
        padded = F.pad(x.double(), (past, 0))
        expected = F.conv1d(padded, layer.weight.double(), bias, 1, 0, layer.dilation, layer.groups)
        of_layer = layer(x)
    cuts = [0, 64, 65, 200, 500]
    stream = layer.stream(block=64)
    parts = [stream.process(x[:, a:b]) for a, b in zip(cuts, cuts[1:])]
    y = torch.cat(parts, 1)
    require_close(y, expected)
    if layer.padding == (past,):
        require_close(of_layer[:, :500], y.double(), 2)
    else:
        require_close(of_layer, y[:, past:].double(), 2)
    frames = layer.stream(block=64, frames_first=True)
    copied, loaded = frames.clone(), pickle.loads(pickle.dumps(frames))
    for s in (frames, copied, loaded):
        rows = np.concatenate([s.process(x[:, a:b].numpy().T.copy()) for a, b in zip(cuts, cuts[1:])])
        assert np.array_equal(rows, y.numpy().T)


def test_layers_that_see_later_inputs_have_no_stream():
    for layer in (ours.Conv1d(1, 1, 5, padding=2), ours.Conv1d(1, 1, 5, padding="same"),
                  ours.Conv1d(1, 1, 5, padding=4, padding_mode="circular")):
        with pytest.raises(ValueError, match="later inputs"):
            layer.stream()


def test_dispatch_mode_answers_networks_of_torch():
    model, wide = network(), network().double()
    x = random(1, 2, 3, 12, 12)
    with dispatch_mode() as mode:
        y = model(x)
        gradient, = torch.autograd.grad(y.square().sum(), x)
        with torch.inference_mode():
            model(x)
    assert mode.counts() == {"native": {"aten.convolution": 8, "aten.convolution_backward": 4}, "fallback": {}}
    expected = wide(x.detach().double().requires_grad_())
    require_close(y, expected, 4)
    x = x.detach().double().requires_grad_()
    require_close(gradient, torch.autograd.grad(wide(x).square().sum(), x)[0], 8)

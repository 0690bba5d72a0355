# SPDX-License-Identifier: MIT
"""Functions of partita.nn.functional against those of PyTorch in double precision: results and gradients."""
import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

import torch.nn.functional as F  # noqa: E402
from nn_checks import TOLERANCE, double, random, require_close, require_same_layer  # noqa: E402

import partita.nn.functional as ours  # noqa: E402
from partita.nn import _calls  # noqa: E402
from partita.nn.testing import dispatch_mode  # noqa: E402

# x, w, keywords
LAYERS = [
    ((2, 3, 20), (4, 3, 5), {}),
    ((1, 4, 33), (6, 2, 4), {"groups": 2, "stride": 3, "padding": 2, "dilation": 2}),
    ((2, 3, 300), (3, 1, 129), {"groups": 3, "padding": 64}),
    ((1, 1, 7), (2, 1, 1), {"stride": 9}),
    ((2, 3, 10, 9), (5, 3, 3, 3), {"padding": 1}),
    ((2, 4, 11, 12), (6, 2, 3, 2), {"groups": 2, "stride": (2, 3), "padding": (1, 0), "dilation": (1, 2)}),
    ((1, 6, 16, 15), (6, 1, 7, 7), {"groups": 6, "padding": 3}),
    ((2, 6, 9, 9), (12, 1, 3, 3), {"groups": 6, "padding": "same"}),
    ((1, 2, 9, 8), (3, 2, 4, 2), {"padding": "same", "dilation": (1, 3)}),
    ((2, 8, 8, 8), (4, 8, 1, 1), {"stride": 2, "padding": "valid"}),
    ((1, 2, 6, 7, 5), (3, 2, 3, 2, 2), {"padding": (1, 0, 1), "stride": (1, 2, 1)}),
]
TRANSPOSED = [
    ((2, 3, 9), (3, 4, 5), {}),
    ((1, 4, 8), (4, 3, 4), {"groups": 2, "stride": 3, "padding": 1, "output_padding": 2, "dilation": 2}),
    ((2, 3, 6, 5), (3, 2, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
    ((1, 2, 4, 5), (2, 3, 2, 3), {"stride": (1, 2), "dilation": (3, 1), "output_padding": (2, 0)}),
    ((1, 2, 3, 4, 3), (2, 2, 2, 3, 2), {"stride": 2, "padding": (0, 1, 0)}),
]


def function(module, name, x_shape):
    return getattr(module, f"{name}{len(x_shape) - 2}d")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("case", range(len(LAYERS)))
def test_conv(case, dtype):
    x, w, layer = LAYERS[case]
    b = random(3, w[0], dtype=dtype) if case % 2 else None
    require_same_layer(function(ours, "conv", x), function(F, "conv", x), random(1, *x, dtype=dtype),
                       random(2, *w, dtype=dtype), b, **layer)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("case", range(len(TRANSPOSED)))
def test_conv_transpose(case, dtype):
    x, w, layer = TRANSPOSED[case]
    b = random(3, w[1] * layer.get("groups", 1), dtype=dtype) if case % 2 else None
    require_same_layer(function(ours, "conv_transpose", x), function(F, "conv_transpose", x),
                       random(1, *x, dtype=dtype), random(2, *w, dtype=dtype), b, **layer)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("case", [0, 1, 5, 10])
def test_two_bytes(case, dtype):
    x, w, layer = LAYERS[case]
    require_same_layer(function(ours, "conv", x), function(F, "conv", x), random(1, *x, dtype=dtype),
                       random(2, *w, dtype=dtype), random(3, w[0], dtype=dtype), times=2, **layer)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=["cf32", "cf64"])
@pytest.mark.parametrize("case", [0, 1, 5, 10])
def test_complex(case, dtype):
    x, w, layer = LAYERS[case]
    require_same_layer(function(ours, "conv", x), function(F, "conv", x), random(1, *x, dtype=dtype),
                       random(2, *w, dtype=dtype), random(3, w[0], dtype=dtype), **layer)


def test_what_is_computed_here():
    with dispatch_mode() as mode:
        for x, w, layer in LAYERS:
            function(ours, "conv", x)(random(1, *x), random(2, *w), **layer)
        for x, w, layer in TRANSPOSED:
            function(ours, "conv_transpose", x)(random(1, *x), random(2, *w), **layer)
    assert mode.counts() == {
        "native": {"partita.conv": len(LAYERS), "partita.conv_input": len(TRANSPOSED)}, "fallback": {}}


def test_operands_that_are_not_contiguous():
    x, w = random(1, 9, 10, 2, 3, grad=False), random(2, 3, 3, 5, 3, grad=False)
    x, w = x.permute(2, 3, 0, 1).requires_grad_(), w.permute(2, 3, 0, 1).requires_grad_()
    require_same_layer(ours.conv2d, F.conv2d, x, w, random(3, 10, grad=False)[::2].requires_grad_(), padding=1)
    x = random(4, 2, 3, 9, 10, grad=False).to(memory_format=torch.channels_last).requires_grad_()
    require_same_layer(ours.conv2d, F.conv2d, x, w, None, padding=1)
    assert ours.conv2d(x, w).is_contiguous(memory_format=torch.channels_last)
    assert ours.conv2d(x.contiguous(), w).is_contiguous()


@pytest.mark.parametrize("rank", [2, 3])
def test_channels_last(rank):
    last = {2: torch.channels_last, 3: torch.channels_last_3d}[rank]
    conv, size = {2: "conv2d", 3: "conv3d"}[rank], (9, 10, 7)[:rank]
    for groups in (1, 18):
        w = random(1, 36, 18 // groups, *(3,) * rank, grad=False)
        for x_last, w_last in ((True, False), (True, True), (False, True), (False, False)):
            x = random(2, 2, 18, *size, grad=False).to(memory_format=last if x_last else torch.contiguous_format)
            v = w.clone(memory_format=last if w_last else torch.contiguous_format).requires_grad_()
            x = x.requires_grad_()
            layer = {"padding": 1, "stride": 2, "groups": groups}
            require_same_layer(getattr(ours, conv), getattr(F, conv), x, v, None, **layer)
            y = getattr(ours, conv)(x, v, None, **layer)
            wanted = last if x_last or w_last else torch.contiguous_format
            assert y.is_contiguous(memory_format=wanted)
            y.square().sum().backward()
            assert x.grad.is_contiguous(memory_format=last if x_last else torch.contiguous_format)
            x.grad = None


def layouts(shape):
    """Tensors of a shape in several layouts; the third is half of the channels of one that has them last."""
    yield random(1, *shape, grad=False)
    yield random(2, *shape, grad=False).to(memory_format=torch.channels_last)
    yield random(3, shape[0], 2 * shape[1], *shape[2:], grad=False).to(memory_format=torch.channels_last)[:, :shape[1]]
    yield random(4, *shape[:2], shape[3], shape[2], grad=False).mT
    yield random(5, shape[0], 1, *shape[2:], grad=False).expand(shape)


@pytest.mark.parametrize("x, w, layer", [
    ((2, 8, 9, 10), (4, 8, 3, 3), {}),
    ((2, 8, 9, 10), (8, 1, 3, 3), {"groups": 8}),
    ((2, 1, 9, 10), (8, 1, 3, 3), {}),             # tensors of one channel fit both formats
    ((2, 8, 1, 1), (4, 8, 3, 3), {"padding": 1}),  # and so do those of one position
    ((2, 3, 9, 10), (4, 3, 1, 1), {}),
    ((1, 3, 9, 1), (4, 3, 3, 1), {}),
    ((2, 8, 9, 10), (1, 8, 9, 10), {}),
], ids=str)
def test_results_have_the_strides_of_pytorch(x, w, layer):
    for dtype in (torch.float32, torch.float64):
        for a in layouts(x):
            for b in layouts(w):
                a, b = a.to(dtype), b.to(dtype)
                found, expected = ours.conv2d(a, b, **layer), F.conv2d(a, b, **layer)
                assert found.stride() == expected.stride(), (dtype, a.stride(), b.stride())


def test_without_a_batch_and_with_an_empty_one():
    x, w, b = random(1, 3, 8, 9), random(2, 4, 3, 3, 3), random(3, 4)
    require_same_layer(ours.conv2d, F.conv2d, x, w, b)
    require_same_layer(ours.conv_transpose2d, F.conv_transpose2d, x, random(2, 3, 4, 3, 3), b)
    for empty in (ours.conv2d(x.new_empty(0, 3, 8, 9), w, b), F.conv2d(x.new_empty(0, 3, 8, 9), w, b)):
        assert empty.shape == (0, 4, 6, 7)
    x = torch.empty(0, 3, 8, 9, requires_grad=True)
    ours.conv2d(x, w, b).sum().backward()
    assert x.grad.shape == x.shape and w.grad.shape == w.shape and not w.grad.any() and not b.grad.any()


@pytest.mark.parametrize("needed", range(8))
def test_only_gradients_that_are_needed(needed):
    x, w, b = (t.requires_grad_(bool(needed >> i & 1))
               for i, t in enumerate((random(1, 2, 3, 8, grad=False), random(2, 4, 3, 3, grad=False),
                                      random(3, 4, grad=False))))
    y = ours.conv1d(x, w, b)
    assert y.requires_grad == (needed != 0)
    if needed:
        with dispatch_mode() as mode:
            y.sum().backward()
        wanted = [f"partita.{name}" for i, name in ((0, "conv_input"), (1, "conv_weight")) if needed >> i & 1]
        assert sorted(mode.counts()["native"]) == wanted
    assert [t.grad is not None for t in (x, w, b)] == [bool(needed >> i & 1) for i in range(3)]


ERRORS = [
    ("conv2d", (1, 3, 8, 8), (4, 2, 3, 3), {}),
    ("conv2d", (1, 3, 8, 8), (4, 3, 3, 3), {"groups": 2}),
    ("conv2d", (1, 3, 8), (4, 3, 3), {}),
    ("conv2d", (1, 3, 2, 2), (4, 3, 3, 3), {}),
    ("conv2d", (1, 3, 8, 8), (4, 3, 3, 3), {"stride": 0}),
    ("conv2d", (1, 3, 8, 8), (4, 3, 3, 3), {"padding": -1}),
    ("conv2d", (1, 3, 8, 8), (4, 3, 3, 3), {"stride": (1, 1, 1)}),
    ("conv1d", (1, 3, 8), (4, 3, 3), {"padding": "same", "stride": 2}),
    ("conv1d", (1, 3, 8), (4, 3, 3), {"padding": "some"}),
    ("conv1d", (1, 3, 8), (4, 3, 3), {"bias": torch.zeros(3)}),
    ("conv_transpose1d", (1, 3, 8), (4, 3, 3), {}),
    ("conv_transpose1d", (1, 3, 8), (3, 4, 3), {"output_padding": 1}),
    ("conv2d", None, (4, 3, 3, 3), {}),
    ("conv_transpose2d", (1, 3, 8, 8), None, {}),
]


@pytest.mark.parametrize("name, x, w, layer", ERRORS, ids=range(len(ERRORS)))
def test_errors_are_those_of_torch(name, x, w, layer):
    raised = []
    for module in (ours, F):
        with pytest.raises((RuntimeError, TypeError, ValueError)) as error:
            getattr(module, name)(*(shape and torch.zeros(shape) for shape in (x, w)), **layer)
        raised.append((error.type, str(error.value).partition(" - got")[0]))
    assert raised[0] == raised[1]


def test_other_types_are_left_to_torch():
    x, w = torch.arange(12).reshape(1, 2, 6), torch.arange(12).reshape(2, 2, 3)
    with dispatch_mode() as mode:
        assert torch.equal(ours.conv1d(x, w), F.conv1d(x, w))
    assert mode.counts()["fallback"] == {("aten.convolution", "type torch.int64"): 2}
    with pytest.raises(RuntimeError, match="expected scalar type"):
        ours.conv1d(x.float(), w.double())


def test_causal():
    x, w, b = random(1, 2, 3, 40), random(2, 4, 3, 7), random(3, 4)
    for _ in range(2):
        require_same_layer(lambda x, w, b: ours.conv1d(x, w, b, padding="causal", dilation=2),
                           lambda x, w, b: F.conv1d(x, w, b, padding=12, dilation=2)[..., :40], x, w, b)
    x, w = x.detach().round().long(), w.detach().round().long()
    assert torch.equal(ours.conv1d(x, w, padding="causal", stride=3), F.conv1d(F.pad(x, (6, 0)), w, stride=3))
    with pytest.raises(RuntimeError, match="causal"):
        ours.conv2d(random(1, 2, 3, 9, 8), random(2, 4, 3, 3, 3), padding="causal")


def test_fft_conv():
    x, w, b = random(1, 2, 4, 30, 31), random(2, 6, 2, 5, 4), random(3, 6)
    require_same_layer(ours.fft_conv, F.conv2d, x, w, b, padding=(2, 1), stride=(1, 2), groups=2)
    y = ours.fft_conv(x, w, b, padding=(2, 1), padding_mode="circular", groups=2)
    padded = F.pad(x.detach().double(), (1, 1, 2, 2), mode="circular")
    require_close(y, F.conv2d(padded, w.detach().double(), b.detach().double(), groups=2))


@pytest.mark.parametrize("change, error, text", [
    ({"signal": [1.0]}, TypeError, "signal is of type list: a tensor is needed"),
    ({"kernel": None}, TypeError, "kernel is of type NoneType"),
    ({"signal": torch.zeros(2, 2)}, ValueError, "signal has 2 axes"),
    ({"padding": "full"}, ValueError, "padding = 'full': 'same', 'valid', or a number for each of 1 axes"),
    ({"padding": 1.5}, ValueError, "padding = 1.5"),
])
def test_fft_conv_refuses(change, error, text):
    given = {"signal": torch.zeros(1, 2, 9), "kernel": torch.zeros(3, 2, 3), "padding_mode": "reflect"}
    with pytest.raises(error, match=text):
        ours.fft_conv(**given | change)
    assert torch.equal(ours.fft_conv(**given, padding="valid"), torch.zeros(1, 3, 7))


def test_autocast_gives_the_type_of_autocast():
    x, w = random(1, 2, 3, 9, 9), random(2, 4, 3, 3, 3)
    with torch.autocast("cpu", torch.bfloat16):
        y, expected = ours.conv2d(x, w), F.conv2d(x, w)
        assert torch.ops.partita.conv(x.bfloat16(), w, None, [1, 1], [0, 0], [1, 1], 1, "").dtype == torch.float32
        assert ours.conv_transpose2d(x, w.transpose(0, 1)).dtype == torch.bfloat16
        assert ours.conv2d(x.double(), w.double()).dtype == torch.float64
    assert y.dtype == expected.dtype == torch.bfloat16
    y.sum().backward()
    assert x.grad.dtype == w.grad.dtype == torch.float32
    require_close(y, F.conv2d(x.detach().bfloat16().double(), w.detach().bfloat16().double()))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("last", [False, True])
def test_autocast_computes_in_its_type(dtype, last):
    """Samples are not converted to another type, and taps are packed once."""
    x, w, b = random(1, 2, 32, 9, 9, grad=False), random(2, 16, 32, 3, 3, grad=False), random(3, 16, grad=False)
    x = x.to(dtype, memory_format=torch.channels_last if last else torch.contiguous_format)
    narrow = [double(t.to(dtype)) for t in (x, w, b)]
    with torch.autocast("cpu", dtype):
        for _ in range(2):
            y = ours.conv2d(x, w, b, padding=1)
            require_close(y, F.conv2d(*narrow, padding=1))
            assert y.dtype == dtype and y.is_contiguous(memory_format=torch.channels_last) == last
        layer, = {kept.layer for kept in _calls._forms(w).values()}
        assert layer.dtype == dtype
        w.mul_(2)
        require_close(ours.conv2d(x, w, b, padding=1), F.conv2d(narrow[0], 2 * narrow[1], narrow[2], padding=1))
        gradients = [t.requires_grad_() for t in (x.detach(), w, b)]
        y = ours.conv2d(*gradients, padding=1)
        g = random(4, *y.shape, dtype=dtype, grad=False)
        y.backward(g)
    wide = [t.requires_grad_() for t in (narrow[0], 2 * narrow[1], narrow[2].detach())]
    wide = [t.detach().requires_grad_() for t in wide]
    F.conv2d(*wide, padding=1).backward(g.double())
    for t, e in zip(gradients, wide):
        assert t.grad.dtype == t.dtype
        assert torch.linalg.vector_norm(t.grad - e.grad) <= TOLERANCE[dtype] * torch.linalg.vector_norm(e.grad)


def test_a_layer_that_was_seen_is_not_used_for_other_calls():
    x, w, b = random(1, 2, 3, 9, 8, grad=False), random(2, 4, 3, 3, 3, grad=False), random(3, 4, grad=False)
    for _ in range(3):
        require_close(ours.conv2d(x, w, b), F.conv2d(double(x), double(w), double(b)), 1)
        w.mul_(2)
    with torch.autocast("cpu", torch.bfloat16):
        assert ours.conv2d(x, w, b).dtype == torch.bfloat16
    with dispatch_mode() as mode:
        ours.conv2d(x, w, b)
    assert mode.counts()["native"] == {"partita.conv": 1}
    with torch.autograd.forward_ad.dual_level():
        y = ours.conv2d(torch.autograd.forward_ad.make_dual(x, x), w)
        assert torch.autograd.forward_ad.unpack_dual(y).tangent is not None
    with pytest.raises(RuntimeError):
        ours.conv2d(x, w, b[:3])


def seen_twice(x, w, b=None, **layer):
    """A layer whose kind was computed before, so that it is recorded without the dispatcher."""
    ours.conv2d(x, w, b, **layer)
    return ours.conv2d(x, w, b, **layer)


def test_gradients_without_the_dispatcher():
    layer = {"stride": (1, 2), "padding": (1, 0), "groups": 2}
    x, w, b = (random(i, *shape, dtype=torch.float64)
               for i, shape in enumerate(((2, 4, 5, 6), (6, 2, 3, 2), (6,))))
    assert type(seen_twice(x, w, b, **layer).grad_fn).__name__ == "RecordedConvBackward"
    torch.autograd.gradcheck(lambda *t: seen_twice(*t, **layer), (x, w, b))
    torch.autograd.gradgradcheck(lambda *t: seen_twice(*t, **layer), (x, w, b))
    # Every output's gradient at once, by vmap of the gradients.
    torch.autograd.gradcheck(lambda *t: seen_twice(*t, **layer), (x, w, b), check_batched_grad=True)
    with torch.autograd.graph.save_on_cpu():
        y = seen_twice(x, w, b, **layer)
    gradients = torch.autograd.grad(y.square().sum(), (x, w, b))
    expected = torch.autograd.grad(F.conv2d(x, w, b, **layer).square().sum(), (x, w, b))
    for gradient, want in zip(gradients, expected):
        require_close(gradient, want)


@pytest.mark.parametrize("needed", range(1, 8))
def test_gradients_that_are_needed_without_the_dispatcher(needed):
    """Taps without a gradient are kept between calls, others are packed anew."""
    tensors = [random(1, 2, 3, 9, 8, grad=False), random(2, 4, 3, 3, 3, grad=False), random(3, 4, grad=False)]
    for i, t in enumerate(tensors):
        t.requires_grad_(bool(needed >> i & 1))
    for _ in range(2):
        require_same_layer(seen_twice, F.conv2d, *tensors)
        with torch.no_grad():
            tensors[1].mul_(2)


def test_changed_operands_are_refused_without_the_dispatcher():
    x, w = random(1, 2, 3, 9, 8), random(2, 4, 3, 3, 3)
    y = seen_twice(x, w)
    with torch.no_grad():
        w.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()

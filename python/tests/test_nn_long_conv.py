# SPDX-License-Identifier: MIT
"""partita.nn.long_conv against sums in double precision: results, gradients, bits, memory, refusals."""
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

import torch.nn.functional as F  # noqa: E402
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from nn_checks import double, forward_derivative, random, require_close  # noqa: E402

from partita.nn import CausalLongConv, _long_conv, long_conv  # noqa: E402


def reference(x, taps, D=None):
    """By torch's convolution, which sums directly."""
    w = (taps.unsqueeze(1) if taps.dim() == 2 else taps).flip(-1)
    y = F.conv1d(F.pad(x, (w.shape[-1] - 1, 0)), w, groups=x.shape[1] // w.shape[1])
    return y if D is None else y + D[:, None] * x


def fftconv(u, k, D):
    """The function of Hyena and H3, without its activation."""
    n = 2 * u.shape[-1]
    return torch.fft.irfft(torch.fft.rfft(u, n=n) * torch.fft.rfft(k, n=n), n=n)[..., :u.shape[-1]] + u * D[:, None]


def operands(seed, shape, taps_shape, skip, dtype=torch.float32, taps_dtype=None):
    return (random(seed, *shape, dtype=dtype), random(seed + 1, *taps_shape, dtype=taps_dtype or dtype),
            random(seed + 2, shape[1], dtype=taps_dtype or dtype) if skip else None)


def require_same(x, taps, D, expected=reference, times=1):
    """The result and all gradients are the expected ones, and of the types of the arguments."""
    wide = [double(t) for t in (x, taps, D)]
    y, exact = long_conv(x, taps, D), expected(*wide)
    require_close(y, exact, times)
    gy = random(9, *y.shape, dtype=y.dtype, grad=False)
    given = [(t, w) for t, w in zip((x, taps, D), wide) if t is not None]
    ours = torch.autograd.grad(y, [t for t, _ in given], gy)
    for g, want, (t, _) in zip(ours, torch.autograd.grad(exact, [w for _, w in given], gy.double()), given):
        assert g.dtype == t.dtype
        require_close(g, want, times)


@settings(deadline=None, max_examples=30)
@given(st.data())
def test_results_and_gradients(data):
    draw = data.draw
    inside, groups, outputs = draw(st.integers(1, 3)), draw(st.integers(1, 7)), draw(st.integers(1, 3))
    depthwise = draw(st.booleans())
    channels = groups * (1 if depthwise else inside)
    n_taps, frames = draw(st.integers(1, 400)), draw(st.integers(1, 300))
    shape = (channels, n_taps) if depthwise else (groups * outputs, inside, n_taps)
    dtype = draw(st.sampled_from([torch.float32, torch.float64]))
    skip = draw(st.booleans()) and shape[0] == channels
    x, taps, D = operands(draw(st.integers(0, 99)), (draw(st.integers(1, 3)), channels, frames), shape, skip, dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_long_conv, "_CHUNK_BYTES", draw(st.sampled_from([1, 20_000, 1 << 22])))
        # Of few frames, the L2 norm of a result is no mean over its errors.
        require_same(x, taps, D, times=2)


@pytest.mark.parametrize("taps_dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_types_of_two_bytes(dtype, taps_dtype):
    x, taps, D = operands(4, (2, 40, 700), (40, 600), True, dtype, taps_dtype)
    y = long_conv(x, taps, D)
    assert torch.equal(y, long_conv(x.float(), taps.float(), D.float()).to(dtype))
    gy = random(5, *y.shape, dtype=dtype, grad=False)
    single = [t.detach().float().requires_grad_() for t in (x, taps, D)]
    wanted = torch.autograd.grad(long_conv(*single), single, gy.float())
    for g, want, t in zip(torch.autograd.grad(y, (x, taps, D), gy), wanted, (x, taps, D)):
        assert torch.equal(g, want.to(t.dtype))


def test_fftconv_of_hyena():
    require_same(*operands(6, (2, 5, 3000), (5, 3000), True), expected=fftconv)


def test_a_long_filter():
    require_same(*operands(7, (1, 2, 1 << 17), (2, 1 << 17), True), expected=fftconv)


def test_taps_beyond_the_frames():
    x, taps, D = operands(8, (2, 3, 10), (3, 30), True)
    y = long_conv(x, taps, D)
    assert torch.equal(y, long_conv(x, taps[:, :10], D))
    gtaps, = torch.autograd.grad(y.sum(), taps)
    assert gtaps[:, :10].all() and not gtaps[:, 10:].any()


def test_strides_of_x_change_no_bit():
    x, taps, D = operands(10, (2, 40, 500), (40, 500), True)
    y = long_conv(x, taps, D)
    for other in (x.mT.contiguous().mT, torch.stack([x, x], -1)[..., 0]):
        assert torch.equal(long_conv(other, taps, D), y)
    gx, = torch.autograd.grad(y.sum(), x)  # a gradient that is expanded from one number
    require_close(gx, torch.autograd.grad(reference(x, taps, D).sum(), x)[0].double(), 2)


def test_bits_do_not_depend_on_threads():
    x, taps, D = operands(11, (3, 70, 2000), (70, 2000), True)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            y = long_conv(x, taps, D)
            found.append([y, *torch.autograd.grad(y.square().sum(), (x, taps, D))])
    finally:
        torch.set_num_threads(before)
    for one, two in zip(*found):
        assert torch.equal(one, two)


@pytest.mark.parametrize("shape, groups", [((3, 9), 3), ((4, 2, 6), 2)])
@pytest.mark.parametrize("skip", [True, False])
def test_derivatives_of_both_orders(shape, groups, skip):
    x, taps, D = operands(12, (2, shape[0], 7), shape, skip, torch.float64)
    given = (x, taps, D) if skip else (x, taps)
    assert torch.autograd.gradcheck(long_conv, given)
    assert torch.autograd.gradgradcheck(long_conv, given)
    for wanted in given:  # the others are constants
        alone = [t.detach().requires_grad_(t is wanted) for t in given]
        assert torch.autograd.gradcheck(long_conv, alone) and torch.autograd.gradgradcheck(long_conv, alone)


@pytest.mark.parametrize("shape", [(4, 9), (4, 2, 9)])
def test_forward_derivatives_and_transforms(shape):
    x, taps, D = (t.detach() for t in operands(16, (2, 4, 7), shape, True))
    for derivative in (torch.func.jvp(lambda h: long_conv(x, h, D), (taps,), (taps,))[1],
                       forward_derivative(lambda x, h: long_conv(x, h, D), x, taps)):
        require_close(derivative, reference(x.double(), taps[..., :7].double()))
    wanted = torch.autograd.grad(long_conv(x, taps.requires_grad_(), D).square().sum(), taps)[0]
    taps = taps.detach()
    require_close(torch.func.grad(lambda h: long_conv(x, h, D).square().sum())(taps), wanted.double(), 2)
    require_close(torch.vmap(lambda x: long_conv(x, taps, D))(x[None])[0], long_conv(x, taps, D).double(), 2)


def test_operators():
    x, taps, D = operands(13, (2, 4, 30), (4, 1, 20), True)
    for arguments in ((x, taps, D), (x, taps, None)):
        torch.library.opcheck(torch.ops.partita.long_conv, arguments)
        gy = torch.randn(2, 4, 30)
        for needed in ([True, True], [False, True], [True, False]):
            torch.library.opcheck(torch.ops.partita.long_conv_backward, (gy, *arguments, needed))


def test_compiled_without_a_break():
    layer = CausalLongConv(6, 300)

    @torch.compile(fullgraph=True, dynamic=True, backend="aot_eager")
    def model(x, gate):
        return gate * layer(x * gate)

    for frames in (300, 400):
        x, gate = torch.randn(2, 6, frames, requires_grad=True), torch.randn(2, 6, frames)
        y, expected = model(x, gate), gate * layer(x * gate)
        assert torch.equal(y, expected)
        leaves = x, layer.taps, layer.D
        for ours, theirs in zip(*(torch.autograd.grad(z.square().sum(), leaves) for z in (y, expected))):
            assert torch.equal(ours, theirs)


def test_the_module():
    layer = CausalLongConv(6, 40, groups=2)
    assert layer.taps.shape == (6, 3, 40) and layer.D.shape == (6,) and "(6, 3, 40)" in repr(layer)
    x = torch.randn(2, 6, 50)
    require_close(layer(x), reference(x.double(), layer.taps.double(), layer.D.double()))
    assert CausalLongConv(6, 40, skip=False, dtype=torch.float64).D is None
    assert list(layer.state_dict()) == ["taps", "D"]


def test_empty_batches_have_gradients():
    x, taps, D = operands(14, (0, 3, 20), (3, 20), True)
    y = long_conv(x, taps, D)
    assert y.shape == (0, 3, 20)
    gx, gtaps, gskip = torch.autograd.grad(y.sum(), (x, taps, D))
    assert gx.shape == x.shape and not gtaps.any() and not gskip.any()


def test_memory():
    """Beyond results a call takes samples and spectra of some channels, not of all: here 64 of 1 MiB each."""
    program = """
import torch
from partita.nn import long_conv
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) >> 10
x, taps = (torch.ones(64, 1 << 18).mul_(0.5).requires_grad_() for _ in range(2))
y = long_conv(x[None, :2], taps[:2]); y.sum().backward(); x.grad = taps.grad = None  # tables and threads
before = peak()
y = long_conv(x[None], taps)
y.backward(torch.ones(1).expand_as(y))
print(peak() - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 3 * 64 + 64  # MiB: y and two gradients; some chunks


@pytest.mark.parametrize("change, words", [
    ({"x": torch.ones(3, 20)}, "x: shape"),
    ({"x": torch.ones(2, 3, 20, dtype=torch.int32)}, "x: shape .*int32"),
    ({"taps": torch.ones(4, 20)}, "taps: shape .* for 3 channels"),
    ({"taps": torch.ones(3, 0)}, "taps: shape"),
    ({"taps": torch.ones(3, 2, 20)}, "taps: shape"),
    ({"taps": torch.ones(3)}, "taps: shape"),
    ({"taps": torch.ones(3, 20, dtype=torch.complex64)}, "taps: torch.complex64"),
    ({"taps": torch.ones(3, 20, device="meta")}, "taps: on meta"),
    ({"x": None}, "x is of type NoneType: a tensor is needed"),
    ({"taps": [1.0]}, "taps is of type list"),
    ({"D": 1.0}, "D is of type float"),
    ({"taps": torch.ones(1, 1).expand(3, (1 << 20) + 1)}, "at most 1048576"),
    ({"D": torch.ones(4)}, "D: shape"),
    ({"D": torch.ones(3, dtype=torch.int64)}, "D: torch.int64"),
])
def test_refusals(change, words):
    given = {"x": torch.ones(2, 3, 20), "taps": torch.ones(3, 20), "D": torch.ones(3)} | change
    with pytest.raises(TypeError if "is of type" in words else ValueError, match=words):
        long_conv(**given)


def test_refusals_of_the_module():
    for words, arguments in {"groups: 4 do not divide 6": (6, 40, 4), "n_taps = 0": (6, 0), "channels = 0": (0, 40),
                             "groups = -2": (6, 40, -2), "n_taps = 1048577": (1, (1 << 20) + 1)}.items():
        with pytest.raises(ValueError, match=words):
            CausalLongConv(*arguments)
    with pytest.raises(ValueError, match="taps: 3 for each output"):
        CausalLongConv(6, 40, 2).decode()


@pytest.mark.parametrize("skip", [True, False])
def test_a_decoder_continues_what_the_module_has_computed(skip):
    layer, x = CausalLongConv(20, 300, skip=skip), random(15, 2, 20, 400, grad=False)
    state = layer.decode(sequences=2, max_frames=400)
    slots = [state.join(), state.join()]
    prompts = torch.stack([state.prefill(slot, prompt) for slot, prompt in zip(slots, x[..., :350])])
    y = torch.cat([prompts, *(state.step(frame, slots).unsqueeze(-1) for frame in x[..., 350:].unbind(-1))], -1)
    require_close(y, layer(x).double(), 2)
    assert layer.bfloat16().decode().dtype == torch.bfloat16

# SPDX-License-Identifier: MIT
"""partita.nn.causal_conv1d and causal_conv1d_update against PyTorch in double precision: results, gradients, bits."""
import shutil

import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

import torch.nn.functional as F  # noqa: E402
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from nn_checks import forward_derivative  # noqa: E402

from partita.nn import causal_conv1d, causal_conv1d_update  # noqa: E402

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
# x is read as it is in each of these orders.
ORDERS = {
    "frames": lambda *shape: torch.randn(shape),
    "channels": lambda batch, channels, frames: torch.randn(batch, frames, channels).transpose(1, 2),
    "slice": lambda batch, channels, frames: torch.randn(batch, frames, channels + 5).transpose(1, 2)[:, 2:-3],
    "neither": lambda batch, channels, frames: torch.randn(batch, channels, frames, 2)[..., 1],
}


def reference(x, weight, bias=None, silu=False, initial=None):
    """Outputs and final states in double."""
    past = weight.shape[1] - 1
    before = x.new_zeros(*x.shape[:2], past) if initial is None else initial
    whole = torch.cat([before, x], -1).double()
    y = F.conv1d(whole, weight.double().unsqueeze(1), None if bias is None else bias.double(), groups=x.shape[1])
    return F.silu(y) if silu else y, whole[..., x.shape[-1]:]


def require_close(ours, exact, taps=4, terms=1):
    """`terms` samples are summed in f32 after chains of `taps` products of samples of about 1."""
    eps = torch.finfo(ours.dtype).eps
    bound = eps * exact.abs() + 1e-6 * (taps + terms) ** 0.5 * (1 + exact.abs().max()) + torch.finfo(ours.dtype).tiny
    assert ours.shape == exact.shape
    assert ((ours.double() - exact).abs() <= bound).all(), ((ours.double() - exact).abs() / bound).max()


def operands(order, dtype, taps=4, shape=(2, 37, 50), taps_dtype=torch.float32):
    torch.manual_seed(3)
    return (ORDERS[order](*shape).to(dtype), torch.randn(shape[1], taps).to(taps_dtype) / taps ** 0.5,
            torch.randn(shape[1]).to(taps_dtype), torch.randn(shape[0], taps - 1, shape[1]).to(dtype).transpose(1, 2))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("taps", [1, 2, 4, 7, 256])
def test_outputs_and_final_states(order, dtype, taps):
    x, w, b, initial = operands(order, dtype, taps)
    require_close(causal_conv1d(x, w), reference(x, w)[0], taps)
    y, final = causal_conv1d(x, w, b, "silu", initial, return_final_states=True)
    exact, states = reference(x, w, b, True, initial)
    require_close(y, exact, taps)
    assert torch.equal(final.double(), states)
    out = torch.empty_like(initial)
    assert causal_conv1d(x, w, initial_states=initial, return_final_states=True, final_states_out=out)[1] is out
    assert torch.equal(out, final)


@pytest.mark.parametrize("taps_dtype", DTYPES, ids=str)
def test_taps_have_types_of_their_own(taps_dtype):
    x, w, b, _ = operands("frames", torch.bfloat16, taps_dtype=taps_dtype)
    require_close(causal_conv1d(x, w, b.float()), reference(x, w, b)[0])


@pytest.mark.parametrize("silu", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("order", ORDERS)
def test_gradients(order, dtype, silu):
    given = [t.requires_grad_() for t in operands(order, dtype)]
    x, w, b, initial = given
    exact = [t.detach().double().requires_grad_() for t in given]
    y, final = causal_conv1d(x, w, b, "silu" if silu else None, initial, return_final_states=True)
    y_exact, final_exact = reference(exact[0], exact[1], exact[2], silu, exact[3])
    gy, gfinal = torch.randn_like(y), torch.randn_like(final)
    ours = torch.autograd.grad([y, final], given, [gy, gfinal])
    theirs = torch.autograd.grad([y_exact, final_exact], exact, [gy.double(), gfinal.double()])
    for name, g, e, t in zip(("x", "weight", "bias", "initial"), ours, theirs, given):
        assert g.dtype == t.dtype, name
        require_close(g, e, terms=100)


def test_numbered_sequences():
    x, w, b, _ = operands("channels", torch.float32)
    x.requires_grad_()
    numbers = torch.tensor([[0] * 20 + [1] * 3 + [-1] * 7 + [2] * 20, [4] * 50], dtype=torch.int32)
    y = causal_conv1d(x, w, b, "silu", seq_idx=numbers)
    for row, begin, end in ((0, 0, 20), (0, 20, 23), (0, 30, 50), (1, 0, 50)):
        part = x.detach()[row:row + 1, :, begin:end]
        assert torch.equal(y[row:row + 1, :, begin:end], causal_conv1d(part, w, b, "silu"))
    assert not y[0, :, 23:30].any()
    gy = torch.randn_like(y)
    gx, = torch.autograd.grad(y, x, gy)
    part = x.detach()[:1, :, :20].requires_grad_()
    expected, = torch.autograd.grad(causal_conv1d(part, w, b, "silu"), part, gy[:1, :, :20])
    assert torch.equal(gx[:1, :, :20], expected) and not gx[0, :, 23:30].any()


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_bits_do_not_depend_on_calls(data):
    """A sequence in one call, and cut into calls of both functions, with states in slots, shifted or in rings."""
    draw = data.draw
    dtype, taps, frames = draw(st.sampled_from(DTYPES)), draw(st.integers(2, 9)), draw(st.integers(1, 40))
    channels, ring = draw(st.integers(1, 40)), draw(st.booleans())
    x, w, b, _ = operands(draw(st.sampled_from(list(ORDERS))), dtype, taps, (3, channels, frames))
    whole = causal_conv1d(x, w, b, "silu")
    prefill = draw(st.integers(0, frames - 1))
    slots = torch.tensor(draw(st.permutations(range(7)))[:3])
    states = torch.zeros(7, channels, taps - 1 + draw(st.integers(0, 4))).to(dtype)
    seen = torch.zeros(3, dtype=torch.int64)
    if prefill:
        y, final = causal_conv1d(x[..., :prefill], w, b, "silu", return_final_states=True)
        assert torch.equal(y, whole[..., :prefill])
        states[slots, :, 1 - taps:] = final
        seen += states.shape[2]
    while prefill < frames:
        n = draw(st.integers(1, min(8, frames - prefill)))
        y = causal_conv1d_update(x[..., prefill:prefill + n], states, w, b, "silu", seen if ring else None,
                                 conv_state_indices=slots)
        assert torch.equal(y, whole[..., prefill:prefill + n])
        prefill, seen = prefill + n, seen + n
    unused = [s for s in range(7) if s not in slots]
    assert not states[unused].any()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_packed_sequences(dtype):
    _, w, b, _ = operands("frames", dtype, shape=(1, 24, 1))
    starts, has = torch.tensor([0, 5, 6, 6, 30], dtype=torch.int32), torch.tensor([True, False, True, True])
    x, states = torch.randn(24, 33).to(dtype), torch.randn(9, 24, 3).to(dtype)
    before, slots = states.clone(), torch.tensor([3, 0, 8, -1], dtype=torch.int32)
    y = causal_conv1d(x, w, b, "silu", query_start_loc=starts, conv_states=states, cache_indices=slots,
                      has_initial_state=has)
    for i, (begin, end) in enumerate(((0, 5), (5, 6))):
        initial = before[slots[i]] if has[i] else torch.zeros(24, 3, dtype=dtype)
        one, final = causal_conv1d(x[None, :, begin:end], w, b, "silu", initial[None], return_final_states=True)
        assert torch.equal(y[:, begin:end], one[0]) and torch.equal(states[slots[i]], final[0])
    assert not y[:, 6:].any()  # padding, and frames of no sequence
    assert torch.equal(states[[1, 2, 4, 5, 6, 7, 8]], before[[1, 2, 4, 5, 6, 7, 8]])
    assert torch.equal(causal_conv1d(x[:, :5], w, query_start_loc=starts[:2]), causal_conv1d(x[None, :, :5], w)[0])
    spread, copied = torch.stack([has, ~has], 1)[:, 0], before.clone()  # has_initial_state with a stride of 2
    assert torch.equal(causal_conv1d(x, w, b, "silu", query_start_loc=starts, conv_states=copied, cache_indices=slots,
                                     has_initial_state=spread), y)
    other = torch.where(slots == -1, 99, slots)
    again = causal_conv1d(x, w, b, "silu", query_start_loc=starts, conv_states=before, cache_indices=other,
                          has_initial_state=has, pad_slot_id=99)
    assert torch.equal(again, y) and torch.equal(before, states)


def test_gradients_of_packed_sequences():
    x, w, b, _ = operands("frames", torch.float32, shape=(1, 24, 33))
    given, starts = [t.requires_grad_() for t in (x[0], w, b)], torch.tensor([0, 5, 6, 6, 30])
    y = causal_conv1d(*given, "silu", query_start_loc=starts)
    with torch.no_grad():
        expected = causal_conv1d(*given, "silu", query_start_loc=starts)
        expected[:, 30:] = 0
    assert torch.equal(y, expected)
    exact = [t.detach().double().requires_grad_() for t in given]
    parts = [reference(exact[0][None, :, a:e], exact[1], exact[2], True)[0] for a, e in ((0, 5), (5, 6), (6, 30))]
    gy = torch.randn(24, 33)
    ours = torch.autograd.grad(y, given, gy)
    theirs = torch.autograd.grad(torch.cat(parts, -1)[0], exact, gy[:, :30].double())
    for g, e in zip(ours, theirs):
        require_close(g, e, terms=30)
    for bad in ([1, 5], [0, 6, 5], [0, 34]):
        with pytest.raises(ValueError, match="query_start_loc"):
            causal_conv1d(*given, query_start_loc=torch.tensor(bad))


@pytest.mark.parametrize("silu", [None, "silu"])
def test_double_gradients(silu):
    x, w, b, initial = (t.double().requires_grad_() for t in operands("channels", torch.float32, 3, (2, 2, 4)))

    def call(x, w, b, initial):
        return causal_conv1d(x, w, b, silu, initial, return_final_states=True)

    assert torch.autograd.gradcheck(call, (x, w, b, initial))
    assert torch.autograd.gradgradcheck(call, (x, w, b, initial))
    single = [t.detach().float().requires_grad_() for t in (x, w, b, initial)]
    second = []
    for tensors in (single, (x, w, b, initial)):
        g = torch.autograd.grad(call(*tensors)[0].square().sum(), tensors, create_graph=True)
        second.append(torch.autograd.grad(sum(t.square().sum() for t in g), tensors))
    for ours, exact in zip(*second):
        assert (ours.double() - exact).abs().max() <= 1e-5 * exact.abs().max()  # some ten sums of 30 products in f32
    numbers = torch.zeros(2, 4, dtype=torch.int32)
    g, = torch.autograd.grad(causal_conv1d(*single[:3], seq_idx=numbers).sum(), single[0], retain_graph=True)
    with pytest.raises(NotImplementedError, match="seq_idx"):
        torch.autograd.grad(causal_conv1d(*single[:3], seq_idx=numbers).sum(), single[0], create_graph=True)


def test_transforms_of_functions():
    x, w, b, _ = operands("frames", torch.float32, shape=(6, 5, 9))
    y = torch.vmap(lambda x: causal_conv1d(x, w, b, "silu"))(x.view(3, 2, 5, 9)).view(6, 5, 9)
    require_close(y, reference(x, w, b, True)[0])
    weights = torch.stack([w, 2 * w])
    both = torch.vmap(lambda w: causal_conv1d(x, w))(weights)
    require_close(both[1], reference(x, 2 * w)[0])
    require_close(torch.func.jvp(lambda w: causal_conv1d(x, w), (w,), (w,))[1], reference(x, w)[0])
    require_close(forward_derivative(causal_conv1d, x, w), reference(x, w)[0])
    with pytest.raises(NotImplementedError, match="seq_idx"):
        torch.func.jvp(lambda w: causal_conv1d(x, w, seq_idx=torch.zeros(6, 9, dtype=torch.int32)), (w,), (w,))
    gx = torch.func.grad(lambda x: causal_conv1d(x, w, b).square().sum())(x)
    exact = x.double().requires_grad_()
    require_close(gx, torch.autograd.grad(reference(exact, w, b)[0].square().sum(), exact)[0], terms=4)


def test_states_that_gradients_need_are_not_changed():
    x, w, _, initial = operands("frames", torch.float32)
    y = causal_conv1d(x, w.requires_grad_(), initial_states=initial)
    for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode):
        for index in (None, torch.arange(2)):  # the latter is converted, so that the call is not one that is known
            for _ in range(2):  # the second call is like one that is known
                version = initial._version
                with mode():
                    causal_conv1d_update(x[..., 0], initial, w.detach(), cache_indices=index)
                assert initial._version > version
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    y = causal_conv1d(x, w, initial_states=initial)
    with torch.no_grad():
        causal_conv1d(x[0], w, query_start_loc=torch.tensor([0, 9]), conv_states=initial)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    with torch.inference_mode():
        states = torch.zeros(2, 37, 3)
        causal_conv1d_update(x[..., 0], states, w)
    causal_conv1d_update(x[..., 0], states, w.detach())


@pytest.mark.parametrize("pad", [99, 0, -2])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_padding_by_another_number(pad, dtype):
    x, w, b, initial = operands("frames", torch.float32, shape=(3, 20, 1))
    states = initial.clone(), initial.clone()
    slots = torch.tensor([2, -1, 1], dtype=dtype)
    y = causal_conv1d_update(x, states[0], w, b, cache_indices=slots)
    other = torch.where(slots == -1, pad, slots)
    for _ in range(2):
        assert torch.equal(causal_conv1d_update(x, states[1], w, b, cache_indices=other, pad_slot_id=pad), y)
        assert torch.equal(*states)
        y = causal_conv1d_update(x, states[0], w, b, cache_indices=slots)
    before = states[1].clone()
    starts = torch.tensor([0, 1, 2, 3])
    for call in (lambda: causal_conv1d_update(x, states[1], w, b, cache_indices=slots, pad_slot_id=pad),
                 lambda: causal_conv1d(x[..., 0].T, w, b, query_start_loc=starts, conv_states=states[1],
                                       cache_indices=slots, pad_slot_id=pad)):
        with pytest.raises(ValueError, match=f"cache_indices: -1 is no slot, and pad_slot_id = {pad}"):
            call()
    assert torch.equal(states[1], before)


def test_update_of_one_frame():
    x, w, b, initial = operands("frames", torch.float32, shape=(3, 20, 1))
    state = initial.clone()
    y = causal_conv1d_update(x[..., 0], state, w, b, cache_indices=torch.tensor([2, 0, 1]))
    exact, final = reference(x, w, b, initial=initial[[2, 0, 1]])
    require_close(y, exact[..., 0])
    assert torch.equal(state[[2, 0, 1]].double(), final)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_calls_have_one_graph_and_the_same_bits(backend):
    if backend == "inductor" and not shutil.which("c++"):
        pytest.skip("no compiler of C++")
    x, w, b, initial = operands("frames", torch.float32)
    w.requires_grad_()

    def model(x, state, w):
        y, final = causal_conv1d(2 * x, w, b, "silu", initial, return_final_states=True)
        with torch.no_grad():
            z = causal_conv1d_update(y[..., -1] + 0, state, w, b)
        return y, 2 * final, z

    compiled = torch.compile(model, fullgraph=True, backend=backend)
    states = initial.clone(), initial.clone()
    ours, expected = compiled(x, states[0], w), model(x, states[1], w)
    assert all(map(torch.equal, ours, expected)) and torch.equal(*states)
    g = [torch.randn_like(t) for t in ours[:2]]
    assert torch.equal(*(torch.autograd.grad(r[:2], w, g)[0] for r in (ours, expected)))


def test_operators_are_registered_well():
    x, w, b, initial = (t.requires_grad_() for t in operands("channels", torch.float32, shape=(1, 3, 6)))
    torch.library.opcheck(torch.ops.partita.causal_conv1d.default, (x, w, b, initial, None, True, True))
    states = torch.zeros(1, 3, 3)
    torch.library.opcheck(torch.ops.partita.causal_conv1d_states.default,
                          (x.detach(), states, w.detach(), None, None, None, None, None, False))


def test_empty_tensors():
    x, w, _, initial = operands("frames", torch.float32)
    y, final = causal_conv1d(x[..., :0], w, initial_states=initial, return_final_states=True)
    assert y.shape == (2, 37, 0) and torch.equal(final, initial)
    assert causal_conv1d(x[:0], w).shape == (0, 37, 50)


X, W, S = torch.zeros(2, 3, 5), torch.zeros(3, 4), torch.zeros(2, 3, 3)
REFUSED = [
    ("x: torch.float64", lambda: causal_conv1d(X.double(), W, seq_idx=torch.zeros(2, 5, dtype=torch.int32))),
    ("x: torch.int64", lambda: causal_conv1d(X.long(), W)),
    ("weight: torch.float64", lambda: causal_conv1d(X, W.double())),
    ("x: 2 axes", lambda: causal_conv1d(X[0], W)),
    ("weight: shape", lambda: causal_conv1d(X, W[:2])),
    ("weight: shape", lambda: causal_conv1d(X, torch.zeros(3, 257))),
    ("bias: shape", lambda: causal_conv1d(X, W, torch.zeros(2))),
    ("activation = 'relu'", lambda: causal_conv1d(X, W, activation="relu")),
    ("initial_states: shape", lambda: causal_conv1d(X, W, initial_states=S[:1])),
    ("initial_states: torch.float16", lambda: causal_conv1d(X, W, initial_states=S.half())),
    ("seq_idx: shape", lambda: causal_conv1d(X, W, seq_idx=torch.zeros(2, 4, dtype=torch.int32))),
    ("seq_idx: sequences", lambda: causal_conv1d(X, W, initial_states=S, seq_idx=torch.zeros(2, 5, dtype=torch.int32))),
    ("need query_start_loc", lambda: causal_conv1d(X, W, conv_states=S)),
    ("query_start_loc: states", lambda: causal_conv1d(X[0], W, initial_states=S, query_start_loc=torch.tensor([0, 5]))),
    (r"query_start_loc\[1\] = 6", lambda: causal_conv1d(X[0], W, query_start_loc=torch.tensor([0, 6]))),
    ("states: shape", lambda: causal_conv1d_update(X, S[..., 1:], W)),
    ("states: torch.bfloat16", lambda: causal_conv1d_update(X, S.bfloat16(), W)),
    ("states: 1 slots", lambda: causal_conv1d_update(X, S[:1], W)),
    ("is given twice", lambda: causal_conv1d_update(X, S, W, conv_state_indices=torch.tensor([1, 1]))),
    (r"cache_indices\[1\] = 2", lambda: causal_conv1d_update(X, S, W, conv_state_indices=torch.tensor([1, 2]))),
    (r"cache_seqlens\[0\] = -1", lambda: causal_conv1d_update(X, S, W, cache_seqlens=torch.tensor([-1, 0]))),
    ("give one of them", lambda: causal_conv1d_update(X, S, W, conv_state_indices=torch.tensor([1, 0]),
                                                      cache_indices=torch.tensor([1, 0]))),
    (r"cache_indices\[0\] = -2", lambda: causal_conv1d_update(X, S, W, conv_state_indices=torch.tensor([-2, 1]))),
    ("weight: on meta; cpu is needed", lambda: causal_conv1d(X, W.to("meta"))),
    ("states: on meta", lambda: causal_conv1d_update(X, S.to("meta"), W)),
    ("cache_indices: on meta", lambda: causal_conv1d_update(X, S, W, cache_indices=torch.tensor([0, 1]).to("meta"))),
    ("has_initial_state: needs conv_states", lambda: causal_conv1d(X[0], W, query_start_loc=torch.tensor([0, 5]),
                                                                   has_initial_state=torch.tensor([True]))),
    ("x is of type ndarray: a tensor is needed", lambda: causal_conv1d(X.numpy(), W)),
    ("weight is of type NoneType", lambda: causal_conv1d(X, None)),
    ("bias is of type list", lambda: causal_conv1d(X, W, [0, 0, 0])),
    ("conv_state is of type NoneType", lambda: causal_conv1d_update(X, None, W)),
    ("cache_indices is of type list", lambda: causal_conv1d_update(X, S, W, cache_indices=[0, 1])),
    ("query_start_loc is of type list", lambda: causal_conv1d(X[0], W, query_start_loc=[0, 5])),
    ("query_start_loc is of type list", lambda: causal_conv1d(X[0], W.clone().requires_grad_(), query_start_loc=[0, 5])),
]


@pytest.mark.parametrize("text, call", REFUSED, ids=[text for text, _ in REFUSED])
def test_bad_arguments_are_refused_by_name(text, call):
    with pytest.raises(TypeError if "is of type" in text else ValueError, match=text):
        call()
    assert not S.any()

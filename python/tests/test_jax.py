# SPDX-License-Identifier: MIT
"""Convolutions of JAX: operators of jax.lax are the oracle."""
import ctypes
import functools
import os
import pathlib
import re
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

# The programs of these tests run once: XLA need not optimize them.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")
jax = pytest.importorskip("jax", reason="jax is not installed")

import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

import partita  # noqa: E402
import partita.jax as pj  # noqa: E402
from partita._partita import ffi, lib  # noqa: E402

jax.config.update("jax_enable_x64", True)
EPS = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


def samples(shape, dtype="float64", seed=1):
    return jnp.asarray(np.random.default_rng(seed).uniform(-1, 1, shape), dtype)


def assert_near(found, expected, terms, dtype="float64"):
    """Sums of `terms` products of numbers below 1: each product and each sum adds a rounding error of at most eps times
    the magnitudes so far, in either library; transforms add those of their passes, at most as many as terms + 64."""
    found, expected = (np.asarray(t, np.float64) for t in (found, expected))
    assert found.shape == expected.shape
    bound = 2 * (terms + 64) * EPS[dtype] * max(1.0, np.sqrt(terms))
    assert np.abs(found - expected).max(initial=0) <= bound


@st.composite
def layers(draw):
    """Shapes and arguments of conv_general_dilated, with a result."""
    rank = draw(st.integers(1, 3))
    axes = st.lists(st.integers(1, 3), min_size=rank, max_size=rank)
    kernel, dilation, ones = draw(axes), draw(axes), [1] * rank
    step = draw(axes)
    stride, up = draw(st.sampled_from([(step, ones), (ones, step)]))
    pad = [(draw(st.integers(-1, 3)), draw(st.integers(-1, 3))) for _ in range(rank)]
    size = [max(1, d * (k - 1) + 1 - sum(p)) + draw(st.integers(0, 4)) for d, k, p in zip(dilation, kernel, pad)]
    size = [n + max(0, -sum(p)) for n, p in zip(size, pad)]
    groups, batch_groups = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (3, 1), (1, 2)]))
    lhs = [batch_groups * draw(st.integers(1, 2)), groups * draw(st.integers(1, 3)), *size]
    rhs = [groups * batch_groups * draw(st.integers(1, 3)), lhs[1] // groups, *kernel]
    specs = [draw(st.sampled_from([list(range(rank + 2)), [0, rank + 1, *range(1, rank + 1)]])
                  | st.permutations(range(rank + 2))) for _ in range(3)]
    shapes = [[shape[spec.index(i)] for i in range(rank + 2)] for shape, spec in zip((lhs, rhs), specs)]
    return *shapes, dict(window_strides=stride, padding=pad, lhs_dilation=up, rhs_dilation=dilation,
                         dimension_numbers=lax.ConvDimensionNumbers(*map(tuple, specs)), feature_group_count=groups,
                         batch_group_count=batch_groups)


def value_and_gradients(conv, arguments, shape, x, w):
    y, pull = jax.vjp(functools.partial(conv, **arguments), x, w)
    return y, *pull(samples(shape, x.dtype, 3))


@settings(max_examples=25)
@given(layers())
def test_values_and_gradients_are_those_of_lax(layer):
    lhs, rhs, arguments = layer
    x, w = samples(lhs), samples(rhs, seed=2)
    shape = jax.eval_shape(functools.partial(lax.conv_general_dilated, **arguments), x, w).shape
    assert pj.serves(x, w, **arguments) == (np.prod(shape) > 0)
    found, expected = (jax.jit(functools.partial(value_and_gradients, conv, arguments, shape))(x, w)
                       for conv in (pj.conv_general_dilated, lax.conv_general_dilated))
    for a, b, terms in zip(found, expected, (w.size, w.size, np.prod(shape))):
        assert_near(a, b, int(terms))


@pytest.mark.parametrize("padding", ["SAME", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("order", [("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC"), ("CHNW", "IHOW", "NCWH")])
def test_words(padding, order):
    sizes = ({"N": 2, "C": 3, "H": 7, "W": 12}, {"O": 4, "I": 3, "H": 3, "W": 4})
    x, w = (samples([size[c] for c in spec]) for size, spec in zip(sizes, order))
    arguments = (x, w, (2, 1), padding, None, (1, 2), order)
    assert pj.serves(*arguments)
    assert_near(pj.conv_general_dilated(*arguments), lax.conv_general_dilated(*arguments), 36)


ONE = ((1, 1), [(0, 0), (0, 0)])
X, W = np.ones((2, 2, 5, 5)), np.ones((4, 2, 3, 3))


@pytest.mark.parametrize("arguments", [
    (X.astype(int), W.astype(int), *ONE), (X + 1j, W + 1j, *ONE), (np.ones((2, 3)), np.ones((4, 3)), (), ()),
    (np.ones((1, 1, 2, 2, 2, 2)), np.ones((1, 1, 1, 1, 1, 1)), (1,) * 4, "SAME"), (X[:, :, :2], W, *ONE),
    (X[:0], W, *ONE), (X, W, (2, 2), ONE[1], (2, 1)), (X.astype(np.int8), W.astype(np.int8), *ONE, *[None] * 3, 1, 1, None,
                                                       np.int32),
])
def test_what_is_not_served_is_computed_by_jax(arguments):
    assert not pj.serves(*arguments)
    found, expected = pj.conv_general_dilated(*arguments), lax.conv_general_dilated(*arguments)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("arguments", [
    (X, W[:, :1], *ONE), (X, W, (1,), ONE[1]), (X, W, (1, 1), "NONE"), (X, W, (1, 1), [1, 1]), (X, W[0], *ONE),
    (X, W.astype(np.float32), *ONE), (X, W, (0, 1), ONE[1]), (X, W, (1, 1), "SAME", (2, 2)), (X, W, *ONE, None, (0, 1)),
    (X, W, *ONE, None, None, ("NHWC", "HWIO", "NHW")), (X, W, *ONE, None, None, None, 3), (X, W, *ONE, None, None, None, 1, 3),
    (X, W, *ONE, None, None, None, 0), (X, W, *ONE, None, None, None, 1, 1, "exact"),
    (X, W, *ONE, None, None, None, 1, 1, None, np.float16), ([[[1.0]]], W, *ONE),
])
def test_bad_arguments_raise_the_errors_of_jax(arguments):
    try:
        lax.conv_general_dilated(*arguments)
    except Exception as error:  # noqa: BLE001
        expected = error
    assert not pj.serves(*arguments)
    with pytest.raises(type(expected)) as raised:
        pj.conv_general_dilated(*arguments)
    assert str(raised.value)[:150] == str(expected)[:150]  # further on some have the line of the call


@pytest.mark.parametrize("order", [None, ("NHWC", "HWIO", "NHWC")])
def test_second_derivatives_and_both_modes(order):
    x = samples((1, 4, 3, 2) if order else (1, 2, 4, 3))
    w = samples((3, 2, 2, 2) if order else (2, 2, 3, 2), seed=2)

    def loss(conv, x, w):
        return jnp.tanh(conv(x, w, (2, 1), "SAME", None, None, order)).sum()

    for derivative in (jax.hessian, lambda f, at: jax.jacrev(jax.jacrev(f, at), at), jax.jacfwd):
        found, expected = (jax.jit(derivative(functools.partial(loss, conv), (0, 1)))(x, w)
                           for conv in (pj.conv_general_dilated, lax.conv_general_dilated))
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
            assert_near(a, b, 1000)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("order", [("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC")])
@pytest.mark.parametrize("axes", [(0, None), (1, None), (None, 3), (2, 0)])
def test_vmap(axes, order, groups):
    x, w = ([6, 4, 5, 5], [4, 4 // groups, 3, 3]) if order[0] == "NCHW" else ([6, 5, 5, 4], [3, 3, 4 // groups, 4])
    for shape, axis in zip((x, w), axes):
        if axis is not None:
            shape.insert(axis, 3)
    x, w = samples(x), samples(w, seed=2)

    def gradients(conv, x, w):  # of every item of what is mapped
        f = functools.partial(conv, window_strides=(1, 1), padding="SAME", dimension_numbers=order,
                              feature_group_count=groups)
        return f(x, w), *jax.grad(lambda x, w: (f(x, w) ** 2).sum(), (0, 1))(x, w)

    found, expected = (jax.jit(jax.vmap(functools.partial(gradients, conv), axes))(x, w)
                       for conv in (pj.conv_general_dilated, lax.conv_general_dilated))
    for a, b in zip(found, expected):
        assert_near(a, b, 2000)


def test_vmap_of_vmap_and_of_nothing():
    x, w = samples((2, 3, 1, 2, 9)), samples((2, 4, 2, 3), seed=2)
    for size in (2, 0):
        found, expected = (jax.vmap(jax.vmap(lambda x, w: conv(x, w, (1,), "SAME"), (0, None)))(x[:size], w[:size])  # noqa: B023
                           for conv in (pj.conv_general_dilated, lax.conv_general_dilated))
        assert_near(found, expected, 6)


def test_scan_and_checkpoint():
    w = samples((2, 2, 3), seed=2) / 3

    def loss(conv, w):
        step = jax.checkpoint(lambda x, _: (jnp.tanh(conv(x, w, (1,), "SAME")), None))
        return lax.scan(step, samples((1, 2, 8)), None, length=5)[0].sum()

    found, expected = (jax.jit(jax.grad(functools.partial(loss, conv)))(w)
                       for conv in (pj.conv_general_dilated, lax.conv_general_dilated))
    assert_near(found, expected, 500)


@pytest.mark.parametrize("size, kernel", [((8, 8), (3, 3)), ((2000,), (301,))])  # the latter in float32
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_other_types(dtype, size, kernel):
    x, w = samples((2, 4, *size), dtype), samples((4, 4, *kernel), dtype, 2)
    arguments = dict(window_strides=(1,) * len(size), padding="SAME")
    expected = lax.conv_general_dilated(x.astype("float64"), w.astype("float64"), **arguments)
    assert pj.serves(x, w, **arguments)
    wide = pj.conv_general_dilated(x, w, **arguments, preferred_element_type="float32")
    assert wide.dtype == "float32"
    assert_near(wide, expected, w[0].size, "float32")
    found = pj.conv_general_dilated(x, w, **arguments)
    assert found.dtype == dtype
    bound = EPS[dtype] * np.abs(expected).max() + (w[0].size + 64) * EPS["float32"] * np.sqrt(w[0].size)
    assert np.abs(np.asarray(found, np.float64) - expected).max() <= bound
    gw = jax.grad(lambda w: pj.conv_general_dilated(x, w, **arguments).astype("float32").sum())(w)
    assert gw.dtype == dtype


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_named_functions(rank):
    conv, transpose = (getattr(pj, f"{name}{rank}d") for name in ("conv", "conv_transpose"))
    x, w, b = samples((2, 4, *(7, 6, 5)[:rank])), samples((6, 2, *(3, 2, 3)[:rank]), seed=2), samples(6, seed=3)
    spread = b.reshape(-1, *(1,) * rank)
    y = conv(x, w, b, stride=2, padding=1, dilation=2, groups=2)
    expected = lax.conv_general_dilated(x, w, (2,) * rank, [(1, 1)] * rank, None, (2,) * rank, None, 2)
    assert_near(y, expected + spread, w.size)
    assert_near(conv(x[0], w, stride=2, padding=(1,) * rank, dilation=2, groups=2), expected[0], w.size)
    assert conv(x, w, padding="same", groups=2).shape[2:] == x.shape[2:]
    # The gradient of a convolution whose input has one sample more than the smallest one.
    small = x[(..., *[slice(3)] * rank)][:, :, :3] if rank > 1 else x[..., :3]
    taps = samples((4, 3, *(3, 2, 3)[:rank]), seed=2)
    result = transpose(small, taps, b, stride=2, padding=1, output_padding=1, groups=2, dilation=1)
    back = jax.linear_transpose(
        lambda t: lax.conv_general_dilated(t, taps, (2,) * rank, [(1, 1)] * rank, None, None, None, 2),
        jax.ShapeDtypeStruct(result.shape, x.dtype))
    assert_near(result, back(small)[0] + spread, taps.size)
    assert (conv.__name__, transpose.__name__) == (f"conv{rank}d", f"conv_transpose{rank}d")


def test_named_functions_refuse():
    for function in (pj.conv2d, pj.conv_transpose2d):
        with pytest.raises(ValueError, match="input has 2 axes, weight 4: 4 are needed"):
            function(X[0, 0], W)
        with pytest.raises(ValueError, match="stride = .1, 1, 1.: a number, or one for each of 2 axes"):
            function(X, W, stride=(1, 1, 1))
        with pytest.raises(ValueError, match="bias has shape .1,.: one number for each output channel"):
            function(X, W, jnp.ones(1))


def test_output_padding_is_below_stride_or_dilation():
    x, w = samples((1, 2, 6)), samples((2, 3, 3), seed=2)
    longer = pj.conv_transpose1d(x, w, stride=2, dilation=4, output_padding=3)  # as PyTorch, which adds zeros
    assert_near(longer[..., :-3], pj.conv_transpose1d(x, w, stride=2, dilation=4), 6)
    for options in (dict(), dict(stride=2, output_padding=2), dict(stride=(3, 1), output_padding=(2, 1))):
        with pytest.raises(ValueError, match="output_padding = .*: must be below the stride or the dilation"):
            pj.conv_transpose2d(X, W, **{"output_padding": 1} | options)


def test_causal():
    x, w = samples((2, 3, 20)), samples((4, 3, 5), seed=2)
    expected = pj.conv1d(jnp.pad(x, ((0, 0), (0, 0), (8, 0))), w, dilation=2)
    assert_near(pj.conv1d(x, w, padding="causal", dilation=2), expected, w.size)


def compiled(*arguments):
    return jax.jit(lambda x, w: pj.conv_general_dilated(x, w, *arguments))


def test_bits_for_any_number_of_threads():
    x, w = samples((4, 16, 40, 40), "float32"), samples((16, 16, 5, 5), "float32", 2)
    results = []
    try:
        for threads in (1, 2):
            partita.set_threads(threads)
            results.append(np.asarray(compiled((1, 1), "SAME")(x, w)))
    finally:
        partita.set_threads(None)
    np.testing.assert_array_equal(*results)


def test_two_threads_at_once():
    call = compiled((1, 1), "SAME")
    inputs = [(samples((2, 8, 30, 30), "float32", i), samples((8, 8, 9, 9), "float32", i + 9)) for i in range(4)]
    expected = [np.asarray(call(*operands)) for operands in inputs]
    wrong = []

    def repeat(i):
        for n in range(20):
            k = (i + n) % len(inputs)
            if not np.array_equal(call(*inputs[k]), expected[k]):
                wrong.append(k)

    workers = [threading.Thread(target=repeat, args=(i,)) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_programs_call_the_library():
    x, w = samples((1, 2, 8)), samples((2, 2, 3))
    assert pj._TARGET in jax.jit(jax.grad(lambda x: compiled((1,), "SAME")(x, w).sum())).lower(x).as_text()
    bad = jax.ffi.ffi_call(pj._TARGET, jax.ShapeDtypeStruct((1,), "float32"))
    with pytest.raises(Exception, match="not in a state for this call"):
        jax.jit(lambda x: bad(x, x, layer=np.zeros(3, np.uint8)))(x).block_until_ready()


WORDS = ctypes.c_uint64 * 21


class Error(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("message", ctypes.c_char_p), ("code", ctypes.c_int)]


def answer(major=0, list_bytes=40, extension=0):
    """What the handler answers to a frame without operands, in the layout of XLA's c_api.h."""
    texts = []
    create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(Error))(lambda e: texts.append(e[0].message.decode()) or 1)
    api = WORDS(56, 0, 24, 0, major | 3 << 32, 0, ctypes.cast(create, ctypes.c_void_p).value)
    lists = (list_bytes, 0, 0, 0, 0)
    frame = WORDS(ctypes.sizeof(WORDS), extension, ctypes.addressof(api), 0, 3, *lists, *lists, 48, 0, 0, 0, 0, 0)
    lib.py_xla_call(ffi.cast("void *", ctypes.addressof(frame)))
    return texts


def test_the_interface_is_checked():
    assert answer() == ["object is not in a state for this call"]
    other = ["this version of XLA has another interface for foreign functions"]
    assert answer(major=1) == answer(list_bytes=48) == other
    metadata = WORDS()
    extension = WORDS(32, 1, 0, ctypes.addressof(metadata))
    assert answer(extension=ctypes.addressof(extension)) == []
    assert metadata[3] == 3 << 32  # XLA's own version


def test_page(capsys):
    page = pathlib.Path(__file__).resolve().parents[2] / "docs/layers-in-python.md"
    program, = re.findall(r"^```python\n(import jax.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    exec(program, {})  # noqa: S102
    assert capsys.readouterr().out.splitlines() == re.findall(r"# prints: (.*)$", program, re.M)

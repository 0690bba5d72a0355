# SPDX-License-Identifier: MIT
"""
Convolutions of JAX on the CPU, with the arguments of `jax.lax.conv_general_dilated` or of `partita.nn.functional`.

    y = partita.jax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    layer = flax.nnx.Conv(3, 64, (3, 3), conv_general_dilated=partita.jax.conv_general_dilated, rngs=rngs)

Calls can be compiled, mapped, scanned and differentiated any number of times, in both modes. The first call of a shape plans
it, for the threads that `partita.set_threads` had set when the program was compiled; each call packs its taps. Where `serves`
is False, JAX computes the call. This module needs jax (``pip install '.[jax]'`` in a checkout).
"""
import collections
import dataclasses
import functools
import operator

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from partita import _arrays, _options
from partita._partita import ffi, lib
from partita._plan import WITH_TWO_BYTES, Plan
from partita._problem import Problem, each_axis, integer, natural, pad

__all__ = ["conv1d", "conv2d", "conv3d", "conv_general_dilated", "conv_transpose1d", "conv_transpose2d",
           "conv_transpose3d", "serves"]

_WIDER = {"float16": ("float32", "float64"), "bfloat16": ("float32", "float64"), "float32": ("float64",), "float64": ()}
# Which of x, taps w and y is computed, from which others, and their shapes.
_DIRECTIONS = {"x": "backward_data", "w": "backward_weight", "y": "forward"}
_OPERANDS = {"x": "yw", "w": "xy", "y": "xw"}
_SHAPES = {"x": "input_shape", "w": "taps_shape", "y": "output_shape"}
# The name is also in compiled programs that are kept in files, with arguments that another version may read otherwise.
_TARGET = "partita_conv_" + _options.library_version()

jax.ffi.register_ffi_target(_TARGET, jax.ffi.pycapsule(int(ffi.cast("uintptr_t", ffi.addressof(lib, "py_xla_call")))))

# A call of conv_general_dilated as a problem of the library: it computes "y", or "x" if lhs is dilated.
_Layer = collections.namedtuple("_Layer", "problem result lhs_axes rhs_axes out_axes batch_groups")


@functools.wraps(lax.conv_general_dilated, (), ())  # for its signature
def conv_general_dilated(lhs, rhs, *args, **kwargs):
    """
    jax.lax.conv_general_dilated, with its arguments, results and errors.

    Sums are in the type of the result, those of float16 and bfloat16 in float32, whatever `precision` says. If the axes of
    lhs are in the order "NHWC" (or "NWC", "NDHWC"), it is computed as it is, otherwise in the order "NCHW". Results have the
    same bits for any number of threads.
    """
    layer = _layer(lhs, rhs, *args, **kwargs)
    return lax.conv_general_dilated(lhs, rhs, *args, **kwargs) if layer is None else _convolve(lhs, rhs, layer)


def serves(lhs, rhs, *args, **kwargs):
    """
    Whether Partita computes a call of `conv_general_dilated` with these arguments, of which lhs and rhs may be
    jax.ShapeDtypeStruct.

    It does so where CPUs are JAX's default devices, for one to three axes of float32, float64, float16 or bfloat16, unless
    the result is empty or a stride is combined with `lhs_dilation`. Calls that JAX refuses are not served.
    """
    return _layer(lhs, rhs, *args, **kwargs) is not None


def _layer(lhs, rhs, window_strides, padding, lhs_dilation=None, rhs_dilation=None, dimension_numbers=None,
           feature_group_count=1, batch_group_count=1, precision=None, preferred_element_type=None, out_sharding=None):
    """A call as a problem; None if it is not served."""
    if out_sharding is not None or jax.default_backend() != "cpu":
        return None
    try:
        for p in precision if isinstance(precision, tuple) else (precision,):
            lax.Precision(p or "default")
        dtype, other = (jax.dtypes.canonicalize_dtype(t.dtype).name for t in (lhs, rhs))
        wanted = jax.dtypes.canonicalize_dtype(preferred_element_type or dtype).name
        if dtype != other or wanted not in (dtype, *_WIDER[dtype]) or len(lhs.shape) != len(rhs.shape):
            return None
        numbers = lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
        sizes = (_frozen(v) for v in (window_strides, padding, lhs_dilation, rhs_dilation))
        return _described(lhs.shape, rhs.shape, wanted, numbers, *sizes, feature_group_count, batch_group_count)
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError):
        return None  # JAX says what is wrong


def _frozen(value):
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple, np.ndarray)) else value


@functools.lru_cache(1024)
def _described(lhs, rhs, dtype, numbers, stride, padding, lhs_dilation, rhs_dilation, groups, batch_groups):
    batch, inputs, *size = (operator.index(lhs[i]) for i in numbers.lhs_spec)
    outputs, group_inputs, *kernel = (operator.index(rhs[i]) for i in numbers.rhs_spec)
    rank = len(size)
    up, dilation = lhs_dilation or (1,) * rank, rhs_dilation or (1,) * rank
    spans = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    is_dilated = max(up) > 1
    if (is_dilated and (max(stride) > 1 or isinstance(padding, str)) or min(groups, batch_groups) != 1
            or inputs != group_inputs * groups or outputs % (groups * batch_groups) or batch % batch_groups):
        return None
    if isinstance(padding, str):
        padding = lax.padtype_to_pads(size, [span + 1 for span in spans], stride, padding)
    padding = tuple((operator.index(before), operator.index(after)) for before, after in padding)
    channels = inputs * batch_groups, outputs
    if is_dilated:
        # The gradient of the input of a convolution by the reversed taps, whose stride is the dilation of lhs.
        channels, stride = channels[::-1], up
        size = [(n - 1) * u + 1 + before + after - span
                for n, u, (before, after), span in zip(size, up, padding, spans, strict=True)]
        padding = tuple((span - before, span - after) for (before, after), span in zip(padding, spans))
    last = tuple(numbers.lhs_spec) == (0, rank + 1, *range(1, rank + 1))
    order = (0, *range(2, rank + 2), 1) if last else range(rank + 2)
    problem = Problem(op="convolve" if is_dilated else "correlate", signal=dtype, batch=batch // batch_groups,
                      in_channels=channels[0], out_channels=channels[1], groups=groups * batch_groups,
                      kernel=tuple(kernel), size=tuple(size), stride=stride, dilation=dilation, pad=padding,
                      channels_last=last)
    _ = problem.output_shape  # refuses sizes without a result
    return _Layer(problem, "x" if is_dilated else "y", tuple(numbers.lhs_spec[i] for i in order), numbers.rhs_spec,
                  tuple(order.index(numbers.out_spec.index(i)) for i in range(rank + 2)), batch_groups)


@functools.partial(jax.jit, static_argnames="layer", inline=True)
def _convolve(lhs, rhs, layer):
    problem = layer.problem
    dtype = _arrays.LONG_NAMES[problem.signal]
    x, w = lhs.astype(dtype).transpose(layer.lhs_axes), rhs.astype(dtype).transpose(layer.rhs_axes)
    if layer.batch_groups > 1:
        x = _join(x.reshape(layer.batch_groups, -1, *x.shape[1:]), _channels(problem))
    if layer.result == "x":
        # From (groups * outputs, inputs, ...) to (groups * inputs, outputs, ...).
        w = w.reshape(problem.groups, -1, *w.shape[1:]).swapaxes(1, 2).reshape(problem.taps_shape)
    return _conv.bind(x, w, problem=problem, result=layer.result).transpose(layer.out_axes)


# The operator: one of x, w and y from the other two. It is linear in both, and its derivatives compute the others.
_conv = Primitive("partita_conv")
_conv.def_impl(jax.jit(_conv.bind, static_argnames=("problem", "result")))


def _channels(problem):
    """The axis of the channels of x and y."""
    return 1 + problem.rank * problem.channels_last


def _call(first, second, *, problem, result):
    """The call of the library in a program of XLA."""
    if problem.signal in ("f16", "bf16"):
        wide = dataclasses.replace(problem, signal="f32", taps="f32")
        if Plan(wide, directions=_DIRECTIONS[result], filter_uses=1).engine not in WITH_TWO_BYTES:
            problem = wide
    layer = ffi.new("struct py_xla_layer *", {"problem": problem.to_c()[0], "threads": _options.get_threads() or 0,
                                              "direction": _options.DIRECTIONS[_DIRECTIONS[result]]})
    dtype = _arrays.LONG_NAMES[problem.signal]
    call = jax.ffi.ffi_call(_TARGET, jax.ShapeDtypeStruct(getattr(problem, _SHAPES[result]), dtype))
    made = call(first.astype(dtype), second.astype(dtype), layer=np.frombuffer(ffi.buffer(layer), np.uint8))
    return made.astype(first.dtype)


def _transposed(wanted, g, first, second, *, problem, result):
    """The gradient of one operand; of it only the type is known here."""
    known = dict(zip(_OPERANDS[result], (first, second))) | {result: g}
    name = _OPERANDS[result][wanted]
    return _conv.bind(*(known[operand] for operand in _OPERANDS[name]), problem=problem, result=name)


def _join(t, axis, dim=0, n=None):
    """An axis joins another one, which `axis` is without it; if `dim` is None, t is repeated n times for that."""
    t = jnp.moveaxis(jnp.broadcast_to(t, (n, *t.shape)) if dim is None else t, dim or 0, axis)
    return t.reshape(*t.shape[:axis], -1, *t.shape[axis + 2:])


def _mapped(operands, dims, *, problem, result):
    """jax.vmap: what is mapped joins the batch; if it is taps, or taps are computed, it joins the groups."""
    n = next(t.shape[dim] for t, dim in zip(operands, dims) if dim is not None)
    if n == 0:
        return jnp.zeros((0, *getattr(problem, _SHAPES[result])), operands[0].dtype), 0
    into, names = {"x": 0, "y": 0}, ("batch",)
    if result == "w" or dims[1] is not None:
        into = {"w": 0, "x": _channels(problem), "y": _channels(problem)}
        names = "groups", "in_channels", "out_channels"
    joined = [_join(t, into[name], dim, n) if name in into else t
              for t, dim, name in zip(operands, dims, _OPERANDS[result])]
    larger = dataclasses.replace(problem, **{name: getattr(problem, name) * n for name in names})
    made, axis = _conv.bind(*joined, problem=larger, result=result), into[result]
    return made.reshape(*made.shape[:axis], n, -1, *made.shape[axis + 1:]), axis


_conv.def_abstract_eval(lambda first, second, *, problem, result: first.update(
    shape=getattr(problem, _SHAPES[result]), weak_type=False))
mlir.register_lowering(_conv, mlir.lower_fun(_call, multiple_results=False), platform="cpu")
ad.defbilinear(_conv, functools.partial(_transposed, 0), functools.partial(_transposed, 1))
batching.primitive_batchers[_conv] = _mapped


def _named(rank):
    """The functions of partita.nn.functional for a number of axes."""
    def run(x, w, b, *layer, transposed=False):
        if x.ndim not in (rank + 1, rank + 2) or w.ndim != rank + 2:
            raise ValueError(f"input has {x.ndim} axes, weight {w.ndim}: {rank + 2} are needed, or {rank + 1} of one input")
        if transposed:
            w = jnp.flip(w, range(2, rank + 2)).reshape(layer[-1], -1, *w.shape[1:]).swapaxes(1, 2)
            w = w.reshape(-1, *w.shape[2:])
        if b is not None and b.shape != w.shape[:1]:
            raise ValueError(f"bias has shape {b.shape}: one number for each output channel, {w.shape[:1]}, is needed")
        y = conv_general_dilated(x if x.ndim == w.ndim else x[None], w, *layer)
        y = y if b is None else y + b.reshape(-1, *(1,) * rank)
        return y if x.ndim == w.ndim else y[0]

    def conv(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        steps, gaps = each_axis("stride", stride, rank), each_axis("dilation", dilation, rank)
        if padding == "causal" and rank == 1:
            padding = [(gaps[0] * (weight.shape[-1] - 1), 0)]
        pads = padding.upper() if isinstance(padding, str) else each_axis("padding", padding, rank, pad)
        return run(input, weight, bias, steps, pads, None, gaps, None, groups)

    def conv_transpose(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        steps, gaps = each_axis("stride", stride, rank), each_axis("dilation", dilation, rank)
        pads = each_axis("padding", padding, rank, integer), each_axis("output_padding", output_padding, rank, natural)
        if any(m >= max(s, d) for m, s, d in zip(pads[1], steps, gaps)):
            raise ValueError(f"output_padding = {output_padding!r}: must be below the stride or the dilation")
        pads = [(d * (k - 1) - p, d * (k - 1) - p + m) for d, k, p, m in zip(gaps, weight.shape[2:], *pads)]
        return run(input, weight, bias, (1,) * rank, pads, steps, gaps, None, groups, transposed=True)

    for function in (conv, conv_transpose):
        function.__name__ = function.__qualname__ = f"{function.__name__}{rank}d"
        function.__doc__ = f"partita.nn.functional.{function.__name__} for arrays of JAX, in the order \"NCHW\"."
    return conv, conv_transpose


(conv1d, conv_transpose1d), (conv2d, conv_transpose2d), (conv3d, conv_transpose3d) = map(_named, (1, 2, 3))

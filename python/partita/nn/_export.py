# SPDX-License-Identifier: MIT
"""Layers in programs that PyTorch makes of a model, and in its counts. Exported, traced and scripted programs contain
PyTorch's convolution, so that they run without this package; torch.compile and torch.fx keep the layers."""
import copy
import math
import types

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

try:
    import torch.ao.quantization as _ao
except ImportError:  # later versions may lack it
    _ao = None  # type: ignore[assignment]

_Proxy = torch.fx.Proxy
_is_exporting = getattr(torch.compiler, "is_exporting", lambda: False)  # PyTorch 2.6 does not tell


def is_exported():
    """Whether a call becomes part of a program of torch.export, torch.onnx or torch.jit.trace."""
    if torch.compiler.is_compiling():
        return _is_exporting()
    return torch._C._get_tracing_state() is not None


def is_traced(input):
    """Whether torch.fx makes a graph in which a layer is a node, as layers of torch.nn are. Graphs to be quantised have
    PyTorch's functions instead, which quantisation knows."""
    return type(input) is _Proxy and not type(input.tracer).__module__.startswith("torch.ao.")


def traced(layer, input, *rest):
    """The node of a layer."""
    tracer = input.tracer
    return tracer.create_proxy("call_module", tracer.path_of_module(layer), (input, *rest), {})


# Floating-point operations as torch.utils.flop_counter counts them: of products of samples and taps, with padding.

def _conv_flops(x, w, *layer, out_val, **_):
    return 2 * x.shape[0] * math.prod(out_val.shape[2:]) * w.numel()


def _conv_input_flops(gy, w, *layer, **_):
    return 2 * gy.shape[0] * math.prod(gy.shape[2:]) * w.numel()


def _conv_weight_flops(x, gy, *layer, out_val, **_):
    return 2 * x.shape[1] * gy.numel() * math.prod(out_val.shape[2:])


def count_flops():
    """Tells the FlopCounterMode that is active, if there is one, how the operators are counted. It is not told before,
    because to import its module takes five times as long as to import this package."""
    if torch.compiler.is_compiling() or not torch._C._len_torch_dispatch_stack():
        return
    for mode in _get_current_dispatch_mode_stack():
        counts = getattr(getattr(mode, "counter", None), "flop_registry", None)
        if isinstance(counts, dict):
            ops = torch.ops.partita
            counts |= {ops.conv: _conv_flops, ops.conv_input: _conv_input_flops, ops.conv_weight: _conv_weight_flops}


# Fusing, quantising and scripting.

def register(classes):
    """Lets tools of PyTorch that ask for the class of a layer treat ours as PyTorch's, which `classes` has by ours."""
    for layer, theirs in classes.items():
        for name in ("_conv_forward", "forward"):
            if hasattr(theirs, name) and getattr(layer, name) is not getattr(theirs, name):
                setattr(layer, name, _scripted_as(getattr(theirs, name), getattr(layer, name)))
    if _ao is None:
        return
    ours = {theirs: layer for layer, theirs in classes.items()}
    fusers = _ao.fuser_method_mappings._DEFAULT_OP_LIST_TO_FUSER_METHOD
    fusers |= {(ours[first], *rest): _fuser(classes, ours, fuse)
               for (first, *rest), fuse in fusers.items() if first in ours}
    for mapping in (_ao.quantization_mappings.DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
                    _ao.quantization_mappings.DEFAULT_QAT_MODULE_MAPPINGS):
        mapping |= {ours[theirs]: _quantised(classes, to) for theirs, to in mapping.items() if theirs in ours}


def _scripted_as(theirs, method):
    """A method of a layer, in whose place torch.jit.script compiles PyTorch's: it reads the source of `__wrapped__`,
    whose names it seeks among the globals of the method."""
    method = types.FunctionType(method.__code__, method.__globals__, method.__name__, method.__defaults__,
                                method.__closure__)
    method.__wrapped__ = theirs
    return method


def _plain(classes, layer):
    """PyTorch's layer with the same parameters, hooks and state."""
    layer = copy.copy(layer)
    layer.__class__ = classes[type(layer)]
    return layer


def _fuser(classes, ours, fuse):
    """A function of PyTorch that fuses a convolution with what follows it, for our layers."""
    def fused(is_qat, layer, *rest):
        result = fuse(is_qat, _plain(classes, layer), *rest)
        result.__class__ = ours.get(type(result), type(result))  # a BatchNorm in the taps leaves a plain convolution
        return result
    return fused


def _quantised(classes, theirs):
    """The class that takes the place of our layer in a quantised model, as far as its makers ask for it."""
    def from_float(layer):
        return theirs.from_float(_plain(classes, layer))
    return type(theirs.__name__, (), {"from_float": staticmethod(from_float)})

# SPDX-License-Identifier: MIT
"""Tensors of PyTorch as operands: results are tensors, too. They are not differentiable; `partita.nn.functional` is."""
import functools
import sys

import numpy as np

from partita._arrays import is_tensor


def given(*operands):
    """Whether one of the operands is a tensor."""
    torch = sys.modules.get("torch")
    if torch is not None:
        for operand in operands:
            if isinstance(operand, torch.Tensor):
                return True
    return False


def _array(value):
    """An array over the memory of a tensor; PyTorch refuses those that record gradients, or are elsewhere."""
    if not is_tensor(value):
        return value
    value = value.resolve_conj().resolve_neg()
    return (value if sys.modules["torch"].is_grad_enabled() else value.detach()).numpy()


def _tensor(result):
    if isinstance(result, tuple):
        parts = map(_tensor, result)
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    return sys.modules["torch"].from_numpy(np.asarray(result, order="C"))


def call(function, *args, out=None, **kwargs):
    """The result as tensors, or in `out`, of a function of arrays that is given tensors, in the memory of the CPU."""
    if out is not None:
        kwargs["out"] = _array(out)
    result = function(*map(_array, args), **{name: _array(value) for name, value in kwargs.items()})
    return _tensor(result) if out is None else out


def returned(function):
    """The function, whose results are tensors if one of its operands is."""
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if given(*args, *kwargs.values()):
            return call(function, *args, **kwargs)
        return function(*args, **kwargs)

    return wrapper

# SPDX-License-Identifier: MIT
"""Which library computes the calls of a layer that `replace_` has taken."""
import json

import torch

from . import _export, _measure

_MAX_KINDS = 512
_REAL = (torch.float32, torch.float64)
# Asked at each call, by names that are found at once.
_Tensor = torch.Tensor
_is_compiling, _is_grad_enabled, _get_threads = torch.compiler.is_compiling, torch.is_grad_enabled, torch.get_num_threads
_is_any_autocast, _get_autocast = torch._C._is_any_autocast_enabled, torch.get_autocast_dtype


class Choices:
    """The decisions of one layer. Copies have them too; they are not pickled, because they hold for one machine."""

    def __init__(self):
        self.decided = {}  # whether Partita computes a call, by all that is seen at once
        self.rows = {}     # the same with times, by the text of _measure.describe
        self.latest = {}   # the latest decision, for calls that cannot be measured

    def __deepcopy__(self, memo):
        copied = Choices()
        copied.update(self)
        return copied

    def __reduce__(self):
        return Choices, ()

    def update(self, other):
        """Adds the decisions of another one."""
        for name in vars(self):
            getattr(self, name).update(getattr(other, name))

    def is_partita(self, layer, x, w, b, output_size):
        """Whether Partita computes this call. The first of each kind measures both ways, before it is computed."""
        if _is_compiling() or type(x) is not _Tensor:
            return self.settled(layer, x)
        try:
            key = (x.shape, x.is_contiguous(), x.dtype, x.requires_grad, w.requires_grad, layer.training,
                   _is_grad_enabled(), _is_any_autocast() and _get_autocast("cpu"), _get_threads(), output_size)
            return self.decided[key]
        except KeyError:
            pass
        except (TypeError, RuntimeError):  # symbolic sizes; layouts without strides
            return self.settled(layer, x)
        if not _measure.is_measurable(x, w, b):
            return self.settled(layer, x)
        kind = _measure.describe(layer, x, w, b, output_size)
        decision = _measure.decide(layer, kind, x, w, b, output_size)
        for kept in self.decided, self.rows:
            if len(kept) >= _MAX_KINDS:
                kept.clear()
        self.rows[json.dumps(kind | {"input": list(x.shape)})] = decision
        self.decided[key] = self.latest[key[6:8]] = decision.partita
        return decision.partita

    def settled(self, layer, x):
        """The choice for a call that is compiled, transformed, or not to be measured: that of the latest call with the
        same mode of gradients and autocast; else by the size of the kernel, as are many measured ones. For a call that
        is exported or traced: PyTorch."""
        if not isinstance(x, torch.Tensor) or _export.is_exported():
            return False
        mode = _is_grad_enabled(), _is_any_autocast() and _get_autocast("cpu")
        if mode in self.latest and not torch.are_deterministic_algorithms_enabled():
            return self.latest[mode]
        return (any(k >= 7 and k > 2 * s for k, s in zip(layer.kernel_size, layer.stride)) and x.dtype in _REAL
                and not mode[1])

    def give_back(self):
        """PyTorch computes the calls that have been decided."""
        self.decided, self.latest = dict.fromkeys(self.decided, False), dict.fromkeys(self.latest, False)
        for text, row in self.rows.items():
            if row.partita:
                self.rows[text] = row._replace(partita=False, reason="the whole model is not faster")

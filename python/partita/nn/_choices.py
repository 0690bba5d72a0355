# SPDX-License-Identifier: MIT
"""Which library computes the calls of a layer that `replace_` has taken."""
import json

import torch

from . import _export, _measure, _ops

_MAX_KINDS = 512
_MAX_SEEN = 16  # kinds of calls of one layer that are recognised at once
_REAL = (torch.float32, torch.float64)
_is_traced = torch.compiler.is_dynamo_compiling  # then the graph has no memories


class Choices:
    """The decisions of one layer. Copies have them too; they are not pickled, because they hold for one machine."""

    def __init__(self):
        self.rows = {}    # decisions with times, by the text of _measure.describe and the shape of the input
        self.latest = {}  # whether Partita computed the latest call of a mode, for calls that cannot be measured
        self._seen = _ops.Memo(_MAX_SEEN, _ops.UNDISPATCHED)
        self.find = self._seen.find  # (x, w.requires_grad, training, output_size): what `decide` has said

    def __deepcopy__(self, memo):
        copied = Choices()
        copied.update(self)
        return copied

    def __reduce__(self):
        return Choices, ()

    def update(self, other):
        """Adds the decisions of another one."""
        self.rows.update(other.rows)
        self.latest.update(other.latest)
        self._seen.clear()

    def is_any(self):
        """Whether Partita computes any call that has been decided."""
        return any(row.partita for row in self.rows.values())

    def decide(self, layer, x, w, b, output_size):
        """Whether Partita computes this call. The first of each kind measures both ways, before it is computed."""
        found = None if _is_traced() else self.find(x, w.requires_grad, layer.training, output_size)
        if found is not None:
            return found
        if torch.compiler.is_compiling() or type(x) is not torch.Tensor or not _measure.is_measurable(x, w, b):
            return self.settled(layer, x)
        kind = _measure.describe(layer, x, w, b, output_size)
        text = json.dumps(kind | {"input": list(x.shape)})
        decision = self.rows.get(text)
        if decision is None:
            decision = _measure.decide(layer, kind, x, w, b, output_size)
            if len(self.rows) >= _MAX_KINDS:
                self.rows.clear()
            self.rows[text] = decision
        self.latest[_mode()] = decision.partita
        self._seen.keep(decision.partita, x, w.requires_grad, layer.training, output_size)
        return decision.partita

    def settled(self, layer, x):
        """The choice for a call that is compiled, transformed, or not to be measured: that of the latest call with the
        same mode of gradients and autocast; else by the size of the kernel, as are many measured ones. For a call that
        is exported or traced: PyTorch."""
        if not isinstance(x, torch.Tensor) or _export.is_exported():
            return False
        mode = _mode()
        if mode in self.latest and not torch.are_deterministic_algorithms_enabled():
            return self.latest[mode]
        return (any(k >= 7 and k > 2 * s for k, s in zip(layer.kernel_size, layer.stride)) and x.dtype in _REAL
                and not mode[1])

    def give_back(self):
        """PyTorch computes the calls that have been decided."""
        self.latest = dict.fromkeys(self.latest, False)
        self._seen.clear()
        for text, row in self.rows.items():
            if row.partita:
                self.rows[text] = row._replace(partita=False, reason="the whole model is not faster")


def _mode():
    return torch.is_grad_enabled(), torch._C._is_any_autocast_enabled() and torch.get_autocast_dtype("cpu")

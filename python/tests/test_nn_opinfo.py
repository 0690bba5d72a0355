# SPDX-License-Identifier: MIT
"""PyTorch's own samples of convolutions (OpInfo), results and gradients, through both doors of the package."""
import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)
pytest.importorskip("expecttest")  # which PyTorch's samples import

from nn_checks import double, require_close  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

import partita.nn.functional as ours  # noqa: E402
from partita.nn.testing import dispatch_mode  # noqa: E402

TYPES = (torch.float32, torch.bfloat16, torch.complex64)
SAMPLED = {op.name.removeprefix("nn.functional."): op for op in op_db if op.name.startswith("nn.functional.conv")}


def results(function, operands, keywords):
    """The result and the gradients of its sum."""
    y = function(*operands, **keywords)
    leaves = [t for t in (*operands, *keywords.values()) if isinstance(t, torch.Tensor) and t.requires_grad]
    return y, *torch.autograd.grad(y, leaves, torch.ones_like(y))


def wide(t):
    return double(t) if isinstance(t, torch.Tensor) else t


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("name", SAMPLED)
def test_samples(name, dtype):
    op = SAMPLED[name]
    for sample in op.sample_inputs("cpu", dtype, requires_grad=True):
        operands = sample.input, *sample.args
        expected = results(op.op, [wide(t) for t in operands], {k: wide(v) for k, v in sample.kwargs.items()})
        for function in (op.op, getattr(ours, name)):
            with dispatch_mode() as mode:
                found = results(function, operands, sample.kwargs)
            assert mode.counts()["native"] and not mode.counts()["fallback"]
            for i, (result, right) in enumerate(zip(found, expected)):
                require_close(result, right, 2, (function, i, sample))

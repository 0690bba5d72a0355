# SPDX-License-Identifier: MIT
"""25 networks of torchvision and timm with random weights, all of whose convolutions Partita computes: outputs and the
gradients of a training step. Long runs: with PARTITA_SLOW=1. bench/programs/python_networks.py times them."""
import copy
import os
import pathlib
import sys

import pytest

pytestmark = pytest.mark.skipif(not os.environ.get("PARTITA_SLOW"), reason="a long run: PARTITA_SLOW=1")
torch = pytest.importorskip("torch", exc_type=ImportError)
pytest.importorskip("torchvision", exc_type=ImportError)
pytest.importorskip("timm", exc_type=ImportError)

sys.path.append(str(pathlib.Path(__file__).parents[2] / "bench/programs"))
import networks  # noqa: E402

import partita.nn  # noqa: E402

NAMES = [(library, name) for library, names in networks.ZOO.items() for name in names]
LARGEST_TIMES_TORCH = 2  # of the error of outputs
# A sample whose sign is lost in rounding passes ReLU or does not, with any library, so that gradients of two computations
# with equal errors may differ by some 1e-4; a wrong tap or channel changes them by more than this.
LARGEST_ERROR_OF_GRADIENTS = 1e-3


def outputs_and_gradients(model, x):
    """Of a model in evaluation, so that no batch norm divides by the deviation of two samples."""
    model, x = copy.deepcopy(model), x.clone().requires_grad_()
    y = model(x)
    y.square().mean().backward()
    gradients = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
    return {"outputs": y.detach(), "gradients": torch.cat([x.grad.flatten(), *gradients])}


def distance(result, expected):
    return float(torch.linalg.vector_norm(result.double() - expected) / torch.linalg.vector_norm(expected))


@pytest.mark.parametrize("library, name", NAMES, ids=[name for _, name in NAMES])
def test_network(library, name):
    torch.manual_seed(1)
    theirs = networks.library_network(library, name)().eval()
    x = torch.randn(1, 3, *(224, 224) if name.startswith("vit") else (160, 160))
    ours = copy.deepcopy(theirs)
    assert partita.nn.replace_(ours, where=lambda layer: True)
    expected = outputs_and_gradients(copy.deepcopy(theirs).double(), x.double())
    torchs, found = outputs_and_gradients(theirs, x), outputs_and_gradients(ours, x)
    error = distance(torchs["outputs"], expected["outputs"])
    assert distance(found["outputs"], expected["outputs"]) <= LARGEST_TIMES_TORCH * error
    assert distance(found["gradients"], expected["gradients"]) <= LARGEST_ERROR_OF_GRADIENTS
    partita.nn.restore_(ours)
    assert all(torch.equal(a, b) for a, b in zip(outputs_and_gradients(ours, x).values(), torchs.values(), strict=True))

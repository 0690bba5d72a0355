# SPDX-License-Identifier: MIT
"""Arrays of other libraries."""
import array
import subprocess
import sys

import numpy as np
import pytest

import partita
from partita import _arrays


def filters():
    plan = partita.Plan(partita.Problem(kernel=3, size=50, pad=((2, 0),)))
    stream = partita.Stream(np.array([1, 2, 3], np.float32))
    taps = np.array([1, 2, 3], np.float32)
    return [lambda x: plan.forward(plan.filter(taps), x), stream.process,
            lambda x: partita.Spectrum(x).convolve(taps, slice(0, 50))]


@pytest.mark.parametrize("i", range(3))
def test_tensors_give_tensors(i):
    torch = pytest.importorskip("torch")
    x = torch.arange(50.0, requires_grad=True)
    y = filters()[i](x)
    assert isinstance(y, torch.Tensor) and y.dtype == torch.float32 and not y.requires_grad
    np.testing.assert_allclose(y.numpy(), np.convolve(np.arange(50), [1, 2, 3])[:50], rtol=1e-5, atol=1e-4)


def test_tensors_of_other_layouts_and_types():
    torch = pytest.importorskip("torch")
    plan = partita.Plan(partita.Problem(kernel=1, size=(3, 4)))
    filter = plan.filter(torch.ones(1, 1, 1, 1) * 2)
    x = torch.arange(12.0).reshape(4, 3)
    out = torch.empty(3, 4)
    assert plan.forward(filter, x.T, out) is out
    assert torch.equal(out, 2 * x.T)
    with pytest.raises(ValueError, match="out is not contiguous"):
        plan.forward(filter, x.T, torch.empty(4, 3).T)
    with pytest.raises(TypeError, match="x has samples of torch.float64, not f32"):
        plan.forward(filter, x.T.double())
    with pytest.raises(TypeError, match="x is on meta; arrays must be in the CPU's memory"):
        plan.forward(filter, torch.empty(3, 4, device="meta"))
    conjugated = torch.tensor([1 + 2j, 3j]).conj()
    stream = partita.Stream([1.0], dtype=torch.complex64)
    assert stream.process(conjugated).tolist() == [1 - 2j, -3j]


def test_bfloat16():
    torch = pytest.importorskip("torch")
    plan = partita.Plan(partita.Problem(kernel=2, size=4, pad=1, signal=torch.bfloat16))
    y = plan.forward(plan.filter(torch.tensor([1, 2], dtype=torch.bfloat16)), torch.ones(4, dtype=torch.bfloat16))
    assert y.dtype == torch.bfloat16 and y.tolist() == [1, 3, 3, 3, 2]
    with pytest.raises(TypeError, match="NumPy has no samples of bf16"):
        plan.filter([1.0, 2.0])


class Exported:
    """An array of a library that partita does not know."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return 1, 0

    def __array_namespace__(self):
        return type(self)

    @classmethod
    def from_dlpack(cls, array):
        return cls(array)


def test_arrays_by_dlpack_give_arrays_of_their_library():
    for calculate in filters()[:2]:
        y = calculate(Exported(np.arange(50, dtype=np.float32)))
        assert isinstance(y, Exported)
        np.testing.assert_allclose(y.array, np.convolve(np.arange(50), [1, 2, 3])[:50], rtol=1e-5, atol=1e-4)


def test_arrays_by_the_buffer_protocol():
    y = partita.Stream([1.0, 1.0]).process(array.array("d", [1, 2, 3]))
    np.testing.assert_array_equal(y, [1, 3, 5])


def test_names_of_types():
    assert _arrays.type_name(np.float16) == _arrays.type_name("float16") == _arrays.type_name("f16") == "f16"
    assert [_arrays.itemsize(name) for name in _arrays.TYPES] == [4, 8, 8, 16, 2, 2]
    for wrong in "f128", np.longdouble, object, None, 7:
        with pytest.raises(TypeError, match="not a sample type"):
            _arrays.type_name(wrong)


def test_aligned_memory():
    memory = _arrays.aligned(1000)
    assert memory.nbytes == 1000 and memory.__array_interface__["data"][0] % 64 == 0


def test_torch_is_not_imported():
    code = "import partita, sys; partita.Stream([1.0]).process([1.0]); assert not {'torch', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)

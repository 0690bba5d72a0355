# SPDX-License-Identifier: MIT
import math
import pickle

import numpy as np
import pytest

import partita


def test_single_values_are_those_of_every_axis():
    problem = partita.Problem(kernel=3, size=(8, 9), pad=1, stride=(2, 1), in_channels=4, out_channels=6, groups=2)
    assert problem.kernel == (3, 3)
    assert problem.pad == ((1, 1), (1, 1))
    assert problem.taps_shape == (6, 2, 3, 3)
    assert problem.input_shape == (1, 4, 8, 9)
    assert problem.output_shape == (1, 6, 4, 9)


def test_two_numbers_of_padding_for_each_axis():
    problem = partita.Problem(kernel=(3, 1), size=(8, 9), pad=((2, 0), -1))
    assert problem.pad == ((2, 0), (-1, -1))
    assert problem.output_shape == (1, 1, 8, 7)


def test_a_problem_without_a_size_is_a_stream():
    problem = partita.Problem(kernel=100, latency=math.inf, block=64)
    assert problem.is_stream and problem.rank == 1
    assert problem.input_shape is None and problem.output_shape is None


@pytest.mark.parametrize("dtype", ["cf32", "complex64", np.complex64, np.dtype("complex64"), np.dtype(">c8")])
def test_sample_types_have_names_of_the_library_and_of_numpy(dtype):
    assert partita.Problem(kernel=1, signal=dtype).signal == "cf32"


def test_equal_problems_are_one_key():
    a = partita.Problem(kernel=(3,), size=(5,), signal="float32")
    b = partita.Problem(kernel=3, size=5)
    assert a == b and hash(a) == hash(b)
    assert pickle.loads(pickle.dumps(a)) == a


@pytest.mark.parametrize("fields, error, text", [
    ({"kernel": 0}, ValueError, "kernel = 0: at least 1"),
    ({"kernel": -1}, ValueError, "kernel = -1: at least 1"),
    ({"kernel": 2.5}, TypeError, "kernel = 2.5: an integer is needed"),
    ({"kernel": (1, 2), "size": (1, 2, 3)}, ValueError, "different numbers of axes"),
    ({"kernel": (1,) * 4}, ValueError, "4 axes: 1 to 3"),
    ({"kernel": 1, "op": "multiply"}, ValueError, "op = 'multiply': one of 'convolve', 'correlate'"),
    ({"kernel": 1, "boundary": "mirror"}, ValueError, "boundary = 'mirror': one of 'zero', 'constant', 'edge'"),
    ({"kernel": 1, "signal": "int32"}, TypeError, "int32 is not a sample type"),
    ({"kernel": 1, "signal": np.int16}, TypeError, "not a sample type"),
    ({"kernel": 1, "pad": ((1, 2, 3),)}, ValueError, "zeros before and after"),
    ({"kernel": 1, "latency": -1}, ValueError, "latency = -1: not negative"),
])
def test_fields_that_make_no_sense(fields, error, text):
    with pytest.raises(error, match=text):
        partita.Problem(**fields)


def test_padding_wider_than_a_reflection():
    with pytest.raises(ValueError, match="at most 2 with this problem.boundary|argument out of range"):
        partita.Problem(kernel=3, size=3, pad=3, boundary="reflect").output_shape


def test_a_problem_without_outputs():
    with pytest.raises(ValueError, match="Problem.*argument out of range"):
        partita.Problem(kernel=5, size=3).output_shape

# SPDX-License-Identifier: MIT
"""What newcomers do wrong is answered by an exception that names the argument and says what to do."""
import copy
import pickle
import re

import numpy as np
import pytest

import partita

TAPS, X = np.ones(5, np.float32), np.ones(10, np.float32)
PAIR = np.ones((10, 2), np.float32)


def stream(**options):
    return partita.Stream(TAPS, **options)


def plan():
    return partita.Plan(partita.Problem(kernel=5, size=10))


def bank():
    return partita.Bank(slots=2, n_taps=5)


def saved():
    """The state of a stream that has filtered something: its last byte belongs to a sample."""
    running = stream()
    running.process(X)
    return running.save()


@pytest.mark.parametrize("call, error, text", [
    # Another type of samples.
    (lambda: stream().process(X.astype(float)), TypeError,
     "x has samples of float64, not f32: use x.astype('float32'), or a filter made for float64"),
    (lambda: partita.Stream([1, 2]).process(X), TypeError, "use x.astype('float64'), or a filter made for float32"),
    (lambda: stream().process(X.astype(np.int16)), TypeError,
     "x has samples of int16, not f32: use x.astype('float32')"),
    (lambda: stream().process(1j * X), TypeError,
     "x has samples of complex64, not f32: use a filter made for complex64"),
    (lambda: partita.Stream(1j * TAPS, dtype="float32"), TypeError, "its dtype must be complex64 or complex128"),
    (lambda: stream().process(None), TypeError, "x is None: an array is needed"),
    (lambda: stream().process([1.0, "a"]), ValueError, "x: could not convert string to float: 'a'"),
    (lambda: stream().process(X, [0.0] * 10), TypeError,
     "out is of type list: an array of NumPy or a tensor is needed"),
    (lambda: stream().process(X, np.empty(10, int)), TypeError, "out has samples of int64, not f32"),
    (lambda: partita.Stream([[1, 2], [3]]), ValueError, "taps: setting an array element"),
    # Another shape.
    (lambda: stream(channels=2).process(PAIR), ValueError,
     "x has shape (10, 2), not [2, frames]: use x.T, or a stream with frames_first=True"),
    (lambda: stream(channels=2, frames_first=True).process(PAIR.T), ValueError,
     "x has shape (2, 10), not [frames, 2]: use x.T, or a stream with frames_first=False"),
    (lambda: list(stream().pipe(X)), ValueError, "x has shape (), not [1, frames]: it is a single sample"),
    (lambda: partita.Stream(PAIR, channels=2), ValueError,
     "channels = 2, but the taps are of 10: their shape is (10, 2), the last axis is time"),
    (lambda: stream(channels=(1, 2)), ValueError, "channels = (1, 2): one number for taps [m]"),
    (lambda: plan().backward_weight(X, X), ValueError, "gy has shape (10,)"),
    # No taps, or taps that do not fit.
    (lambda: partita.Stream([]), ValueError, "taps is empty"),
    (lambda: partita.Stream("hall.wav"), TypeError, "taps is the text 'hall.wav': an array is needed; numpy.load or soundfile"),
    (lambda: stream().swap("hall.wav"), TypeError, "taps is the text 'hall.wav': an array is needed"),
    (lambda: stream().swap(None), ValueError, "taps has shape (): an array with one tap or more is needed"),
    (lambda: stream().swap([]), ValueError, "taps has shape (0,): an array with one tap or more is needed"),
    (lambda: stream().swap(np.ones((2, 5))), ValueError,
     "taps has shape (2, 5), but the stream was made for [m] or [1, m]"),
    (lambda: partita.Stream(np.ones((2, 3, 4))).swap(TAPS[:4]), ValueError, "the stream was made for [2, 3, m]"),
    (lambda: partita.Stream([(0, 0, [1.0])]), ValueError, "taps: (0, 0, [1.0]) is no path: (out, in, delay, taps)"),
    (lambda: partita.Stream([(-1, 0, 0, [1.0])]), ValueError, "out of a path = -1: not negative"),
    # Taps instead of a filter, a number instead of a problem.
    (lambda: partita.Stream(filter=TAPS), TypeError, "filter is of type ndarray: Plan.filter(taps) makes one"),
    (lambda: plan().forward(TAPS, X), TypeError, "filter is of type ndarray: Plan.filter(taps) makes one"),
    (lambda: plan().forward(None, X), TypeError, "filter is of type NoneType: Plan.filter(taps) makes one"),
    (lambda: bank().open(TAPS), TypeError, "filter is of type ndarray: Bank.filter(taps) makes one"),
    (lambda: partita.Plan(5), TypeError, "problem is of type int: partita.Problem(...) is needed"),
    (lambda: partita.Plan(partita.Problem(kernel=5), colour=1), TypeError,
     "Plan has no option colour; there are device,"),
    # Numbers.
    (lambda: stream(block=64.0), TypeError, "block = 64.0: an integer is needed"),
    (lambda: stream(channels="2"), TypeError, "channels = '2': an integer is needed"),
    (lambda: stream(channels=0), ValueError, "channels = 0: at least 1"),
    (lambda: stream(decimate=0), ValueError, "decimate = 0: at least 1"),
    (lambda: stream(up=0), ValueError, "up = 0: at least 1"),
    (lambda: partita.Problem(kernel=5, size=9, pad=0.5), TypeError, "pad = 0.5: an integer is needed"),
    (lambda: partita.Spectrum([]), ValueError, "x is empty"),
    (lambda: partita.Spectrum(X).correlate(TAPS, lags=5), ValueError, "lags = 5: two integers"),
    (lambda: partita.Spectrum(X).correlate(TAPS, lags=(5, 2)), ValueError, "lags = (5, 2): no results"),
    (lambda: partita.Problem(kernel=5, size=9, pad="same"), TypeError,
     "pad = 'same': numbers of zeros are needed; kernel // 2 on both sides"),
    # Taps of a stream that are not finite.
    (lambda: partita.Stream([1, np.nan, np.inf]), ValueError, "taps[1] = nan: taps of a stream must be finite"),
    (lambda: partita.Stream([(0, 0, 3, [1.0, -np.inf])]), ValueError, "taps[1] = -inf: taps of a stream"),
    (lambda: stream(channels=2).swap([[1, 2], [3, np.nan]]), ValueError, "taps[1, 1] = nan"),
    (lambda: bank().filter([[[1, 2, np.nan]]]), ValueError, "taps[0, 0, 2] = nan"),
    # Arrays for results that cannot be written.
    (lambda: stream().process(X, np.broadcast_to(np.float32(0), 10)), ValueError, "out is read-only"),
    # What cannot be pickled or copied.
    (lambda: pickle.dumps(bank().filter(TAPS)), TypeError, "make it by Plan.filter(taps)"),
    (lambda: copy.deepcopy(bank()), TypeError, "a bank cannot be pickled or copied: make another one"),
    (lambda: pickle.dumps(partita.Spectrum(X)), TypeError,
     "a spectrum cannot be pickled or copied: pickle the signal that it was made from"),
    # States.
    (lambda: stream().restore("text"), TypeError,
     "state is of type str: bytes that Stream.save returned are needed"),
    (lambda: stream().restore(b"abc"), partita.StateError,
     "restore: state: it begins with b'abc': Stream.save has not made it"),
    (lambda: stream().restore(bytes(9000)), partita.StateError, "Stream.save has not made it"),
    (lambda: stream().restore(b"PARTIT1" + saved()[7:]), partita.StateError,
     "restore: state: its format is b'PARTIT1' of another version of the library, not b'PARTIT2'"),
    (lambda: stream().restore(saved()[:-5]), partita.StateError, "bytes instead of"),
    (lambda: stream(dtype="f64").restore(saved()), partita.StateError, "it is of a stream with another number of taps"),
    (lambda: partita.Stream(np.ones(9, np.float32)).restore(saved()), partita.StateError, "another number of taps"),
    (lambda: stream().restore(saved()[:-1] + b"!"), partita.StateError, "restore: state: it is damaged"),
    # Banks.
    (lambda: partita.Bank(TAPS), TypeError, "slots is not given"),
    (lambda: partita.Bank(slots=4), TypeError, "from taps or for n_taps"),
    (lambda: partita.Bank(4, slots=4), TypeError, "taps = 4: an array of taps is needed"),
    (lambda: partita.Bank(np.ones((2, 5)), slots=4), ValueError, "taps has shape (2, 5): [m] or [outputs, inputs, m]"),
    (lambda: bank().open(), TypeError, "filter is of type NoneType: Bank.filter(taps) makes one"),
    (lambda: bank().close(0), partita.StateError, "close of slot 0, which must be open"),
    (lambda: bank().input(7), ValueError, "slot = 7: there is no such slot"),
])
def test_message(call, error, text):
    with pytest.raises(error, match=re.escape(text)):
        call()


def test_restore_during_a_swap():
    running = stream()
    state = running.save()
    running.swap(TAPS, fade=10)
    with pytest.raises(partita.StateError, match="restore: .*still swaps filters"):
        running.restore(state)


def test_tensors_of_another_type():
    torch = pytest.importorskip("torch", exc_type=ImportError)
    with pytest.raises(TypeError, match=re.escape("use x.to(torch.float32), or a filter made for float64")):
        stream().process(torch.ones(5, dtype=torch.float64))


def test_files_that_are_no_wisdom(tmp_path):
    (tmp_path / "notes").write_text("remember the milk")
    with pytest.raises(partita.StateError, match="notes: not saved by this version on such a machine"):
        partita.Wisdom(tmp_path / "notes")


def test_integers_in_a_spectrum():
    np.testing.assert_allclose(partita.Spectrum(np.array([1, 2, 3])).convolve([1.0, 1.0]), [1, 3, 5, 3], atol=1e-12)

# SPDX-License-Identifier: MIT
"""partita.nn.DecodeState: values against direct sums in double, and the bits of one prefill for every history."""
import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

import torch.nn.functional as F  # noqa: E402
from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from partita import StateError  # noqa: E402
from partita.nn import DecodeState  # noqa: E402

CHANNELS, TAPS, FRAMES, SLOTS, REWIND = 5, 400, 700, 3, 40


def filters(channels=CHANNELS, taps=TAPS):
    return torch.randn(channels, taps, generator=torch.Generator().manual_seed(1)) / taps ** 0.5


def samples(*shape, seed=2, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def prefill_whole(x, taps):
    """The outputs of whole sequences x (batch, channels, frames), in a slot of their own."""
    state = DecodeState(taps, len(x), max_frames=x.shape[-1], dtype=x.dtype)
    return torch.stack([state.prefill(state.join(), sequence) for sequence in x])


def direct(x, taps):
    """Sums in double; taps of (channels, taps), x of (channels, frames)."""
    padded = F.pad(x.double(), (taps.shape[1] - 1, 0))
    return F.conv1d(padded[None], taps.double().flip(1)[:, None], groups=len(taps))[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("channels, taps, frames", [(1, 1, 9), (3, 100, 300), (17, 500, 900), (16, 3000, 2500)])
def test_values(channels, taps, frames, dtype):
    x, h = samples(2, channels, frames, dtype=dtype), filters(channels, taps)
    y = prefill_whole(x, h)
    assert y.dtype == dtype and y.shape == x.shape
    for found, sequence in zip(y, x):
        exact = direct(sequence, h)
        # A chain of f32, transforms of errors relative to the parts of a sum, and a rounding to the type.
        unit = torch.finfo(torch.float32).eps * (taps ** 0.5 + 16)
        error = (found.double() - exact).norm() / exact.norm()
        assert error <= unit + torch.finfo(dtype).eps


class History:
    """A sequence as its user knows it: all its samples, and outputs as they were returned."""

    def __init__(self, x, n=0, longest=0, y=None):
        self.x, self.n, self.longest = x, n, longest
        self.y = torch.zeros_like(x) if y is None else y.clone()

    def room(self, n):
        return min(n, self.x.shape[1] - self.n)

    def take(self, n):
        self.n += n
        self.longest = max(self.longest, self.n)


ACTIONS = st.lists(st.tuples(st.sampled_from(["join", "clone", "drop", "rewind", "prefill", "step", "step", "step"]),
                             st.integers(0, SLOTS - 1), st.integers(0, 300)), max_size=40)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(actions=ACTIONS, dtype=st.sampled_from([torch.float32, torch.bfloat16]))
def test_every_history_has_the_bits_of_one_prefill(actions, dtype):
    h, x = filters(), samples(SLOTS + 1, CHANNELS, FRAMES, dtype=dtype)
    whole = prefill_whole(x, h)
    state, histories = DecodeState(h, SLOTS, max_frames=FRAMES, rewind=REWIND, dtype=dtype, threads=1), {}
    for number, (action, slot, n) in enumerate(actions):
        at = histories.get(slot)
        assert state.position(slot) == (at.n if at else 0)
        if action == "join" and len(histories) < SLOTS:
            opened = state.join()
            assert opened not in histories
            histories[opened] = History(x[number % (SLOTS + 1)])
        elif action == "clone" and at and len(histories) < SLOTS:
            histories[state.clone(slot)] = History(at.x, at.n, at.longest, at.y)
        elif action == "drop" and at:
            state.drop(slot)
            del histories[slot]
        elif action == "rewind" and at:
            n = min(n, at.n - max(0, at.longest - REWIND))
            state.rewind(slot, n)
            at.n -= n
        elif action == "prefill" and at:
            n = at.room(n)
            at.y[:, at.n:at.n + n] = state.prefill(slot, at.x[:, at.n:at.n + n])
            at.take(n)
        elif action == "step" and histories:
            frames = n % 8 + 1
            slots = [s for s in reversed(histories) if histories[s].room(frames) == frames]
            given_x = [histories[s].x[:, histories[s].n:histories[s].n + frames] for s in slots]
            y = state.step(torch.stack(given_x) if slots else x.new_empty(0, CHANNELS, frames), slots)
            for s, outputs in zip(slots, y):
                histories[s].y[:, histories[s].n:histories[s].n + frames] = outputs
                histories[s].take(frames)
        for sequence in histories.values():
            reference = next(w for w, other in zip(whole, x) if other.data_ptr() == sequence.x.data_ptr())
            assert torch.equal(sequence.y[:, :sequence.n], reference[:, :sequence.n]), (action, slot, n)


def test_threads_and_other_slots_change_no_bits():
    h, x = filters(100, 900), samples(2, 100, 1000)
    found = []
    for threads, sequences in ((1, 1), (3, 4)):
        state = DecodeState(h, sequences, threads=threads)
        slots = [state.join() for _ in range(sequences)]
        found.append(state.prefill(slots[-1], x[0]))
    assert torch.equal(*found)


def test_memory_is_known_before():
    n_bytes = DecodeState.memory(64, 2000, 3, rewind=5)
    assert n_bytes == DecodeState(filters(64, 2000), 3, rewind=5).nbytes
    assert 3 * 64 * 2000 * 4 < n_bytes < 64 * 2000 * 60
    assert DecodeState.memory(64, 2000, 3, max_frames=100) < n_bytes // 5
    with pytest.raises(MemoryError, match="1048576 sequences of 1048576 channels with 1048576 taps"):
        DecodeState.memory(1 << 20, 1 << 20, 1 << 20)
    with pytest.raises(MemoryError, match="1048576 sequences"):
        DecodeState(torch.ones(1, 1).expand(1 << 20, 1 << 20), 1 << 20)


def test_slots_follow_the_batch_by_default():
    state, x = DecodeState(filters(), 2), samples(2, CHANNELS, 1)
    state.join(), state.join()
    assert torch.equal(state.step(x[..., 0]), x[..., 0] * filters()[:, 0])
    assert [state.position(slot) for slot in (0, 1)] == [1, 1]


def refusals(state, x):
    """Calls that are refused, and the words of their errors."""
    frame = x[:, :1][None]
    return {
        "slot 1 is not open": lambda: state.step(frame, [1]),
        "slot 0 is listed twice": lambda: state.step(frame.expand(2, -1, -1), [0, 0]),
        "frames = 9": lambda: state.step(x[:, :9][None], [0]),
        "max_frames": lambda: state.prefill(0, x[:, :30]),
        "rewind = 4": lambda: state.rewind(0, 5),
        "slot 7": lambda: state.drop(7),
        "slot 3": lambda: state.clone(3),
        "x: shape": lambda: state.prefill(0, x[:2]),
        "x: torch.float64": lambda: state.step(frame.double(), [0]),
        "slots": lambda: state.step(frame, [-1]),
        "x: on meta": lambda: state.step(frame.to("meta"), [0]),
        "x is of type ndarray": lambda: state.step(frame.numpy()),
        "x is of type int": lambda: state.prefill(x, 0),
        "slots is of type int": lambda: state.step(frame, 0),
    }


@pytest.mark.parametrize("words", refusals(None, torch.zeros(3, 9)))
def test_bad_calls_change_nothing(words):
    x = samples(3, 50)
    state = DecodeState(filters(3, 20), 2, max_frames=40, rewind=4)
    y = state.prefill(state.join(), x[:, :20])
    with pytest.raises(TypeError if "is of type" in words else ValueError, match=words):
        refusals(state, x)[words]()
    rest = state.prefill(0, x[:, 20:40])
    assert torch.equal(torch.cat([y, rest], 1), prefill_whole(x[None, :, :40], filters(3, 20))[0])


def test_full_states_and_bad_options():
    state = DecodeState(filters(), 1)
    state.join()
    with pytest.raises(StateError, match="drop a sequence"):
        state.join()
    for message, options in {"sequences = 0": {"sequences": 0}, "rewind = -1": {"rewind": -1},
                             "max_frames = 0": {"max_frames": 0}, "dtype = torch.float64": {"dtype": torch.float64},
                             "decode: sequences": {"sequences": 1 << 21}}.items():
        with pytest.raises(ValueError, match=message):
            DecodeState(filters(), **options)
    with pytest.raises(ValueError, match="taps: 1 axes"):
        DecodeState(filters()[0])
    with pytest.raises(TypeError, match="taps is of type list: a tensor is needed"):
        DecodeState([[1.0]])
    with pytest.raises(TypeError, match="pickled"):
        state.__reduce__()

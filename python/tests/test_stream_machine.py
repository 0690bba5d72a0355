# SPDX-License-Identifier: MIT
"""Streams under any sequence of calls: results are those of one call, of one filter, of the moment that was saved."""
import hypothesis.strategies as st
import numpy as np
import reference
from hypothesis import given, settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, rule

import partita

GENERATOR = np.random.default_rng(0)
SIGNAL = {kind: GENERATOR.normal(size=(2, 1500)).astype(kind) for kind in ("float32", "float64")}
SIGNAL["complex64"] = (SIGNAL["float32"] + 1j * SIGNAL["float32"][::-1]).astype("complex64")
TAPS = GENERATOR.normal(size=(2, 2, 3000)).astype("float32")


@given(
    kind=st.sampled_from(sorted(SIGNAL)), length=st.sampled_from([1, 2, 17, 150, 3000]), block=st.integers(1, 300),
    latency=st.sampled_from([0, 0, 64, 5000]), decimate=st.sampled_from([1, 1, 1, 2, 5]),
    frames_first=st.booleans(), cuts=st.lists(st.integers(0, 1500), max_size=12))
def test_any_cut_into_calls_gives_the_same_bits(kind, length, block, latency, decimate, frames_first, cuts):
    x = SIGNAL[kind].T.copy() if frames_first else SIGNAL[kind]
    axis = 0 if frames_first else 1
    stream = partita.Stream(TAPS[..., :length], dtype=kind, block=block, latency=latency, decimate=decimate,
                            frames_first=frames_first)
    whole = stream.clone().process(x)
    ends = sorted([0, *cuts, 1500])
    parts = [stream.process(np.ascontiguousarray(np.take(x, range(a, b), axis))) for a, b in zip(ends, ends[1:])]
    np.testing.assert_array_equal(np.concatenate(parts, axis), whole)


class Calls(RuleBasedStateMachine):
    """A stream whose filter is swapped, saved, restored and cloned, beside a model: a history and one filter or two."""

    states = Bundle("states")

    @initialize(length=st.sampled_from([4, 60, 2000]), latency=st.sampled_from([0, 500]))
    def start(self, length, latency):
        self.length = length
        self.stream = partita.Stream(TAPS[0, 0, :length], block=64, latency=latency)
        self.twin = partita.Stream(TAPS[0, 0, :length], block=64, latency=latency)
        self.taps = 0

    def feed(self, frames):
        """The next frames, in one call or frame by frame: the twin and the stream give the same bits."""
        x = np.resize(SIGNAL["float32"][1], frames)
        whole = self.stream.process(x)
        cut = frames // 3
        parts = [self.twin.process(x[:cut]), self.twin.process(x[cut:])]
        np.testing.assert_array_equal(np.concatenate(parts), whole)

    @rule(frames=st.integers(0, 700))
    def process(self, frames):
        self.feed(frames)

    @rule(taps=st.integers(0, 3), fade=st.sampled_from([0, 1, 50]))
    def swap(self, taps, fade):
        self.taps = taps
        for stream in (self.stream, self.twin):
            stream.swap(TAPS[taps // 2, taps % 2, :self.length], fade)

    @rule()
    def finish_swaps(self):
        while self.stream.swapping or self.twin.swapping:
            self.feed(2048)

    @rule(target=states)
    def save(self):
        self.finish_swaps()
        return self.stream.save(), self.taps

    @rule(saved=consumes(states))
    def restore(self, saved):
        self.finish_swaps()
        state, taps = saved
        self.swap(taps, 0)
        self.finish_swaps()
        for stream in (self.stream, self.twin):
            stream.restore(state)

    @rule()
    def clone(self):
        self.finish_swaps()
        self.twin = self.stream.clone()

    @rule()
    def reset(self):
        self.finish_swaps()
        self.stream.reset()
        self.twin.reset()
        x = SIGNAL["float32"][0, :300]
        fresh = partita.Stream(TAPS[self.taps // 2, self.taps % 2, :self.length], block=64,
                               latency=self.stream.plan.problem.latency)
        expected = fresh.process(x)
        for stream in (self.stream, self.twin):
            np.testing.assert_array_equal(stream.process(x), expected)


TestCalls = Calls.TestCase
TestCalls.settings = settings(max_examples=30, stateful_step_count=25, derandomize=True, deadline=None, database=None)


def test_results_after_any_swaps_are_those_of_the_last_filter():
    x = SIGNAL["float32"][0]
    stream = partita.Stream(TAPS[0, 0, :200], block=64)
    for taps in (TAPS[0, 1], TAPS[1, 0], TAPS[1, 1]):
        stream.process(x[:100])
        stream.swap(taps[:200], 30)
    while stream.swapping:
        stream.process(x[:64])
    stream.reset()
    expected = reference.stream(x[None], TAPS[1, 1, None, :200])
    np.testing.assert_allclose(stream.process(x), expected, rtol=0, atol=reference.bound(expected, 200, np.float32))

# SPDX-License-Identifier: MIT
import copy

import numpy as np
import pytest

import partita


def echoes(channels, taps, samples, dtype):
    generator = np.random.default_rng(7)
    far_end = generator.normal(size=(channels, samples)).astype(dtype)
    paths = generator.normal(size=(channels, taps)) * np.exp(-np.arange(taps) / 20)
    near_end = sum(np.convolve(x, h)[:samples] for x, h in zip(far_end, paths)).astype(dtype)
    return near_end, far_end, paths


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("control", ["state-space", "nlms", "fixed"])
def test_the_path_is_found(channels, control):
    near_end, far_end, paths = echoes(channels, 100, 32000, "f4")
    canceller = partita.AdaptiveFilter(100, channels=channels, block=64, control=control)
    given = far_end if channels > 1 else far_end[0]
    parts = [canceller.process(near_end[at:at + 300], given[..., at:at + 300]) for at in range(0, 32000, 300)]
    residual = np.concatenate(parts)
    assert canceller.latency == 64 and residual.dtype == np.float32
    assert np.linalg.norm(residual[-2000:]) < 1e-3 * np.linalg.norm(near_end[-2000:])
    assert canceller.taps.shape == ((2, 100) if channels > 1 else (100,))
    assert np.linalg.norm(canceller.taps - paths) < 1e-3 * np.linalg.norm(paths)
    stats = canceller.stats
    assert stats["blocks"] == 500 and stats["rested"] == 0 and stats["erle"] > 60
    assert np.isnan(stats["misadjustment"]) == (control == "fixed")
    whole = partita.AdaptiveFilter(100, channels=channels, block=64, control=control, whole_blocks=True)
    assert np.array_equal(whole.process(near_end, given)[:-64], residual[64:]) and whole.latency == 0


def test_states_continue_and_frozen_taps_rest():
    near_end, far_end, _ = echoes(1, 50, 6000, "f8")
    one, other = (partita.AdaptiveFilter(50, block=32, constraint="every", dtype="f64") for _ in range(2))
    one.process(near_end[:3333], far_end[:, :3333])
    state = one.save()
    other.restore(state)
    assert np.array_equal(one.process(near_end[3333:], far_end[0, 3333:]), other.process(near_end[3333:], far_end[0, 3333:]))
    with pytest.raises(partita.StateError, match="other options, or damaged"):
        other.restore(state[:-1] + b"!")
    other.freeze()
    taps = other.taps
    other.process(near_end, -far_end)
    assert np.array_equal(other.taps, taps)
    other.freeze(False)
    other.reset()
    assert not other.taps.any() and other.stats["blocks"] == 0


def test_what_does_not_fit_is_refused():
    canceller = partita.AdaptiveFilter(10, block=64, whole_blocks=True)
    x = np.zeros(128, np.float32)
    with pytest.raises(ValueError, match="multiple of block = 64"):
        canceller.process(x[:100], x[:100])
    with pytest.raises(ValueError, match="far_end"):
        canceller.process(x, x[:64])
    with pytest.raises(ValueError, match="1 channels of as many samples"):
        canceller.process(x[None], x)
    with pytest.raises(TypeError, match="near_end has samples of float64"):
        canceller.process(x.astype(float), x)
    with pytest.raises(TypeError, match="cannot be pickled"):
        copy.copy(canceller)
    with pytest.raises(ValueError, match="taps"):
        partita.AdaptiveFilter(0)
    with pytest.raises(ValueError, match="step = 1.5: from"):
        partita.AdaptiveFilter(10, step=1.5)
    with pytest.raises(TypeError, match="step = 'a': a number is needed"):
        partita.AdaptiveFilter(10, step="a")
    with pytest.raises(ValueError, match="dtype = 'cf32': one of 'f32', 'f64'"):
        partita.AdaptiveFilter(10, dtype="cf32")
    with pytest.raises(TypeError, match="bytes that AdaptiveFilter.save returned are needed"):
        canceller.restore("text")
    with pytest.raises(ValueError, match="control = 'kalman': one of 'state-space', 'nlms', 'fixed'"):
        partita.AdaptiveFilter(10, control="kalman")

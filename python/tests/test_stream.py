# SPDX-License-Identifier: MIT
import copy
import gc
import math
import pickle

import numpy as np
import pytest
import reference

import partita


def noise(*shape, dtype=np.float32, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=shape)
    return (x + 1j * generator.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("length", [5, 700])
def test_one_channel(dtype, length):
    h, x = noise(length, dtype=dtype, seed=1), noise(2000, dtype=dtype)
    y = partita.Stream(h).process(x)
    expected = reference.stream(x[None], h[None])
    assert y.dtype == dtype and y.shape == x.shape
    np.testing.assert_allclose(y, expected, rtol=0, atol=reference.bound(expected, length, dtype))


def test_real_taps_of_a_complex_signal_stay_real():
    stream = partita.Stream(noise(9), dtype=np.complex64)
    assert stream.plan.problem.taps == "f32" and stream.plan.problem.signal == "cf32"
    x = noise(50, dtype=np.complex64)
    expected = reference.stream(x[None], noise(9)[None])
    np.testing.assert_allclose(stream.process(x), expected, rtol=0, atol=reference.bound(expected, 9, np.float32))
    with pytest.raises(TypeError, match="complex taps of a real stream"):
        partita.Stream(noise(9, dtype=np.complex64), dtype=np.float32)


def test_one_filter_for_all_channels_one_for_each_and_a_matrix():
    x, h = noise(2, 300), noise(3, 2, 40, seed=1)
    same = partita.Stream(h[0, 0], channels=2).process(x)
    each = partita.Stream(h[0]).process(x)
    matrix = partita.Stream(h).process(x)
    paths = partita.Stream([(k, c, 0, h[k, c]) for k in range(3) for c in range(2)]).process(x)
    for c in range(2):
        alone = [reference.stream(x[c:c + 1], h[0, i:i + 1]) for i in range(2)]
        np.testing.assert_allclose(same[c], alone[0], rtol=0, atol=reference.bound(alone[0], 40, np.float32))
        np.testing.assert_allclose(each[c], alone[c], rtol=0, atol=reference.bound(alone[c], 40, np.float32))
    for k in range(3):
        expected = reference.stream(x, h[k])
        np.testing.assert_allclose(matrix[k], expected, rtol=0, atol=reference.bound(expected, 80, np.float32))
    np.testing.assert_allclose(paths, matrix, rtol=0, atol=reference.bound(matrix, 80, np.float32))


def test_paths_with_delays():
    y = partita.Stream([(1, 0, 2, [3.0])], channels=(1, 2)).process(np.array([1.0, 0, 0, 0]))
    np.testing.assert_array_equal(y, [[0, 0, 0, 0], [0, 0, 3, 0]])


def test_arrays_with_frames_first():
    x, h = noise(2, 300), noise(3, 2, 40, seed=1)
    expected = partita.Stream(h).process(x)
    stream = partita.Stream(h, frames_first=True)
    y = stream.process(np.ascontiguousarray(x.T))
    assert y.shape == (300, 3)
    np.testing.assert_array_equal(y, expected.T)
    with pytest.raises(ValueError, match=r"x has shape \(2, 300\), not \[frames, 2\]"):
        stream.process(x)
    assert stream.drain(10).shape == (10, 3)


def test_in_place_and_into_a_given_array():
    x, h = noise(2, 300), noise(2, 40, seed=1)
    expected = partita.Stream(h).process(x)
    out = np.empty_like(x)
    assert partita.Stream(h).process(x, out) is out
    np.testing.assert_array_equal(out, expected)
    for frames_first in (False, True):
        place = (x.T if frames_first else x).copy(order="C")
        assert partita.Stream(h, frames_first=frames_first).process(place, place) is place
        np.testing.assert_array_equal(place.T if frames_first else place, expected)


def test_overlapping_arrays_are_refused():
    memory = noise(310)
    stream = partita.Stream(noise(4))
    with pytest.raises(ValueError, match="out overlaps x"):
        stream.process(memory[:300], memory[1:301])
    matrix = partita.Stream(noise(2, 2, 4))
    matrix.process(memory[:300].reshape(2, 150), memory[:300].reshape(2, 150))
    one_to_two = partita.Stream(noise(2, 1, 4))
    with pytest.raises(ValueError, match="out overlaps x"):
        one_to_two.process(memory[:150], memory[:300].reshape(2, 150))


@pytest.mark.parametrize("step", [1, 3])
def test_decimation(step):
    h, x = noise(30, seed=1), noise(1000)
    stream, parts = partita.Stream(h, decimate=step), []
    for part in (x[:10], x[10:12], x[12:500], x[500:]):
        parts.append(stream.process(part))
        assert len(parts[-1]) == (len(part) if step == 1 else len(parts[-1]))
    expected = reference.stream(x[None], h[None])[::step]
    np.testing.assert_allclose(np.concatenate(parts), expected, rtol=0, atol=reference.bound(expected, 30, np.float32))
    assert partita.Stream(h, decimate=step).output_frames(10) == len(x[:10:step])


@pytest.mark.parametrize("up, down", [(2, 1), (3, 2), (2, 5), (160, 147)])
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_resampling(up, down, dtype):
    h, x = noise(91, dtype=dtype, seed=1), noise(700, dtype=dtype)
    zeros = np.zeros(700 * up, dtype)
    zeros[::up] = x
    expected = np.convolve(zeros.astype(np.complex128), h)[:700 * up:down]
    stream, parts = partita.Stream(h, up=up, decimate=down), []
    for first in range(0, 700, 33):
        parts.append(stream.process(x[first:first + 33]))
        if first == 330:
            stream = stream.clone()
    y = np.concatenate(parts)
    assert y.dtype == dtype and len(y) == len(expected) == partita.Stream(h, up=up, decimate=down).output_frames(700)
    np.testing.assert_allclose(y, expected, rtol=0, atol=reference.bound(expected, 91, dtype))
    with pytest.raises(ValueError):
        stream.process(x, out=x)


def test_latency_and_tail():
    h, x = noise(5000, seed=1), noise(3000)
    stream = partita.Stream(h, latency=math.inf)
    y = np.concatenate([stream.process(x), stream.drain()])
    assert len(y) == 3000 + stream.tail and stream.tail == stream.latency + 4999
    expected = np.convolve(x.astype(float), h)
    np.testing.assert_allclose(y[stream.latency:], expected, rtol=0, atol=reference.bound(expected, 5000, np.float32))
    assert not y[:stream.latency].any()


def test_pipe_gives_the_tail_last():
    h, x = noise(50, seed=1), noise(300, 2)
    stream = partita.Stream(h, channels=2, frames_first=True)
    chunks = list(stream.pipe(x[i:i + 64] for i in range(0, 300, 64)))
    assert [len(c) for c in chunks] == [64, 64, 64, 64, 44, 49]
    expected = np.stack([np.convolve(x[:, c].astype(float), h) for c in range(2)], 1)
    np.testing.assert_allclose(np.concatenate(chunks), expected, rtol=0, atol=reference.bound(expected, 50, np.float32))
    assert [c.shape for c in partita.Stream(h).pipe([x[:, 0].copy()[None]])] == [(1, 300), (1, 49)]


def test_whole_blocks():
    stream = partita.Stream(noise(500), block=64, whole_blocks=True)
    assert stream.process(noise(128)).shape == (128,)
    with pytest.raises(ValueError, match="x has 100 frames: not whole blocks of 64"):
        stream.process(noise(100))
    with pytest.raises(ValueError, match="100 frames: not whole blocks of 64"):
        stream.drain(100)
    assert len(stream.drain()) % 64 == 0


def test_swap_fades_between_two_filters():
    x, h = noise(4000), noise(2, 30, seed=1)
    stream = partita.Stream(h[0])
    begin = stream.process(x[:1000])
    stream.swap(h[1], fade=99)
    assert stream.swapping
    y = np.concatenate([begin, stream.process(x[1000:])])
    assert not stream.swapping and stream.wait(0)
    old, new = (reference.stream(x[None], row[None]) for row in h)
    at = 1000 + np.argmax(np.abs(y - old)[1000:] > 1e-4)
    gain = np.clip((np.arange(4000) - at + 1) / 100, 0, 1)
    np.testing.assert_allclose(y, old + (new - old) * gain, rtol=0, atol=reference.bound(old, 60, np.float32))


def test_swaps_to_shorter_taps_to_paths_and_to_filters():
    x = noise(200, dtype=float)
    stream = partita.Stream([1.0, 0.0, 0.0], block=16)
    other = stream.plan.filter([0.0, 0.0, 5.0])
    for taps, gain, delay in ([2.0], 2, 0), ([(0, 0, 1, [3.0])], 3, 1), (other, 5, 2):
        stream.swap(taps)
        y = stream.process(x)
        stream.process(x)
        stream.reset()
        y = stream.process(x)
        np.testing.assert_allclose(y[delay:], gain * x[:len(x) - delay], rtol=0, atol=1e-13)
    with pytest.raises(ValueError, match="4 taps, but the stream was made for 3"):
        stream.swap([1.0] * 4)
    with pytest.raises(ValueError, match="filter: of another plan"):
        stream.swap(partita.Stream([1.0, 0.0, 0.0]).plan.filter([1.0, 2.0, 3.0]))


def morphing(h, **options):
    return partita.Stream(h, weights=[1, 0], block=64, **options)


@pytest.mark.parametrize("form", [lambda h: h, lambda h: [h[0], [(0, 0, 0, h[1])]], lambda h: [h[0], h[1, :9]]])
def test_weights_of_two_filters_move(form):
    h = form(noise(2, 300, seed=1))
    dense = [np.ravel(row[0][3] if isinstance(row, list) else row) for row in h]
    x, stream = noise(20000), morphing(h)
    begin = stream.process(x[:1024])
    stream.morph([0, 1], frames=500)
    y = np.concatenate([begin, stream.process(x[1024:])])
    old, new = (reference.stream(x[None], row[None]) for row in dense)
    rested = 1024 + 500 + max(map(stream.morph_lag, range(300)))
    assert rested < 15000
    np.testing.assert_allclose(y[:1024], old[:1024], rtol=0, atol=reference.bound(old, 300, np.float32))
    np.testing.assert_allclose(y[rested:], new[rested:], rtol=0, atol=reference.bound(old, 300, np.float32))
    # Each tap's weights are 1 - s and s with s from 0 to 1, so that no output is further from both than their sums.
    reach = sum(np.convolve(np.abs(x), np.abs(row))[:x.size] for row in dense)
    assert (np.abs(y) <= reach + 1e-3).all() and np.abs(y - old)[1024:rested].max() > 1


def test_copies_and_pickles_of_a_stream_whose_weights_move():
    x, stream = noise(6000), morphing(noise(2, 700, seed=1))
    stream.process(x[:1000])
    stream.morph([0.25, 0.5], frames=3000)
    stream.process(x[1000:2000])
    copies = stream.clone(), pickle.loads(pickle.dumps(stream))
    expected = stream.process(x[2000:])
    for other in copies:
        np.testing.assert_array_equal(other.process(x[2000:]), expected)


def test_filters_of_a_stream_whose_weights_move_are_kept():
    plan = morphing(noise(2, 300)).plan
    stream = partita.Stream(filter=[plan.filter(noise(300, seed=s)) for s in range(3)], weights=[0, 0, 1])
    assert not stream.swapping
    gc.collect()
    x = noise(3000)
    stream.morph([0, 1, 0])
    stream.process(np.zeros(20000, np.float32))
    expected = reference.stream(x[None], noise(300, seed=1)[None])
    np.testing.assert_allclose(stream.process(x), expected, rtol=0, atol=reference.bound(expected, 300, np.float32))


def test_weights_that_do_not_fit():
    h = noise(2, 3000)
    with pytest.raises(ValueError, match="weights has shape .3,., but there are 2 filters"):
        partita.Stream(h, weights=[1, 0, 0])
    with pytest.raises(ValueError, match="weights = .1.0, nan.: they must be finite"):
        partita.Stream(h, weights=[1, math.nan])
    with pytest.raises(ValueError, match="n_filters = 9"):
        partita.Stream(noise(9, 3000), weights=[1] * 9)
    with pytest.raises(TypeError, match="Plan.filter"):
        partita.Stream(filter=[h], weights=[1])
    with pytest.raises(partita.StateError, match="without weights"):
        partita.Stream(h[0]).morph([1])
    with pytest.raises(partita.UnsupportedError, match="swap"):
        morphing(h).swap(h[0])
    with pytest.raises(ValueError, match="frames"):
        morphing(h).morph([1, 0], frames=-1)


def test_waiting_for_a_swap_that_nobody_processes():
    stream = partita.Stream(noise(30))
    stream.swap(noise(30), 10)
    assert not stream.wait(0.01)


def test_save_restore_clone_reset():
    x, stream = noise(3000), partita.Stream(noise(700), block=64)
    stream.process(x[:1000])
    state, clone = stream.save(), copy.copy(stream)
    expected = stream.process(x[1000:])
    np.testing.assert_array_equal(clone.process(x[1000:]), expected)
    stream.restore(state)
    np.testing.assert_array_equal(copy.deepcopy(stream).process(x[1000:]), expected)
    np.testing.assert_array_equal(stream.process(x[1000:]), expected)
    stream.reset()
    np.testing.assert_array_equal(stream.process(x), partita.Stream(noise(700), block=64).process(x))
    with pytest.raises(partita.StateError, match="restore"):
        stream.restore(state[:-1] + bytes([state[-1] ^ 1]))
    stream.swap(noise(700, seed=5))
    for call in (stream.save, stream.clone):
        with pytest.raises(partita.StateError, match="not while a swap is in progress"):
            call()


def test_pickled_streams_continue():
    x = noise(2, 3000)
    for taps in noise(2, 700), noise(2, 2, 20), [(1, 0, 3, noise(60)), (0, 1, 0, noise(5))]:
        stream = partita.Stream(taps, block=64)
        stream.process(x[:, :1000])
        other = pickle.loads(pickle.dumps(stream))
        np.testing.assert_array_equal(other.process(x[:, 1000:]), stream.process(x[:, 1000:]))
        made = partita.Stream(filter=stream.plan.filter(noise(*stream.plan.problem.taps_shape)))
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(made)).process(x), made.process(x))


def test_the_taps_of_the_caller_are_copied():
    taps = np.array([1.0, 2.0])
    stream = partita.Stream(taps)
    taps[:] = 0
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(stream)).process([1.0, 0.0]), [1, 2])


def test_other_layouts_of_memory():
    x = noise(40, 2, dtype=float)
    expected = partita.Stream([1.0, 2.0], channels=2).process(np.ascontiguousarray(x.T))
    for same in x.T, x.T.astype(">f8"), x.T[:, ::-1][:, ::-1], x.T.tolist():
        np.testing.assert_array_equal(partita.Stream([1.0, 2.0], channels=2).process(same), expected)
    raw = bytearray(8 * 40 + 1)
    odd = np.frombuffer(raw, np.float64, 40, offset=1)
    odd[:] = x[:, 0]
    np.testing.assert_array_equal(partita.Stream([1.0, 2.0]).process(odd), expected[0])
    with pytest.raises(ValueError, match="not aligned"):
        partita.Stream([1.0, 2.0]).process(x[:, 0].copy(), odd)


def test_refused_calls_leave_the_state():
    stream, x = partita.Stream(noise(3)), noise(20)
    expected = stream.clone().process(x)
    with pytest.raises(TypeError, match="x has samples of float64, not f32"):
        stream.process(x.astype(float))
    with pytest.raises(ValueError, match="shape"):
        stream.process(noise(2, 20))
    with pytest.raises(ValueError, match=r"out has shape \(19,\), not \(20,\)"):
        stream.process(x, np.empty(19, np.float32))
    with pytest.raises(ValueError, match="read-only"):
        frozen = np.empty(20, np.float32)
        frozen.flags.writeable = False
        stream.process(x, frozen)
    np.testing.assert_array_equal(stream.process(x), expected)


@pytest.mark.parametrize("arguments, error, text", [
    ({}, TypeError, "from taps or from a filter"),
    ({"taps": []}, ValueError, "taps is empty"),
    ({"taps": np.ones((1, 1, 1, 1))}, ValueError, "taps has shape"),
    ({"taps": np.ones((2, 5)), "channels": 3}, ValueError, "channels = 3, but the taps are of 2"),
    ({"taps": np.ones(5, np.float16)}, ValueError, "streams have samples of f32 or f64"),
    ({"taps": np.ones(5), "block": 0}, ValueError, "block = 0"),
    ({"taps": np.ones(5), "block": 20, "whole_blocks": True}, ValueError, "multiple of 16"),
    ({"taps": np.array(["a"])}, TypeError, "not a sample type"),
])
def test_streams_that_cannot_be(arguments, error, text):
    with pytest.raises(error, match=text):
        partita.Stream(**arguments)


def test_closed_streams():
    with partita.Stream(noise(3)) as stream:
        stream.process(noise(5))
    for call in (lambda: stream.process(noise(5)), stream.drain, stream.save, stream.clone, stream.reset,
                 lambda: stream.swap(noise(3)), lambda: stream.latency, lambda: stream.swapping):
        with pytest.raises(partita.StateError, match="the stream is closed"):
            call()


def test_statistics():
    stream = partita.Stream(noise(3), sample_rate=48000)
    for _ in range(10):
        stream.process(noise(64))
    stats = stream.stats()
    assert stats.calls == 10 and 0 <= stats.mean <= stats.max
    with pytest.raises(partita.StateError, match="without sample_rate"):
        partita.Stream(noise(3)).stats()


def test_what_a_stream_says():
    stream = partita.Stream(noise(3000), block=64, threads=2)
    assert "1 -> 1 channels of f32, 3000 taps, cpu/partitioned, latency 0" in repr(stream)
    assert stream.load.frames == 64 and stream.status is None
    x = noise(1000)
    np.testing.assert_array_equal(stream.process(x), partita.Stream(noise(3000), block=64).process(x))

# SPDX-License-Identifier: MIT
import copy
import threading
import wave

import numpy as np
import pytest

import partita


def direct(x, taps, centre, stride, up, outputs):
    """The formula of the class, with the phase in long double."""
    angle = -2 * np.pi * np.fmod(np.longdouble(centre) * np.arange(len(x)), 1).astype(float)
    mixed = np.zeros(up * len(x), complex)
    mixed[::up] = x * np.exp(1j * angle)
    return np.convolve(mixed, taps)[:up * len(x)][::stride][:outputs]


@pytest.mark.parametrize("dtype", ["f32", "f64", "cf32", "cf64"])
@pytest.mark.parametrize("rate", [(1, 1), (1, 12), (4, 9)])
def test_outputs_are_direct_sums(dtype, rate):
    up, stride = rate
    generator = np.random.default_rng(5)
    band = partita.Channelizer(30, stride=36, block=108, dtype=dtype, threads=2)
    x = generator.normal(size=108 * 6)
    if dtype.startswith("c"):
        x = x + 1j * generator.normal(size=x.shape)
    x = x.astype({"f32": "f4", "f64": "f8", "cf32": "c8", "cf64": "c16"}[dtype])
    taps = [generator.normal(size=30), generator.normal(size=17) + 1j]
    filters = [band.filter(h, stride=stride, up=up) for h in taps]
    centres = [0.123, -0.4999, 0.5, 0.0]
    channels = {band.open(filters[i % 2], centre): (taps[i % 2], centre) for i, centre in enumerate(centres)}
    parts = [band.process(x[at:at + 50]) for at in range(0, len(x), 50)]
    # Transforms of N samples have an error of 3 u sqrt(log2 N) relative to a typical output, as in tests/support/test.h.
    u = 2.0**-53 if dtype.endswith("64") else 2.0**-24
    gate = 3 * u * np.sqrt(np.log2(band.block + band.overlap)) + 8 * u
    for channel, (h, centre) in channels.items():
        y = np.concatenate([p[channel] for p in parts])
        expected = direct(x, h, centre, stride, up, len(x) * up // stride)
        assert y.dtype == ("c16" if dtype.endswith("64") else "c8") and y.shape == expected.shape
        assert np.linalg.norm(y - expected) <= gate * np.linalg.norm(expected)


def test_channels_open_change_and_close():
    band = partita.Channelizer(9, channels=2, stride=4, block=40, dtype="f64")
    narrow = band.filter(np.ones(9), stride=4)
    x = np.random.default_rng(1).normal(size=400)
    one = band.open(narrow, 0.1)
    two = band.open(narrow, -0.2)
    with pytest.raises(partita.StateError, match="all 2 channels"):
        band.open(narrow, 0)
    first = band.process(x[:40])
    band.change(one, centre=-0.2, fade=3)
    band.close(two)
    second = band.process(x[40:120])
    assert set(first) == {one, two} and set(second) == {one} and second[one].shape == (20,)
    assert band.position == 120
    assert band.open(narrow, -0.2) == two
    third = band.process(x[120:200])
    np.testing.assert_array_equal(third[one], third[two])
    band.reset(80)
    assert band.position == 80
    assert band.process(x[:5])[one].shape == (0,)


def test_a_bandwidth_and_its_texts():
    band = partita.Channelizer(101, stride=8, sample_rate=48e3)
    taps = partita.design("lowpass", 2e3, rate=48e3, taps=101)
    whole, narrow = band.filter(taps, stride=8), band.filter(taps, stride=8, bandwidth=5e3)
    exact, channel = band.open(whole, 12e3), band.open(narrow, 12e3)
    y = band.process(np.exp(2j * np.pi * np.arange(2 * band.block) / 4).astype(np.complex64))
    # By Cauchy and Schwarz, with samples of magnitude 1: the norm of the response at the bins that are left out.
    n = band.block + band.overlap
    removed = np.fft.fft(taps, n)[abs(np.fft.fftfreq(n)) * 48e3 > 2.5e3 - 48e3 / n]
    assert 0 < abs(y[channel] - y[exact]).max() <= np.linalg.norm(removed) + 1e-6
    assert repr(band) == f"<partita.Channelizer, 2 channels of cf32 open, blocks of {band.block}>"
    assert repr(narrow) == "<partita.ChannelFilter, 101 taps of f32, rate 1/8>"
    for value in (band, narrow):
        with pytest.raises(TypeError, match="cannot be pickled"):
            copy.copy(value)


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda b: partita.Channelizer(0), ValueError, "n_taps"),
    (lambda b: partita.Channelizer(5, stride=7, block=20), ValueError, "such as 21"),
    (lambda b: partita.Channelizer(5, sample_rate=-1), ValueError, "sample_rate"),
    (lambda b: partita.Channelizer(5, dtype="f16"), ValueError, "signal"),
    (lambda b: b.filter([]), ValueError, "one axis with a tap"),
    (lambda b: b.filter([1, np.nan]), ValueError, r"taps\[1\]"),
    (lambda b: b.filter(np.ones((2, 3))), ValueError, "one axis"),
    (lambda b: b.filter(np.ones(5000)), ValueError, "options.n_taps = 9"),
    (lambda b: b.filter([1], stride=5), ValueError, "multiple of 5"),
    (lambda b: b.filter([1], bandwidth=2), ValueError, "bandwidth"),
    (lambda b: b.open(3, 0), TypeError, "Channelizer.filter"),
    (lambda b: b.open(partita.Channelizer(9).filter([1]), 0), ValueError, "another channelizer"),
    (lambda b: b.open(b.filter([1]), 0.6), ValueError, "centre = 0.6"),
    (lambda b: b.change(0), ValueError, "is not open"),
    (lambda b: b.close(0), partita.StateError, "must be open"),
    (lambda b: b.process(np.ones((2, 2), np.complex64)), ValueError, "one axis"),
    (lambda b: b.process(np.ones(3)), TypeError, "astype"),
    (lambda b: b.reset(3), ValueError, "multiple of stride"),
])
def test_what_is_refused(call, kind, text):
    with pytest.raises(kind, match=text):
        call(partita.Channelizer(9, stride=4))


def test_channels_come_and_go_while_another_thread_processes():
    band = partita.Channelizer(9, channels=8, stride=4, block=40)
    narrow = band.filter(np.ones(9), stride=4)
    kept, x = band.open(narrow, 0.1), np.random.default_rng(1).normal(size=4000).astype(np.complex64)
    expected = band.process(x)[kept]
    done = threading.Event()

    def steer():
        while not done.is_set():
            try:
                channel = band.open(narrow, 0.2)
            except partita.StateError:
                continue
            band.change(channel, centre=0.3, fade=2)
            band.close(channel)

    thread = threading.Thread(target=steer)
    thread.start()
    try:
        for _ in range(20):
            band.reset()
            np.testing.assert_array_equal(band.process(x)[kept], expected)
    finally:
        done.set()
        thread.join()


def test_the_example_demodulates_every_channel(tmp_path, load_example):
    example = load_example("receiver_bank")
    example.make(tmp_path / "air", 200)
    assert example.receive(tmp_path / "air", tmp_path) == 200
    for channel in range(200):
        with wave.open(str(tmp_path / f"channel-{channel}.wav")) as file:
            rate, audio = file.getframerate(), np.frombuffer(file.readframes(file.getnframes()), "<i2")
        audio = audio[len(audio) // 4:] / 32767  # the filter has filled
        spectrum = abs(np.fft.rfft(audio * np.hanning(len(audio))))
        found = spectrum.argmax() * rate / len(audio)
        assert abs(found - example.tone_of(channel)) <= rate / len(audio), channel
        # The tone has the deviation of the transmitter, so the audio its full scale, times the gain of a difference.
        assert 0.9 < np.sqrt(2) * audio.std() / np.sinc(example.tone_of(channel) / rate) < 1.1, channel

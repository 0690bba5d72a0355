# SPDX-License-Identifier: MIT
import threading

import numpy as np
import pytest
import reference

import partita


def make(**options):
    return partita.Bank(slots=8, n_taps=300, **{"block": 64} | options)


def run(bank, slot, x):
    """Filters a signal [channels, n] block by block."""
    parts = []
    for at in range(0, x.shape[1], bank.block):
        bank.input(slot)[:] = x[:, at:at + bank.block]
        bank.process()
        parts.append(bank.output(slot).copy())
    return np.concatenate(parts, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_a_slot_is_a_stream(dtype):
    generator = np.random.default_rng(1)
    bank = make(in_channels=2, out_channels=3, dtype=dtype, taps_dtype=np.float32)
    x, h = generator.normal(size=(2, 640)).astype(dtype), generator.normal(size=(3, 2, 300)).astype(np.float32)
    slot = bank.open(bank.filter(h))
    y = run(bank, slot, x)
    for k in range(3):
        expected = reference.stream(x, h[k])
        np.testing.assert_allclose(y[k, bank.latency:], expected[:640 - bank.latency], rtol=0,
                                   atol=reference.bound(expected, 600, np.float32))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(5,), (1, 5), (3, 2, 5)])
def test_a_bank_from_taps(shape, dtype):
    """As Stream(taps): channels, their number and types are those of the taps."""
    taps = np.random.default_rng(2).normal(size=shape).astype(dtype)
    for bank in (partita.Bank(taps, slots=2, block=8), partita.Bank(taps=taps, n_taps=9, slots=2, block=8)):
        stream = partita.Stream(taps, block=8)
        x = np.random.default_rng(4).normal(size=(bank.in_channels, 40)).astype(dtype)
        got = run(bank, bank.open(), x)
        assert got.dtype == dtype and bank.out_channels == (3 if len(shape) == 3 else 1)
        np.testing.assert_array_equal(got, stream.process(x))
    assert (bank.n_taps, bank.input(0).dtype) == (9, taps.dtype)
    assert partita.Bank([1, 2], slots=1).input(0).dtype == np.float64
    assert partita.Bank(3, 4).input(2).dtype == partita.Bank(3, n_taps=4).input(2).dtype == np.float32


def test_slots_open_swap_and_close():
    bank = make()
    one, two = bank.filter([1.0]), bank.filter([2.0])
    x = np.arange(1, 65, dtype=np.float32)[None]
    slots = [bank.open(f) for f in (one, two)]
    assert [bank.state(s) for s in slots] == ["open", "open"]
    for slot in slots:
        bank.input(slot)[:] = x
    bank.process()
    np.testing.assert_array_equal(bank.output(slots[1]), 2 * bank.output(slots[0]))
    bank.swap(slots[0], two)
    del one
    while bank.state(slots[0]) == "swapping":
        bank.process()
    np.testing.assert_array_equal(run(bank, slots[0], x), 2 * x)
    bank.close(slots[0])
    assert bank.state(slots[0]) == "closing"
    bank.process()
    assert bank.state(slots[0]) == "free"


def test_filters_stay_while_slots_use_them():
    bank = make()
    slot = bank.open(bank.filter(np.ones(300)))
    x = np.ones((1, 64), np.float32)
    y = run(bank, slot, np.ones((1, 640), np.float32))
    np.testing.assert_allclose(y[0, -1], 300, rtol=1e-5)
    bank.swap(slot, bank.filter(np.zeros(1)), fade=1000)
    for _ in range(100):
        run(bank, slot, x)
    np.testing.assert_allclose(bank.output(slot), 0, atol=1e-3)


def test_arrays_keep_the_bank():
    bank = make()
    array = bank.input(bank.open(bank.filter([1.0])))
    del bank
    array[:] = 5
    assert array.sum() == 5 * 64


def test_another_thread_opens_and_closes_while_the_bank_runs():
    bank, errors, stop = make(), [], threading.Event()

    def control():
        try:
            for i in range(100):
                slot = bank.open(bank.filter(np.full(20, i)))
                bank.swap(slot, bank.filter(np.full(10, i)), fade=30)
                bank.close(slot)
                while bank.state(slot) == "closing":
                    pass
        except Exception as error:  # noqa: BLE001 # shown by the main thread
            errors.append(error)
        stop.set()

    thread = threading.Thread(target=control)
    thread.start()
    while not stop.is_set():
        bank.process()
    thread.join()
    assert not errors


def test_refusals():
    bank, slot = make(sample_rate=48000), None
    filter = bank.filter([1.0])
    with pytest.raises(ValueError, match="bank.slots = 2000000"):
        partita.Bank(slots=2_000_000, n_taps=1)
    with pytest.raises(ValueError, match="n_taps = 0"):
        partita.Bank(slots=1, n_taps=0)
    with pytest.raises(ValueError, match="in_channels = 2 without out_channels"):
        partita.Bank(slots=1, n_taps=1, in_channels=2)
    with pytest.raises(ValueError, match="bank.error_budget = -1"):
        partita.Bank(slots=1, n_taps=1, error_budget=-1)
    with pytest.raises(ValueError, match="taps has shape"):
        bank.filter(np.ones((2, 1, 4)))
    with pytest.raises(ValueError):
        bank.filter(np.ones(301))
    with pytest.raises(ValueError, match="filter: of another bank"):
        make().open(filter)
    for slot in [bank.open(filter) for _ in range(8)]:
        pass
    with pytest.raises(partita.StateError, match="open"):
        bank.open(filter)
    with pytest.raises(ValueError, match="no such slot"):
        bank.input(8)
    bank.close(slot)
    with pytest.raises(partita.StateError, match=f"close of slot {slot}"):
        bank.close(slot)
    with pytest.raises(partita.StateError, match=f"swap of slot {slot}"):
        bank.swap(slot, filter)
    with pytest.raises(partita.StateError, match="update"):
        filter.update([1.0])
    with pytest.raises(ValueError, match="read-only"):
        bank.output(0)[:] = 1
    bank.process()
    assert bank.stats().calls == 1 and bank.lead(0) >= 0 and "stream f32" in bank.explain()
    with pytest.raises(partita.StateError, match="without sample_rate"):
        make().stats()

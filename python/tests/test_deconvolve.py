# SPDX-License-Identifier: MIT
"""partita.deconvolve against signals whose spectra are known."""
import numpy as np
import pytest

import partita


@pytest.mark.parametrize("dtype", ("float64", "float32", "int16"))
def test_known_response(dtype):
    """An echo of half the amplitude leaves every bin within a factor of 3 of the largest, so that the division changes the
    response by less than 81e-12 (tests/signals/test_deconvolve.c)."""
    rng = np.random.default_rng(1)
    signal = np.zeros(20, dtype)
    signal[0], signal[7] = -64, 32
    response = rng.integers(-100, 100, (2, 300)).astype(dtype)
    recording = np.stack([np.convolve(row.astype("f8"), signal.astype("f8")) for row in response])
    found = partita.deconvolve(recording.astype(dtype), signal)
    assert found.dtype == np.float64 and found.shape == recording.shape
    np.testing.assert_allclose(found[:, :300], response, atol=1e-8)
    np.testing.assert_allclose(found[:, 300:], 0, atol=1e-8)
    np.testing.assert_array_equal(partita.deconvolve(recording[1], signal), found[1])


def test_refusals():
    for recording, signal, said in (([1.0, np.nan], [1.0], "recording: has samples"), ([1.0], [], "signal: needs real"),
                                    ([1j], [1.0], "recording: needs real"), (np.ones((1, 1, 2)), [1.0], "1 or 2, not 1 and 3"),
                                    ([1.0], np.ones((2, 2)), "not 2 and 1")):
        with pytest.raises(ValueError, match=said):
            partita.deconvolve(recording, signal)

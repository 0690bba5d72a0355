# SPDX-License-Identifier: MIT
import numpy as np
import pytest
import reference

import partita


def pair(dtype, n=5000, m=300):
    generator = np.random.default_rng(1)
    x, h = (generator.normal(size=k) + 1j * generator.normal(size=k) for k in (n, m))
    return [(a if np.dtype(dtype).kind == "c" else a.real).astype(dtype) for a in (x, h)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_modes_are_those_of_numpy(dtype):
    x, h = pair(dtype)
    spectrum = partita.Spectrum(x, 1024)
    assert len(spectrum) == 5000 and spectrum.block >= 1024 and spectrum.nbytes > x.nbytes
    for mode in "full", "same", "valid":
        expected = np.convolve(x, h, mode)
        y = spectrum.convolve(h, mode)
        assert y.dtype == dtype
        np.testing.assert_allclose(y, expected, rtol=0, atol=reference.bound(expected, 300, dtype))
        expected = np.correlate(x, h, mode)
        np.testing.assert_allclose(spectrum.correlate(h, mode), expected, rtol=0,
                                   atol=reference.bound(expected, 300, dtype))


def test_slices_and_lags():
    x, h = pair(float)
    spectrum, template = partita.Spectrum(x, 512), partita.Spectrum(h, 512)
    full = np.convolve(x, h)
    np.testing.assert_allclose(spectrum.convolve(template, slice(100, 200)), full[100:200], rtol=0, atol=1e-11)
    full = np.correlate(x, h, "full")
    for lags in (-5, 20), range(-5, 20):
        np.testing.assert_allclose(spectrum.correlate(template, lags=lags), full[299 - 5:299 + 20], rtol=0, atol=1e-11)
    out = np.empty(25)
    assert spectrum.correlate(template, lags=(-5, 20), out=out) is out
    with pytest.raises(ValueError, match="only steps of 1"):
        spectrum.correlate(template, lags=range(0, 10, 2))
    with pytest.raises(ValueError, match="the end is missing"):
        spectrum.convolve(template, slice(3, None))
    with pytest.raises(ValueError):
        spectrum.correlate(template, lags=(5, 5))


def test_a_signal_with_itself():
    x = partita.Spectrum([1.0, 2.0, 3.0])
    np.testing.assert_allclose(x.correlate(x), [3, 8, 14, 8, 3], rtol=0, atol=1e-13)


def test_spectra_that_do_not_fit():
    x, h = pair(np.float32)
    with pytest.raises(ValueError, match="block"):
        partita.Spectrum(x, 1024).convolve(partita.Spectrum(h, 64))
    with pytest.raises(TypeError, match="h has samples of float64"):
        partita.Spectrum(x).convolve(h.astype(float))
    with pytest.raises(ValueError, match="not one axis"):
        partita.Spectrum(np.ones((2, 2)))
    with pytest.raises(ValueError, match="mode = 'half'"):
        partita.Spectrum(x).convolve(h, "half")
    with pytest.raises(ValueError):
        partita.Spectrum(np.empty(0))

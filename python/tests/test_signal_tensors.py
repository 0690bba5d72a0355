# SPDX-License-Identifier: MIT
"""Tensors of PyTorch as operands of partita.signal: results are tensors with the values of the same call with arrays."""
import numpy as np
import pytest

from partita import signal

torch = pytest.importorskip("torch")

X, H, IMAGE, TAPS = (np.random.default_rng(5).normal(size=shape) for shape in (2000, 31, (20, 30), (3, 4)))
CALLS = [
    ("convolve", (X, H), {}), ("convolve", (X, X), {"method": "fft", "mode": "same"}),
    ("convolve", (X, H), {"mode": slice(3, 9)}),
    ("correlate", (X[:90], H), {}), ("correlate", (X, H), {"lags": (0, 5), "normalise": True}),
    ("fftconvolve", (X, H), {}), ("oaconvolve", (IMAGE, TAPS), {"mode": "valid"}), ("convolve2d", (IMAGE, TAPS), {}),
    ("correlate2d", (TAPS, IMAGE), {"mode": "valid"}), ("lfilter", (H, 1.0, X), {}), ("upfirdn", (H, X, 3, 2), {}),
    ("lfilter", (H, 1.0, X), {"zi": np.ones(30)}), ("correlation_peaks", (X, H), {"peaks": 2}),
    ("convolve", (X[0], H[0]), {}), ("resample_poly", (X, 3, 2), {}), ("decimate", (X, 2, 8, "fir"), {}),
    ("filtfilt", (H, 1, X), {}), ("filtfilt", (H, 1, X), {"padlen": 0}), ("savgol_filter", (X, 9, 2), {}),
    ("hilbert", (X,), {}), ("stft", (X,), {}), ("istft", (IMAGE,), {}), ("decimate", (X, 2), {}),
]


@pytest.mark.parametrize("name, args, kwargs", CALLS)
@pytest.mark.parametrize("chosen", (slice(None), slice(1), slice(1, None)))
def test_one_tensor_makes_results_tensors(name, args, kwargs, chosen):
    expected = getattr(signal, name)(*args, **kwargs)
    operands = list(args)
    operands[chosen] = (torch.as_tensor(v) if isinstance(v, (np.ndarray, np.generic)) else v for v in args[chosen])
    if not any(map(torch.is_tensor, operands)):
        pytest.skip("no array is chosen")
    got = getattr(signal, name)(*operands, **kwargs)
    for ours, theirs in zip(*(r if isinstance(r, tuple) else (r,) for r in (got, expected)), strict=True):
        assert torch.is_tensor(ours) and not torch.is_tensor(theirs)
        np.testing.assert_array_equal(ours.numpy(), theirs)


@pytest.mark.parametrize("dtype", (torch.float32, torch.complex64, torch.int32, torch.float16, torch.bool))
def test_types(dtype):
    x = torch.ones(9).to(dtype)
    y = signal.convolve(x, x)
    assert y.dtype == dtype and torch.equal(y, torch.from_numpy(signal.convolve(x.numpy(), x.numpy())))


def test_views_and_out():
    x, h = torch.randn(50, 2, dtype=torch.complex64), torch.randn(7, dtype=torch.complex64)
    for view in (x[:, 0], x.conj()[:, 1], x[:, 0].conj().imag):
        expected = signal.convolve(np.array(view.tolist(), np.complex64), h.numpy())
        np.testing.assert_allclose(signal.convolve(view, h), expected, rtol=0, atol=1e-5)
    out = torch.empty(56, dtype=torch.complex64)
    assert signal.convolve(x[:, 0], h, out=out) is out
    assert torch.equal(out, signal.convolve(x[:, 0], h))


def test_gradients_are_not_lost_in_silence():
    x = torch.ones(9, requires_grad=True)
    for call in (lambda: signal.convolve(x, x), lambda: signal.lfilter(x, 1, x)):
        with pytest.raises(RuntimeError, match="detach"):
            call()
    with torch.no_grad():
        assert signal.convolve(x, x)[8] == 9

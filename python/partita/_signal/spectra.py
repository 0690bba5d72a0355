# SPDX-License-Identifier: MIT
"""Analytic signals and short-time spectra, by scipy.fft: transforms of real samples, in pieces that caches hold."""
import math
import warnings

import numpy as np

from partita._signal import dtypes, general, tensors
from partita._signal.fallback import scipy_answers
from partita._signal.rebound import PADDINGS, remembered

_PIECE = 2**18  # samples that are transformed at once, if there are several transforms
_ROUGH = 64  # transforms of n points are slower than convolutions of 2 n if n has a prime factor above this
_TYPES, _SCALINGS = "bhilqBHILQfdFD", ("spectrum", "psd")  # NumPy's codes of types of samples
_PADDINGS: dict = {None: {}, "zeros": {}} | PADDINGS
_OTHERS = "other arguments"  # which SciPy refuses, warns of, or computes


def _hilbert_taps(n):
    """Lags 1 - n to n - 1 of the periodic Hilbert transformer of n points (Kak, Proc. IEEE 58(4), 1970).

    Even n: 2 / n cot(pi k / n) for odd k, otherwise 0. Odd n: cot(pi k / 2 n) / n for odd k. Lag n - k has the negative
    value of lag k.
    """
    taps = np.zeros(2 * n - 1)
    period = taps[n - 1:]
    k = np.arange(1, n, 2)
    period[k] = 1 / np.tan(np.pi / (n if n % 2 == 0 else 2 * n) * k) * ((2 - n % 2) / n)
    if n % 2:
        period[n - k] = -period[k]
    taps[:n - 1] = period[1:]
    return taps


def _hilbert_transform(x):
    """The Hilbert transforms of real signals of the last axis."""
    import scipy.fft as fft

    n = x.shape[-1]
    # A number with a prime factor above _ROUGH divides no power of the product of all numbers up to that.
    if n > 1 and x.dtype.char in "fd" and pow(math.factorial(_ROUGH), n.bit_length(), n) != 0:
        taps = _hilbert_taps(n).astype(x.dtype)
        return general.convolve(x, taps.reshape((1,) * (x.ndim - 1) + taps.shape), {x.ndim - 1: (n - 1, n, 1)})
    spectrum = fft.rfft(x)
    spectrum *= -1j
    spectrum[..., 0] = 0
    if n % 2 == 0:
        spectrum[..., -1] = 0
    return fft.irfft(spectrum, n, overwrite_x=True)


@tensors.returned
def hilbert(x, N=None, axis=-1):
    """
    Compute the analytic signals of real signals: their Hilbert transforms are the imaginary parts.

    Parameters, result and errors are those of `scipy.signal.hilbert`; the real part is exactly `x`. A length with a prime
    factor above 61 is computed as a convolution.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import signal
    >>> np.abs(signal.hilbert(np.cos(np.arange(8) * np.pi / 4))).round(6)
    array([1., 1., 1., 1., 1., 1., 1., 1.])
    """
    x = np.asarray(x)
    if x.dtype.kind not in "biuf" or not x.size or not _are_axes(x, axis) or (N is not None and not _sizes(N)):
        return scipy_answers("hilbert", _OTHERS, x, N, axis, error=ImportError)
    rows = np.moveaxis(x, axis, -1).astype(dtypes.transform_type(x.dtype), copy=False)
    n = rows.shape[-1] if N is None else int(N)
    if n > rows.shape[-1]:
        rows = np.pad(rows, [(0, 0)] * (x.ndim - 1) + [(0, n - rows.shape[-1])])
    rows = np.ascontiguousarray(rows[..., :n])
    y = np.empty(rows.shape, np.result_type(rows, np.complex64))
    flat, rows = y.reshape(-1, n), rows.reshape(-1, n)
    step = max(1, _PIECE // n)
    for first in range(0, len(flat), step):
        part = slice(first, first + step)
        flat[part].real, flat[part].imag = rows[part], _hilbert_transform(rows[part])
    return np.ascontiguousarray(np.moveaxis(y, -1, axis))


@remembered
def _named_window(window, n):
    import scipy.signal

    return scipy.signal.get_window(window, n)


def _window(window, n):
    """The window of n samples as an array; None if SciPy shall answer."""
    if isinstance(window, (str, tuple)):
        return _named_window(window, n)
    window = np.asarray(window)
    return window if window.shape == (n,) and window.dtype.kind in "biuf" else None


def _gain(window, fs):
    """What a scaling divides by: the sum of the window or, at a sample rate, the root of its energy times the rate."""
    return abs(window.sum()) if fs is None else np.sqrt(fs * (window**2).sum())


def _sizes(*values):
    """Whether all of the values are integers above 0."""
    return all(isinstance(v, (int, np.integer)) and v > 0 for v in values)


def _are_axes(x, *axes):
    """Whether the values are different axes of x."""
    return all(-x.ndim <= a < x.ndim for a in axes) and len({a % x.ndim for a in axes}) == len(axes)


@tensors.returned
def stft(x, fs=1.0, window="hann_periodic", nperseg=256, noverlap=None, nfft=None, detrend=False, return_onesided=True,
         boundary="zeros", padded=True, axis=-1, scaling="spectrum"):
    """
    Compute the short-time Fourier transforms of signals.

    Parameters, results and errors are those of `scipy.signal.stft`. Samples of f32 are transformed in f32. SciPy removes
    trends (`detrend`), and computes what it warns of.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import signal
    >>> f, t, spectra = signal.stft(np.cos(np.arange(4096) * np.pi / 2), nperseg=64)
    >>> spectra.shape, float(f[np.abs(spectra[:, 9]).argmax()])
    ((33, 129), 0.25)
    """
    import scipy.fft as fft

    given = (x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, boundary, padded, axis, scaling)
    x, answer = np.asarray(x), None
    if (x.dtype.char in _TYPES and x.size and _are_axes(x, axis) and not (return_onesided and x.dtype.kind == "c")
            and _sizes(nperseg) and nperseg <= x.shape[axis] and not detrend and scaling in _SCALINGS and fs > 0):
        step = nperseg - (nperseg // 2 if noverlap is None else noverlap)
        points = nperseg if nfft is None else nfft
        if (_sizes(step, points) and step <= nperseg <= points and boundary in _PADDINGS
                and (boundary is None or nperseg // 2 < x.shape[axis])):
            answer = _stft(np.moveaxis(x, axis, -1), window, (nperseg, step, points), (boundary, padded),
                           fs if scaling == "psd" else None, return_onesided)
    if answer is None:
        return scipy_answers("stft", _OTHERS, *given, error=ImportError)
    spectra, n = answer
    frequencies = fft.rfftfreq(points, 1 / fs) if return_onesided else fft.fftfreq(points, 1 / fs)
    times = np.arange(nperseg / 2, n - nperseg / 2 + 1, step) / float(fs) - (nperseg / 2 / fs if boundary else 0)
    return frequencies, times, np.moveaxis(spectra, -1, axis - 1 if axis < 0 else axis)


def _stft(x, window, sizes, extension, fs, onesided):
    """Spectra [..., segments, frequencies] of signals of the last axis, and their length with what extends them.

    None if SciPy answers. `fs`: the sample rate if spectra are scaled by it.
    """
    import scipy.fft as fft

    segment, step, points = sizes
    boundary, padded = extension
    window = _window(window, segment)
    if window is None or not _gain(window, fs):
        return None
    half = segment // 2 if boundary else 0
    length = x.shape[-1] + 2 * half
    n = length + (-(length - segment) % step if padded else 0)
    signal = np.zeros(x.shape[:-1] + (n,), np.result_type(x, np.float32))
    if boundary in (None, "zeros"):
        signal[..., half:half + x.shape[-1]] = x
    else:
        signal[..., :length] = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(half, half)], **_PADDINGS[boundary])
    segments = np.lib.stride_tricks.sliding_window_view(signal, segment, axis=-1)[..., ::step, :]
    window = (window / _gain(window, fs)).astype(signal.real.dtype)
    transform, bins = (fft.rfft, points // 2 + 1) if onesided else (fft.fft, points)
    spectra = np.empty(segments.shape[:-1] + (bins,), np.result_type(signal, np.complex64))
    at_once = max(1, _PIECE // (points * (signal.size // n)))
    for first in range(0, segments.shape[-2], at_once):
        part = slice(first, first + at_once)
        spectra[..., part, :] = transform(segments[..., part, :] * window, points)
    return spectra, n


@tensors.returned
def istft(Zxx, fs=1.0, window="hann_periodic", nperseg=None, noverlap=None, nfft=None, input_onesided=True, boundary=True,
          time_axis=-1, freq_axis=-2, scaling="spectrum"):
    """
    Compute signals from their short-time Fourier transforms.

    Parameters, results, warnings and errors are those of `scipy.signal.istft`.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import signal
    >>> x = np.arange(1000.0)
    >>> t, y = signal.istft(signal.stft(x)[2])
    >>> bool(np.allclose(y[:1000], x))
    True
    """
    given = (Zxx, fs, window, nperseg, noverlap, nfft, input_onesided, boundary, time_axis, freq_axis, scaling)
    spectra, n, y = np.asarray(Zxx), nperseg, None
    if spectra.dtype.char in _TYPES and spectra.size and spectra.ndim > 1 and _are_axes(spectra, time_axis, freq_axis):
        spectra = np.moveaxis(spectra, (time_axis, freq_axis), (-2, -1))
        points = 2 * (spectra.shape[-1] - 1) if input_onesided else spectra.shape[-1]
        n = points if nperseg is None else nperseg
        if nfft is not None or (input_onesided and n == points + 1):
            points = n if nfft is None else nfft
        if _sizes(n, points) and n <= points and scaling in _SCALINGS and fs > 0:
            step = n - (n // 2 if noverlap is None else noverlap)
            y = _istft(spectra, (n, step, points), window, input_onesided, fs if scaling == "psd" else None)
    if y is None:
        return scipy_answers("istft", _OTHERS, *given, error=ImportError)
    y, norm = y
    if boundary:
        y, norm = y[..., n // 2:-(n // 2)], norm[n // 2:-(n // 2)]
    small = ~(norm > 1e-10)
    if small.any():
        warnings.warn("NOLA condition failed, STFT may not be invertible."
                      + (" Possibly due to missing boundary" if not boundary else ""), stacklevel=3)
    y /= np.where(small, 1, norm)
    time_axis, freq_axis = (a % spectra.ndim for a in (time_axis, freq_axis))
    y = np.moveaxis(y, -1, time_axis - (freq_axis < time_axis))
    return np.arange(y.shape[0]) / float(fs), y


def _istft(spectra, sizes, window, onesided, fs):
    """Sums of windowed segments and of squared windows, from spectra [..., segments, frequencies]; None if SciPy answers."""
    import scipy.fft as fft

    segment, step, points = sizes
    window = _window(window, segment) if _sizes(step) else None
    if window is None:
        return None
    dtype = np.result_type(spectra, np.complex64)
    window = window.astype(dtype.type(0).real.dtype)
    scaled = window * (window.sum() if fs is None else _gain(window, fs))
    n, overlapping = spectra.shape[-2], -(-segment // step)
    y = np.zeros(spectra.shape[:-2] + (n + overlapping - 1, step), window.dtype if onesided else dtype)
    norm = np.zeros((n + overlapping - 1, step), window.dtype)
    starts = range(0, segment, step)
    for k, first in enumerate(starts):
        part = window[first:first + step]**2
        norm[k:k + n, :part.size] += part
    transform = fft.irfft if onesided else fft.ifft
    at_once = max(1, _PIECE // (points * (spectra.size // (n * spectra.shape[-1]))))
    for begin in range(0, n, at_once):
        segments = transform(spectra[..., begin:begin + at_once, :], points)[..., :segment] * scaled
        for k, first in enumerate(starts):
            part = segments[..., first:first + step]
            y[..., begin + k:begin + k + part.shape[-2], :part.shape[-1]] += part
    size = segment + (n - 1) * step
    return y.reshape(y.shape[:-2] + (-1,))[..., :size], norm.reshape(-1)[:size]

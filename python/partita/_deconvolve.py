# SPDX-License-Identifier: MIT
"""Deconvolution: the impulse response of what lies between a signal that was played and its recording."""
import numpy as np

from partita._errors import check
from partita._partita import ffi, lib


def deconvolve(recording, signal):
    """
    Estimate the impulse response between a signal that was played, usually a sweep, and its recording.

    The spectrum of the recording is divided by that of the signal; where the signal is 60 dB below its strongest
    frequency the response goes to 0, as division would amplify noise. The response of a path of gain 1 to a signal of
    limited band has a peak below 1, that of ``deconvolve(signal, signal)``.

    Parameters
    ----------
    recording : array_like
        Real samples, [frames] or [channels, frames].
    signal : array_like
        Real samples, [frames].

    Returns
    -------
    numpy.ndarray
        Responses of type float64 and the shape of `recording`. The first frame is that of a path without delay between
        a recording and a signal that begin together.

    Examples
    --------
    >>> import numpy as np
    >>> import partita
    >>> noise = np.random.default_rng(1).standard_normal(4000)
    >>> response = partita.deconvolve(np.convolve(noise, [0, 1, 0.25]), noise)
    >>> bool(np.abs(response[:4] - [0, 1, 0.25, 0]).max() < 0.01)
    True
    """
    arrays = {"recording": recording, "signal": signal}
    for name, array in arrays.items():
        array = np.asarray(array)
        if array.dtype.kind not in "fiub" or array.size == 0:
            raise ValueError(f"{name}: needs real samples, not {array.size} of type {array.dtype}")
        arrays[name] = np.ascontiguousarray(array, np.float64)
        if not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name}: has samples that are infinite or NaN")
    recording, signal = arrays["recording"], arrays["signal"]
    if signal.ndim != 1 or recording.ndim not in (1, 2):
        raise ValueError(f"signal has 1 axis, and recording has 1 or 2, not {signal.ndim} and {recording.ndim}")
    result = np.empty_like(recording)
    frames = recording.shape[-1]
    for row, out in zip(recording.reshape(-1, frames), result.reshape(-1, frames)):
        check(lib.partita_deconvolve(ffi.from_buffer("double[]", out), ffi.from_buffer("double[]", row), frames,
                                     ffi.from_buffer("double[]", signal), len(signal), ffi.NULL), "deconvolve")
    return result

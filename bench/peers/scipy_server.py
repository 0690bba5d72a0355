#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The process of scipy.c: loads the samples and answers each line on stdin with one number on stdout.

load: reads x and h, answers 0; run: seconds of one call; run-many: seconds of one call of a thousand; write: writes the last result into the folder, answers 0;
bytes: growth of the peak resident memory since loading.
"""
import sys
import time

import numpy as np
import scipy.fft
import scipy.signal

TYPES = {"f32": np.float32, "f64": np.float64, "cf32": np.complex64, "cf64": np.complex128}


def peak_bytes():
    # Not ru_maxrss, which includes the memory of the parent when it forked.
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) * 1024


def rfft_sequences(direction, shape, filters):
    """Causal sequences x[batch, channel, :] with one filter for each channel, transformed once. Layers correlate, so the
    taps are reversed. Channel by channel is fastest here: the sequences of a channel share vectors and fit the cache."""
    batch, channels, length = shape
    n = scipy.fft.next_fast_len(2 * length - 1, True)
    spectra = scipy.fft.rfft(filters.reshape(-1, length)[:channels, ::-1], n)

    def run(x, h):
        x = x.reshape(shape)
        if direction == "backward-weight":
            gy, y = h.reshape(shape), np.empty((channels, length), x.dtype)
            for c in range(channels):
                product = scipy.fft.rfft(gy[:, c], n) * scipy.fft.rfft(x[:, c], n).conj()
                y[c] = scipy.fft.irfft(product.sum(axis=0), n)[length - 1::-1]
            return y
        y = np.empty_like(x)
        for c in range(channels):
            product = scipy.fft.rfft(x[:, c], n)
            product *= spectra[c] if direction == "forward" else spectra[c].conj()
            y[:, c] = scipy.fft.irfft(product, n, overwrite_x=True)[:, :length]
        return y

    return run


def main():
    function, folder, signal, taps, lags = sys.argv[1:]
    convolve = np.convolve if function == "numpy-convolve" else getattr(scipy.signal, function, None)
    if function == "correlate":  # computes all lags and returns these

        def convolve(x, h, lags=int(lags)):
            full = scipy.signal.correlate(x, h, method="fft")
            return full[len(h) - 1 - lags:len(h) + lags].copy()

    x = h = y = None
    loaded = 0
    for line in sys.stdin:
        command, answer = line.strip(), 0
        if command == "load":
            x = np.fromfile(folder + "/x", TYPES[signal])
            h = np.fromfile(folder + "/h", TYPES[taps])
            loaded = peak_bytes()
            if function.startswith("rfft-"):
                convolve = rfft_sequences(function[5:], [int(n) for n in lags.split("x")], h)
        elif command == "run":
            y = None
            start = time.perf_counter()
            y = convolve(x, h)
            answer = time.perf_counter() - start
        elif command == "run-many":
            start = time.perf_counter()
            for _ in range(1000):
                y = convolve(x, h)
            answer = (time.perf_counter() - start) / 1000
        elif command == "write":
            assert y.dtype == x.dtype, "the result has another type than the signal"
            y.tofile(folder + "/y")
        elif command == "bytes":
            answer = peak_bytes() - loaded
        print(answer, flush=True)


main()

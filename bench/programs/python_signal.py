#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""partita.signal beside NumPy and SciPy in one process, from arrays as users have them, and calls of Stream.process
beside the library's own time in them. Prints rows as the other benchmarks do: medians of interleaved repetitions. An
item is a sample of the signal, in the cases python-small-..., python-call-... and python-stream-... a call. Answers are
checked before they are timed, against sums or SciPy's results in double precision, in part or (python-call-...) whole.

    bench/programs/python_signal.py [--quick] [--case PATTERN]      (with the package installed)

SciPy uses one thread. `c-call` is the time that the library measures in the calls of Stream.process itself."""
import argparse
import fnmatch
import os
import sys
import tempfile
import time

import numpy as np
import rows
import scipy.fft
import scipy.ndimage
import scipy.signal

import partita
from partita import ndimage, signal

LONG, LAGS = 10_000_000, 1000
RANDOM = np.random.default_rng(1)


def noise(n, dtype):
    x = RANDOM.standard_normal(n)
    return (x + 1j * RANDOM.standard_normal(n)).astype(dtype) if np.dtype(dtype).kind == "c" else x.astype(dtype)


def error_of(got, expected):
    """Relative L2 distance."""
    return float(np.linalg.norm(got - expected) / np.linalg.norm(expected))


class Case:
    """Operands, contenders (name, threads, function of both operands) and a check of their results."""

    def __init__(self, x, h, contenders, check, calls=1, items=None, shares=None):
        self.x, self.h, self.contenders, self.check = x, h, contenders, check
        self.calls, self.items = calls, items or len(x)
        self.shares = shares or {}  # of the items, of contenders that compute only some of them


def ours(threads, function=signal.convolve, **kwargs):
    return "partita", threads, lambda x, h: function(x, h, threads=threads, **kwargs)


def check_convolution(x, h):
    """The error of three stretches of a whole convolution, summed in double precision."""

    def check(y):
        errors, wide = [], complex if y.dtype.kind == "c" else float
        for first in (0, len(x) // 2, max(0, len(y) - 500)):
            begin, end = first - len(h) + 1, first + 500
            stretch = np.zeros(end - begin, wide)
            inside = slice(max(begin, 0), min(end, len(x)))
            stretch[inside.start - begin:inside.stop - begin] = x[inside]
            expected = np.convolve(stretch, h.astype(wide), "valid")[:len(y) - first]
            errors.append(error_of(y[first:end], expected))
        return max(errors)

    return check


def long_case(taps, dtype, taps_type, n, threads):
    x, h = noise(n, dtype), noise(taps, taps_type)
    contenders = [ours(t) for t in threads]
    contenders.append(("scipy-oaconvolve", 1, scipy.signal.oaconvolve))
    return Case(x, h, contenders, check_convolution(x, h))


def small_case(n, m, dtype, calls):
    x, h = noise(n, dtype), noise(m, dtype)
    contenders = [("partita", 1, signal.convolve), ("numpy-convolve", 1, np.convolve),
                  ("scipy-convolve", 1, scipy.signal.convolve)]
    return Case(x, h, contenders, check_convolution(x, h), calls, 1)


def lags_case(n, threads):
    x, h = noise(n, "float32"), noise(n, "float32")
    contenders = [ours(t, signal.correlate, lags=(-LAGS, LAGS + 1)) for t in threads]
    contenders.append(("scipy-correlate", 1,
                       lambda x, h: scipy.signal.correlate(x, h, method="fft")[n - 1 - LAGS:n + LAGS].copy()))

    def check(y):
        wide_x, wide_h = x.astype(float), h.astype(float)
        lags = np.array([-LAGS, -1, 0, LAGS])
        sums = [wide_x[max(lag, 0):n + min(lag, 0)] @ wide_h[max(-lag, 0):n - max(lag, 0)] for lag in lags]
        return error_of(y[lags + LAGS], np.array(sums))

    return Case(x, h, contenders, check)


def pairs_case(signals, n, threads):
    """All pairs of signals in a file; NumPy computes 4 of them, and its time for all is in proportion."""
    chosen, size = [(0, 0), (0, 1), (0, 2), (0, 3)], scipy.fft.next_fast_len(n + LAGS, real=True)
    file = tempfile.TemporaryFile()
    x = np.memmap(file, np.float32, "w+", shape=(signals, n))
    for row in x:
        row[:] = noise(n, "float32")

    def transformed(x, _):
        result = []
        for i, j in chosen:
            y = np.fft.irfft(np.conj(np.fft.rfft(x[i], size)) * np.fft.rfft(x[j], size), size)
            result.append(np.concatenate([y[-LAGS:], y[:LAGS + 1]]))
        return np.array(result)

    def check(y):
        lags, wide = (-LAGS, -1, 0, LAGS), x[:4].astype(float)
        sums = [[wide[i][max(-lag, 0):n - max(lag, 0)] @ wide[j][max(lag, 0):n + min(lag, 0)] for lag in lags]
                for i, j in chosen]
        return max(error_of(row, np.array(expected)) for row, expected in zip(y[:4, [LAGS + lag for lag in lags]], sums))

    contenders = [("partita", t, lambda x, _, t=t: signal.correlate_pairs(x, LAGS, threads=t)) for t in threads]
    pairs = signals * (signals + 1) // 2
    return Case(x, None, contenders + [("numpy-rfft", 1, transformed)], check, 1, pairs * n, {"numpy-rfft": 4 / pairs})


def templates_case(count, length, n, threads):
    """Templates of three channels, normalised, peaks alone; SciPy searches 2, and its time for all is in proportion."""
    x = noise(3 * n, "float32").reshape(3, n)
    h = noise(count * 3 * length, "float32").reshape(count, 3, length)
    planted = range(0, count, max(count // 20, 1))
    for k in planted:
        x[:, k * (n // count) + length:][:, :length] += h[k]

    def scipy_search(x, h):
        found, totals = [], [np.cumsum(np.pad(row.astype(float), (1, 0))) for row in x]
        squares = [np.cumsum(np.pad(row.astype(float) ** 2, (1, 0))) for row in x]
        for k in (0, 1):
            stack = 0
            for c, template in enumerate(h[k]):
                template = template - template.mean()
                sums = scipy.signal.oaconvolve(x[c], template[::-1], "valid")
                total, square = totals[c][length:] - totals[c][:-length], squares[c][length:] - squares[c][:-length]
                stack = stack + sums / np.sqrt(square - total**2 / length) / np.linalg.norm(template) / 3
            size = np.abs(stack)
            at = scipy.signal.find_peaks(size, 8 * np.median(size), distance=length)[0]
            found += [(k, time, stack[time]) for time in at]
        return np.array(found, [("template", int), ("time", int), ("value", float)])

    def check(found):
        """Of template 0, the only one that both search and that is in the signal."""
        windows, template = x[:, length:2 * length].astype(float), h[0].astype(float)
        windows, template = windows - windows.mean(1, keepdims=True), template - template.mean(1, keepdims=True)
        norms = np.linalg.norm(windows, axis=1) * np.linalg.norm(template, axis=1)
        values = found["value"][(found["template"] == 0) & (found["time"] == length)]
        return abs(values[0] - ((windows * template).sum(1) / norms).mean()) if len(values) == 1 else 1

    contenders = [("partita", t, lambda x, h, t=t: signal.match_templates(x, h, mad=8, threads=t)) for t in threads]
    return Case(x, h, contenders + [("scipy-oaconvolve", 1, scipy_search)], check, 1, 3 * n * count,
                {"scipy-oaconvolve": 2 / count})


def lfilter_case(channels, n, taps):
    x, h = noise(channels * n, "complex64").reshape(channels, n), noise(taps, "float32")
    contenders = [("partita", os.cpu_count(), lambda x, h: signal.lfilter(h, np.float32(1), x)),
                  ("scipy-lfilter", 1, lambda x, h: scipy.signal.lfilter(h, np.float32(1), x))]

    def check(y):
        return max(error_of(y[c][:2000], np.convolve(x[c][:2000].astype(complex), h.astype(float))[:2000])
                   for c in (0, channels - 1))

    return Case(x, h, contenders, check, 1, n * channels)


def image_case(n, m, threads):
    x, h = noise(n * n, "float32").reshape(n, n), noise(m * m, "float32").reshape(m, m)
    contenders = [ours(t, mode="same") for t in threads]
    contenders.append(("scipy-oaconvolve", 1, lambda x, h: scipy.signal.oaconvolve(x, h, "same")))
    expected = scipy.signal.fftconvolve(x[:4 * m, :4 * m].astype(float), h.astype(float), "same")[:2 * m, :2 * m]
    return Case(x, h, contenders, lambda y: error_of(y[:2 * m, :2 * m], expected), 1, n * n)


def call_cases():
    """Calls as users of SciPy make them: a name, the module, the name of the function in it, and the arguments."""
    audio, record = noise(480_000, "float32"), noise(1_000_000, "float64")
    image, photo = noise(2**20, "float32").reshape(1024, 1024), RANDOM.integers(0, 256, (1024, 1024), np.uint8)
    volume, kernel = noise(2**21, "float32").reshape(128, 128, 128), noise(225, "float32").reshape(15, 15)
    lowpass, spectrum = scipy.signal.firwin(129, 0.2).astype("float32"), scipy.signal.stft(record, nperseg=1024)[2]
    yield from (
        ("lfilter", signal, "lfilter", (lowpass, np.float32(1), audio), {}),
        ("filtfilt", signal, "filtfilt", (lowpass, np.float32(1), audio), {}),
        ("resample-160-147", signal, "resample_poly", (audio, 160, 147), {}),
        ("resample-1-3", signal, "resample_poly", (audio, 1, 3), {}),
        ("decimate-8", signal, "decimate", (record, 8), {"ftype": "fir"}),
        ("savgol", signal, "savgol_filter", (record, 51, 3), {}),
        ("hilbert", signal, "hilbert", (record,), {}),
        ("stft-f32", signal, "stft", (audio,), {"nperseg": 1024}),
        ("stft-f64", signal, "stft", (record,), {"nperseg": 1024}),
        ("istft", signal, "istft", (spectrum,), {"nperseg": 1024}),
        ("gaussian-f32", ndimage, "gaussian_filter", (image, 3), {}),
        ("gaussian-uint8", ndimage, "gaussian_filter", (photo, 3), {}),
        ("gaussian-volume", ndimage, "gaussian_filter", (volume, 2), {}),
        ("uniform", ndimage, "uniform_filter", (image, 9), {}),
        ("sobel", ndimage, "sobel", (image,), {}),
        ("laplace", ndimage, "gaussian_laplace", (image, 2), {}),
        ("gradient", ndimage, "gaussian_gradient_magnitude", (image, 2), {}),
        ("image-15", ndimage, "convolve", (image, kernel), {"mode": "mirror"}),
        ("image-3", ndimage, "correlate", (image, kernel[:3, :3]), {}),
        ("lines", ndimage, "convolve1d", (image, kernel.ravel()[:65], 0), {}))


def call_case(module, function, arguments, keywords):
    ours, scipys = getattr(module, function), getattr(getattr(scipy, module.__name__.rpartition(".")[2]), function)

    def wide(a):
        return a.astype(float) if isinstance(a, np.ndarray) and a.dtype == np.float32 else a

    def last(result):
        return result[-1] if isinstance(result, tuple) else result

    expected = last(scipys(*map(wide, arguments), **keywords)).astype(complex)
    contenders = [("partita", 1, lambda *_: ours(*arguments, **keywords)),
                  ("scipy", 1, lambda *_: scipys(*arguments, **keywords))]
    return Case(arguments[0], None, contenders, lambda y: error_of(last(y), expected), 1, 1)


def array_cases(quick):
    """Names of cases, and what makes them."""
    threads = sorted({1, os.cpu_count()})
    n, label = (LONG // 16, "625k") if quick else (LONG, "10M")
    power = 20 if quick else 24
    for taps in (1024, 65536):
        yield f"python-long-{label}-x-{taps}", lambda t=taps: long_case(t, "float32", "float32", n, threads)
    yield f"python-long-cf32-{label}-x-1024", lambda: long_case(1024, "complex64", "float32", n, threads)
    for size in ((10, 3), (64, 64), (1000, 32)):
        for kind, dtype in (("f64", "float64"), ("f32", "float32"), ("cf32", "complex64")):
            yield (f"python-small-{kind}-{size[0]}-x-{size[1]}",
                   lambda s=size, d=dtype: small_case(*s, d, 200 if quick else 2000))
    yield f"python-lags-1000-of-2p{power}", lambda: lags_case(2**power, threads)
    yield (f"python-pairs-1000-of-{64 if quick else 256}-x-2p{16 if quick else 22}",
           lambda: pairs_case(64 if quick else 256, 2**16 if quick else 2**22, threads))
    yield (f"python-templates-600-x-{20 if quick else 100}-of-3-x-{100_000 if quick else 8_640_000}",
           lambda: templates_case(20 if quick else 100, 600, 100_000 if quick else 8_640_000, threads))
    yield "python-lfilter-16-channels-t64", lambda: lfilter_case(16, 2**14 if quick else 2**17, 64)
    yield "python-image-512-x-15", lambda: image_case(512, 15, threads)
    if not quick:
        yield "python-image-2048-x-63", lambda: image_case(2048, 63, threads)
    partita.set_threads(1)  # for all calls from here on: SciPy's functions have one thread
    for name, *described in call_cases():
        yield f"python-call-{name}", lambda described=described: call_case(*described)


def check_error(case, contender, error, dtype):
    """Answers that are wrong are not timed."""
    if not error <= (1e-5 if dtype in (np.float32, np.complex64) else 1e-12):
        sys.exit(f"{case}, {contender}: error {error:.3g}")


def measure(name, case, repetitions):
    """Prints the rows of a case."""
    errors, functions = {}, {}
    for contender, threads, function in case.contenders:
        key = contender, threads
        errors[key] = case.check(function(case.x, case.h))
        check_error(name, contender, errors[key], case.x.dtype)
        functions[key] = lambda function=function: function(case.x, case.h)
    for key, times in rows.interleaved(functions, repetitions, calls=case.calls).items():
        items = case.items * case.shares.get(key[0], 1)
        rows.print_row(name, *key, [seconds / items for seconds in times], errors[key])


def measure_stream(name, quick):
    """Prints the times of Stream.process and of the library's call in it, of the same calls."""
    frames, n_taps = 64, 48_000
    taps, x = noise(n_taps, "float32"), noise(frames * 1000, "float32")
    stream = partita.Stream(taps, block=frames, sample_rate=48_000)
    y = np.concatenate([stream.process(chunk) for chunk in x.reshape(-1, frames)])
    error = error_of(y, scipy.signal.fftconvolve(x.astype(float), taps.astype(float))[:len(x)])
    check_error(name, "partita", error, x.dtype)
    chunk, out = x[:frames], np.empty(frames, np.float32)
    whole, within = [], []
    for _ in range(3 if quick else 21):
        before, begin = stream.stats(), time.perf_counter()
        for _ in range(3000):  # several periods of the largest partitions
            stream.process(chunk, out=out)
        seconds, after = time.perf_counter() - begin, stream.stats()
        calls = after.calls - before.calls
        whole.append(seconds / calls)
        within.append((after.mean * after.calls - before.mean * before.calls) / calls)
    rows.print_row(name, "partita", 1, whole, error)
    rows.print_row(name, "c-call", 1, within, error)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--case", default="*")
    options = parser.parse_args()
    print(f"# load {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores, SciPy {scipy.__version__}, NumPy {np.__version__}",
          file=sys.stderr)
    print(rows.HEADER)
    for name, make in array_cases(options.quick):
        if fnmatch.fnmatch(name, options.case):
            measure(name, make(), 3 if options.quick else 7)
    name = "python-stream-b64-t48000"
    if fnmatch.fnmatch(name, options.case):
        measure_stream(name, options.quick)


main()

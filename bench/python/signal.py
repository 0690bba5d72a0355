#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""partita.signal beside NumPy and SciPy in one process, from arrays as users have them. Prints rows as the other
benchmarks do: medians of interleaved repetitions. An item is a sample of the signal, in the cases small-... a call.
Answers are checked before they are timed, against sums or SciPy's results in double precision at some indices.

    bench/python/signal.py [--quick] [--case PATTERN]      (with the package on PYTHONPATH or installed)

Contenders with a number behind a colon use so many threads; SciPy uses one."""
import argparse
import fnmatch
import os
import statistics
import sys
import time

sys.path = [p for p in sys.path if p != os.path.dirname(os.path.abspath(__file__))]  # this file is not the module signal
import numpy as np  # noqa: E402
import scipy.signal  # noqa: E402

from partita import signal  # noqa: E402

LONG, LAGS = 10_000_000, 1000
RANDOM = np.random.default_rng(1)


def noise(n, dtype):
    x = RANDOM.standard_normal(n)
    return (x + 1j * RANDOM.standard_normal(n)).astype(dtype) if np.dtype(dtype).kind == "c" else x.astype(dtype)


def error_of(got, expected):
    """Relative L2 distance."""
    return float(np.linalg.norm(got - expected) / np.linalg.norm(expected))


class Case:
    """A name, operands, contenders (name, threads, function of both operands) and a check of their results."""

    def __init__(self, name, x, h, contenders, check, calls=1, items=None):
        self.name, self.x, self.h, self.contenders, self.check = name, x, h, contenders, check
        self.calls, self.items = calls, items or len(x)

    def seconds(self, function):
        begin = time.perf_counter()
        for _ in range(self.calls):
            function(self.x, self.h)
        return (time.perf_counter() - begin) / self.calls


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


def long_case(name, taps, dtype, taps_type, n, threads):
    x, h = noise(n, dtype), noise(taps, taps_type)
    contenders = [ours(t) for t in threads]
    contenders.append(("scipy-oaconvolve", 1, scipy.signal.oaconvolve))
    return Case(name, x, h, contenders, check_convolution(x, h))


def small_case(n, m, dtype, calls):
    x, h = noise(n, dtype), noise(m, dtype)
    name = {"float32": "f32", "float64": "f64", "complex64": "cf32"}[dtype]
    contenders = [("partita", 1, signal.convolve), ("numpy-convolve", 1, np.convolve),
                  ("scipy-convolve", 1, scipy.signal.convolve)]
    return Case(f"python-small-{name}-{n}-x-{m}", x, h, contenders, check_convolution(x, h), calls, 1)


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

    return Case(f"python-lags-1000-of-2p{n.bit_length() - 1}", x, h, contenders, check)


def lfilter_case(channels, n, taps):
    x, h = noise(channels * n, "complex64").reshape(channels, n), noise(taps, "float32")
    contenders = [("partita", os.cpu_count(), lambda x, h: signal.lfilter(h, np.float32(1), x)),
                  ("scipy-lfilter", 1, lambda x, h: scipy.signal.lfilter(h, np.float32(1), x))]

    def check(y):
        return max(error_of(y[c][:2000], np.convolve(x[c][:2000].astype(complex), h.astype(float))[:2000])
                   for c in (0, channels - 1))

    return Case(f"python-lfilter-{channels}-channels-t{taps}", x, h, contenders, check, 1, n * channels)


def image_case(n, m, threads):
    x, h = noise(n * n, "float32").reshape(n, n), noise(m * m, "float32").reshape(m, m)
    contenders = [ours(t, mode="same") for t in threads]
    contenders.append(("scipy-oaconvolve", 1, lambda x, h: scipy.signal.oaconvolve(x, h, "same")))
    expected = scipy.signal.fftconvolve(x[:4 * m, :4 * m].astype(float), h.astype(float), "same")[:2 * m, :2 * m]
    return Case(f"python-image-{n}-x-{m}", x, h, contenders, lambda y: error_of(y[:2 * m, :2 * m], expected), 1, n * n)


def cases(quick):
    threads = sorted({1, os.cpu_count()})
    n = LONG // 16 if quick else LONG
    calls = 200 if quick else 2000
    for taps in (1024, 65536):
        yield f"python-long-{n}-x-{taps}", lambda name, t=taps: long_case(name, t, "float32", "float32", n, threads)
    yield f"python-long-cf32-{n}-x-1024", lambda name: long_case(name, 1024, "complex64", "float32", n, threads)
    for size in ((10, 3), (64, 64), (1000, 32)):
        for dtype in ("float64", "float32", "complex64"):
            yield "python-small", lambda name, s=size, d=dtype: small_case(*s, d, calls)
    yield "python-lags", lambda name: lags_case(2**20 if quick else 2**24, threads)
    yield "python-lfilter", lambda name: lfilter_case(16, 2**14 if quick else 2**17, 64)
    for size in ((512, 15), (2048, 63)):
        if not quick or size[0] < 1000:
            yield "python-image", lambda name, s=size: image_case(*s, threads)


def measure(case, repetitions):
    """Prints the rows of a case, contender by contender; answers that are wrong are not timed."""
    limit = 1e-5 if case.x.dtype in (np.float32, np.complex64) else 1e-12
    times, errors = {}, {}
    for name, threads, function in case.contenders:
        errors[name, threads] = case.check(function(case.x, case.h))
        if errors[name, threads] > limit:
            sys.exit(f"{case.name}, {name}: error {errors[name, threads]:.3g}")
        times[name, threads] = []
    for _ in range(repetitions):
        for name, threads, function in case.contenders:
            times[name, threads].append(case.seconds(function))
    for (name, threads), runs in times.items():
        median = statistics.median(runs)
        print(f"{case.name},{name},{threads},{median * 1e9 / case.items:.5g},{(max(runs) - min(runs)) / median:.3f},,,"
              f"{errors[name, threads]:.3g}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--case", default="*")
    options = parser.parse_args()
    print(f"# load {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores, SciPy {scipy.__version__}, NumPy {np.__version__}",
          file=sys.stderr)
    print("case,contender,threads,ns_per_item,spread,p999_over_mean,bytes,check")
    for name, make in cases(options.quick):
        if fnmatch.fnmatch(name, options.case):
            measure(make(name), 3 if options.quick else 7)


main()

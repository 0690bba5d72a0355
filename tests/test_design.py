#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# Compares designed taps with SciPy's firwin and remez, with the zeros that numpy.roots finds, and with numerical
# integrals of the wanted responses. Usage: test_design.py LIBPARTITA
import ctypes
import sys

import numpy as np
import scipy.signal

KINDS = ["low pass", "high pass", "band pass", "band stop", "hilbert", "differentiator", "raised cosine",
         "root raised cosine", "table"]
KAISER, EQUIRIPPLE = 0, 1
LOG = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


class Point(ctypes.Structure):
    _fields_ = [("frequency", ctypes.c_double), ("decibels", ctypes.c_double)]


class Design(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("method", ctypes.c_int), ("rate", ctypes.c_double),
                ("cutoff", ctypes.c_double * 2), ("width", ctypes.c_double), ("attenuation", ctypes.c_double),
                ("ripple", ctypes.c_double), ("taps", ctypes.c_size_t), ("table", ctypes.POINTER(Point)),
                ("table_count", ctypes.c_size_t), ("log", ctypes.c_void_p * 2), ("allocator", ctypes.c_void_p * 3),
                ("minimum_phase", ctypes.c_bool), ("reserved", ctypes.c_bool * 7)]


class Result(ctypes.Structure):
    _fields_ = [(name, ctypes.c_double) for name in ("ripple", "attenuation", "delay", "width")]


library = ctypes.CDLL(sys.argv[1])
n_done = n_failed = 0


def report(name, good, detail=""):
    global n_done, n_failed
    n_done += 1
    n_failed += not good
    print("ok" if good else "not ok", n_done, "-", name, "" if good else f"# {detail}")


def design(kind, cutoff=(), table=(), **fields):
    """Taps, or None."""
    points = (Point * len(table))(*table) if table else None
    d = Design(kind=KINDS.index(kind), cutoff=(ctypes.c_double * 2)(*cutoff), table=points, table_count=len(table),
               **fields)
    n = ctypes.c_size_t()
    if library.partita_design_taps_count_sized(ctypes.byref(d), ctypes.c_size_t(ctypes.sizeof(d)), ctypes.byref(n)):
        return None
    taps = np.empty(n.value)
    if library.partita_design_taps_sized(ctypes.byref(d), ctypes.c_size_t(ctypes.sizeof(d)),
                                         taps.ctypes.data_as(ctypes.c_void_p), n):
        return None
    return taps


def response(taps, f):
    """Of symmetric or antisymmetric taps, without the linear phase."""
    t = np.arange(len(taps)) - (len(taps) - 1) / 2
    return np.exp(-2j * np.pi * np.outer(f, t)) @ taps


# Kaiser's window: the same formulas. Each tap is a few sines of arguments up to 100 times pi, whose rounding errors are
# 100 pi u, and SciPy's Bessel function has a relative error of a few u: 1e-13 of the largest tap is more than enough.
for kind, cutoff, pass_zero in (("low pass", (0.15,), True), ("high pass", (0.15,), False),
                                ("band pass", (0.1, 0.3), False), ("band stop", (0.1, 0.3), True)):
    for n, attenuation in ((31, 15), (51, 40), (201, 80), (64, 60)):
        if n % 2 == 0 and kind in ("high pass", "band stop"):
            continue
        got = design(kind, cutoff, taps=n, attenuation=attenuation, width=0.02)
        beta = scipy.signal.kaiser_beta(attenuation)
        expected = scipy.signal.firwin(n, np.array(cutoff) * 2, window=("kaiser", beta), pass_zero=pass_zero, scale=False)
        error = np.abs(got - expected).max()
        report(f"firwin/{kind}-{n}-{attenuation}", error <= 1e-13, error)

# The chosen number is SciPy's or less than a twentieth away from it.
for width, attenuation in ((0.1, 30), (0.02, 60), (0.01, 100)):
    n, _ = scipy.signal.kaiserord(attenuation, width * 2)
    got = len(design("low pass", (0.2,), width=width, attenuation=attenuation))
    report(f"kaiserord/{width}-{attenuation}", abs(got - n) <= max(4, n / 20), (got, n))


def weighted_error(taps, bands, gains, weights):
    """The largest weighted deviation, on a grid that is so dense that ripples lose less than 1e-3 of their height."""
    most = 0
    for k, weight in enumerate(weights):
        f = np.linspace(bands[2 * k], bands[2 * k + 1], 40 * len(taps))
        most = max(most, (weight * np.abs(np.abs(response(taps, f)) - gains[k])).max())
    return most


# The exchange: the largest weighted deviation is the smallest one there is. SciPy's remez finds the same, except that its
# extrema lie on a grid: of 32 points a ripple, and of fewer between two extrema that are close to each other beside a
# transition, which adds up to 1 %.
for kind, cutoff, n, edges, gains in (
        ("low pass", (0.15,), 51, (0, 0.13, 0.17, 0.5), (1, 0)),
        ("low pass", (0.15,), 64, (0, 0.13, 0.17, 0.5), (1, 0)),
        ("high pass", (0.15,), 75, (0, 0.13, 0.17, 0.5), (0, 1)),
        ("band pass", (0.1, 0.3), 81, (0, 0.08, 0.12, 0.28, 0.32, 0.5), (0, 1, 0)),
        ("band stop", (0.1, 0.3), 101, (0, 0.08, 0.12, 0.28, 0.32, 0.5), (1, 0, 1)),
        ("hilbert", (), 41, (0.04, 0.46), (1,)),
        ("low pass", (0.15,), 151, (0, 0.13, 0.17, 0.5), (1, 0))):
    ripple, attenuation = 0.5, 40
    got = design(kind, cutoff, taps=n, width=0.04, ripple=ripple, attenuation=attenuation, method=EQUIRIPPLE)
    weights = [1 / (1 - 10**(-ripple / 20)) if gain else 10**(attenuation / 20) for gain in gains]
    if kind == "hilbert":
        weights = [1]
    expected = scipy.signal.remez(n, edges, gains, weight=weights, maxiter=100, grid_density=32, fs=1,
                                  type="hilbert" if kind == "hilbert" else "bandpass")
    ours, theirs = (weighted_error(taps, edges, gains, weights) for taps in (got, expected))
    report(f"remez/{kind}-{n}-deviation", ours <= theirs * (1 + 1e-3) and theirs <= ours * 1.01, (ours, theirs))
    sign = np.sign(got[len(got) // 2 + 1] * expected[len(got) // 2 + 1]) if kind == "hilbert" else 1
    error = np.abs(got - sign * expected).max()
    report(f"remez/{kind}-{n}-taps", error <= 0.1 * theirs / min(weights), (error, theirs))

# Hilbert transformers and differentiators have the sign of their definition: sin is the transform of cos, and the
# derivative of sin is 2 pi f cos. Deviations are those of 80 dB.
t = np.arange(400)
middle = slice(250, 390)
for method in (KAISER, EQUIRIPPLE):
    h = design("hilbert", width=0.05, method=method)
    y = scipy.signal.lfilter(h, 1, np.cos(0.7 * t))
    late = (len(h) - 1) // 2
    report(f"sign/hilbert-{method}", np.abs(y - np.sin(0.7 * (t - late)))[middle].max() <= 2.1e-4)
    h = design("differentiator", (0.3,), width=0.1, attenuation=80, ripple=0.001, method=method)
    y = scipy.signal.lfilter(h, 1, np.sin(0.7 * t))
    late = (len(h) - 1) // 2
    report(f"sign/differentiator-{method}", np.abs(y - 0.7 * np.cos(0.7 * (t - late)))[middle].max() <= 4e-4)

# Pulses: the inverse transform of the wanted response, integrated numerically with 2^16 points, times the window. The
# trapezoidal rule aliases responses that fall as 1 / t^2 (root) and 1 / t^3 by 1 / 2^30 at most.
f = np.arange(2**16) / 2**16
f = np.minimum(f, 1 - f)


def integrated(wanted, n):
    whole = np.fft.irfft(wanted[:2**15 + 1])
    t = np.abs(np.arange(n) - n // 2)
    return whole[t]


for root in (False, True):
    for cutoff, width in ((0.125, 0.25), (0.125, 0.05), (0.25, 0.0625)):
        at = np.clip((f - cutoff + width / 2) / width, 0, 1)
        wanted = 0.5 + 0.5 * np.cos(np.pi * at)
        n = 161
        got = design("root raised cosine" if root else "raised cosine", (cutoff,), width=width, taps=n, attenuation=50)
        window = np.kaiser(n, scipy.signal.kaiser_beta(50))
        expected = integrated(np.sqrt(wanted) if root else wanted, n) * window
        error = np.abs(got - expected).max()
        report(f"pulse/{'root-' if root else ''}{cutoff}-{width}", error <= 2e-9, error)
h = design("raised cosine", (0.125,), width=0.0875)
zeros = np.delete(h[len(h) // 2 % 4::4], len(h) // 2 // 4)
report("pulse/zeros-at-symbols", np.abs(zeros).max() <= 1e-16, np.abs(zeros).max())

# A table. Both alias what details finer than the taps leave beyond 8 times their length: less than 1e-5 here.
table = ((0.01, 0), (0.05, -20), (0.2, 6))
n = 301
got = design("table", table=table, taps=n, attenuation=60, rate=1)
levels = np.interp(np.log(np.maximum(f, 1e-9)), np.log([p[0] for p in table]), [p[1] for p in table])
expected = integrated(10**(levels / 20), n) * np.kaiser(n, scipy.signal.kaiser_beta(60))
error = np.abs(got - expected).max()
report("table", error <= 1e-5 * np.abs(expected).max(), error)

# Minimum phase: numpy.roots finds no zero outside the unit circle, and the magnitude is that of linear phase, which
# together leave one response only.
for kind, cutoff, method in (("low pass", (0.15,), KAISER), ("low pass", (0.15,), EQUIRIPPLE),
                             ("band stop", (0.1, 0.3), KAISER)):
    n, fields = 31, dict(width=0.1, attenuation=40, method=method)
    linear = design(kind, cutoff, taps=n, **fields)
    got = design(kind, cutoff, taps=n, minimum_phase=True, **fields)
    zeros = np.roots(got)
    report(f"minimum-phase/{kind}-{method}-zeros", np.abs(zeros).max() < 1, np.abs(zeros).max())
    # |response|^2 is that of linear phase plus the square of the floor, 1/8 of the largest ripple of the stop band.
    f = np.linspace(0, 0.5, 999)
    power, before = np.abs(response(got, f))**2, np.abs(response(linear, f))**2
    floor = power - before
    report(f"minimum-phase/{kind}-{method}-magnitude", np.ptp(floor) <= 1e-12 and 0 < floor[0] <= (0.01 / 7)**2,
           (floor.min(), floor.max()))

print(f"1..{n_done}")
sys.exit(n_failed > 0)

#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# Compares the one-call helpers with SciPy: modes, conjugation and alignment of convolve and correlate, for n < m and
# n > m, with SciPy's direct and FFT methods. Usage: test_scipy.py LIBPARTITA
import ctypes
import itertools
import os
import sys

import numpy
import scipy.signal

TYPES = [numpy.float32, numpy.float64, numpy.complex64, numpy.complex128]
MODES = {"full": 0, "same": 1, "valid": 2}
RANGE = 3
F32 = 1  # the first of enum partita_type
SIZES = [(1, 1), (1, 4), (4, 1), (2, 3), (3, 2), (5, 5), (6, 6), (10, 4), (4, 10), (10, 5), (5, 10), (257, 64), (64, 257),
         (3000, 700), (700, 3000)]


class Slice(ctypes.Structure):
    _fields_ = [("mode", ctypes.c_int), ("first", ctypes.c_ssize_t), ("last", ctypes.c_ssize_t)]


library = ctypes.CDLL(sys.argv[1])
library.partita_slice_size.restype = ctypes.c_size_t
seed = int(os.environ.get("PARTITA_SEED", "20261121"), 0)
random = numpy.random.default_rng(seed)
print("# seed", seed)
n_done = n_failed = 0


def report(name, good):
    global n_done, n_failed
    n_done += 1
    n_failed += not good
    print("ok" if good else "not ok", n_done, "-", name)


def noise(n, kind):
    x = random.uniform(-1, 1, n)
    return (x + 1j * random.uniform(-1, 1, n)).astype(kind) if numpy.dtype(kind).kind == "c" else x.astype(kind)


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def partita(op, x, h, piece):
    n, m, p = ctypes.c_size_t(len(x)), ctypes.c_size_t(len(h)), ctypes.byref(piece)
    y = numpy.empty(library.partita_slice_size(op, n, m, p), x.dtype)
    call = library.partita_correlate_sized if op else library.partita_convolve_sized
    status = call(F32 + TYPES.index(x.dtype.type), pointer(y), pointer(x), n, pointer(h), m, p, None, 0)
    return y if status == 0 else None


def close(got, expected, kind, fewest):
    """The tolerance of both methods as in support/test.h; the expected result is computed in double precision."""
    if got is None or got.shape != expected.shape:
        return False
    u = 2.0**-24 if numpy.dtype(kind).itemsize // (1 + (numpy.dtype(kind).kind == "c")) == 4 else 2.0**-53
    if u < 1e-10:
        u *= 2  # SciPy rounds too
    typical = numpy.sqrt(fewest * len(expected)) * (2 if numpy.dtype(kind).kind == "c" else 1) / 3
    tolerance = u * max(4 * numpy.sqrt(fewest), 3 * numpy.sqrt(16)) * max(1, 0.5 + 2 / numpy.sqrt(len(expected)))
    return numpy.linalg.norm(got - expected) <= tolerance * max(numpy.linalg.norm(expected), typical)


for kind, (n, m), op, mode, method in itertools.product(TYPES, SIZES, (0, 1), MODES, ("direct", "fft")):
    x, h = noise(n, kind), noise(m, kind)
    function = scipy.signal.correlate if op else scipy.signal.convolve
    precise = numpy.complex128 if numpy.dtype(kind).kind == "c" else numpy.float64
    expected = function(x.astype(precise), h.astype(precise), mode, method)
    got = partita(op, x, h, Slice(mode=MODES[mode]))
    report(f"{function.__name__}/{mode}-{method}-{n}-{m}-{numpy.dtype(kind)}", close(got, expected, kind, min(n, m)))

# Lags equal SciPy's correlation_lags, also beyond the full result.
for n, m in SIZES:
    x, h = noise(n, numpy.complex64), noise(m, numpy.complex64)
    lags = scipy.signal.correlation_lags(n, m)
    full = dict(zip(lags, scipy.signal.correlate(x.astype(complex), h.astype(complex), "full", "direct")))
    first, last = int(lags[0]) - 2, min(int(lags[-1]) + 1, 3)
    expected = numpy.array([full.get(lag, 0) for lag in range(first, last)])
    report(f"correlate/lags-{n}-{m}", close(partita(1, x, h, Slice(RANGE, first, last)), expected, numpy.complex64, min(n, m)))

print(f"1..{n_done}")
sys.exit(n_failed > 0)

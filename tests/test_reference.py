#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# Compares the reference of the C tests with SciPy: convolve and correlate of every type, n-dimensional correlation with
# stride, dilation and padding, groups, streams, layers and their gradients.
# Usage: test_reference.py LIBRARY (support/reference*.c as a shared library)
import ctypes
import itertools
import sys

import numpy
import scipy.signal

F32 = 1  # the first of enum partita_type
TYPES = [numpy.float32, numpy.float64, numpy.complex64, numpy.complex128]
size3 = ctypes.c_size_t * 3
ptrdiff3 = ctypes.c_ssize_t * 3


class Problem(ctypes.Structure):
    _fields_ = [("signal", ctypes.c_int), ("taps", ctypes.c_int), ("op", ctypes.c_int), ("rank", ctypes.c_int),
                ("batch", ctypes.c_size_t), ("in_channels", ctypes.c_size_t), ("out_channels", ctypes.c_size_t),
                ("groups", ctypes.c_size_t), ("kernel", size3), ("size", size3), ("stride", size3),
                ("dilation", size3), ("pad_begin", ptrdiff3), ("pad_end", ptrdiff3), ("block", ctypes.c_size_t),
                ("latency", ctypes.c_size_t), ("activation", ctypes.c_int),
                ("whole_blocks", ctypes.c_bool), ("separable", ctypes.c_bool), ("channels_last", ctypes.c_bool), ("reserved", ctypes.c_bool), ("up", ctypes.c_size_t)]


library = ctypes.CDLL(sys.argv[1])
library.reference_outputs.restype = ctypes.c_size_t
random = numpy.random.default_rng(1)
n_done = n_failed = 0


def report(name, got, expected):
    global n_done, n_failed
    n_done += 1
    good = got.shape == expected.shape and numpy.allclose(got, expected, rtol=1e-13, atol=1e-13)
    n_failed += not good
    print("ok" if good else "not ok", n_done, "-", name)


def noise(shape, kind):
    x = random.uniform(-1, 1, shape)
    return (x + 1j * random.uniform(-1, 1, shape)).astype(kind) if numpy.dtype(kind).kind == "c" else x.astype(kind)


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def reference(x, w, op=1, groups=1, stride=(1,), dilation=(1,), begin=(0,), end=(0,)):
    """x [batch][in][size...], w [out][in/groups][kernel...]"""
    p = Problem(signal=F32 + TYPES.index(x.dtype), taps=F32 + TYPES.index(w.dtype), op=op, rank=x.ndim - 2, batch=x.shape[0],
                in_channels=x.shape[1], out_channels=w.shape[0], groups=groups, kernel=size3(*w.shape[2:]),
                size=size3(*x.shape[2:]), stride=size3(*stride), dilation=size3(*dilation),
                pad_begin=ptrdiff3(*begin), pad_end=ptrdiff3(*end))
    shape = [x.shape[0], w.shape[0]] + [library.reference_outputs(ctypes.byref(p), ctypes.c_size_t(a)) for a in range(x.ndim - 2)]
    y = numpy.zeros(shape, numpy.complex128)
    library.reference_forward(ctypes.byref(p), pointer(y), pointer(x), pointer(w))
    return y


def pairs():
    for signal in TYPES:
        taps = {numpy.complex64: numpy.float32, numpy.complex128: numpy.float64}.get(signal)
        yield signal, signal
        if taps:
            yield signal, taps


def as_complex(x):
    return x.astype(numpy.complex128)


def one_axis():
    for (signal, taps), op, (n, m) in itertools.product(pairs(), (0, 1), ((1, 1), (7, 3), (3, 7), (20, 20))):
        x, w = noise(n, signal), noise(m, taps)
        full = reference(x[None, None], w[None, None], op, begin=(m - 1,), end=(m - 1,))[0, 0]
        expected = (scipy.signal.correlate if op else scipy.signal.convolve)(as_complex(x), as_complex(w), "full", "direct")
        report(f"{numpy.dtype(signal)}/{numpy.dtype(taps)}/{'correlate' if op else 'convolve'}-{n}-{m}", full, expected)
        crop = reference(x[None, None], w[None, None], op, begin=(m - 2,), end=(m - 1,)) if n + m > 2 else full[None, None, 1:]
        report(f"crop-{n}-{m}", crop[0, 0], expected[1:])


def many_axes():
    for rank, stride, dilation, op in itertools.product((1, 2, 3), (1, 2, 3), (1, 2), (0, 1)):
        x, w = noise((2, 4) + (9, 8, 7)[:rank], numpy.float64), noise((6, 2) + (3, 2, 3)[:rank], numpy.float64)
        begin, end = (3, -1, 0)[:rank], (0, 4, 2)[:rank]
        y = reference(x, w, op, 2, (stride,) * rank, (dilation,) * rank, begin, end)
        padded = numpy.pad(x, [(0, 0), (0, 0)] + [(max(b, 0), max(e, 0)) for b, e in zip(begin, end)])
        cut = tuple(slice(max(-b, 0), n) for b, n in zip(begin, padded.shape[2:]))
        dilated = numpy.zeros([dilation * (k - 1) + 1 for k in w.shape[2:]])
        expected = numpy.zeros(y.shape)
        for n, k, c in itertools.product(range(2), range(6), range(2)):
            dilated[(slice(None, None, dilation),) * rank] = w[k, c][(slice(None, None, -1),) * rank] if op == 0 else w[k, c]
            plane = padded[(n, k // 3 * 2 + c) + cut]
            expected[n, k] += scipy.signal.correlate(plane, dilated, "valid", "direct")[(slice(None, None, stride),) * rank]
        report(f"rank-{rank}-stride-{stride}-dilation-{dilation}-op-{op}", y, expected)


def streams():
    for stride, dilation in itertools.product((1, 3), (1, 2)):
        x, w = noise((1, 50), numpy.complex64), noise(8, numpy.complex64)
        dilated = numpy.zeros(dilation * 7 + 1, numpy.complex128)
        dilated[::dilation] = w
        p = Problem(signal=F32 + 2, taps=F32 + 2, kernel=size3(8), size=size3(ctypes.c_size_t(-1).value), stride=size3(stride),
                    dilation=size3(dilation), block=16, latency=5)
        y = numpy.zeros(-(-50 // stride), numpy.complex128)
        library.reference_stream(ctypes.byref(p), ctypes.c_size_t(50), pointer(y), pointer(x), pointer(w))
        report(f"stream-stride-{stride}-dilation-{dilation}", y, scipy.signal.upfirdn(dilated, x[0], 1, stride)[:len(y)])


def dilate_taps(w, op, dilation):
    """Taps in the order of correlation with zeros between them."""
    rank = w.ndim
    dilated = numpy.zeros([dilation * (k - 1) + 1 for k in w.shape])
    dilated[(slice(None, None, dilation),) * rank] = w[(slice(None, None, -1),) * rank] if op == 0 else w
    return dilated


def layers():
    """Forward with bias and relu; gradients by the transposes of forward's matrices, computed column by column with
    SciPy."""
    for rank, stride, dilation, op in itertools.product((1, 2, 3), (1, 2), (1, 2), (0, 1)):
        size, kernel = (6, 5, 4)[:rank], (3, 2, 2)[:rank]
        begin, end = (2, -1, 1)[:rank], (1, 2, 0)[:rank]
        axes = (stride,) * rank
        x, w, bias = noise((2, 2) + size, numpy.float64), noise((4, 1) + kernel, numpy.float64), noise(4, numpy.float64)
        p = Problem(signal=1, taps=1, op=op, rank=rank, batch=2, in_channels=2, out_channels=4, groups=2,
                    kernel=size3(*kernel), size=size3(*size), stride=size3(*axes), dilation=size3(*(dilation,) * rank),
                    pad_begin=ptrdiff3(*begin), pad_end=ptrdiff3(*end))
        cut = tuple(slice(max(-b, 0), None) for b in begin)
        pads = [(max(b, 0), max(e, 0)) for b, e in zip(begin, end)]

        def plane(x, w):
            padded = numpy.pad(x, pads)[cut]
            full = scipy.signal.correlate(padded, dilate_taps(w, op, dilation), "valid", "direct")
            return full[(slice(None, None, stride),) * rank]

        outputs = plane(x[0, 0], w[0, 0]).shape
        forward = lambda x, w: numpy.array([[plane(x[n, k // 2], w[k, 0]) for k in range(4)] for n in range(2)])
        name = f"rank-{rank}-stride-{stride}-dilation-{dilation}-op-{op}"
        gy = noise((2, 4) + outputs, numpy.float64)
        y, gx, gw, gb = (numpy.full(a.shape, numpy.nan) for a in (gy, x, w, bias))
        p.activation = 1
        library.reference_layer_forward(ctypes.byref(p), pointer(y), pointer(x), pointer(w), pointer(bias))
        report(f"layer-{name}", y, numpy.maximum(forward(x, w) + bias.reshape((1, 4) + (1,) * rank), 0))
        p.activation = 0
        library.reference_layer_forward(ctypes.byref(p), pointer(y), pointer(x), pointer(w), None)
        report(f"layer-linear-{name}", y, forward(x, w))
        library.reference_backward_data(ctypes.byref(p), pointer(gx), pointer(gy), pointer(w))
        library.reference_backward_weight(ctypes.byref(p), pointer(gw), pointer(x), pointer(gy))
        library.reference_backward_bias(ctypes.byref(p), pointer(gb), pointer(gy))
        units = lambda a: numpy.eye(a.size).reshape((a.size,) + a.shape)
        data = numpy.array([numpy.vdot(gy, forward(unit, w)) for unit in units(x)]).reshape(x.shape)
        weight = numpy.array([numpy.vdot(gy, forward(x, unit)) for unit in units(w)]).reshape(w.shape)
        report(f"backward-data-{name}", gx, data)
        report(f"backward-weight-{name}", gw, weight)
        report(f"backward-bias-{name}", gb, gy.sum(axis=(0,) + tuple(range(2, rank + 2))))


one_axis()
many_axes()
streams()
layers()
print(f"1..{n_done}")
sys.exit(n_failed > 0)

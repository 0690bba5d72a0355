# SPDX-License-Identifier: MIT
"""Direct sums in double precision: what every result is compared with."""
import itertools

import numpy as np


def correlate_layer(x, w, stride, dilation, pad, groups=1):
    """Forward of a layer; x [batch, in, size...], w [out, in / groups, kernel...]."""
    x, w = np.asarray(x, np.float64), np.asarray(w, np.float64)
    rank = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(pad, pad)] * rank)
    sizes = [(n - dilation * (k - 1) - 1) // stride + 1 for n, k in zip(x.shape[2:], w.shape[2:])]
    y = np.zeros((x.shape[0], w.shape[0], *sizes))
    per_group, group_in = w.shape[0] // groups, w.shape[1]
    for k in range(w.shape[0]):
        first = k // per_group * group_in
        for c, taps in itertools.product(range(group_in), np.ndindex(*w.shape[2:])):
            where = tuple(slice(dilation * r, dilation * r + stride * (n - 1) + 1, stride) for r, n in zip(taps, sizes))
            y[:, k] += w[(k, c, *taps)] * x[(slice(None), first + c, *where)]
    return y


def gradients(x, w, gy, **layer):
    """Gradients of x and w, from what forward does to every unit vector: forward is linear in each of them."""
    gx, gw = np.zeros(x.shape), np.zeros(w.shape)
    of_x, of_w = (lambda u: correlate_layer(u, w, **layer)), (lambda u: correlate_layer(x, u, **layer))
    for gradient, forward in ((gx, of_x), (gw, of_w)):
        for i in np.ndindex(*gradient.shape):
            unit = np.zeros(gradient.shape)
            unit[i] = 1
            gradient[i] = np.sum(forward(unit) * gy)
    return gx, gw


def stream(x, taps):
    """One output of a stream without latency from all inputs: x [in, n], taps [in, m]."""
    return sum(np.convolve(row, h)[:len(row)] for row, h in zip(x, taps))


def bound(result, terms, dtype):
    """An error that sums of so many rounded products of results of this size may have, with transforms among them:
    relative to the largest value, sqrt(terms) roundings of random sign, and a factor of 8 for transforms' passes."""
    return 8 * np.sqrt(terms) * np.finfo(dtype).eps * max(np.abs(result).max(), 1)

# SPDX-License-Identifier: MIT
"""What workers execute. Everything here takes and returns arrays of NumPy, and keeps nothing."""
import itertools

import numpy as np

from partita._dask import made_by
from partita._errors import StateError, UnsupportedError
from partita._signal import dtypes, native

# Workers have a thread for each core, and results do not depend on the threads of a call.
OPTIONS = native.Options(threads=1)
# Variations below this part of an energy are taken as 0: sums of 2^10 samples err by some 2^-50 of it.
_MIN_VARIATION = 2.0**-40


def checked(chunk, key, shape, dtype):
    """The chunk; ValueError if it is not what its array says: dask does not know what a function of map_blocks returns."""
    real = getattr(chunk, "dtype", np.dtype(object))
    if np.shape(chunk) != shape or real.newbyteorder("=") != dtype.newbyteorder("="):
        raise ValueError(f"chunk {key} has shape {np.shape(chunk)} and type {real}, its array says {shape} and {dtype}: "
                         "name sizes and type where the array is made (chunks= and dtype= of map_blocks)")
    return chunk


def cut(chunk, where, key, shape, dtype):
    """Some samples of a chunk. A copy: a view would keep the whole chunk in memory. `key`, `shape`, `dtype`: of the chunk."""
    return checked(chunk, key, shape, dtype)[where].copy()


def _joined(product, source, pieces):
    """One array of pieces that lie on a grid, those of the last axis next to each other. `source`: the name of their array,
    and for each axis of the grid the number of each chunk and the length of the piece."""
    name, grid = source
    for where, piece in zip(itertools.product(*grid), pieces):
        checked(piece, (name, *(i for i, _ in where)), tuple(n for _, n in where), product.signal)
    for axis in reversed(range(len(grid))):
        step = len(grid[axis])
        if step > 1:
            pieces = [np.concatenate(pieces[i:i + step], axis) for i in range(0, len(pieces), step)]
    return pieces[0]


def blocks(product, part, where):
    """The blocks of some results: for each where it lies among them, its results and the samples that it reads. Results
    that read no samples are left out."""
    for begins in itertools.product(*(range(*r, axis.block) for axis, r in zip(product.axes, where))):
        block = [axis.nonzero(product.op, k, begin, min(begin + axis.block, r[1]))
                 for begin, axis, k, r in zip(begins, product.axes, part, where)]
        if all(begin < end for begin, end in block):
            yield (tuple(slice(b - r[0], e - r[0]) for (b, e), r in zip(block, where)), block,
                   product.reads(part, block))


def spans_of(product, part, block, reads):
    """What one call computes of a block of results: first index in the full result, number, distance, by convolved axis."""
    return {a: (axis.index(product.op, part[a], begin) - reads[a][0], end - begin, axis.stride)
            for a, (axis, (begin, end)) in enumerate(zip(product.axes, block)) if axis.convolved}


def multiply(product, part, where, source, h, *pieces):
    """Some results, [begin, end) along each axis, of the signal with one part of the taps.

    `source`, `pieces`: the samples that these results read, as `_joined` takes them.
    """
    made_by.check(product.made_by)
    x = _joined(product, source, pieces)
    origin = [begin for begin, _ in product.reads(part, where)]
    y = np.zeros([end - begin for begin, end in where], product.dtype)
    for target, block, reads in blocks(product, part, where):
        samples = tuple(slice(begin - o, end - o) for (begin, end), o in zip(reads, origin))
        taps = tuple(slice(None) if axis.convolved or axis.m == 1 else t for axis, t in zip(product.axes, target))
        result = dtypes.product(x[samples], h[taps], spans_of(product, part, block, reads), product.op, OPTIONS, y.dtype)
        if result is None:
            raise UnsupportedError("sums of integers may exceed 2^53: convert the arrays to float64 first")
        y[target] = result
        del result  # before the memory of the next one is taken
    return y


def total(shape, dtype, *terms):
    """The sum of arrays, in order. It begins with +0, so that terms that are left out because they are 0 change no bit."""
    y = np.zeros(shape, dtype)
    for term in terms:
        y += term
    return y


def _squares(x):
    x = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64, copy=False)
    return x.real**2 + x.imag**2 if x.dtype.kind == "c" else x * x


def _sliding_sums(x, width):
    """Sums of `width` neighbours. Those of a group share a sample, and are made of two sums that only grow, from there to
    both sides: differences of running sums would leave rounding errors of a loud passage in the quiet one behind it."""
    count = len(x) - width + 1
    size = min(count, width)
    groups = -(-count // size)  # one, or groups whose sums share a single sample
    x = np.pad(x, (0, groups * size + width - len(x)))
    back = np.cumsum(x[:groups * size].reshape(groups, size)[:, ::-1], axis=1)[:, ::-1]
    on = np.empty((groups, size), x.dtype)
    on[:, 0] = x[size:width].sum()
    on[:, 1:] = x[width:width + groups * size].reshape(groups, size)[:, :-1]
    return (back + np.cumsum(on, axis=1)).ravel()[:count]


def energies(product, part, where, source, _, *pieces):
    """The energy of the signal under one part of a template, at some lags; one axis is correlated."""
    return _sums_under(product, part, where, _squares(_joined(product, source, pieces)))


def sums_under(product, part, where, source, _, *pieces):
    """The sum of the signal under one part of a template, at some lags."""
    return _sums_under(product, part, where, _joined(product, source, pieces).astype(product.dtype, copy=False))


def _sums_under(product, part, where, x):
    """Sums under one part of a template, at some lags, of x, the samples that these lags read."""
    origin = [begin for begin, _ in product.reads(part, where)]
    y = np.zeros([end - begin for begin, end in where], x.dtype)
    at = next(a for a, axis in enumerate(product.axes) if axis.convolved)
    axis, width = product.axes[at], product.axes[at].taps(part[at])
    for target, block, reads in blocks(product, part, where):
        under = x[tuple(slice(begin - o, end - o) for (begin, end), o in zip(reads, origin))].ravel()
        begin, end = block[at]
        before = reads[at][0] - (axis.index(product.op, part[at], begin) - width + 1)
        under = np.pad(under, (before, end - begin + width - 1 - before - len(under)))
        y[target] = _sliding_sums(under, width).reshape([e - b for b, e in block])
    return y


def energy(h, axis):
    """The energy of one part of a template."""
    return _squares(h).sum(axis, keepdims=True)


def variation(under, total, m):
    """The energy of m samples without their mean, by their energy and their sum; 0 where rounding errors are as large."""
    left = under - _squares(total) / m
    return np.where(left > _MIN_VARIATION * under, left, 0)


def centred(h, axis):
    """A template without its mean, in double; equal samples become 0."""
    h = h.astype(np.result_type(h, np.float64))
    h = h - h.take([0], axis)
    return h - h.mean(axis, keepdims=True)


def normalise(y, under, template, dtype):
    """A correlation divided by the norms of both operands, in the type `dtype`; 0 where one of them is 0."""
    norm = np.sqrt(under) * np.sqrt(template)
    factor = np.divide(1, norm, out=np.zeros_like(norm), where=norm > 0)
    return (y * factor).astype(dtype)


def search(made, matches, *arguments):
    """The matches of some templates in some samples."""
    made_by.check(made)
    return matches(*arguments)


def write(block, key, place, where, made):
    """Stores one chunk, also one of zeros alone: a chunk that exists is complete. `place`: of the array in its Zarr store."""
    import zarr

    made_by.check(made)
    try:
        target = zarr.open_array(place, mode="r+").with_config({"write_empty_chunks": True})
    except FileNotFoundError as error:
        raise StateError(f"{place}: a worker finds no Zarr array there; name a place that all workers reach") from error
    target[where] = checked(block, key, tuple(w.stop - w.start for w in where), target.dtype)
    return 1

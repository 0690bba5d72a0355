# SPDX-License-Identifier: MIT
"""What a product of two arrays is split into: blocks of results, parts of taps, and the samples that each of them reads.

Blocks and parts lie on a grid that depends on the shapes alone, never on chunks. A chunk of results is a whole number of
blocks. So each result is computed by the same call of the library, whatever the chunks and whoever computes it.
"""
import dataclasses
import typing

import numpy as np

# By number of convolved axes: the most taps of a part, the least results of a block, and how many times longer than its
# part a block is. Along one axis a call of four filter lengths transforms few samples twice (decision 11); with more axes
# the memory of a call would grow by the square or cube of that.
MOST_TAPS = {0: 1, 1: 2**22, 2: 2**11, 3: 2**7}
LEAST_BLOCK = {0: 1, 1: 2**16, 2: 2**9, 3: 2**6}
BLOCK_PER_PART = {0: 1, 1: 4, 2: 2, 3: 2}
FILTERS = 16  # filters of a bank that share the transforms of one call


class Axis(typing.NamedTuple):
    """One axis of signal, taps and results.

    Along a convolved axis result `r` is that of index ``first + r * stride`` of the full convolution. Along others the
    signal's items (n > 1), the taps' (m > 1) or both are taken one by one.
    """

    convolved: bool
    n: int      # samples of the signal
    m: int      # taps
    first: int
    results: int
    stride: int
    part: int   # taps of each part but the last one
    block: int  # results of each block but the last one

    @property
    def parts(self):
        """Number of parts of the taps; those of other axes are those of the results."""
        return -(-self.m // self.part) if self.convolved else 1

    def taps(self, part):
        """Number of taps of a part."""
        return min(self.part, self.m - part * self.part)

    def index(self, op, part, result):
        """Where a result is in the full convolution, or correlation, of the signal with one part of the taps."""
        before = part * self.part
        if op == "correlate":  # which is a convolution with the taps backwards
            before = self.m - self.taps(part) - before
        return self.first + result * self.stride - before

    def nonzero(self, op, part, begin, end):
        """Begin and end of those of the results [begin, end) that read samples."""
        if not self.convolved:
            return begin, end
        start = self.index(op, part, 0)
        last = (self.n + self.taps(part) - 2 - start) // self.stride
        return max(begin, -(start // self.stride)), min(end, last + 1)

    def reads(self, op, part, begin, end):
        """Begin and end of the samples that the results [begin, end) read; nothing is read if the end is not behind."""
        if not self.convolved:
            return (begin, end) if self.n > 1 else (0, 1)
        return (max(0, self.index(op, part, begin) - self.taps(part) + 1),
                min(self.n, self.index(op, part, end - 1) + 1))


@dataclasses.dataclass(frozen=True)
class Product:
    """A convolution or correlation of whole arrays, by axes."""

    op: str
    dtype: np.dtype
    axes: tuple[Axis, ...]
    signal: np.dtype  # type of its samples
    made_by: str  # what computes it (made_by.py)

    @property
    def shape(self):
        return tuple(axis.results for axis in self.axes)

    def reads(self, part, where):
        """The samples that some results, [begin, end) along each axis, read."""
        return [axis.reads(self.op, k, *r) for axis, k, r in zip(self.axes, part, where)]


def broadcast_axis(n, m):
    """An axis along which nothing is summed."""
    return Axis(False, n, m, 0, max(n, m), 1, m, FILTERS if n == 1 else 1)


def default_parts(rank, m):
    """Taps of a part and results of a block for m taps along one of `rank` convolved axes."""
    part = min(m, MOST_TAPS[rank])
    return part, max(LEAST_BLOCK[rank], BLOCK_PER_PART[rank] * 2 ** (part - 1).bit_length())


def result_chunks(axis, chunks):
    """Sizes of the chunks of results along an axis for the signal's: about as many samples, and whole blocks."""
    if not axis.convolved and axis.n > 1:
        return tuple(chunks)
    blocks = max(1, round(max(chunks) / (axis.stride * axis.block))) if axis.convolved else 1
    size = blocks * axis.block
    whole, rest = divmod(axis.results, size)
    return (size,) * whole + (rest,) * (rest > 0)

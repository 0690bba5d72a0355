# SPDX-License-Identifier: MIT
"""task_bytes: the memory that one task of an array needs."""
import math

import dask.array as da
import numpy as np

from partita._dask import tasks
from partita._signal import dtypes, general, native


def _lengths(ranges):
    return [end - begin for begin, end in ranges]


def _workspace(product, read, taps, spans):
    """Bytes that one call of the library takes. Several axes become one (general.py): rows with zeros behind them."""
    kind = "c" if product.dtype.kind == "c" else "f"
    dtype = np.dtype(f"{kind}{dtypes.precision_of(product.dtype) * (2 if kind == 'c' else 1)}")
    if len(spans) > 1:
        rows = [n + m - 1 if a in spans else max(n, m) for a, (n, m) in enumerate(zip(read, taps))]
        return 6 * math.prod(rows) * dtype.itemsize  # both operands, the result and its copies, workspace
    x, h = (np.broadcast_to(np.zeros((), dtype), shape) for shape in (read, taps))  # which take no memory
    if math.prod(read[a] for a in spans) < math.prod(taps[a] for a in spans):
        x, h = h, x
    name = native.NAMES[dtype]
    return native.plan_of(general.Layout(x, h, spans).problem(product.op, name, name), tasks.OPTIONS).workspace()


def _product_bytes(product, part, where, grid):
    """Bytes of one task that multiplies: its samples, once more if they are joined of several pieces, its taps and results,
    and what the call for one block takes, with copies of all in the type of the computation."""
    sizes = [axis.taps(k) if axis.convolved else n if axis.m > 1 else 1
             for axis, k, n in zip(product.axes, part, _lengths(where))]
    read = math.prod(_lengths(product.reads(part, where))) * product.signal.itemsize
    joined = 2 if any(len(pieces) > 1 for pieces in grid) else 1
    total = joined * read + (math.prod(sizes) + math.prod(_lengths(where))) * product.dtype.itemsize
    _, block, reads = next(tasks.blocks(product, part, where), (None, None, None))
    if block is None:
        return total
    taps = [n if axis.convolved or axis.m == 1 else min(n, e - b) for axis, n, (b, e) in zip(product.axes, sizes, block)]
    copies = math.prod(_lengths(reads)) + math.prod(taps) + math.prod(_lengths(block))
    working = dtypes.precision_of(product.dtype) * (2 if product.dtype.kind == "c" else 1)
    spans = tasks.spans_of(product, part, block, reads)
    return total + copies * working + _workspace(product, _lengths(reads), taps, spans)


def task_bytes(array):
    """
    Estimate the memory that a worker needs for one task of an array that `convolve`, `correlate` or `oaconvolve` made.

    Parameters
    ----------
    array : dask.array.Array
        The array, or one made of it.

    Returns
    -------
    int
        Bytes of the task that needs most: samples, taps, results, copies, and the workspace of the library. Not below what
        the task uses, and at most about three times as much, since a workspace may be larger than what is used of it. 0 if
        there is no such task.

    Notes
    -----
    A worker needs this for each of its threads, besides the interpreter (about 0.2 GB) and the chunks that wait for other
    tasks: dask suggests that tasks fill half of a worker's memory. Tasks of the program that makes the signal, and the
    products of normalised correlations, whose energies are in f64, are not counted.

    Examples
    --------
    >>> import dask.array as da, numpy as np, partita.dask
    >>> x = da.zeros(2**26, chunks=2**24, dtype="f4")
    >>> y = partita.dask.convolve(x, np.ones(2**16, np.float32))
    >>> 2 * 4 * 2**24 < partita.dask.task_bytes(y) < 6 * 4 * 2**24
    True
    """
    if not isinstance(array, da.Array):
        raise TypeError(f"array is a {type(array).__name__}, not an array of dask")
    most, known = 0, {}
    for task in array.__dask_graph__().values():
        if getattr(task, "func", None) is not tasks.multiply:
            continue
        product, part, where, (_, grid) = task.args[:4]
        shape = (product, *part, *_lengths(where), *_lengths(product.reads(part, where)), *map(len, grid))
        if shape not in known:
            known[shape] = _product_bytes(product, part, where, grid)
        most = max(most, known[shape])
    return most

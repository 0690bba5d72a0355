# SPDX-License-Identifier: MIT
"""Graphs: of a product, with a task for each chunk of results and part of the taps, and one for each halo; of a search."""
import bisect
import itertools
import math

import dask
import dask.array as da
import numpy as np
from dask._task_spec import Task, TaskRef
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from partita._dask import layout, made_by, tasks

TERMS = 8  # arrays that one task adds
GROUP = 256  # templates of one task, which share the transforms of the signal


def checked(x):
    """The same array, of chunks that are what it says; further operations of dask take their sizes as they are declared."""
    name = f"partita-checked-{x.name}"
    tasks_of = {}
    for index, shape in zip(np.ndindex(*x.numblocks), itertools.product(*x.chunks)):
        chunk = (x.name, *index)
        tasks_of[name, *index] = Task((name, *index), tasks.checked, TaskRef(chunk), chunk, shape, x.dtype)
    return da.Array(HighLevelGraph.from_collections(name, tasks_of, dependencies=[x]), name, x.chunks, dtype=x.dtype)


class Windows:
    """Windows of an array, as pieces of its chunks. A chunk that is not needed as a whole is cut where it is, so that only
    the samples that are needed are moved."""

    def __init__(self, x, graph):
        self._x, self._graph = x, graph
        self._bounds = [[0, *itertools.accumulate(sizes)] for sizes in x.chunks]
        self._cuts = f"partita-cut-{tokenize(x.name)}"
        self._found = {}

    def _pieces(self, axis, begin, end):
        """What one axis of a window has of which chunks: (chunk, begin, end); and the same as (chunk, length)."""
        pieces = self._found.get((axis, begin, end))
        if pieces is None:
            bounds = self._bounds[axis]
            chunks = range(bisect.bisect_right(bounds, begin) - 1, bisect.bisect_left(bounds, end))
            pieces = [(i, max(begin - bounds[i], 0), min(end, bounds[i + 1]) - bounds[i])
                      for i in chunks if bounds[i + 1] > bounds[i]]
            pieces = pieces, tuple((i, end - begin) for i, begin, end in pieces)
            self._found[axis, begin, end] = pieces
        return pieces

    def window(self, ranges):
        """The grid of pieces, by axes, and references to them, those of the last axis next to each other."""
        found, grid = zip(*(self._pieces(a, *r) for a, r in enumerate(ranges)))
        return grid, [self._piece(piece) for piece in itertools.product(*found)]

    def _piece(self, piece):
        chunk = (self._x.name, *(i for i, _, _ in piece))
        if all(begin == 0 and end == sizes[i] for (i, begin, end), sizes in zip(piece, self._x.chunks)):
            return TaskRef(chunk)
        key = (self._cuts, *itertools.chain.from_iterable(piece))
        if key not in self._graph:
            shape = tuple(sizes[i] for (i, _, _), sizes in zip(piece, self._x.chunks))
            self._graph[key] = Task(key, tasks.cut, TaskRef(chunk), tuple(slice(b, e) for _, b, e in piece), chunk, shape,
                                    self._x.dtype)
        return TaskRef(key)


class Builder:
    """The tasks of one product. `compute` is the function of tasks.py for each part of the taps; `h`: the taps, each part
    a chunk, None if `compute` reads the signal alone."""

    def __init__(self, compute, product, x, h):
        self._compute, self._product, self._x, self._h = compute, product, x, h
        self._graph = {}
        self._windows = Windows(x, self._graph)
        self._name = f"partita-{compute.__name__}-{tokenize(product, x.name, None if h is None else h.name)}"
        self._chunks = tuple(layout.result_chunks(axis, sizes) for axis, sizes in zip(product.axes, x.chunks))
        self._parts = tuple(axis.parts for axis in product.axes)

    def array(self):
        """The results as an array of dask."""
        bounds = [list(itertools.pairwise([0, *itertools.accumulate(sizes)])) for sizes in self._chunks]
        for index in itertools.product(*(range(len(sizes)) for sizes in self._chunks)):
            self._chunk(index, tuple(b[i] for b, i in zip(bounds, index)))
        graph = HighLevelGraph.from_collections(self._name, self._graph,
                                                dependencies=[v for v in (self._x, self._h) if v is not None])
        return da.Array(graph, self._name, self._chunks, dtype=self._product.dtype)

    def _chunk(self, index, where):
        """The tasks of one chunk of results: a product for each part of the taps, and their sum."""
        key = (self._name, *index)
        parts = list(itertools.product(*map(range, self._parts)))
        if len(parts) == 1:
            self._multiply(key, index, where, parts[0])
            return
        terms = []
        for number, part in enumerate(parts):
            term = (f"{self._name}-part", number, *index)
            if self._multiply(term, index, where, part):
                terms.append((number, TaskRef(term)))
        self._add(key, where, terms)

    def _multiply(self, key, index, where, part):
        """The task of some results and one part of the taps; none if these results read nothing of the signal."""
        product = self._product
        reads = product.reads(part, where)
        if any(begin >= end for begin, end in reads):
            return False
        grid, pieces = self._windows.window(reads)
        taps = None
        if self._h is not None:
            taps = TaskRef((self._h.name, *(k if axis.convolved else i if axis.m > 1 else 0
                                            for axis, k, i in zip(product.axes, part, index))))
        self._graph[key] = Task(key, self._compute, product, part, where, (self._x.name, grid), taps, *pieces)
        return True

    def _add(self, key, where, terms):
        """The sum of terms, (number, reference), by a tree that depends on their numbers alone."""
        shape, level = tuple(end - begin for begin, end in where), 0
        count = math.prod(self._parts)
        while count > TERMS:
            groups = {}
            for number, term in terms:
                groups.setdefault(number // TERMS, []).append(term)
            count, level, terms = -(-count // TERMS), level + 1, []
            for number, group in groups.items():
                partial = (f"{self._name}-sum", level, number, *key[1:])
                self._graph[partial] = Task(partial, tasks.total, shape, self._product.dtype, *group)
                terms.append((number, TaskRef(partial)))
        self._graph[key] = Task(key, tasks.total, shape, self._product.dtype, *(term for _, term in terms))


def search(matches, x, windows, bank, *arguments):
    """What `matches` finds in the windows of x, (first of the samples, .., end of the samples), by groups of the bank."""
    x, task = checked(x), dask.delayed(tasks.search)
    # On the longest template of all bits depend. It is in every group; weights of 0 omit it.
    longest = (*bank[-1][:-1], np.zeros_like(bank[-1][-1]))
    groups = [dask.delayed([*bank[k:k + GROUP], longest], traverse=False) for k in range(0, len(bank), GROUP)]
    return dask.compute(*(task(made_by.wanted(), matches, x[..., w[0]:w[-1]], w, group, *arguments)
                          for w in windows for group in groups))

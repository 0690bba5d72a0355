# SPDX-License-Identifier: MIT
"""to_zarr: results on disk, chunk by chunk, so that an interrupted run goes on where it was."""
import itertools
import os
import pathlib

import dask.array as da
import numpy as np
from dask._task_spec import Task, TaskRef
from dask.base import compute_as_if_collection
from dask.highlevelgraph import HighLevelGraph

from partita._dask import tasks
from partita._errors import StateError
from partita._explain import explain
from partita._options import library_version

_KEY = "partita_result"  # attribute of the Zarr array: the name of the array of dask, which says how it is computed
_MADE_BY = "partita_made_by"  # and what `_made_by` returned


def _regular(array):
    """The size of the chunks along each axis, of which only the last one may be smaller."""
    for axis, sizes in enumerate(array.chunks):
        if any(size != sizes[0] for size in sizes[:-1]) or sizes[-1] > sizes[0]:
            raise ValueError(f"chunks along axis {axis} differ in size: call rechunk() first")
    return tuple(sizes[0] for sizes in array.chunks)


def _made_by():
    """What else the bits of results depend on, as far as this process knows it: version and instruction set."""
    isa = explain(1, 1).splitlines()[0].rpartition(" ")[2]
    return f"partita {library_version()} with {isa}"


def _open(array, chunks, path):
    """Makes the Zarr array, or checks that the one that is there holds the same result."""
    import zarr

    # A run that was killed before its array was complete leaves a folder in which nothing or a part of a file is.
    if not path.exists() or path.is_dir() and all(entry.suffix == ".partial" for entry in path.iterdir()):
        zarr.create_array(path, shape=array.shape, chunks=chunks, dtype=array.dtype,
                          attributes={_KEY: array.name, _MADE_BY: _made_by()})
    try:
        target = zarr.open_array(path, mode="r+")
    except (ValueError, FileExistsError) as error:  # all errors of zarr are ValueErrors; the other one is for a file
        raise StateError(f"{path}: is no Zarr array; remove it or name another path") from error
    if target.attrs.get(_KEY) != array.name or target.shape != array.shape or target.chunks != chunks:
        raise StateError(f"{path}: holds another result; remove it or name another path")
    if target.attrs.get(_MADE_BY) != _made_by():
        raise StateError(f"{path}: was made by {target.attrs.get(_MADE_BY, 'another version')}, this is {_made_by()}; "
                         "remove it, name another path, or lower the instruction set by PARTITA_CPU")
    return target


def to_zarr(array, path):
    """
    Compute an array of dask into a Zarr array on disk. Chunks that are already there are not computed again.

    A run that was killed, or whose workers were lost, continues if it is started again with the same arguments.

    Parameters
    ----------
    array : dask.array.Array
        What is computed; chunks of equal size, but for the last one along each axis.
    path : str or path
        The Zarr array: a folder, which all workers reach. It is made if it is not there.

    Returns
    -------
    int
        Number of chunks that this call computed: 0 if all were there.

    Raises
    ------
    StateError
        If `path` is something else than a Zarr array, or holds another result: of other inputs, taps, sizes or chunks,
        or one that a process with another version of this package or another instruction set began. Inputs are known by
        the names that dask gives their arrays; samples that were overwritten at their place are not noticed.

    Notes
    -----
    A chunk is written under another name and renamed, so one that exists is complete, also after SIGKILL. When the
    operating system itself stopped, remove the Zarr array and start anew.

    Examples
    --------
    >>> import dask.array as da, numpy as np, partita.dask, tempfile
    >>> x = da.ones(300_000, chunks=100_000)
    >>> y = partita.dask.convolve(x, np.ones(20))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     partita.dask.to_zarr(y, folder + "/y.zarr"), partita.dask.to_zarr(y, folder + "/y.zarr")
    (3, 0)
    """
    path = pathlib.Path(os.fspath(path)).absolute()
    target = _open(array, _regular(array), path)
    bounds = [list(itertools.pairwise([0, *itertools.accumulate(sizes)])) for sizes in array.chunks]
    graph = {}
    for index in np.ndindex(*array.numblocks):
        if not path.joinpath(target.metadata.encode_chunk_key(index)).exists():
            key = (f"partita-write-{array.name}", *index)
            where = tuple(slice(*b[i]) for b, i in zip(bounds, index))
            graph[key] = Task(key, tasks.write, TaskRef((array.name, *index)), str(path), where)
    if graph:
        name = next(iter(graph))[0]
        whole = HighLevelGraph.from_collections(name, graph, dependencies=[array])
        compute_as_if_collection(da.Array, whole, list(graph))
    return len(graph)

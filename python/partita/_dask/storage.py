# SPDX-License-Identifier: MIT
"""to_zarr: results on disk or in an object store, chunk by chunk, so that an interrupted run goes on where it was."""
import itertools
import os
import pathlib

import dask.array as da
import numpy as np
from dask._task_spec import Task, TaskRef
from dask.base import compute_as_if_collection
from dask.highlevelgraph import HighLevelGraph

from partita._dask import made_by, tasks
from partita._errors import StateError

_KEY = "partita_result"  # attribute of the Zarr array: the name of the array of dask, which says how it is computed
_MADE_BY = "partita_made_by"  # and what computes it (made_by.py)


def _regular(array):
    """The size of the chunks along each axis, of which only the last one may be smaller."""
    for axis, sizes in enumerate(array.chunks):
        if any(size != sizes[0] for size in sizes[:-1]) or sizes[-1] > sizes[0]:
            raise ValueError(f"chunks along axis {axis} differ in size: call rechunk() first")
    return tuple(sizes[0] for sizes in array.chunks)


def _place(target, storage_options):
    """Where the Zarr array is: a place in a store of Zarr, which is the same for all workers."""
    import zarr

    if isinstance(target, zarr.Group):
        raise TypeError("target is a Zarr group: name an array in it by target.store_path / 'name'")
    if isinstance(target, zarr.Array):
        return target.store_path
    if isinstance(target, (zarr.storage.StorePath, zarr.abc.store.Store)):
        place = target if isinstance(target, zarr.storage.StorePath) else zarr.storage.StorePath(target)
    else:
        try:
            text = os.fspath(target)
        except TypeError:
            raise TypeError(f"target is a {type(target).__name__}: a path, a URL, or a store, place or array of Zarr") from None
        protocol, separator, rest = text.partition("://")
        if separator and protocol not in ("file", "local"):
            return zarr.storage.StorePath(zarr.storage.FsspecStore.from_url(text, storage_options=storage_options))
        place = zarr.storage.StorePath(zarr.storage.LocalStore(pathlib.Path(rest if separator else text).absolute()))
    if storage_options:
        raise TypeError("storage_options are those of a URL; a path or store has none")
    return place


def _keys(place):
    """The names of everything that is stored at a place, relative to it."""
    from zarr.core.sync import sync

    async def listed():
        return [key async for key in place.store.list_prefix(before)]

    before = place.path and place.path + "/"
    if hasattr(place.store, "fs"):
        place.store.fs.invalidate_cache()  # of listings; others may have written since
    return {key.removeprefix(before) for key in sync(listed())}


def _create(array, chunks, place):
    """Makes the Zarr array; nothing if something is there. A run that was killed in between has left nothing, or a part of
    a file."""
    import zarr

    if any(not key.endswith(".partial") for key in _keys(place)):
        return
    try:
        zarr.create_array(place, shape=array.shape, chunks=chunks, dtype=array.dtype,
                          attributes={_KEY: array.name, _MADE_BY: made_by.wanted()})
    except FileExistsError:
        pass  # a file, which is no Zarr array
    except OSError as error:
        raise type(error)(error.errno, f"cannot make a Zarr array here: {error.strerror or error}", str(place)) from error


def _adopt(array, chunks, target):
    """Makes an array that the caller has made the result's, if nothing has been written to it."""
    if _KEY in target.attrs or target.nchunks_initialized:
        return
    if (target.shape, target.chunks, target.dtype) != (array.shape, chunks, array.dtype):
        raise ValueError(f"the Zarr array has shape {target.shape}, chunks {target.chunks} and type {target.dtype}, the result "
                         f"{array.shape}, {chunks} and {array.dtype}")
    target.update_attributes({_KEY: array.name, _MADE_BY: made_by.wanted()})


def _open(array, chunks, place):
    """The Zarr array that is there, which must be one that holds the same result."""
    import zarr

    try:
        target = zarr.open_array(place, mode="r+")
    except (ValueError, FileExistsError) as error:  # all errors of zarr are ValueErrors; the other one is for a file
        raise StateError(f"{place}: is no Zarr array; remove it or name another place") from error
    before = target.attrs.get(_MADE_BY, "another version")
    if _KEY in target.attrs and before != made_by.wanted():
        raise StateError(f"{place}: was made by {before}, this is {made_by.wanted()}; remove it, name another place, or lower "
                         "the instruction set by PARTITA_CPU")
    if target.attrs.get(_KEY) != array.name or target.shape != array.shape or target.chunks != chunks:
        raise StateError(f"{place}: holds another result; remove it or name another place")
    return target


def _missing(target, array, place):
    """The indices of chunks that are not stored."""
    keys = _keys(place)
    return [index for index in np.ndindex(*array.numblocks) if target.metadata.encode_chunk_key(index) not in keys]


def to_zarr(array, target, *, storage_options=None):
    """
    Compute an array of dask into a Zarr array. Chunks that are already there are not computed again.

    A run that was killed, or whose workers were lost, continues if it is started again with the same arguments.

    Parameters
    ----------
    array : dask.array.Array
        What is computed; chunks of equal size, but for the last one along each axis.
    target : str, path, or store, place or array of Zarr
        Where the Zarr array is, or is made if it is not there: a folder, a URL of fsspec such as ``"s3://bucket/y.zarr"``,
        ``zarr.storage.LocalStore``, ``FsspecStore``, ``MemoryStore``, a ``StorePath`` in one of them, or an array without
        chunks that ``zarr.create_array`` has made with the shape, chunks and type of the result. All workers must reach it.
    storage_options : dict, optional
        Of a URL: what its file system takes, for example ``{"endpoint_url": "http://10.0.0.5:9000"}`` for s3fs.

    Returns
    -------
    int
        Number of chunks that this call computed: 0 if all were there.

    Raises
    ------
    StateError
        If `target` is something else than a Zarr array, or holds another result: of other inputs, taps, sizes or chunks,
        or one that a process with another version of this package or another instruction set began. Inputs are known by
        the names that dask gives their arrays; samples that were overwritten at their place are not noticed. Also if
        chunks are missing after all was computed: then workers have written somewhere else, for example to the memory of
        their own process or to a disk of their own machine.

    Notes
    -----
    A chunk in a folder is written under another name and renamed, and an object of an object store appears as a whole, so
    a chunk that exists is complete, also after SIGKILL. File systems of fsspec that show files before they are complete,
    such as SFTP, do not promise that. When the operating system itself stopped, remove a Zarr array in a folder and start
    anew.

    Examples
    --------
    >>> import dask.array as da, numpy as np, partita.dask, tempfile
    >>> x = da.ones(300_000, chunks=100_000)
    >>> y = partita.dask.convolve(x, np.ones(20))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     partita.dask.to_zarr(y, folder + "/y.zarr"), partita.dask.to_zarr(y, folder + "/y.zarr")
    (3, 0)
    """
    import zarr

    if not isinstance(array, da.Array):
        raise TypeError(f"array is a {type(array).__name__}, not an array of dask: dask.array.from_array makes one")
    chunks, place = _regular(array), _place(target, storage_options)
    if place.read_only:
        raise ValueError(f"{place}: the store is read-only: open it for writing")
    if isinstance(target, zarr.Array):
        _adopt(array, chunks, target)
    _create(array, chunks, place)
    stored = _open(array, chunks, place)
    bounds = [list(itertools.pairwise([0, *itertools.accumulate(sizes)])) for sizes in array.chunks]
    graph = {}
    for index in _missing(stored, array, place):
        key, chunk = (f"partita-write-{array.name}", *index), (array.name, *index)
        where = tuple(slice(*b[i]) for b, i in zip(bounds, index))
        graph[key] = Task(key, tasks.write, TaskRef(chunk), chunk, place, where, made_by.wanted())
    if graph:
        name = next(iter(graph))[0]
        whole = HighLevelGraph.from_collections(name, graph, dependencies=[array])
        compute_as_if_collection(da.Array, whole, list(graph))
        missing = _missing(stored, array, place)
        if missing:
            raise StateError(f"{place}: {len(missing)} chunks that were computed are not there: workers have written them "
                             "elsewhere; name a place that all of them reach")
    return len(graph)

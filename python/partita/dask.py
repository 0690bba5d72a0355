# SPDX-License-Identifier: MIT
"""
Convolution and correlation of arrays of dask, on one machine or many.

    y = partita.dask.convolve(dask.array.from_zarr("year.zarr"), taps)
    partita.dask.to_zarr(y, "filtered.zarr")      # the same lines continue after a crash

Results are lazy arrays of dask. They are equal bit for bit whatever the chunks, the scheduler and the number of workers:
blocks of results and parts of taps lie on a grid that depends on the shapes alone. Workers with another version of this
package or another instruction set are refused. docs/many-machines.md says what a task costs. This module needs dask (``pip
install '.[dask]'`` in a checkout), `to_zarr` also zarr.
"""
from partita._dask.arrays import convolve, correlate, oaconvolve
from partita._dask.memory import task_bytes
from partita._dask.storage import to_zarr

__all__ = ["convolve", "correlate", "oaconvolve", "task_bytes", "to_zarr"]

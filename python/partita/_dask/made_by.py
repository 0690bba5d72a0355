# SPDX-License-Identifier: MIT
"""What the bits of results depend on beside the arrays, as far as a process knows it: version and instruction set."""
import functools

import dask

from partita._errors import StateError
from partita._explain import explain
from partita._options import library_version

SETTING = "partita.instruction-set"  # of dask.config: the instruction set of workers that is not that of this process


@functools.cache
def _isa():
    return explain(1, 1).splitlines()[0].rpartition(" ")[2]


def _text(isa):
    return f"partita {library_version()} with {isa}"


def own():
    """What this process computes with."""
    return _text(_isa())


def wanted():
    """What workers shall compute with: the same as this process, or what SETTING says."""
    return _text(dask.config.get(SETTING, None) or _isa())


def check(text):
    """In a worker: StateError if it is something else than `wanted` was where the graph was made."""
    if text == own():
        return
    raise StateError(f"this worker computes by {own()}, but the array was made for {text}; their results differ in the last "
                     "bits: install one version, and set PARTITA_CPU in every process to what all of them have; if only "
                     f"the process that makes the array differs, let it call dask.config.set({{'{SETTING}': '{_isa()}'}})")

# SPDX-License-Identifier: MIT
"""The type stubs say what the modules have."""
import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

from partita._partita import ffi, lib

# PyTorch's own types take a minute to read; SciPy has none; those of dask and zarr are not needed.
SETTINGS = """[mypy]
[mypy-torch.*,scipy.*,dask.*,zarr.*,jax.*]
follow_imports = skip
ignore_missing_imports = True
"""
# functools.cache and lru_cache have a type without parameters; mypy does not read PyTorch, whose functions have a metaclass.
ALLOWED = """
partita._dask.made_by._isa
partita._signal.native.planned
partita._signal.fallback.originals
partita._signal.rebound.rebound
partita.nn._calls.planned
partita.nn._measure._path
partita.nn._ops.RecordedConv
partita.nn._replace._subclass
"""


def mypy(tmp_path, *words):
    """Runs a module of mypy where no folder of the sources can be imported instead of the package."""
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_stubs_are_those_of_the_modules(tmp_path):
    pytest.importorskip("mypy")
    absent = "" if importlib.util.find_spec("jax") else "partita.jax\n"  # which then cannot be imported
    (tmp_path / "allowed").write_text(ALLOWED + absent)
    (tmp_path / "settings").write_text(SETTINGS)
    mypy(tmp_path, "mypy.stubtest", "partita", "--allowlist", "allowed", "--mypy-config-file", "settings")


@pytest.mark.skipif(not os.environ.get("PARTITA_SLOW"), reason="a long run: PARTITA_SLOW=1")
def test_calls_have_types(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text("""
import numpy as np
import partita

x = np.ones(4, np.float32)
stream = partita.Stream([1.0, 0.5], dtype="float32", latency=0)
stream(x).sum()
plan = partita.Plan(partita.Problem(kernel=(2,), size=4))
y = plan.forward(plan.filter([1.0, 0.5]), x)
y.sum()
partita.convolve(x, [1.0], mode="same").sum()
partita.signal.correlate(x, x, lags=range(-1, 2)).argmax()
""")
    mypy(tmp_path, "mypy", "--strict", "program.py")


def test_the_stub_of_the_c_module_has_all_names():
    stub = pathlib.Path(importlib.util.find_spec("partita._partita").origin).with_name("_partita.pyi").read_text()
    for name in dir(lib):
        if callable(getattr(lib, name)):
            kind = ffi.typeof(ffi.addressof(lib, name))
            line = next(line for line in stub.splitlines() if f"def {name}(" in line)
            assert line.count(": ") == len(kind.args) + 1, line
        else:
            assert f"    {name}: int\n" in stub

# SPDX-License-Identifier: MIT
"""Arrays of other libraries in the memory of CUDA devices: refused where no device is, used on the stand-in for one."""
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import partita

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOSTDEV = ROOT / "build" / "tests" / "hostdev"


class OnDevice:
    """An array that claims to be in the memory of a CUDA device."""

    shape, dtype = (3,), np.dtype(float)

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, **options):
        raise AssertionError("exported although nothing can use it")


@pytest.mark.parametrize("call", [
    lambda x: partita.Stream([1.0]).process(x),
    lambda x: partita.Plan(partita.Problem(kernel=1, size=3, signal="f64")).once(x, [1.0]),
    lambda x: partita.Spectrum(x),
])
def test_arrays_on_a_device_are_refused_where_none_is(call, monkeypatch):
    monkeypatch.setenv("PARTITA_CUDA_MODULE", "/nowhere/libpartita-cuda.so")
    with pytest.raises(TypeError, match="x is on cuda:0: copy it to the CPU, .*module not loaded"):
        call(OnDevice())


def test_plans_of_absent_devices_are_refused(monkeypatch):
    monkeypatch.setenv("PARTITA_CUDA_MODULE", "/nowhere/libpartita-cuda.so")
    with pytest.raises(partita.DeviceError, match="module not loaded"):
        partita.Stream([1.0], device="cuda:0")


@pytest.mark.parametrize("check", ["plans", "mixed", "lifetimes", "others", "streams", "banks", "refusals"])
def test_on_the_stand_in(check):
    module = HOSTDEV / "libpartita-cuda.so"
    if not module.exists():
        pytest.skip(f"{module} is not built")
    # Module and library share structs, and must be of the same sources.
    if module.stat().st_mtime < max(path.stat().st_mtime for path in (ROOT / "lib").rglob("*.*")):
        pytest.skip(f"{module} is older than the sources: ninja -C build")
    environment = os.environ | {"PARTITA_CUDA_MODULE": str(module), "PARTITA_CUFFT": "none"}
    command = [sys.executable, pathlib.Path(__file__).with_name("device_checks.py"), HOSTDEV / "libhostdev.so", check]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

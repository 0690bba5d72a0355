# SPDX-License-Identifier: MIT
"""Runs in each interpreter that a wheel was installed for: streams, plans on two threads and functions of SciPy's
names, in all four types, compared with sums in NumPy. Prints a digest of all results, which is the same for all
versions of Python on one machine."""
import hashlib
import platform
import sys
import sysconfig
import threading

import numpy as np
import partita
from partita.signal import convolve, correlate

rng = np.random.default_rng(0)
digest = hashlib.sha256()


def check(result, expected, dtype):
    """Errors are bounded by the number of terms, here at most 4096, times the type's rounding."""
    assert result.dtype == dtype, (result.dtype, dtype)
    error = np.abs(result - expected).max() / np.abs(expected).max()
    assert error < 4096 * np.finfo(dtype).eps, (error, dtype)
    digest.update(result.tobytes())


for name in ("float32", "float64", "complex64", "complex128"):
    dtype = np.dtype(name)
    x, taps = (rng.normal(size=n).astype(dtype) for n in (20_000, 301))
    if dtype.kind == "c":
        x, taps = x + 1j * x[::-1].astype(dtype), taps - 1j * taps[::-1].astype(dtype)
    expected = np.convolve(x.astype("complex128"), taps)
    for engine in ("cpu/direct", "cpu/overlap-save"):
        problem = partita.Problem(kernel=301, size=20_000, pad=300, signal=name, taps=name)
        plan = partita.Plan(problem, threads=2, engine=engine)
        check(plan.forward(plan.filter(taps), x), expected, dtype)
    check(convolve(x, taps), expected, dtype)
    check(correlate(x, taps), np.correlate(x.astype("complex128"), taps, "full"), dtype)
    stream = partita.Stream(taps, block=64, dtype=name)
    check(np.concatenate([stream(x[i:i + 500]) for i in range(0, 20_000, 500)]), expected[:20_000], dtype)

layer = partita.Problem(op="correlate", kernel=3, size=(28, 28), pad=1, in_channels=16, out_channels=32)
plan = partita.Plan(layer, threads=2)
weights, image = (rng.normal(size=shape).astype(np.float32) for shape in (layer.taps_shape, layer.input_shape))
results = []
threads = [threading.Thread(target=lambda: results.append(plan.forward(plan.filter(weights), image))) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(results) == 4 and all(np.array_equal(result, results[0]) for result in results)
padded = np.pad(image.reshape(16, 28, 28), ((0, 0), (1, 1), (1, 1)))
windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
expected = np.einsum("oikl,ixykl->oxy", weights.reshape(32, 16, 3, 3).astype(float), windows)
check(results[0].reshape(32, 28, 28), expected, np.dtype("float32"))

locked = getattr(sys, "_is_gil_enabled", lambda: True)()
assert locked != bool(sysconfig.get_config_var("Py_GIL_DISABLED")), "the module brought the global lock back"
print(f"works with Python {platform.python_version()}{'' if locked else ', without a global lock,'} on "
      f"{platform.machine()}, {platform.libc_ver()[0] or 'musl'}; results {digest.hexdigest()[:16]}")

# SPDX-License-Identifier: MIT
"""SciPy's and NumPy's own tests, unchanged, through the package: all pass, and it answers at least 95 % of the calls.

Chosen classes by default; with PARTITA_SLOW=1 in the environment the whole of SciPy's test_signaltools.py.
"""
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

scipy = pytest.importorskip("scipy")
from partita._ndimage import scipy_copy  # noqa: E402

SCIPY_TESTS = pathlib.Path(scipy.__file__).parent / "signal" / "tests" / "test_signaltools.py"
NUMPY_TESTS = pathlib.Path(np.__file__).parent / "_core" / "tests" / "test_numeric.py"
CLASSES = ("TestConvolve", "TestConvolve2d", "TestFFTConvolve", "TestOAConvolve", "TestAllFreqConvolves",
           "test_convolve_longdtype_input", "TestLinearFilterFloat32", "TestLinearFilterComplex128", "TestCorrelateReal",
           "TestCorrelate", "test_correlation_lags", "test_correlation_lags_invalid_mode", "TestCorrelateComplex",
           "TestCorrelate2d", "test_choose_conv_method", "TestDecimate", "TestResample", "TestFiltFilt", "TestHilbert")
slow = pytest.mark.skipif(not os.environ.get("PARTITA_SLOW"), reason="a long run: PARTITA_SLOW=1")


def run(*arguments, seconds=300):
    """Exit status of pytest with the plugin, the counts that it prints, and its whole output."""
    words = [sys.executable, "-m", "pytest", "-p", "partita.testing.scipy_plugin", "-p", "no:cacheprovider", "-q",
             *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=seconds, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("counts: ")]
    assert lines, done.stdout + done.stderr
    return done.returncode, json.loads(lines[-1].removeprefix("counts: ")), done.stdout


def check(status, counts, output, most_of):
    """All tests passed, and the package answered calls of these functions."""
    assert status == 0, output
    assert all(counts["native"].get(name, 0) > 0 for name in most_of), counts


def test_scipy():
    check(*run("-m", "not slow", "--deselect", f"{SCIPY_TESTS}::TestOAConvolve::test_2d_axes",
               *(f"{SCIPY_TESTS}::{name}" for name in CLASSES), SCIPY_TESTS.with_name("test_savitzky_golay.py"),
               f"{SCIPY_TESTS.with_name('test_spectral.py')}::TestSTFT"),
          ("convolve", "correlate", "fftconvolve", "oaconvolve", "convolve2d", "correlate2d", "lfilter", "choose_conv_method",
           "resample_poly", "decimate", "filtfilt", "hilbert", "savgol_filter", "stft", "istft"))


def test_numpy():
    check(*run(f"{NUMPY_TESTS}::TestConvolve", f"{NUMPY_TESTS}::TestCorrelate"), ("numpy.convolve", "numpy.correlate"))


def test_upfirdn():
    check(*run(SCIPY_TESTS.with_name("test_upfirdn.py")), ("upfirdn",))


def test_ndimage():
    tests = pathlib.Path(scipy.__file__).parent / "ndimage" / "tests"
    check(*run(tests / "test_filters.py", tests / "test_datatypes.py", "-k", "not Vectorized and not rank and not median"),
          [f"ndimage.{name}" for name in scipy_copy.NAMES])


@slow
def test_scipy_whole():
    check(*run(SCIPY_TESTS, seconds=3000), ("oaconvolve",))


GATE = """
import numpy as np
import scipy.signal
import partita.signal


def test_native():
    for _ in range({native}):
        scipy.signal.convolve([1.0, 2.0], [1.0, 2.0])


def test_fallback():
    for _ in range({fallback}):
        scipy.signal.lfilter([1.0, 2.0], [1.0], np.array([1, 2], object))


def test_recursive():
    scipy.signal.lfilter([1.0], [1.0, 0.5], [1.0, 2.0])


def test_hidden(monkeypatch):
    monkeypatch.setattr(partita.signal, "fftconvolve", lambda x, h: np.convolve(x, h))
    for _ in range({hidden}):
        scipy.signal.fftconvolve([1.0, 2.0], [1.0, 2.0])
"""


@pytest.mark.parametrize("native, fallback, hidden, passes", [(95, 5, 0, True), (94, 6, 0, False), (94, 0, 6, False)])
def test_the_gate(native, fallback, hidden, passes, tmp_path):
    file = tmp_path / "test_gate.py"
    file.write_text(GATE.format(native=native, fallback=fallback, hidden=hidden))
    status, counts, output = run("--rootdir", tmp_path, file)
    assert (status == 0) == passes, output
    assert counts["native"] == {"convolve": native}
    expected = [["fftconvolve", "numpy.convolve did the work", hidden], ["lfilter", "samples of object", fallback]]
    assert counts["fallback"] == [row for row in expected if row[2]]
    assert counts["recursive"] == {"lfilter": 1}

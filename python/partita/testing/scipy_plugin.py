# SPDX-License-Identifier: MIT
"""
A plugin of pytest that runs SciPy's own tests, unchanged, with this package in the place of SciPy's functions for signals
and images:

    python -m pytest -p partita.testing.scipy_plugin SITE-PACKAGES/scipy/signal/tests/test_signaltools.py

SciPy's names are replaced before the tests import them. In NumPy's test_numeric.py numpy.convolve and numpy.correlate are
replaced, in its own tests only: elsewhere they compute expected values.

Every call is counted: as native if the package answered it, otherwise as a fallback, with the reason. A call during
which one of SciPy's or NumPy's functions for such work is called is a fallback, whatever the package says. The run fails
if fewer than 95 % of the calls are native. `counts` returns the numbers.

Calls of lfilter with feedback are listed but are no part of this share: the package has FIR filters only, and one test of
filtfilt alone makes more than 100 000 such calls.
"""
import collections
import functools
import importlib
import json
import math
import pathlib
import threading

import numpy as np
import pytest

from partita import _fork, ndimage, signal
from partita._ndimage import scipy_copy
from partita._signal import fallback, filters

SHARE = 0.95
NAMES = fallback.NAMES + ("correlation_lags",)
_TRANSFORMS = ("fft", "ifft", "rfft", "irfft", "fftn", "ifftn", "rfftn", "irfftn")
# Functions of SciPy and NumPy that do the work of convolutions, by module.
_WORKERS = {
    "numpy": ("convolve", "correlate"),
    "numpy.fft": _TRANSFORMS,
    "scipy.fft": _TRANSFORMS,
    "scipy.ndimage._nd_image": ("correlate", "correlate1d", "uniform_filter1d"),
    "scipy.signal._sigtools": ("_correlateND", "_convolve2d", "_linear_filter"),
    "scipy.signal._savitzky_golay": ("convolve1d",),
    "scipy.signal._upfirdn": ("_apply",),
}
_TRANSFORMING = ("hilbert", "stft", "istft")  # by scipy.fft, which is no fallback of theirs
_NUMPY_TESTS = "test_numeric.py"


class Counter:
    """Calls of replaced functions. Calls that such a call makes itself belong to it."""

    def __init__(self):
        self._lock = _fork.lock()
        self._now = threading.local()  # reasons: those that the call of this thread has met; None outside of calls
        self._counts = collections.Counter()

    def met(self, reason):
        """A reason why the call in progress is a fallback; the first one counts."""
        reasons = getattr(self._now, "reasons", None)
        if reasons is not None and not (reason.startswith("scipy.fft.") and self._now.name in _TRANSFORMING):
            reasons.append(reason)

    def inside(self):
        """Whether a replaced function is being called on this thread."""
        return getattr(self._now, "reasons", None) is not None

    def call(self, name, function, *args, **kwargs):
        """The result of a replaced function."""
        self._now.name, self._now.reasons = name, (reasons := [])
        try:
            return function(*args, **kwargs)
        finally:
            self._now.reasons = None
            with self._lock:
                self._counts[name, reasons[0] if reasons else None] += 1

    def counts(self):
        """{"native": {name: n}, "fallback": {(name, reason): n}, "recursive": {name: n}} of the calls so far."""
        with self._lock:
            listed = sorted(self._counts.items(), key=str)
        return {"native": {name: n for (name, reason), n in listed if reason is None},
                "fallback": {key: n for key, n in listed if key[1] not in (None, filters.RECURSIVE)},
                "recursive": {key[0]: n for key, n in listed if key[1] == filters.RECURSIVE}}

    def share(self):
        """The part of all calls that the package answered; 0 without calls."""
        counts = self.counts()
        native, other = sum(counts["native"].values()), sum(counts["fallback"].values())
        return native / (native + other) if native + other else 0.0


counter = Counter()
counts = counter.counts


def routed(name, original, function):
    """What takes the place of `original`."""

    @functools.wraps(original)
    def call(*args, **kwargs):
        if counter.inside():
            return original(*args, **kwargs)
        return counter.call(name, function, *args, **kwargs)

    return call


def watched(name, original):
    """The original, which makes the call in progress a fallback."""

    @functools.wraps(original)
    def call(*args, **kwargs):
        counter.met(f"{name} did the work")
        return original(*args, **kwargs)

    return call


def _mode(mode):
    """The mode of NumPy's functions, which may be a number."""
    if isinstance(mode, str):
        if mode not in ("valid", "same", "full"):
            raise ValueError(f"mode {mode!r} must be one of 'valid', 'same', or 'full'")
        return mode
    if not isinstance(mode, int):
        raise TypeError("mode must be a string or an integer")
    if not 0 <= mode <= 2:
        raise ValueError("integer convolve/correlate mode must be 0, 1, or 2")
    return ("valid", "same", "full")[mode]


def numpy_convolve(a, v, mode="full"):
    """numpy.convolve by partita.signal: mode "same" is of the size of the longer array."""
    a, v = np.array(a, ndmin=1), np.array(v, ndmin=1)
    for name, array in (("a", a), ("v", v)):
        if len(array) == 0:
            raise ValueError(f"{name} cannot be empty")
    a, v = (v, a) if len(v) > len(a) else (a, v)
    return signal.convolve(a, v, _mode(mode))


def numpy_correlate(a, v, mode="valid"):
    """numpy.correlate by partita.signal: mode "same" is of the size of the longer array."""
    a, v, mode = np.asarray(a), np.asarray(v), _mode(mode)
    for name, array in (("first", a), ("second", v)):
        if array.size == 0:
            raise ValueError(f"{name} array argument cannot be empty")
    if len(v) > len(a):
        return signal.correlate(v, a, mode).conj()[::-1]
    return signal.correlate(a, v, mode)


def _route_scipy(patches):
    import scipy.ndimage
    import scipy.signal
    from scipy._lib._array_api import xp_capabilities_table

    def route(name, counted, module, package, holders):
        original = getattr(module, name)
        # The package's function is looked up in each call.
        call = routed(counted, original, lambda *args, **kwargs: getattr(package, name)(*args, **kwargs))
        if original in xp_capabilities_table:
            xp_capabilities_table[call] = xp_capabilities_table[original]
        for holder in holders:
            patches.setattr(holder, name, call)

    for name in NAMES:
        route(name, name, scipy.signal, signal, fallback.holders(name) if name in fallback.NAMES else [scipy.signal])
    for name in scipy_copy.NAMES:
        route(name, f"ndimage.{name}", scipy.ndimage, ndimage, [scipy.ndimage])
    # Tests are small: without these limits SciPy would answer nearly all of them.
    for name, limit in (("SMALL", 0), ("SMALL_INTEGERS", 0), ("LONGEST_MEAN", math.inf), ("LONGEST_MEAN_INTEGERS", math.inf)):
        patches.setattr(scipy_copy, name, limit)


_patches = pytest.MonkeyPatch()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config):
    """SciPy's conftest.py stands at the top of its package; pytest may begin to look for such files further below."""
    import scipy

    top = pathlib.Path(scipy.__file__).parent
    options = early_config.known_args_namespace
    if pathlib.Path(options.confcutdir).is_relative_to(top):
        options.confcutdir = str(top)
    return (yield)


def pytest_configure():
    fallback.originals()  # SciPy's functions, before they are replaced
    fallback.observers.append(_scipy_answers)
    _route_scipy(_patches)
    for module, names in _WORKERS.items():
        module = importlib.import_module(module)
        for name in names:
            _patches.setattr(module, name, watched(f"{module.__name__}.{name}", getattr(module, name)))


def pytest_unconfigure():
    fallback.observers.remove(_scipy_answers)
    _patches.undo()


def _scipy_answers(name, reason):
    counter.met(reason)


def pytest_runtest_setup():
    np.random.seed(0)  # many of the tests draw from this generator: the same numbers in every run


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    if item.path.name != _NUMPY_TESTS or not item.path.is_relative_to(pathlib.Path(np.__file__).parent):
        return (yield)
    with pytest.MonkeyPatch.context() as patches:
        for name, function in (("convolve", numpy_convolve), ("correlate", numpy_correlate)):
            patches.setattr(np, name, routed(f"numpy.{name}", getattr(np, name), function))
        return (yield)


def pytest_sessionfinish(session):
    if counter.share() < SHARE and not session.config.option.collectonly:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    numbers = counts()
    native, other = (sum(numbers[kind].values()) for kind in ("native", "fallback"))
    terminalreporter.section("partita")
    for name, n in numbers["native"].items():
        terminalreporter.line(f"native    {n:6} {name}")
    for (name, reason), n in numbers["fallback"].items():
        terminalreporter.line(f"fallback  {n:6} {name}: {reason}")
    for name, n in numbers["recursive"].items():
        terminalreporter.line(f"uncounted {n:6} {name}: {filters.RECURSIVE}")
    verdict = "" if counter.share() >= SHARE else f": below {SHARE:.0%}, the run fails"
    terminalreporter.line(f"{native} of {native + other} calls are native, {counter.share():.1%}{verdict}")
    numbers["fallback"] = [[*key, n] for key, n in numbers["fallback"].items()]
    terminalreporter.line("counts: " + json.dumps(numbers))

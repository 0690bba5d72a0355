# SPDX-License-Identifier: MIT
"""Calls that SciPy answers, and patched(), inside which SciPy's names call the package."""
import contextlib
import functools
import importlib
import sys

from partita import _fork
from partita._errors import UnsupportedError

NAMES = ("convolve", "correlate", "fftconvolve", "oaconvolve", "convolve2d", "correlate2d", "lfilter", "upfirdn",
         "choose_conv_method", "resample_poly", "decimate", "filtfilt", "savgol_filter", "hilbert", "stft", "istft")

# Called with the function's name and the reason when SciPy is about to answer a call (testing/scipy_plugin.py).
observers: list = []


def other_names(module, scipys):
    """The ``__getattr__`` of a module whose other names are those of a module of SciPy."""
    def find(name):
        if name.startswith("_"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(importlib.import_module(scipys), name)
    return find


@functools.cache
def originals():
    """SciPy's own functions, by name, whether or not `patched` is in effect; ImportError if SciPy is not installed."""
    import scipy.signal

    return {name: getattr(scipy.signal, name) for name in NAMES}


def scipy_answers(name, reason, *args, error=None):
    """The result of SciPy's function `name`. If SciPy is not installed: `error`, by default one that suits the reason."""
    try:
        function = originals()[name]
    except ImportError:
        error = error or (TypeError if reason.startswith(("samples", "long")) else UnsupportedError)
        raise error(f"partita.signal.{name}: {reason}: this needs SciPy, which is not installed") from None
    for observer in observers:
        observer(name, reason)
    return function(*args)


_lock = _fork.lock()
_depth = 0
_replaced: list = []


def holders(name):
    """scipy.signal, and its modules in which callers within SciPy find the function `name`."""
    import scipy.signal

    within = [module for key, module in list(sys.modules.items()) if key.startswith("scipy.signal._")]
    return [scipy.signal, *(module for module in within if vars(module).get(name) is originals()[name])]


@contextlib.contextmanager
def patched():
    """
    Lets the functions of scipy.signal and scipy.ndimage be this package's, for programs that cannot be changed.

    Inside the context ``scipy.signal.convolve`` and the other names that `partita.signal` has are its functions, for all
    threads of the process, and SciPy's functions that call them by these names do so, too; so are the filters that
    `partita.ndimage` has. Contexts may nest; leaving the outermost restores what was there. Names that a program has
    imported before (``from scipy.signal import convolve``) are not affected.

    Examples
    --------
    >>> import numpy as np, scipy.signal
    >>> from partita.signal import patched
    >>> with patched():
    ...     scipy.signal.convolve(np.ones(3), np.ones(2))
    array([1., 2., 2., 1.])
    """
    global _depth
    originals()
    import scipy.ndimage

    from partita import ndimage, signal
    from partita._ndimage import scipy_copy

    with _lock:
        if _depth == 0:
            _replaced.extend((module, name, getattr(module, name)) for name in NAMES for module in holders(name))
            _replaced.extend((scipy.ndimage, name, getattr(scipy.ndimage, name)) for name in scipy_copy.NAMES)
            for module, name, _ in _replaced:
                setattr(module, name, getattr(ndimage if module is scipy.ndimage else signal, name))
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                for module, name, function in _replaced:
                    setattr(module, name, function)
                _replaced.clear()

# SPDX-License-Identifier: MIT
"""Calls that SciPy answers, and patched(), inside which SciPy's names call the package."""
import contextlib
import functools

from partita import _fork

NAMES = ("convolve", "correlate", "fftconvolve", "oaconvolve", "convolve2d", "correlate2d", "lfilter", "upfirdn",
         "choose_conv_method")

# Called with the function's name and the reason when SciPy is about to answer a call (testing/scipy_plugin.py).
observers: list = []


@functools.cache
def originals():
    """SciPy's own functions, by name, whether or not `patched` is in effect.

    Raises
    ------
    ImportError
        If SciPy is not installed.
    """
    import scipy.signal

    return {name: getattr(scipy.signal, name) for name in NAMES}


def scipy_answers(name, reason, *args, error=NotImplementedError, **kwargs):
    """The result of SciPy's function `name`; `error` if SciPy is not installed."""
    try:
        function = originals()[name]
    except ImportError:
        raise error(f"partita.signal.{name}: {reason}: this needs SciPy, which is not installed") from None
    for observer in observers:
        observer(name, reason)
    return function(*args, **kwargs)


_lock = _fork.lock()
_depth = 0
_replaced: dict = {}


@contextlib.contextmanager
def patched():
    """
    Lets scipy.signal's functions be this package's, for programs that cannot be changed.

    Inside the context ``scipy.signal.convolve`` and its siblings (convolve, correlate, fftconvolve, oaconvolve,
    convolve2d, correlate2d, lfilter, upfirdn, choose_conv_method) are those of `partita.signal`, for all threads of the
    process. Contexts may nest; leaving the outermost restores what was there. Names that a program has imported before
    (``from scipy.signal import convolve``) and calls within SciPy itself are not affected.

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
    import scipy.signal

    from partita import signal

    with _lock:
        if _depth == 0:
            for name in NAMES:
                _replaced[name] = getattr(scipy.signal, name)
                setattr(scipy.signal, name, getattr(signal, name))
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                for name, function in _replaced.items():
                    setattr(scipy.signal, name, function)

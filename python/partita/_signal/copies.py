# SPDX-License-Identifier: MIT
"""SciPy's functions as copies that call this package in the place of other functions of SciPy.

Checks of arguments, paddings, windows, types of results, errors and warnings remain SciPy's; only the sums are exchanged.
A copy has the same code, and for some of its global names other values.
"""
import importlib
import inspect
import types

from partita._signal.fallback import originals


def copies(needed_by, module, **exchanged):
    """The names of a private module of SciPy, whose functions are copies with these names as their globals.

    `exchanged`: for each name that gets another value, a function that makes it of SciPy's. ImportError says, with
    `needed_by`, if SciPy is not installed or has not all of these names.
    """
    try:
        import scipy
    except ImportError:
        raise ImportError(f"{needed_by} needs SciPy, which is not installed") from None
    try:
        theirs = vars(importlib.import_module(module))
        made = {name: make(theirs[name]) for name, make in exchanged.items()}
    except (ImportError, KeyError) as error:
        raise ImportError(f"{needed_by} needs another version of SciPy: {module} of SciPy {scipy.__version__} has not all "
                          f"of the names {', '.join(exchanged)}") from error
    names = {**theirs, **made}
    for name, function in [*theirs.items(), *originals().items()]:  # not those of `patched`
        function = inspect.unwrap(function) if isinstance(function, types.FunctionType) else None
        if function and function.__globals__ is theirs and name not in made:
            names[name] = types.FunctionType(function.__code__, names, name, function.__defaults__, function.__closure__)
            names[name].__kwdefaults__, names[name].__doc__ = function.__kwdefaults__, function.__doc__
    return names

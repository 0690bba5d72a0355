# SPDX-License-Identifier: MIT
"""Exceptions for what calls of the library return."""
from partita._partita import ffi, lib


class UnsupportedError(NotImplementedError):
    """The problem is well-formed, but no engine computes it within the given options."""


class DeviceError(RuntimeError):
    """The device is absent or has failed."""


class StateError(RuntimeError):
    """The state of the object does not allow the call."""


_EXCEPTIONS = {
    lib.PARTITA_ERR_ARG: ValueError,
    lib.PARTITA_ERR_NOMEM: MemoryError,
    lib.PARTITA_ERR_UNSUPPORTED: UnsupportedError,
    lib.PARTITA_ERR_DEVICE: DeviceError,
    lib.PARTITA_ERR_IO: OSError,
    lib.PARTITA_ERR_STATE: StateError,
}


def require_type(name, value, kind, remedy):
    """`value`, if it is of this type, or of one of several; else a TypeError that says what to do."""
    if not isinstance(value, kind):
        given = f"the class {value.__name__}" if isinstance(value, type) else f"of type {type(value).__name__}"
        raise TypeError(f"{name} is {given}: {remedy}")
    return value


def log():
    """A value for `log` of a struct of options: lines go to the exception that `check` raises on the same thread."""
    lib.py_log_forget()
    return {"line": ffi.addressof(lib, "py_log_line")}


def check(status, what=""):
    """Raises the exception of a status that is not PARTITA_OK.

    Its text is what the library has logged on this thread since `log` or the last exception; without such lines the
    status in words. `what` says what the call was for and stands before the text.
    """
    if status:
        raise failure(status, what)


def failure(status, what=""):
    """The exception that `check` raises."""
    lines = ffi.string(lib.py_log_lines()).decode(errors="replace")
    lib.py_log_forget()
    text = lines or ffi.string(lib.partita_status_string(status)).decode()
    return _EXCEPTIONS.get(status, RuntimeError)(f"{what}: {text}" if what else text)

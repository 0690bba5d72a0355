# SPDX-License-Identifier: MIT
"""What plans can be told: devices, threads, measured cost models, options."""
import os
import tempfile
import typing

from partita import _objects
from partita._errors import check, log
from partita._partita import ffi, lib
from partita._problem import choice, natural, optional, positive

DIRECTIONS = {
    "forward": lib.PARTITA_FORWARD,
    "backward_data": lib.PARTITA_BACKWARD_DATA,
    "backward_weight": lib.PARTITA_BACKWARD_WEIGHT,
}
_EFFORTS = {"estimate": lib.PARTITA_ESTIMATE, "measure": lib.PARTITA_MEASURE}

_default_threads = None


class Device(typing.NamedTuple):
    """A device that plans can use: its name for `device` of a plan, and what it is."""

    name: str
    description: str


def devices():
    """
    The devices of this machine.

    Returns
    -------
    list of Device
        The CPU first.

    Examples
    --------
    >>> import partita
    >>> partita.devices()[0].name
    'cpu'
    """
    found = []
    text = ffi.new("char [256]")
    names = ["cpu"]
    for name in names:
        if lib.partita_device_describe(name.encode(), text, len(text)) == lib.PARTITA_OK:
            found.append(Device(name, ffi.string(text).decode(errors="replace")))
            names.append(f"cuda:{len(found) - 1}")
    return found


def set_threads(n):
    """
    Sets how many threads a call of a bounded problem has, for plans that are made later and do not say it themselves.

    Parameters
    ----------
    n : int or None
        None, which holds from the start: as many as the work pays for, at most OpenMP's default, which is
        OMP_NUM_THREADS or all cores. Results do not depend on it. In a child after fork() it is 1.
    """
    global _default_threads
    _default_threads = optional(positive, "threads", n)


def get_threads():
    """What `set_threads` has set."""
    return _default_threads


os.register_at_fork(after_in_child=lambda: set_threads(1))


def library_version():
    """Version of the library in C."""
    return ffi.string(lib.partita_version()).decode()


class Wisdom:
    """
    What was measured on this machine: a cost model, and choices of plans made with ``effort="measure"``.

    It is pickled as what `save` writes, and so for processes of the same machine.

    Parameters
    ----------
    path : str or path, optional
        A file that `save` wrote. Without it nothing is known yet, and plans are those without wisdom.

    Raises
    ------
    OSError
        If the file cannot be read.
    StateError
        If it is no such file, or belongs to another version or another machine.
    """

    def __init__(self, path=None):
        self._owner = _objects.Owner("wisdom", _objects.create("wisdom", lib.partita_wisdom_create))
        if path is not None:
            status = lib.partita_wisdom_load(self._owner.c, os.fsencode(path))
            other = ": not saved by this version on such a machine" if status == lib.PARTITA_ERR_STATE else ""
            check(status, f"{os.fsdecode(path)}{other}")

    def calibrate(self):
        """Measures the cost model, which takes about a second; other load on the machine falsifies it."""
        check(lib.partita_wisdom_calibrate(self._owner.c))

    def save(self, path):
        """Writes everything to a file."""
        check(lib.partita_wisdom_save(self._owner.c, os.fsencode(path)), os.fspath(path))

    def __getstate__(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "wisdom")
            self.save(path)
            with open(path, "rb") as file:
                return {"file": file.read()}

    def __setstate__(self, state):
        with tempfile.NamedTemporaryFile() as file:
            file.write(state["file"])
            file.flush()
            self.__init__(file.name)  # refuses what another machine has measured


def options_to_c(*, device="cpu", engine=None, effort="estimate", threads=None, directions=None, error_budget=None,
                 error_reach=None, workspace_limit=None, wisdom=None, sample_rate=None, filter_uses=None, parts=None,
                 saved_limit=None):
    """A struct partita_options, and what it points to; `check` then raises exceptions with the library's messages."""
    numbers = {"threads": threads, "workspace_limit": workspace_limit, "error_reach": error_reach,
               "saved_limit": saved_limit, "filter_uses": filter_uses}
    if directions is None or isinstance(directions, str):
        directions = (directions,) if directions else ()
    keep = [ffi.new("char []", device.encode()), ffi.NULL if engine is None else ffi.new("char []", engine.encode())]
    options = ffi.new("struct partita_options *", {
        "device": keep[0],
        "engine": keep[1],
        "effort": choice("effort", effort, _EFFORTS),
        "directions": sum({choice("directions", d, DIRECTIONS) for d in directions}),  # none: the library's choice
        "error_budget": 0 if error_budget is None else float(error_budget),
        "wisdom": ffi.NULL if wisdom is None else wisdom._owner.c,
        "sample_rate": 0 if sample_rate is None else float(sample_rate),
        **{name: optional(positive, name, value) or 0 for name, value in numbers.items()},
        "log": log(),
    })
    if parts is not None:
        taps, signal, *in_time = parts
        options.parts = {"taps": natural("parts", taps), "signal": natural("parts", signal),
                         "in_time": bool(in_time and in_time[0])}
    return options, keep


# Names of the options of a plan.
NAMES = tuple(options_to_c.__kwdefaults__ or ())

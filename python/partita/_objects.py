# SPDX-License-Identifier: MIT
"""Objects of the library, each released after those that use it."""
import contextlib

from partita import _fork
from partita._errors import StateError, check
from partita._partita import ffi, lib

# The functions that release an object, by its type in C.
_RELEASE = {
    name: ffi.cast("void (*)(void *)", ffi.addressof(lib, f"partita_{name}_{verb}"))
    for name, verb in (("plan", "destroy"), ("filter", "destroy"), ("stream", "close"), ("bank", "destroy"),
                       ("channelizer", "destroy"), ("channel_filter", "destroy"), ("adaptive", "destroy"),
                       ("spectrum", "destroy"), ("saved", "destroy"), ("wisdom", "destroy"), ("decode", "destroy"))
}


_lock = _fork.lock()


class Owner:
    """Owns one object of the library, `pointer`, whose type in C is struct partita_<name>.

    Each of `needed` that is not None outlives it, whatever order Python's collector of cycles finalizes objects in.
    """

    __slots__ = ("c", "_owner", "_waits")

    def __init__(self, name, pointer, *needed):
        owner = lib.py_object_create(pointer, _RELEASE[name])
        if not owner:
            raise MemoryError
        self.c = pointer
        self._waits = False
        self._owner = ffi.gc(owner, lib.py_object_release)
        for other in needed:
            if other is not None:
                self.link(other)

    def link(self, needed):
        """From now on `needed` outlives this object."""
        if not lib.py_object_link(self._owner, needed._owner):
            raise MemoryError

    def release_after(self, wait):
        """From now on `wait` is called before the object is released: work that uses it may be queued on a device."""
        def release(owner):
            wait()
            lib.py_object_release(owner)

        with _lock:
            if not self._waits:
                self._waits = True
                ffi.gc(self._owner, None)
                self._owner = ffi.gc(self._owner, release)

    def keep_newest(self):
        """Forgets all links but the newest."""
        lib.py_object_keep_newest(self._owner)

    def release(self):
        """Releases the object now, unless others need it."""
        if self.c is not None:
            self.c = None
            ffi.release(self._owner)

    def abandon(self):
        """Never releases the object."""
        self.c = None
        ffi.gc(self._owner, None)


class Running:
    """An object, `_owner`, of which one thread at a time processes, with `_busy`, and one changes, with `_control`.

    In a child after fork() it is closed if another thread of the parent was in a call of it.
    """

    _name: str
    _owner: Owner

    def __init__(self):
        self._control, self._busy = _fork.lock(), _fork.lock()
        _fork.watch(self)

    @property
    def _c(self):
        """The object's pointer; StateError if it has been released."""
        if self._owner.c is None:
            raise StateError(f"the {self._name} is closed")
        return self._owner.c

    def _after_fork(self):
        if self._control.locked() or self._busy.locked():
            self._owner.abandon()

    def _other_thread(self):
        return RuntimeError(f"another thread is in a call of this {self._name}; one at a time may be")

    @contextlib.contextmanager
    def _alone(self):
        """Excludes other calls that process."""
        if not self._busy.acquire(False):
            raise self._other_thread()
        try:
            yield
        finally:
            self._busy.release()


def not_pickled(name, remedy):
    """A method __reduce__ for objects that are not pickled or copied: their memory is the library's."""
    def __reduce__(self):
        raise TypeError(f"{name} cannot be pickled or copied: {remedy}")

    return __reduce__


def returned(c_type, function, *arguments, what=""):
    """What a function of the library returns by its last argument."""
    result = ffi.new(f"{c_type} *")
    check(function(*arguments, result), what)
    return result[0]


def create(name, function, *arguments, what=""):
    """The pointer to a struct partita_<name> that a function of the library returns."""
    return returned(f"struct partita_{name} *", function, *arguments, what=what)

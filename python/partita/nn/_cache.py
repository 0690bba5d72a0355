# SPDX-License-Identifier: MIT
"""The limit of the memory that layers keep between calls: packed taps, saved transforms, workspaces.

An object that holds such memory is a `Held`. Before another one is allocated, those that were used least recently
release theirs. Memory that only one call has used competes for a quarter of the limit, so that signals of ever new
lengths do not displace the rest (2Q of Johnson and Shasha, 1994, "2Q: a low overhead high performance buffer management
replacement algorithm").
"""
import contextlib
import itertools
import operator
import weakref

from partita import _fork
from partita._problem import natural, optional

_LEAST = 256 << 20  # the default limit, if a quarter of the weights is less
_RECENT = 4096      # uses of all objects
_PAGE = 1 << 21     # memory above half of it is taken in whole large pages

_clock = itertools.count()
now = _clock.__next__  # counts the uses


class Held:
    """Memory that is kept for the next call: `n_bytes` of it, 0 while there is none, used last at the time `last` of `now`.

    The same taps may be held in several forms, for plans of other shapes; these are one `family`, and `form` tells them
    apart. `again` says whether calls have come back to it. `weights` are the id and the bytes of the taps that it holds
    packed, empty for memory that has no taps of its own.
    """

    family, form, again, weights = None, None, False, ()
    last = n_bytes = 0

    def drop(self):
        """Releases the memory, unless a call uses it."""


class Lent(Held):
    """Memory that one call at a time borrows from a layer. `waiting`: the layer's list of those that no call uses."""

    def __init__(self, waiting):
        self.waiting = waiting

    def give_back(self):
        self.waiting.append(self)

    def drop(self):
        try:
            self.waiting.remove(self)
            self.n_bytes = 0
        except ValueError:
            pass  # a call uses it


class _Cache:
    """All objects that hold memory, and the limit of their bytes; None: the default."""

    def __init__(self):
        self.limit, self.in_trial = None, False
        self._held = weakref.WeakSet()
        self._lock = _fork.lock()

    def _all(self, kind=Held):
        with self._lock:
            held = [h for h in self._held if isinstance(h, kind)]
        return sorted(held, key=operator.attrgetter("last"), reverse=True)

    def _allowed(self, held):
        if self.limit is not None:
            return self.limit
        return max(_LEAST, sum(dict(h.weights for h in held if h.weights and h.n_bytes).values()) // 4)

    @contextlib.contextmanager
    def trial(self):
        """Calls that measure do not count as coming back to the memory that they use."""
        before, self.in_trial = self.in_trial, True
        try:
            yield
        finally:
            self.in_trial = before

    def used(self, kind=Held):
        """Bytes of all objects, or of those of one kind."""
        return sum(h.n_bytes for h in self._all(kind))

    def add(self, new, n_bytes):
        """Makes room for the memory that an object is about to allocate."""
        with self._lock:
            self._held.add(new)
        self.make_room(n_bytes)
        new.n_bytes = n_bytes

    def make_room(self, n_bytes=0):
        """Drops what was used least recently until so many bytes more are within the limits, or only the rest is left
        that calls are likely to need again: the newest form of each family, if it was used again and of late."""
        held, newest, present = self._all(), {}, now()
        allowed = self._allowed(held)
        _drop([h for h in held if not h.again], n_bytes, allowed // 4)
        for h in held:
            newest.setdefault(h.family, h.form)
        _drop(held, n_bytes, allowed, lambda h: (h.again and newest[h.family] is h.form and present - h.last < _RECENT))

    def make_room_for(self, kind, n_bytes, limit):
        """Whether objects of one kind may have so many bytes more; for this, those used least recently are dropped."""
        _drop(self._all(kind), n_bytes, limit)
        return self.used(kind) + n_bytes <= limit


def _drop(held, n_bytes, allowed, is_needed=lambda h: False):
    """Drops the last of these objects until they have so many bytes less than allowed."""
    excess = n_bytes + sum(h.n_bytes for h in held) - allowed
    for oldest in reversed(held):
        if excess <= 0:
            break
        if not is_needed(oldest):
            excess -= oldest.n_bytes
            oldest.drop()
            excess += oldest.n_bytes


cache = _Cache()


def whole_pages(n_bytes):
    """The bytes that the library takes for a block of this size."""
    return n_bytes if 2 * n_bytes <= _PAGE else -(-n_bytes // _PAGE) * _PAGE


def set_cache_limit(n_bytes):
    """
    Sets how much memory layers may keep between calls.

    These are packed taps, transforms that wait for the next training step, and workspaces. What was used least recently
    is released first; a quarter of the limit is for what one call alone has used. The form that taps were last used in
    stays beyond the limit if it was used again, since a network whose packed taps exceed the limit would otherwise pack
    all of them in every call; `forget` releases these too.

    Parameters
    ----------
    n_bytes : int or None
        Of all layers together. None, which holds from the start: 2**28, or a quarter of the size of all weights whose
        packed taps are kept at the time, if that is more.
    """
    cache.limit = optional(natural, "n_bytes", n_bytes)
    cache.make_room()

# SPDX-License-Identifier: MIT
"""Objects that are kept between calls."""
import collections

from partita import _fork


class Store:
    """The objects that were used last, by key, for any number of threads."""

    def __init__(self, limit):
        self._limit = limit
        self._items = collections.OrderedDict()  # the least recently used first
        self._lock = _fork.lock()

    def __len__(self):
        return len(self._items)

    def get(self, key, make, kept=True):
        """The object of a key, which `make` returns if it is not here; it stays here if `kept`."""
        with self._lock:
            found = self._items.get(key)
            if found is not None:
                self._items.move_to_end(key)
                return found
        # Without the lock: making and releasing objects takes a while, and two threads may well make the same.
        made = make()
        if not kept:
            return made
        dropped = []
        with self._lock:
            found = self._items.setdefault(key, made)
            while len(self._items) > self._limit:
                dropped.append(self._items.popitem(last=False))
        return found

    def clear(self):
        """Releases all objects that no call uses."""
        with self._lock:
            dropped, self._items = self._items, collections.OrderedDict()
        dropped.clear()

# SPDX-License-Identifier: MIT
"""Locks and objects in a child after fork(), which has none of its parent's other threads."""
import os
import threading
import weakref

_locks: weakref.WeakSet = weakref.WeakSet()
_objects: weakref.WeakSet = weakref.WeakSet()


def lock():
    """A lock that is free in a child, whichever thread held it in the parent."""
    made = threading.Lock()
    _locks.add(made)
    return made


watch = _objects.add  # in a child `_after_fork()` of these objects is called, before locks are freed


def _begin_child():
    for used in _objects:
        used._after_fork()
    for held in _locks:
        held._at_fork_reinit()


os.register_at_fork(after_in_child=_begin_child)

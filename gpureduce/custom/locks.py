"""Locks that a forked process finds open: the thread that may have held one is not in it."""

import os
import threading
import weakref

_alive: "weakref.WeakSet[Lock]" = weakref.WeakSet()


class Lock:
    """`with lock():`; a thread may take it again."""

    def __init__(self) -> None:
        self.open()
        _alive.add(self)

    def open(self) -> None:
        self._lock = threading.RLock()

    def __call__(self) -> "threading.RLock":
        return self._lock


def _open_all() -> None:
    for lock in list(_alive):
        lock.open()


os.register_at_fork(after_in_child=_open_all)

"""Whose turn it is: questions wait for each other, and no more of them than there is room for."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from fastwin.serve.params import RequestError

__all__ = ["BusyError", "Turns"]


class BusyError(RequestError):
    """More questions wait than there is room for; the same may be asked again soon."""


class _Lock(Protocol):
    def acquire(self, blocking: bool = True) -> bool: ...

    def release(self) -> None: ...


class Turns:
    """Turns of questions, each with a thread of its own. at_once: that have theirs. waiting: that may wait for it."""

    def __init__(self, at_once: int, waiting: int) -> None:
        self._free = threading.BoundedSemaphore(at_once)
        self._most = waiting
        self._waiting = 0
        self._lock = threading.Lock()

    def one(self) -> AbstractContextManager[None]:
        """Takes a turn. Raises BusyError where all are taken, and too many wait already."""
        return self.behind(self._free)

    @contextmanager
    def behind(self, lock: _Lock) -> Iterator[None]:
        """Holds a lock, behind others that make the same. Raises as ``one``."""
        if not lock.acquire(blocking=False):
            self._wait(lock)
        try:
            yield
        finally:
            lock.release()

    def _wait(self, lock: _Lock) -> None:
        with self._lock:
            if self._waiting >= self._most:
                raise BusyError(503, f"{self._waiting} questions wait for their turn already; ask again in a moment.")
            self._waiting += 1
        try:
            lock.acquire()
        finally:
            with self._lock:
                self._waiting -= 1

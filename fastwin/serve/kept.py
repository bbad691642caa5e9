"""Answers that are kept: bounded in bytes, and each made once however many ask for it at the same time."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

from fastwin.serve.metrics import Metrics
from fastwin.serve.turns import Turns

__all__ = ["Kept"]


class _Making:
    """An answer that somebody makes under the lock; found: what those behind take, also where it is not kept."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.found: bytes | None = None


class Kept:
    """Answers, and what they are made of, by their questions; safe to use from several threads.

    most: bytes of all of them, with their questions; the ones asked for longest ago go first. turns: of those who wait.
    """

    def __init__(self, most: int, metrics: Metrics, turns: Turns) -> None:
        self._most = most
        self._metrics = metrics
        self._turns = turns
        self._all: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._making: dict[Hashable, _Making] = {}
        self._lock = threading.Lock()
        self.size = 0

    def __len__(self) -> int:
        return len(self._all)

    def part(self, question: Hashable) -> Any:
        """Returns what is kept of a part of answers; None if nothing is."""
        with self._lock:
            found = self._all.get(question)
            if found is None:
                return None
            self._all.move_to_end(question)
        return found[0]

    def get(self, question: Hashable) -> bytes | None:
        """Returns the answer to a question, if it is kept."""
        found = self.part(question)
        if found is not None:
            self._metrics.hits.inc()
        return found

    def once(self, question: Hashable, make: Callable[[], tuple[bytes, bool]]) -> bytes:
        """Returns a kept answer, or makes it; of many that ask the same at once, one makes it and the others wait.

        make: returns the answer, and whether it may be kept; those who wait get it in any case. Raises BusyError where
        too many wait already.
        """
        found = self.get(question)
        if found is not None:
            return found
        with self._lock:
            making = self._making.setdefault(question, _Making())
        with self._turns.behind(making.lock):
            try:
                if making.found is not None:
                    self._metrics.hits.inc()
                    return making.found
                found = self.get(question)
                if found is None:
                    found, lasts = make()
                    self._metrics.misses.inc()
                    if lasts:
                        self.keep(question, found, len(found))
                making.found = found
                return found
            finally:
                with self._lock:
                    if self._making.get(question) is making:
                        del self._making[question]

    def keep(self, question: Hashable, found: Any, size: int) -> None:
        """Keeps an answer or a part, of so many bytes, in place of what is kept of the question."""
        size += len(repr(question)) + 200
        with self._lock:
            before = self.size
            if question in self._all:
                self.size -= self._all.pop(question)[1]
            if size <= self._most:
                self._all[question] = found, size
                self.size += size
            while self.size > self._most:
                self.size -= self._all.popitem(last=False)[1][1]
            self._metrics.kept_bytes.inc(self.size - before)

"""Answers that are kept: bounded in bytes, and each made once however many ask for it at the same time."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from fastwin.serve.metrics import Metrics

__all__ = ["Kept"]

_AT_ONCE = 4
"""How many answers are made at once. More would take turns on the interpreter, and be no faster."""


class Kept:
    """Answers by their questions; safe to use from several threads.

    most: bytes of all answers, with their questions; the ones asked for longest ago go first.
    """

    def __init__(self, most: int, metrics: Metrics) -> None:
        self._most = most
        self._metrics = metrics
        self._answers: OrderedDict[Hashable, bytes] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(_AT_ONCE)
        self.size = 0

    def __len__(self) -> int:
        return len(self._answers)

    def part(self, question: Hashable) -> bytes | None:
        """Returns a part of an answer, if it is kept."""
        with self._lock:
            found = self._answers.get(question)
            if found is not None:
                self._answers.move_to_end(question)
        return found

    def get(self, question: Hashable) -> bytes | None:
        """Returns the answer to a question, if it is kept."""
        found = self.part(question)
        if found is not None:
            self._metrics.hits.inc()
        return found

    def once(self, question: Hashable, make: Callable[[], tuple[bytes, dict[Hashable, bytes]]]) -> bytes:
        """Returns a kept answer, or makes it; of many that ask the same at once, one makes it and the others wait.

        make: returns the answer, and what may be kept: answers by their questions.
        """
        found = self.get(question)
        if found is not None:
            return found
        with self._lock:
            lock = self._making.setdefault(question, threading.Lock())
        with lock:
            found = self.get(question)
            if found is not None:
                return found
            try:
                with self._free:
                    found, lasting = make()
                self._metrics.misses.inc()
                for each, answer in lasting.items():
                    self._keep(each, answer)
            finally:
                with self._lock:
                    self._making.pop(question, None)
            return found

    def _keep(self, question: Hashable, found: bytes) -> None:
        cost = _cost(question, found)
        with self._lock:
            if cost > self._most or question in self._answers:
                return
            self._answers[question] = found
            before, self.size = self.size, self.size + cost
            while self.size > self._most:
                self.size -= _cost(*self._answers.popitem(last=False))
            self._metrics.kept_bytes.inc(self.size - before)


def _cost(question: Hashable, found: bytes) -> int:
    """Returns the bytes that an answer takes, with its question and a place in a dict."""
    return len(found) + len(repr(question)) + 200

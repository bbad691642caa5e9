"""Threads that share calls, and stay for the next run: so what they have freed is at hand, and no run starts them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from typing import Any

from fastwin.machine.threads import ALONE, Threads

__all__ = ["each_on"]

# How many threads there are, and they. At most one entry is kept: those that no run has now.
_Threads = tuple[int, ThreadPoolExecutor]
_kept: dict[None, _Threads] = {}
os.register_at_fork(after_in_child=_kept.clear)  # where no threads are


@contextmanager
def each_on(threads: int) -> Iterator[Threads]:
    """Yields so many threads, the caller's included.

    They return what the calls do, in order, when all are over; one thread does what ``map`` does.
    Where calls fail, those that have not begun are left out; of several errors it is the one of the first call, or what
    interrupts. Threads of a run that fails end with it.
    """
    if threads == 1:
        yield ALONE
        return
    others = _taken(threads - 1)
    try:
        yield Threads(threads, partial(_each, others[1], threads - 1))
    except BaseException:
        others[1].shutdown(cancel_futures=True)
        raise
    if _kept.setdefault(None, others) is not others:
        others[1].shutdown(wait=False)


def _taken(count: int) -> _Threads:
    """Returns so many threads or more: those that are kept, or new ones."""
    found = _kept.pop(None, None)
    if found is not None and found[0] >= count:
        return found
    if found is not None:
        found[1].shutdown(wait=False)
    return count, ThreadPoolExecutor(count, thread_name_prefix="fastwin")


def _each(others: ThreadPoolExecutor, most: int, call: Callable, *arguments: Iterable) -> list[Any]:
    """See each_on(). most: how many others take part. Arguments that nobody else has go with their call."""
    todo = deque(enumerate(zip(*arguments, strict=False)))
    found: list[Any] = [None] * len(todo)
    failed: list[tuple[int, BaseException]] = []

    def work() -> None:
        while True:
            try:
                at, some = todo.popleft()
            except IndexError:
                return
            try:
                found[at] = call(*some)
            except BaseException as problem:
                todo.clear()
                failed.append((at, problem))

    try:
        helping = [others.submit(work) for _ in range(min(most, len(todo) - 1))]
        work()
        wait([one for one in helping if not one.cancel()])
    finally:
        todo.clear()
    if failed:
        _, problem = min(failed, key=lambda one: (isinstance(one[1], Exception), one[0]))
        found.clear()
        failed.clear()  # what has been raised holds the frame that holds this
        try:
            raise problem
        finally:
            del problem
    return found

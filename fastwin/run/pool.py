"""Threads that share calls, and wait for the next run: so what they have freed is at hand, and no run starts them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

__all__ = ["each_on"]

# By how many threads they are: those that no run has now, of each number one.
_kept: dict[int, ThreadPoolExecutor] = {}
os.register_at_fork(after_in_child=_kept.clear)  # where no threads are


@contextmanager
def each_on(threads: int) -> Iterator[Callable[..., Iterable]]:
    """Yields what calls a function with each of some arguments, as ``map`` does, on so many threads, this one included.

    It returns when all calls have, with what they return in order. Of calls that fail it raises the first one's error;
    those that have not begun by then are left out.
    """
    if threads == 1:
        yield map
        return
    others = _kept.pop(threads, None) or ThreadPoolExecutor(threads - 1, thread_name_prefix="fastwin")
    try:
        yield partial(_each, others, threads - 1)
    finally:
        if _kept.setdefault(threads, others) is not others:
            others.shutdown(wait=False)


def _each(others: ThreadPoolExecutor, most: int, call: Callable, *arguments: Iterable) -> list[Any]:
    given = list(zip(*arguments, strict=False))
    todo = deque(enumerate(given))
    found: list[Any] = [None] * len(given)
    failed: list[tuple[int, BaseException]] = []
    del given  # each goes when its call is over

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

    helping = [others.submit(work) for _ in range(min(most, len(todo) - 1))]
    try:
        work()
        for one in helping:
            if not one.cancel():
                one.result()
    finally:
        todo.clear()
    if failed:
        raise min(failed, key=lambda one: one[0])[1]
    return found

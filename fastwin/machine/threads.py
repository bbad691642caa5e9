"""Threads that a run may use: how many, and how to call a function on them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["ALONE", "Threads"]


@dataclass(frozen=True)
class Threads:
    """Some threads, the caller's included. They call a function with each of some arguments, as ``map`` does.

    count: how many. each: what calls.

    >>> list(Threads()(abs, [-1, 2]))
    [1, 2]
    """

    count: int = 1
    each: Callable[..., Iterable[Any]] = map

    def __call__(self, call: Callable[..., Any], *arguments: Iterable[Any]) -> Iterable[Any]:
        """Returns what the calls return, in the order of the arguments."""
        return self.each(call, *arguments)


ALONE = Threads()
"""The caller's thread alone."""

"""Chunks that were written and never came back to the caller: what goes on from them could not be restored."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from fastwin.errors import StateError

__all__ = ["fails_with_its_chunk"]


def fails_with_its_chunk(stream_of: Callable[[Any], Any]) -> Callable[[Callable[..., bytes]], Callable[..., bytes]]:
    """Makes a method that returns a chunk fail its stream if it ends with an error or an interrupt behind writing it.

    stream_of: returns the stream of the object whose method it is; None while there is none. Before the chunk is
    written, an error changes nothing, and the stream goes on.
    """

    def decorated(method: Callable[..., bytes]) -> Callable[..., bytes]:
        @wraps(method)
        def entered(self: Any, *arguments: Any, **named: Any) -> bytes:
            place = _place(stream_of(self))
            try:
                return method(self, *arguments, **named)
            except StateError:  # a call that was refused; another thread may just write one
                raise
            except BaseException as problem:
                if place != _place(stream := stream_of(self)):
                    stream._fail(problem)
                raise

        return entered

    return decorated


def _place(stream: Any) -> Any:
    """Returns where a stream stands in its chain."""
    operator = None if stream is None else stream._operator
    return None if operator is None else operator.chain.place

"""AggregateFunction: adds the elements of a window to an accumulator as they come; users subclass it."""

from __future__ import annotations

from typing import Any

__all__ = ["AggregateFunction", "adds_many"]


class AggregateFunction:
    """Adds elements to an accumulator, one by one, as they come. Subclass it.

    The accumulator may be any object that pickles; what ``add`` and ``merge`` return is kept, whether changed in
    place or made anew. A class attribute ``version`` tells the state of one version from that of another.
    Source: Flink's AggregateFunction.
    """

    def create_accumulator(self) -> Any:
        """Returns an accumulator without elements."""
        raise NotImplementedError(f"{type(self).__name__} needs create_accumulator(self)")

    def add(self, value: Any, accumulator: Any) -> Any:
        """Returns the accumulator with one more element; value: a read-only row."""
        raise NotImplementedError(f"{type(self).__name__} needs add(self, value, accumulator)")

    def add_many(self, values: Any, accumulator: Any) -> Any:
        """Returns the accumulator with several more elements of one window, in order. Optional, for speed.

        It must come to what ``add`` comes to, one element after the other. Write ``add`` in any case: single elements,
        and those that an evictor has left, are added by it; so are all where a subclass overrides ``add`` alone.

        values: a sequence of rows, one or more. ``values.to_list(name)`` is a column as a list, None for null;
            ``values.to_numpy(name)`` as a read-only array[n]: copy it if the accumulator is to keep it. They are there
            for this call alone: StateError is raised afterwards.
        """
        raise NotImplementedError(f"{type(self).__name__} has no add_many(self, values, accumulator)")

    def get_result(self, accumulator: Any) -> Any:
        """Returns the result: a scalar for one output column, else a tuple or dict."""
        raise NotImplementedError(f"{type(self).__name__} needs get_result(self, accumulator)")

    def merge(self, a: Any, b: Any) -> Any:
        """Returns one accumulator for two. Optional: merging windows (sessions) are refused without it."""
        raise NotImplementedError(f"{type(self).__name__} has no merge(self, a, b)")

    def can_merge(self) -> bool:
        """Tells whether ``merge`` is written."""
        return type(self).merge is not AggregateFunction.merge


def adds_many(function: AggregateFunction) -> bool:
    """Tells whether ``add_many`` is written, and speaks of the ``add`` that the function has."""
    for kind in type(function).__mro__:
        if "add_many" in vars(kind):
            return kind is not AggregateFunction and "add" not in getattr(function, "__dict__", ())
        if "add" in vars(kind):
            return False
    return False

"""Functions over the elements of a window, for users to write: aggregate, reduce, process. Flink's names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fastwin.errors import SpecError

__all__ = ["AggregateFunction", "ProcessWindowFunction", "ReduceFunction", "as_reduce_function", "check_delta"]


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

    def get_result(self, accumulator: Any) -> Any:
        """Returns the result: a scalar for one output column, else a tuple or dict."""
        raise NotImplementedError(f"{type(self).__name__} needs get_result(self, accumulator)")

    def merge(self, a: Any, b: Any) -> Any:
        """Returns one accumulator for two. Optional: merging windows (sessions) are refused without it."""
        raise NotImplementedError(f"{type(self).__name__} has no merge(self, a, b)")

    def can_merge(self) -> bool:
        """Tells whether ``merge`` is written."""
        return type(self).merge is not AggregateFunction.merge


class ReduceFunction:
    """Reduces two elements to one of the same kind. Subclass it, or give a plain callable instead.

    Source: Flink's ReduceFunction.
    """

    def reduce(self, a: Any, b: Any) -> Any:
        """Returns the reduced element: a row (see ``row._replace``), a tuple or a dict; a: what was reduced so far."""
        raise NotImplementedError(f"{type(self).__name__} needs reduce(self, a, b)")


class ProcessWindowFunction:
    """Is called with all elements of a window when it fires, and yields any number of rows. Subclass it.

    Source: Flink's ProcessWindowFunction.
    """

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any] | None:
        """Yields result rows as tuples or dicts.

        key: the key's value, a tuple for several key columns. context: has ``window``, ``current_watermark()``,
            ``current_processing_time()``, ``window_state()``, ``global_state()`` and ``output(tag, value)``.
        elements: the rows of the window; after an aggregate, its one result.
        """
        raise NotImplementedError(f"{type(self).__name__} needs process(self, key, context, elements)")

    def clear(self, context: Any) -> None:
        """Is called when the window goes for good: the place to clear per-window state."""


class _Callable(ReduceFunction):
    """A plain callable as a ReduceFunction."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.reduce = function  # type: ignore[assignment, method-assign]
        self.name = getattr(function, "__qualname__", type(function).__qualname__)


def as_reduce_function(function: Any, argument: str) -> ReduceFunction:
    """Returns a ReduceFunction for one, or for a callable; raises SpecError for anything else."""
    if isinstance(function, ReduceFunction):
        return function
    if callable(function) and not isinstance(function, type):
        return _Callable(function)
    raise SpecError(f"{argument}: must be a ReduceFunction or a callable of two values, got {function!r}")


def check_delta(owner: str, threshold: Any, delta: Any) -> None:
    """Raises SpecError unless a threshold is a number, and a delta a callable."""
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or threshold != threshold:
        raise SpecError(f"{owner}: threshold must be a number, got {threshold!r}")
    if not callable(delta):
        raise SpecError(f"{owner}: delta must be a callable of two rows, got {delta!r}")

"""ReduceFunction: makes one element of two, until a window has one left; users subclass it or give a callable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastwin.errors import SpecError

__all__ = ["ReduceFunction", "as_reduce_function"]


class ReduceFunction:
    """Reduces two elements to one of the same kind. Subclass it, or give a plain callable instead.

    Source: Flink's ReduceFunction.
    """

    def reduce(self, a: Any, b: Any) -> Any:
        """Returns the reduced element: a row (see ``row._replace``), a tuple or a dict; a: what was reduced so far."""
        raise NotImplementedError(f"{type(self).__name__} needs reduce(self, a, b)")


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

"""State descriptors: the name of a piece of keyed state, and how values are combined in it. Flink's names.

The state itself comes from a context: ``ctx.get_partitioned_state(descriptor)`` in a trigger,
``context.window_state().get_state(descriptor)`` or ``context.global_state()...`` in a ProcessWindowFunction.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastwin.errors import SpecError
from fastwin.functions import AggregateFunction, ReduceFunction, as_reduce_function

__all__ = [
    "AggregatingStateDescriptor",
    "ListStateDescriptor",
    "MapStateDescriptor",
    "ReducingStateDescriptor",
    "StateDescriptor",
    "ValueStateDescriptor",
]


@dataclass(frozen=True)
class StateDescriptor:
    """Names a piece of state. The base of those below; two descriptors of one name mean the same state."""

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SpecError(f"{type(self).__name__}: name must be text, got {self.name!r}")


@dataclass(frozen=True)
class ValueStateDescriptor(StateDescriptor):
    """One value: ``value()``, ``update(value)``, ``clear()``. It cannot be merged.

    default: what ``value()`` returns before the first update.
    """

    default: Any = None


@dataclass(frozen=True)
class ListStateDescriptor(StateDescriptor):
    """A list: ``get()``, ``add(value)``, ``add_all(values)``, ``update(values)``, ``clear()``. Merging concatenates."""


@dataclass(frozen=True)
class MapStateDescriptor(StateDescriptor):
    """A map, which cannot be merged.

    ``get``, ``put``, ``put_all``, ``remove``, ``contains``, ``keys``, ``values``, ``items``, ``is_empty``, ``clear``.
    """


@dataclass(frozen=True)
class ReducingStateDescriptor(StateDescriptor):
    """A value that ``add(value)`` reduces into: ``get()`` (None when empty), ``clear()``. Merging reduces.

    reduce: a ReduceFunction or a callable of two values.
    """

    reduce: ReduceFunction | Callable[[Any, Any], Any] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__post_init__()
        as_reduce_function(self.reduce, type(self).__name__)


@dataclass(frozen=True)
class AggregatingStateDescriptor(StateDescriptor):
    """An accumulator that ``add(value)`` adds to: ``get()`` gives the result, None when empty; ``clear()``.

    Merging needs the function's ``merge``.
    """

    aggregate: AggregateFunction = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.aggregate, AggregateFunction):
            raise SpecError(f"{type(self).__name__}: aggregate must be an AggregateFunction, got {self.aggregate!r}")

"""State descriptors: the name of a piece of keyed state, and how values are combined in it. Flink's names.

The state itself comes from a context: ``ctx.get_partitioned_state(descriptor)`` in a trigger,
``context.window_state().get_state(descriptor)`` or ``context.global_state()...`` in a ProcessWindowFunction.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from fastwin.errors import SpecError
from fastwin.functions.aggregate import AggregateFunction
from fastwin.functions.reduce import ReduceFunction, as_reduce_function
from fastwin.times import Duration, to_ms

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
    """Names a piece of state. The base of those below; two descriptors of one name mean the same state.

    ttl: for state of keys (``global_state()``), how long it stays after it was last written, such as ``"7 days"``. Then
        it reads as empty, and is removed. None: for ever.
    ttl_time: ``"event"`` or ``"processing"``, the clock that ttl is measured by. In event time, a call happens at the
        last millisecond of its window (with global windows: at the watermark), and state that is over goes when the
        watermark says so. So it does not depend on how the watermark advances. A late firing does not shorten it.

    Raises SpecError for another name, duration or clock. Source: Flink's StateTtlConfig, with updates on write.
    """

    name: str
    ttl: Duration | None = field(default=None, kw_only=True, metadata={"describe": "if set"})
    ttl_time: Literal["event", "processing"] = field(default="event", kw_only=True, metadata={"describe": "if set"})

    def __post_init__(self) -> None:
        kind = type(self).__name__
        if not isinstance(self.name, str) or not self.name or self.name[0] == "\0":
            raise SpecError(f"{kind}: name must be text, got {self.name!r}")
        if self.ttl is not None and self.ttl_ms < 1:
            raise SpecError(f"{kind}: ttl must be at least 1 ms, got {self.ttl!r}")
        if self.ttl_time not in ("event", "processing"):
            raise SpecError(f"{kind}: ttl_time must be 'event' or 'processing', got {self.ttl_time!r}")
        if self.ttl is None and self.ttl_time != "event":
            raise SpecError(f"{kind}: ttl_time={self.ttl_time!r} goes with ttl= only; without it state stays for ever")

    @property
    def ttl_ms(self) -> int:
        """``ttl`` in ms; 0: the state stays for ever."""
        return 0 if self.ttl is None else to_ms(self.ttl, argument=f"{type(self).__name__}: ttl")


@dataclass(frozen=True)
class ValueStateDescriptor(StateDescriptor):
    """One value: ``value()``, ``update(value)``, ``clear()``. It cannot be merged.

    default: what ``value()`` returns before the first update.
    """

    default: Any = None


@dataclass(frozen=True)
class ListStateDescriptor(StateDescriptor):
    """A list: ``get()``, ``add(value)``, ``add_all(values)``, ``update(values)``, ``clear()``. Merging concatenates.

    ttl: of the whole list, from the last write to it. In Flink, each value has its own.
    """


@dataclass(frozen=True)
class MapStateDescriptor(StateDescriptor):
    """A map, which cannot be merged.

    ``get``, ``put``, ``put_all``, ``remove``, ``contains``, ``keys``, ``values``, ``items``, ``is_empty``, ``clear``.
    ttl: of the whole map, from the last write to it. In Flink, each entry has its own: keep the time beside each value,
    and remove the old ones.
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

"""Triggers: when a window fires, and when its contents are purged. Flink's names.

Combinations of triggers are in ``fastwin.combinators``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from operator import add
from typing import Any, Self

from fastwin.duration import Duration, format_ms, to_ms
from fastwin.errors import SpecError
from fastwin.functions import check_delta
from fastwin.state import ReducingStateDescriptor, ValueStateDescriptor

__all__ = [
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "CountTrigger",
    "DeltaTrigger",
    "EventTimeTrigger",
    "NeverTrigger",
    "ProcessingTimeTrigger",
    "Trigger",
    "TriggerResult",
    "truncated",
]


class TriggerResult(Enum):
    """What a trigger answers. PURGE clears the contents of the window, and nothing else of it."""

    CONTINUE = 0
    FIRE = 1
    PURGE = 2
    FIRE_AND_PURGE = 3

    @property
    def is_fire(self) -> bool:
        """Whether the window's function runs."""
        return self in (TriggerResult.FIRE, TriggerResult.FIRE_AND_PURGE)

    @property
    def is_purge(self) -> bool:
        """Whether the contents of the window are cleared (after it has fired)."""
        return self in (TriggerResult.PURGE, TriggerResult.FIRE_AND_PURGE)


class Trigger:
    """Decides when a window fires. Subclass it and override what you need.

    ``ctx`` has ``get_current_watermark()``, ``get_current_processing_time()``,
    ``register_event_time_timer(t)``, ``delete_event_time_timer(t)``, the same for ``processing_time``, and
    ``get_partitioned_state(descriptor)``, which is state of this window. A trigger object serves all
    windows, so it keeps nothing in itself. Source: Flink's Trigger.
    """

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        """Is called for each element after it was added; element: a read-only row, timestamp: ms."""
        raise NotImplementedError(f"{type(self).__name__} needs on_element(self, element, timestamp, window, ctx)")

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        """Is called when the watermark has reached a timer registered for ``time``, or the window's cleanup."""
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        """Is called when the processing time has reached a timer registered for ``time``."""
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Tells whether the trigger works with merging windows; then it needs ``on_merge``."""
        return False

    def on_merge(self, window: Any, ctx: Any) -> None:
        """Is called when windows were merged into ``window``; ctx also has ``merge_partitioned_state(descriptor)``."""
        raise NotImplementedError(f"{type(self).__name__} cannot merge")

    def clear(self, window: Any, ctx: Any) -> None:
        """Is called when the window goes: deletes the trigger's timers and state."""


def truncated(time: int, interval: int) -> int:
    """Returns the multiple of ``interval`` next to ``time`` in the direction of 0."""
    return time - (time % interval if time >= 0 else -(-time % interval))


CONTINUE, FIRE = TriggerResult.CONTINUE, TriggerResult.FIRE


@dataclass(frozen=True)
class EventTimeTrigger(Trigger):
    """Fires when the watermark passes the window's end, then for every late element.

    Source: Flink's EventTimeTrigger.
    """

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        return CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return FIRE if time == window.max_timestamp() else CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Any) -> None:
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: Any, ctx: Any) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())

    def __str__(self) -> str:
        return "when the watermark passes the end"


@dataclass(frozen=True)
class ProcessingTimeTrigger(Trigger):
    """Fires when the processing time passes the window's end. Source: Flink's ProcessingTimeTrigger."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        ctx.register_processing_time_timer(window.max_timestamp())
        return CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Any) -> None:
        if window.max_timestamp() > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(window.max_timestamp())

    def clear(self, window: Any, ctx: Any) -> None:
        ctx.delete_processing_time_timer(window.max_timestamp())

    def __str__(self) -> str:
        return "when the processing time passes the end"


@dataclass(frozen=True)
class NeverTrigger(Trigger):
    """Never fires. Source: the default trigger of Flink's GlobalWindows."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        return CONTINUE

    def __str__(self) -> str:
        return "never"


_COUNT = ReducingStateDescriptor("count", add)


@dataclass(frozen=True)
class CountTrigger(Trigger):
    """Fires when ``n`` elements have come since it fired last. What stays below n at the end is not fired.

    Source: Flink's CountTrigger.
    """

    n: int

    def __post_init__(self) -> None:
        if isinstance(self.n, bool) or not isinstance(self.n, int) or self.n < 0:
            raise SpecError(f"{type(self).__name__}: n must be an int of at least 0, got {self.n!r}")
        if self.n >= 2**63:
            raise SpecError(f"{type(self).__name__}: n must be below 2**63, got {self.n}")

    @classmethod
    def of(cls, n: int) -> Self:
        """Returns a trigger for every ``n`` elements; 0 means every element. Raises SpecError for no int64 >= 0."""
        return cls(n)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        count = ctx.get_partitioned_state(_COUNT)
        count.add(1)
        if count.get() >= self.n:
            count.clear()
            return FIRE
        return CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Any) -> None:
        ctx.merge_partitioned_state(_COUNT)

    def clear(self, window: Any, ctx: Any) -> None:
        ctx.get_partitioned_state(_COUNT).clear()

    def __str__(self) -> str:
        return f"every {self.n} elements"


_FIRE_TIME = ReducingStateDescriptor("fire-time", min)


@dataclass(frozen=True)
class _Continuous(Trigger):
    interval_ms: int

    def __post_init__(self) -> None:
        ms = self.interval_ms
        if isinstance(ms, bool) or not isinstance(ms, int) or ms < 1:
            raise SpecError(f"{type(self).__name__}: interval must be at least 1 ms, got {ms!r}")

    @classmethod
    def of(cls, interval: Duration) -> Self:
        """Returns a trigger for every ``interval``. Raises SpecError below 1 ms."""
        return cls(to_ms(interval, argument=f"{cls.__name__}: interval"))


@dataclass(frozen=True)
class ContinuousEventTimeTrigger(_Continuous):
    """Fires whenever the watermark passes a multiple of ``interval``, at the window's end, and for late elements.

    Multiples count from the epoch. Source: Flink's ContinuousEventTimeTrigger.
    """

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        if ctx.get_partitioned_state(_FIRE_TIME).get() is None:
            self._next(truncated(timestamp, self.interval_ms), window, ctx)
        return CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        if time == window.max_timestamp():
            return FIRE
        state = ctx.get_partitioned_state(_FIRE_TIME)
        if state.get() == time:
            state.clear()
            self._next(time, window, ctx)
            return FIRE
        return CONTINUE

    def _next(self, time: int, window: Any, ctx: Any) -> None:
        upcoming = min(time + self.interval_ms, window.max_timestamp())
        ctx.get_partitioned_state(_FIRE_TIME).add(upcoming)
        ctx.register_event_time_timer(upcoming)

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Any) -> None:
        ctx.merge_partitioned_state(_FIRE_TIME)
        upcoming = ctx.get_partitioned_state(_FIRE_TIME).get()
        if upcoming is not None:
            ctx.register_event_time_timer(upcoming)

    def clear(self, window: Any, ctx: Any) -> None:
        state = ctx.get_partitioned_state(_FIRE_TIME)
        if state.get() is not None:
            ctx.delete_event_time_timer(state.get())
            state.clear()

    def __str__(self) -> str:
        return f"every {format_ms(self.interval_ms)} of event time and at the end"


@dataclass(frozen=True)
class ContinuousProcessingTimeTrigger(_Continuous):
    """Fires whenever the processing time passes a multiple of ``interval``, up to the window's end.

    Source: Flink's ContinuousProcessingTimeTrigger.
    """

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        if ctx.get_partitioned_state(_FIRE_TIME).get() is None:
            self._next(truncated(ctx.get_current_processing_time(), self.interval_ms), window, ctx)
        return CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        if time == window.max_timestamp():
            return FIRE
        state = ctx.get_partitioned_state(_FIRE_TIME)
        if state.get() == time:
            state.clear()
            self._next(time, window, ctx)
            return FIRE
        return CONTINUE

    def _next(self, time: int, window: Any, ctx: Any) -> None:
        upcoming = min(time + self.interval_ms, window.max_timestamp())
        ctx.get_partitioned_state(_FIRE_TIME).add(upcoming)
        ctx.register_processing_time_timer(upcoming)

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Any) -> None:
        ctx.merge_partitioned_state(_FIRE_TIME)
        upcoming = ctx.get_partitioned_state(_FIRE_TIME).get()
        if upcoming is not None:
            ctx.register_processing_time_timer(upcoming)

    def clear(self, window: Any, ctx: Any) -> None:
        state = ctx.get_partitioned_state(_FIRE_TIME)
        if state.get() is not None:
            ctx.delete_processing_time_timer(state.get())
            state.clear()

    def __str__(self) -> str:
        return f"every {format_ms(self.interval_ms)} of processing time"


_LAST = ValueStateDescriptor("last-element")


@dataclass(frozen=True)
class DeltaTrigger(Trigger):
    """Fires when an element is more than ``threshold`` away from the one that fired last (or the first).

    It cannot merge. Source: Flink's DeltaTrigger.
    """

    threshold: float
    delta: Callable[[Any, Any], float]

    def __post_init__(self) -> None:
        check_delta(type(self).__name__, self.threshold, self.delta)

    @classmethod
    def of(cls, threshold: float, delta: Callable[[Any, Any], float]) -> Self:
        """Returns a trigger for ``delta(last, element) > threshold``; delta: a callable of two rows."""
        return cls(threshold, delta)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        last = ctx.get_partitioned_state(_LAST)
        if last.value() is None:
            last.update(element)
        elif self.delta(last.value(), element) > self.threshold:
            last.update(element)
            return FIRE
        return CONTINUE

    def clear(self, window: Any, ctx: Any) -> None:
        ctx.get_partitioned_state(_LAST).clear()

    def __str__(self) -> str:
        return f"when an element differs by more than {self.threshold}"

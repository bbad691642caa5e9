"""Triggers made of other triggers: purging, with a timeout, any of several, all of several, around the watermark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from fastwin.duration import Duration, format_ms, to_ms
from fastwin.errors import SpecError
from fastwin.state import ValueStateDescriptor
from fastwin.triggers import Trigger, TriggerResult

__all__ = [
    "AfterWatermark",
    "AllOf",
    "AnyOf",
    "ProcessingTimeoutTrigger",
    "PurgingTrigger",
    "after_watermark",
    "all_of",
    "any_of",
]


def _trigger(owner: str, name: str, value: Any) -> Trigger:
    if not isinstance(value, Trigger):
        raise SpecError(f"{owner}: {name} must be a trigger, got {value!r}")
    return value


@dataclass(frozen=True)
class PurgingTrigger(Trigger):
    """Purges the window whenever another trigger fires it. Source: Flink's PurgingTrigger."""

    trigger: Trigger

    @classmethod
    def of(cls, trigger: Trigger) -> Self:
        """Returns a trigger that fires as ``trigger`` does, and purges."""
        return cls(_trigger(cls.__name__, "trigger", trigger))

    @staticmethod
    def _purging(result: TriggerResult) -> TriggerResult:
        return TriggerResult.FIRE_AND_PURGE if result.is_fire else result

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        return self._purging(self.trigger.on_element(element, timestamp, window, ctx))

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return self._purging(self.trigger.on_event_time(time, window, ctx))

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return self._purging(self.trigger.on_processing_time(time, window, ctx))

    def can_merge(self) -> bool:
        return self.trigger.can_merge()

    def on_merge(self, window: Any, ctx: Any) -> None:
        self.trigger.on_merge(window, ctx)

    def clear(self, window: Any, ctx: Any) -> None:
        self.trigger.clear(window, ctx)

    def __str__(self) -> str:
        return f"{self.trigger}, purging"


_TIMEOUT = ValueStateDescriptor("timeout")


@dataclass(frozen=True)
class ProcessingTimeoutTrigger(Trigger):
    """Fires as another trigger does, and when processing time has moved on by ``timeout`` since the first element.

    Source: Flink's ProcessingTimeoutTrigger; like there, any timer of the other trigger counts as a timeout.
    """

    trigger: Trigger
    timeout_ms: int
    reset_timer_on_new_record: bool = False
    should_clear_on_timeout: bool = True

    @classmethod
    def of(
        cls,
        trigger: Trigger,
        timeout: Duration,
        reset_timer_on_new_record: bool = False,
        should_clear_on_timeout: bool = True,
    ) -> Self:
        """Returns a trigger with a timeout.

        reset_timer_on_new_record: every element sets the timeout anew. should_clear_on_timeout: a timeout also
            clears the other trigger. Raises SpecError for a timeout below 1 ms.
        """
        ms = to_ms(timeout, argument=f"{cls.__name__}: timeout")
        if ms < 1:
            raise SpecError(f"{cls.__name__}: timeout must be at least 1 ms, got {ms} ms")
        return cls(_trigger(cls.__name__, "trigger", trigger), ms, reset_timer_on_new_record, should_clear_on_timeout)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        result = self.trigger.on_element(element, timestamp, window, ctx)
        if result.is_fire:
            self.clear(window, ctx)
            return result
        state = ctx.get_partitioned_state(_TIMEOUT)
        timeout = state.value()
        if timeout is not None and self.reset_timer_on_new_record:
            ctx.delete_processing_time_timer(timeout)
            timeout = None
        if timeout is None:
            timeout = ctx.get_current_processing_time() + self.timeout_ms
            state.update(timeout)
            ctx.register_processing_time_timer(timeout)
        return result

    def _timed_out(self, result: TriggerResult, window: Any, ctx: Any) -> TriggerResult:
        if self.should_clear_on_timeout:
            self.clear(window, ctx)
        return TriggerResult.FIRE_AND_PURGE if result.is_purge else TriggerResult.FIRE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return self._timed_out(self.trigger.on_event_time(time, window, ctx), window, ctx)

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return self._timed_out(self.trigger.on_processing_time(time, window, ctx), window, ctx)

    def clear(self, window: Any, ctx: Any) -> None:
        state = ctx.get_partitioned_state(_TIMEOUT)
        if state.value() is not None:
            ctx.delete_processing_time_timer(state.value())
            state.clear()
        self.trigger.clear(window, ctx)

    def __str__(self) -> str:
        return f"{self.trigger}, or after {format_ms(self.timeout_ms)} of processing time"


@dataclass(frozen=True)
class _Several(Trigger):
    triggers: tuple[Trigger, ...]

    def can_merge(self) -> bool:
        return all(trigger.can_merge() for trigger in self.triggers)


@dataclass(frozen=True)
class AnyOf(_Several):
    """Fires when any of its triggers does; each keeps its own count and timers. See ``any_of``."""

    def __str__(self) -> str:
        return f"any of ({'; '.join(map(str, self.triggers))})"


@dataclass(frozen=True)
class AllOf(_Several):
    """Fires when each of its triggers has fired since it fired last. See ``all_of``."""

    def __str__(self) -> str:
        return f"all of ({'; '.join(map(str, self.triggers))})"


@dataclass(frozen=True)
class AfterWatermark(Trigger):
    """Fires at the window's end, with triggers of their own before and after it. See ``after_watermark``."""

    early: Trigger | None = None
    late: Trigger | None = None

    def can_merge(self) -> bool:
        return all(trigger.can_merge() for trigger in (self.early, self.late) if trigger is not None)

    def __str__(self) -> str:
        early = f", early {self.early}" if self.early else ""
        return f"when the watermark passes the end{early}, late {self.late or 'for every element'}"


def _several(name: str, triggers: tuple[Trigger, ...]) -> tuple[Trigger, ...]:
    if not triggers:
        raise SpecError(f"{name}: at least one trigger is needed, got none")
    return tuple(_trigger(name, f"argument {i + 1}", trigger) for i, trigger in enumerate(triggers))


def any_of(*triggers: Trigger) -> AnyOf:
    """Returns a trigger that fires when any of ``triggers`` does, and purges when that one does.

    Raises SpecError for none, or for what is no trigger.
    """
    return AnyOf(_several("any_of", triggers))


def all_of(*triggers: Trigger) -> AllOf:
    """Returns a trigger that fires when each of ``triggers`` has fired since it fired last.

    It purges if one of them had asked for it. Raises SpecError for none, or for what is no trigger.
    """
    return AllOf(_several("all_of", triggers))


def after_watermark(*, early: Trigger | None = None, late: Trigger | None = None) -> AfterWatermark:
    """Returns a trigger that fires when the watermark passes the window's end.

    early: fires before that; None: nothing does. late: fires afterwards, within the allowed lateness; None:
        every late element does. Both count anew in their part of the window's life.
    Raises SpecError for what is no trigger.
    """
    for name, trigger in (("early", early), ("late", late)):
        if trigger is not None:
            _trigger("after_watermark", name, trigger)
    return AfterWatermark(early, late)

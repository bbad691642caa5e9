"""Triggers made of other triggers: purging, with a timeout, any of several, all of several, around the watermark."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from fastwin.duration import Duration, format_ms, to_ms
from fastwin.errors import SpecError
from fastwin.state import ReducingStateDescriptor, StateDescriptor, ValueStateDescriptor
from fastwin.triggers import NeverTrigger, Trigger, TriggerResult

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


_RESULTS = {(result.is_fire, result.is_purge): result for result in TriggerResult}


def _trigger(owner: str, name: str, value: Any) -> Trigger:
    if not isinstance(value, Trigger):
        raise SpecError(f"{owner}: {name} must be a trigger, got {value!r}")
    return value


@dataclass(frozen=True)
class PurgingTrigger(Trigger):
    """Purges the window whenever another trigger fires it. Source: Flink's PurgingTrigger."""

    trigger: Trigger

    def __post_init__(self) -> None:
        _trigger(type(self).__name__, "trigger", self.trigger)

    @classmethod
    def of(cls, trigger: Trigger) -> Self:
        """Returns a trigger that fires as ``trigger`` does, and purges. Raises SpecError for what is no trigger."""
        return cls(trigger)

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

    def __post_init__(self) -> None:
        name, ms = type(self).__name__, self.timeout_ms
        _trigger(name, "trigger", self.trigger)
        if isinstance(ms, bool) or not isinstance(ms, int) or ms < 1:
            raise SpecError(f"{name}: timeout must be at least 1 ms, got {ms!r}")

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
        return cls(trigger, ms, reset_timer_on_new_record, should_clear_on_timeout)

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


class EveryElementTrigger(Trigger):
    """Fires for every element."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Any) -> None:
        pass


class _Part:
    """What one of several triggers is handed: the context of them all, with state under names of its own."""

    def __init__(self, ctx: Any, part: int) -> None:
        self._ctx = ctx
        self._part = part

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def get_partitioned_state(self, descriptor: StateDescriptor) -> Any:
        return self._ctx.get_partitioned_state(self._own(descriptor))

    def merge_partitioned_state(self, descriptor: StateDescriptor) -> None:
        self._ctx.merge_partitioned_state(self._own(descriptor))

    def _own(self, descriptor: StateDescriptor) -> StateDescriptor:
        return replace(descriptor, name=f"{self._part}/{descriptor.name}")


class _Combined(Trigger):
    """Several triggers, asked one after the other."""

    @property
    def _inner(self) -> tuple[Trigger, ...]:
        raise NotImplementedError

    def _parts(self, ctx: Any) -> list[tuple[Trigger, Any]]:
        return [(trigger, _Part(ctx, i)) for i, trigger in enumerate(self._inner)]

    def can_merge(self) -> bool:
        return all(trigger.can_merge() for trigger in self._inner)

    def on_merge(self, window: Any, ctx: Any) -> None:
        for trigger, part in self._parts(ctx):
            trigger.on_merge(window, part)

    def clear(self, window: Any, ctx: Any) -> None:
        for trigger, part in self._parts(ctx):
            trigger.clear(window, part)


@dataclass(frozen=True)
class _Several(_Combined):
    triggers: tuple[Trigger, ...]

    @property
    def _inner(self) -> tuple[Trigger, ...]:
        return self.triggers

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        return self._joined(ctx, [t.on_element(element, timestamp, window, part) for t, part in self._parts(ctx)])

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return self._joined(ctx, [t.on_event_time(time, window, part) for t, part in self._parts(ctx)])

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return self._joined(ctx, [t.on_processing_time(time, window, part) for t, part in self._parts(ctx)])

    def _joined(self, ctx: Any, results: list[TriggerResult]) -> TriggerResult:
        raise NotImplementedError


@dataclass(frozen=True)
class AnyOf(_Several):
    """Fires when any of its triggers does; each keeps its own count and timers. See ``any_of``."""

    def _joined(self, ctx: Any, results: list[TriggerResult]) -> TriggerResult:
        return _RESULTS[any(r.is_fire for r in results), any(r.is_purge for r in results)]

    def __str__(self) -> str:
        return f"any of ({'; '.join(map(str, self.triggers))})"


_FIRED = ReducingStateDescriptor("all-of", lambda a, b: tuple(max(pair) for pair in zip(a, b, strict=True)))


@dataclass(frozen=True)
class AllOf(_Several):
    """Fires when each of its triggers has fired since it fired last. See ``all_of``."""

    def _joined(self, ctx: Any, results: list[TriggerResult]) -> TriggerResult:
        # By trigger: 0 has not fired, 1 has, 2 has and asked to purge. To purge alone is done at once.
        fired = ctx.get_partitioned_state(_FIRED)
        if any(r.is_fire for r in results):
            fired.add(tuple(r.is_fire + (r.is_fire and r.is_purge) for r in results))
        purge = any(r.is_purge and not r.is_fire for r in results)
        so_far = fired.get()
        if so_far is None or not all(so_far):
            return _RESULTS[False, purge]
        fired.clear()
        return _RESULTS[True, purge or 2 in so_far]

    def on_merge(self, window: Any, ctx: Any) -> None:
        ctx.merge_partitioned_state(_FIRED)
        super().on_merge(window, ctx)

    def clear(self, window: Any, ctx: Any) -> None:
        ctx.get_partitioned_state(_FIRED).clear()
        super().clear(window, ctx)

    def __str__(self) -> str:
        return f"all of ({'; '.join(map(str, self.triggers))})"


_PASSED = ReducingStateDescriptor("after-watermark", lambda a, b: a or b)


@dataclass(frozen=True)
class AfterWatermark(_Combined):
    """Fires at the window's end, with triggers of their own before and after it. See ``after_watermark``."""

    early: Trigger | None = None
    late: Trigger | None = None

    @property
    def _inner(self) -> tuple[Trigger, ...]:
        return self.early or NeverTrigger(), self.late or EveryElementTrigger()

    def _now(self, ctx: Any) -> tuple[Trigger, Any]:
        return self._parts(ctx)[ctx.get_partitioned_state(_PASSED).get() or 0]

    def _pass(self, window: Any, ctx: Any) -> None:
        ctx.get_partitioned_state(_PASSED).add(1)
        early, part = self._parts(ctx)[0]
        early.clear(window, part)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())
        elif not ctx.get_partitioned_state(_PASSED).get():
            self._pass(window, ctx)
        trigger, part = self._now(ctx)
        return trigger.on_element(element, timestamp, window, part)

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        if time == window.max_timestamp() and not ctx.get_partitioned_state(_PASSED).get():
            self._pass(window, ctx)
            return TriggerResult.FIRE
        trigger, part = self._now(ctx)
        return trigger.on_event_time(time, window, part)

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        trigger, part = self._now(ctx)
        return trigger.on_processing_time(time, window, part)

    def on_merge(self, window: Any, ctx: Any) -> None:
        ctx.merge_partitioned_state(_PASSED)
        ctx.get_partitioned_state(_PASSED).clear()
        super().on_merge(window, ctx)
        passed = window.max_timestamp() <= ctx.get_current_watermark()
        if passed:
            ctx.get_partitioned_state(_PASSED).add(1)
        else:
            ctx.register_event_time_timer(window.max_timestamp())
        over, part = self._parts(ctx)[0 if passed else 1]
        over.clear(window, part)

    def clear(self, window: Any, ctx: Any) -> None:
        ctx.get_partitioned_state(_PASSED).clear()
        ctx.delete_event_time_timer(window.max_timestamp())
        super().clear(window, ctx)

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

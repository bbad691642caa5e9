"""Window assigners: which windows an element belongs to. Flink's names, and their parameters checked as Flink does.

The session assigners are in ``fastwin.sessionwindows``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from fastwin.duration import MAX_DURATION_MS, Duration, format_ms, to_ms
from fastwin.errors import SpecError
from fastwin.triggers import EventTimeTrigger, NeverTrigger, ProcessingTimeTrigger, Trigger
from fastwin.windows import GlobalWindow, TimeWindow, merge_time_windows

if TYPE_CHECKING:
    from fastwin.windows import GlobalWindow as _Global

__all__ = [
    "CumulativeEventTimeWindows",
    "CumulativeProcessingTimeWindows",
    "GlobalWindows",
    "MergingWindowAssigner",
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
    "WindowAssigner",
    "check_ms",
]


class WindowAssigner:
    """Decides the windows of an element. Subclass it and override ``assign_windows``.

    Source: Flink's WindowAssigner.
    """

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> Iterable[TimeWindow | _Global]:
        """Returns the windows of an element: ``TimeWindow(start, end)``, any number up to 10,000.

        element: a read-only row. timestamp: ms. context: has ``get_current_processing_time()``.
        """
        raise NotImplementedError(f"{type(self).__name__} needs assign_windows(self, element, timestamp, context)")

    def get_default_trigger(self) -> Trigger:
        """Returns the trigger that a spec without one gets."""
        return EventTimeTrigger() if self.is_event_time() else ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        """Tells whether windows pass with the watermark; else, with the processing time."""
        return True


class MergingWindowAssigner(WindowAssigner):
    """An assigner whose windows can merge, such as sessions. Subclass it.

    Source: Flink's MergingWindowAssigner.
    """

    def merge_windows(
        self, windows: Iterable[TimeWindow], callback: Callable[[list[TimeWindow], TimeWindow], None]
    ) -> None:
        """Calls ``callback(merged, result)`` for each group of windows that becomes one.

        By default windows that overlap or touch are merged to the one that covers them.
        """
        merge_time_windows(windows, callback)


def check_ms(owner: str, *, maker: str = "of", least: int = 1, **durations: int) -> None:
    """Raises SpecError for a duration that is no int of milliseconds, below ``least``, or too long.

    owner: whose argument it is; maker: its method that takes other forms of durations.
    """
    for name, ms in durations.items():
        if not isinstance(ms, int) or isinstance(ms, bool):
            raise SpecError(f"{owner}: {name} must be an int of milliseconds, got {ms!r}; {owner}.{maker} takes more")
        if ms < least:
            raise SpecError(f"{owner}: {name} must be at least {least} ms, got {name}={ms}")
        if ms > MAX_DURATION_MS:
            raise SpecError(f"{owner}: {name} must be within {MAX_DURATION_MS} ms, got {name}={ms}")


class _EventTime:
    """Windows over the elements' own timestamps."""

    kind: ClassVar[str] = ""

    def is_event_time(self) -> bool:
        return True

    @staticmethod
    def _time(timestamp: int, context: Any) -> int:
        return timestamp


class _ProcessingTime:
    """Windows over the clock at the arrival of elements."""

    kind: ClassVar[str] = " of processing time"

    def is_event_time(self) -> bool:
        return False

    @staticmethod
    def _time(timestamp: int, context: Any) -> int:
        return context.get_current_processing_time()


@dataclass(frozen=True)
class _Sliding(WindowAssigner):
    size_ms: int
    slide_ms: int
    offset_ms: int = 0

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_ms(owner, size=self.size_ms, slide=self.slide_ms)
        check_ms(owner, least=-MAX_DURATION_MS, offset=self.offset_ms)
        if abs(self.offset_ms) >= self.slide_ms:
            raise SpecError(f"{owner}: |offset| must be below slide, got offset={self.offset_ms} slide={self.slide_ms}")

    @classmethod
    def of(cls, size: Duration, slide: Duration, offset: Duration = 0) -> Self:
        """Returns windows of ``size``, one starting every ``slide``, shifted from the epoch by ``offset``.

        All durations: text such as ``"24 hours"``, a timedelta, or int milliseconds. Raises SpecError
        if size or slide is below 1 ms or ``|offset| >= slide``.

        >>> SlidingEventTimeWindows.of("24 hours", "3 minutes")
        SlidingEventTimeWindows(size_ms=86400000, slide_ms=180000, offset_ms=0)
        """
        name = cls.__name__
        return cls(
            to_ms(size, argument=f"{name}: size"),
            to_ms(slide, argument=f"{name}: slide"),
            to_ms(offset, argument=f"{name}: offset"),
        )

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[TimeWindow]:
        time = self._time(timestamp, context)  # type: ignore[attr-defined]
        last = time - (time - self.offset_ms) % self.slide_ms
        return [TimeWindow(start, start + self.size_ms) for start in range(last, time - self.size_ms, -self.slide_ms)]

    def __str__(self) -> str:
        offset = f", offset {format_ms(self.offset_ms)}" if self.offset_ms else ""
        return f"sliding windows of {format_ms(self.size_ms)} every {format_ms(self.slide_ms)}{offset}{self.kind}"  # type: ignore[attr-defined]


@dataclass(frozen=True)
class SlidingEventTimeWindows(_EventTime, _Sliding):
    """Windows ``[k * slide + offset, k * slide + offset + size)`` for every integer k. Use ``of``.

    Windows overlap if slide < size, and leave gaps, whose elements no window takes, if slide > size.
    Source: Flink's SlidingEventTimeWindows.
    """


@dataclass(frozen=True)
class SlidingProcessingTimeWindows(_ProcessingTime, _Sliding):
    """The same as SlidingEventTimeWindows, over the clock at the arrival.

    Source: Flink's SlidingProcessingTimeWindows.
    """


@dataclass(frozen=True)
class _Tumbling(WindowAssigner):
    size_ms: int
    offset_ms: int = 0

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_ms(owner, size=self.size_ms)
        check_ms(owner, least=-MAX_DURATION_MS, offset=self.offset_ms)
        if abs(self.offset_ms) >= self.size_ms:
            raise SpecError(f"{owner}: |offset| must be below size, got offset={self.offset_ms} size={self.size_ms}")

    @classmethod
    def of(cls, size: Duration, offset: Duration = 0) -> Self:
        """Returns windows of ``size``, shifted from the epoch by ``offset``.

        Both: text such as ``"1 hour"``, a timedelta, or int milliseconds. Raises SpecError if size is
        below 1 ms or ``|offset| >= size``.

        >>> TumblingEventTimeWindows.of("1 hour", offset="15 minutes")
        TumblingEventTimeWindows(size_ms=3600000, offset_ms=900000)
        """
        name = cls.__name__
        return cls(to_ms(size, argument=f"{name}: size"), to_ms(offset, argument=f"{name}: offset"))

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[TimeWindow]:
        time = self._time(timestamp, context)  # type: ignore[attr-defined]
        start = time - (time - self.offset_ms) % self.size_ms
        return [TimeWindow(start, start + self.size_ms)]

    def __str__(self) -> str:
        offset = f", offset {format_ms(self.offset_ms)}" if self.offset_ms else ""
        return f"tumbling windows of {format_ms(self.size_ms)}{offset}{self.kind}"  # type: ignore[attr-defined]


@dataclass(frozen=True)
class TumblingEventTimeWindows(_EventTime, _Tumbling):
    """Windows ``[k * size + offset, (k + 1) * size + offset)`` for every integer k. Use ``of``.

    Source: Flink's TumblingEventTimeWindows.
    """


@dataclass(frozen=True)
class TumblingProcessingTimeWindows(_ProcessingTime, _Tumbling):
    """The same as TumblingEventTimeWindows, over the clock at the arrival.

    Source: Flink's TumblingProcessingTimeWindows.
    """


@dataclass(frozen=True)
class _Cumulative(WindowAssigner):
    max_size_ms: int
    step_ms: int
    offset_ms: int = 0

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_ms(owner, max_size=self.max_size_ms, step=self.step_ms)
        check_ms(owner, least=-MAX_DURATION_MS, offset=self.offset_ms)
        if self.max_size_ms % self.step_ms:
            raise SpecError(
                f"{owner}: max_size must be a multiple of step, got max_size={self.max_size_ms} step={self.step_ms}"
            )
        if abs(self.offset_ms) >= self.max_size_ms:
            raise SpecError(
                f"{owner}: |offset| must be below max_size, got offset={self.offset_ms} max_size={self.max_size_ms}"
            )

    @classmethod
    def of(cls, max_size: Duration, step: Duration, offset: Duration = 0) -> Self:
        """Returns windows that grow by ``step`` up to ``max_size`` and then start anew.

        All durations: text such as ``"1 day"``, a timedelta, or int milliseconds. Raises SpecError unless max_size
        is a multiple of step, both at least 1 ms, and ``|offset| < max_size``.

        >>> CumulativeEventTimeWindows.of("1 day", "1 hour")
        CumulativeEventTimeWindows(max_size_ms=86400000, step_ms=3600000, offset_ms=0)
        """
        name = cls.__name__
        return cls(
            to_ms(max_size, argument=f"{name}: max_size"),
            to_ms(step, argument=f"{name}: step"),
            to_ms(offset, argument=f"{name}: offset"),
        )

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[TimeWindow]:
        time = self._time(timestamp, context)  # type: ignore[attr-defined]
        start = time - (time - self.offset_ms) % self.max_size_ms
        first = start + ((time - start) // self.step_ms + 1) * self.step_ms
        return [TimeWindow(start, end) for end in range(first, start + self.max_size_ms + 1, self.step_ms)]

    def __str__(self) -> str:
        offset = f", offset {format_ms(self.offset_ms)}" if self.offset_ms else ""
        return f"cumulative windows of {format_ms(self.max_size_ms)} by {format_ms(self.step_ms)}{offset}{self.kind}"  # type: ignore[attr-defined]


@dataclass(frozen=True)
class CumulativeEventTimeWindows(_EventTime, _Cumulative):
    """Windows ``[k * max_size + offset, k * max_size + offset + j * step)``, j from 1 to max_size / step. Use ``of``.

    Source: the CUMULATE function of Flink SQL.
    """


@dataclass(frozen=True)
class CumulativeProcessingTimeWindows(_ProcessingTime, _Cumulative):
    """The same as CumulativeEventTimeWindows, over the clock at the arrival."""


@dataclass(frozen=True)
class GlobalWindows(WindowAssigner):
    """One window for all of time. Without a trigger of your own it never fires. Use ``create``.

    Source: Flink's GlobalWindows.
    """

    @classmethod
    def create(cls) -> Self:
        """Returns the assigner."""
        return cls()

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[GlobalWindow]:
        return [GlobalWindow()]

    def get_default_trigger(self) -> Trigger:
        return NeverTrigger()

    def is_event_time(self) -> bool:
        return False

    def __str__(self) -> str:
        return "one global window"

"""Sliding windows: of one size, one starting every slide, so that an element may be in many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from fastwin.times import Duration, format_ms, to_ms
from fastwin.windows.assigner import (
    EventTimeWindows,
    ProcessingTimeWindows,
    WindowAssigner,
    check_ms,
    check_offset,
    format_offset,
)
from fastwin.windows.timewindow import TimeWindow

__all__ = ["SlidingEventTimeWindows", "SlidingProcessingTimeWindows"]


@dataclass(frozen=True)
class _Sliding(WindowAssigner):
    size_ms: int
    slide_ms: int
    offset_ms: int = 0

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_ms(owner, size=self.size_ms, slide=self.slide_ms)
        check_offset(owner, self.offset_ms, slide=self.slide_ms)

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
        shape = f"{format_ms(self.size_ms)} every {format_ms(self.slide_ms)}{format_offset(self.offset_ms)}"
        return f"sliding windows of {shape}{self.kind}"  # type: ignore[attr-defined]


@dataclass(frozen=True)
class SlidingEventTimeWindows(EventTimeWindows, _Sliding):
    """Windows ``[k * slide + offset, k * slide + offset + size)`` for every integer k. Use ``of``.

    Windows overlap if slide < size, and leave gaps, whose elements no window takes, if slide > size.
    Source: Flink's SlidingEventTimeWindows.
    """


@dataclass(frozen=True)
class SlidingProcessingTimeWindows(ProcessingTimeWindows, _Sliding):
    """The same as SlidingEventTimeWindows, over the clock at the arrival.

    Source: Flink's SlidingProcessingTimeWindows.
    """

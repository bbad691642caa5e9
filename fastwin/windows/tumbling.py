"""Tumbling windows: of one size, side by side, so that an element is in exactly one."""

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

__all__ = ["TumblingEventTimeWindows", "TumblingProcessingTimeWindows"]


@dataclass(frozen=True)
class _Tumbling(WindowAssigner):
    size_ms: int
    offset_ms: int = 0

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_ms(owner, size=self.size_ms)
        check_offset(owner, self.offset_ms, size=self.size_ms)

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
        return f"tumbling windows of {format_ms(self.size_ms)}{format_offset(self.offset_ms)}{self.kind}"  # type: ignore[attr-defined]


@dataclass(frozen=True)
class TumblingEventTimeWindows(EventTimeWindows, _Tumbling):
    """Windows ``[k * size + offset, (k + 1) * size + offset)`` for every integer k. Use ``of``.

    Source: Flink's TumblingEventTimeWindows.
    """


@dataclass(frozen=True)
class TumblingProcessingTimeWindows(ProcessingTimeWindows, _Tumbling):
    """The same as TumblingEventTimeWindows, over the clock at the arrival.

    Source: Flink's TumblingProcessingTimeWindows.
    """

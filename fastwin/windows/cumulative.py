"""Cumulative windows: they grow by a step up to a largest size and then start anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from fastwin.errors import SpecError
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

__all__ = ["CumulativeEventTimeWindows", "CumulativeProcessingTimeWindows"]


@dataclass(frozen=True)
class _Cumulative(WindowAssigner):
    max_size_ms: int
    step_ms: int
    offset_ms: int = 0

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_ms(owner, max_size=self.max_size_ms, step=self.step_ms)
        if self.max_size_ms % self.step_ms:
            raise SpecError(
                f"{owner}: max_size must be a multiple of step, got max_size={self.max_size_ms} step={self.step_ms}"
            )
        check_offset(owner, self.offset_ms, max_size=self.max_size_ms)

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
        return [TimeWindow(start, end) for end in range(start + self.max_size_ms, time, -self.step_ms)]

    def __str__(self) -> str:
        shape = f"{format_ms(self.max_size_ms)} by {format_ms(self.step_ms)}{format_offset(self.offset_ms)}"
        return f"cumulative windows of {shape}{self.kind}"  # type: ignore[attr-defined]


@dataclass(frozen=True)
class CumulativeEventTimeWindows(EventTimeWindows, _Cumulative):
    """Windows ``[k * max_size + offset, k * max_size + offset + j * step)``, j from 1 to max_size / step. Use ``of``.

    Source: the CUMULATE function of Flink SQL.
    """


@dataclass(frozen=True)
class CumulativeProcessingTimeWindows(ProcessingTimeWindows, _Cumulative):
    """The same as CumulativeEventTimeWindows, over the clock at the arrival."""

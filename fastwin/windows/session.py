"""Session windows: elements of a key belong together until a gap passes without one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from fastwin.errors import SpecError
from fastwin.times import Duration, format_ms, to_ms
from fastwin.windows.assigner import EventTimeWindows, MergingWindowAssigner, ProcessingTimeWindows, check_ms
from fastwin.windows.timewindow import TimeWindow

__all__ = [
    "DynamicEventTimeSessionWindows",
    "DynamicProcessingTimeSessionWindows",
    "EventTimeSessionWindows",
    "ProcessingTimeSessionWindows",
]

Gap = str | Callable[[Any], int]


def check_gap(owner: str, gap: Any) -> int:
    """Returns a dynamic gap in ms; raises SpecError unless it is a duration above 0."""
    if gap is None:
        raise SpecError(f"{owner}: gap must be at least 1 ms, got None")
    ms = to_ms(gap, argument=f"{owner}: gap")
    check_ms(owner, maker="with_dynamic_gap", gap=ms)
    return ms


@dataclass(frozen=True)
class _Session(MergingWindowAssigner):
    gap_ms: int

    def __post_init__(self) -> None:
        check_ms(type(self).__name__, maker="with_gap", gap=self.gap_ms)

    @classmethod
    def with_gap(cls, gap: Duration) -> Self:
        """Returns sessions that end when ``gap`` has passed without an element.

        gap: text such as ``"30 minutes"``, a timedelta, or int milliseconds. Raises SpecError below 1 ms.

        >>> EventTimeSessionWindows.with_gap("30 minutes")
        EventTimeSessionWindows(gap_ms=1800000)
        """
        return cls(to_ms(gap, argument=f"{cls.__name__}: gap"))

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[TimeWindow]:
        start = self._time(timestamp, context)  # type: ignore[attr-defined]
        return [TimeWindow(start, start + self.gap_ms)]

    def __str__(self) -> str:
        return f"session windows with a gap of {format_ms(self.gap_ms)}{self.kind}"  # type: ignore[attr-defined]


@dataclass(frozen=True)
class _DynamicSession(MergingWindowAssigner):
    gap: Gap

    def __post_init__(self) -> None:
        if not callable(self.gap) and (not isinstance(self.gap, str) or not self.gap):
            raise SpecError(
                f"{type(self).__name__}: gap must be the name of a column or a function of a row, got {self.gap!r}"
            )

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[TimeWindow]:
        start = self._time(timestamp, context)  # type: ignore[attr-defined]
        owner = type(self).__name__
        if isinstance(self.gap, str):
            return [TimeWindow(start, start + check_gap(f"{owner}: column {self.gap!r}", element[self.gap]))]
        return [TimeWindow(start, start + check_gap(owner, self.gap(element)))]

    def __str__(self) -> str:
        name = self.gap if isinstance(self.gap, str) else getattr(self.gap, "__qualname__", repr(self.gap))
        return f"session windows with a gap from {name}{self.kind}"  # type: ignore[attr-defined]


@dataclass(frozen=True)
class DynamicEventTimeSessionWindows(EventTimeWindows, _DynamicSession):
    """Sessions whose elements say how long after them the session lasts; see EventTimeSessionWindows.

    Source: Flink's DynamicEventTimeSessionWindows.
    """


@dataclass(frozen=True)
class DynamicProcessingTimeSessionWindows(ProcessingTimeWindows, _DynamicSession):
    """The same over the clock at the arrival. Source: Flink's DynamicProcessingTimeSessionWindows."""


@dataclass(frozen=True)
class EventTimeSessionWindows(EventTimeWindows, _Session):
    """Sessions: elements of a key belong together until ``gap`` passes without one. Use ``with_gap``.

    An element makes the window ``[t, t + gap)``; windows that overlap or touch are merged.
    Source: Flink's EventTimeSessionWindows.
    """

    @staticmethod
    def with_dynamic_gap(gap: Gap) -> DynamicEventTimeSessionWindows:
        """Returns sessions with a gap of its own for each element.

        gap: the name of a column of milliseconds (int), durations or text such as ``"10 minutes"``, or a function of a
            row that returns a duration. A row whose column is null, below 1 ms or no duration of whole milliseconds is
            a bad one, see ``bad_rows``; a function that returns such a gap ends the call with UserFunctionError.
        """
        return DynamicEventTimeSessionWindows(gap)


@dataclass(frozen=True)
class ProcessingTimeSessionWindows(ProcessingTimeWindows, _Session):
    """The same as EventTimeSessionWindows, over the clock at the arrival.

    Source: Flink's ProcessingTimeSessionWindows.
    """

    @staticmethod
    def with_dynamic_gap(gap: Gap) -> DynamicProcessingTimeSessionWindows:
        """Returns sessions with a gap of its own for each element; see EventTimeSessionWindows."""
        return DynamicProcessingTimeSessionWindows(gap)

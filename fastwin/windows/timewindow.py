"""The windows that elements are assigned to."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from fastwin.times import MAX_TIMESTAMP
from fastwin.windows import lastms

__all__ = ["GlobalWindow", "TimeWindow", "merge_time_windows"]


class TimeWindow(NamedTuple):
    """The half-open interval ``[start, end)`` of milliseconds.

    Source: Flink's TimeWindow.
    """

    start: int
    end: int

    def max_timestamp(self) -> int:
        """Returns the largest timestamp inside the window: ``end - 1``."""
        return self.end - 1

    def intersects(self, other: "TimeWindow") -> bool:
        """Tells whether the windows overlap or touch.

        >>> TimeWindow(0, 10).intersects(TimeWindow(10, 20))
        True
        """
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: "TimeWindow") -> "TimeWindow":
        """Returns the smallest window that contains both."""
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))


TimeWindow.max_timestamp = lastms.method_of(TimeWindow)  # type: ignore[method-assign]  # what is called; the one above is read


class GlobalWindow(NamedTuple):
    """The one window of ``GlobalWindows``: all of time.

    Source: Flink's GlobalWindow.
    """

    def max_timestamp(self) -> int:
        """Returns the largest int64."""
        return MAX_TIMESTAMP


def merge_time_windows(windows: Iterable[TimeWindow], callback: Callable[[list[TimeWindow], TimeWindow], None]) -> None:
    """Finds the windows that overlap or touch, and calls ``callback(merged, result)`` for each group of several.

    Source: Flink's TimeWindow.mergeWindows. O(n log n).

    >>> merge_time_windows([TimeWindow(0, 2), TimeWindow(5, 6), TimeWindow(2, 3)], print)
    [TimeWindow(start=0, end=2), TimeWindow(start=2, end=3)] TimeWindow(start=0, end=3)
    """
    group: list[TimeWindow] = []
    cover = None
    for window in sorted(set(windows)):
        if cover is not None and cover.intersects(window):
            cover = cover.cover(window)
            group.append(window)
            continue
        if cover is not None and len(group) > 1:
            callback(group, cover)
        cover, group = window, [window]
    if cover is not None and len(group) > 1:
        callback(group, cover)

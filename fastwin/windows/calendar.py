"""Calendar windows: days, weeks, months, quarters and years as the clock of a time zone shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from fastwin.errors import SpecError
from fastwin.times import Duration, format_ms, to_ms
from fastwin.windows.assigner import EventTimeWindows, WindowAssigner
from fastwin.windows.bounds import Bounds, bounds_over, bounds_with, least_step
from fastwin.windows.localclock import time_zone_of, zone_name
from fastwin.windows.periods import DAY_MS, Offset, Period, parse_offset, parse_period
from fastwin.windows.timewindow import TimeWindow

__all__ = ["CalendarEventTimeWindows"]

_NAME = "CalendarEventTimeWindows"
# The first of a month moved by so many days is in every month.
_MOST_OFFSET_DAYS = 27


@dataclass(frozen=True)
class CalendarEventTimeWindows(EventTimeWindows, WindowAssigner):
    """Windows of days, weeks, months, quarters or years in a time zone. Use ``of``, ``sliding`` or ``cumulative``.

    shape: how windows lie. size: of a window, the largest one where they grow. every: how much later each one begins,
    or by how much they grow; a period, or ms within a day. offset: how much later than the calendar's they begin.
    """

    shape: Literal["fixed", "sliding", "cumulative"]
    size: Period
    every: Period | int
    offset: Offset
    time_zone: str

    def __post_init__(self) -> None:
        time_zone_of(self.time_zone, f"{_NAME}: time_zone")
        grid = self.size if self.shape == "cumulative" else self.every
        assert isinstance(grid, Period)
        offset = self.offset
        if grid.months:
            fits = abs(offset.months) < grid.months and abs(offset.days) <= _MOST_OFFSET_DAYS
        else:
            fits = not offset.months and abs(offset.days * DAY_MS + offset.ms) < grid.days * DAY_MS
        if not fits or abs(offset.ms) >= DAY_MS:
            limit = f"below {grid}" + (f", with at most {_MOST_OFFSET_DAYS} days" if grid.months else "")
            raise SpecError(f"{_NAME}: offset must be {limit}, got {offset}")
        if isinstance(self.every, int) and self.every < (least := least_step(self.size)):
            raise SpecError(
                f"{_NAME}: step must be at least {format_ms(least)} in windows of {self.size}, as all steps of some "
                f"years are kept in a table; got step={format_ms(self.every)}"
            )

    @classmethod
    def of(cls, size: Any, *, time_zone: str | ZoneInfo, offset: Duration = 0) -> Self:
        """Returns windows side by side, each of ``size``.

        size: text such as ``"1 day"``, ``"2 weeks"``, ``"1 month"``, ``"1 quarter"``, ``"1 year"``, or a timedelta of
            whole days. Weeks begin on Mondays. Several are counted from 1970-01-01, weeks from the Monday after it.
        time_zone: the name of the zone whose clock it goes by, such as ``"Europe/Berlin"``, or a ZoneInfo.
        offset: how much later they begin, by that clock: ``"3 months"`` for years from April, ``"6 days"`` for weeks
            from Sunday, ``"6 hours"`` for days from six in the morning. Below the size.

        A day lasts from the first moment of its date to that of the next one: 23 or 25 hours where clocks change. It
        raises SpecError for periods, zones and offsets that are none. An element costs as much as in fixed windows.

        >>> print(CalendarEventTimeWindows.of("1 year", time_zone="Europe/London", offset="3 months"))
        calendar windows of 1 year, offset 3 months, in Europe/London
        """
        period = parse_period(size, f"{_NAME}: size")
        return cls("fixed", period, period, parse_offset(offset, f"{_NAME}: offset"), zone_name(time_zone))

    @classmethod
    def sliding(cls, size: Any, slide: Any, *, time_zone: str | ZoneInfo, offset: Duration = 0) -> Self:
        """Returns windows of ``size``, one beginning every ``slide``; the rest is as in ``of``.

        size: a multiple of slide: days and weeks go with days and weeks, months with months, quarters and years. A
        window is so many slides, in whose number a date that the zone has skipped does not count.

        >>> print(CalendarEventTimeWindows.sliding("7 days", "1 day", time_zone="Asia/Beirut"))
        calendar windows of 7 days every 1 day in Asia/Beirut
        """
        period, every = parse_period(size, f"{_NAME}: size"), parse_period(slide, f"{_NAME}: slide")
        if period.times(every) is None:
            raise SpecError(
                f"{_NAME}: size must be a multiple of slide, days or weeks of such, months, quarters or years of such; "
                f"got size={period}, slide={every}"
            )
        return cls("sliding", period, every, parse_offset(offset, f"{_NAME}: offset"), zone_name(time_zone))

    @classmethod
    def cumulative(cls, max_size: Any, step: Any, *, time_zone: str | ZoneInfo, offset: Duration = 0) -> Self:
        """Returns windows that grow by ``step`` up to ``max_size`` and then begin anew; the rest is as in ``of``.

        step: as max_size, or a duration within a day such as ``"1 hour"``, as it passes: a day of 25 hours has 25 of
        them. The last step of a window is shorter where it is cut off, as that of weeks in a month. A step within a day
        is at least 14 seconds, in windows of a year 19: a table holds all steps of some years.

        >>> print(CalendarEventTimeWindows.cumulative("1 month", "1 day", time_zone="Europe/Berlin"))
        calendar windows of 1 month by 1 day in Europe/Berlin
        """
        period = parse_period(max_size, f"{_NAME}: max_size")
        every: Period | int
        try:
            every = to_ms(step, argument=f"{_NAME}: step")
        except SpecError:
            every = parse_period(step, f"{_NAME}: step")
        if isinstance(every, int) and every >= DAY_MS:
            every = parse_period(step, f"{_NAME}: step")
        if isinstance(every, int) and every < 1:
            raise SpecError(f"{_NAME}: step must be at least 1 ms, got {step!r}")
        longest = 0 if isinstance(every, int) else every.months or every.days
        if longest > (period.months if isinstance(every, Period) and every.months else period.days or 28):
            raise SpecError(f"{_NAME}: step must be no longer than max_size, got step={every}, max_size={period}")
        return cls("cumulative", period, every, parse_offset(offset, f"{_NAME}: offset"), zone_name(time_zone))

    def bounds(self, first: int, last: int) -> Bounds:
        """Returns the bounds of windows around times from ``first`` to ``last``, ms."""
        return bounds_over(self, first, last)

    def bounds_with(self, known: Bounds, times: NDArray[np.int64]) -> Bounds:
        """Returns the bounds that are known, with those around more times, int64[n], ms."""
        return bounds_with(self, known, times)

    @property
    def most_windows(self) -> int:
        """A number of windows that no element is in more than."""
        if self.shape != "cumulative":
            assert isinstance(self.every, Period)
            return self.size.times(self.every) or 1
        step = self.every if isinstance(self.every, int) else (self.every.days or 28 * self.every.months) * DAY_MS
        return -(-(self.size.most_days + 1) * DAY_MS // step)

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[TimeWindow]:
        table = self.bounds(timestamp, timestamp)
        at = int(table.bounds.searchsorted(timestamp, side="right")) - 1
        ends = slice(at + 1, int(table.last_ends[at]) + 1)
        starts = table.bounds[table.starts[ends]].tolist()
        found = [TimeWindow(*bounds) for bounds in zip(starts, table.bounds[ends].tolist(), strict=True)]
        return found[::-1]

    def __str__(self) -> str:
        every = format_ms(self.every) if isinstance(self.every, int) else str(self.every)
        shape = {"fixed": "", "sliding": f" every {every}", "cumulative": f" by {every}"}[self.shape]
        offset = "" if self.offset == Offset() else f", offset {self.offset},"
        return f"calendar windows of {self.size}{shape}{offset} in {self.time_zone}"

"""Bounds: the instants at which calendar windows begin and end, in sorted tables for ranges of years."""

from __future__ import annotations

import threading
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from fastwin.core.memory.ordering import unique
from fastwin.errors import SpecError
from fastwin.windows.localclock import first_instants, time_zone_of
from fastwin.windows.periods import DAY_MS, Offset, Period

__all__ = ["NO_BOUNDS", "Bounds", "bounds_over", "bounds_with", "least_step"]

Years = tuple[tuple[int, int], ...]
"""Ranges of years, the last one of each left out."""

_MONDAY = 4
"""The first Monday of 1970, in days since 1970."""
_YEARS_AT_ONCE = 10
_MOST: Final = 1 << 24
"""How many bounds a table may have, and all tables together that are kept for the next one who asks."""
_MOST_TABLES: Final = 64
_tables: dict[tuple[Any, Years], Bounds] = {}  # the one asked for last comes last
_lock: Final = threading.Lock()
_LEAST_YEARS = 7
"""Of so many years, a table of any windows fits."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """Where windows begin and end around some ranges of time. The interval between two neighbouring bounds is a slice.

    bounds: int64[n], ms, ascending. starts: int32[n], for the end of each window, which bound is its start: all windows
    that end at one bound begin at one. last_ends: int32[n], for each slice, at which bound the last window over it
    ends; they never descend. edges: first and last time of each range for which all this is known, in order: it is for
    first <= t < last, both bounds. Between two ranges is one long slice that no window is known of. years: those for
    which it was made.
    """

    bounds: NDArray[np.int64]
    starts: NDArray[np.int32]
    last_ends: NDArray[np.int32]
    edges: tuple[int, ...] = ()
    years: Years = ()

    @property
    def last(self) -> int:
        """The last time of all ranges; the first bound where there is none."""
        return self.edges[-1] if self.edges else int(self.bounds[0])

    def knows(self, first: int, last: int) -> bool:
        """Whether all is known of the times from ``first`` to ``last``, ms. O(log ranges)."""
        at = bisect_right(self.edges, first)
        return at % 2 == 1 and last < self.edges[at]

    def range_at(self, t: int) -> tuple[int, int]:
        """Returns first and last time of the range that a time is in, of which all is known."""
        at = bisect_right(self.edges, t)
        return self.edges[at - 1], self.edges[at]

    def ranges_of(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns which range each of some times is in: 1, 3, 5 and so on, and even numbers where nothing is known."""
        return np.searchsorted(np.array(self.edges, np.int64), times, side="right")


NO_BOUNDS: Final = Bounds(np.array([-(2**62), 1 - 2**62]), np.zeros(2, np.int32), np.ones(2, np.int32))
"""Nothing is known: all times lie behind its bounds."""


def bounds_over(windows: Any, first: int, last: int) -> Bounds:
    """Returns bounds of calendar windows with ``first`` and ``last``, ms, in their range, and all between.

    Tables are kept: the next call for the same years costs nothing. Raises SpecError for more bounds than memory is
    meant for.
    """
    return _table(windows, _span_of(windows, _year(first), _year(last) + 1))


def bounds_with(windows: Any, known: Bounds, times: NDArray[np.int64]) -> Bounds:
    """Returns what is known of calendar windows already, and bounds around more times, int64[n], ms, at least one.

    Steps within a day are many, so years far from others have a range of their own. Raises as ``bounds_over`` does.
    """
    years = list(known.years)
    if not isinstance(windows.every, int):
        years.append((_year(int(times.min())), _year(int(times.max())) + 1))
        return _table(windows, _span_of(windows, min(first for first, _ in years), max(last for _, last in years)))
    unknown = times[known.ranges_of(times) % 2 == 0]
    found = unique(unknown.astype("datetime64[ms]").astype("datetime64[Y]").astype(np.int64)) + 1970
    years += [(year, year + 1) for year in found.tolist()]
    apart = windows.size.most_days // 121 + 1  # with fewer years between, ranges may overlap
    united: list[tuple[int, int]] = []
    for first, last in sorted(years):
        if united and first - united[-1][1] <= apart:
            first, last = united[-1][0], max(united.pop()[1], last)
        united.append((first, last))
    return _table(windows, tuple(united))


def _span_of(windows: Any, first: int, last: int) -> Years:
    """Returns the one range of years for which a table is made that has those from ``first`` up to ``last``."""
    step = 1 if isinstance(windows.every, int) else _YEARS_AT_ONCE
    return ((first // step * step, -(-last // step) * step),)


def least_step(size: Period) -> int:
    """Returns the shortest step within a day, ms, by which windows up to ``size`` may grow: a table has room for it."""
    return -(-_span(size, ((0, _LEAST_YEARS),)) // _MOST)


def _year(ms: int) -> int:
    return int(np.datetime64(ms, "ms").astype("datetime64[Y]").astype(np.int64)) + 1970


def _table(windows: Any, years: Years) -> Bounds:
    """Returns the bounds for some ranges of years, in order and not touching: those that were asked for of late."""
    with _lock:
        found = _tables.pop((windows, years), None)
    if found is None:
        found = _made(windows, years)
    with _lock:
        _tables[windows, years] = found
        held = 0
        for at, (key, table) in enumerate(reversed(list(_tables.items())), 1):
            held += len(table.bounds)
            if at > 1 and (at > _MOST_TABLES or held > _MOST):
                del _tables[key]
    return found


def _made(windows: Any, years: Years) -> Bounds:
    if isinstance(windows.every, int):
        _check_count(windows, years)
    parts = [_range(windows, *one) for one in years]
    if len(parts) == 1:
        return parts[0]
    begins = np.cumsum([0, *(len(part.bounds) for part in parts)]).tolist()
    ends = [part.last_ends + np.int32(at) for part, at in zip(parts, begins, strict=False)]
    for i, part in enumerate(parts[:-1]):
        # No slice behind a range is ever over before the first one of the next range is.
        ends[i][part.bounds.searchsorted(part.last) :] = ends[i + 1][0]
    return Bounds(
        np.concatenate([part.bounds for part in parts]),
        np.concatenate([part.starts + np.int32(at) for part, at in zip(parts, begins, strict=False)]),
        np.concatenate(ends),
        tuple(edge for part in parts for edge in part.edges),
        years,
    )


def _range(windows: Any, first_year: int, last_year: int) -> Bounds:
    """Returns the bounds for the years from ``first_year`` up to, but without, ``last_year``."""
    zone, years = time_zone_of(windows.time_zone, "time_zone"), ((first_year, last_year),)
    margin = 5 * windows.size.most_days // 365 + 3
    first_year, last_year = first_year - margin, last_year + margin
    if windows.shape == "cumulative":
        return _cumulative(windows, zone, first_year, last_year, years)
    clock = _grid(windows.every, windows.offset, first_year, last_year)
    bounds = unique(first_instants(zone, clock))  # skipped dates begin when the next one does
    slides = windows.size.times(windows.every)
    at = np.arange(len(bounds), dtype=np.int32)
    starts, last_ends = np.maximum(at - slides, 0), np.minimum(at + slides, len(bounds) - 1)
    return Bounds(bounds, starts, last_ends, (int(bounds[slides]), int(bounds[-slides - 1])), years)


def _grid(period: Period, offset: Offset, first_year: int, last_year: int) -> NDArray[np.int64]:
    """Returns when periods begin, by the clock: int64[n], ms as if in UTC."""
    if period.months:
        return _clock(_months(period, offset, first_year, last_year), offset)
    anchor = _MONDAY if period.unit == "week" else 0
    first, last = (_first_day(12 * (year - 1970)) for year in (first_year, last_year))
    days = np.arange((first - anchor) // period.days, (last - anchor) // period.days) * period.days + anchor
    return (days + offset.days) * DAY_MS + offset.ms


def _months(period: Period, offset: Offset, first_year: int, last_year: int) -> NDArray[np.int64]:
    """Returns the months in which periods begin, since 1970."""
    first, last = (12 * (year - 1970) // period.months for year in (first_year, last_year))
    return np.arange(first, last) * period.months + offset.months


def _first_day(months: Any) -> Any:
    """Returns the first day of months since 1970, in days since 1970."""
    return np.array(months, dtype="datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _clock(months: NDArray[np.int64], offset: Offset) -> NDArray[np.int64]:
    return (_first_day(months) + offset.days) * DAY_MS + offset.ms


def _cumulative(windows: Any, zone: ZoneInfo, first_year: int, last_year: int, years: Years) -> Bounds:
    size, every, offset = windows.size, windows.every, windows.offset
    clock = _grid(size, offset, first_year, last_year)
    begins = unique(first_instants(zone, clock))
    if isinstance(every, int):
        first, last = (_first_day(12 * (year - 1970)) * DAY_MS for year in years[0])
        begins = begins[begins.searchsorted(first, side="right") - 1 : begins.searchsorted(last) + 2]
        steps = _steps(begins, every)
    elif every.days:
        steps = first_instants(zone, _steps(clock, every.days * DAY_MS))
    else:
        months = _months(size, offset, first_year, last_year)
        steps = first_instants(zone, _clock(_steps(months, every.months), offset))
    bounds = unique(np.concatenate([begins, steps]))
    bounds = bounds[bounds <= begins[-1]]
    begin_at = np.searchsorted(bounds, begins).astype(np.int32)
    group = np.searchsorted(begins, bounds, side="right") - 1
    last_ends = begin_at[np.minimum(group + 1, len(begins) - 1)]
    starts = np.empty_like(last_ends)
    starts[0], starts[1:] = 0, begin_at[group[:-1]]
    return Bounds(bounds, starts, last_ends, (int(begins[0]), int(begins[-2])), years)  # none is in the last one


def _steps(begins: NDArray[np.int64], step: int) -> NDArray[np.int64]:
    """Returns ``begin, begin + step, ...`` of each of some beginnings, up to the next one."""
    counts = -(-np.diff(begins) // step)
    before = np.cumsum(counts) - counts
    return np.repeat(begins[:-1] - before * step, counts) + np.arange(int(counts.sum()), dtype=np.int64) * step


def _span(size: Period, years: Years) -> int:
    """Returns how long the windows over some ranges of years are together, ms, at most."""
    return sum(366 * (last - first) + 3 * (size.most_days + 1) for first, last in years) * DAY_MS


def _check_count(windows: Any, years: Years) -> None:
    count = _span(windows.size, years) // windows.every
    if count > _MOST:
        told = sum(last - first for first, last in years)
        raise SpecError(
            f"{windows}: times of {told} years, from {years[0][0]} to {years[-1][1] - 1}, have {count:,} steps, at "
            f"most {_MOST:,} are taken; take a longer step, or keep times that are far away out"
        )

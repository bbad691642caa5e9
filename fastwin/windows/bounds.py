"""Bounds: the instants at which calendar windows begin and end, in sorted tables for ranges of years."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from fastwin.errors import SpecError
from fastwin.windows.localclock import first_instants, time_zone_of
from fastwin.windows.periods import DAY_MS, Offset, Period

__all__ = ["NO_BOUNDS", "Bounds", "bounds_over", "least_step"]

Years = Sequence[tuple[int, int]]
"""Ranges of years, the last one of each left out."""

_MONDAY = 4
"""The first Monday of 1970, in days since 1970."""
_YEARS_AT_ONCE = 10
_MOST: Final = 1 << 24
"""How many bounds a table may have."""
_LEAST_YEARS = 7
"""Of so many years, a table of any windows fits."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """Where windows begin and end around some range of time. The interval between two neighbouring bounds is a slice.

    bounds: int64[n], ms, ascending. starts: int32[n], for the end of each window, which bound is its start: all windows
    that end at one bound begin at one. last_ends: int32[n], for each slice, at which bound the last window over it
    ends. first, last: the times for which all this is known: first <= t < last, both bounds.
    """

    bounds: NDArray[np.int64]
    starts: NDArray[np.int32]
    last_ends: NDArray[np.int32]
    first: int
    last: int


_AGES_AGO = -(2**62)
NO_BOUNDS: Final = Bounds(
    np.array([_AGES_AGO, _AGES_AGO + 1]), np.zeros(2, np.int32), np.ones(2, np.int32), _AGES_AGO, _AGES_AGO
)
"""Nothing is known: all times lie behind its bounds."""


def bounds_over(windows: Any, first: int, last: int) -> Bounds:
    """Returns bounds of calendar windows with ``first`` and ``last``, ms, in their range.

    Tables are kept: the next call for the same years costs nothing. Raises SpecError for more bounds than memory is
    meant for.
    """
    step = 1 if isinstance(windows.every, int) else _YEARS_AT_ONCE
    years = (_year(first) // step * step, -(-(_year(last) + 1) // step) * step)
    return _table(windows, *years)


def least_step(size: Period) -> int:
    """Returns the shortest step within a day, ms, by which windows up to ``size`` may grow: a table has room for it."""
    return -(-_span(size, [(0, _LEAST_YEARS)]) // _MOST)


def _year(ms: int) -> int:
    return int(np.datetime64(ms, "ms").astype("datetime64[Y]").astype(np.int64)) + 1970


@lru_cache(maxsize=64)
def _table(windows: Any, first_year: int, last_year: int) -> Bounds:
    """Returns the bounds for the years from ``first_year`` up to, but without, ``last_year``."""
    zone = time_zone_of(windows.time_zone, "time_zone")
    margin = 3 * windows.size.most_days // 365 + 3
    first_year, last_year = first_year - margin, last_year + margin
    if windows.shape == "cumulative":
        return _cumulative(windows, zone, first_year, last_year)
    clock = _grid(windows.every, windows.offset, first_year, last_year)
    bounds = np.unique(first_instants(zone, clock))  # skipped dates begin when the next one does
    slides = windows.size.times(windows.every)
    at = np.arange(len(bounds), dtype=np.int32)
    starts, last_ends = np.maximum(at - slides, 0), np.minimum(at + slides, len(bounds) - 1)
    return Bounds(bounds, starts, last_ends, int(bounds[slides]), int(bounds[-slides - 1]))


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


def _cumulative(windows: Any, zone: ZoneInfo, first_year: int, last_year: int) -> Bounds:
    size, every, offset = windows.size, windows.every, windows.offset
    clock = _grid(size, offset, first_year, last_year)
    begins = np.unique(first_instants(zone, clock))
    if isinstance(every, int):
        _check_count(windows, (begins[-1] - begins[0]) // every, first_year, last_year)
        steps = _steps(begins, every)
    elif every.days:
        steps = first_instants(zone, _steps(clock, every.days * DAY_MS))
    else:
        months = _months(size, offset, first_year, last_year)
        steps = first_instants(zone, _clock(_steps(months, every.months), offset))
    bounds = np.unique(np.concatenate([begins, steps]))
    bounds = bounds[bounds <= begins[-1]]
    begin_at = np.searchsorted(bounds, begins).astype(np.int32)
    group = np.searchsorted(begins, bounds, side="right") - 1
    last_ends = begin_at[np.minimum(group + 1, len(begins) - 1)]
    starts = np.empty_like(last_ends)
    starts[0], starts[1:] = 0, begin_at[group[:-1]]
    return Bounds(bounds, starts, last_ends, int(begins[0]), int(begins[-1]))


def _steps(begins: NDArray[np.int64], step: int) -> NDArray[np.int64]:
    """Returns ``begin, begin + step, ...`` of each of some beginnings, up to the next one."""
    counts = -(-np.diff(begins) // step)
    before = np.cumsum(counts) - counts
    return np.repeat(begins[:-1] - before * step, counts) + np.arange(int(counts.sum()), dtype=np.int64) * step


def _span(size: Period, years: Years) -> int:
    """Returns how long the windows over some ranges of years are together, ms, at most."""
    return sum(366 * (last - first) + 2 * (size.most_days + 1) for first, last in years) * DAY_MS


def _check_count(windows: Any, count: int, first_year: int, last_year: int) -> None:
    if count > _MOST:
        raise SpecError(
            f"{windows}: times from the year {first_year} to {last_year} have {count:,} steps, at most {_MOST:,} are "
            f"taken; take a longer step, or keep times that are far away out"
        )

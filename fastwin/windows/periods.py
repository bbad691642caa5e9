"""Periods of the calendar: days and weeks, months, quarters and years, which have no fixed length in milliseconds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from fastwin.errors import SpecError
from fastwin.times import format_ms, to_ms

__all__ = ["DAY_MS", "Offset", "Period", "parse_offset", "parse_period"]

DAY_MS: Final = 86_400_000

_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_SHORT = {"d": "day", "w": "week", "mo": "month", "mon": "month", "q": "quarter", "y": "year", "yr": "year"}
_TERM = re.compile(r"\s*([+-]?[0-9]{1,6})?\s*([A-Za-z]+)\s*,?")
_MOST_YEARS = 1_000


@dataclass(frozen=True)
class Period:
    """A number of units of the calendar. unit: ``"day"``, ``"week"``, ``"month"``, ``"quarter"`` or ``"year"``."""

    count: int
    unit: str

    @property
    def days(self) -> int:
        """How many days it is; 0 for periods of months."""
        return self.count * _DAYS.get(self.unit, 0)

    @property
    def months(self) -> int:
        """How many months it is; 0 for periods of days."""
        return self.count * _MONTHS.get(self.unit, 0)

    @property
    def most_days(self) -> int:
        """A number of days that no such period is longer than."""
        return self.days or 31 * self.months

    def times(self, other: Period) -> int | None:
        """Returns how many of ``other`` it is; None if that is no whole number."""
        mine, others = (self.days, other.days) if self.days else (self.months, other.months)
        return mine // others if others and mine % others == 0 else None

    def __str__(self) -> str:
        return f"{self.count} {self.unit}{'s' if self.count != 1 else ''}"


@dataclass(frozen=True)
class Offset:
    """By how much windows begin later: whole months, days, and ms of the local clock."""

    months: int = 0
    days: int = 0
    ms: int = 0

    def __str__(self) -> str:
        parts = [(self.months, "month"), (self.days, "day")]
        told = [f"{count} {unit}{'s' if abs(count) != 1 else ''}" for count, unit in parts if count]
        return " ".join([*told, *([format_ms(self.ms)] if self.ms else [])]) or "none"


def _unit(name: str) -> str | None:
    lower = name.lower()
    lower = lower if lower in _SHORT else lower.removesuffix("s")
    lower = _SHORT.get(lower, lower)
    return lower if lower in _DAYS or lower in _MONTHS else None


def parse_period(value: Any, argument: str) -> Period:
    """Returns a period from text such as ``"1 month"``, or from a timedelta of whole days.

    argument: the name by which an error calls it. Raises SpecError for what is none, or is longer than 1,000 years.

    >>> parse_period("2 weeks", "size")
    Period(count=2, unit='week')
    """
    if isinstance(value, timedelta) and value == timedelta(days=value.days):
        found = Period(value.days, "day")
    else:
        term = _TERM.fullmatch(value.rstrip()) if isinstance(value, str) else None
        unit = None if term is None else _unit(term[2])
        if term is None or unit is None:
            raise SpecError(
                f"{argument}: must be a number of days, weeks, months, quarters or years, such as '1 month', got "
                f"{value!r}; for shorter windows take TumblingEventTimeWindows, which count from 1970 in UTC, with "
                "offset= where a zone is off by a part of a window, as India is by 5:30 hours"
            )
        found = Period(int(term[1] or 1), unit)
    if not 1 <= found.most_days <= _MOST_YEARS * 366:
        raise SpecError(f"{argument}: must be at least 1 day and at most {_MOST_YEARS} years, got {value!r}")
    return found


def parse_offset(value: Any, argument: str) -> Offset:
    """Returns an offset from text such as ``"3 months 5 days"`` or ``"6 hours"``, a timedelta, or int ms.

    argument: the name by which an error calls it. Raises SpecError for what is none.

    >>> parse_offset("3 months 5 days", "offset")
    Offset(months=3, days=5, ms=0)
    """
    months = days = 0
    rest = value
    if isinstance(value, str):
        rest, at = "", 0
        while at < len(value.rstrip()):
            term = _TERM.match(value, at)
            unit = None if term is None else _unit(term[2])
            if term is None or unit is None:
                rest = value[at:]
                break
            period = Period(int(term[1] or 1), unit)
            months, days, at = months + period.months, days + period.days, term.end()
    try:
        ms = to_ms(rest, argument=argument) if rest != "" or not value else 0
    except SpecError:
        if not isinstance(value, str):
            raise
        raise SpecError(f"{argument}: must be such as '3 months', '6 days' or '6 hours', got {value!r}") from None
    if isinstance(value, timedelta | int) or abs(ms) >= DAY_MS:
        more = int(ms / DAY_MS)  # toward zero
        days, ms = days + more, ms - more * DAY_MS
    return Offset(months, days, ms)

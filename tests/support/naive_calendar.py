"""A naive model of calendar windows: dates one by one, by the clock of Python's zoneinfo."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MS = timedelta(milliseconds=1)


def utc_ms(moment: datetime) -> int:
    return (moment - EPOCH) // MS


def first_instant(zone: ZoneInfo, clock: datetime) -> int:
    """The first instant, ms, at which the clock of a zone shows a time or a later one."""
    instant = clock.replace(tzinfo=zone).astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) != clock:  # skipped: back to where the clock leaps
        while (instant - timedelta(minutes=1)).astimezone(zone).replace(tzinfo=None) >= clock:
            instant -= timedelta(minutes=1)
    return utc_ms(instant)


def next_month(day: date, months: int) -> date:
    at = day.year * 12 + day.month - 1 + months
    return date(at // 12, at % 12 + 1, 1)


def begins(unit: str, count: int, zone_name: str, first: date, last: date) -> list[int]:
    """When windows of so many days, weeks or months begin in a zone, ms, around some dates; each instant once."""
    zone, found = ZoneInfo(zone_name), set()
    day = first - timedelta(days=800)
    while day < last + timedelta(days=800):
        since = (day - date(1970, 1, 1)).days
        months = (day.year - 1970) * 12 + day.month - 1
        if unit == "day":
            hit = since % count == 0
        elif unit == "week":
            hit = day.weekday() == 0 and (since - 4) // 7 % count == 0
        else:
            hit = day.day == 1 and months % count == 0
        if hit:
            found.add(first_instant(zone, datetime(day.year, day.month, day.day)))
        day += timedelta(days=1)
    return sorted(found)


def windows_of(at: list[int], slides: int, time: int) -> list[tuple[int, int]]:
    """The windows over a time that are each so many of the intervals between begins."""
    here = max(i for i, begin in enumerate(at) if begin <= time)
    return [(at[i], at[i + slides]) for i in range(here - slides + 1, here + 1)]

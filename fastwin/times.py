"""Times and durations: int milliseconds, and what is taken for them: ``"10 minutes"`` or a ``timedelta``."""

import re
from datetime import datetime, timedelta
from fractions import Fraction
from operator import index
from typing import Final

import numpy as np

from fastwin.errors import SpecError

__all__ = [
    "FIRST_DATE_MS",
    "LAST_DATE_MS",
    "MAX_DURATION_MS",
    "MAX_TIMESTAMP",
    "MIN_TIMESTAMP",
    "MOST_MS",
    "Duration",
    "Moment",
    "format_ms",
    "int64_ms",
    "moment_text",
    "to_ms",
]

Duration = str | int | timedelta
Moment = str | int | datetime | np.integer | np.datetime64

MIN_TIMESTAMP: Final = -(2**63)
"""The watermark before the first one."""
MAX_TIMESTAMP: Final = 2**63 - 1
"""The watermark after the last element of a bounded input."""

FIRST_DATE_MS: Final = -62_135_596_800_000
LAST_DATE_MS: Final = 253_402_300_799_999
"""The first and the last millisecond of the years 1 to 9999: what Python, pandas and SQL can show."""
MOST_MS: Final = 2**61
"""How far out, either way, an event time may be that is a plain number: window bounds still fit in int64."""

MAX_DURATION_MS = 2**53
"""The longest duration taken, about 285,000 years: sums of a time and a few durations stay in int64."""

_UNITS_MS = {
    "ms": 1, "milli": 1, "millis": 1, "millisecond": 1,
    "s": 1_000, "sec": 1_000, "second": 1_000,
    "m": 60_000, "min": 60_000, "minute": 60_000,
    "h": 3_600_000, "hr": 3_600_000, "hour": 3_600_000,
    "d": 86_400_000, "day": 86_400_000,
    "w": 604_800_000, "week": 604_800_000,
}  # fmt: skip
_UNITS_OF_NO_FIXED_LENGTH = {"month", "mon", "mo", "year", "yr", "y"}
_TERM = re.compile(r"\s*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))\s*([A-Za-z]+)\s*,?")
_MAX_DIGITS = 30
_EPOCH = datetime(1970, 1, 1)


def int64_ms(argument: str, value: int) -> int:
    """Returns a time in ms, an int or an integer of numpy, as an int. Raises SpecError unless it is an int64."""
    if isinstance(value, bool):
        raise SpecError(f"{argument}: must be an int of milliseconds, got {value!r}")
    try:
        ms = index(value)
    except TypeError:
        raise SpecError(f"{argument}: must be an int of milliseconds, got {value!r}") from None
    if not MIN_TIMESTAMP <= ms <= MAX_TIMESTAMP:
        raise SpecError(f"{argument}: must fit in int64, got {value}")
    return ms


def to_ms(value: Duration, *, argument: str = "duration") -> int:
    """Returns a duration in milliseconds.

    value: an int of milliseconds, a ``timedelta``, or text made of numbers and units from milliseconds to
        weeks, such as ``"90 s"``, ``"1 hour 30 minutes"``, ``"0.5 s"`` or ``"-5min"``.
    argument: the name by which an error calls the value.

    Raises SpecError if the value is no duration, is finer than a millisecond, has a unit
    without a fixed length (months and years), or lies beyond ``MAX_DURATION_MS``.

    >>> to_ms("1 hour 30 minutes")
    5400000
    >>> to_ms("0.5 s")
    500
    >>> to_ms(timedelta(seconds=2))
    2000
    """
    if isinstance(value, str):
        ms = _parse(value, argument)
    elif isinstance(value, timedelta):
        ms, rest = divmod(value, timedelta(milliseconds=1))
        if rest:
            raise SpecError(f"{argument}: must be whole milliseconds, got {value!r}")
    elif isinstance(value, bool):
        raise SpecError(f"{argument}: must be a duration, got {value!r}")
    else:
        try:
            ms = index(value)
        except TypeError:
            raise SpecError(
                f"{argument}: must be text such as '10 minutes', a timedelta or an int of milliseconds, got {value!r}"
            ) from None
    if abs(ms) > MAX_DURATION_MS:
        raise SpecError(f"{argument}: must be within {MAX_DURATION_MS} ms, got {ms} ms")
    return ms


def _parse(text: str, argument: str) -> int:
    ms, at = 0, 0
    while at < len(text.rstrip()):
        term = _TERM.match(text, at)
        if term is None:
            raise SpecError(f"{argument}: {text!r} is no duration; write for example '10 minutes' or '1 hour 30 s'")
        if len(term[1]) > _MAX_DIGITS:
            raise SpecError(f"{argument}: must be within {MAX_DURATION_MS} ms, got a number of {len(term[1])} digits")
        exact = Fraction(term[1]) * _unit_ms(term[2], text, argument)
        if exact.denominator != 1:
            part = term[0].strip()
            raise SpecError(f"{argument}: must be whole milliseconds, got {text!r}, of which {part!r} is none")
        ms += int(exact)
        at = term.end()
    if at == 0:
        raise SpecError(f"{argument}: must be a duration such as '10 minutes', got {text!r}")
    return ms


def _unit_ms(unit: str, text: str, argument: str) -> int:
    name = unit.lower()
    if name not in _UNITS_MS and len(name) > 2 and name != "mss":  # a plural, of a word
        name = name.removesuffix("s")
    if name in _UNITS_OF_NO_FIXED_LENGTH:
        raise SpecError(f"{argument}: {text!r} has a unit of no fixed length; use weeks, days or shorter units")
    if unit == "M":
        raise SpecError(f"{argument}: {text!r} may mean months or minutes; write 'min' for minutes")
    if name not in _UNITS_MS:
        raise SpecError(f"{argument}: {text!r} has an unknown unit {unit!r}; known are ms, s, min, hours, days, weeks")
    return _UNITS_MS[name]


def format_ms(ms: int) -> str:
    """Returns the shortest exact text for a duration.

    >>> format_ms(5400000)
    '90 min'
    """
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if ms and ms % size == 0:
            return f"{ms // size} {unit}"
    return f"{ms} ms"


def moment_text(ms: int, zone: str = "") -> str:
    """Returns a time since 1970, UTC, as a date with milliseconds; outside of the years 1 to 9999, its ms.

    zone: what to write behind a date.

    >>> moment_text(1_700_000_000_000)
    '2023-11-14 22:13:20.000'
    """
    try:
        return f"{(_EPOCH + timedelta(milliseconds=int(ms))).isoformat(' ', 'milliseconds')}{zone}"
    except OverflowError:
        return f"{ms} ms"

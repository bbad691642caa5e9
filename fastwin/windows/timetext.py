"""TimeText: times as text for people, and times that people give, in the zone and unit of the event-time column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from operator import index
from typing import Any

import numpy as np
import pyarrow as pa

from fastwin.errors import SpecError
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP
from fastwin.windows.localclock import known_zone

__all__ = ["TimeText", "span", "time_text_of"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PER_MS = {"s": (1, 1_000), "ms": (1, 1), "us": (1_000, 1), "ns": (1_000_000, 1)}
_YEAR_MS = 31_536_000_000  # numbers below are shown as numbers alone: they are of tests and examples
_PARTS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1))


def span(ms: int) -> str:
    """Returns a duration as text, its two largest units.

    >>> span(1_133_000), span(59_999), span(90_000_000)
    ('18 min 53 s', '59 s 999 ms', '1 d 1 h')
    """
    parts = []
    for unit, size in _PARTS:
        count, ms = divmod(ms, size)
        if count:
            parts.append(f"{count:,} {unit}")
        if len(parts) == 2 or (parts and not count):
            break
    return " ".join(parts) or "0 ms"


@dataclass(frozen=True)
class TimeText:
    """Writes and reads times. zone: in which they are shown; where this machine does not know it, in UTC.

    unit: of an int64 column; None: it has timestamps. day: a date, which is left out; None: all dates are shown.
    """

    zone: str = "UTC"
    unit: str | None = None
    day: str | None = None

    def text(self, ms: int) -> str:
        """Returns a time, ms, as text.

        >>> TimeText("Europe/Berlin").text(1_767_225_600_500)
        '2026-01-01 01:00:00.500'
        >>> TimeText(unit="s").text(1_767_225_600_000), TimeText(unit="ms").text(1_000)
        ('1767225600 (2026-01-01 00:00:00)', '1000')
        """
        if ms in (MIN_TIMESTAMP, MAX_TIMESTAMP):
            return "the beginning of time" if ms == MIN_TIMESTAMP else "the end of time"
        shown = self._date(ms)
        if self.unit is None:
            return f"{ms} ms" if shown is None else shown.removeprefix(f"{self.day} ")
        times, per = _PER_MS[self.unit]
        whole, rest = divmod(ms * times, per)
        number = str(whole) if not rest else f"{whole}.{rest:03d}"
        return number if shown is None or abs(ms) < _YEAR_MS else f"{number} ({shown})"

    @property
    def zone_told(self) -> str:
        """The zone in which times are shown, in words."""
        if known_zone(self.zone) is not None:
            return self.zone
        return f"UTC, as this machine does not know the zone {self.zone!r}"

    @property
    def _zone(self) -> tzinfo:
        return known_zone(self.zone) or UTC

    def on_the_day_of(self, ms: int) -> TimeText:
        """Returns what leaves out the date of a time; where times are numbers, these are shown with all dates."""
        shown = None if self.unit else self._date(ms)
        return self if shown is None else replace(self, day=shown.split(" ")[0])

    def _date(self, ms: int) -> str | None:
        try:
            moment = (_EPOCH + timedelta(milliseconds=ms)).astimezone(self._zone)
        except (OverflowError, ValueError):
            return None
        return moment.strftime("%Y-%m-%d %H:%M:%S").zfill(19) + (f".{ms % 1_000:03d}" if ms % 1_000 else "")

    def read(self, argument: str, value: Any, exact: bool = False) -> int:
        """Returns a time that somebody gives, in ms: a number as in the column, a datetime, or such a text.

        A number is of the column's unit, and ms where it has timestamps. A datetime without a zone is of the column's
        zone. exact: whether parts of a millisecond are refused, else they are cut. Raises SpecError for all else.
        """
        if isinstance(value, str):
            value = self._from_text(argument, value)
        if isinstance(value, np.datetime64 | datetime):
            value = _known_moment(argument, value, exact)
            moment = value if value.tzinfo is not None else value.replace(tzinfo=self._zone)
            return (moment - _EPOCH) // timedelta(milliseconds=1)
        try:
            number = index(value)
        except TypeError:
            number = None
        if number is None or isinstance(value, bool):
            raise SpecError(f"{argument}: must be a time: a datetime, such a text, or an int; got {value!r}")
        times, per = _PER_MS[self.unit or "ms"]
        ms = number * per // times
        if not MIN_TIMESTAMP <= ms <= MAX_TIMESTAMP:
            raise SpecError(f"{argument}: must be within int64 milliseconds, got {number}")
        return ms

    @staticmethod
    def _from_text(argument: str, text: str) -> Any:
        try:
            return int(text)
        except ValueError:
            pass
        try:
            return datetime.fromisoformat(text.strip())
        except ValueError:
            raise SpecError(
                f"{argument}: {text!r} is no time; write for example '2026-01-31 12:30:00' or a number"
            ) from None


def _known_moment(argument: str, value: Any, exact: bool) -> datetime:
    """Returns a datetime of numpy, pandas or Python as one of Python's. Raises SpecError for what is no time."""
    if value != value:  # numpy's and pandas' not-a-time
        raise SpecError(f"{argument}: must be a time, got {value}")
    moment = value
    if isinstance(value, np.datetime64):
        year = int(value.astype("datetime64[Y]").astype(np.int64)) + 1970
        if not 1 <= year <= 9999:
            raise SpecError(f"{argument}: must be in the years 1 to 9999, got one of the year {year}")
        moment = value.astype("datetime64[us]").item()
        finer = value.astype("datetime64[ms]") != value
    else:
        finer = value.microsecond % 1_000 or getattr(value, "nanosecond", 0)
    if exact and finer:
        raise SpecError(f"{argument}: must be whole milliseconds, got {value}")
    return moment


def time_text_of(bounds: pa.DataType, column: pa.DataType | None, unit: str | None) -> TimeText:
    """Returns how times are shown. bounds: the type of window bounds. column: of the event time; unit: that it has."""
    counts = column is not None and pa.types.is_integer(column)
    return TimeText(bounds.tz or "UTC", (unit or "ms") if counts else None)

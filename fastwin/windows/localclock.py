"""The clock of a time zone: at which instants it first shows given times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from fastwin.errors import SpecError

__all__ = ["first_instants", "is_utc", "known_zone", "time_zone_of", "zone_name"]

# Before 1800 no zone has a rule. After 2500 only yearly rules are left, and the calendar repeats after 400 years.
_FIRST_MS: Final = -5_364_662_400_000
_LAST_MS: Final = 16_725_225_600_000
_CYCLE_MS: Final = 146_097 * 86_400_000
_EPOCH = datetime(1970, 1, 1)
# Names of UTC, besides "Etc/" before some.
_OFFSETS = ("+00:00", "-00:00", "+0000", "-0000", "+00", "-00", "z")
_NAMES = ("utc", "uct", "universal", "zulu", "gmt", "gmt0", "gmt+0", "gmt-0", "greenwich")


def zone_name(zone: Any) -> Any:
    """Returns the name of a ZoneInfo that has one; anything else as it is, for ``time_zone_of`` to refuse or not."""
    return zone.key if isinstance(zone, ZoneInfo) and zone.key else zone


@lru_cache(maxsize=256)
def time_zone_of(name: str, argument: str) -> ZoneInfo:
    """Returns a time zone by its name. Raises SpecError if there is none; argument: what the error calls it."""
    try:
        if not isinstance(name, str) or not name:
            raise ValueError
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):  # ZoneInfoNotFoundError is a KeyError
        lacks = isinstance(name, str) and not _has_zones()
        hint = "; this machine has no time zone data: pip install tzdata" if lacks else ""
        raise SpecError(
            f"{argument}: must be the name of a time zone such as 'Europe/Berlin', got {name!r}{hint}"
        ) from None


def _has_zones() -> bool:
    try:
        ZoneInfo("Europe/Berlin")
    except (OSError, LookupError):
        return False
    return True


def is_utc(zone: str) -> bool:
    """Whether a zone, as Arrow names it, is UTC under any of its names."""
    zone = zone.lower()
    return zone in _OFFSETS or zone.removeprefix("etc/") in _NAMES


def known_zone(name: str) -> tzinfo | None:
    """Returns a zone as Arrow names it: by its name, or an offset such as ``+02:00``. None: this machine has none.

    >>> known_zone("-05:30")
    datetime.timezone(datetime.timedelta(days=-1, seconds=66600))
    """
    if is_utc(name):
        return UTC
    try:
        if name[:1] not in ("+", "-"):
            return ZoneInfo(name)
        digits = name[1:].replace(":", "").ljust(4, "0")
        offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
        return timezone(-offset if name[0] == "-" else offset)
    except (ValueError, OSError, LookupError):  # ZoneInfoNotFoundError is a KeyError
        return None


def first_instants(zone: ZoneInfo, clock: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the first instant at which the clock of a zone shows each of some times, or a later one: int64[n], ms.

    clock: int64[n], what the clock shows, in ms as if it were UTC. Times that are skipped have the instant of the leap;
    of times that come twice it is the first. O(n), about a microsecond each.
    """
    early, late = _utc_offsets(zone, clock)
    instants = clock - early
    for i in np.flatnonzero(late > early).tolist():  # in a gap, the offset after it is the larger one
        instants[i] = _leap(zone, int(clock[i] - late[i]), int(instants[i]), int(clock[i]))
    return instants


def _utc_offsets(zone: ZoneInfo, clock: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns local time minus UTC, in ms: where a time comes twice of the first one, and of the second one.

    In a gap it is what holds before, and what holds after it.
    """
    usual, at = np.unique(_usual(clock), return_inverse=True)
    naive = usual.astype("datetime64[ms]").astype(object).tolist()
    early = np.fromiter((_ms(zone.utcoffset(time)) for time in naive), np.int64, len(naive))
    late = np.fromiter((_ms(zone.utcoffset(time.replace(fold=1))) for time in naive), np.int64, len(naive))
    return early[at], late[at]


def _usual(times: Any) -> Any:
    """Returns times of the years 1800 to 2500 with the same offset."""
    cycles = np.maximum(times - _LAST_MS + _CYCLE_MS, 0) // _CYCLE_MS
    return np.maximum(times - cycles * _CYCLE_MS, _FIRST_MS)


def _ms(offset: timedelta | None) -> int:
    assert offset is not None
    return offset.days * 86_400_000 + offset.seconds * 1_000 + offset.microseconds // 1_000


def _leap(zone: ZoneInfo, before: int, after: int, clock: int) -> int:
    """Returns the first instant in (before, after], ms, at which the clock shows at least ``clock``."""
    while after - before > 1:
        middle = (before + after) // 2
        instant = (_EPOCH + timedelta(milliseconds=int(_usual(middle)))).replace(tzinfo=UTC)
        if middle + _ms(instant.astimezone(zone).utcoffset()) >= clock:
            after = middle
        else:
            before = middle
    return after

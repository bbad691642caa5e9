"""Units of int64 event times: read as the spec says, and a warning where they look like another one."""

from __future__ import annotations

import warnings
from typing import Final, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.callers import callers_level

__all__ = [
    "PER_SECOND",
    "UNITS",
    "Unit",
    "as_instants",
    "is_suspicious",
    "suspected_unit",
    "warn_of_unit",
]

Unit = Literal["s", "ms", "us", "ns"]
UNITS: Final = get_args(Unit)

PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_NAMES = {"s": "seconds", "us": "microseconds", "ns": "nanoseconds"}
# Years 1971 to 2100, in seconds: no two of the units have them at the same numbers.
_USUAL = 31_536_000, 4_133_980_799


def as_instants(column: pa.Array, unit: Unit | None) -> pa.Array:
    """Returns int64 times that have a unit as timestamps of that unit; other columns as they are."""
    return column.view(pa.timestamp(unit)) if unit is not None and column.type == pa.int64() else column


def is_usual(times: NDArray[np.int64]) -> bool:
    """Returns whether times in ms are what one expects: the first or the newest lies in the years 1971 to 2100.

    times: int64[n]. Usual times cost one look at the first.
    """
    first, last = (second * 1_000 for second in _USUAL)
    return len(times) > 0 and (first <= times[0] <= last or first <= int(times.max()) <= last)


def suspected_unit(times: NDArray[np.int64]) -> str | None:
    """Returns another unit than ms in which the newest time lies in the years 1971 to 2100; None if there is none.

    times: int64[n]. It is None as well where some of them are of these years in ms.
    """
    if not len(times) or is_usual(times):
        return None
    newest, oldest = int(times.max()), int(times.min())
    if _USUAL[0] * 1_000 <= oldest <= (_USUAL[1] + 1) * 1_000:
        return None
    for unit in _NAMES:
        if _USUAL[0] * PER_SECOND[unit] <= newest <= _USUAL[1] * PER_SECOND[unit]:
            return unit
    return None


def is_suspicious(newest: int) -> bool:
    """Returns whether times up to ``newest``, taken for ms, need a closer look: they may be of another unit."""
    return newest >= _USUAL[0]


def warn_of_unit(column: str, times: NDArray[np.int64]) -> bool:
    """Warns if int64 times, which are taken for ms, look like times of another unit.

    The warning is of the line that called this package. Returns whether that settles it: there was a warning, or the
    times are usual ones in ms.
    """
    unit = suspected_unit(times)
    if unit is None:
        return is_usual(times)
    first, last = int(times.min()), int(times.max())
    warnings.warn(
        f"event_time {column!r}: the int64 times are taken for milliseconds, {_days(first, last, 'ms')}; as "
        f"{_NAMES[unit]} they are {_days(first, last, unit)}. Say which: event_time({column!r}, unit={unit!r}), or "
        f"unit='ms'",
        stacklevel=callers_level(),
    )
    return True


def _days(first: int, last: int, unit: str) -> str:
    day, other = (str(np.array(at).astype(f"datetime64[{unit}]").astype("datetime64[D]")) for at in (first, last))
    return f"all of {day}" if day == other else f"from {day} to {other}"

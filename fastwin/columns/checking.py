"""Checks rows: their event times in ms, the gaps of their sessions, and which rows are bad."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.buffers import int64_values, validity
from fastwin.columns.decoding import take_rows
from fastwin.columns.gaps import no_gaps
from fastwin.columns.units import PER_SECOND, Unit, as_instants
from fastwin.core.panes.slices import all_within, extent
from fastwin.errors import BadRowError
from fastwin.times import FIRST_DATE_MS, LAST_DATE_MS, MIN_TIMESTAMP, MOST_MS

__all__ = [
    "BAD_REASON",
    "Checked",
    "Limits",
    "bad_schema",
    "bad_table",
    "check_rows",
    "event_times",
    "good_rows",
    "times_in_ms",
]

BAD_REASON = "bad_reason"
"""The column that ``result.bad`` has beyond the input's."""

_FAR = 2**62

_REASONS = {
    1: "null timestamp",
    2: "timestamp outside years 1 to 9999",
    3: f"timestamp outside +-{MOST_MS} ms",
    4: "timestamp further ahead of the clock than max_future_skew",
    5: "timestamp before the earliest that the runner takes",
    6: "gap that is null, below 1 ms or no duration of whole milliseconds",
}
_GAP = 6


@dataclass(frozen=True)
class Limits:
    """Bounds on rows beyond those that always hold.

    max_future_skew_ms: how far ahead of the clock; None: any. now_ms: what the clock says; None: that of this machine.
    earliest_ms: the first one taken. any_int64: takes the whole of int64. nulls: null is no bad timestamp but none,
    int64 min. unit: what int64 times count; None: ms, as plain numbers. side: of two inputs the one that these are of,
    left or right, which takes no "divert"; None: there is one input. gap: the column with the gaps of sessions; None:
    there is none.
    """

    max_future_skew_ms: int | None = None
    earliest_ms: int = MIN_TIMESTAMP
    any_int64: bool = False
    nulls: bool = False
    unit: Unit | None = None
    now_ms: int | None = None
    side: str | None = None
    gap: str | None = None


def event_times(column: pa.Array, any_int64: bool = False) -> tuple[NDArray[np.int64], NDArray[np.uint8] | None]:
    """Returns timestamps floored to ms, and why some are unusable.

    column: timestamps of any unit, or int64 ms. any_int64: takes the whole of int64. Returns ``(times, reasons)``:
    int64[n] and uint8[n], 0 for usable ones, else a number of a reason, or None where all are usable; unusable times
    are 0.
    """
    times, reasons = int64_values(column), None
    if pa.types.is_timestamp(column.type):
        per_second = PER_SECOND[column.type.unit]
        if per_second < 1_000_000_000:  # nanoseconds in int64 are all of this age
            times, reasons = _inside(times, *_dates(per_second), 2)
        times = _in_ms(times, per_second)
    elif not any_int64:
        times, reasons = _inside(times, -MOST_MS, MOST_MS, 3)
    valid = validity(column)
    if valid is not None:
        reasons = np.zeros(len(column), np.uint8) if reasons is None else reasons
        reasons[valid == 0] = 1
        times = np.where(valid != 0, times, 0)
    return times, reasons


def _dates(per_second: int) -> tuple[int, int]:
    """Returns the first and the last time of a unit in the years 1 to 9999."""
    return FIRST_DATE_MS * per_second // 1_000, (LAST_DATE_MS + 1) * per_second // 1_000 - 1


def _in_ms(values: NDArray[np.int64], per_second: int) -> NDArray[np.int64]:
    if per_second == 1:
        return values * 1_000
    return values if per_second == 1_000 else values // (per_second // 1_000)


def _values(column: pa.Array, any_int64: bool, first: int, last: int) -> _Values | None:
    """Returns the times as they are counted; None where there may be nulls."""
    if validity(column) is not None:
        return None
    values, unit = int64_values(column), 1_000
    if pa.types.is_timestamp(column.type):
        unit = PER_SECOND[column.type.unit]
        first, last = max(first, FIRST_DATE_MS), min(last, LAST_DATE_MS)
        first, last = -(-first * unit // 1_000), ((last + 1) * unit - 1) // 1_000
        first, last = max(first, -_FAR), min(last, _FAR - 1)
    elif not any_int64:
        first, last = max(first, -MOST_MS), min(last, MOST_MS)
    return _Values(values, unit, first, last)


class _Values(NamedTuple):
    """Event times: int64[n], so many of which are a second, and the first and the last of which that are usable.

    One that is not may be usable all the same where it is millions of years away.
    """

    counts: NDArray[np.int64]
    per_second: int
    first: int
    last: int


def _good_times(values: _Values) -> tuple[NDArray[np.int64], tuple[int, int]] | None:
    """Returns what event_times() does if all are usable, and the first and the last of them, after one look at each;
    else None."""
    unit = values.per_second
    if not len(values.counts):
        return _in_ms(values.counts, unit), (0, 0)
    found = extent(values.counts)
    if not values.first <= found[0] <= found[1] <= values.last:
        return None
    return _in_ms(values.counts, unit), (found[0] * 1_000 // unit, found[1] * 1_000 // unit)


def _inside(
    times: NDArray[np.int64], first: int, last: int, reason: int
) -> tuple[NDArray[np.int64], NDArray[np.uint8] | None]:
    """Returns the times with 0 for those outside [first, last], and the reasons; None where there are none."""
    if all_within(times, first, last):
        return times, None
    outside = (times < first) | (times > last)
    return np.where(outside, 0, times), np.where(outside, np.uint8(reason), np.uint8(0))


def _limited(column: pa.Array, limits: Limits) -> tuple[_Values | None, int | None]:
    """Returns the times within the limits, see _values(), and the last one that is not too far ahead, ms, or None."""
    latest = None
    if limits.max_future_skew_ms is not None:
        now_ms = int(time.time() * 1_000) if limits.now_ms is None else limits.now_ms
        latest = now_ms + limits.max_future_skew_ms
    last = _FAR - 1 if latest is None else min(latest, _FAR - 1)
    return _values(column, limits.any_int64, max(limits.earliest_ms, -_FAR), last), latest


def times_in_ms(column: pa.Array, limits: Limits) -> tuple[NDArray[np.int64], int, int] | None:
    """Returns event times that nobody has looked at yet, int64[n] in ms, and the first and the last of which that are
    surely usable. None where they are no such numbers: what ``good_rows`` returns has to be taken then."""
    values, _ = _limited(as_instants(column, limits.unit), limits)
    if values is None or values.per_second != 1_000:
        return None
    return values.counts, values.first, values.last


def check_rows(
    rows: pa.RecordBatch, name: str | None, policy: str, limits: Limits | None = None, before: int = 0, told: str = ""
) -> tuple[NDArray[np.int64], NDArray[np.uint8] | None]:
    """Returns the event times of rows, and the reasons why they are bad: uint8[n], or None if none is.

    name: of the event-time column; None: there is none, and all times are int64 min. before: how many rows of the input
    come before these. told: what an error calls the column, if not by its name. Raises BadRowError if a row is bad and
    the policy is "raise".
    """
    times, reasons, _ = _looked_at(rows, name, policy, limits or Limits(), before, told)
    return times, reasons


def _looked_at(
    rows: pa.RecordBatch, name: str | None, policy: str, limits: Limits, before: int, told: str = ""
) -> tuple[NDArray[np.int64], NDArray[np.uint8] | None, tuple[int, int] | None]:
    """Returns what check_rows() does, and the first and the last of the times, ms, where it has seen them."""
    found = None
    if name is None:
        times, reasons = np.full(rows.num_rows, MIN_TIMESTAMP), None
    else:
        times, reasons, found = _timed(as_instants(rows.column(name), limits.unit), limits)
    if limits.gap is not None:
        reasons = _with_gaps(rows.column(limits.gap), reasons)
    if reasons is not None and policy == "raise":
        raise BadRowError(_complaint(rows, name, reasons, limits, before, told))
    return times, reasons, found if reasons is None else None


def _timed(
    column: pa.Array, limits: Limits
) -> tuple[NDArray[np.int64], NDArray[np.uint8] | None, tuple[int, int] | None]:
    """Returns event times in ms, why some are unusable, and the first and the last where all are usable."""
    values, latest = _limited(column, limits)
    good = None if values is None else _good_times(values)
    if good is not None:
        return good[0], None, good[1]
    times, reasons = event_times(column, limits.any_int64)
    if reasons is None:
        reasons = np.zeros(len(column), np.uint8)
    if limits.nulls:
        times = np.where(reasons == 1, MIN_TIMESTAMP, times)
        reasons[reasons == 1] = 0
    if limits.earliest_ms > MIN_TIMESTAMP:
        reasons[(times < limits.earliest_ms) & (times > MIN_TIMESTAMP) & (reasons == 0)] = 5
    if latest is not None:
        reasons[(times > latest) & (reasons == 0)] = 4
    return times, reasons if reasons.any() else None, None


def _with_gaps(gaps: pa.Array, reasons: NDArray[np.uint8] | None) -> NDArray[np.uint8] | None:
    """Returns the reasons why rows are bad with those whose gap is none among them; None if none is."""
    bad = no_gaps(gaps)
    if bad is None:
        return reasons
    if reasons is None:
        return np.where(bad, np.uint8(_GAP), np.uint8(0))
    return np.where(bad & (reasons == 0), np.uint8(_GAP), reasons)


def _complaint(
    rows: pa.RecordBatch, name: str | None, reasons: NDArray[np.uint8], limits: Limits, before: int, told: str
) -> str:
    """Returns the text of the error for the first bad row."""
    row = int(np.argmax(reasons != 0))
    if reasons[row] == _GAP:
        named, column = f"with_dynamic_gap {limits.gap!r}", rows.column(limits.gap)
    else:
        named, column = f"event_time {(told or name)!r}", as_instants(rows.column(name), limits.unit)
    those = f"{len(reasons)} rows" + (f" from row {before} on" if before else "")
    whose = "" if limits.side is None else f" of the {limits.side} input"
    policies = "bad_rows('divert') or bad_rows('drop')" if limits.side is None else "bad_rows('drop')"
    return (
        f"{named}: {_REASONS[int(reasons[row])]} in row {before + row}{whose} (value {_shown(column[row])}); "
        f"{np.count_nonzero(reasons)} of {those} are bad; {policies} goes on without them"
    )


def _shown(value: pa.Scalar) -> str:
    """Returns a value as it is stored, with its unit: Python has no object for some."""
    if value.is_valid and (pa.types.is_timestamp(value.type) or pa.types.is_duration(value.type)):
        return f"{value.value} {value.type.unit}"
    return str(value.as_py())


class Checked(NamedTuple):
    """Good rows and their times, ms; how many others there were, and these, if the policy is to divert them.

    extent: the first and the last of the times, if they are known.
    """

    rows: pa.RecordBatch
    times: NDArray[np.int64]
    bad: int
    diverted: pa.RecordBatch | None
    extent: tuple[int, int] | None = None


def good_rows(rows: pa.RecordBatch, name: str | None, policy: str, limits: Limits, before: int = 0) -> Checked:
    """Returns the good rows, whose event times are in the column ``name``. Arguments and errors: as of check_rows()."""
    times, reasons, found = _looked_at(rows, name, policy, limits, before)
    if reasons is None:
        return Checked(rows, times, 0, None, found)
    good = np.flatnonzero(reasons == 0)
    diverted = bad_table(rows, reasons) if policy == "divert" else None
    return Checked(take_rows(rows, good), times[good], len(times) - len(good), diverted)


def bad_table(rows: pa.RecordBatch, reasons: NDArray[np.uint8]) -> pa.RecordBatch:
    """Returns the bad ones among rows, with the column BAD_REASON behind the others."""
    bad = np.flatnonzero(reasons)
    taken = take_rows(rows, bad)
    texts = pa.array([_REASONS[reason] for reason in reasons[bad].tolist()], type=pa.string())
    return pa.RecordBatch.from_arrays([*taken.columns, texts], schema=bad_schema(rows.schema))


def bad_schema(schema: pa.Schema) -> pa.Schema:
    """Returns the schema of ``result.bad`` for an input schema."""
    return pa.schema([*schema, pa.field(BAD_REASON, pa.string())])

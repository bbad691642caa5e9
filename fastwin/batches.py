"""Tables in: the only validator of columns, types, nulls and timestamps."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.arrowbuffers import decoded_type, encoded, int64_values, take_rows, validity
from fastwin.core.slices import all_within
from fastwin.errors import BadRowError, SpecError
from fastwin.keycodec import EncodedKeys, KeyCodec
from fastwin.windows import MIN_TIMESTAMP

__all__ = [
    "BAD_REASON",
    "Checked",
    "Limits",
    "as_table",
    "check_names",
    "check_rows",
    "conform",
    "encode_keys",
    "event_times",
    "good_rows",
    "has_small_chunks",
    "key_hash",
    "schema_to_text",
    "tells_no_types",
    "text_to_schema",
]

BAD_REASON = "bad_reason"
"""The column that ``result.bad`` has beyond the input's."""

# Years 1 to 9999, in seconds: what Python, pandas and SQL can show.
_FIRST_SECOND = -62_135_596_800
_LAST_SECOND = 253_402_300_799
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
# An int64 event time is a plain number; this far out, window bounds still fit.
_KERNEL_LIMIT = 2**61
_FAR = 2**62
_SMALL_BATCH = 65_536

_REASONS = {
    1: "null timestamp",
    2: "timestamp outside years 1 to 9999",
    3: f"timestamp outside +-{_KERNEL_LIMIT} ms",
    4: "timestamp further ahead of the clock than max_future_skew",
    5: "timestamp before the earliest that the runner takes",
}


@dataclass(frozen=True)
class Limits:
    """Bounds on timestamps beyond those that always hold.

    max_future_skew_ms: how far ahead of the clock; None: any. earliest_ms: the first one taken. any_int64: takes
    the whole of int64. nulls: null is no bad timestamp but none, int64 min.
    """

    max_future_skew_ms: int | None = None
    earliest_ms: int = MIN_TIMESTAMP
    any_int64: bool = False
    nulls: bool = False


def as_table(data: Any) -> pa.Table:
    """Returns an input as an Arrow table: a Table or RecordBatch, a pandas or polars DataFrame, or
    anything else with Arrow's PyCapsule interface. Raises SpecError for other things."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    try:
        if hasattr(data, "__arrow_c_stream__") and not hasattr(data, "iloc"):
            return pa.table(data)
        if hasattr(data, "iloc") and hasattr(data, "columns"):
            return pa.Table.from_pandas(data, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError) as problem:
        raise SpecError(f"table: this {type(data).__name__} cannot be read as Arrow: {problem}") from problem
    raise SpecError(
        f"table: must be a pyarrow Table or RecordBatch, a pandas or polars DataFrame, got {type(data).__name__}"
    )


def tells_no_types(data: Any, table: pa.Table, names: Iterable[str]) -> bool:
    """Tells whether an input has no rows and types that pandas has made up for columns without values.

    names: the columns that count. Raises SpecError if one is missing or there twice.
    """
    if table.num_rows or not hasattr(data, "iloc"):
        return False
    names = list(names)
    check_names(table.column_names, names)
    return any(table.schema.field(name).type in (pa.float64(), pa.null()) for name in names)


def check_names(names: list[str], wanted: Iterable[str]) -> None:
    """Raises SpecError for a column that is missing or there more than once."""
    for name in wanted:
        count = names.count(name)
        if count != 1:
            found = f"is there {count} times" if count else "is missing"
            raise SpecError(f"column {name!r} {found}; the input has {', '.join(names) or 'none'}")


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Returns the columns of ``schema``, cast where a batch came with another but harmless type.

    Raises SpecError if one is missing or there twice, or cannot be cast without loss. Without rows, any types do.
    """
    columns = []
    check_names(table.column_names, schema.names)
    for field in schema:
        columns.append(_cast(table.column(field.name), field) if table.num_rows else pa.chunked_array([], field.type))
    return pa.Table.from_arrays(columns, schema=schema) if columns else table.select([])


def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    was, now = field.type, column.type
    if was == now:
        return column
    told = f"column {field.name!r} was {was}, and is {now} now"
    if pa.types.is_null(was):
        raise SpecError(f"{told}: the first batch had only nulls in it; open(schema=...) names the type beforehand")
    if not pa.types.is_null(now) and _is_text(decoded_type(was)) != _is_text(decoded_type(now)):
        raise SpecError(f"{told}: text is not parsed, and nothing is made text")
    try:
        return encoded(column, was)
    except pa.ArrowException as problem:
        raise SpecError(f"{told}: {problem}") from None


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def has_small_chunks(table: pa.Table) -> bool:
    """Whether the chunks of a table are so small that putting them together first costs less than one call for each."""
    return table.num_rows < _SMALL_BATCH * table.column(0).num_chunks


def check_time_type(column: str, kind: pa.DataType) -> None:
    """Raises SpecError unless ``kind`` can be an event time: a timestamp of any unit, or int64 ms."""
    if not (pa.types.is_timestamp(kind) or kind == pa.int64() or pa.types.is_null(kind)):
        raise SpecError(f"event_time: column {column!r} must be a timestamp or int64 milliseconds, got {kind}")


def event_times(column: pa.Array, any_int64: bool = False) -> tuple[NDArray[np.int64], NDArray[np.uint8] | None]:
    """Returns timestamps floored to ms, and why some are unusable.

    column: timestamps of any unit, or int64 ms. any_int64: takes the whole of int64. Returns ``(times, reasons)``:
    int64[n] and uint8[n], 0 for usable ones, else a number of a reason, or None where all are usable; unusable times
    are 0.
    """
    times, reasons = int64_values(column), None
    if pa.types.is_timestamp(column.type):
        per_second = _PER_SECOND[column.type.unit]
        if per_second < 1_000_000_000:  # nanoseconds in int64 are all of this age
            times, reasons = _inside(times, _FIRST_SECOND * per_second, (_LAST_SECOND + 1) * per_second - 1, 2)
        times = _in_ms(times, per_second)
    elif not any_int64:
        times, reasons = _inside(times, -_KERNEL_LIMIT, _KERNEL_LIMIT, 3)
    valid = validity(column)
    if valid is not None:
        reasons = np.zeros(len(column), np.uint8) if reasons is None else reasons
        reasons[valid == 0] = 1
        times = np.where(valid != 0, times, 0)
    return times, reasons


def _in_ms(values: NDArray[np.int64], per_second: int) -> NDArray[np.int64]:
    if per_second == 1:
        return values * 1_000
    return values if per_second == 1_000 else values // (per_second // 1_000)


def _good_times(column: pa.Array, any_int64: bool, first: int, last: int) -> NDArray[np.int64] | None:
    """Returns what event_times() does if all are usable and in [first, last], ms, after one look at each; else None.

    May return None all the same where a time is millions of years away.
    """
    if validity(column) is not None:
        return None
    values, unit = int64_values(column), 1_000
    if pa.types.is_timestamp(column.type):
        unit = _PER_SECOND[column.type.unit]
        first, last = max(first, _FIRST_SECOND * 1_000), min(last, _LAST_SECOND * 1_000 + 999)
        first, last = -(-first * unit // 1_000), ((last + 1) * unit - 1) // 1_000
        first, last = max(first, -_FAR), min(last, _FAR - 1)
    elif not any_int64:
        first, last = max(first, -_KERNEL_LIMIT), min(last, _KERNEL_LIMIT)
    if first > last or not all_within(values, first, last):
        return None
    return _in_ms(values, unit)


def _inside(
    times: NDArray[np.int64], first: int, last: int, reason: int
) -> tuple[NDArray[np.int64], NDArray[np.uint8] | None]:
    """Returns the times with 0 for those outside [first, last], and the reasons; None where there are none."""
    if all_within(times, first, last):
        return times, None
    outside = (times < first) | (times > last)
    return np.where(outside, 0, times), np.where(outside, np.uint8(reason), np.uint8(0))


def check_rows(
    column: pa.Array, name: str, policy: str, limits: Limits | None = None, before: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.uint8] | None]:
    """Returns the times of the event-time column, and the reasons why rows are bad: uint8[n], or None if none is.

    before: how many rows of the input come before these. Raises BadRowError if one is bad and the policy is "raise".
    """
    limits = limits or Limits()
    latest = None
    if limits.max_future_skew_ms is not None:
        latest = int(time.time() * 1_000) + limits.max_future_skew_ms
    last = _FAR - 1 if latest is None else min(latest, _FAR - 1)
    good = _good_times(column, limits.any_int64, max(limits.earliest_ms, -_FAR), last)
    if good is not None:
        return good, None
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
    bad = np.count_nonzero(reasons)
    if not bad:
        return times, None
    if policy == "raise":
        row = int(np.argmax(reasons != 0))
        value = column[row]
        shown = value.value if pa.types.is_timestamp(column.type) else value.as_py()
        unit = f" {column.type.unit}" if pa.types.is_timestamp(column.type) and shown is not None else ""
        those = f"{len(column)} rows" + (f" from row {before} on" if before else "")
        raise BadRowError(
            f"event_time {name!r}: {_REASONS[int(reasons[row])]} in row {before + row} (value {shown}{unit}); "
            f"{bad} of {those} are bad; bad_rows('divert') or bad_rows('drop') goes on without them"
        )
    return times, reasons


class Checked(NamedTuple):
    """Good rows and their times, ms; how many others there were, and these, if the policy is to divert them."""

    rows: pa.RecordBatch
    times: NDArray[np.int64]
    bad: int
    diverted: pa.RecordBatch | None


def good_rows(rows: pa.RecordBatch, name: str, policy: str, limits: Limits, before: int = 0) -> Checked:
    """Returns the rows whose event time, in the column ``name``, is usable. Raises as check_rows() does."""
    times, reasons = check_rows(rows.column(name), name, policy, limits, before)
    if reasons is None:
        return Checked(rows, times, 0, None)
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


def encode_keys(rows: pa.RecordBatch, codec: KeyCodec) -> EncodedKeys:
    """Returns the encoded key columns of rows."""
    return codec.encode([rows.column(field.name) for field in codec.fields], rows.num_rows)


def key_hash(rows: pa.RecordBatch, keys: list[str] | tuple[str, ...]) -> NDArray[np.uint64]:
    """Returns the stable hash of the key columns: uint64[n]. It never changes within a version of the hash."""
    codec = KeyCodec(tuple(rows.schema.field(name) for name in keys))
    return KeyCodec.hash(encode_keys(rows, codec))


def schema_to_text(schema: pa.Schema) -> str:
    """Returns a schema as text for the state."""
    return base64.b64encode(schema.remove_metadata().serialize()).decode()


def text_to_schema(text: str) -> pa.Schema:
    """Returns the schema that schema_to_text() had been given."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))

"""Arrow columns as lists of Python values, and back: as Arrow's ``to_pylist``, many times faster for common types."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.buffers import from_int64, in_one, int64_values, validity
from fastwin.columns.decoding import converted, decoded, decoded_type, encoded, from_objects, take_column
from fastwin.columns.exact import Exact
from fastwin.columns.units import PER_SECOND

__all__ = ["decodes_later", "exact_array", "exact_values", "python_values", "time_counts", "told_rows", "told_values"]

# The first and the last second of times, and of durations. Beyond the usual ones Arrow decides: a zone may move a time
# out of the years that Python knows, and back. Beyond all there is nothing to decide.
_USUAL = (-62_104_060_800, 253_370_764_800), (-999_999_998 * 86_400, 999_999_998 * 86_400)
_ALL = (-62_135_769_600, 253_402_473_600), (-1_000_000_000 * 86_400, 1_000_000_000 * 86_400)


def python_values(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Returns the values as Python objects; nanoseconds are cut to microseconds.

    Raises an error of Python's or Arrow's for values that Python has no object for.
    """
    array = decoded(in_one(array))
    kind = array.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _numbers(array)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return array.to_numpy(zero_copy_only=False).tolist()
    if pa.types.is_boolean(kind) and not array.null_count:
        return array.to_numpy(zero_copy_only=False).tolist()
    if _is_fine(kind):
        array = _cut(array)
    return _times(array) or array.to_pylist()


def exact_values(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Returns the values as Python objects, as Exact where Python has none, or none that is the same."""
    array = decoded(in_one(array))
    if _is_fine(array.type):
        values, counts, valid = python_values(array), int64_values(array), validity(array)
        parts = counts % 1_000 != 0
        for i in np.flatnonzero(parts if valid is None else parts & (valid != 0)).tolist():
            values[i] = Exact(values[i], int(counts[i]))
        return values
    far = np.flatnonzero(~_within(array, _ALL)) if _is_time(array.type) else np.zeros(0, np.int64)
    if not len(far):
        return _by_halves(array)
    places = np.arange(len(array))
    values = _by_halves(take_column(array, pa.array(places, mask=np.isin(places, far))))
    for i in far.tolist():
        values[i] = _alone(array, i)
    return values


def told_values(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Returns the values as Python objects, and as text those that Python has no object for, or none that is the same.

    Such texts tell values apart.
    """
    return [_as_text(value) if type(value) is Exact else value for value in exact_values(array)]


def told_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Returns the rows by column, with values as of ``told_values``."""
    columns = [told_values(column) for column in table.columns]
    rows = zip(*columns, strict=True) if columns else [()] * table.num_rows
    return [dict(zip(table.column_names, row, strict=True)) for row in rows]


def _as_text(value: Exact) -> str:
    if _is_alone(value):
        return repr(value)
    part = abs(value.stored) % 1_000
    return f"{value.shown_as('')} {'-' if value.stored < 0 else '+'}{part} ns"


def _by_halves(array: pa.Array) -> list[Any]:
    """Returns the values, as Exact where Python has no object. O(n) where these are few, O(n log n) at most."""
    try:
        return python_values(array)
    except (pa.ArrowException, OverflowError, ValueError, LookupError):  # a zone that is not known is a KeyError
        half = len(array) // 2
        return _by_halves(array[:half]) + _by_halves(array[half:]) if half else [_alone(array, 0)]


def _alone(array: pa.Array, i: int) -> Exact:
    return Exact(None, take_column(array, pa.array([i])))


def exact_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Returns an array of what exact_values() gave, or of Python objects as ``from_objects`` takes them."""
    try:
        return from_objects(values, kind)
    except (pa.ArrowException, TypeError):
        if Exact not in set(map(type, values)):
            raise
    plain = decoded_type(kind)
    fine = _is_fine(plain)
    alone = {i: value.stored for i, value in enumerate(values) if type(value) is Exact and _is_alone(value)}
    shown = (value.shown_as("") for value in values if type(value) is Exact and not _is_alone(value))
    from_objects(list(islice(shown, 1)), plain)  # refuses what their number would not: a time is no duration
    told = [value if type(value) is not Exact else _told(value, fine) for value in values]
    found = from_objects(told, plain)
    if alone:
        places = np.arange(len(values))
        places[list(alone)] = np.arange(len(values), len(values) + len(alone))
        others = [converted(one, plain) for one in alone.values()]
        found = take_column(pa.concat_arrays([found, *others]), pa.array(places))
    return encoded(found, kind)


def time_counts(array: pa.Array) -> list[int | None]:
    """Returns times, dates or durations as ints, which are in their order; None for null."""
    return python_values(from_int64(int64_values(decoded(array)), validity(array), pa.int64()))


def _is_alone(value: Exact) -> bool:
    """Whether a value is kept as an array of one."""
    return isinstance(value.stored, pa.Array)


def _told(value: Exact, fine: bool) -> Any:
    """What a column is told of a value. fine: whether it counts nanoseconds."""
    if _is_alone(value):
        return None
    return value.stored if fine else value.shown_as("")


def decodes_later(kind: pa.DataType) -> bool:
    """Whether an array of a type can be copied now and be made Python objects later."""
    tests = (
        pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_string, pa.types.is_binary,
        pa.types.is_timestamp, pa.types.is_duration, pa.types.is_date32,
    )  # fmt: skip
    return any(test(kind) for test in tests)


def _is_fine(kind: pa.DataType) -> bool:
    """Whether values count nanoseconds."""
    return pa.types.is_temporal(kind) and getattr(kind, "unit", "") == "ns"


def _is_time(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_date32(kind)


def _within(array: pa.Array, bounds: tuple[tuple[int, int], tuple[int, int]]) -> NDArray[np.bool_]:
    """Returns which times are null or within bounds."""
    counts, valid, kind = int64_values(array), validity(array), array.type
    low, high = bounds[pa.types.is_duration(kind)]
    if pa.types.is_date32(kind):
        low, high = low // 86_400, high // 86_400
    else:
        # The least of int64 is no time to numpy, and Arrow takes no such object.
        low, high = (max(min(bound * PER_SECOND[kind.unit], 2**63 - 1), 1 - 2**63) for bound in (low, high))
    inside = (counts >= low) & (counts <= high)
    return inside if valid is None else inside | (valid == 0)


def _is_usual(array: pa.Array) -> bool:
    """Whether all times lie where Python knows them, whatever the zone."""
    return bool(_within(array, _USUAL).all())


def _numbers(array: pa.Array) -> list[Any]:
    if not array.null_count:
        return array.to_numpy(zero_copy_only=False).tolist()
    values = array.fill_null(0).to_numpy(zero_copy_only=False).tolist()
    for i in np.flatnonzero(validity(array) == 0).tolist():
        values[i] = None
    return values


def _cut(array: pa.Array) -> pa.Array:
    """Times and durations of nanoseconds in microseconds."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        return array.cast(pa.timestamp("us", kind.tz), safe=False)
    return array.cast(pa.duration("us") if pa.types.is_duration(kind) else pa.time64("us"), safe=False)


def _times(array: pa.Array) -> list[Any] | None:
    """Returns the dates, datetimes or timedeltas; None for other types, and for times that Arrow has to look at."""
    kind = array.type
    if not _is_time(kind) or not _is_usual(array):
        return None
    naive: list[Any] = array.to_numpy(zero_copy_only=False).tolist()
    if getattr(kind, "tz", None) is None or array.null_count == len(array):
        return naive
    zone = array.drop_null()[0].as_py().tzinfo
    if kind.tz == "UTC":
        return [None if time is None else time.replace(tzinfo=zone) for time in naive]
    return [None if time is None else zone.fromutc(time.replace(tzinfo=zone)) for time in naive]

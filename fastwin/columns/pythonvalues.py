"""Arrow columns as lists of Python values: what Arrow's ``to_pylist`` gives, many times faster for common types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from fastwin.columns.buffers import validity
from fastwin.columns.decoding import decoded

__all__ = ["decodes_later", "python_values"]

# Beyond these Arrow decides: a zone may move a time out of the years that Python knows.
_DATES = np.array(["0002-01-01", "9999-01-01"], "datetime64[D]")
_DURATIONS = np.array([-999_999_998, 999_999_998], "timedelta64[D]")


def python_values(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Returns the values as Python objects; nanoseconds are cut to microseconds.

    Raises OverflowError for times beyond those that Python knows.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    array = decoded(array)
    kind = array.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _numbers(array)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return array.to_numpy(zero_copy_only=False).tolist()
    if pa.types.is_boolean(kind) and not array.null_count:
        return array.to_numpy(zero_copy_only=False).tolist()
    if pa.types.is_temporal(kind) and getattr(kind, "unit", "") == "ns":
        array = _cut(array)
    return _times(array) or array.to_pylist()


def decodes_later(array: pa.Array) -> bool:
    """Whether python_values() certainly knows the values of an array of a common type; O(n) for times."""
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_date32(kind):
        return _is_usual(array)
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_string, pa.types.is_binary)
    return any(test(kind) for test in tests)


def _is_usual(array: pa.Array) -> bool:
    """Whether all times lie where Python knows them, whatever the zone."""
    values = array.to_numpy(zero_copy_only=False)
    known = values[~np.isnat(values)] if array.null_count else values
    low, high = _DURATIONS if pa.types.is_duration(array.type) else _DATES
    return not known.size or bool(low <= known.min() and known.max() < high)


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
    if not (pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_date32(kind)):
        return None
    if not _is_usual(array):
        return None
    naive: list[Any] = array.to_numpy(zero_copy_only=False).tolist()
    if getattr(kind, "tz", None) is None or array.null_count == len(array):
        return naive
    zone = array.drop_null()[0].as_py().tzinfo
    if kind.tz == "UTC":
        return [None if time is None else time.replace(tzinfo=zone) for time in naive]
    return [None if time is None else zone.fromutc(time.replace(tzinfo=zone)) for time in naive]

"""Arrow columns of every type that can be a key, with the values that are hard to get right."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

__all__ = ["KEY_TYPES", "VARIANTS", "column_of", "readable"]

NAN = float("nan")
UTC = dt.UTC


def _timestamps() -> list[tuple[pa.DataType, list]]:
    stamp = dt.datetime(1969, 12, 31, 23, 59, 59)
    return [
        (pa.timestamp(unit, zone), [stamp.replace(tzinfo=UTC) if zone else stamp, None])
        for unit in ("s", "ms", "us", "ns")
        for zone in (None, "UTC", "America/New_York")
    ]


_TYPES: list[tuple[pa.DataType, list]] = [
    (pa.string(), ["a", "", None, "é\0", "x" * 300]),
    (pa.large_string(), ["a", "", None]),
    (pa.string_view(), ["a", "", None, "longer than the twelve bytes of a view"]),
    (pa.binary(), [b"\0", b"", None, b"\0\0"]),
    (pa.large_binary(), [b"\0", b"", None]),
    (pa.binary_view(), [b"\0", b"", None, b"longer than the twelve bytes of a view"]),
    (pa.binary(3), [b"abc", b"\0\0\0", None]),
    (pa.binary(0), [b"", None]),
    *((kind, [0, 1, -1, None]) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
    *((kind, [0, 200, None]) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())),
    (pa.int8(), [-128, 127]),
    (pa.int64(), [2**63 - 1, -(2**63), None]),
    (pa.uint64(), [2**64 - 1, 2**63, None]),
    (pa.bool_(), [True, False, None]),
    (pa.date32(), [dt.date(1969, 12, 31), dt.date.min, dt.date.max, None]),
    (pa.date64(), [dt.date(1969, 12, 31), None]),
    (pa.time32("s"), [dt.time(1, 2, 3), None]),
    (pa.time32("ms"), [dt.time(1, 2, 3, 4_000), None]),
    (pa.time64("us"), [dt.time(1, 2, 3, 4), None]),
    (pa.time64("ns"), [dt.time(1, 2, 3, 4), None]),
    *_timestamps(),
    *((pa.duration(unit), [dt.timedelta(days=-1), dt.timedelta(0), None]) for unit in ("s", "ms", "us", "ns")),
    (pa.decimal128(38, 2), [Decimal("-1.25"), Decimal("1.25"), Decimal("9" * 36), None]),
    (pa.decimal256(76, 2), [Decimal("-1.25"), Decimal("1.25"), None]),
    *((kind, [0.0, -0.0, 1.5, NAN, -NAN, float("inf"), None]) for kind in (pa.float16(), pa.float32(), pa.float64())),
    (pa.dictionary(pa.int8(), pa.string()), ["a", "b", None, "a"]),
    (pa.dictionary(pa.uint32(), pa.large_string()), ["a", None]),
    (pa.dictionary(pa.int32(), pa.string_view()), ["a", None, "longer than the twelve bytes of a view"]),
    (pa.dictionary(pa.int32(), pa.int64()), [1, 2, None]),
    (pa.dictionary(pa.int32(), pa.binary(2)), [b"ab", None]),
    (pa.null(), [None, None]),
]  # fmt: skip

KEY_TYPES = [(f"{kind}-{i}", kind, values) for i, (kind, values) in enumerate(_TYPES)]


def column_of(kind: pa.DataType, values: list) -> pa.Array:
    """The values as an array; of types that pyarrow cannot make from Python, by a cast."""
    if pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type):
        return pa.array(values, pa.dictionary(kind.index_type, pa.string())).cast(kind)
    return pa.array(values, kind)


def _sliced(column: pa.Array) -> pa.Array:
    times = -(-17 // max(len(column), 1))
    many = pa.nulls(17, column.type) if pa.types.is_null(column.type) else pa.concat_arrays([column] * times)
    return many[3:]  # a bitmap that starts within a byte


VARIANTS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "plain": lambda column: column,
    "sliced": _sliced,
    "no nulls": lambda column: column_of(column.type, [value for value in column.to_pylist() if value is not None]),
    "all null": lambda column: pa.nulls(9, column.type),
    "empty": lambda column: column[:0],
}


def readable(value: Any) -> Any:
    """A value that is equal where keys are: one NaN, one zero."""
    if isinstance(value, float):
        return "nan" if value != value else value + 0.0
    return value

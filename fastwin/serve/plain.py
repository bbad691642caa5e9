"""Columns of results as values that JSON has."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["plain"]

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)


def plain(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Returns a column as plain values: times in ms, bytes in hexadecimal digits, null for what is not finite, lists as
    lists, structs as dicts, maps as lists of those of key and value, and all else as text."""
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    kind = column.type
    if pa.types.is_timestamp(kind):
        return pc.cast(column, pa.timestamp("ms", tz=kind.tz), safe=False).cast(pa.int64()).to_pylist()
    if pa.types.is_float16(kind):  # Arrow does next to nothing with it
        return plain(column.cast(pa.float32()))
    if pa.types.is_floating(kind):
        return pc.if_else(pc.is_finite(column), column, None).to_pylist()
    if pa.types.is_integer(kind):
        return column.to_pylist()
    if any(test(kind) for test in _BYTES):
        return [None if value is None else value.hex() for value in column.to_pylist()]
    if pa.types.is_map(kind):
        return plain(column.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))))
    if any(test(kind) for test in _LISTS):
        members = iter(plain(column.flatten()))
        lengths = pc.list_value_length(column).to_pylist()
        return [None if length is None else [next(members) for _ in range(length)] for length in lengths]
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        parts = zip(*map(plain, column.flatten()), strict=True) if names else ((),) * len(column)
        valid = column.is_valid().to_pylist()
        return [
            dict(zip(names, values, strict=True)) if is_there else None
            for values, is_there in zip(parts, valid, strict=True)
        ]
    if pa.types.is_duration(kind):
        per_s = _PER_SECOND[kind.unit]
        return [None if count is None else _lasting(count, per_s) for count in column.cast(pa.int64()).to_pylist()]
    return column.cast(pa.string()).to_pylist()


def _lasting(count: int, per_s: int) -> str:
    """Returns a duration as Python's timedelta has it in text, also where that has none: "1 day, 2:03:04.500000"."""
    days, rest = divmod(count, 86_400 * per_s)
    seconds, part = divmod(rest, per_s)
    nanos = part * (1_000_000_000 // per_s)
    text = f"{seconds // 3_600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if nanos:
        text += f".{nanos:09}" if nanos % 1_000 else f".{nanos // 1_000:06}"
    return f"{days} day{'' if abs(days) == 1 else 's'}, {text}" if days else text

"""Which types the columns of an input may have, and what a later batch may bring instead."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa

from fastwin.columns.decoding import (
    decoded,
    decoded_type,
    encoded,
    from_objects,
    is_readable,
    take_column,
    taken,
    taken_type,
    within_reach,
)
from fastwin.columns.tables import check_names
from fastwin.errors import SpecError

__all__ = [
    "change_refused",
    "check_time_type",
    "conform",
    "object_refused",
    "schema_to_text",
    "taken_field",
    "text_to_schema",
]


def check_time_type(column: str, kind: pa.DataType, unit: str | None = None) -> None:
    """Raises SpecError unless ``kind`` can be an event time: a timestamp of any unit, or int64.

    unit: that of int64 times, None where none is given; timestamps have their own.
    """
    if unit is not None and pa.types.is_timestamp(kind):
        raise SpecError(f"event_time: unit={unit!r} is for int64, but column {column!r} is {kind}; leave it out")
    if not (pa.types.is_timestamp(kind) or kind == pa.int64() or pa.types.is_null(kind)):
        raise SpecError(f"event_time: column {column!r} must be a timestamp or int64 milliseconds, got {kind}")


def taken_field(field: pa.Field, made_again: bool = False) -> pa.Field:
    """Returns a column of the input as it is taken in; see ``taken_type``.

    made_again: its values become Python objects and a column again, in state or in results.

    Raises SpecError for a type that cannot be handled, so that no row meets it later.
    """
    kind = taken_type(field.type)
    if not _can_be_cut(field.type):
        raise SpecError(
            f"column {field.name!r} is {field.type}: Arrow cannot take rows out of such a column; cast it to another "
            f"type, or leave it out"
        )
    if not is_readable(kind):
        raise SpecError(
            f"column {field.name!r} is {field.type}: Arrow would not read such a column again from the state; cast "
            f"it to another type, or leave it out"
        )
    if made_again and not _can_be_made(kind):
        raise SpecError(
            f"column {field.name!r} is {field.type}: the windows keep rows, and such a column cannot be made of its "
            f"values again; cast it to another type, or leave it out"
        )
    return field.with_type(kind)


@lru_cache(maxsize=1_000)
def _can_be_cut(kind: pa.DataType) -> bool:
    """Whether Arrow can take rows of a type, and put them together."""
    try:
        some = taken(pa.nulls(1, kind))
        pa.concat_arrays([take_column(some, pa.array([0, None], pa.int64())), some])
    except (pa.ArrowException, NotImplementedError):
        return False
    return True


@lru_cache(maxsize=1_000)
def _can_be_made(kind: pa.DataType) -> bool:
    """Whether a column of a type can be made of Python objects."""
    try:
        from_objects([None], kind)
        from_objects([], kind)
    except (pa.ArrowException, NotImplementedError, TypeError):
        return False
    return True


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Returns the columns of ``schema``, cast where a batch came with another type of the same meaning.

    The same meaning have: times in other units or zones; numbers of other widths; text or bytes in any encoding; and
    lists, structs and maps of such. A cast is exact for all values, or it is an error. Floats are never narrowed, half
    floats take whole numbers of 8 bits alone, and a column without a value fits any type. Without rows, any types do.

    Raises SpecError if a column is missing or there twice, or has another type than that.
    """
    columns = []
    check_names(table.column_names, schema.names)
    for field in schema:
        columns.append(_conformed(table.column(field.name), field) if table.num_rows else _empty(field.type))
    return pa.Table.from_arrays(columns, schema=schema) if columns else table.select([])


def _empty(kind: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([], kind)


def _conformed(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    was, now = field.type, column.type
    if was == now and not pa.types.is_dictionary(now):
        return column
    told = f"column {field.name!r} was {was}, and is {now} now"
    refused = change_refused(was, now)
    if refused is not None:
        raise SpecError(f"{told}: {refused}")
    chunks = column.chunks if was == now else [part for chunk in column.chunks for part in _within_reach(chunk)]
    try:
        return pa.chunked_array([_cast(chunk, was) for chunk in chunks], was)
    except pa.ArrowException as problem:
        raise SpecError(f"{told}: not all values fit: {problem}") from None


def _within_reach(array: pa.Array) -> list[pa.Array]:
    """Returns an array, cut where it stands for more text than offsets of 32 bits reach."""
    return [array[at] for at in within_reach(pa.record_batch([array], names=["values"]))]


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    array = taken(array)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), kind)
    if array.type == kind:
        return array
    return encoded(array if pa.types.is_nested(array.type) else decoded(array), kind)


def change_refused(was: pa.DataType, now: pa.DataType) -> str | None:
    """Returns why values of type ``now`` must not stand where ``was`` is expected, in words; None if they may.

    They may if all that they say stays the same. Whether each value fits is not told by this.
    """
    was, now = decoded_type(taken_type(was)), decoded_type(taken_type(now))
    if was == now or pa.types.is_null(now):
        return None
    if pa.types.is_null(was):
        return (
            "the first batch had only nulls in it; open(schema=...), of joins open(schemas=...), names the type "
            "beforehand"
        )
    before, after = _meaning(was), _meaning(now)
    if before != after:
        if "text" in (before, after):
            return "text is not parsed, and nothing is made text"
        return f"{after} cannot stand for {before}"
    if before == "numbers":
        return _rounding(was, now)
    if before == "lists":
        return change_refused(was.value_type, now.value_type)
    if before == "maps":
        return change_refused(was.key_type, now.key_type) or change_refused(was.item_type, now.item_type)
    if before == "structs":
        if [field.name for field in was] != [field.name for field in now]:
            return "the structs have other fields"
        refused = (change_refused(was.field(i).type, now.field(i).type) for i in range(was.num_fields))
        return next((why for why in refused if why is not None), None)
    return None


def object_refused(was: pa.DataType, value: Any) -> str | None:
    """Returns why a Python object must not become a value of a plain type, in words; None if it may or is not known.

    Arrow would take an int for a timestamp, or True for 1.
    """
    try:
        now = pa.array([value]).type
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    before, after = _meaning(decoded_type(was)), _meaning(now)
    if before == after or before not in _PLAIN or after not in _PLAIN:
        return None
    return f"is {was}, and {value!r} is {now}: {change_refused(was, now)}"


def _rounding(was: pa.DataType, now: pa.DataType) -> str | None:
    floats = pa.types.is_floating(was), pa.types.is_floating(now)
    if all(floats) and now.bit_width > was.bit_width:
        return "floats would be rounded"
    if pa.types.is_float16(was) and pa.types.is_integer(now) and now.bit_width > 8:
        return "whole numbers would be rounded"  # which Arrow does without a word
    if any(floats) and (pa.types.is_decimal(was) or pa.types.is_decimal(now)):
        return "decimals and floats would be rounded"
    return None


_MEANINGS: list[tuple[str, tuple[Callable[[pa.DataType], bool], ...]]] = [
    ("numbers", (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)),
    ("booleans", (pa.types.is_boolean,)),
    ("text", (pa.types.is_string, pa.types.is_large_string)),
    ("bytes", (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)),
    ("dates", (pa.types.is_date,)),
    ("times of day", (pa.types.is_time,)),
    ("timestamps", (pa.types.is_timestamp,)),
    ("durations", (pa.types.is_duration,)),
    ("lists", (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)),
    ("maps", (pa.types.is_map,)),
    ("structs", (pa.types.is_struct,)),
]


_PLAIN = {name for name, _ in _MEANINGS} - {"lists", "maps", "structs"}


def _meaning(kind: pa.DataType) -> str:
    """What values of a type stand for, in words; a type that is like no other stands for itself."""
    if not isinstance(kind, pa.BaseExtensionType):
        for name, tests in _MEANINGS:
            if any(test(kind) for test in tests):
                return name
    return str(kind)


def schema_to_text(schema: pa.Schema) -> str:
    """Returns a schema as text for the state."""
    return base64.b64encode(schema.remove_metadata().serialize()).decode()


def text_to_schema(text: str) -> pa.Schema:
    """Returns the schema that schema_to_text() had been given."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))

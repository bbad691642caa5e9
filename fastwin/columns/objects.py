"""Rows of Python values, dicts or tuples, as Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from functools import lru_cache
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa

from fastwin.columns.decoding import decoded_type, encoded, from_objects, rebuilt
from fastwin.columns.schemas import change_refused, object_refused
from fastwin.columns.tables import has_null
from fastwin.errors import SpecError

__all__ = ["FRACTIONS", "exact_objects", "schema_of_rows", "table_of_rows", "without_missing"]

FRACTIONS = (float, np.floating, Decimal)
"""What Arrow takes for an int, and cuts off."""

_NUMPY_TIMES = (np.datetime64, np.timedelta64)
_WIDER = {pa.int8(): pa.int64(), pa.int16(): pa.int64(), pa.int32(): pa.int64(), pa.float32(): pa.float64()}


def schema_of_rows(rows: Sequence[Mapping[str, Any]], call: str) -> pa.Schema:
    """Returns the schema that dicts by column have. call: for errors. Raises SpecError where Arrow knows none."""
    try:
        known = [dict(zip(row, without_missing([*row.values()]), strict=True)) for row in rows]
        told = pa.Table.from_pylist(known).schema
    except (pa.ArrowException, TypeError, OverflowError, ValueError) as problem:
        raise SpecError(f"{call}: {rows[0]!r} has values that Arrow has no type for: {problem}") from problem
    return pa.schema([field.with_type(_WIDER.get(field.type, field.type)) for field in told])


def table_of_rows(rows: Sequence[Any], schema: pa.Schema, names: Sequence[str] | None, call: str) -> pa.Table:
    """Returns rows as a table with the columns of a schema.

    rows: dicts by column, which may have more columns, or tuples of a value for each of ``names``; None: no tuples.
    call: for errors.
    Raises SpecError for other rows, and for values that do not suit a column.
    """
    places = {name: names.index(name) for name in schema.names if name in names} if names else {}
    columns: dict[str, list[Any]] = {name: [] for name in schema.names}
    for row in rows:
        for name, values in columns.items():
            values.append(_value(row, name, places, names, call))
    arrays = []
    for field in schema:
        values = columns[field.name]
        for value in values:
            refused = object_refused(field.type, value)
            if refused is not None:
                raise SpecError(f"{call}: column {field.name!r} {refused}")
        try:
            arrays.append(exact_objects(values, field.type))
        except (pa.ArrowException, TypeError, OverflowError, ValueError) as problem:
            cause = _cause(field.type, values) or problem
            raise SpecError(f"{call}: column {field.name!r} is {field.type}: {cause}") from problem
    return pa.Table.from_arrays(arrays, schema=schema)


def without_missing(values: Sequence[Any]) -> Sequence[Any]:
    """Returns Python objects with None for NaT and NA of pandas: Arrow takes NaT for a date of the year 1."""
    missing = tuple(kind for kind in set(map(type, values)) if kind.__name__ in ("NaTType", "NAType"))
    return [None if isinstance(value, missing) else value for value in values] if missing else values


def exact_objects(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Returns an array of Python objects; raises ArrowInvalid where ``kind`` would cut something off.

    Arrow itself cuts times to the unit of a column, and floats to ints.
    """
    values, plain = without_missing(values), decoded_type(kind)
    kinds = set(map(type, values))
    if pa.types.is_integer(plain) and any(issubclass(one, FRACTIONS) for one in kinds):
        return encoded(pa.array(values), kind)
    if any(issubclass(one, _NUMPY_TIMES) for one in kinds):
        return _of_numpy_times(values, kind)
    unit = "ns" if any(getattr(value, "nanosecond", getattr(value, "nanoseconds", 0)) for value in values) else "us"
    fine = _with_unit(plain, unit)
    found = from_objects(values, kind) if fine == plain else encoded(pa.array(values, fine), kind)
    if _may_be_cut(plain) and not pa.types.is_integer(plain):
        for value in values:
            if _is_cut(plain, value):
                raise pa.ArrowInvalid(f"{value!r} has a part that would be cut off")
    return found


def _of_numpy_times(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Arrow takes times of numpy in the very unit of the column alone."""
    found = pa.array(np.array(values))
    refused = change_refused(kind, found.type)
    if refused is not None:
        raise pa.ArrowInvalid(refused)
    return encoded(found, kind)


def _is_cut(kind: pa.DataType, value: Any) -> bool:
    """Whether Arrow would cut off a fraction within a list, struct or map, or a time of day, or make a date of NaT."""
    if value is None or not _may_be_cut(kind):
        return False
    if pa.types.is_integer(kind):
        return isinstance(value, FRACTIONS) and value != int(value)
    if pa.types.is_date(kind):
        return value != value or (isinstance(value, datetime) and value.time() != time())
    if pa.types.is_struct(kind):
        return isinstance(value, Mapping) and any(_is_cut(field.type, value.get(field.name)) for field in kind)
    if pa.types.is_map(kind):
        pairs = value.items() if isinstance(value, Mapping) else value
        return any(_is_cut(kind.key_type, key) or _is_cut(kind.item_type, item) for key, item in pairs)
    if all(one is date or one is NoneType or issubclass(one, (int, np.integer)) for one in set(map(type, value))):
        return False
    return any(_is_cut(kind.value_type, one) for one in value)


@lru_cache(maxsize=1_000)
def _may_be_cut(kind: pa.DataType) -> bool:
    """Whether a type is one of whole numbers or dates, or has such within."""
    if pa.types.is_nested(kind):
        return any(_may_be_cut(kind.field(i).type) for i in range(kind.num_fields))
    return pa.types.is_integer(kind) or pa.types.is_date(kind)


def _with_unit(kind: pa.DataType, unit: str) -> pa.DataType:
    """The type with times, at any depth, of a unit that is at least as fine."""
    if pa.types.is_temporal(kind) and getattr(kind, "unit", "ns") != "ns":
        if pa.types.is_timestamp(kind):
            return pa.timestamp(unit, kind.tz)
        return pa.duration(unit) if pa.types.is_duration(kind) else pa.time64(unit)
    return rebuilt(kind, lambda inner: _with_unit(inner, unit))


def _cause(kind: pa.DataType, values: Sequence[Any]) -> str | None:
    """Returns why values do not suit a column whose first batch had nulls alone, in words; None where it had others."""
    try:
        return change_refused(kind, pa.array(values).type) if has_null(kind) else None
    except (pa.ArrowException, TypeError, OverflowError, ValueError):
        return None


def _value(row: Any, name: str, places: Mapping[str, int], names: Sequence[str] | None, call: str) -> Any:
    if isinstance(row, Mapping):
        if name not in row:
            raise SpecError(f"{call}: column {name!r} is missing; the row has {', '.join(map(str, row)) or 'none'}")
        return row[name]
    if not isinstance(row, tuple):
        raise SpecError(f"{call}: a row must be a dict or a tuple, got {type(row).__name__}")
    if names is None:
        raise SpecError(f"{call}: a tuple needs open(schema=...), which tells the order of its values; got {row!r}")
    if len(row) != len(names):
        raise SpecError(f"{call}: a tuple has a value for each of {', '.join(names)}, got {len(row)} values")
    return row[places[name]]

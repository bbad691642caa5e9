"""Rows of Python values, dicts or tuples, as Arrow tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from fastwin.columns.decoding import decoded_type, encoded, from_objects
from fastwin.columns.exact import Exact
from fastwin.columns.schemas import change_refused, object_refused
from fastwin.columns.tables import has_null
from fastwin.errors import SpecError

__all__ = ["FRACTIONS", "exact_objects", "schema_of_rows", "table_of_rows", "whole_objects", "without_missing"]

FRACTIONS = (float, np.floating, Decimal)
"""What Arrow takes for an int, and cuts off."""

_WHOLE = (pa.Scalar, Exact)  # of a type of Arrow's
_NUMPY_TIMES = (np.datetime64, np.timedelta64)
_TIMES = (datetime, time, timedelta)
_NARROW = {pa.float32(): float(2**128 - 2**103), pa.float16(): 65_520.0}  # from there on a number rounds to infinity
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}
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
    """Returns an array of Python objects; raises ArrowInvalid where ``kind`` would cut something off."""
    values = without_missing(values)
    if pa.types.is_integer(decoded_type(kind)) and any(issubclass(one, FRACTIONS) for one in set(map(type, values))):
        return encoded(pa.array(values), kind)
    return from_objects(whole_objects(values, kind), kind)


def whole_objects(values: Sequence[Any], kind: pa.DataType) -> Sequence[Any]:
    """Returns Python objects as Arrow takes them; raises ArrowInvalid where ``kind`` would cut something off.

    Arrow itself cuts times to the unit of a column, and floats within lists, structs and maps to ints.
    """
    plain = decoded_type(kind)
    kinds = set(map(type, values))
    if any(issubclass(one, _NUMPY_TIMES) for one in kinds) and pa.types.is_temporal(plain):
        values = [_counted(value, plain) if isinstance(value, _NUMPY_TIMES) else value for value in values]
    if _may_be_cut(plain):
        _refuse_cut(values, plain)
    return values


def _counted(value: np.datetime64 | np.timedelta64, kind: pa.DataType) -> int | None:
    """Returns a time of numpy as what a column counts: Arrow takes one in the very unit of the column alone."""
    if np.isnat(value):
        return None
    code, days = "m8" if pa.types.is_duration(kind) else "M8", pa.types.is_date(kind)
    no_time = pa.types.is_timestamp(kind) and np.datetime_data(value.dtype)[0] in "YMWD"
    if value.dtype.kind != code[0] or no_time or pa.types.is_time(kind):
        raise pa.ArrowInvalid(f"{value!r} is no {kind}")
    there = value.astype(f"{code}[{'D' if days else kind.unit}]")
    if there.astype(value.dtype) != value:
        raise pa.ArrowInvalid(f"{value!r} has a part that would be cut off, or is out of range")
    return int((there.astype("M8[ms]") if pa.types.is_date64(kind) else there).astype(np.int64))


def _refuse_cut(values: Iterable[Any], kind: pa.DataType) -> None:
    """Raises ArrowInvalid for the first value that Arrow would cut. values: those of a column, or within one."""
    if pa.types.is_struct(kind):
        rows = [value for value in values if isinstance(value, Mapping)]
        for field in kind:
            if _may_be_cut(field.type):
                _refuse_cut([row.get(field.name) for row in rows], field.type)
        return
    if pa.types.is_map(kind):
        maps = [value for value in values if value is not None and not isinstance(value, _WHOLE)]
        pairs = [pair for value in maps for pair in (value.items() if isinstance(value, Mapping) else value)]
        entries = [tuple(pair.values()) if isinstance(pair, Mapping) else pair for pair in pairs]
        for place, inner in enumerate((kind.key_type, kind.item_type)):
            if _may_be_cut(inner):
                _refuse_cut([entry[place] for entry in entries], inner)
        return
    if pa.types.is_nested(kind):
        lists = [value for value in values if value is not None and not isinstance(value, _WHOLE)]
        whole = [isinstance(value, np.ndarray) and _all_fit(value.dtype, kind.value_type) for value in lists]
        _refuse_cut(
            [one for value, skip in zip(lists, whole, strict=True) if not skip for one in value], kind.value_type
        )
        return
    suspects = tuple(one for one in set(map(type, values)) if _suspect(one, kind))
    if suspects:
        for value in values:
            if isinstance(value, suspects) and _is_cut(value, kind):
                narrow = pa.types.is_floating(kind)
                fault = "is out of range, or would be rounded" if narrow else "has a part that would be cut off"
                raise pa.ArrowInvalid(f"{value!r} {fault}")


def _all_fit(numbers: np.dtype, kind: pa.DataType) -> bool:
    """Whether each array of numpy's of a type surely fits a column, or a list within one."""
    return numbers.kind in "biu" if kind not in _NARROW else numbers == kind.to_pandas_dtype()


def _suspect(one: type, kind: pa.DataType) -> bool:
    """Whether values of a Python type may be more than those of a column."""
    if pa.types.is_integer(kind) or kind in _NARROW:
        return issubclass(one, FRACTIONS) or (pa.types.is_float16(kind) and issubclass(one, (int, np.integer)))
    if one in _TIMES and getattr(kind, "unit", "") == "us":
        return False
    return issubclass(one, (*_TIMES, *_NUMPY_TIMES)) or one.__name__ == "NaTType"


def _is_cut(value: Any, kind: pa.DataType) -> bool:
    """Whether Arrow would cut off a fraction or a time of day, or make a date of NaT, or infinity of a number."""
    if pa.types.is_floating(kind):
        number = float(value) if isinstance(value, np.floating) else value  # NumPy would round the bound to 16 bits
        if isinstance(number, int | np.integer):  # for 16 bits alone: for others Arrow itself takes exact ones only
            return abs(int(number)) >= _NARROW[kind] or int(np.float16(int(number))) != number
        return math.isfinite(number) and abs(number) >= _NARROW[kind]
    if pa.types.is_integer(kind):
        return value != value or value in (math.inf, -math.inf) or value != int(value)
    if value is None or type(value).__name__ == "NaTType":
        return True
    if isinstance(value, _NUMPY_TIMES):
        _counted(value, kind)
        return False
    if pa.types.is_date(kind):
        return isinstance(value, datetime) and value.time() != time.min
    micros = value.microseconds if isinstance(value, timedelta) else getattr(value, "microsecond", 0)
    nanos = getattr(value, "nanosecond", getattr(value, "nanoseconds", 0))
    return bool(micros % _MICROSECONDS[kind.unit] or nanos)


@lru_cache(maxsize=1_000)
def _may_be_cut(kind: pa.DataType) -> bool:
    """Whether a type holds less than Python does, or has such within: whole numbers, narrow floats, dates, most times.

    Times finer than microseconds are whole.
    """
    if pa.types.is_nested(kind):
        return any(_may_be_cut(kind.field(i).type) for i in range(kind.num_fields))
    if pa.types.is_integer(kind) or pa.types.is_date(kind) or kind in _NARROW:
        return True
    return pa.types.is_temporal(kind) and getattr(kind, "unit", None) in _MICROSECONDS


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

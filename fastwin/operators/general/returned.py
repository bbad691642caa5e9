"""What user code has returned: checked, and made rows and columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fastwin.columns.decoding import take_column
from fastwin.columns.objects import FRACTIONS, whole_objects, without_missing
from fastwin.columns.plainnumbers import plain_floats, plain_ints
from fastwin.columns.pythonvalues import exact_array
from fastwin.columns.row import Row, RowType, exact_items, row_of
from fastwin.errors import SpecError
from fastwin.spec.resultcolumns import DELETE

__all__ = ["check_rows", "first_unsuited", "reduced_maker", "row_maker", "to_arrays", "with_changes"]


def check_rows(returned: object) -> None:
    """Raises TypeError unless what a function returned can be several rows: a single one is not taken apart.

    No row is an empty tuple, so that one is none.
    """
    if isinstance(returned, tuple) and not returned:
        return
    if isinstance(returned, tuple | dict | Row | str | bytes) or not hasattr(returned, "__iter__"):
        raise TypeError(f"must yield rows, or return a list of them, returned {returned!r}")


def row_maker(names: tuple[str, ...], what: str) -> Callable[[Any], tuple[Any, ...]]:
    """Returns a function from what user code returned for a row to a tuple with a value for each name.

    Takes tuples, lists, rows, mappings, and for one name a scalar. what: the function's name, for errors.
    """
    if len(names) == 1:
        (only,) = names

    def make(value: Any) -> tuple[Any, ...]:
        if type(value) is tuple and len(value) == len(names):
            return value
        if isinstance(value, Row):
            value = exact_items(value)
        if isinstance(value, Mapping):
            missing = [name for name in names if name not in value]
            if missing:
                raise SpecError(f"{what}: the row {value!r} has no {', '.join(missing)}")
            unknown = [str(name) for name in value if name not in names]
            if unknown:
                raise SpecError(
                    f"{what}: the row {value!r} has {', '.join(unknown)}; its columns are {', '.join(names)}"
                )
            return tuple(value[name] for name in names)
        if isinstance(value, tuple | list) and len(value) == len(names) and (len(names) != 1 or type(value) is tuple):
            return tuple(value)
        if len(names) == 1:
            return (value,)
        raise SpecError(f"{what}: must give a tuple or dict with {', '.join(names)}, gave {value!r}")

    if len(names) == 1:

        def make_one(value: Any) -> tuple[Any, ...]:
            kind = type(value)
            if kind is dict and only not in value:
                return (value,)
            return make(value) if kind in (tuple, dict) or isinstance(value, Row) else (value,)

        return make_one
    return make


def reduced_maker(kind: RowType, what: str) -> Callable[[Any], Row]:
    """Returns a function from what a ReduceFunction returned to a Row of the input's columns."""

    def make(value: Any) -> Row:
        if type(value) is Row:
            return value
        if isinstance(value, Mapping):
            unknown = [str(name) for name in value if name not in kind.names]
            if unknown:
                raise SpecError(f"{what}: the row {value!r} has {', '.join(unknown)}, which the input has not")
            return row_of(kind, [value.get(name) for name in kind.names])
        if isinstance(value, tuple) and len(value) == len(kind.names):
            return row_of(kind, value)
        raise SpecError(f"{what}: must give a row, a dict, or a tuple with {', '.join(kind.names)}, gave {value!r}")

    return make


_PLAIN = {pa.int64().id: plain_ints, pa.float64().id: plain_floats}


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    plain = _PLAIN.get(kind.id)
    numbers = plain(values) if plain is not None and isinstance(values, list) else None
    if numbers is not None:
        return pa.array(numbers)
    values = without_missing(values)
    counts = pa.types.is_integer(kind) or pa.types.is_temporal(kind)
    if counts and any(issubclass(found, FRACTIONS) for found in set(map(type, values))):
        return pa.array(values).cast(kind)  # which refuses to cut off a fraction
    return exact_array(whole_objects(values, kind), kind)


def to_arrays(columns: Iterable[Sequence[Any]], schema: pa.Schema, what: str) -> list[pa.Array]:
    """Returns columns as Arrow arrays of a schema. Raises SpecError for a value that does not suit its column."""
    arrays = []
    for field, values in zip(schema, columns, strict=True):
        try:
            arrays.append(_array(values, field.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
            raise SpecError(f"{what}: column {field.name!r} is {field.type}: {problem}") from problem
    return arrays


def first_unsuited(columns: Sequence[Sequence[Any]], schema: pa.Schema, what: str) -> tuple[int, str] | None:
    """Returns the first row with a value that does not suit its column, and what ``to_arrays`` says of it; None: each
    row by itself suits."""
    for number, row in enumerate(zip(*columns, strict=True)):
        try:
            to_arrays(([value] for value in row), schema, what)
        except SpecError as problem:
            return number, str(problem)
    return None


def with_changes(columns: list[pa.Array], changes: list[str], named: int) -> list[pa.Array]:
    """Returns the columns of results and their changes; what is deleted has nulls behind the first ``named`` ones."""
    told = pa.array(changes, pa.string())
    deleted = np.array([change == DELETE for change in changes])
    if deleted.any():
        places = pa.array(np.arange(len(changes)), mask=deleted)
        columns = [*columns[:named], *(take_column(column, places) for column in columns[named:])]
    return [*columns, told]

"""Program: the parts of a spec that only the general operator knows, and how Python results become columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from fastwin.assigners import WindowAssigner
from fastwin.errors import SpecError
from fastwin.evictors import Evictor
from fastwin.functions import AggregateFunction, ProcessWindowFunction, ReduceFunction
from fastwin.operators.base import Config
from fastwin.operators.userobjects import Classes
from fastwin.rowview import Row, RowType, row_of
from fastwin.triggers import Trigger

__all__ = [
    "PANE_FIELDS",
    "GeneralConfig",
    "Program",
    "PythonAggregate",
    "reduced_maker",
    "row_maker",
    "to_arrays",
]

PANE_FIELDS = [
    pa.field("pane_index", pa.int32()),
    pa.field("pane_timing", pa.string()),
    pa.field("pane_is_last", pa.bool_()),
]


@dataclass(frozen=True)
class PythonAggregate:
    """A user-written AggregateFunction and the result columns that it fills."""

    function: AggregateFunction
    names: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """What the general operator runs, beyond a Config.

    aggregates: user-written ones. reduce, process: at most one of reduce and aggregates; process takes their result,
    or all elements. output: the columns that Python code fills, None: there are none. side: schemas by tag.
    rows: the input's schema if Python code or an evictor reads elements. arrival: elements have the time of the
    clock. pane_info: whether results say which firing of their window they are.
    """

    assigner: WindowAssigner
    trigger: Trigger
    evictor: Evictor | None = None
    aggregates: tuple[PythonAggregate, ...] = ()
    reduce: ReduceFunction | None = None
    process: ProcessWindowFunction | None = None
    output: pa.Schema | None = None
    side: tuple[tuple[str, pa.Schema], ...] = ()
    rows: pa.Schema | None = None
    arrival: bool = False
    pane_info: bool = False

    @cached_property
    def classes(self) -> Classes:
        """The classes that the user's code refers to, for its state."""
        functions = [part.function for part in self.aggregates]
        return Classes([self.assigner, self.trigger, self.evictor, *functions, self.reduce, self.process])


@dataclass(frozen=True)
class GeneralConfig(Config):
    """The Config of a general operator. columns: the schema of its main result."""

    columns: pa.Schema | None = None

    @property
    def main_schema(self) -> pa.Schema:
        assert self.columns is not None
        return self.columns

    @property
    def main_names(self) -> list[str]:
        """Names of the result columns."""
        return self.main_schema.names


def row_maker(names: tuple[str, ...], what: str) -> Any:
    """Returns a function from what user code returned for a row to a tuple with a value for each name.

    Takes tuples, lists, rows, mappings, and for one name a scalar. what: the function's name, for errors.
    """
    if len(names) == 1:
        (only,) = names

    def make(value: Any) -> tuple[Any, ...]:
        if type(value) is tuple and len(value) == len(names):
            return value
        if isinstance(value, Row):
            value = value._asdict()
        if isinstance(value, Mapping):
            missing = [name for name in names if name not in value]
            if missing:
                raise SpecError(f"{what}: the row {value!r} has no {', '.join(missing)}")
            unknown = [str(name) for name in value if name not in names]
            if unknown:
                raise SpecError(f"{what}: the row {value!r} has {', '.join(unknown)}, which output= does not name")
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


def reduced_maker(kind: RowType, what: str) -> Any:
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


_FRACTIONS = (float, np.floating, Decimal)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_integer(kind) and any(issubclass(found, _FRACTIONS) for found in set(map(type, values))):
        return pa.array(values).cast(kind)  # which refuses to cut off a fraction
    return pa.array(values, kind)


def to_arrays(columns: Iterable[Sequence[Any]], schema: pa.Schema, what: str) -> list[pa.Array]:
    """Returns columns as Arrow arrays of a schema. Raises SpecError for a value that does not suit its column."""
    arrays = []
    for field, values in zip(schema, columns, strict=True):
        try:
            arrays.append(_array(values, field.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
            raise SpecError(f"{what}: column {field.name!r} is {field.type}: {problem}") from problem
    return arrays

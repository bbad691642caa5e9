"""PushedRows: rows of Python values, as Arrow tables, and a few plain ones as the operators take them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from fastwin.columns.decoding import decoded_type
from fastwin.columns.objects import schema_of_rows, table_of_rows
from fastwin.columns.units import is_suspicious
from fastwin.columns.values import ValueColumn
from fastwin.core.keys.keycolumns import encode_rows
from fastwin.errors import SpecError
from fastwin.operators.batch import Batch
from fastwin.run.planner import Plan
from fastwin.run.reading import columns_read
from fastwin.spec.builder import SpecBuilder
from fastwin.times import MIN_TIMESTAMP

__all__ = ["PushedRows"]

# More rows are read faster through Arrow.
_MOST_ROWS = 64
_READINGS = {"int64", "float64", "number", "text", "valid", "time", "arrival", "rows"}
# Years 1970 to 9998: no time of these is a bad one, whatever unit it is in.
_LAST_MS = 253_370_764_800_000
_EPOCHS = {False: datetime(1970, 1, 1), True: datetime(1970, 1, 1, tzinfo=UTC)}

_NO_TUPLES = -1  # no tuple is so wide

_Read = Callable[[Sequence[Any]], tuple]


class _NotPlain(Exception):  # noqa: N818 - it is no error
    """Values that Arrow has to look at."""


class PushedRows:
    """Reads the rows that are pushed into a stream of a spec.

    schema: of the input, if it was given: the columns of tuples. Without it tuples are refused: nobody knows the order
        of their values, not even once the columns are known.
    """

    def __init__(self, spec: SpecBuilder, schema: pa.Schema | None) -> None:
        self._spec = spec
        self._names = None if schema is None else schema.names
        self._plan: Plan | None = None
        self._few: _FewRows | None = None

    def bind(self, plan: Plan, quick: bool) -> None:
        """Reads rows for a plan from now on. quick: whether a few may be read without Arrow."""
        self._plan = plan
        self._few = _few_rows(plan, self._names) if quick and not plan.of_state else None

    def batch(self, rows: list[Any], unit_known: bool) -> Batch | None:
        """Returns a few rows as elements, whose times are good ones; None where that takes Arrow.

        unit_known: whether it is settled that plain numbers are times in ms.
        """
        if self._few is None or not 0 < len(rows) <= _MOST_ROWS:
            return None
        batch = self._few.read(rows)
        if batch is None or unit_known or not is_suspicious(int(batch.times.max())):
            return batch
        return None

    def table(self, rows: list[Any]) -> pa.Table:
        """Returns rows as a table that ``Stream.process`` takes. Raises SpecError where they do not suit."""
        if self._plan is not None:
            schema = self._plan.input_schema
            if self._plan.of_state and rows and all(isinstance(row, Mapping) for row in rows):
                more = [name for name in rows[0] if name not in schema.names]
                told = schema_of_rows([{name: row.get(name) for name in more} for row in rows], "push") if more else ()
                schema = pa.schema([*schema, *told])
            return table_of_rows(rows, schema, self._names, "push")
        if not rows or not all(isinstance(row, Mapping) for row in rows):
            raise SpecError("push: the columns are not known yet; the first row must be a dict, or open(schema=...)")
        read = columns_read(self._spec, rows[0])
        rows = [{name: row[name] for name in read if name in row} for row in rows]
        schema = schema_of_rows(rows, "push")
        return table_of_rows(rows, schema, None, "push")

    def record_batch(self, rows: list[Any]) -> pa.RecordBatch:
        """Returns rows as a record batch of the plan's columns."""
        return self.table(rows).combine_chunks().to_batches()[0]


class _FewRows:
    """Reads rows for one plan. names: the columns of tuples, in order; None: tuples are left to others too.

    It takes ints, floats, text, booleans, datetimes and None, each in a column of its own type. All others, and times
    that might be bad ones, it leaves to those who read them through Arrow.
    """

    def __init__(self, plan: Plan, names: Sequence[str] | None) -> None:
        schema, spec = plan.input_schema, plan.spec
        self._wide = _NO_TUPLES if names is None else len(names)
        self._inputs = plan.inputs
        self._time = spec.time_column
        self._keys = [field.name for field in plan.config.codec.fields]
        order = schema.names if names is None else names
        self._readers = [
            (field.name, order.index(field.name), (_time_reader if field.name == self._time else _reader)(field.type))
            for field in schema
        ]

    def read(self, rows: Sequence[Any]) -> Batch | None:
        """Returns the elements of dicts by column, or of tuples; None where they are to be read through Arrow.

        Good until the next call, which writes over it.
        """
        values, n, wide = {}, len(rows), self._wide
        try:
            if n == 1:
                row = rows[0]
                if type(row) is tuple:
                    if len(row) != wide:
                        return None
                    for name, place, read in self._readers:
                        values[name] = read((row[place],))
                elif type(row) is dict:  # what another mapping has, and what it makes up, Arrow's way asks
                    for name, _, read in self._readers:
                        values[name] = read((row[name],))
                else:
                    return None
            else:
                if any(len(row) != wide if type(row) is tuple else type(row) is not dict for row in rows):
                    return None
                for name, place, read in self._readers:
                    values[name] = read([row[place] if type(row) is tuple else row[name] for row in rows])
            times = np.full(n, MIN_TIMESTAMP) if self._time is None else values[self._time][0]
            return Batch(self._encoded(values, n), times, self._columns(values, times), None, self._inputs.arrival)
        except (_NotPlain, KeyError, IndexError, TypeError, OverflowError, UnicodeError):
            return None

    def _encoded(self, values: dict[str, tuple], n: int) -> tuple:
        if len(self._keys) == 1:
            return values[self._keys[0]]
        if not self._keys:
            return np.zeros(n, dtype=np.int64), None
        return (*encode_rows([values[name] for name in self._keys], n), None)

    def _columns(self, values: dict[str, tuple], times: np.ndarray) -> list[ValueColumn]:
        found = []
        for column, reading, where in self._inputs.sources:
            if reading == "rows":
                one: tuple = (None, None)
            elif reading == "time":
                one = (times, None)
            elif reading == "arrival":
                one = (np.arange(len(times)), None)
            else:
                one = _as(reading, values[column])  # type: ignore[index]
            if where is not None:
                truths, valid = values[where]  # type: ignore[index]
                marks = truths.astype(np.bool_) if valid is None else (truths != 0) & (valid != 0)
                one = (*one[:-1], marks if one[-1] is None else one[-1] & marks)
            found.append(one)
        return found


def _few_rows(plan: Plan, names: Sequence[str] | None) -> _FewRows | None:
    """Returns what reads rows for a plan; None where Python code or the operator sees them as they are, or where a
    column is of a type that only Arrow reads."""
    if plan.keeps_rows or (plan.program is not None and plan.program.rows is not None):
        return None
    if plan.spec.time_unit not in (None, "ms"):
        return None
    sources, schema = plan.inputs.sources, plan.input_schema
    if plan.inputs.computed or not all(source.reading in _READINGS for source in sources):
        return None
    if names is not None and (len(set(names)) != len(names) or not set(schema.names) <= set(names)):
        return None
    # Floats that are read as their bits, and times that are more than times: Arrow knows how.
    bits = {field.name for field in plan.config.codec.fields} | {
        source.column for source in sources if source.reading == "int64"
    }
    values = bits | {source.column for source in sources if source.reading != "time"}
    if any(schema.field(name).type == pa.float64() for name in schema.names if name in bits):
        return None
    if plan.spec.time_column in values:
        return None
    try:
        return _FewRows(plan, names)
    except _NotPlain:
        return None


def _as(reading: str, column: tuple) -> ValueColumn:
    if column[-1] is None and reading == "int64":
        return column
    marks = None if column[-1] is None else column[-1].view(np.bool_)
    if reading == "valid":
        return None, marks
    if reading == "number":
        return column[0].astype(np.float64, copy=False), marks
    return (*column[:-1], marks)


def _valid(values: Sequence[Any]) -> np.ndarray | None:
    if None not in values:
        return None
    return np.array([value is not None for value in values], dtype=np.uint8)


def _numbers(kind: type, dtype: type, least: Any = None, most: Any = None, nulls: bool = True) -> _Read:
    one: np.ndarray = np.zeros(1, dtype=dtype)  # of a single row

    def read(values: Sequence[Any]) -> tuple:
        valid = None
        for value in values:
            if type(value) is not kind:
                if value is not None or not nulls:
                    raise _NotPlain
                valid = _valid(values)
            elif least is not None and not least <= value <= most:
                raise _NotPlain
        if valid is not None:
            values = [0 if value is None else value for value in values]
        if len(values) > 1:
            return np.array(values, dtype=dtype), valid
        one[0] = values[0]
        return one, valid

    return read


def _texts(kind: type) -> _Read:
    one = np.zeros(2, dtype=np.int64)

    def read(values: Sequence[Any]) -> tuple:
        for value in values:
            if type(value) is not kind and value is not None:
                raise _NotPlain
        parts = [b"" if value is None else value.encode() if kind is str else value for value in values]
        if len(parts) == 1:
            one[1] = len(parts[0])
            return one, np.frombuffer(parts[0], dtype=np.uint8), _valid(values)
        offsets = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        return offsets, np.frombuffer(b"".join(parts), dtype=np.uint8), _valid(values)

    return read


def _reader(kind: pa.DataType) -> _Read:
    kind = decoded_type(kind)
    if pa.types.is_integer(kind) and kind != pa.uint64():
        bounds = np.iinfo(kind.to_pandas_dtype())
        return _numbers(int, np.int64, int(bounds.min), int(bounds.max))
    if pa.types.is_boolean(kind):
        return _numbers(bool, np.int64)
    if kind == pa.float64():
        return _numbers(float, np.float64)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _texts(str)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _texts(bytes)
    raise _NotPlain


def _time_reader(kind: pa.DataType) -> _Read:
    if kind == pa.int64():
        return _numbers(int, np.int64, 0, _LAST_MS, nulls=False)
    if not pa.types.is_timestamp(kind):
        raise _NotPlain
    exact = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}[kind.unit]
    epoch = _EPOCHS[kind.tz is not None]
    last = 2**62 // 1_000_000 if kind.unit == "ns" else _LAST_MS  # what nanoseconds in int64 can tell

    def read(values: Sequence[Any]) -> tuple:
        times = []
        for value in values:
            if type(value) is not datetime or (value.tzinfo is None) != (epoch.tzinfo is None):
                raise _NotPlain
            since = value - epoch
            if since.microseconds % exact:
                raise _NotPlain
            times.append((since.days * 86_400 + since.seconds) * 1_000 + since.microseconds // 1_000)
            if not 0 <= times[-1] <= last:
                raise _NotPlain
        return np.array(times, dtype=np.int64), None

    return read

"""Bound: a join whose inputs' columns are known, and how rows of one input become rows of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastwin.columns.buffers import int64_values
from fastwin.columns.checking import Checked, Limits, good_rows
from fastwin.columns.decoding import converted, decoded, decoded_type, encoded, take_rows, within_reach
from fastwin.columns.schemas import conform
from fastwin.errors import SpecError
from fastwin.run.timelimits import time_limits
from fastwin.run.twoinputs import of_input
from fastwin.run.windowspec import WindowSpec
from fastwin.spec.joinending import LATE_SIDES, SIDE, SIDES, TIME, Columns

__all__ = ["Bound"]


@dataclass(frozen=True)
class Bound:
    """A join bound to the schemas of its inputs. spec: over both, put together; schemas: of the inputs."""

    spec: WindowSpec
    schemas: tuple[pa.Schema, pa.Schema]
    sides: tuple[WindowSpec, WindowSpec]
    columns: tuple[Columns, Columns]
    schema: pa.Schema
    """Of both inputs put together."""

    def limits(self, side: int) -> Limits:
        """Returns the bounds on the event times of one input."""
        return time_limits(self.spec, self.sides[side].time_unit, Limits(side=SIDES[side]))

    def guesses_unit(self, side: int) -> bool:
        """Returns whether int64 times of one input are taken for milliseconds without having been called so."""
        own = self.sides[side]
        assert own.time_column is not None
        return own.time_unit is None and self.schemas[side].field(own.time_column).type == pa.int64()

    def spec_of(self, side: int) -> WindowSpec:
        """Returns the spec over both for rows of one input whose times are in ms already: it takes the same times."""
        return self.spec if self.guesses_unit(side) else replace(self.spec, time_unit="ms")

    def checked(self, side: int, table: pa.Table, call: str) -> Iterator[Checked]:
        """Yields the good rows of one input. call: for errors. Raises SpecError, and BadRowError as the policy says."""
        own = self.sides[side]
        assert own.time_column is not None
        with of_input(side, call):
            table = conform(table, self.schemas[side])
        for rows in (some[at] for some in table.combine_chunks().to_batches() for at in within_reach(some)):
            yield good_rows(rows, own.time_column, own.bad_row_policy, self.limits(side))

    def united(self, side: int, rows: pa.RecordBatch | pa.Table, times: pa.Array) -> pa.Table:
        """Returns rows of one input as rows of both. times: of the event time, int64 ms.

        Raises SpecError for a uint64 key that is no int64, where the other input's keys are of another width.
        """
        n = rows.num_rows
        keys = self.keys(side, rows)
        held = dict(zip(keys.schema.names, keys.columns, strict=True))
        held |= {SIDE: pa.repeat(pa.scalar(side, pa.int8()), n), TIME: times}
        held |= {name: rows.column(own) for name, own in self.columns[side]}
        columns = [held[field.name] if field.name in held else pa.nulls(n, field.type) for field in self.schema]
        columns = [converted(one, field.type) for one, field in zip(columns, self.schema, strict=True)]
        return pa.table(columns, schema=self.schema)

    def shown(self, side: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the columns of rows of one input that results show, as they are there."""
        schema = self.shown_schema(side)
        columns = [
            decoded(converted(rows.column(own), self.schema.field(name).type)) for name, own in self.columns[side]
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def shown_schema(self, side: int) -> pa.Schema:
        fields = [self.schema.field(name) for name, _ in self.columns[side]]
        return pa.schema([field.with_type(decoded_type(field.type)) for field in fields])

    def keys(self, side: int, rows: pa.RecordBatch | pa.Table) -> pa.RecordBatch | pa.Table:
        """Returns the key columns of rows of one input, as they are of both. Raises SpecError as ``united`` does."""
        names, kind = self.spec.keys, type(rows)
        fields = [self.schema.field(name) for name in names]
        columns = [
            self._key(own, rows.column(own), field.type)
            for own, field in zip(self.sides[side].keys, fields, strict=True)
        ]
        return kind.from_arrays(columns, schema=pa.schema(fields))

    def _key(self, name: str, column: Any, kind: pa.DataType) -> Any:
        """Returns a key column in the type that both inputs have together."""
        try:
            return converted(column, kind)
        except pa.ArrowInvalid:
            if decoded_type(column.type) != pa.uint64():
                raise
            most = 2**63 - 1
            found = pc.max(decoded(column)).as_py()
            assert self.spec.ending is not None
            raise SpecError(
                f"{self.spec.ending.method}: key {name!r} is uint64 and that of the other input another integer, so "
                f"keys must be at most {most}, got {found}; cast both to decimal128(20, 0)"
            ) from None

    def late_sides(self, late: pa.Table) -> dict[str, pa.Table]:
        """Returns late rows of both inputs as those of each, by tag, where the input asks for them."""
        return {
            tag: self.own_rows(side, late)
            for side, (spec, tag) in enumerate(zip(self.sides, LATE_SIDES, strict=True))
            if spec.late_output
        }

    def own_rows(self, side: int, rows: pa.Table) -> pa.Table:
        """Returns those rows of both inputs that are of one, with its own columns."""
        own = [take_rows(some, np.flatnonzero(int64_values(some.column(SIDE)) == side)) for some in rows.to_batches()]
        mine = pa.Table.from_batches(own, rows.schema)
        names = dict(zip(self.sides[side].keys, self.spec.keys, strict=True))
        names |= {own: name for name, own in self.columns[side]}
        schema = self.schemas[side]
        return pa.table([encoded(mine[names[field.name]], field.type) for field in schema], schema=schema)

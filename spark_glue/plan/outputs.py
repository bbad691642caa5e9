"""The columns of a result frame: the main ones, and a struct for each other output."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

import fastwin as fw
from fastwin.errors import BadRowError, SpecError
from spark_glue.plan.compat import arrow_schema_of
from spark_glue.plan.frameplan import LOCAL_MS, FramePlan
from spark_glue.plan.types import conform, main_fields, nullable_struct, spark_fields

__all__ = ["SIDE_PREFIX", "Output", "Part", "ResultKind", "is_other_output", "output_for", "result_tables"]

SIDE_PREFIX = "side_"
"""Side output ``tag`` is in the column ``side_tag``."""

# Spark takes columns of these types from pandas as they are, timestamps as numbers of microseconds.
_FLAT = (T.NumericType, T.BooleanType, T.StringType, T.BinaryType, T.DateType, T.TimestampType, T.TimestampNTZType)

_MOST_MS = (2**63 - 1) // 1_000  # Spark counts microseconds


class ResultKind(IntEnum):
    """Which output a result belongs to. Side outputs count on from SIDE, in the order of the spec."""

    MAIN = 0
    LATE = 1
    BAD = 2
    SIDE = 3


@dataclass(frozen=True)
class Part:
    """One output. column: the struct that holds it, None for the main columns. schema: of its tables."""

    column: str | None
    schema: pa.Schema


@dataclass(frozen=True)
class Output:
    """The columns of a result frame.

    struct: as Spark knows them. parts: the outputs there are, by kind of result. in_blobs: whether they leave the
    operator in blobs, whatever they are.
    """

    struct: T.StructType
    parts: dict[int, Part]
    in_blobs: bool = False

    @property
    def is_flat(self) -> bool:
        """Whether all columns can leave the operator as they are, without blobs."""
        return not self.in_blobs and all(isinstance(field.dataType, _FLAT) for field in self.struct)

    def rows(self, kind: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns a record batch of the given kind of result as rows of the result frame.

        Raises BadRowError for a time that is none of Spark's.
        """
        schema = arrow_schema_of(self.struct)
        column = self.parts[kind].column
        arrays = []
        for field in schema:
            if column is not None and field.name == column:
                arrays.append(_as_struct(batch, field.type))
            elif column is None and field.name in batch.schema.names:
                arrays.append(_conformed(batch, field))
            else:
                arrays.append(pa.nulls(batch.num_rows, field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def table_rows(self, kind: int, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yields a result table as rows of the result frame."""
        for batch in table.to_batches():
            if batch.num_rows:
                yield self.rows(kind, batch)

    def result_rows(self, result: fw.Result) -> Iterator[pa.RecordBatch]:
        """Yields all outputs of a result but the bad rows as rows of the result frame."""
        for kind, table in result_tables(result):
            yield from self.table_rows(kind, table)


def result_tables(result: fw.Result) -> Iterator[tuple[int, pa.Table]]:
    """Yields the outputs of a result that an operator makes, with their kinds; empty ones are left out."""
    tables = [(int(ResultKind.MAIN), result.main), (int(ResultKind.LATE), result.late)]
    tables += [(ResultKind.SIDE + i, table) for i, table in enumerate(result.side.values())]
    return ((kind, table) for kind, table in tables if table.num_rows)


def is_other_output(field: T.StructField) -> bool:
    """Returns whether a column of a result frame holds the late rows, the bad rows or a side output."""
    named = field.name in ("late", "bad") or field.name.startswith(SIDE_PREFIX)
    return named and field.dataType.typeName() == "struct"


def output_for(frame_plan: FramePlan, schema: T.StructType, case_sensitive: bool) -> Output:
    """Returns the output of a plan over a frame with this schema.

    Raises SpecError if two of its columns would have the same name, if a main one would look like another output, or if
    one has a type that Spark lacks.
    """
    plan = frame_plan.plan
    fields = main_fields(plan.main_schema, frame_plan.spec.keys, schema)
    taken = next((f.name for f in fields if is_other_output(f)), None)
    if taken is not None:
        raise SpecError(
            f"spec: the result would have a main column {taken!r} that is a struct, which sinks take for the rows of "
            f"another output; give it a name other than late, bad and {SIDE_PREFIX}..."
        )
    parts = {int(ResultKind.MAIN): Part(None, plan.main_schema)}
    for kind, column, side in ((ResultKind.LATE, "late", plan.late_schema), (ResultKind.BAD, "bad", plan.bad_schema)):
        if side is not None:
            parts[kind] = Part(column, side)
            names = [name for name in side.names if name != LOCAL_MS]
            known = [name for name in names if name in schema.names]
            added = [T.StructField(name, T.StringType()) for name in names if name not in schema.names]
            fields.append(T.StructField(column, nullable_struct(known, schema, added)))
    for i, (tag, side) in enumerate(plan.side_schemas.items()):
        column = SIDE_PREFIX + tag
        parts[ResultKind.SIDE + i] = Part(column, side)
        fields.append(T.StructField(column, T.StructType(spark_fields(side, f"side_output {tag!r}"))))
    seen: dict[str, str] = {}
    for field in fields:
        folded = field.name if case_sensitive else field.name.lower()
        if folded in seen:
            raise SpecError(
                f"spec: the result would have the columns {seen[folded]!r} and {field.name!r}, which Spark cannot tell "
                f"apart; rename the key or the aggregate"
            )
        seen[folded] = field.name
    return Output(T.StructType(fields), parts)


def _as_struct(batch: pa.RecordBatch, kind: pa.StructType) -> pa.StructArray:
    columns = [_conformed(batch, field) for field in kind]
    return pa.StructArray.from_arrays(columns, fields=list(kind))


def _conformed(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    column = batch.column(field.name)
    try:
        return conform(column, field.type)
    except pa.ArrowInvalid as problem:
        if not pa.types.is_timestamp(column.type) or column.type.unit != "ms":
            raise
        far = max(pc.min_max(column.cast(pa.int64())).as_py().values(), key=abs)
        raise BadRowError(
            f"event_time: the result has a {field.name} of {far} ms, and Spark has times within +-{_MOST_MS} ms; if "
            f"event times count another unit than ms, name it: event_time(column, unit=...)"
        ) from problem

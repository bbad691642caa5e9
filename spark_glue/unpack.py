"""Results on their way back to Spark: one frame with the main columns, and a struct for each other output.

Where there are main columns alone, of plain types, the operator hands out rows. Else it hands out blobs, which a step
of its own makes rows of: on their way out of pandas, structs would be made of Python objects.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

import fastwin as fw
from fastwin.errors import SpecError
from spark_glue import wire
from spark_glue.job import LOCAL_MS, Job
from spark_glue.types import conform, main_fields, nullable_struct, output_schema, spark_fields, spark_struct
from spark_glue.wire import ResultKind
from spark_glue.worker import settle

__all__ = [
    "SIDE_PREFIX",
    "Output",
    "Part",
    "operator_struct",
    "output_for",
    "result_tables",
    "row_frames",
    "unpack_frame",
]

SIDE_PREFIX = "side_"
"""Side output ``tag`` is in the column ``side_tag``."""

# Spark takes columns of these types from pandas as they are, timestamps as numbers of microseconds.
_FLAT = (T.NumericType, T.BooleanType, T.StringType, T.BinaryType, T.DateType, T.TimestampType, T.TimestampNTZType)


@dataclass(frozen=True)
class Part:
    """One output. column: the struct that holds it, None for the main columns. schema: of its tables."""

    column: str | None
    schema: pa.Schema


@dataclass(frozen=True)
class Output:
    """The columns of a result frame.

    struct: as Spark knows them. parts: the outputs there are, by kind of result.
    """

    struct: T.StructType
    parts: dict[int, Part]

    @property
    def is_flat(self) -> bool:
        """Whether all columns can leave the operator as they are, without blobs."""
        return all(isinstance(field.dataType, _FLAT) for field in self.struct)

    def rows(self, kind: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns a record batch of the given kind of result as rows of the result frame."""
        schema = output_schema(self.struct)
        column = self.parts[kind].column
        arrays = []
        for field in schema:
            if column is not None and field.name == column:
                arrays.append(_as_struct(batch, field.type))
            elif column is None and field.name in batch.schema.names:
                arrays.append(conform(batch.column(field.name), field.type))
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


def output_for(job: Job, schema: T.StructType, case_sensitive: bool) -> Output:
    """Returns the output of a job over a frame with this schema.

    Raises SpecError if two of its columns would have the same name, or if one has a type that Spark lacks.
    """
    plan = job.plan
    fields = main_fields(plan.main_schema, job.spec.keys, schema)
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


def operator_struct(output: Output) -> T.StructType:
    """Returns the type of the operator's rows: ``counters`` and the result's columns by number, or ``wire.RESULT``."""
    if not output.is_flat:
        return spark_struct(wire.RESULT)
    columns = [T.StructField(f"c{i}", _as_number(field.dataType)) for i, field in enumerate(output.struct)]
    return T.StructType([T.StructField("counters", T.StringType()), *columns])


def row_frames(output: Output, results: Iterable[fw.Result], counters: Mapping[str, int]) -> Iterator[pd.DataFrame]:
    """Yields main results and counters as rows of ``operator_struct``: first a row of counters, then rows without."""
    tables = [result.main for result in results if result.main.num_rows]
    schema = output_schema(operator_struct(output))
    nothing = [pa.nulls(1, kind) for kind in schema.types[1:]]
    yield _row_frame(schema.names, [pa.array([wire.counters_text(counters)]), *nothing])
    for piece in wire.pieces(pa.concat_tables(tables)) if tables else ():
        columns = output.rows(ResultKind.MAIN, piece).columns
        numbers = [column.cast(pa.int64()) if _is_instant(column.type) else column for column in columns]
        yield _row_frame(schema.names, [pa.nulls(piece.num_rows, pa.string()), *numbers])


def _row_frame(names: list[str], columns: list[pa.Array]) -> pd.DataFrame:
    # Backed by Arrow: neither pandas nor Spark copies or looks at them.
    backed = map(pd.arrays.ArrowExtensionArray, columns)
    return pd.DataFrame(dict(zip(names, backed, strict=True)))


def _is_instant(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None


def _as_number(kind: T.DataType) -> T.DataType:
    return T.LongType() if isinstance(kind, T.TimestampType) else kind


def _column(i: int, field: T.StructField) -> Column:
    column = F.col(f"c{i}")
    return (F.timestamp_micros(column) if isinstance(field.dataType, T.TimestampType) else column).alias(field.name)


def unpack_frame(results: DataFrame, output: Output) -> DataFrame:
    """Returns the operator's rows as the result frame."""
    if output.is_flat:
        rows = results.where("counters is null")
        return rows.select(*(_column(i, field) for i, field in enumerate(output.struct)))
    return results.select("kind", "blob").where("blob is not null").mapInArrow(partial(_unpack, output), output.struct)


def _unpack(output: Output, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    settle()
    for batch in batches:
        for kind, blob in zip(batch.column("kind").to_pylist(), batch.column("blob"), strict=True):
            yield output.rows(kind, wire.decode(blob.as_buffer(), output.parts[kind].schema))


def _as_struct(batch: pa.RecordBatch, kind: pa.StructType) -> pa.StructArray:
    columns = [conform(batch.column(field.name), field.type) for field in kind]
    return pa.StructArray.from_arrays(columns, fields=list(kind))

"""Results on their way back to Spark: one frame with the main columns, and a struct each for late and bad rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from fastwin.errors import SpecError
from spark_glue import wire
from spark_glue.job import LOCAL_MS, Job
from spark_glue.types import conform, main_fields, nullable_struct, output_schema
from spark_glue.wire import ResultKind

__all__ = ["Output", "output_for", "unpack_frame"]

_SIDES = {ResultKind.LATE: "late", ResultKind.BAD: "bad"}


@dataclass(frozen=True)
class Output:
    """The columns of a result frame.

    struct: as Spark knows them. inputs: for each kind of result, the schema of its tables.
    """

    struct: T.StructType
    inputs: dict[ResultKind, pa.Schema]

    def rows(self, kind: ResultKind, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns a record batch of the given kind of result as rows of the result frame."""
        schema = output_schema(self.struct)
        arrays = []
        for field in schema:
            if field.name == _SIDES.get(kind):
                arrays.append(_as_struct(batch, field.type))
            elif kind is ResultKind.MAIN and field.name in batch.schema.names:
                arrays.append(conform(batch.column(field.name), field.type))
            else:
                arrays.append(pa.nulls(batch.num_rows, field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def table_rows(self, kind: ResultKind, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yields a result table as rows of the result frame."""
        for batch in table.to_batches():
            if batch.num_rows:
                yield self.rows(kind, batch)


def output_for(job: Job, schema: T.StructType, case_sensitive: bool) -> Output:
    """Returns the output of a job over a frame with this schema.

    Raises SpecError if two of its columns would have the same name.
    """
    plan = job.plan
    fields = main_fields(plan.main_schema, job.spec.keys, schema)
    inputs = {ResultKind.MAIN: plan.main_schema}
    for kind, side in ((ResultKind.LATE, plan.late_schema), (ResultKind.BAD, plan.bad_schema)):
        if side is not None:
            inputs[kind] = side
            names = [name for name in side.names if name != LOCAL_MS]
            known = [name for name in names if name in schema.names]
            added = [T.StructField(name, T.StringType()) for name in names if name not in schema.names]
            fields.append(T.StructField(_SIDES[kind], nullable_struct(known, schema, added)))
    seen: dict[str, str] = {}
    for field in fields:
        folded = field.name if case_sensitive else field.name.lower()
        if folded in seen:
            raise SpecError(
                f"spec: the result would have the columns {seen[folded]!r} and {field.name!r}, which Spark cannot tell "
                f"apart; rename the key or the aggregate"
            )
        seen[folded] = field.name
    return Output(T.StructType(fields), inputs)


def unpack_frame(results: DataFrame, output: Output) -> DataFrame:
    """Returns the rows of ``wire.RESULT`` as the result frame."""
    return results.select("kind", "blob").where("blob is not null").mapInArrow(partial(_unpack, output), output.struct)


def _unpack(output: Output, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number, blob in zip(batch.column("kind").to_pylist(), batch.column("blob"), strict=True):
            kind = ResultKind(number)
            yield output.rows(kind, wire.decode(blob.as_buffer(), output.inputs[kind]))


def _as_struct(batch: pa.RecordBatch, kind: pa.StructType) -> pa.StructArray:
    columns = [conform(batch.column(field.name), field.type) for field in kind]
    return pa.StructArray.from_arrays(columns, fields=list(kind))

"""Results on their way back to Spark.

Where there are main columns alone, of plain types, the operator hands out rows. Else it hands out blobs, and a step of
its own makes rows of them: pandas would make Python objects of structs.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

import fastwin as fw
from spark_glue.plan.compat import arrow_schema_of, spark_struct_of
from spark_glue.plan.outputs import Output, ResultKind
from spark_glue.stages.counters import counters_text
from spark_glue.stages.packets import RESULT, decode, pieces
from spark_glue.stages.worker import settle

__all__ = ["operator_struct", "row_frames", "unpack_frame"]


def operator_struct(output: Output) -> T.StructType:
    """Returns the type of the operator's rows: ``packets.RESULT``, or ``counters`` and the columns by number."""
    if not output.is_flat:
        return spark_struct_of(RESULT)
    columns = [T.StructField(f"c{i}", _as_number(field.dataType)) for i, field in enumerate(output.struct)]
    return T.StructType([T.StructField("counters", T.StringType()), *columns])


def row_frames(output: Output, results: Iterable[fw.Result], counters: Mapping[str, int]) -> Iterator[pd.DataFrame]:
    """Yields main results and counters as rows of ``operator_struct``: first a row of counters, then rows without."""
    tables = [result.main for result in results if result.main.num_rows]
    schema = arrow_schema_of(operator_struct(output))
    nothing = [pa.nulls(1, kind) for kind in schema.types[1:]]
    yield _row_frame(schema.names, [pa.array([counters_text(counters)]), *nothing])
    for piece in pieces(pa.concat_tables(tables)) if tables else ():
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
            yield output.rows(kind, decode(blob.as_buffer(), output.parts[kind].schema))

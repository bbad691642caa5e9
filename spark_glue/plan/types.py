"""Spark types to Arrow types and back, and which of them the glue takes."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import types as T

from fastwin.errors import SpecError
from spark_glue.plan.compat import arrow_type_of, lacking, spark_type_of

__all__ = [
    "arrow_schema",
    "check_columns",
    "check_keys",
    "combined",
    "conform",
    "local_to_ms",
    "main_fields",
    "nullable_struct",
    "spark_fields",
]

_NO_KEY = (T.ArrayType, T.MapType, T.StructType, T.VariantType, T.UserDefinedType, T.CalendarIntervalType, T.NullType)


def arrow_schema(schema: T.StructType) -> pa.Schema:
    """Returns the Arrow schema of a Spark frame; a column that Arrow cannot hold gets the type null.

    Use ``check_columns`` on the columns that are needed.
    """
    return pa.schema([pa.field(field.name, _arrow_type(field.dataType) or pa.null()) for field in schema])


def check_columns(schema: T.StructType, needed: Iterable[str]) -> None:
    """Raises SpecError if a needed column has a type that cannot be handed to Python."""
    for name in needed:
        if _arrow_type(schema[name].dataType) is None:
            raise SpecError(
                f"df: column {name!r} has type {schema[name].dataType.simpleString()}, which cannot be handed to "
                f"Python; cast it, or drop it before apply"
            )


def check_keys(schema: T.StructType, keys: Iterable[str]) -> None:
    """Raises SpecError if a key column has a type whose values cannot be told apart by their bytes."""
    for name in keys:
        kind = schema[name].dataType
        if isinstance(kind, _NO_KEY):
            raise SpecError(
                f"key_by: column {name!r} has type {kind.simpleString()}; a key is a number, text, bytes, a boolean, "
                f"a date, a time or a timestamp"
            )
        if isinstance(kind, T.StringType) and not kind.isUTF8BinaryCollation():
            raise SpecError(
                f"key_by: column {name!r} has the collation {kind.collation}; a text key is compared by its bytes "
                f"(UTF8_BINARY), so group by collation_key({name}) or by the column cast to string"
            )


def main_fields(main: pa.Schema, keys: Iterable[str], schema: T.StructType) -> list[T.StructField]:
    """Returns the Spark fields of the main output: keys keep the frame's type, the others get theirs from Arrow."""
    keys = set(keys)
    others = iter(spark_fields(pa.schema([field for field in main if field.name not in keys]), "output"))
    return [T.StructField(f.name, schema[f.name].dataType) if f.name in keys else next(others) for f in main]


def spark_fields(schema: pa.Schema, argument: str) -> list[T.StructField]:
    """Returns Arrow fields as Spark's. Raises SpecError for a type that Spark lacks; argument: for the error."""
    fields = []
    for field in schema:
        try:
            kind = spark_type_of(field.type)
            fits = _arrow_type(kind) is not None
        except PySparkException:
            fits = False
        if not fits:
            raise SpecError(f"{argument}: column {field.name!r} has type {field.type}, {lacking(field.type)}")
        fields.append(T.StructField(field.name, kind))
    return fields


def nullable_struct(names: Iterable[str], schema: T.StructType, extra: Iterable[T.StructField] = ()) -> T.StructType:
    """Returns a struct of some of a frame's columns, all nullable and without metadata, and ``extra`` fields."""
    return T.StructType([*(T.StructField(name, schema[name].dataType) for name in names), *extra])


def conform(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Returns the array with exactly this type: the same values, with another time zone, unit or offset width."""
    return array if array.type == kind else array.cast(kind)


def local_to_ms(column: pa.ChunkedArray | pa.Array, time_zone: str) -> pa.ChunkedArray | pa.Array:
    """Returns naive timestamps, read in a time zone, as int64 epoch milliseconds (floored); nulls stay.

    As Spark does it: a time that the clocks skipped is moved forward by the length of the gap, one that they showed
    twice is the earlier of the two.
    """
    kind = pa.timestamp("us")
    local = pc.cast(column, kind)
    early = pc.assume_timezone(local, time_zone, ambiguous="earliest", nonexistent="earliest")
    late = pc.assume_timezone(local, time_zone, ambiguous="earliest", nonexistent="latest")
    us = pc.cast(early, pa.int64())
    skipped = pc.not_equal(us, pc.cast(late, pa.int64()))
    if pc.any(skipped).as_py():
        before = pc.subtract(pc.cast(pc.local_timestamp(early), pa.int64()), us)  # the offset before the gap
        us = pc.if_else(skipped, pc.subtract(pc.cast(local, pa.int64()), before), us)
    return _floor_ms(us)


def _floor_ms(us: pa.ChunkedArray | pa.Array) -> pa.Array:
    flat = us.combine_chunks() if isinstance(us, pa.ChunkedArray) else us
    values = pc.fill_null(flat, 0).to_numpy(zero_copy_only=False) // np.int64(1000)
    return pa.array(values, pa.int64(), mask=pc.is_null(flat).to_numpy(zero_copy_only=False))


def _arrow_type(kind: T.DataType) -> pa.DataType | None:
    if _holds_user_type(kind):
        return None
    try:
        return arrow_type_of(kind)
    except (PySparkException, NotImplementedError):
        return None


def _holds_user_type(kind: T.DataType) -> bool:
    if isinstance(kind, T.StructType):
        return any(_holds_user_type(field.dataType) for field in kind)
    if isinstance(kind, T.ArrayType):
        return _holds_user_type(kind.elementType)
    if isinstance(kind, T.MapType):
        return _holds_user_type(kind.keyType) or _holds_user_type(kind.valueType)
    return isinstance(kind, T.UserDefinedType)


def combined(rows: pa.Table) -> list[pa.RecordBatch]:
    """Returns rows as one record batch, or several where a column of one would have more than 2 GiB; none without rows.

    Arrow itself makes several chunks of a column of texts, and refuses lists and structs of them.
    """
    try:
        return rows.combine_chunks().to_batches()
    except pa.ArrowInvalid:
        return rows.to_batches()

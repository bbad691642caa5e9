"""Columns of a Parquet file as Spark's reader would give them, or a sentence on which one does not fit."""

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.errors import PySparkException

from fastwin.columns.buffers import int64_values
from fastwin.columns.units import PER_SECOND
from fastwin.errors import SourceError, did_you_mean
from spark_glue.plan.compat import spark_type_of
from spark_glue.plan.settings import CASE_KEY

__all__ = ["as_spark_reads", "columns_in", "conformed"]

_INT64_MAX = 2**63 - 1
_UTC, _INTERVAL = pa.timestamp("us", tz="UTC"), pa.duration("us")
_SPARKS_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_DAYS_TO_SECONDS = re.compile(r"interval (day|hour|minute|second)( to (hour|minute|second))?")
_SPARKS = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.string_view(): pa.string(),
    pa.binary_view(): pa.binary(),
}
"""What Spark makes of types that it has not."""


def as_spark_reads(file: pq.ParquetFile) -> pa.Schema:
    """Returns the columns of a file with the types that Spark gives them.

    There are no dictionaries and no views; unsigned numbers are wider ones, what is INT96 is in UTC, and intervals are
    those that Spark itself has written.
    """
    columns = [file.schema.column(i) for i in range(len(file.schema))]
    old = {column.path for column in columns if column.physical_type == "INT96"}
    intervals = _intervals_of_spark(file)
    kinds = dict.fromkeys(old, _UTC) | dict.fromkeys(intervals, _INTERVAL)
    return pa.schema([field.with_type(kinds.get(field.name) or _plain(field.type)) for field in file.schema_arrow])


def _intervals_of_spark(file: pq.ParquetFile) -> list[str]:
    """Returns the columns of days to seconds in a file of Spark's: to Parquet they are numbers of microseconds."""
    try:
        told = json.loads((file.metadata.metadata or {}).get(_SPARKS_SCHEMA, b"{}"))
        fields = [(field["name"], field["type"]) for field in told.get("fields", ())]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
    return [name for name, kind in fields if isinstance(kind, str) and _DAYS_TO_SECONDS.fullmatch(kind)]


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_duration(kind):  # which Arrow alone tells from a number
        return pa.int64()
    return _SPARKS.get(kind, kind)


def columns_in(file: pq.ParquetFile, path: str, needed: pa.Schema, case_sensitive: bool) -> list[str]:
    """Returns the names that needed columns have in a file, in their order.

    case_sensitive: whether the case of letters tells columns apart. If not, a name as it is needed goes before others.
    Raises SourceError, naming file and column, unless the file has them all, of types that fit.
    """
    found = as_spark_reads(file)
    names = [_name_in(found.names, field.name, path, case_sensitive) for field in needed]
    for name, field in zip(names, needed, strict=True):
        if not _fits(found.field(name).type, field.type):
            raise SourceError(f"{path}: column {name!r} has type {found.field(name).type}, needed is {field.type}")
    return names


def _name_in(names: list[str], name: str, path: str, case_sensitive: bool) -> str:
    if name in names:
        return name
    same = [] if case_sensitive else [one for one in names if one.lower() == name.lower()]
    if len(same) > 1:
        raise SourceError(f"{path}: {name!r} may be any of the columns {', '.join(same)}; {CASE_KEY} is false")
    if not same:
        hint = did_you_mean(name, names)
        raise SourceError(f"{path}: there is no column {name!r}{hint}; it has {', '.join(names)}")
    return same[0]


def _fits(found: pa.DataType, needed: pa.DataType) -> bool:
    if pa.types.is_signed_integer(found) and pa.types.is_signed_integer(needed):
        return bool(found.bit_width <= needed.bit_width)
    if pa.types.is_duration(needed) and found == pa.int64():
        return True
    if pa.types.is_floating(found) and pa.types.is_floating(needed):
        return bool(found.bit_width <= needed.bit_width)
    try:
        return bool(spark_type_of(found).simpleString() == spark_type_of(needed).simpleString())
    except PySparkException:
        return False


def conformed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Returns a column of a file that fits with exactly this type.

    Times are floored, as the process does. One that the type cannot hold is about its first or last, which are no good
    event times either.
    """
    if column.type == kind:
        return column
    if pa.types.is_duration(column.type) or pa.types.is_duration(kind):  # a number to Parquet, whatever it counts
        return column.view(pa.int64()).view(kind)
    return _in_unit_of(kind, column) if pa.types.is_timestamp(kind) else column.cast(kind)


def _in_unit_of(kind: pa.DataType, column: pa.Array) -> pa.Array:
    per_second, wanted = PER_SECOND[column.type.unit], PER_SECOND[kind.unit]
    if per_second > wanted:  # Arrow would cut towards 1970
        return _with_values(int64_values(column) // (per_second // wanted), column, kind)
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:  # out of range
        most = _INT64_MAX // (wanted // per_second)
        return _with_values(np.clip(int64_values(column), -most, most) * (wanted // per_second), column, kind)


def _with_values(values: NDArray[np.int64], column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Returns values, null where a column is."""
    nulls = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return pa.array(values, pa.int64(), mask=nulls).view(kind)

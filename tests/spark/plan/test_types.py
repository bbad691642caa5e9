"""Spark types to Arrow types: what is taken, what is refused, and naive times."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyspark.sql import types as T

from fastwin.errors import SpecError
from spark_glue.plan.types import arrow_schema, check_columns, check_keys, combined, local_to_ms

TAKEN = {
    "string": T.StringType(),
    "binary": T.BinaryType(),
    "boolean": T.BooleanType(),
    "tinyint": T.ByteType(),
    "smallint": T.ShortType(),
    "int": T.IntegerType(),
    "bigint": T.LongType(),
    "float": T.FloatType(),
    "double": T.DoubleType(),
    "decimal": T.DecimalType(38, 10),
    "date": T.DateType(),
    "timestamp": T.TimestampType(),
    "timestamp_ntz": T.TimestampNTZType(),
    "interval": T.DayTimeIntervalType(),
}
if hasattr(T, "TimeType"):  # from Spark 4.1 on
    TAKEN["time"] = T.TimeType(6)
NO_KEY = {
    "array": T.ArrayType(T.LongType()),
    "map": T.MapType(T.StringType(), T.LongType()),
    "struct": T.StructType([T.StructField("x", T.LongType())]),
    "variant": T.VariantType(),
    "void": T.NullType(),
}


@pytest.mark.parametrize("kind", TAKEN)
def test_types_taken_as_keys(kind):
    schema = T.StructType([T.StructField("k", TAKEN[kind])])
    check_columns(schema, ["k"])
    check_keys(schema, ["k"])
    assert not pa.types.is_null(arrow_schema(schema).field("k").type)


@pytest.mark.parametrize("kind", NO_KEY)
def test_types_refused_as_keys(kind):
    schema = T.StructType([T.StructField("k", NO_KEY[kind])])
    with pytest.raises(SpecError, match=f"key_by: column 'k' has type {kind}"):
        check_keys(schema, ["k"])


def test_collated_text_is_refused_as_key():
    schema = T.StructType([T.StructField("k", T.StringType("UTF8_LCASE"))])
    with pytest.raises(SpecError, match="key_by: column 'k' has the collation UTF8_LCASE"):
        check_keys(schema, ["k"])


def test_types_that_python_cannot_get():
    schema = T.StructType([T.StructField("gap", T.YearMonthIntervalType()), T.StructField("k", T.LongType())])
    check_columns(schema, ["k"])
    with pytest.raises(SpecError, match="df: column 'gap' has type interval year to month"):
        check_columns(schema, ["k", "gap"])


ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]


@pytest.mark.parametrize("zone", ZONES)
def test_naive_times_as_spark_reads_them(zone):
    times = [datetime(2024, 1, 1) + timedelta(minutes=17 * i, microseconds=999_999 * (i % 2)) for i in range(32_000)]
    found = local_to_ms(pa.array(times, pa.timestamp("us")), zone).to_pylist()
    # Python reads a time that the clocks showed twice, or skipped, with the offset from before the change: as Spark.
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert found == [(time.replace(tzinfo=ZoneInfo(zone)) - epoch) // timedelta(milliseconds=1) for time in times]


def test_naive_times_are_floored_and_nulls_stay():
    column = pa.chunked_array([pa.array([-1, 0], pa.timestamp("us")), pa.array([None, 1999], pa.timestamp("us"))])
    assert local_to_ms(column, "UTC").to_pylist() == [-1, 0, None, 1]


def test_naive_times_at_the_ends_of_what_spark_has():
    far = pa.array([9_000_000_000_000_000_000, -9_000_000_000_000_000_000], pa.timestamp("us"))
    assert local_to_ms(far, "UTC").to_pylist() == [9_000_000_000_000_000, -9_000_000_000_000_000]
    assert len(local_to_ms(far, "Europe/Berlin")) == 2


def test_no_times():
    assert local_to_ms(pa.array([], pa.timestamp("us")), "Europe/Berlin").to_pylist() == []


@pytest.mark.parametrize("nested", [lambda text: [text], lambda text: {"a": text}])
def test_more_than_one_array_holds_stays_in_several_batches(nested):
    """Of texts Arrow makes several chunks; lists and structs of them it refuses to put together."""
    batch = pa.record_batch({"x": pa.array([nested("x" * (1 << 24))]), "n": pa.array([1])})
    found = combined(pa.Table.from_batches([batch] * 128))
    assert len(found) > 1 and sum(one.num_rows for one in found) == 128
    assert [one.num_rows for one in combined(pa.Table.from_batches([batch] * 2))] == [2]

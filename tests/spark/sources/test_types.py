"""Types of columns in Parquet files: those that Spark's reader gives them, with the same results."""

import datetime as dt

import pyarrow as pa
import pyarrow.parquet as pq

import fastwin as fw
import spark_glue
from tests.support.spark_streams import assert_same_rows

MOST = 2**63 - 1


def assert_as_spark_reads(spark, folder, columns: list[str]) -> None:
    spec = fw.key_by("user").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 hour")).bad_rows("drop")
    spec = spec.aggregate(n=fw.Count(), **{f"most_{name}": fw.Max(name) for name in columns})
    mine = spark_glue.apply(spec, spark_glue.ParquetFiles(folder, streaming=False), key_groups=2)
    theirs = spark_glue.apply(spec, spark.read.parquet(str(folder)), key_groups=2)
    assert mine.schema == theirs.schema
    expected = theirs.toArrow()
    assert expected.num_rows == 2
    assert_same_rows(mine.toArrow(), expected)


def test_types_that_spark_has_not(spark, tmp_path):
    times = pa.array([0, 1, 2], pa.timestamp("us", tz="UTC"))
    columns = {
        "u8": pa.array([255, 1, None], pa.uint8()),
        "u16": pa.array([65_535, 1, None], pa.uint16()),
        "u32": pa.array([2**32 - 1, 1, None], pa.uint32()),
        "u64": pa.array([2**64 - 1, 1, None], pa.uint64()),
        "micros": pa.array([-MOST, 1_500, None], pa.duration("us")),
        "nanos": pa.array([MOST, 1_500, None], pa.duration("ns")),
        "view": pa.array(["b", "a" * 50, None], pa.string_view()),
    }
    pq.write_table(pa.table({"user": ["ann", "ann", "bob"], "ts": times, **columns}), tmp_path / "a.parquet")
    assert_as_spark_reads(spark, tmp_path, list(columns))


def test_intervals_that_spark_has_written(spark, tmp_path):
    folder = tmp_path / "written"
    rows = [
        ("ann", dt.datetime(2024, 1, 1, 9, tzinfo=dt.UTC), dt.timedelta(seconds=30)),
        ("ann", dt.datetime(2024, 1, 1, 9, 1, tzinfo=dt.UTC), None),
        ("bob", dt.datetime(2024, 1, 1, 9, 1, tzinfo=dt.UTC), dt.timedelta(days=-1, microseconds=5)),
    ]
    frame = spark.createDataFrame(rows, "user string, ts timestamp, wait interval day to second")
    frame.coalesce(1).write.parquet(str(folder))
    assert_as_spark_reads(spark, folder, ["wait"])
    sessions = fw.key_by("user").event_time("ts").window(fw.EventTimeSessionWindows.with_dynamic_gap("wait"))
    spec = sessions.bad_rows("drop").aggregate(n=fw.Count())
    for schema in (None, "user string, ts timestamp, wait interval day to second"):
        files = spark_glue.ParquetFiles(folder, streaming=False, schema=schema)
        assert_same_rows(
            spark_glue.apply(spec, files, key_groups=2).toArrow(),
            spark_glue.apply(spec, spark.read.parquet(str(folder)), key_groups=2).toArrow(),
        )

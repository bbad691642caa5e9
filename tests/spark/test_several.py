"""Several windows over one frame: as in the process, with the window's name, in one query."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
import spark_glue
from tests.support.spark_events import START_MS, events
from tests.support.spark_streams import assert_replayed, assert_same_rows, parts, run_stream

WINDOWS = {
    "minute": fw.TumblingEventTimeWindows.of("1 minute"),
    "five": fw.TumblingEventTimeWindows.of("5 minutes"),
    "day": fw.CalendarEventTimeWindows.cumulative("1 day", "1 hour", time_zone="Asia/Kolkata"),
}


def spec_of(**windows: fw.WindowAssigner) -> fw.WindowSpec:
    spec = fw.key_by("k").event_time("ts").windows(**windows).allowed_lateness("30 seconds")
    return spec.aggregate(n=fw.Count(), total=fw.Sum("v"), mean=fw.Mean("x"))


def test_stream_is_as_in_the_process(spark, tmp_path):
    tables = [events(i, 400, start_ms=START_MS + i * 120_000, span_ms=300_000, keys="bigint") for i in range(4)]
    tables.append(events(9, 1, start_ms=START_MS + 2 * 86_400_000, keys="bigint"))
    spec = spec_of(**WINDOWS)
    assert fw.plan(spec, tables[0].schema, coalesce=True).new_feeder() is not None
    batches = run_stream(spark, spec, tables, tmp_path, watermark="5 seconds", key_groups=7)
    assert_replayed(spec, tables, batches)
    assert set(parts(batches, "main")["window"].to_pylist()) == {"minute", "five", "day"}


@pytest.mark.long
def test_empty_windows_of_each_are_as_in_the_process(spark, tmp_path):
    tables = [events(i, 40, start_ms=START_MS + i * 900_000, span_ms=60_000, keys="bigint") for i in range(4)]
    spec = fw.key_by("k").event_time("ts").allowed_lateness("30 seconds")
    spec = spec.windows(
        minute=fw.TumblingEventTimeWindows.of("1 minute"),
        five=fw.TumblingEventTimeWindows.of("5 minutes"),
        fill="empty",
        longest_gap="20 minutes",
    ).aggregate(n=fw.Count(), total=fw.Sum("v"))
    batches = run_stream(spark, spec, tables, tmp_path, watermark="5 seconds", key_groups=3)
    assert_replayed(spec, tables, batches)
    found = parts(batches, "main")
    empty = found.filter(pc.equal(found["n"], 0))
    assert set(empty["window"].to_pylist()) == {"minute", "five"}
    table = pa.concat_tables(tables)
    assert_same_rows(spark_glue.apply(spec, spark.createDataFrame(table), key_groups=2).toArrow(), spec.run(table).main)


def test_batch_is_as_run(spark):
    table = events(1, 1_000, keys="bigint")
    spec = spec_of(**WINDOWS)
    result = spark_glue.apply(spec, spark.createDataFrame(table), key_groups=2)
    assert result.columns == ["k", "window", "window_start", "window_end", "n", "total", "mean"]
    assert_same_rows(result.toArrow(), spec.run(table).main)

"""Results that are rows of the input, on Spark: the same as in this process, batch by batch."""

import pyarrow as pa
import pytest

import fastwin as fw
import spark_glue
from tests.support.spark_events import START_MS, events
from tests.support.spark_streams import assert_replayed, assert_same_rows, run_stream
from tests.support.variants import variants

START = fw.key_by("k").event_time("ts").allowed_lateness("1 minute").side_output_late_data()
SLIDING = START.window(fw.SlidingEventTimeWindows.of("2 minutes", "25 s"))
SPECS = {
    "first": SLIDING.deduplicate(),
    "apart": START.deduplicate(within="20 s"),
    "top": SLIDING.top(3, by="x"),
}


def overlapping(batches: int) -> list[pa.Table]:
    starts = [START_MS + i * 60_000 for i in range(batches)]
    return [events(i, 300, keys="bigint", start_ms=at, span_ms=200_000) for i, at in enumerate(starts)]


@pytest.mark.parametrize("name", variants(["first", "apart", "top"], "top"))
def test_a_stream_gives_what_this_process_gives(spark, tmp_path, name):
    tables = overlapping(3)
    batches = run_stream(spark, SPECS[name], tables, tmp_path, watermark="30 s", key_groups=4)
    assert_replayed(SPECS[name], tables, batches)
    assert sum(batch.rows.num_rows for batch in batches) > 50


@pytest.mark.parametrize("name", ["apart", "top"])
def test_a_batch_frame_gives_what_run_gives(spark, name):
    table = events(1, 500, keys="bigint").sort_by("ts")
    frame = spark.createDataFrame(table).coalesce(1)
    found = spark_glue.apply(SPECS[name], frame, key_groups=4).drop("late").toArrow()
    assert_same_rows(found, SPECS[name].run(table).main)


def test_the_first_row_of_a_batch_frame_is_the_earliest(spark):
    table = events(1, 500, keys="bigint")
    late_first = pa.concat_tables([table.slice(250), table.slice(0, 250)])
    spec = START.window(fw.TumblingEventTimeWindows.of("30 s")).deduplicate()
    found = spark_glue.apply(spec, spark.createDataFrame(late_first).coalesce(1), key_groups=2).drop("late").toArrow()
    assert_same_rows(found, spec.run(table.sort_by("ts")).main)


def test_the_last_row_by_a_time_without_a_zone(spark):
    """On Spark, the plan has its instants in a column of another name."""
    table = events(1, 300, keys="bigint")
    naive = table.set_column(1, "ts", table["ts"].cast(pa.timestamp("us")))
    assert table.column_names[1] == "ts"
    spec = fw.key_by("k").event_time("ts").bad_rows("drop").window(fw.TumblingEventTimeWindows.of("30 s"))
    frame = spark.createDataFrame(table).coalesce(1)
    frame = frame.withColumn("ts", frame.ts.cast("timestamp_ntz"))
    assert frame.schema["ts"].dataType.typeName() == "timestamp_ntz"
    found = spark_glue.apply(spec.deduplicate("last"), frame, key_groups=2).toArrow()
    columns, wanted = ["k", "v", "x"], spec.deduplicate("last").run(naive).main
    assert sorted(map(str, found.select(columns).to_pylist())) == sorted(map(str, wanted.select(columns).to_pylist()))
    assert wanted.num_rows > 10

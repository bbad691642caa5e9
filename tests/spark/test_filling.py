"""Windows without elements on Spark: batch as in the process, and a stream that is started again within a gap."""

import fastwin as fw
import spark_glue
from tests.support.spark_events import START_MS, events
from tests.support.spark_streams import assert_replayed, assert_same_rows, parts, run_stream

SPEC = (
    fw.key_by("k")
    .event_time("ts")
    .window(fw.SlidingEventTimeWindows.of("1 minute", "20 seconds"), fill="empty", longest_gap="10 minutes")
    .allowed_lateness("30 seconds")
    .aggregate(n=fw.Count(), total=fw.Sum("v"))
)


def test_stream_is_as_in_the_process(spark, tmp_path):
    tables = [events(i, 40, start_ms=START_MS + i * 240_000, span_ms=60_000, keys="bigint") for i in range(4)]
    assert fw.plan(SPEC, tables[0].schema, coalesce=True).new_feeder() is not None
    batches = run_stream(spark, SPEC, tables, tmp_path, watermark="5 seconds", key_groups=3)
    assert_replayed(SPEC, tables, batches)
    counts = parts(batches, "main")["n"].to_pylist()
    assert 0 < counts.count(0) < len(counts)


def test_batch_is_as_run(spark):
    table = events(1, 100, span_ms=1_200_000, keys="bigint")
    assert_same_rows(spark_glue.apply(SPEC, spark.createDataFrame(table), key_groups=2).toArrow(), SPEC.run(table).main)

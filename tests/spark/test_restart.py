"""A query that starts again from its checkpoint, with other settings of the session."""

from dataclasses import replace

import fastwin as fw
import spark_glue
from tests.support.spark_events import START_MS, events
from tests.support.spark_streams import Recorder, Source, assert_replayed, micro_batches, start

PARTITIONS = "spark.sql.shuffle.partitions"
SPEC = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 min")).aggregate(n=fw.Count())


def test_the_checkpoints_number_of_partitions_counts_and_not_the_sessions(spark, tmp_path):
    tables = [events(i, 60, start_ms=START_MS + i * 100_000, span_ms=150_000) for i in range(6)]
    source = Source(tmp_path, tables[0].schema)
    before, batches = spark.conf.get(PARTITIONS), []
    try:
        for partitions, some in ((4, tables[:3]), (2, tables[3:5]), (5, tables[5:])):
            spark.conf.set(PARTITIONS, partitions)
            source.put(*some)
            frame = spark_glue.apply(SPEC, source.frame(spark), watermark="10 s", key_groups=8)
            recorder = Recorder()
            query = start(frame, tmp_path, recorder, available_now=True)
            query.awaitTermination()
            batches += micro_batches(query, recorder)
    finally:
        spark.conf.set(PARTITIONS, before)
    assert_replayed(SPEC, tables, batches)


def test_delay_skew_and_the_time_of_windows_may_change_at_any_start(spark, tmp_path):
    tables = [events(i, 60, start_ms=START_MS + i * 100_000, span_ms=150_000) for i in range(6)]
    source, batches = Source(tmp_path, tables[0].schema), []
    for spec, some, arguments in (
        (SPEC, tables[:2], {"watermark": "10 s"}),
        (SPEC, tables[2:4], {"watermark": "90 s", "max_future_skew": "3650 days"}),
        (SPEC.with_window_time(), tables[4:], {"watermark": "1 s", "max_future_skew": None}),
    ):
        source.put(*some)
        frame = spark_glue.apply(spec, source.frame(spark), key_groups=8, **arguments)
        recorder = Recorder()
        query = start(frame, tmp_path, recorder, available_now=True)
        query.awaitTermination()
        found = micro_batches(query, recorder)
        assert ("window_time" in found[-1].rows.column_names) == spec.window_time
        batches += [
            replace(batch, rows=batch.rows.select([*SPEC.keys, "window_start", "window_end", "n"])) for batch in found
        ]
    assert_replayed(SPEC, tables, batches)

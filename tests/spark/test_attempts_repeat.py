"""What Spark does again: several actions of one sink; and what sessions and specs are warned of."""

import warnings

import pytest

import fastwin as fw
import spark_glue
from spark_glue.plan.settings import FORMAT_KEY
from spark_glue.state.folders import cache_root
from tests.support.spark_events import START_MS, events
from tests.support.spark_streams import Recorder, Source, assert_replayed, micro_batches, start
from tests.support.spark_versions import second_format

SPEC = (
    fw.key_by("k")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of("1 min"))
    .bad_rows("drop")
    .aggregate(n=fw.Count(), first=fw.First("v"))
)
TABLES = [events(i, 300, start_ms=START_MS + i * 40_000, span_ms=90_000) for i in range(6)]


@pytest.mark.long
@pytest.mark.usefixtures("adaptive")
def test_several_actions_of_a_sink_that_names_its_jobs(spark, tmp_path):
    """Each action runs the operator again, from the state before; the query goes on from what was committed."""
    source, recorder, folders = Source(tmp_path, TABLES[0].schema), Recorder(), []

    def sink(frame, batch_id):
        spark.sparkContext.setJobGroup(f"sink {batch_id}", "a group of the sink's own")
        counted = frame.count()
        recorder(frame, batch_id)
        assert recorder.tables[batch_id].num_rows == counted
        folders.append({path.name for path in cache_root().iterdir()})

    queries, batches = [], []
    for tables in (TABLES[:3], TABLES[3:]):
        source.put(*tables)
        frame = spark_glue.apply(SPEC, source.frame(spark), watermark="10 s", key_groups=4)
        queries.append(start(frame, tmp_path, sink, available_now=True))
        queries[-1].awaitTermination()
        batches += micro_batches(queries[-1], recorder)
    assert_replayed(SPEC, TABLES, batches)
    assert all(str(queries[0].id) in found for found in folders)
    assert not any("sink" in name for found in folders for name in found)


@second_format
def test_a_session_without_the_second_format_is_told(spark, tmp_path):
    source = Source(tmp_path, TABLES[0].schema)
    frame = source.frame(spark)
    assert spark.conf.get(FORMAT_KEY) == "2"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spark_glue.apply(SPEC, frame, watermark="10 s")
    spark.conf.set(FORMAT_KEY, "1")
    try:
        with pytest.warns(UserWarning, match="checkpointFormatVersion is 1: .* set it to 2"):
            spark_glue.apply(SPEC, frame, watermark="10 s")
    finally:
        spark.conf.set(FORMAT_KEY, "2")


def test_a_stream_that_one_wrong_date_would_end_is_warned_of(spark, tmp_path):
    frame = Source(tmp_path, TABLES[0].schema).frame(spark)
    with pytest.warns(UserWarning, match=r'bad_rows: the policy is "raise", so one row .* \.bad_rows\("divert"\)'):
        spark_glue.apply(SPEC.bad_rows("raise"), frame, watermark="10 s")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spark_glue.apply(SPEC.bad_rows("raise"), frame, watermark="10 s", max_future_skew=None)

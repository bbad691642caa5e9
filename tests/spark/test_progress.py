"""Counters as lines for each micro-batch, and those of a batch frame; several specs in one query."""

import json

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Observation
from pyspark.sql import functions as F

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError
from spark_glue.stages.counters import COUNTERS
from tests.support.spark_events import START_MS, events
from tests.support.spark_streams import Recorder, Source, assert_same_rows, micro_batches, replay, rows_of, start

SPEC = (
    fw.key_by("k")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of("1 min"))
    .bad_rows("drop")
    .aggregate(n=fw.Count())
)
SESSIONS = (
    fw.key_by()
    .event_time("ts")
    .window(fw.EventTimeSessionWindows.with_gap("1 s"))
    .bad_rows("drop")
    .trigger(fw.after_watermark(early=fw.CountTrigger.of(2)))
    .aggregate(n=fw.Count())
)


def test_a_batch_frame_counts(spark, tmp_path):
    table = events(1, 500, null_times=0.05)
    pq.write_table(table, tmp_path / "t.parquet")
    observation = Observation()
    result = spark_glue.apply(SPEC, spark.read.parquet(str(tmp_path)), name=observation)
    rows = result.toArrow()
    bad = table["ts"].null_count
    assert bad > 0
    assert result.columns == ["k", "window_start", "window_end", "n"]
    assert rows_of(rows) == rows_of(SPEC.run(table).main)
    found = observation.get
    assert (found["events"], found["bad"], found["fired"]) == (500 - bad, bad, rows.num_rows)
    assert found["watermark_ms"] is None


def test_several_specs_over_one_frame_in_one_query_and_a_line_for_each(spark, tmp_path):
    tables = [events(i, 200, start_ms=START_MS + i * 100_000, span_ms=200_000) for i in range(4)]
    source, recorder, lines = Source(tmp_path, tables[0].schema), Recorder(), []
    source.put(*tables)
    frame = source.frame(spark)
    both = [
        spark_glue.apply(spec, frame, watermark="10 s", key_groups=2, name=name).select(
            F.lit(name).alias("of"), "window_start", "window_end", "n"
        )
        for name, spec in (("minutes", SPEC), ("sessions", SESSIONS))
    ]
    metrics: list[spark_glue.BatchMetrics] = []
    listeners = [spark_glue.progress_listener(lines.append), spark_glue.metrics_listener(metrics.append)]
    for listener in listeners:
        spark.streams.addListener(listener)
    try:
        query = start(both[0].unionByName(both[1]), tmp_path, recorder, available_now=True)
        query.awaitTermination()
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    finally:
        for listener in listeners:
            spark.streams.removeListener(listener)
    batches = micro_batches(query, recorder)
    for name, spec in (("minutes", SPEC), ("sessions", SESSIONS)):
        total = 0
        for batch, expected in zip(batches, replay(spec, tables, batches), strict=True):
            mine = batch.rows.filter(pc.equal(batch.rows["of"], name)).drop_columns("of")
            assert_same_rows(mine, expected.main.select(mine.column_names))
            total += mine.num_rows
        assert total > 10
        assert sum(f", {name}: " in line for line in lines) >= len(tables)
    taken = [int(line.split(": ", 1)[1].split(" events")[0]) for line in lines if "minutes" in line]
    assert sum(taken) == 800
    assert any("watermark 2023-11-14 " in line for line in lines)
    assert len(metrics) == len(lines)
    mine = [one for one in metrics if one.frame == "minutes"]
    assert sum(one.events for one in mine) == 800
    assert [one.batch_id for one in mine] == list(range(len(mine)))
    assert {(one.query_id, one.run_id) for one in metrics} == {(str(query.id), str(query.runId))}
    last_ms = max(table["ts"].cast(pa.int64()).to_numpy().max() for table in tables) // 1_000
    assert 0 <= last_ms - max(one.newest_ms for one in mine if one.newest_ms is not None) <= 1
    first = mine[0]
    observed = query.recentProgress[0]["observedMetrics"]["minutes"]
    assert set(observed.asDict()) == {"counters"}  # one expression goes to each task
    assert set(observed["counters"]) == set(COUNTERS)
    assert observed["counters"]["events"] == first.events > 0
    assert json.loads(query.recentProgress[0].json)["observedMetrics"]["minutes"]["counters"]["events"] == first.events
    by_name = [spark_glue.counters(progress) for progress in query.recentProgress]
    assert sum(one["minutes"]["events"] for one in by_name if one) == 800
    assert by_name[0]["minutes"]["watermark_ms"] is None and by_name[-1]["minutes"]["watermark_ms"] > 0
    assert first.lag_ms == round(first.time.timestamp() * 1_000) - first.newest_ms
    assert first.duration_ms > 0
    assert sum(one.streams_kept + one.streams_caught_up + one.streams_loaded for one in mine) > 0
    assert max(one.log_bytes for one in mine) > 0
    assert min(one.worker_bytes for one in mine if one.events) > 10_000_000


def test_arguments():
    with pytest.raises(SpecError, match="progress_listener: write must be a function of a line of text, got 'x'"):
        spark_glue.progress_listener("x")
    with pytest.raises(SpecError, match="metrics_listener: callback must be a function of a BatchMetrics, got None"):
        spark_glue.metrics_listener(None)


def test_a_query_without_a_micro_batch_has_no_counters():
    assert spark_glue.counters(None) == {} and spark_glue.batch_metrics(None) == []


@pytest.mark.parametrize("function", [spark_glue.counters, spark_glue.batch_metrics])
def test_progress_is_that_of_a_query(function):
    with pytest.raises(SpecError, match=f"{function.__name__}: progress must be a StreamingQueryProgress.*, got {{}}"):
        function({})


def test_an_observation_is_for_batch_frames(spark):
    rate = spark.readStream.format("rate").load().selectExpr("value k", "timestamp ts")
    with pytest.raises(SpecError, match="name: an Observation is for batch frames"):
        spark_glue.apply(SPEC, rate, watermark="1 s", name=Observation())

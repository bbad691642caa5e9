"""Processing time on Spark: the time of the micro-batch, with event time beside it."""

import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastwin as fw
import spark_glue
from tests.support.spark_events import START_MS, events
from tests.support.spark_streams import (
    Recorder,
    Source,
    assert_replayed,
    batch_time_ms,
    micro_batches,
    parts,
    start,
)


class When(fw.ProcessWindowFunction):
    def process(self, key, context, elements):
        yield len(list(elements)), context.current_processing_time()


ARRIVAL = (
    fw.key_by("k")
    .processing_time()
    .window(fw.TumblingProcessingTimeWindows.of("700 ms"))
    .process(When(), output="n bigint, at bigint")
)
BOTH = (
    fw.key_by("k")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of("5 minutes"))
    .trigger(fw.after_watermark(early=fw.ContinuousProcessingTimeTrigger.of("1 s")))
    .with_pane_info()
    .aggregate(n=fw.Count())
)


def run_until(spark, spec, tables, folder, done, **arguments):
    """Runs a query until ``done`` holds of its micro-batches."""
    source, recorder = Source(folder, tables[0].schema), Recorder()
    source.put(*tables)
    frame = spark_glue.apply(spec, source.frame(spark), key_groups=3, **arguments)
    query = start(frame, folder, recorder)
    try:
        end = time.monotonic() + 120
        while not done(batches := micro_batches(query, recorder)):
            assert query.exception() is None, query.exception()
            assert time.monotonic() < end, f"it does not come to an end: {batches}"
            time.sleep(0.1)
    finally:
        query.stop()
    return batches


def test_windows_of_arrival(spark, tmp_path):
    tables = [events(i, 60) for i in range(2)]

    def done(batches):
        return sum(sum(batch.rows["n"].to_pylist()) for batch in batches) == 120

    batches = run_until(spark, ARRIVAL, tables, tmp_path, done)
    assert_replayed(ARRIVAL, tables, batches, folder=tmp_path)
    for batch in batches:
        assert set(batch.rows["at"].to_pylist()) <= {batch_time_ms(tmp_path, batch.id)}
    ends = parts(batches, "main")["window_end"].cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64())
    assert all(end % 700 == 0 for end in ends.to_pylist())


def test_event_time_and_the_clock_in_one_query(spark, tmp_path):
    tables = [events(i, 50, start_ms=START_MS + i * 100_000, span_ms=150_000) for i in range(5)]

    def done(batches):
        timings = parts(batches, "main")["pane_timing"].to_pylist() if batches else []
        waited = batches and batch_time_ms(tmp_path, batches[-1].id) - batch_time_ms(tmp_path, 0) > 3000
        return waited and len(batches) > 8 and {"EARLY", "ON_TIME"} <= set(timings)

    batches = run_until(spark, BOTH, tables, tmp_path, done, watermark="10 s")
    assert_replayed(BOTH, tables, batches, folder=tmp_path)


@pytest.mark.parametrize("spec", [ARRIVAL, BOTH])
def test_a_batch_frame_stands_still_and_fires_at_the_end(spark, tmp_path, spec):
    table = events(1, 200)
    pq.write_table(table, tmp_path / "t.parquet")
    before = time.time_ns() // 1_000_000
    frame = spark_glue.apply(spec, spark.read.parquet(str(tmp_path)))
    after = time.time_ns() // 1_000_000
    found, expected = frame.toArrow(), spec.run(table).main
    assert sorted(zip(map(str, found["k"]), found["n"].to_pylist(), strict=True)) == sorted(
        zip(map(str, expected["k"]), expected["n"].to_pylist(), strict=True)
    )
    if spec is ARRIVAL:
        starts = found["window_start"].cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64()).to_pylist()
        assert set(starts) <= set(range(before - before % 700, after + 1, 700))


class Waits(fw.Trigger):
    """Fires by a timer of the clock, half a second after each element; subclasses say with what."""

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_processing_time_timer(ctx.get_current_processing_time() + 500)
        return fw.TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return fw.TriggerResult.CONTINUE

    def clear(self, window, ctx):
        pass


def from_a_closure(answer):
    class Closure(Waits):
        def on_processing_time(self, time, window, ctx):
            return fw.TriggerResult.CONTINUE if time < 0 else answer

    return Closure()


class FromADefault(Waits):
    def on_processing_time(self, time, window, ctx, answer=fw.TriggerResult.FIRE):
        return fw.TriggerResult.CONTINUE if time < 0 else answer


@pytest.mark.parametrize(
    "trigger",
    [from_a_closure(fw.TriggerResult.FIRE), pytest.param(FromADefault(), marks=pytest.mark.long)],
    ids=["closure", "default"],
)
def test_a_trigger_that_overrides_on_processing_time_has_a_clock(spark, tmp_path, trigger):
    spec = (
        fw.key_by("k")
        .event_time("ts")
        .window(fw.TumblingEventTimeWindows.of("1 day"))
        .trigger(trigger)
        .aggregate(n=fw.Count())
    )

    def done(batches):
        return sum(batch.rows.num_rows for batch in batches) > 0

    batches = run_until(spark, spec, [events(1, 20)], tmp_path, done, watermark="10 s")
    assert sum(parts(batches, "main")["n"].to_pylist()) >= 20

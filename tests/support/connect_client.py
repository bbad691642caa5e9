"""What a client of Spark Connect does with apply and the sinks: a process of its own, because Connect is for all of it.

``python -m tests.support.connect_client FOLDER`` runs every case, with SPARK_REMOTE naming the server, and writes what came
of each to ``FOLDER/cases.json``: null, or a traceback. A case fails by raising.
"""

import json
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

import fastwin as fw
import spark_glue
from fastwin.run.stream import open_plan
from spark_glue.session import STATE_STORE_KEY, STATE_STORE_PROVIDER
from spark_glue.stages.counters import COUNTERS
from tests.support.spark_events import events
from tests.support.spark_streams import Source, assert_same_rows

CASES: dict[str, Callable[[Any, Path], None]] = {}

BY_KEY = fw.key_by("k").event_time("ts")
MINUTES = BY_KEY.window(fw.TumblingEventTimeWindows.of("1 min")).bad_rows("drop").aggregate(n=fw.Count(), s=fw.Sum("v"))
TABLES = [events(seed, 300, span_ms=300_000) for seed in range(2)]
ALL = pa.concat_tables(TABLES)


def case(run: Callable[[Any, Path], None]) -> Callable[[Any, Path], None]:
    """Adds a case: a function of the session and of a new folder."""
    CASES[run.__name__] = run
    return run


def stream_of(spark: Any, folder: Path) -> Any:
    """Returns a streaming frame of TABLES, one a micro-batch."""
    source = Source(folder, TABLES[0].schema)
    source.put(*TABLES)
    return source.frame(spark)


def run(frame: Any, folder: Path, sink: Any = None, name: str = "results") -> Any:
    """Runs a query over what is there, into a sink or into a table in memory."""
    writer = frame.writeStream.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    writer = writer.format("memory").queryName(name) if sink is None else writer.foreachBatch(sink)
    query = _started(writer)
    if not query.awaitTermination(120):
        query.stop()
        raise AssertionError("the query did not end")
    assert query.exception() is None, query.exception()
    return query


def _started(writer: Any, attempts: int = 4) -> Any:
    """Starts a query. Spark waits ten seconds for the Python of a sink, which a busy machine may not be ready in."""
    try:
        return writer.start()
    except PySparkException as problem:
        if attempts == 1 or "failed to connect back" not in str(problem):
            raise
        return _started(writer, attempts - 1)


@case
def the_session_has_what_streams_need(spark: Any, folder: Path) -> None:
    assert spark.conf.get(STATE_STORE_KEY) == STATE_STORE_PROVIDER
    assert spark.conf.get("spark.sql.session.timeZone") == "Europe/Berlin"
    assert spark_glue.session() is not None
    with pytest.raises(fw.SpecError, match=r"spark\.master is 'local.7.', and Spark Connect has a server at 'sc://"):
        spark_glue.session(master="local[7]")
    with pytest.raises(fw.SpecError, match=r"spark\.pyspark\.python is 'python9'.*PYSPARK_PYTHON"):
        spark_glue.session(config={"spark.pyspark.python": "python9"})
    with pytest.raises(fw.SpecError, match=r"spark\.sql\.warehouse\.dir is to be.*start the server with it"):
        spark_glue.session(config={"spark.sql.warehouse.dir": "elsewhere"})


@case
def a_batch_frame_and_its_counters(spark: Any, folder: Path) -> None:
    from pyspark.sql import Observation

    seen = Observation("seen")
    found = spark_glue.apply(MINUTES, spark.createDataFrame(ALL), name=seen, key_groups=4).toArrow()
    assert_same_rows(found, MINUTES.run(ALL).main)
    assert set(seen.get) == set(COUNTERS)
    assert seen.get["events"] == ALL.num_rows and seen.get["fired"] == found.num_rows


@case
def a_stream_its_counters_and_a_listener(spark: Any, folder: Path) -> None:
    heard: list[spark_glue.BatchMetrics] = []
    listener = spark_glue.metrics_listener(heard.append)
    spark.streams.addListener(listener)
    try:
        spec = MINUTES.with_window_time()
        query = run(spark_glue.apply(spec, stream_of(spark, folder), watermark="10 min", key_groups=4), folder)
        end = time.monotonic() + 20
        while sum(one.events for one in heard) < ALL.num_rows and time.monotonic() < end:
            time.sleep(0.1)
    finally:
        spark.streams.removeListener(listener)
    assert sum(one.events for one in heard) == ALL.num_rows
    batches = [metrics for progress in query.recentProgress for metrics in spark_glue.batch_metrics(progress)]
    assert sum(one.events for one in batches) == ALL.num_rows
    open_still = sum(one.open_windows_change for one in batches)
    found = spark.table("results").toArrow()
    expected = spec.run(ALL).main
    assert found.num_rows == expected.num_rows - open_still


@case
def a_stream_with_small_state(spark: Any, folder: Path) -> None:
    run(spark_glue.apply(MINUTES, stream_of(spark, folder), watermark="5 s", small_state=True), folder, name="small")
    stream, expected = open_plan(fw.plan(MINUTES, TABLES[0].schema, coalesce=True)), []
    for table in TABLES:
        expected += [stream.process(table).main, stream.advance_watermark(_newest(table) - 5_001).main]
    found = spark.table("small").toArrow()
    assert found.num_rows > 0
    assert_same_rows(found, pa.concat_tables(expected))


@case
def two_sinks_of_one_frame(spark: Any, folder: Path) -> None:
    def to(name: str) -> Callable[[Any, int], None]:
        return lambda rows, batch: rows.write.mode("overwrite").parquet(f"{folder}/{name}/batch={batch}")

    spec = BY_KEY.window(fw.EventTimeSessionWindows.with_gap("5 s")).bad_rows("drop").side_output_late_data()
    spec = spec.aggregate(n=fw.Count())
    frame = spark_glue.apply(spec, stream_of(spark, folder), watermark="1 s", key_groups=4)
    run(frame, folder, spark_glue.route(main=to("main"), late=to("late")))
    late = pq.read_table(folder / "late")
    stream = open_plan(fw.plan(spec, TABLES[0].schema, coalesce=True))
    stream.process(TABLES[0])
    stream.advance_watermark(_newest(TABLES[0]) - 1_001)
    expected = stream.process(TABLES[1]).late
    assert expected.num_rows > 0
    assert_same_rows(late.drop_columns(["batch"]).select(expected.column_names), expected)
    assert pq.read_table(folder / "main").num_rows > 0


@case
def panes_in_a_store(spark: Any, folder: Path) -> None:
    url = f"rocksdb:{folder / 'store'}"
    wide = BY_KEY.window(fw.SlidingEventTimeWindows.of("3 min", "1 min")).bad_rows("drop").aggregate(n=fw.Count())
    frame = spark_glue.apply(wide.panes(), stream_of(spark, folder), watermark="0 s", key_groups=4)
    run(frame, folder, spark_glue.to_store(url, wide))
    with fw.store.PaneStore.open(url, wide, read_only=True) as store:
        assert store.meta() is not None and store.watermark is not None


@case
def a_query_of_processing_time_does_not_end_by_itself(spark: Any, folder: Path) -> None:
    spec = fw.key_by("k").processing_time().window(fw.TumblingProcessingTimeWindows.of("1 s")).aggregate(n=fw.Count())
    frame = spark_glue.apply(spec, stream_of(spark, folder), key_groups=4)
    with pytest.raises(fw.SpecError, match="availableNow: a query of processing time never ends"):
        frame.writeStream.format("memory").queryName("arrivals").trigger(availableNow=True)
    writer = frame.writeStream.format("memory").queryName("arrivals").trigger(processingTime="200 milliseconds")
    query = _started(writer.option("checkpointLocation", str(folder / "checkpoint")))
    end = time.monotonic() + 120
    try:
        while spark.table("arrivals").agg(F.sum("n")).first()[0] != ALL.num_rows:
            assert query.exception() is None and time.monotonic() < end
            time.sleep(0.2)
    finally:
        query.stop()


@case
def what_cannot_work_is_refused(spark: Any, folder: Path) -> None:
    stream = stream_of(spark, folder)
    counted = stream.withWatermark("ts", "1 minute").groupBy("k", F.window("ts", "1 minute").alias("w")).count()
    counted = counted.selectExpr("k", "window_time(w) ts", "count v")
    with pytest.raises(fw.SpecError, match="df: it comes out of Spark's own streaming aggregation"):
        spark_glue.apply(MINUTES, counted, watermark="1 min")
    distinct = spark.createDataFrame(ALL).groupBy("k").count()
    spark_glue.apply(MINUTES, stream.join(distinct, "k"), watermark="1 min")  # of a table, that is none
    once = spark_glue.apply(MINUTES, stream, watermark="1 min").withColumnRenamed("window_end", "ts")
    with pytest.raises(fw.SpecError, match=r"df: it comes out of another stateful operator \(TransformWithState"):
        spark_glue.apply(MINUTES, once.selectExpr("k", "ts", "n v"), watermark="1 min")
    with pytest.raises(fw.SpecError, match="it has a watermark on 'ts', but not that column any more"):
        spark_glue.apply(
            MINUTES, stream.withWatermark("ts", "1 minute").selectExpr("k", "ts + interval 1 second ts", "v")
        )
    with pytest.warns(UserWarning, match="the frame has a watermark already"):
        spark_glue.apply(MINUTES, stream.withWatermark("ts", "1 minute"))
    spark.conf.set(STATE_STORE_KEY, "org.example.HDFS")
    try:
        with pytest.raises(fw.SpecError, match=r"needed is .*spark\.conf\.set\('spark\.sql\.streaming\.stateStore"):
            spark_glue.apply(MINUTES, stream, watermark="1 min")
    finally:
        spark.conf.set(STATE_STORE_KEY, STATE_STORE_PROVIDER)


def _newest(table: pa.Table) -> int:
    return pa.compute.max(table["ts"].cast(pa.timestamp("ms", tz="UTC"), safe=False)).cast(pa.int64()).as_py()


def main(folder: Path, *names: str) -> None:
    """Runs all cases, or those named, with one session."""
    spark = spark_glue.session(config={"spark.sql.session.timeZone": "Europe/Berlin"})
    found = {}
    for name in names or CASES:
        place = folder / name
        place.mkdir()
        begun = time.monotonic()
        try:
            CASES[name](spark, place)
            found[name] = None
        except BaseException:
            found[name] = traceback.format_exc()
        print(f"{name}: {time.monotonic() - begun:.1f} s", flush=True)
    spark.stop()
    (folder / "cases.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])

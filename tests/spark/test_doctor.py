"""Queries that have what the doctor looks for. tests/spark/health has the rules themselves, without Spark."""

import json
import os
import time
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError
from spark_glue.plan.settings import FORMAT_KEY
from tests.support.spark_streams import Source, start
from tests.support.spark_versions import SPARK

START_MS = 1_700_000_000_000
SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.timestamp("ms", tz="UTC"))])
MINUTES = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 min")).bad_rows("drop")
COUNTED = MINUTES.aggregate(n=fw.Count())


def rows(*seconds, key="a"):
    return pa.table([[key] * len(seconds), [START_MS + 1_000 * second for second in seconds]], schema=SCHEMA)


class Slow(fw.ProcessWindowFunction):
    def process(self, key, context, elements):
        if key == "hot":
            time.sleep(4)
        yield (len(list(elements)),)


@pytest.fixture
def ill(spark, tmp_path, monkeypatch):
    """Runs a frame of files, a micro-batch each, and returns what the doctor says while it runs."""
    queries = []

    def run(spec, *tables, keep, environment=None, settings=None, **arguments):
        folder = tmp_path / str(len(queries))
        folder.mkdir()
        for name, value in (environment or {}).items():
            monkeypatch.setitem(spark.sparkContext.environment, name, value)
        before = {name: spark.conf.get(name, None) for name in settings or {}}
        for name, value in (settings or {}).items():
            spark.conf.set(name, value)
        try:
            if isinstance(spec, fw.JoinSpec):
                sources = [Source(_made(folder / side), SCHEMA) for side in ("left", "right")]
                for source, given in zip(sources, tables, strict=True):
                    source.put(*given)
                frame = spark_glue.apply(spec, tuple(source.frame(spark) for source in sources), **arguments)
            else:
                source = Source(folder, SCHEMA)
                source.put(*tables)
                frame = spark_glue.apply(spec, source.frame(spark), **arguments)
            query = start(frame, folder, lambda rows, batch: rows.collect())
            queries.append(query)
            query.processAllAvailable()
        finally:
            for name, value in before.items():
                spark.conf.unset(name) if value is None else spark.conf.set(name, value)
        found = spark_glue.doctor(query)
        _keep(query, keep)
        query.stop()
        return found

    yield run
    for query in queries:
        query.stop()


def _made(folder):
    folder.mkdir()
    return folder


def _keep(query, name):
    """Keeps the records of a query where FASTWIN_KEEP_RECORDS says, as the tests without Spark take them."""
    folder = os.environ.get("FASTWIN_KEEP_RECORDS")
    if folder:
        lines = ",\n".join(json.dumps(json.loads(one.json)) for one in query.recentProgress)
        Path(folder, f"{name}.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def test_a_date_far_ahead_in_a_checkpoint_of_the_first_format(ill):
    has_better = SPARK >= (4, 1)  # than that format
    with pytest.warns(UserWarning, match="checkpointFormatVersion is 1") if has_better else nullcontext():
        found = ill(
            COUNTED, rows(0, 30, 70), rows(4_000_000_000), rows(80, 90), rows(100, 200),
            keep="date-in-the-future", watermark="10 s", max_future_skew=None, settings={FORMAT_KEY: "1"},
        )  # fmt: skip
    names = {one.name for one in found}
    assert {"date in the future", "no trigger interval"} <= names
    assert ("state format 1" in names) == has_better
    assert "all rows late" not in found
    assert found["date in the future"].evidence["late"] == found["date in the future"].evidence["events"] == 4
    assert "2150-" in str(found["date in the future"]) or "ahead of the clock" in str(found)


def test_an_input_of_a_join_that_is_silent(ill):
    side = fw.key_by("k").event_time("ts").bad_rows("drop")
    join = fw.window_join(
        side, fw.key_by("k").event_time("ts").bad_rows("drop"), fw.TumblingEventTimeWindows.of("1 min")
    )
    left = [rows(120 * n) for n in range(5)]
    found = ill(join, left, [rows(1)], keep="idle-input", watermark=("1 s", "1 s"))
    assert "idle input" in found
    assert "right" in found["idle input"].evidence["silent"]
    assert found["idle input"].evidence["watermark_ms"] == START_MS + 1_000 - 1_000 - 1


@pytest.mark.long
def test_rows_that_are_all_late(ill):
    found = ill(
        COUNTED, rows(5_000), *(rows(10 * n, 10 * n + 1) for n in range(12)), keep="all-rows-late", watermark="10 s"
    )
    assert found["all rows late"].evidence["events"] >= 20


@pytest.mark.long
def test_a_file_that_comes_behind_a_later_one(ill):
    found = ill(COUNTED, rows(0), rows(5_000, 5_001), rows(6_000, 100, 101), keep="many-rows-late", watermark="10 s")
    assert found["many rows late"].evidence["late"] == 2


@pytest.mark.long
def test_a_delay_that_is_longer_than_the_data(ill):
    found = ill(COUNTED, rows(0, 3_600), keep="delay-longer-than-the-data", watermark="30 days")
    evidence = found["delay longer than the data"].evidence
    assert evidence["delay_ms"] == 30 * 86_400_000
    assert "30 days" in str(found)


@pytest.mark.long
def test_a_function_that_takes_long_for_one_key(ill):
    hot = pa.concat_tables([rows(1, key=key) for key in ["hot", *"bcdefgh"]])
    spec = MINUTES.process(Slow(), output="n bigint")
    found = ill(spec, hot, rows(200), keep="skew", watermark="1 s", settings={"spark.sql.shuffle.partitions": "4"})
    assert found["skew"].evidence["longest_ms"] >= 4_000
    assert found["skew"].evidence["tasks"] == 4


@pytest.mark.long
def test_state_that_does_not_fit(ill):
    small = {"FASTWIN_LIVE_BYTES": "1", "FASTWIN_CACHE_BYTES": "1"}
    names = pa.array(range(1_000_000)).cast(pa.string())
    much = pa.table([names, [START_MS] * len(names)], schema=SCHEMA)
    inputs = much, *(rows(n) for n in range(5))
    found = ill(COUNTED, *inputs, keep="state-reloaded", watermark="10 s", environment=small)
    assert found["state reloaded"].evidence["loaded"] >= 3


@pytest.mark.long
def test_no_input_at_all(ill):
    found = ill(COUNTED, keep="no-input", watermark="10 s")
    assert [one.name for one in found] == ["no input"]


@pytest.mark.long
def test_times_that_are_all_bad(ill):
    wrong = pa.table([["a"] * 3, [-1_000, -2_000, -3_000]], schema=SCHEMA)
    found = ill(COUNTED, wrong, keep="all-rows-bad", watermark="10 s")
    assert found["all rows bad"].evidence["bad"] == 3


@pytest.mark.long
def test_silence_while_windows_are_open(spark, tmp_path):
    source, key = Source(tmp_path, SCHEMA), "spark.sql.streaming.noDataProgressEventInterval"
    source.put(rows(0, 30))
    frame = spark_glue.apply(COUNTED, source.frame(spark), watermark="10 s")
    before = spark.conf.get(key, None)
    spark.conf.set(key, "100")
    try:
        query = start(frame, tmp_path, lambda rows, batch: rows.collect())
    finally:
        spark.conf.unset(key) if before is None else spark.conf.set(key, before)
    query.processAllAvailable()
    end = time.monotonic() + 60
    while "silent input" not in (found := spark_glue.doctor(query)) and time.monotonic() < end:
        time.sleep(0.2)
    query.stop()
    assert found["silent input"].evidence["open_windows"] == 1


@pytest.mark.long
def test_far_more_partitions_than_cores(ill, spark):
    count = 8 * spark.sparkContext.defaultParallelism
    settings = {"spark.sql.shuffle.partitions": str(count)}
    found = ill(COUNTED, rows(0), keep="many-partitions", watermark="10 s", settings=settings)
    assert found["many partitions"].evidence["partitions"] == count


@pytest.mark.long
def test_a_query_that_has_failed(spark, tmp_path):
    source = Source(tmp_path, SCHEMA)
    source.put(pa.table([["a"], [-1_000]], schema=SCHEMA))
    with pytest.warns(UserWarning, match="one row with a date far ahead ends the query"):
        frame = spark_glue.apply(COUNTED.bad_rows("raise"), source.frame(spark), watermark="1 s")
    query = start(frame, tmp_path, lambda rows, batch: rows.collect())
    with pytest.raises(Exception, match="BadRowError"):
        query.awaitTermination(120)
    found = spark_glue.doctor(query)
    assert [one.name for one in found][:1] == ["failed"]
    assert "BadRowError" in found["failed"].what


@pytest.mark.long
def test_a_query_without_windows(spark, tmp_path):
    source = Source(tmp_path, SCHEMA)
    source.put(rows(1))
    query = start(source.frame(spark), tmp_path, lambda rows, batch: rows.collect())
    query.processAllAvailable()
    found = spark_glue.doctor(query)
    query.stop()
    assert "no windows" in found


@pytest.mark.long
def test_another_state_store(ill, spark, tmp_path):
    source = Source(tmp_path, SCHEMA)
    source.put(rows(1))
    frame = spark_glue.apply(COUNTED, source.frame(spark), watermark="1 s")
    key = "spark.sql.streaming.stateStore.providerClass"
    before = spark.conf.get(key)
    spark.conf.set(key, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    try:
        query = start(frame, tmp_path, lambda rows, batch: rows.collect())
    finally:
        spark.conf.set(key, before)
    with pytest.raises(
        StreamingQueryException, match="HDFSBackedStateStoreProvider is not supported by TransformWithState"
    ):
        query.awaitTermination(60)
    found = spark_glue.doctor(query)
    assert [one.name for one in found][:1] == ["wrong store"]
    assert "failed" not in found


def test_a_query_is_needed():
    with pytest.raises(SpecError, match=r"doctor: query must be what start\(\) returns, got str"):
        spark_glue.doctor("query")

"""Spark end to end: Structured Streaming over the same Parquet files, fastwin beside Spark's own windows.

A stream takes one file a micro-batch. What counts is the time (``triggerExecution``) of every micro-batch but the
first one, which warms up; so also that of the last one, without events, in which what is left fires.
"""

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fastwin as fw
from bench.events import EPOCH_MS, PER_KEY_MS, events
from bench.race import OURS, Bar, Contender, Entry, Works
from bench.scale import PEER_THREADS, Scale, amount

WORKS = Works()
STORES = {"native, RocksDB": "RocksDB", "native, HDFS-backed": "HDFSBacked"}
DELAY, DELAY_MS, DISORDER_MS = "10 seconds", 10_000, 2_000
CHECKED_EVENTS, CHECKED_KEYS = 20_000, 500
PATIENCE_S = 120.0  # after that much measured time a contender gets no further attempt
_PROVIDER = "org.apache.spark.sql.execution.streaming.state.{}StateStoreProvider"
_COLUMNS = ("key", "window_start", "window_end", "n", "s", "lo", "hi")
Query = Callable[[Any], Any]


class Lab:
    """The Spark session, and the files that the streams read."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self._folder = folder
        self._made: dict[tuple[int, int, int], Path] = {}

    def files(self, batches: int, batch_events: int, keys: int) -> Path:
        """Returns a folder with a Parquet file for each micro-batch, and a key's events 12.5 s apart on average.

        Columns: ``key`` long, ``ts`` timestamp, ``value`` long, and ``note``, text that no query reads.
        """
        wanted = (batches, batch_events, keys)
        if wanted not in self._made:
            folder = self._folder / "-".join(map(str, wanted))
            folder.mkdir()
            span = batch_events * PER_KEY_MS // keys
            notes = pa.array(["red", "green", "blue"]).take(pa.array(np.arange(batch_events) % 3))
            for batch in range(batches):
                first = EPOCH_MS + batch * span
                table = events(batch_events, keys, span, DISORDER_MS, seed=100 + batch, first_ms=first)
                table = table.append_column("note", notes)
                path = folder / f"{batch:04d}.parquet"
                # as many row groups as cores, so that Spark can divide a file between them
                pq.write_table(table, path, row_group_size=-(-batch_events // PEER_THREADS))
                os.utime(path, (1_600_000_000 + batch,) * 2)  # Spark takes the oldest first
            self._made[wanted] = folder
        return self._made[wanted]

    def run(self, query: Query, store: str, files: Path, output: Path | None = None) -> list[Any]:
        """Runs a query over the files; returns the progress of its micro-batches. output: None drops the rows."""
        self.spark.conf.set("spark.sql.streaming.stateStore.providerClass", _PROVIDER.format(store))
        schema = self.spark.read.parquet(str(files)).schema
        frame = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(files))
        checkpoint = tempfile.mkdtemp(dir=self._folder)
        writer = query(frame).writeStream.option("checkpointLocation", checkpoint).trigger(availableNow=True)
        writer = writer.format("noop") if output is None else writer.format("parquet").option("path", str(output))
        running = writer.start()
        try:
            running.awaitTermination()
            return list(running.recentProgress)
        finally:
            running.stop()
            shutil.rmtree(checkpoint, ignore_errors=True)

    def check(self, queries: dict[str, Query]) -> None:
        """Raises AssertionError unless the queries agree on a small stream, up to what its watermark has closed."""
        files = self.files(3, CHECKED_EVENTS, CHECKED_KEYS)
        newest = max(pc.max(pq.read_table(path)["ts"]).value for path in files.glob("*.parquet"))
        closed = newest - DELAY_MS - DISORDER_MS
        answers = {}
        for name, query in queries.items():
            output = Path(tempfile.mkdtemp(dir=self._folder))
            self.run(query, STORES.get(name, "RocksDB"), files, output)
            rows = pq.read_table(output).select(_COLUMNS)
            ends = rows["window_end"].cast(pa.timestamp("ms")).cast(pa.int64())
            rows = rows.filter(pc.less_equal(ends, closed))
            answers[name] = rows.sort_by([(column, "ascending") for column in _COLUMNS[:2]]).to_pylist()
            shutil.rmtree(output)
        first, *others = answers
        assert answers[first], "the small stream closes no window"
        for name in others:
            assert answers[name] == answers[first], f"{name} and {first} do not agree"

    def timed(self, query: Query, store: str, files: Path) -> tuple[float, list[dict[str, float]]]:
        """Returns the seconds of all micro-batches but the first one, and what each took."""
        progress = self.run(query, store, files)
        batches = [
            {"events": one["numInputRows"], "seconds": one["durationMs"]["triggerExecution"] / 1_000}
            for one in progress
            if one["batchId"] > 0
        ]
        return sum(one["seconds"] for one in batches), batches


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("pyspark is missing")
    if shutil.which("java", path=_java_path()) is None:
        pytest.skip("Spark needs Java, and there is none")
    import spark_glue

    config = {
        "spark.driver.memory": os.environ.get("FASTWIN_BENCH_DRIVER_MEMORY", "4g"),
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": PEER_THREADS,
        "spark.sql.streaming.numRecentProgressUpdates": 1_000,
    }
    spark = spark_glue.session(app_name="fastwin benchmarks", master=f"local[{PEER_THREADS}]", config=config)
    spark.sparkContext.setLogLevel("ERROR")
    folder = Path(tempfile.mkdtemp(prefix="fastwin-bench-"))
    try:
        yield Lab(spark, folder)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _java_path() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return None if home is None else os.path.join(home, "bin")


def _ours(assigner: fw.WindowAssigner) -> Query:
    spec = fw.key_by("key").event_time("ts").window(assigner)
    spec = spec.aggregate(n=fw.Count(), s=fw.Sum("value"), lo=fw.Min("value"), hi=fw.Max("value"))

    def query(frame: Any) -> Any:
        import spark_glue

        return spark_glue.apply(spec, frame, watermark=DELAY)

    return query


def _native(window: Callable[[Any], Any]) -> Query:
    """Spark's own windows; window: makes the window column, given ``pyspark.sql.functions``."""

    def query(frame: Any) -> Any:
        from pyspark.sql import functions as F

        grouped = frame.withWatermark("ts", DELAY).groupBy(window(F).alias("w"), "key")
        aggregates = {"n": F.count("*"), "s": F.sum("value"), "lo": F.min("value"), "hi": F.max("value")}
        found = grouped.agg(*(value.alias(name) for name, value in aggregates.items()))
        return found.selectExpr("key", "w.start AS window_start", "w.end AS window_end", *aggregates)

    return query


def _entry(scale: Scale, lab: Lab, label: str, assigner: fw.WindowAssigner, window: Callable[[Any], Any]) -> Entry:
    queries = {OURS: _ours(assigner)} | dict.fromkeys(STORES, _native(window))
    lab.check({name: queries[name] for name in (OURS, next(iter(STORES)))})
    files = lab.files(scale.batches, scale.batch_events, scale.keys)

    def contender(query: Query, store: str) -> Contender:
        return Contender(
            lambda: lab.timed(query, store, files),
            clocked=True,
            attempts=scale.spark_attempts,
            patience_s=PATIENCE_S,
            threads=PEER_THREADS,
            notes=lambda batches: {"last attempt": batches},
        )

    contenders = {name: contender(query, STORES.get(name, "RocksDB")) for name, query in queries.items()}
    size = f"{amount(scale.batch_events)}-event batches, {amount(scale.keys)} keys"
    return Entry(f"Spark, {label}, {size}", (scale.batches - 1) * scale.batch_events, contenders)


@WORKS.add("spark-tumbling", "event", tuple(STORES), Bar.at_least(2.5, *STORES))
def tumbling(scale: Scale, lab: Lab) -> Entry:
    assigner = fw.TumblingEventTimeWindows.of("1 minute")
    return _entry(scale, lab, "tumbling 1 min", assigner, lambda functions: functions.window("ts", "1 minute"))


@WORKS.add("spark-sessions", "event", tuple(STORES), Bar.at_least(8, *STORES))
def sessions(scale: Scale, lab: Lab) -> Entry:
    assigner = fw.EventTimeSessionWindows.with_gap("10 seconds")
    return _entry(
        scale, lab, "sessions, gap 10 s", assigner, lambda functions: functions.session_window("ts", "10 seconds")
    )


@WORKS.add("spark-sliding", "event", tuple(STORES), Bar.at_least(20, *STORES))
def sliding(scale: Scale, lab: Lab) -> Entry:
    assigner = fw.SlidingEventTimeWindows.of("60 minutes", "3 minutes")
    return _entry(
        scale,
        lab,
        "sliding 60 min / 3 min",
        assigner,
        lambda functions: functions.window("ts", "60 minutes", "3 minutes"),
    )


@pytest.mark.spark
@WORKS.parametrize
def test_spark(race, lab, work, contender):
    race(work, contender, lab)

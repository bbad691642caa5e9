"""What a warm query sustains: tumbling windows over generated rows, by fastwin and by Spark's own windows."""

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

import fastwin as fw
import spark_glue
from fastwin.errors import FastwinError
from spark_glue.apps.demo.source import write_part
from spark_glue.plan.settings import FORMAT_KEY
from spark_glue.state.savepoint import spark_path

__all__ = ["measure", "write_rows"]

BATCHES, COLD = 6, 2  # micro-batches, and how many of them are left out because what runs them is still being compiled
KEYS = 10_000
MINUTES = 10  # of event time in a micro-batch
DISORDER_S = 5
START_S = 1_700_000_000 // 60 * 60

_SPEC = (
    fw.key_by("key")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of("1 minute"))
    .bad_rows("drop")
    .aggregate(n=fw.Count(), total=fw.Sum("value"))
)
# The store with which Spark's own windows are faster; it knows the first format of checkpoints only.
_FOR_SPARKS_WINDOWS = {
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state."
    "HDFSBackedStateStoreProvider",
    FORMAT_KEY: "1",
}


@dataclass(frozen=True)
class Pace:
    """What a query did. rates: events/s of each warm micro-batch. results: windows, their elements, the sum of all."""

    rates: list[float]
    results: tuple[int, int, int]


def write_rows(rows: int, folder: Path) -> None:
    """Writes generated rows, a file for each micro-batch, with ``rows`` in each."""
    folder.mkdir(parents=True)
    for number, table in enumerate(_tables(rows)):
        write_part(table, number, folder)


def _tables(rows: int) -> Iterator[pa.Table]:
    random = np.random.default_rng(7)
    span = MINUTES * 60 * 1_000_000
    for number in range(BATCHES):
        times = START_S * 1_000_000 + number * span + np.arange(rows) * span // rows
        times -= random.integers(0, DISORDER_S * 1_000_000, rows)
        yield pa.table(
            {
                "key": random.integers(0, KEYS, rows),
                "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
                "value": random.integers(0, 1_000, rows),
            }
        )


def measure(spark: SparkSession, rows: int, out: Path, say: Callable[[str], None]) -> None:
    """Runs both queries over the written rows, one after the other, and says what they did.

    Raises FastwinError if their results differ.
    """
    stream = spark.readStream.schema("key bigint, ts timestamp, value bigint").option("maxFilesPerTrigger", 1)
    stream = stream.parquet(spark_path(out / "rows"))
    watermark = f"{DISORDER_S} seconds"
    say(f"\nAt full speed: {BATCHES} micro-batches of {rows:,} rows, windows of 1 minute for {KEYS:,} keys")
    ours = _run("fastwin", spark_glue.apply(_SPEC, stream, watermark=watermark), out)
    _tell("fastwin", ours, say)
    native = (
        stream.withWatermark("ts", watermark)
        .groupBy(sql.window("ts", "1 minute"), "key")
        .agg(sql.count("*").alias("n"), sql.sum("value").alias("total"))
    )
    for key, value in _FOR_SPARKS_WINDOWS.items():
        spark.conf.set(key, value)
    theirs = _run("native", native, out)
    _tell("Spark's own windows, on its faster store", theirs, say)
    if ours.results != theirs.results:
        raise FastwinError(f"the results differ: {ours.results} and {theirs.results} (windows, elements, sum)")
    say(f"  {ours.results[0]:,} windows with {ours.results[1]:,} rows: the same from both")


def _run(name: str, frame: DataFrame, out: Path) -> Pace:
    found: dict[int, tuple[int, int, int]] = {}

    def count(results: DataFrame, batch_id: int) -> None:
        row = results.agg(sql.count("*"), sql.sum("n"), sql.sum("total")).collect()[0]
        found[batch_id] = row[0], row[1] or 0, row[2] or 0

    writer = frame.writeStream.queryName(f"pace {name}").outputMode("append").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(out / "checkpoints" / f"pace-{name}")).foreachBatch(count).start()
    query.awaitTermination()
    rates = [
        progress.numInputRows / progress.durationMs["triggerExecution"] * 1000
        for progress in query.recentProgress
        if progress.numInputRows
    ]
    windows, elements, total = (sum(column) for column in zip(*found.values(), strict=True))
    return Pace(rates[COLD:], (windows, elements, total))


def _tell(name: str, pace: Pace, say: Callable[[str], None]) -> None:
    say(f"  {statistics.median(pace.rates) / 1e6:5.2f} M events/s  {name}")

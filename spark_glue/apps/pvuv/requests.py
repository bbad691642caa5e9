"""Lines of a log as a stream of requests: read by Spark's source of text files, parsed by its tasks."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_glue.apps.pvuv.accesslog import parse_lines
from spark_glue.apps.pvuv.modules import Events
from spark_glue.plan.eventtimes import time_where_ahead
from spark_glue.state.savepoint import spark_path

__all__ = ["COUNTS", "requests_of"]

COUNTS = "lines"
"""The name of the counters in a micro-batch's progress: events, malformed, skipped, newest_ms."""

_FILES_AT_ONCE = 1_000
_DAY_MS = 86_400_000
_COLUMNS = "module string, ts timestamp, visitor string, line string, events bigint, skipped bigint"
_SCHEMA = pa.schema(
    [
        ("module", pa.string()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("visitor", pa.string()),
        ("line", pa.string()),
        ("events", pa.int64()),
        ("skipped", pa.int64()),
    ]
)


def requests_of(spark: SparkSession, lines: Path, end: Path, made: Events, *, copies: bool) -> DataFrame:
    """Returns a stream of module, ts, visitor and line, the last for malformed lines alone, which have nothing else.

    ts is null as well for a date before 1970, or more than a day ahead of the micro-batch's time, so that it moves no
    watermark. What is put into ``end`` may have any time.

    lines: a folder of logs, plain or with Hadoop's endings for compressed ones. end: an empty folder; a file of JSON
    with ``ms`` put there later is one event of no module, which brings the watermark to that time; of several files,
    each is read by a micro-batch of its own. copies: whether ``lines`` has copies, which Spark deletes when it has read
    them. A micro-batch takes 1,000 logs at most, the oldest first.
    """
    reader = spark.readStream.option("cleanSource", "delete" if copies else "off")
    reader = reader.option("maxFilesPerTrigger", _FILES_AT_ONCE)
    text = reader.text(spark_path(lines))
    parsed = (
        _dated(text.mapInArrow(_parsing(made), _COLUMNS))
        .observe(
            COUNTS,
            F.sum("events").alias("events"),
            F.count("line").alias("malformed"),
            F.sum("skipped").alias("skipped"),
            F.unix_millis(F.max("ts")).alias("newest_ms"),
        )
        .where("events is null")
    )
    last = spark.readStream.schema("ms bigint").option("maxFilesPerTrigger", 1).json(spark_path(end))
    last = last.selectExpr("null as module", "timestamp_millis(ms) as ts", "null as visitor", "null as line")
    return parsed.select("module", "ts", "visitor", "line").union(last)


def _dated(parsed: DataFrame) -> DataFrame:
    """Returns the frame with null for times that are none of a log."""
    time_us, now = F.unix_micros("ts"), time_where_ahead(parsed, "ts", None, _DAY_MS)
    wrong = (time_us < 0) | (time_us - F.unix_micros(now) > _DAY_MS * 1_000)
    return parsed.withColumn("ts", F.when(wrong, None).otherwise(F.col("ts")))


def _parsing(made: Events) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns what a task does with lines: events, malformed lines, and a row of counters for each batch."""

    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            parsed = parse_lines(batch.column(0))
            events, skipped = made.of(parsed.rows)
            others = pa.table({"line": pa.array([line for _, line in parsed.malformed], pa.string())})
            told = pa.table({"events": pa.array([events.num_rows]), "skipped": pa.array([skipped])})
            for table in (events, others, told):
                yield from _as_rows(table).to_batches()

    return parse


def _as_rows(table: pa.Table) -> pa.Table:
    """Returns a table with all columns; null are those that it lacks."""
    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(table.num_rows, field.type)
        for field in _SCHEMA
    ]
    return pa.table(columns, schema=_SCHEMA).combine_chunks()

"""Helpers: tables as a stream of micro-batches, what came out of each, and the same replayed without Spark."""

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import fastwin as fw
import spark_glue
from fastwin.run.stream import open_plan

FIRST_FILE_TIME = 1_600_000_000


@dataclass(frozen=True)
class MicroBatch:
    """One micro-batch of a query.

    rows: what came out. watermark_ms: what Spark reported for it; None: none yet. inputs: rows read.
    counters: what ``apply`` counted.
    """

    id: int
    rows: pa.Table
    watermark_ms: int | None
    inputs: int
    counters: dict[str, Any]


@dataclass
class Recorder:
    """A sink for foreachBatch that keeps the rows of each batch; a batch run again replaces its rows."""

    tables: dict[int, pa.Table] = field(default_factory=dict)

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        self.tables[batch_id] = frame.toArrow()


class Source:
    """A folder of Parquet files that Spark reads one file a micro-batch, in the order in which they were put."""

    def __init__(self, folder: Path, schema: pa.Schema, count: int = 0) -> None:
        self.folder = folder / "input"
        self.folder.mkdir(exist_ok=count > 0)
        self.schema = schema
        self.count = count  # of the files that are there

    def put(self, *tables: pa.Table) -> None:
        """Adds tables, a file each."""
        for table in tables:
            hidden = self.folder / f".{self.count}.parquet"
            pq.write_table(table.cast(self.schema), hidden)
            os.utime(hidden, (FIRST_FILE_TIME + self.count,) * 2)  # Spark takes the oldest first
            hidden.rename(self.folder / f"{self.count:06d}.parquet")
            self.count += 1

    def frame(self, spark: SparkSession) -> DataFrame:
        """Returns the streaming frame."""
        if self.count == 0:  # the schema is read from a file
            self.put(self.schema.empty_table())
        schema = spark.read.parquet(str(self.folder)).schema
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(self.folder))


def run_stream(
    spark: SparkSession,
    spec: fw.WindowSpec,
    tables: Sequence[pa.Table],
    folder: Path,
    *,
    prepare: Callable[[DataFrame], DataFrame] = lambda frame: frame,
    **arguments: Any,
) -> list[MicroBatch]:
    """Runs a spec over tables, one micro-batch each, until all is read and the last watermark has passed.

    folder: for input and checkpoint. prepare: changes the frame before apply. arguments: of ``spark_glue.apply``.
    """
    source = Source(folder, tables[0].schema)
    source.put(*tables)
    frame = spark_glue.apply(spec, prepare(source.frame(spark)), **arguments)
    recorder = Recorder()
    query = start(frame, folder, recorder, available_now=True)
    query.awaitTermination()
    return micro_batches(query, recorder)


def start(
    frame: DataFrame,
    folder: Path,
    sink: Callable[[DataFrame, int], object],
    *,
    available_now: bool = False,
    scheme: str = "",
) -> StreamingQuery:
    """Starts a query with its checkpoint below ``folder``; unless available_now, it runs until stopped.

    scheme: of the file system, such as ``file://``.
    """
    writer = frame.writeStream.outputMode("append").option("checkpointLocation", f"{scheme}{folder / 'checkpoint'}")
    if available_now:
        writer = writer.trigger(availableNow=True)
    return writer.foreachBatch(sink).start()


def micro_batches(query: StreamingQuery, recorder: Recorder) -> list[MicroBatch]:
    """Returns the micro-batches that a query has run, with what the recorder has of them."""
    found = {}
    for progress in query.recentProgress:
        batch_id = progress["batchId"]
        if batch_id not in recorder.tables or not progress["durationMs"].get("addBatch"):
            continue  # the trigger found nothing to do
        found[batch_id] = MicroBatch(
            batch_id,
            recorder.tables[batch_id],
            _watermark_ms(progress["eventTime"].get("watermark")),
            progress["numInputRows"],
            spark_glue.counters(progress).get("fastwin", {}),
        )
    return [found[batch_id] for batch_id in sorted(found)]


def _watermark_ms(text: str | None) -> int | None:
    if text is None:
        return None
    moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    ms = round(moment.timestamp() * 1000)
    return ms or None


def stages_again(spark: SparkSession, query: StreamingQuery) -> int:
    """Returns how many stages of a query's jobs Spark attempted more than once, as it does where shuffles are lost."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()  # Spark tells of jobs later than it runs them
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(str(query.runId))]
    stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    return sum(stage is not None and stage.currentAttemptId > 0 for stage in stages)


def await_batches(recorder: Recorder, query: StreamingQuery, count: int, seconds: float = 240) -> None:
    """Waits until a query's sink has got ``count`` batches; raises what the query failed with."""
    end = time.monotonic() + seconds
    while len(recorder.tables) < count:
        if query.exception() is not None:
            raise query.exception()
        assert time.monotonic() < end, f"{len(recorder.tables)} of {count} batches in {seconds} s"
        time.sleep(0.05)


def part(rows: pa.Table, name: str) -> pa.Table:
    """Returns the ``main``, ``late``, ``bad`` or ``side_tag`` rows of a result frame, with their own columns."""
    sides = [side for side in rows.column_names if _is_side(side) and pa.types.is_struct(rows[side].type)]
    if name != "main":
        if name not in sides:
            return pa.table({})
        column = rows[name].combine_chunks()
        return pa.Table.from_struct_array(column.filter(column.is_valid()))
    for side in sides:
        rows = rows.filter(rows[side].is_null())
    return rows.drop_columns(sides)


def _is_side(column: str) -> bool:
    return column in ("late", "bad") or column.startswith("side_")


def parts(batches: Sequence[MicroBatch], name: str) -> pa.Table:
    """Returns the ``main``, ``late``, ``bad`` or ``side_tag`` rows of all micro-batches."""
    return pa.concat_tables([part(batch.rows, name) for batch in batches])


def replay(
    spec: fw.WindowSpec,
    tables: Sequence[pa.Table],
    batches: Sequence[MicroBatch],
    coalesce: bool = True,
    folder: Path | None = None,
) -> Iterator[fw.Result]:
    """Yields what the spec gives in this process for the same batches and watermarks, a result per micro-batch.

    tables: the input of those micro-batches that had any, in their order. folder: of ``run_stream``; the clock then
    stands where it stood for Spark.
    """
    stream = open_plan(fw.plan(spec, tables[0].schema, coalesce=coalesce))
    left = iter(tables)
    for batch in batches:
        results = []
        if folder is not None:
            results.append(stream.advance_processing_time(batch_time_ms(folder, batch.id), before=True))
        results.append(stream.advance_watermark(batch.watermark_ms or fw.MIN_TIMESTAMP))
        if batch.inputs:
            results.append(stream.process(next(left)))
        main, late, bad = (
            pa.concat_tables([getattr(one, name) for one in results]) for name in ("main", "late", "bad")
        )
        sides = {tag: pa.concat_tables([r.side[tag] for r in results]) for tag in results[-1].side}
        yield fw.Result(main, late, bad, sides)
    assert not list(left), "some of the input has not been read"


def batch_time_ms(folder: Path, batch_id: int) -> int:
    """Returns the time of a micro-batch as Spark has it in the checkpoint below a folder."""
    lines = (folder / "checkpoint" / "offsets" / str(batch_id)).read_text().splitlines()
    return int(json.loads(lines[1])["batchTimestampMs"])


def assert_replayed(
    spec: fw.WindowSpec,
    tables: Sequence[pa.Table],
    batches: Sequence[MicroBatch],
    coalesce: bool = True,
    folder: Path | None = None,
) -> None:
    """Raises AssertionError unless all outputs of all micro-batches are what this process gives."""
    for batch, expected in zip(batches, replay(spec, tables, batches, coalesce, folder), strict=True):
        assert_same_rows(part(batch.rows, "main"), expected.main)
        if spec.late_output:
            assert_same_rows(part(batch.rows, "late"), expected.late)
        if spec.bad_row_policy == "divert":
            assert_same_rows(part(batch.rows, "bad"), expected.bad)
        for tag, side in expected.side.items():
            assert_same_rows(part(batch.rows, f"side_{tag}"), side)


def rows_of(table: pa.Table) -> Counter:
    """Returns a table's rows as a multiset of tuples; the order of rows does not count, names of columns do not."""
    columns = [_comparable(table[name]) for name in table.column_names]
    return Counter(zip(*columns, strict=True))


def _comparable(column: pa.ChunkedArray) -> list:
    if pa.types.is_timestamp(column.type):
        # As microseconds: Python's datetimes have a smaller range, and compare by the wall clock within a zone.
        return column.cast(pa.timestamp("us", tz=column.type.tz)).cast(pa.int64()).to_pylist()
    if pa.types.is_nested(column.type):
        return [None if value is None else repr(value) for value in column.to_pylist()]
    return column.to_pylist()


def assert_same_rows(found: pa.Table, expected: pa.Table) -> None:
    """Raises AssertionError, with some rows that differ, unless both have the same columns and rows in any order."""
    assert found.column_names == expected.column_names
    found_rows, expected_rows = rows_of(found), rows_of(expected)
    extra, missing = found_rows - expected_rows, expected_rows - found_rows
    if extra or missing:
        raise AssertionError(
            f"{extra.total()} rows too many, such as {list(extra)[:3]}; "
            f"{missing.total()} missing, such as {list(missing)[:3]}; of {expected_rows.total()}"
        )

"""Checkpoints for other numbers of partitions and key groups: the query goes on as an undisturbed one."""

import shutil
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError, StateError
from spark_glue.plan.compat import _HERE, _REPARTITIONS
from spark_glue.state.checkpointfiles import CheckpointFiles
from spark_glue.state.stored import Checkpoint
from tests.support.spark_events import START_MS, TIME_ZONE, events
from tests.support.spark_streams import (
    MicroBatch,
    Recorder,
    Source,
    assert_replayed,
    await_batches,
    micro_batches,
    part,
    rows_of,
    start,
)

pytestmark = pytest.mark.skipif(_HERE < _REPARTITIONS, reason="Spark moves stored state from 4.3 on")

BASE = fw.key_by("k").event_time("ts").bad_rows("drop")
SLIDING = (
    BASE.window(fw.SlidingEventTimeWindows.of("2 min", "1 min"))
    .allowed_lateness("30 s")
    .side_output_late_data()
    .aggregate(n=fw.Count(), total=fw.Sum("v"), mean=fw.Mean("v"))
)
COUNTED = BASE.window(fw.TumblingEventTimeWindows.of("5 min")).trigger(fw.CountTrigger.of(7)).aggregate(n=fw.Count())
FEW = BASE.window(fw.TumblingEventTimeWindows.of("1 min")).aggregate(n=fw.Count())
BEFORE = [events(i, 120, start_ms=START_MS + i * 80_000, span_ms=80_000) for i in range(2)]
AFTER = [events(5 + i, 120, start_ms=START_MS + (2 + i) * 60_000, span_ms=90_000) for i in range(2)]
AFTER.append(events(9, 60, start_ms=START_MS, span_ms=150_000))
SHUFFLE = "spark.sql.shuffle.partitions"


@pytest.fixture
def partitions(spark):
    """Sets the number of shuffle partitions, for new checkpoints."""
    before = spark.conf.get(SHUFFLE)
    yield lambda number: spark.conf.set(SHUFFLE, number)
    spark.conf.set(SHUFFLE, before)


def run(spark, folder: Path, spec, source, recorder, naive: bool = False, **arguments) -> list[MicroBatch]:
    """Runs a query until all files that there are have been read; returns its micro-batches. naive: times have no zone."""
    arguments = {"watermark": "20 s", "key_groups": 6} | arguments
    rows = source.frame(spark)
    if naive:
        rows = rows.withColumn("ts", F.col("ts").cast("timestamp_ntz"))
    frame = spark_glue.apply(spec, rows, **arguments)
    if naive:
        frame = frame.withColumn("late", F.col("late").withField("ts", F.col("late.ts").cast("timestamp")))
    query = start(frame, folder, recorder, available_now=True)
    query.awaitTermination()
    return micro_batches(query, recorder)


def assert_same(spec, found: Recorder, expected: Recorder) -> None:
    for name in ("main", "late") if spec.late_output else ("main",):
        both = []
        for recorder in (found, expected):
            tables = [part(table, name) for table in recorder.tables.values()]
            both.append(rows_of(pa.concat_tables([table for table in tables if table.num_rows])))
        assert both[0] == both[1]
        assert both[1]


def rescaled(spark, tmp_path, spec, before: int, now: int, key_groups: int, partitions) -> None:
    """Runs a query, divides its checkpoint anew, goes on, and compares with one that was left alone."""
    long, short = tmp_path / "long", tmp_path / "short"
    undisturbed, recorder = Recorder(), Recorder()
    partitions(before)
    for folder in (long, short):
        folder.mkdir()
    source = Source(long, BEFORE[0].schema)
    source.put(*BEFORE, *AFTER)
    run(spark, long, spec, source, undisturbed)
    source = Source(short, BEFORE[0].schema)
    source.put(*BEFORE)
    run(spark, short, spec, source, recorder)
    old, after = short / "checkpoint", tmp_path / "after"
    new = after / "checkpoint"
    last = spark_glue.rescale(old, spec, new, partitions=now, key_groups=key_groups)
    assert last == max(recorder.tables) + 1 + (before != now)
    assert [path.name for path in after.iterdir()] == ["checkpoint"]
    shutil.rmtree(old)  # nothing of it is needed
    source.put(*AFTER)
    read = len(recorder.tables)
    run(spark, after, spec, source, recorder, key_groups=key_groups)
    assert min(list(recorder.tables)[read:]) == last + 1
    assert len({path.name for path in (new / "state" / "0").iterdir() if path.name.isdecimal()}) >= now
    assert_same(spec, recorder, undisturbed)


def assert_refused(folder: Path, last: int) -> None:
    """What cannot be rescaled is told of, and leaves nothing behind. last: the last micro-batch of the query."""
    old, other = folder / "checkpoint", folder / "other"
    with pytest.raises(SpecError, match=r"to: .* is there already; name a new folder"):
        spark_glue.rescale(str(old), SLIDING, str(folder / "input"), partitions=3)
    left = folder / "input.rescaling"
    left.mkdir()
    with pytest.raises(SpecError, match=r"to: .* is there already, and .*input\.rescaling beside it.*remove both"):
        spark_glue.rescale(str(old), SLIDING, str(folder / "input"), partitions=3)
    left.rmdir()
    with pytest.raises(StateError, match="rescale: the state was written for another spec"):
        spark_glue.rescale(str(old), FEW, str(other), partitions=3)
    commit = old / "commits" / str(last)
    commit.rename(old / "aside")  # as when a query is stopped in the middle of a micro-batch
    with pytest.raises(SpecError, match="was begun and not finished"):
        spark_glue.rescale(str(old), SLIDING, str(other), partitions=3)
    (old / "aside").rename(commit)
    copy = CheckpointFiles.copy_to

    def copies_half(self: CheckpointFiles, to: CheckpointFiles) -> None:
        copy(self, to)
        raise OSError("the disk is full")

    def refuses(self: CheckpointFiles, name: str = "") -> None:
        raise SpecError(f"to: {self.path} could not be removed")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CheckpointFiles, "copy_to", copies_half)
        with pytest.raises(OSError, match="the disk is full"):
            spark_glue.rescale(str(old), SLIDING, str(other), partitions=3)
    with pytest.MonkeyPatch.context() as patch:  # the error is told, and not what cannot be done behind it
        patch.setattr(CheckpointFiles, "copy_to", copies_half)
        patch.setattr(CheckpointFiles, "remove", refuses)
        with pytest.raises(OSError, match="the disk is full"):
            spark_glue.rescale(str(old), SLIDING, str(other), partitions=3)
    shutil.rmtree(folder / "other.rescaling")
    begun = old / "offsets" / str(last + 1)

    def copies_meanwhile(self: CheckpointFiles, to: CheckpointFiles) -> None:
        copy(self, to)
        shutil.copy(old / "offsets" / str(last), begun)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CheckpointFiles, "copy_to", copies_meanwhile)
        with pytest.raises(
            SpecError, match=f"the query runs: its last micro-batch was {last}, and .* to {last + 1} wh"
        ):
            spark_glue.rescale(str(old), SLIDING, str(other), partitions=3)
    begun.unlink()
    assert {path.name for path in folder.iterdir()} == {"input", "checkpoint"}


def test_a_query_goes_on_in_more_partitions_and_in_fewer(spark, tmp_path, partitions):
    """As a stream in this process, which nothing stops; with late rows, and other key groups each time."""
    partitions(2)
    folder, batches = tmp_path / "first", []
    folder.mkdir()
    source = Source(folder, BEFORE[0].schema)
    source.put(*BEFORE)
    batches += run(spark, folder, SLIDING, source, Recorder(), naive=True)
    assert_refused(folder, batches[-1].id)
    for name, now, key_groups, inputs in (("wider", 5, 7, AFTER[:1]), ("narrower", 3, 4, AFTER[1:])):
        after = tmp_path / name
        left = after / "checkpoint.rescaling" / "commits" / "99"  # of a call that was killed
        left.parent.mkdir(parents=True)
        left.write_text("v1")
        link = tmp_path / f"to-{folder.name}"  # Spark's own records have the path behind it
        link.symlink_to(folder)
        last = spark_glue.rescale(
            str(link / "checkpoint"), SLIDING, str(after / "checkpoint"), partitions=now, key_groups=key_groups
        )
        records = list((after / "checkpoint").glob("state/*/_metadata/v2/[0-9]*"))
        assert records and not [path for path in records if f"{folder}/" in path.read_text()]
        assert last == batches[-1].id + 2
        assert Checkpoint(str(after / "checkpoint"), 0, "this").time_zone == TIME_ZONE
        assert [path.name for path in after.iterdir()] == ["checkpoint"]
        assert not (after / "checkpoint" / "checkpoint").exists()
        shutil.rmtree(folder / "checkpoint")  # nothing of it is needed
        source.put(*inputs)
        batches += run(spark, after, SLIDING, source, Recorder(), naive=True, key_groups=key_groups)
        written = (after / "checkpoint" / "state" / "0").glob(f"*/{batches[-1].id + 1}_*.changelog")
        assert {path.parent.name for path in written} == {str(number) for number in range(now)}
        folder = after
    assert_replayed(SLIDING, [*BEFORE, *AFTER], batches)
    assert sum(part(batch.rows, "late").num_rows for batch in batches[-3:]) > 10
    without_sink = CheckpointFiles(spark, str(folder / "checkpoint")).without_sink()
    assert without_sink == set(range(batches[-1].id + 1)) - {batch.id for batch in batches}
    assert len(without_sink) == 4


def test_arguments(spark, tmp_path):
    with pytest.raises(SpecError, match="spec: must be what apply was given"):
        spark_glue.rescale(str(tmp_path), None, "new", partitions=2)
    with pytest.raises(SpecError, match="partitions: must be a number from 1 on, got 0"):
        spark_glue.rescale(str(tmp_path), FEW, "new", partitions=0)
    for checkpoint in (7, "", None):
        with pytest.raises(SpecError, match="checkpoint: must be a checkpoint's path or a StreamingQuery, got "):
            spark_glue.rescale(checkpoint, FEW, "new", partitions=2)
    for to in (7, "", None):
        with pytest.raises(SpecError, match="to: must name a folder, got "):
            spark_glue.rescale(tmp_path, FEW, to, partitions=2)
    query = Source(tmp_path, BEFORE[0].schema).frame(spark).writeStream.format("noop")
    query = query.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    for running in (query, tmp_path / "checkpoint", f"file://{tmp_path}/checkpoint/"):
        with pytest.raises(SpecError, match="checkpoint: the query runs; stop it first"):
            spark_glue.rescale(running, FEW, tmp_path / "new", partitions=2)
        with pytest.raises(SpecError, match="checkpoint: the query runs; stop it first"):
            spark_glue.export_state(running, FEW, tmp_path / "new")
    query.stop()
    for checkpoint in (query, tmp_path / "checkpoint"):
        with pytest.raises(SpecError, match=r"rescale: .*checkpoint has no state that can be read"):
            spark_glue.rescale(checkpoint, FEW, tmp_path / "new", partitions=2)
    with pytest.raises(SpecError, match=r"to: Spark cannot divide .* whose path has ' ', '%', got file:/.*/a new%"):
        spark_glue.rescale(str(tmp_path), FEW, "a new%", partitions=2)


@pytest.mark.long
@pytest.mark.parametrize(
    ("spec", "before", "now", "key_groups"),
    [(SLIDING, 2, 5, 7), (SLIDING, 5, 2, 6), (COUNTED, 2, 3, 6), (COUNTED, 5, 2, 4), (SLIDING, 2, 2, 9)],
)
def test_a_query_goes_on_in_other_parts(spark, tmp_path, partitions, spec, before, now, key_groups):
    rescaled(spark, tmp_path, spec, before, now, key_groups, partitions)


@pytest.mark.long
def test_state_that_is_cut_on_its_way(spark, tmp_path, partitions):
    """There is a part of state for each key group, and here these are longer than a row that travels."""
    keys = np.random.default_rng(0).integers(0, 2**62, 40_000).tolist()
    times = pa.array([START_MS * 1_000] * len(keys), pa.timestamp("us", "UTC"))
    rows = pa.table({"k": keys, "ts": times})
    closing = rows.slice(0, 1).set_column(1, "ts", pa.array([times[0].value + 9_000_000_000], times.type))
    source, recorder = Source(tmp_path, rows.schema), Recorder()
    source.put(rows)
    partitions(2)
    run(spark, tmp_path, FEW, source, recorder, key_groups=2, watermark="1 hour")
    after = tmp_path / "after"
    spark_glue.rescale(tmp_path / "checkpoint", FEW, after / "checkpoint", partitions=3, key_groups=3)
    source.put(rows, closing)
    run(spark, after, FEW, source, recorder, key_groups=3, watermark="1 hour")
    found = pa.concat_tables(recorder.tables.values())
    assert found.num_rows == len(keys)
    assert dict(zip(found["k"].to_pylist(), found["n"].to_pylist(), strict=True)) == dict.fromkeys(keys, 2)


@pytest.mark.long
def test_a_watermark_of_its_own_goes_along(spark, tmp_path, partitions):
    """With idle=, each share makes the watermark itself: those that are new have to know what the others do."""
    long, short, after = (tmp_path / name for name in ("long", "short", "after"))
    found, expected = Recorder(), Recorder()
    partitions(2)
    for folder, tables, recorder in ((long, [*BEFORE, *AFTER], expected), (short, BEFORE, found)):
        folder.mkdir()
        source = Source(folder, BEFORE[0].schema)
        source.put(*tables)
        until_read(spark, folder, source, recorder)
    assert_finished_once(spark, short, source, found)
    last = spark_glue.rescale(str(short / "checkpoint"), SLIDING, str(after / "checkpoint"), partitions=5)
    source.put(*AFTER)
    until_read(spark, after, source, found)
    assert last + 1 in found.tables
    assert_same(SLIDING, found, expected)


def assert_finished_once(spark, folder: Path, source, recorder) -> None:
    """What was begun and not finished is told of, with the trigger that ends when it is."""
    log, other = folder / "checkpoint" / "commits", str(folder / "other")
    last = max(int(path.name) for path in log.iterdir() if path.name.isdecimal())
    for path in (log / f"{last}", log / f".{last}.crc"):
        path.unlink()
    with pytest.raises(SpecError, match=rf"micro-batch {last} was begun and not finished.*\.trigger\(once=True\)"):
        spark_glue.rescale(str(folder / "checkpoint"), SLIDING, other, partitions=5)
    frame = spark_glue.apply(SLIDING, source.frame(spark), watermark="20 s", key_groups=6, idle="1 hour")
    writer = frame.writeStream.option("checkpointLocation", str(folder / "checkpoint")).trigger(once=True)
    writer.foreachBatch(spark_glue.route(main=lambda frame, batch: None)).start().awaitTermination()
    assert (log / f"{last}").exists() and not (log / f"{last + 1}").exists()


def until_read(spark, folder: Path, source, recorder) -> None:
    """Runs a query with idle=, which has no end, until all is read and the watermark has followed."""
    frame = spark_glue.apply(SLIDING, source.frame(spark), watermark="20 s", key_groups=6, idle="1 hour")
    query = start(frame, folder, recorder)
    try:
        log, until = folder / "checkpoint" / "sources" / "0" / str(source.count - 1), time.monotonic() + 120
        while not log.exists() and time.monotonic() < until:
            time.sleep(0.1)
        batches = len(recorder.tables)
        await_batches(recorder, query, batches + 4)
    finally:
        query.stop()
    offsets, commits = (
        max(int(one.name) for one in (folder / "checkpoint" / log).iterdir() if one.name.isdecimal())
        for log in ("offsets", "commits")
    )
    if offsets != commits:  # a micro-batch without rows was stopped in the middle
        (folder / "checkpoint" / "offsets" / str(offsets)).unlink()

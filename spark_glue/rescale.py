"""``rescale``: the checkpoint of a stopped query, for another number of partitions and of key groups."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

import fastwin as fw
from fastwin.errors import SpecError, StateError
from fastwin.state.chunks import owner
from fastwin.state.identity import StateSpec
from spark_glue.plan.compat import check_repartitions, repartition_offline, spark_struct_of
from spark_glue.plan.frameplan import FramePlan
from spark_glue.plan.keygroups import RECORD_ID, check_key_groups, ids
from spark_glue.stages.history import INITIAL
from spark_glue.stages.rescaling import Divided, RescalingProcessor, divided_anew
from spark_glue.state.checkpointfiles import CheckpointFiles, LogEntry
from spark_glue.state.cutparts import STATE
from spark_glue.state.stored import UNVISITED, Checkpoint, escaped_in, plan_of, stopped_checkpoint
from spark_glue.state.variables import inputs_of

__all__ = ["rescale"]

_LOG = logging.getLogger(__name__)
_PARTITIONS = "spark.sql.shuffle.partitions"
_MARK, _NEXT_MARK = "batchWatermarkMs", "nextBatchWatermarkMs"
_ASIDE = "rescaling"
_UNREAD = "-"  # in Spark's log: nothing has been read of a source


def rescale(
    checkpoint: str | Path | StreamingQuery,
    spec: fw.WindowSpec | fw.JoinSpec,
    to: str | Path,
    partitions: int,
    key_groups: int | None = None,
) -> int:
    """Writes the checkpoint of a stopped query anew, for another number of shuffle partitions and of key groups.

    checkpoint: the folder that the query was given as ``checkpointLocation``, or the query itself; it is only read.
    spec: that of ``apply``. to: a folder that is not there yet; the query that is given it goes on where the other one
    has stopped: with the next rows of its inputs, the same windows and watermark, and the next numbers of
    micro-batches. partitions: how many shuffle partitions it has then; it needs no setting for that. key_groups: as in
    ``apply``, which is to be given the same number; None: as many as before.

    Takes Spark 4.3 or newer, whose own repartitioning of state comes first, and a query with this one stateful operator
    whose last micro-batch was finished. The whole checkpoint is copied, and one micro-batch is run without rows.
    Returns its number, the last one in the new checkpoint. The folder appears when all is done; it cannot be moved. If
    this fails, nothing is there, but for what could not be removed, which the log names.

    Raises SpecError for what does not fit, StateError for state of another spec.
    """
    if not isinstance(spec, fw.WindowSpec | fw.JoinSpec):
        raise SpecError(f"spec: must be what apply was given, a WindowSpec or a JoinSpec, got {type(spec).__name__}")
    if isinstance(partitions, bool) or not isinstance(partitions, int) or partitions < 1:
        raise SpecError(f"partitions: must be a number from 1 on, got {partitions!r}")
    if not isinstance(to, str | Path) or not str(to):
        raise SpecError(f"to: must name a folder, got {to!r}")
    folder = stopped_checkpoint(checkpoint)
    stored = Checkpoint(folder, 0, "rescale")
    check_repartitions(stored.spark)
    old, target = CheckpointFiles(stored.spark, folder), CheckpointFiles(stored.spark, str(to))
    if found := escaped_in(target.path):
        raise SpecError(f"to: Spark cannot divide state in a folder whose path has {found}, got {target.path}")
    new = CheckpointFiles(stored.spark, f"{target.path}.{_ASIDE}")
    if target.exists():
        if new.exists():
            raise SpecError(
                f"to: {to} is there already, and {new.path} beside it: unless another call is at work, one was killed "
                f"while it renamed, and neither is whole; remove both"
            )
        raise SpecError(f"to: {to} is there already; name a new folder")
    delta = stored.a_delta
    if delta is None:
        raise SpecError("rescale: the checkpoint has no state: a new checkpoint will do")
    if stored.is_small:
        raise SpecError(
            "rescale: the query has small_state=True, which is not moved; export_state, and a new checkpoint with "
            "history= and without small_state=, work here"
        )
    if stored.operators != 1:
        raise SpecError(f"rescale: the query has {stored.operators} stateful operators, and one can be divided anew")
    last = _last_batch(stored, old)
    head = next(iter(stored.heads.values()))
    groups = head.key_groups if key_groups is None else check_key_groups(key_groups)
    before, now = Divided(head.key_groups, head.shares), Divided(groups, min(groups, partitions))
    plan, progress = plan_of(spec, delta), stored.progress()
    assert isinstance(plan.spec, fw.WindowSpec)
    frame_plan = FramePlan(
        plan.spec,
        plan.input_schema,
        plan.spec.time_column,
        stored.time_zone,
        before.key_groups,
        streaming=True,
        carrier=False,
        max_future_skew_ms=None,
        coalesce=True,
        start_ms=None if progress is None else progress.watermark,
    )
    if frame_plan.plan.fingerprint != owner(delta):
        raise StateError(f"rescale: the state was written for another spec; {UNVISITED}")
    clocks = stored.clocks
    if clocks is not None:
        frame_plan = replace(frame_plan, idle_ms=1, delays=(0,) * inputs_of(clocks))
    rows = _rows(stored, spec, plan.config.state, before, now)
    _LOG.info(
        "rescale: %s is divided anew: %d key groups in %d shares become %d in %d",
        old.path, before.key_groups, before.shares, now.key_groups, now.shares,
    )  # fmt: skip
    if new.exists():
        _LOG.warning("rescale: %s is left of a call that has not ended, and is removed", new.path)
        new.remove()
    try:
        old.copy_to(new)
        _check_stopped(last, old, new)
        was = int(old.entry("offsets", last).metadata["conf"][_PARTITIONS])
        if partitions != was:
            repartition_offline(stored.spark, new.path, partitions)
        processor = RescalingProcessor(frame_plan, stored.time_mode, before, now, clocks)
        number = _run(new, rows, processor, stored.time_mode)
        new.add_without_sink(range(last + 1, number + 1))
        new.rename_to(target)
        _LOG.info("rescale: %s is ready; its state was stored by micro-batch %d", to, number)
    except BaseException:
        new.discard()
        raise
    new.remove()  # where a rename is a copy
    return number


def _last_batch(stored: Checkpoint, files: CheckpointFiles) -> int:
    last = stored.last_batch()
    version = files.entry("offsets", last).version
    if version != "v1":
        raise SpecError(
            f"rescale: Spark's log of offsets has version {version!r}, as with sources that have names, and 'v1' is "
            f"needed; export_state, and a new checkpoint with history=, work here"
        )
    return last


def _check_stopped(last: int, *checkpoints: CheckpointFiles) -> None:
    """Raises SpecError unless micro-batch ``last`` is the last one of a checkpoint and of its copy."""
    found = max(files.last(log) for files in checkpoints for log in ("offsets", "commits"))
    if found != last:
        raise SpecError(
            f"checkpoint: the query runs: its last micro-batch was {last}, and it has got to {found} while its "
            f"checkpoint was copied; stop it first"
        )


def _rows(
    stored: Checkpoint, spec: fw.WindowSpec | fw.JoinSpec, types: StateSpec, before: Divided, now: Divided
) -> DataFrame:
    """Returns all state in its new parts, and a row more for each share, old or new."""
    heads = stored.heads
    struct = spark_struct_of(INITIAL)

    def divided(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return divided_anew(spec, types, heads, now, batches)

    visited = [RECORD_ID, *ids(max(before.shares, now.shares)).tolist()]
    visits = stored.spark.createDataFrame([(place, *[None] * len(STATE)) for place in visited], struct)
    return stored.pieces().mapInArrow(divided, struct).unionAll(visits)


def _run(files: CheckpointFiles, rows: DataFrame, processor: RescalingProcessor, mode: str) -> int:
    """Runs the micro-batch that stores the state in its new parts; returns its number.

    Meanwhile the log says that the query has one source, of which nothing was read, and no watermark: so no timer
    expires, and the micro-batch reads the rows. Then the log gets back what it had.
    """
    last = files.last("offsets")
    kept = {
        (log, batch): files.entry(log, batch)
        for log in ("offsets", "commits")
        for batch in range(max(0, last - 1), last + 1)
        if files.has(log, batch)
    }
    offsets, commit = kept["offsets", last], kept["commits", last]
    for (log, batch), entry in kept.items():
        files.write(log, batch, _blank(log, entry))
    files.move("sources", f"{_ASIDE}/sources")
    spark = rows.sparkSession
    folder = f"{files.path}/{_ASIDE}/rows"
    rows.write.parquet(folder)
    frame = spark.readStream.schema(rows.schema).parquet(folder)
    if mode == "EventTime":
        frame = frame.withColumn("carrier", F.lit(None).cast("timestamp")).withWatermark("carrier", "0 seconds")
    done = frame.groupBy("key_group").transformWithStateInPandas(processor, "done int", "append", mode)
    writer = done.writeStream.outputMode("append").option("checkpointLocation", files.path)
    writer.trigger(once=True).format("noop").start().awaitTermination()
    number = last + 1
    if files.last("commits") != number:
        raise StateError(f"rescale: micro-batch {number} was not committed")
    told = files.entry("offsets", number).metadata | {_MARK: offsets.metadata[_MARK]}
    files.write("offsets", number, replace(offsets, metadata=told))
    told = files.entry("commits", number).metadata | {_NEXT_MARK: commit.metadata[_NEXT_MARK]}
    files.write("commits", number, replace(commit, metadata=told))
    for (log, batch), entry in kept.items():
        files.write(log, batch, entry)
    files.remove("sources")
    files.move(f"{_ASIDE}/sources", "sources")
    files.remove(_ASIDE)
    return number


def _blank(log: str, entry: LogEntry) -> LogEntry:
    if log == "offsets":
        return replace(entry, metadata=entry.metadata | {_MARK: 0}, sources=(_UNREAD,))
    return replace(entry, metadata=entry.metadata | {_NEXT_MARK: 0})

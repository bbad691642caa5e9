"""History: what a query starts from, instead of from nothing. Rows of the past, or what another query has saved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fastwin.columns.checking import Limits, check_rows
from fastwin.errors import SpecError
from fastwin.run.replica import Replica, open_replica
from fastwin.state.identity import StateSpec
from spark_glue.plan.catalyst import quoted
from spark_glue.plan.compat import applied_to_groups, spark_struct_of
from spark_glue.plan.eventtimes import newest_time
from spark_glue.plan.frameplan import FramePlan
from spark_glue.plan.keygroups import ids, number_of
from spark_glue.stages.feeding import partials_in, rows_in
from spark_glue.stages.pack import pack_frame
from spark_glue.stages.packets import PACKED, Packet, packets_in
from spark_glue.stages.worker import settle, shares_of
from spark_glue.state.cutparts import STATE, Pieces, cut
from spark_glue.state.savepoint import STATE_FOLDER, Savepoint, local_folder, spark_path

__all__ = ["INITIAL", "begun_from", "gathered_stream", "watermark_after"]

INITIAL = pa.schema([PACKED.field("key_group"), *STATE])
"""A part of state, and the id of the share that it goes to. Without a part: the share begins with the watermark."""


def watermark_after(history: DataFrame, frame_plan: FramePlan, delay_ms: int) -> int | None:
    """Returns the watermark behind a batch frame of history, ms; None: it has no good rows. Runs a job."""
    assert frame_plan.time_column is not None
    limits = frame_plan.plan.limits(Limits())  # as for the rows themselves: calendars have fewer years
    if limits.gap is None:
        newest = newest_time(history, frame_plan.time_column, limits.unit)
    else:
        names = frame_plan.packed_schema.names
        columns = history.select(*(F.col(quoted(name)).alias(f"c{i}") for i, name in enumerate(names)))
        found = columns.mapInArrow(partial(_newest_in, frame_plan), "newest long").agg(F.max("newest")).first()
        newest = None if found is None else found[0]
    return None if newest is None else newest - delay_ms - 1


def _newest_in(frame_plan: FramePlan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields the newest time of the good rows of each batch, ms. Spark cannot tell which gaps are none."""
    settle()
    limits = frame_plan.plan.limits(Limits())
    for batch in batches:
        if batch.num_rows:
            (rows,) = frame_plan.input_rows([frame_plan.packed_rows(batch.columns)])
            times, reasons = check_rows(rows, frame_plan.spec.time_column, "drop", limits)
            good = times if reasons is None else times[reasons == 0]
            newest = int(good.max()) if len(good) else None
            yield pa.RecordBatch.from_pydict({"newest": pa.array([newest], pa.int64())})


def begun_from(
    spark: SparkSession,
    history: str | Path | DataFrame,
    frame_plan: FramePlan,
    replan: Callable[[DataFrame], FramePlan],
    delay_ms: int,
) -> tuple[FramePlan, DataFrame | None]:
    """Returns the plan of a stream that starts from history, and its state as rows of INITIAL; None: there is none.

    history: what ``export_state`` has written, or a batch frame. replan: plans the spec for another frame. delay_ms: of
    the watermark. Raises SpecError for history that does not fit.
    """
    if isinstance(history, DataFrame):
        rows = _as_in_stream(history, frame_plan)
        return _begun_from_rows(rows, frame_plan, _replanned(replan, rows), delay_ms)
    place = local_folder(history)
    if place is None:
        raise SpecError(
            f"history: must be a folder that this process and the executors can read by one path, such as "
            f"'/mnt/shared/saved', got {str(history)!r}"
        )
    saved = Savepoint.read(str(place))
    if saved.fingerprint != frame_plan.plan.fingerprint.hex():
        raise SpecError(f"history: {history} was saved by another spec, or of other columns; both must be the same")
    now = frame_plan.plan.config.state
    told = [] if saved.types is None else now.other_types(StateSpec.from_json(saved.types))
    if told:
        raise SpecError(
            f"history: {history} was saved with other types than the stream has now ({'; '.join(told)}); cast the "
            f"stream's columns to the first of the two"
        )
    zones = saved.time_zone, frame_plan.time_zone
    if None not in zones and len(set(zones)) > 1:
        raise SpecError(
            f"event_time: its column has no time zone, {history} was saved where times are read in {zones[0]!r}, and "
            f"spark.sql.session.timeZone is {zones[1]!r} now; set it to {zones[0]!r}"
        )
    saved.check_whole(place)
    frame_plan = replace(frame_plan, start_ms=saved.watermark)
    # Whatever the session says: a file that is passed over would be state that is lost without a word.
    reader = spark.read.options(ignoreCorruptFiles=False, ignoreMissingFiles=False)
    state = reader.schema(spark_struct_of(STATE)).parquet(spark_path(place / STATE_FOLDER))
    if saved.key_groups != frame_plan.key_groups:
        state = state.mapInArrow(partial(_divided_anew, frame_plan), spark_struct_of(STATE))
    return frame_plan, _sent_to_shares(spark, frame_plan, state)


def _as_in_stream(history: DataFrame, frame_plan: FramePlan) -> DataFrame:
    """Returns those columns of history that the stream's plan reads, in the stream's order; all if one is missing."""
    read = set(frame_plan.packed_schema.names)
    names = [name for name in frame_plan.schema.names if name in read]
    return history.select(*map(quoted, names)) if read <= set(history.columns) else history


def _replanned(replan: Callable[[DataFrame], FramePlan], history: DataFrame) -> FramePlan:
    try:
        return replan(history)
    except SpecError as problem:  # the same of the stream would have been told before
        raise SpecError(f"history: {problem}") from problem


def _differences(past: FramePlan, frame_plan: FramePlan) -> str:
    """Returns which columns are of another type in history than in the stream, or in one of them alone, in words."""
    here, there = ({one.name: one.type for one in plan.packed_schema} for plan in (past, frame_plan))
    return ", ".join(
        f"{name!r} is {here.get(name, 'not there')} (in the stream {there.get(name, 'not there')})"
        for name in here | there
        if here.get(name) != there.get(name)
    )


def _begun_from_rows(
    history: DataFrame, frame_plan: FramePlan, past: FramePlan, delay_ms: int
) -> tuple[FramePlan, DataFrame | None]:
    if past.plan.fingerprint != frame_plan.plan.fingerprint or not past.plan.input_schema.equals(
        frame_plan.plan.input_schema
    ):
        told = _differences(past, frame_plan) or "those that are read differ"
        raise SpecError(f"history: its columns have other names or types than those of the stream: {told}")
    until = watermark_after(history, past, delay_ms)
    if until is None:
        return frame_plan, None
    packed = pack_frame(history, past)
    state = applied_to_groups(packed, "key_group", partial(_state_of_group, past, until), spark_struct_of(STATE))
    frame_plan = replace(frame_plan, start_ms=until)
    return frame_plan, _sent_to_shares(history.sparkSession, frame_plan, state)


def _sent_to_shares(spark: SparkSession, frame_plan: FramePlan, state: DataFrame) -> DataFrame:
    """Returns rows of STATE as rows of INITIAL, and one for each share, so that all begin with the watermark.

    Those without state need it, too: windows of theirs have fired, and Spark's own watermark may be behind for long.
    """
    struct, key_groups = spark_struct_of(INITIAL), frame_plan.key_groups
    sent = state.mapInArrow(partial(_sent, key_groups), struct)
    if frame_plan.start_ms is None or frame_plan.start_ms <= 0:
        return sent
    visits = spark.range(0, 1, 1, 1).mapInArrow(partial(_visits, key_groups), struct)
    return sent.unionAll(visits)


def gathered_stream(frame_plan: FramePlan, parts: list[bytes]) -> Replica:
    """Returns a stream with the state of parts."""
    stream = open_replica(frame_plan.plan)
    stream.gather(parts)
    return stream


def _state_of_group(frame_plan: FramePlan, until: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs the rows of a key group as one micro-batch, up to a watermark; what fires is not looked at here."""
    settle()
    packets: list[Packet] = []
    groups: set[int] = set()
    for batch in batches:
        packets += packets_in(batch)
        groups.update(batch["key_group"].unique().to_pylist())
    packets.sort()
    partials, rows = partials_in(packets, frame_plan), rows_in(packets, frame_plan.plan.input_schema)
    if not partials and not rows.num_rows:
        return
    (group,) = groups
    stream = open_replica(frame_plan.plan)
    stream.advance_processing_time(frame_plan.started_ms)
    if partials:
        stream.merge(partials)
    else:
        stream.process(rows)
    stream.advance_watermark(until)
    stream.snapshot()
    yield from cut((number_of(group), part) for _, part in stream.parts(1))


def _divided_anew(frame_plan: FramePlan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    pieces = Pieces()
    for batch in batches:
        for _, part in pieces.joined(zip(*(column.to_pylist() for column in batch.columns), strict=True)):
            yield from cut(gathered_stream(frame_plan, [part]).parts(frame_plan.key_groups))
    pieces.check_whole()


def _sent(key_groups: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Says for each part to which share it goes."""
    shares = shares_of(key_groups)
    to = ids(shares)
    for batch in batches:
        whose = pa.array([int(to[group % shares]) for group in batch["part_of"].to_pylist()], pa.int32())
        yield pa.RecordBatch.from_arrays([whose, *batch.columns], schema=INITIAL)


def _visits(key_groups: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Gives each share a row without a part, for the one row that comes."""
    for batch in batches:
        for _ in range(batch.num_rows):
            yield pa.RecordBatch.from_pylist([{"key_group": int(one)} for one in ids(shares_of(key_groups))], INITIAL)

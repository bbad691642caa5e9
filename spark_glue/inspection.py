"""``why`` and ``inspect``: what the stored state of a query, running or stopped, says of its windows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import fastwin as fw
from fastwin.errors import SpecError, StateError
from fastwin.run.replica import open_replica
from fastwin.run.why.answer import key_columns, time_text_for
from fastwin.windows.timetext import TimeText
from spark_glue.health.pastmarks import PastMarks, records_of
from spark_glue.plan.compat import arrow_schema_of, spark_struct_of
from spark_glue.plan.frameplan import LOCAL_MS
from spark_glue.plan.keygroups import number_of
from spark_glue.plan.settings import is_case_sensitive
from spark_glue.plan.types import conform
from spark_glue.state.stored import Checkpoint, Progress, checkpoint_of, plan_of, replica_of, shares_in, types_of

__all__ = ["inspect", "key_fields", "why"]

_COUNTED = (
    "Late rows are counted in the query's progress, as dropped or late; which ones they were is not stored.",
    "With side_output_late_data() they come out in the column late: ask with the key and the time of one.",
)


def why(
    checkpoint: str | Path | StreamingQuery,
    spec: fw.WindowSpec | fw.JoinSpec,
    *,
    key: Any = ...,
    at: Any = None,
    window: Any = None,
    operator: int = 0,
) -> fw.WhyReport:
    """Says why the windows of a key have fired or have not, from a query's stored state; see ``Stream.why``.

    checkpoint: the folder that the query was given as ``checkpointLocation``, or the query itself. It may run: then the
    answer is that of the last micro-batch that was committed. spec: that of ``apply``. key, at, window: as in
    ``Stream.why``; times without a zone are of the session's time zone. operator: which of the query's stateful
    operators, as Spark counts them.

    The checkpoint is only read, and of the state the share of that key alone reaches the driver. Raises SpecError where
    there is nothing to read, StateError for state of another spec.
    """
    _check_spec(spec)
    stored = Checkpoint(checkpoint_of(checkpoint), operator, "why")
    delta = stored.a_delta
    if delta is None:
        raise SpecError("why: the checkpoint has no state: no good row has come yet, or all windows are gone")
    plan = _planned(spec, delta, "why")
    time_text = _time_text(plan, stored.spark)
    group = stored.group_of(plan, key_columns(plan, key))
    logs = [deltas for _, deltas in stored.shares([group]) if deltas]
    stream = replica_of(spec, logs[0], "why") if logs else open_replica(plan)
    progress = stored.progress()
    known = None if progress is None or stored.operators > 1 else progress.watermark
    said = _said(time_text, progress, stream.watermark, stored.operators)
    watermark = fw.MIN_TIMESTAMP if known is None else known
    report = stream.why_as_of(said, key, at, window, watermark=watermark, time_text=time_text)
    assigner = plan.spec.assigner
    if stored.operators > 1 or assigner is None or not assigner.is_event_time():
        return replace(report, rows=(*report.rows, *_COUNTED))
    past = PastMarks(stored.marks(), records_of(checkpoint), time_text, plan.spec)
    windows = tuple(replace(one, sentences=(*one.sentences, *past.of_window(one))) for one in report.windows)
    return replace(report, windows=windows, rows=(*report.rows, *past.of_rows(), *_COUNTED))


def inspect(
    checkpoint: str | Path | StreamingQuery,
    spec: fw.WindowSpec | fw.JoinSpec,
    *,
    keys: Sequence[Any] | None = None,
    shares: Iterable[int] | None = None,
    operator: int = 0,
) -> DataFrame:
    """Returns the windows in a query's stored state as a frame: a row for each key and window.

    checkpoint, spec, operator: as in ``why``. keys: only the shares of these keys are read, which may hold others as
    well. shares: only the shares of these numbers, counted from 0, among all or those of the keys. None: all.

    The columns are those of ``Stream.inspect``, and ``share``. The state is read by Spark's tasks, a share at a time,
    when the frame is: filter it and write it as any other. A task holds one share, as the query does; so big states go
    share by share, with ``shares=range(0, 8)`` and so on. Of a running query read it soon: a batch's
    state is kept as long as Spark keeps the last ones (``spark.sql.streaming.minBatchesToRetain``). Raises as ``why``
    does.
    """
    _check_spec(spec)
    stored = Checkpoint(checkpoint_of(checkpoint), operator, "inspect")
    delta = stored.a_delta
    if delta is None:
        raise SpecError("inspect: the checkpoint has no state: no good row has come yet, or all windows are gone")
    plan, groups = _planned(spec, delta, "inspect"), None
    if keys is not None:
        if isinstance(keys, str | bytes):
            raise SpecError(f"keys: must be a list of keys, got {keys!r}")
        groups = {stored.group_of(plan, key_columns(plan, key)) for key in keys}
    if shares is not None:
        wanted = _numbers(shares)
        groups = {group for group in (stored.heads if groups is None else groups) if number_of(group) in wanted}
    if groups is not None and (own := stored.delta_of(groups)) is not None:
        plan = _planned(spec, own, "inspect")  # other shares may have other types
    empty = open_replica(plan).inspect().schema
    plain = str if is_case_sensitive(stored.spark) else str.lower
    for name in empty.names:
        if plain(name) == "share":
            raise SpecError(f"inspect: the frame has a column 'share'; rename the key or the aggregate {name!r}")
    struct = spark_struct_of(empty.append(pa.field("share", pa.int32())))
    heads = {group: head for group, head in stored.heads.items() if groups is None or group in groups}
    schema, types = arrow_schema_of(struct), plan.config.state

    def looked_at(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in zip(*map(_values, batch.columns), strict=True))
        for share, deltas in shares_in(rows, heads):
            if deltas:
                stream = replica_of(spec, deltas, "inspect")
                types_of(stream, types, "inspect")
                found = stream.inspect()
                table = found.append_column("share", pa.array([share] * found.num_rows, pa.int32()))
                columns = [conform(column, field.type) for column, field in zip(table.columns, schema, strict=True)]
                yield from pa.Table.from_arrays(columns, schema=schema).to_batches()

    return stored.pieces(groups).mapInArrow(looked_at, struct)


def _numbers(shares: Any) -> set[int]:
    found = set(shares) if isinstance(shares, Iterable) else {shares}
    if not all(isinstance(one, int) and not isinstance(one, bool) and one >= 0 for one in found):
        raise SpecError(f"shares: must be numbers of shares, such as range(0, 8), got {shares!r}")
    return found


def key_fields(
    checkpoint: str | Path | StreamingQuery, spec: fw.WindowSpec | fw.JoinSpec, operator: int = 0
) -> list[pa.Field]:
    """Returns the key columns of stored state. Raises as ``why`` does."""
    delta = Checkpoint(checkpoint_of(checkpoint), operator, "why").a_delta
    if delta is None:
        raise SpecError("why: the checkpoint has no state: no good row has come yet, or all windows are gone")
    return _planned(spec, delta, "why").config.codec.out_fields


def _values(column: pa.Array) -> list[Any]:
    return column.to_pylist()


def _check_spec(spec: Any) -> None:
    if not isinstance(spec, fw.WindowSpec | fw.JoinSpec):
        raise SpecError(
            f"spec: must be what apply was given, a WindowSpec or a JoinSpec as built from fastwin.key_by(...), got "
            f"{type(spec).__name__}"
        )


def _planned(spec: fw.WindowSpec | fw.JoinSpec, delta: bytes, call: str) -> fw.Plan:
    try:
        return plan_of(spec, delta)
    except SpecError as problem:
        raise StateError(f"{call}: the state was written for another spec: {problem}") from problem


def _time_text(plan: fw.Plan, spark: SparkSession) -> TimeText:
    """Returns how times are shown: as Spark shows them, in the session's zone, where the spec names none."""
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    zone = "UTC" if zone == "Etc/UTC" else zone
    if plan.spec.time_column == LOCAL_MS:
        return TimeText(zone)
    found = time_text_for(plan)
    plain = found.unit is None and found.zone == "UTC"
    return replace(found, zone=zone) if plain else found


def _said(time_text: TimeText, progress: Progress | None, share: int, operators: int) -> tuple[str, ...]:
    """Returns what is to be said of the watermark. share: that of the key's share, when it was visited last."""
    if progress is None:
        return ("No micro-batch has been committed yet.",)
    said = [f"This is the state after micro-batch {progress.batch:,}, the last one that was committed."]
    if progress.watermark is None:
        said.append("It had no watermark yet: Spark's watermark of a batch is made of the batches before it.")
    else:
        said.append(f"Its watermark was at {time_text.text(progress.watermark)}.")
    if progress.next_watermark is not None and progress.next_watermark != progress.watermark:
        said.append(f"The next micro-batch will have the watermark {time_text.text(progress.next_watermark)}.")
    if operators > 1 and share > fw.MIN_TIMESTAMP:
        said.append(
            f"The query has {operators} stateful operators. This one had the watermark {time_text.text(share)} when "
            f"the key's share was visited last."
        )
    return tuple(said)

"""``apply``: a window specification over a Spark frame, batch or streaming."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, Observation

import fastwin as fw
from fastwin.state.identity import Migrate
from fastwin.times import Duration
from spark_glue.arguments import (
    Given,
    check_history,
    check_join,
    check_small,
    check_windows,
    warn_of_dates,
    warn_of_quiet,
)
from spark_glue.plan.chaining import check_chain, with_window_time
from spark_glue.plan.frameplan import FramePlan, plan_frame
from spark_glue.plan.outputs import output_for
from spark_glue.plan.settings import is_case_sensitive
from spark_glue.sources.parquetfiles import ParquetFiles
from spark_glue.stages.history import begun_from, watermark_after
from spark_glue.stages.joined import prepare_join
from spark_glue.stages.pack import pack_frame
from spark_glue.stages.running import Prepared, run

__all__ = ["apply"]


def apply(
    spec: fw.WindowSpec | fw.JoinSpec,
    df: DataFrame | ParquetFiles | tuple[DataFrame, DataFrame],
    watermark: Duration | tuple[Duration, Duration] | None = None,
    key_groups: int | None = None,
    max_future_skew: Duration | None = "1 day",
    coalesce: bool | None = None,
    name: str | Observation = "fastwin",
    chain: bool = False,
    migrate: Migrate = None,
    idle: Duration | None = None,
    history: str | Path | DataFrame | None = None,
    goes_on: bool = False,
    small_state: bool = False,
) -> DataFrame:
    """Windows a Spark frame as the specification says; returns a frame, streaming if ``df`` is.

    spec: as built from ``fastwin.key_by``, or a join: then df is a pair of frames, and watermark a pair of durations.
        Time is the lesser of both watermarks; late rows are in the structs ``side_late_left`` and ``side_late_right``.
    df: batch or streaming, or ``ParquetFiles``: files whose rows stay out of the JVM, as a stream or all at once. A
        naive event time (TIMESTAMP_NTZ) is read in the session's time zone.
    watermark: for a streaming frame, how far its rows may be out of order. A row that is further behind the newest
        event time is late if all of its windows have gone. Needed for a spec with event_time(...), unless the frame has
        a watermark on that column already; without effect on batch.
    key_groups: into how many parts the keys are divided, from 1 to 32768: the most tasks that can share the state.
        Fixed for the life of a checkpoint, and independent of the number of shuffle partitions. None: 64; of a batch
        frame as many as the session has cores, if these are more. A task of a batch frame holds all that is left of a
        part: of rows that meet in few windows their partial results, else the rows.
    max_future_skew: rows of a stream that are further ahead of the micro-batch's time are bad rows, so that one wrong
        date does not close all windows; None: any. Give the spec ``.bad_rows("divert")`` then: under the policy
        "raise" one such row ends the query, at each start anew, of which there is a warning. A watermark that the frame
        has itself is moved by such rows all the same.
    coalesce: whether the rows of a micro-batch have no order among each other, with one late firing per (key, window)
        and batch. None: as the spec says, else True.
    name: of the counters, see ``spark_glue.counters``; needs changing where one query has two. For a
        batch frame, give a ``pyspark.sql.Observation``: its ``get`` has the counters when the frame has been computed.
    chain: whether the result is to be windowed again, in the same query: it gets the column ``window_time``, the last
        millisecond of each window, which the second specification must take for its event time. Needs windows of event
        time that end, no allowed lateness, no ``fill`` and no outputs beside the main one. The second ``apply`` has no
        watermark=.
    migrate: ``"added aggregates"`` lets the query go on with a checkpoint of a spec without some of the aggregates:
        for windows that are open at the restart they cover only what comes from then on. Leave it in place as long as
        such windows may be there. A longer allowed lateness needs no permission. ``"changed functions"`` goes on with
        lambdas and other functions without a name of their own whose code has changed; see ``fastwin.named``.
        ``"removed aggregates"`` drops what the state has of others, ``"renamed total to amount"`` gives an aggregate
        another name, and ``"wider types"`` allows longer integers, and double for float, in keys and aggregated
        columns. A set allows several: ``{"added aggregates", "changed functions"}``.

    idle: for a streaming frame with ``watermark=``: an input without good rows for so long, by the times of the
        micro-batches, no longer holds time back. While all are quiet, time goes up to the newest row, and on with the
        clock. Such a query runs micro-batches without data, too, and has a watermark of its own, which other frames of
        the query do not hold back. Fixed for the life of a checkpoint is whether it is given, not how long it is.

    history: for a streaming frame with ``watermark=``: what the first micro-batch of a new checkpoint starts from: a
        batch frame with rows of the past, or a folder that ``export_state`` has written, which driver and executors
        reach by the same path. Windows that the watermark of the history has passed do not fire again. Later starts
        have no use for it. Not with ``chain=``.
    goes_on: for a batch frame with ``watermark=`` that is such a history: windows that are still open at its watermark
        do not fire. What comes out, and what the stream gives, is what one long stream would have given.
    small_state: for a streaming frame: whether Spark keeps the state of each share as one value, on any of its state
        stores. Micro-batches over many partitions then take about three fifths of the processor's time; but the
        value is written whole in each one, so it is for up to some hundred kilobytes a share. Fixed for the life of a
        checkpoint; not with ``history=`` or ``chain=``, and ``rescale`` does not move it.

    Result columns: the keys, ``window_start``, ``window_end`` (TIMESTAMP) and the aggregates. If the spec hands out
    late or bad rows there are also the structs ``late`` and ``bad`` with the input's columns, and a struct ``side_tag``
    for each side output; a row has either the main columns or one struct (see ``route``).

    A spec that waits for the processing time (its windows or its trigger do) takes the micro-batch's time for it, on a
    batch frame that of this call. Such a query runs micro-batches without data, too: with the trigger ``availableNow``
    it would never end.

    The counters of a micro-batch (see ``progress_listener``), or of a batch frame: events, late, dropped, bad,
    unassigned, fired, unfired (windows that went without ever firing), open_windows_change, timers_change,
    state_rows_change, state_bytes (written to the state store) and watermark_ms (None while there is none).

    This call may run jobs itself. The first streaming frame of a session starts Python's workers beside the rest, with
    a job of a row for each core; with Spark Connect, the first call of a session looks at the server's Python, with a
    job of one row; and ``history=`` with a frame, or ``goes_on=``, reads all of that frame for its newest time, at each
    start.

    Everything is checked here, before any job of the query runs. Raises SpecError for an argument, a column or a
    setting that does not fit, naming it, its value and what is needed, and SourceError for ``ParquetFiles`` without
    ``schema=`` whose folder is not there, or whose newest file is damaged. Bad rows under the policy "raise", state of
    another query (the spec or key_groups has changed) and overflows end the query when they occur.
    """
    given = Given(
        df,
        watermark=watermark,
        key_groups=key_groups,
        max_future_skew=max_future_skew,
        coalesce=coalesce,
        name=name,
        chain=chain,
        migrate=migrate,
        idle=idle,
        history=history,
        goes_on=goes_on,
        small_state=small_state,
    )
    if isinstance(spec, fw.JoinSpec):
        prepared = prepare_join(spec, *check_join(spec, given))
    else:
        prepared = _prepare_windows(spec, given)
    warn_of_quiet(prepared.frame_plan, prepared.packed[0].sparkSession)
    return run(prepared, name)


def _prepare_windows(spec: fw.WindowSpec, given: Given) -> Prepared:
    """Returns the windows of one input, ready to run."""
    frame, asked, own = check_windows(spec, given)
    planned = partial(plan_frame, spec, asked=asked, own=own)
    frame_plan = planned(frame)
    check_small(frame_plan, own, given)
    initial = None
    if given.history is not None or given.goes_on:
        delay_ms = check_history(frame_plan, own, given)
        frame_plan, initial = _with_history(frame, frame_plan, given.history, planned, delay_ms)
    if frame_plan.asks_time:
        warn_of_dates(spec)
    case_sensitive = is_case_sensitive(frame.sparkSession)
    if given.chain is not False:
        check_chain(frame_plan, given.chain, case_sensitive)
    output = output_for(frame_plan, frame.schema, case_sensitive)
    packed = _packed(given.df, frame, frame_plan)
    return Prepared((packed,), frame_plan, output, initial, finish=with_window_time if given.chain else None)


def _with_history(
    frame: DataFrame,
    frame_plan: FramePlan,
    history: str | Path | DataFrame | None,
    replan: Callable[[DataFrame], FramePlan],
    delay_ms: int,
) -> tuple[FramePlan, DataFrame | None]:
    """Returns the plan of a stream that starts from history, and the state that is there then.

    history: None: the frame is history itself. Its plan ends with the watermark, and no state is there. delay_ms: of
    the watermark. replan: plans the spec for another frame.
    """
    if history is None:
        return replace(frame_plan, until_ms=watermark_after(frame, frame_plan, delay_ms)), None
    return begun_from(frame.sparkSession, history, frame_plan, replan, delay_ms)


def _packed(df: object, frame: DataFrame, frame_plan: FramePlan) -> DataFrame:
    """Returns the packed rows of what was given to ``apply``. frame: to plan with; it is df where that is a frame."""
    if isinstance(df, ParquetFiles):
        return df.packed(frame.sparkSession, frame_plan)
    return pack_frame(frame, frame_plan)

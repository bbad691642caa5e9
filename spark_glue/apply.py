"""``apply``: a window specification over a Spark frame, batch or streaming."""

import importlib
import warnings
from dataclasses import replace
from pathlib import Path

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

import fastwin as fw
from fastwin.callers import callers_level
from fastwin.errors import SpecError
from fastwin.machine.packages import explained
from fastwin.run.datawatermark import idle_time
from fastwin.state.identity import Migrate, check_migrate
from fastwin.times import Duration, format_ms, to_ms
from spark_glue.plan.catalyst import Watermark, prefers_columns, watermark_of
from spark_glue.plan.chaining import check_chain, with_window_time
from spark_glue.plan.compat import check_streams, is_connect
from spark_glue.plan.connect import check_server, guard_clock
from spark_glue.plan.frameplan import FramePlan, plan_frame
from spark_glue.plan.keygroups import KEY_GROUPS, MAX_KEY_GROUPS, check_key_groups
from spark_glue.plan.outputs import output_for
from spark_glue.plan.sending import check_stays, check_travels
from spark_glue.plan.settings import (
    BATCH_BYTES_KEY,
    BATCH_ROWS_KEY,
    has_unlimited_batches,
    is_case_sensitive,
    running_cores,
)
from spark_glue.session import check_state_store, warn_of_format
from spark_glue.sources.parquetfiles import ParquetFiles
from spark_glue.stages.batchframe import run_batch
from spark_glue.stages.counters import check_name
from spark_glue.stages.history import begun_from, watermark_after
from spark_glue.stages.joined import run_joined
from spark_glue.stages.operator import run_stream
from spark_glue.stages.pack import pack_frame
from spark_glue.stages.packets import BLOB_BYTES, MOST_BINARY
from spark_glue.stages.warming import warm_up
from spark_glue.state.cleanup import forget_when_ended

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
        "raise" one such row ends the query, at each start anew, of which there is a warning.
    coalesce: whether the rows of a micro-batch have no order among each other, with one late firing per (key, window)
        and batch. None: as the spec says, else True.
    name: of the counters, see ``spark_glue.counters``; needs changing where one query has two. For a
        batch frame, give a ``pyspark.sql.Observation``: its ``get`` has the counters when the frame has been computed.
    chain: whether the result is to be windowed again, in the same query: it gets the column ``window_time``, the last
        millisecond of each window, which the second specification must take for its event time. Needs windows of event
        time that end, no allowed lateness and no outputs beside the main one. The second ``apply`` has no watermark=.
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
        stores. Micro-batches over many partitions then take about half of the processor's time; but the value is
        written whole in each one, so it is for up to some hundred kilobytes a share. Fixed for the life of a
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
    if not isinstance(small_state, bool):
        raise SpecError(f"small_state: must be True or False, got {small_state!r}")
    if isinstance(spec, fw.JoinSpec):
        check_migrate(migrate)
        check_travels(spec)
        frames, delays = _check_join(spec, df, watermark, name, chain)
        _check_session(spec, frames[0], small_state)
        _warn_of_batches(frames[0].sparkSession)
        skew_ms = _duration(max_future_skew, "max_future_skew")
        idle_ms = idle_time(idle, follows=delays is not None or not frames[0].isStreaming)
        if history is not None or goes_on:
            raise SpecError("history: a join starts from nothing; history= and goes_on= are for one input")
        if delays is not None and skew_ms is not None:
            _warn_of_dates(spec.left)
        result = run_joined(
            spec,
            frames,
            delays,
            key_groups=_key_groups(key_groups, frames[0]),
            skew_ms=skew_ms,
            coalesce=_coalesce(spec, coalesce),
            name=name,
            migrate=migrate,
            idle_ms=idle_ms,
            small_state=small_state,
        )
        return guard_clock(result) if idle_ms is not None and delays is not None and is_connect(result) else result
    if not isinstance(spec, fw.WindowSpec):
        raise SpecError(f"spec: must be a WindowSpec as built from fastwin.key_by(...), got {type(spec).__name__}")
    spec.check_complete()
    check_travels(spec)
    files = df if isinstance(df, ParquetFiles) else None
    if files is not None:
        df = files.frame()
    if not isinstance(df, DataFrame):
        raise SpecError(f"df: must be a Spark DataFrame, got {type(df).__name__}")
    if is_connect(df):
        check_server(df)
    check_name(name, df.isStreaming)
    key_groups = _key_groups(key_groups, df)
    if isinstance(watermark, tuple | list):
        raise SpecError(f"watermark: a pair goes with a join alone, got {watermark!r}")
    delay_ms = _duration(watermark, "watermark")
    skew_ms = _duration(max_future_skew, "max_future_skew")
    coalesce = _coalesce(spec, coalesce)
    check_migrate(migrate)
    _check_session(spec, df, small_state)
    _warn_of_batches(df.sparkSession)
    own = _check_streaming(spec, df, delay_ms) if df.isStreaming else None
    idle_ms = idle_time(idle, follows=not df.isStreaming or (delay_ms is not None and own is None))

    def planned(frame: DataFrame) -> FramePlan:
        return plan_frame(
            spec,
            frame,
            key_groups=key_groups,
            skew_ms=skew_ms,
            coalesce=coalesce,
            migrate=migrate,
            own_watermark=own is not None,
            chained=own is not None and own.chained,
            idle_ms=idle_ms,
            delays=() if delay_ms is None else (delay_ms,),
        )

    if goes_on and files is not None and not files.streaming:
        raise SpecError("goes_on: ParquetFiles do not tell how far the history goes; read it with spark.read.parquet")
    frame_plan, initial = replace(planned(df), small_state=small_state), None
    if small_state:
        _check_small(frame_plan, own, history, chain)
    if history is not None or goes_on:
        if chain is not False:
            raise SpecError(
                "chain: windows behind others need all of their results, and those that history has fired do not come "
                "again; leave chain= or the history out"
            )
        past_delay_ms = _check_history(spec, df, frame_plan, history, goes_on, None if own else delay_ms)
        if goes_on:
            frame_plan = replace(frame_plan, until_ms=watermark_after(df, frame_plan, past_delay_ms))
        elif history is not None:
            frame_plan, initial = begun_from(df.sparkSession, history, frame_plan, planned, past_delay_ms)
    if frame_plan.asks_time:
        _warn_of_dates(spec)
    if chain is not False:
        check_chain(frame_plan, chain)
    output = output_for(frame_plan, df.schema, is_case_sensitive(df.sparkSession))
    if files is not None:
        packed = files.packed(df.sparkSession, frame_plan)
    else:
        packed = pack_frame(df, frame_plan, prefers_columns(df, frame_plan.packed_schema.names))
    if not df.isStreaming:
        result = run_batch(packed, frame_plan, output, name)
    else:
        if frame_plan.carrier and idle_ms is None:
            # The carrier rows have done their work in the watermark; this filter, on the watermark's own column, stays
            # behind it.
            packed = packed.withWatermark("carrier", f"{delay_ms} milliseconds").where(F.col("carrier").isNull())
        forget_when_ended(df.sparkSession)
        warm_up(df.sparkSession)
        result = run_stream(packed, frame_plan, output, name, initial)
    if chain:
        return with_window_time(result)
    clocked = df.isStreaming and frame_plan.time_mode == "ProcessingTime"
    return guard_clock(result) if clocked and is_connect(df) else result


def _check_join(
    join: fw.JoinSpec, df: object, watermark: object, name: str | Observation, chain: bool
) -> tuple[tuple[DataFrame, DataFrame], tuple[int, int] | None]:
    """Returns the frames of a join, and the delays of their watermarks, ms; None for batch frames."""
    if isinstance(df, tuple | list) and any(isinstance(frame, ParquetFiles) for frame in df):
        raise SpecError("df: a join takes no ParquetFiles; read the folder with spark.readStream.parquet")
    if not isinstance(df, tuple | list) or len(df) != 2 or not all(isinstance(frame, DataFrame) for frame in df):
        raise SpecError(f"df: a join needs a pair of Spark DataFrames, got {df!r}")
    if chain is not False:
        raise SpecError("chain: the result of a join cannot be windowed again in the same query")
    left, right = df
    if is_connect(left):
        check_server(left)
    if left.isStreaming != right.isStreaming:
        raise SpecError("df: a join needs two streaming frames, or two batch frames")
    check_name(name, left.isStreaming)
    if not left.isStreaming:
        return (left, right), None
    if not isinstance(watermark, tuple | list) or len(watermark) != 2:
        raise SpecError(f"watermark: a join of streams needs a pair such as ('10 s', '1 minute'), got {watermark!r}")
    delays = [_duration(one, "watermark") for one in watermark]
    if delays[0] is None or delays[1] is None:
        raise SpecError(f"watermark: each input of a join needs one, got {watermark!r}")
    return (left, right), (delays[0], delays[1])


def _check_history(
    spec: fw.WindowSpec, df: DataFrame, frame_plan: FramePlan, history: object, goes_on: object, delay_ms: int | None
) -> int:
    """Checks the arguments of what a stream starts from; returns the delay of the watermark, ms."""
    if history is not None and goes_on:
        raise SpecError("history: it is for the stream, goes_on= for the history itself")
    if history is not None and not isinstance(history, str | Path | DataFrame):
        told = "ParquetFiles; read them with spark.read.parquet" if isinstance(history, ParquetFiles) else repr(history)
        raise SpecError(f"history: must be a batch DataFrame, or what export_state has written, got {told}")
    if isinstance(history, DataFrame) and history.isStreaming:
        raise SpecError("history: must be a batch frame, got a streaming one")
    name = "goes_on" if goes_on else "history"
    if df.isStreaming == (name == "goes_on"):
        raise SpecError(f"{name}: is for a {'batch' if name == 'goes_on' else 'streaming'} frame")
    if delay_ms is None or frame_plan.plan.waits_for_clock:
        raise SpecError(f"{name}: needs a watermark= for both, and windows and triggers of event time")
    return delay_ms


def _check_small(frame_plan: FramePlan, own: Watermark | None, history: object, chain: object) -> None:
    """Raises SpecError where state in one value cannot do what is asked for."""
    if history is not None:
        raise SpecError("small_state: Spark gives such state nothing to start from; leave it or history= out")
    if chain is not False or frame_plan.chained:
        raise SpecError("small_state: Spark has no watermark behind such state; leave it out in a chain")
    if own is not None:
        raise SpecError("small_state: needs watermark= in place of the frame's own withWatermark")


def _warn_of_batches(spark: SparkSession) -> None:
    """Warns where Spark may gather more for Python in one batch than a column of Arrow's holds."""
    if not has_unlimited_batches(spark):
        return
    rows = int(spark.conf.get(BATCH_ROWS_KEY) or 0)
    if not 0 < rows * BLOB_BYTES <= MOST_BINARY:
        warnings.warn(
            f"{BATCH_ROWS_KEY} is {rows}, and {BATCH_BYTES_KEY} says no limit: a large micro-batch may then be more "
            f"than the 2 GiB that a column of Arrow's holds, which ends the query; set it to 10000, or give a limit in "
            f"bytes",
            stacklevel=callers_level(),
        )


def _check_session(spec: fw.WindowSpec | fw.JoinSpec, df: DataFrame, small_state: bool) -> None:
    """Checks what a stream needs of its session, and warns of what is not as it should be."""
    if not df.isStreaming:
        if small_state:
            raise SpecError("small_state: is for a streaming frame; a batch frame leaves no state")
        return
    check_stays(spec)
    spark = df.sparkSession
    check_streams(spark)
    if small_state:  # any store will do, in any format: a value is complete in itself
        return
    check_state_store(spark)
    warn_of_format(spark)
    _check_packages()


def _check_packages() -> None:
    """Raises NotInstalledError without what Spark's state API needs."""
    try:
        importlib.import_module("google.protobuf")
    except ImportError as problem:
        raise explained("apply", "spark", problem) from None


def _warn_of_dates(spec: fw.WindowSpec) -> None:
    """Warns where a row that is too far ahead ends the query."""
    if spec.bad_row_policy == "raise":
        warnings.warn(
            'bad_rows: the policy is "raise", so one row with a date far ahead ends the query, and again at each start'
            '; .bad_rows("drop") counts such rows, .bad_rows("divert"), which joins do not take, hands them out',
            stacklevel=callers_level(),
        )


def _check_streaming(spec: fw.WindowSpec, df: DataFrame, delay_ms: int | None) -> Watermark | None:
    """Checks what only streams need; returns the watermark that the frame has itself, if it has."""
    own = watermark_of(df)
    if spec.time_column is None:
        if delay_ms is not None:
            raise SpecError(
                f"watermark: the spec has no event_time(column) to take one from, got {format_ms(delay_ms)}"
            )
        return None
    if own is None:
        if delay_ms is None:
            raise SpecError("watermark: a streaming frame needs one, such as watermark='10 seconds', got None")
        return None
    if own.column != spec.time_column:
        raise SpecError(
            f"event_time: the spec has {spec.time_column!r}, but the frame has its watermark on {own.column!r}"
        )
    if own.chained:
        if delay_ms is not None:
            raise SpecError(f"watermark: a window behind a window has the first one's, got {format_ms(delay_ms)}")
        return own
    if delay_ms is not None and delay_ms != own.delay_ms:
        raise SpecError(
            f"watermark: got {format_ms(delay_ms)}, but the frame has one of {format_ms(own.delay_ms)} already; Spark "
            f"takes no second one, so leave watermark= out or drop the withWatermark"
        )
    warnings.warn(
        "the frame has a watermark already, which costs Spark a step for each row, and serves one apply in a query: of "
        "two, the second would never fire; leave withWatermark out and give watermark= to apply",
        stacklevel=callers_level(),
    )
    return own


def _duration(value: Duration | None, argument: str) -> int | None:
    if value is None:
        return None
    ms = to_ms(value, argument=argument)
    if ms < 0:
        raise SpecError(f"{argument}: must not be negative, got {value!r}")
    return ms


def _key_groups(given: object, df: DataFrame) -> int:
    if given is None:
        return KEY_GROUPS if df.isStreaming else max(KEY_GROUPS, min(running_cores(df.sparkSession), MAX_KEY_GROUPS))
    return check_key_groups(given)


def _coalesce(spec: fw.WindowSpec | fw.JoinSpec, coalesce: bool | None) -> bool:
    if coalesce not in (None, True, False):
        raise SpecError(f"coalesce: must be None, True or False, got {coalesce!r}")
    if coalesce is not None and spec.coalesce not in (None, coalesce):
        raise SpecError(f"coalesce: got {coalesce}, but the spec says allowed_lateness(..., coalesce={spec.coalesce})")
    return True if coalesce is None else coalesce

"""``apply``: a window specification over a Spark frame, batch or streaming."""

import importlib.util
import time
import warnings
from dataclasses import replace
from typing import Literal

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

import fastwin as fw
from fastwin.duration import Duration, format_ms, to_ms
from fastwin.errors import SpecError
from fastwin.statespec import check_migrate
from spark_glue.batch import run_frame
from spark_glue.chain import chained, check_chain
from spark_glue.ended import forget_when_ended
from spark_glue.frames import Watermark, prefers_columns, watermark_of
from spark_glue.job import LOCAL_MS, Job
from spark_glue.keygroups import check_key_groups
from spark_glue.pack import pack_frame
from spark_glue.processor import WindowProcessor
from spark_glue.progress import check_name, observed
from spark_glue.session import check_state_store
from spark_glue.types import arrow_schema, check_columns, check_keys, local_to_ms
from spark_glue.unpack import Output, operator_struct, output_for, unpack_frame

__all__ = ["apply"]


def apply(
    spec: fw.WindowSpec,
    df: DataFrame,
    watermark: Duration | None = None,
    key_groups: int = 64,
    max_future_skew: Duration | None = "1 day",
    coalesce: bool | None = None,
    name: str | Observation = "fastwin",
    chain: bool = False,
    migrate: Literal["added aggregates"] | None = None,
) -> DataFrame:
    """Windows a Spark frame as the specification says; returns a frame, streaming if ``df`` is.

    spec: as built from ``fastwin.key_by``.
    df: batch or streaming. A naive event time (TIMESTAMP_NTZ) is read in the session's time zone.
    watermark: for a streaming frame, how far its rows may be out of order: rows behind the newest event time by more
        are late. Needed for a spec with event_time(...), unless the frame has a watermark on that column already;
        without effect on batch.
    key_groups: into how many parts the keys are divided, from 1 to 32768: the most tasks that can share the state.
        Fixed for the life of a checkpoint, and independent of the number of shuffle partitions.
    max_future_skew: rows of a stream that are further ahead of the clock are bad rows, so that one wrong date does not
        close all windows; None: any.
    coalesce: whether the rows of a micro-batch have no order among each other, with one late firing per (key, window)
        and batch. None: as the spec says, else True.
    name: of the counters in ``query.lastProgress["observedMetrics"]``; needs changing where one query has two. For a
        batch frame, give a ``pyspark.sql.Observation``: its ``get`` has the counters when the frame has been computed.
    chain: whether the result is to be windowed again, in the same query: it gets the column ``window_time``, the last
        millisecond of each window, which the second specification must take for its event time. Needs windows of event
        time that end, no allowed lateness and no outputs beside the main one. The second ``apply`` has no watermark=.
    migrate: ``"added aggregates"`` lets the query go on with a checkpoint of a spec without some of the aggregates:
        for windows that are open at the restart they cover only what comes from then on. Leave it in place as long as
        such windows may be there. A longer allowed lateness needs no permission.

    Result columns: the keys, ``window_start``, ``window_end`` (TIMESTAMP) and the aggregates. If the spec hands out
    late or bad rows there are also the structs ``late`` and ``bad`` with the input's columns, and a struct ``side_tag``
    for each side output; a row has either the main columns or one struct (see ``route``).

    A spec that waits for the processing time (its windows or its trigger do) takes the micro-batch's time for it, on a
    batch frame that of this call. Such a query runs micro-batches without data, too: with the trigger ``availableNow``
    it would never end.

    The counters of a micro-batch (see ``progress_listener``), or of a batch frame: events, late, dropped, bad,
    unassigned, fired, unfired (windows that went without ever firing), open_windows_change, timers_change,
    state_rows_change, state_bytes (written to the state store) and watermark_ms (null while there is none).

    Everything is checked here, before any job runs. Raises SpecError for an argument, a column or a setting that does
    not fit, naming it, its value and what is needed. Bad rows under the policy "raise", state of another query (the
    spec or key_groups has changed) and overflows end the query when they occur.
    """
    if not isinstance(spec, fw.WindowSpec):
        raise SpecError(f"spec: must be a WindowSpec as built from fastwin.key_by(...), got {type(spec).__name__}")
    _check_spec(spec)
    if not isinstance(df, DataFrame):
        raise SpecError(f"df: must be a Spark DataFrame, got {type(df).__name__}")
    check_name(name, df.isStreaming)
    key_groups = check_key_groups(key_groups)
    delay_ms = _duration(watermark, "watermark")
    skew_ms = _duration(max_future_skew, "max_future_skew")
    coalesce = _coalesce(spec, coalesce)
    check_migrate(migrate)
    own = _check_streaming(spec, df, delay_ms) if df.isStreaming else None

    job = _job(spec, df, key_groups=key_groups, skew_ms=skew_ms, coalesce=coalesce, own=own)
    job = replace(job, migrate=migrate)
    if chain is not False:
        check_chain(job, chain)
    case_sensitive = df.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    output = output_for(job, df.schema, case_sensitive)
    packed = pack_frame(df, job, prefers_columns(df, job.packed_schema.names))
    if not job.streaming:
        return chained(run_frame(packed, job, output, name), chain)
    if job.carrier:
        # The carrier rows have done their work in the watermark; this filter, on the watermark's own column, stays
        # behind it.
        packed = packed.withWatermark("carrier", f"{delay_ms} milliseconds").where(F.col("carrier").isNull())
    return chained(_run_stream(packed, job, output, name), chain)


def _run_stream(packed: DataFrame, job: Job, output: Output, name: str | Observation) -> DataFrame:
    forget_when_ended(packed.sparkSession)
    processor = WindowProcessor(job, output if output.is_flat else None)
    results = packed.groupBy("key_group").transformWithStateInPandas(
        processor, operator_struct(output), "append", job.time_mode
    )
    counters = F.split("counters", ",").cast("array<bigint>")
    return unpack_frame(observed(results, name, counters), output)


def _job(
    spec: fw.WindowSpec, df: DataFrame, *, key_groups: int, skew_ms: int | None, coalesce: bool, own: Watermark | None
) -> Job:
    schema = arrow_schema(df.schema)
    fw.plan(spec, schema)  # names unknown columns and unsuitable types
    time_zone = None
    time_column = spec.time_column
    if time_column is not None and isinstance(df.schema[time_column].dataType, T.TimestampNTZType):
        time_zone = _time_zone(df, time_column)
        spec = replace(spec, time_column=LOCAL_MS)
        schema = schema.append(pa.field(LOCAL_MS, pa.int64()))
    is_chained = own is not None and own.chained
    job = Job(
        spec=spec,
        schema=schema,
        time_column=time_column,
        time_zone=time_zone,
        key_groups=key_groups,
        streaming=df.isStreaming,
        carrier=df.isStreaming and time_column is not None and own is None,
        max_future_skew_ms=skew_ms if df.isStreaming and not is_chained else None,
        coalesce=coalesce,
        started_ms=time.time_ns() // 1_000_000,
        chained=is_chained,
    )
    check_keys(df.schema, spec.keys)
    check_columns(df.schema, job.packed_schema.names)
    return job


def _check_spec(spec: fw.WindowSpec) -> None:
    """Raises SpecError for a spec that is incomplete, or that cannot travel to Spark's workers."""
    spec.check_complete()
    try:
        cloudpickle.dumps(spec)
    except Exception as problem:
        raise SpecError(f"spec: it cannot be sent to Spark's workers: {type(problem).__name__}: {problem}") from problem


def _time_zone(df: DataFrame, column: str) -> str:
    key = "spark.sql.session.timeZone"
    time_zone = df.sparkSession.conf.get(key)
    try:
        local_to_ms(pa.array([0], pa.timestamp("us")), time_zone)
    except pa.ArrowException as error:
        raise SpecError(
            f"event_time: column {column!r} has no time zone, and {key}={time_zone!r} is none that Arrow knows; set a "
            f"region such as 'Europe/Berlin' or an offset such as '+02:00'"
        ) from error
    return time_zone


def _check_streaming(spec: fw.WindowSpec, df: DataFrame, delay_ms: int | None) -> Watermark | None:
    """Checks what only streams need; returns the watermark that the frame has itself, if it has."""
    check_state_store(df.sparkSession)
    if importlib.util.find_spec("google.protobuf") is None:
        raise SpecError("the package protobuf is missing, which Spark's state API needs: pip install 'fastwin[spark]'")
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
        stacklevel=3,
    )
    return own


def _duration(value: Duration | None, argument: str) -> int | None:
    if value is None:
        return None
    ms = to_ms(value, argument=argument)
    if ms < 0:
        raise SpecError(f"{argument}: must not be negative, got {value!r}")
    return ms


def _coalesce(spec: fw.WindowSpec, coalesce: bool | None) -> bool:
    if coalesce not in (None, True, False):
        raise SpecError(f"coalesce: must be None, True or False, got {coalesce!r}")
    if coalesce is not None and spec.coalesce not in (None, coalesce):
        raise SpecError(f"coalesce: got {coalesce}, but the spec says allowed_lateness(..., coalesce={spec.coalesce})")
    return True if coalesce is None else coalesce

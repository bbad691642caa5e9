"""The arguments of ``apply``: what each may be, and what they may be together. Others are refused with a SpecError."""

import importlib
import warnings
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, Observation, SparkSession

import fastwin as fw
from fastwin.callers import callers_level
from fastwin.errors import SpecError
from fastwin.machine.packages import explained
from fastwin.run.datawatermark import idle_time
from fastwin.spec.checks import warn_if_never_fires
from fastwin.state.identity import Migrate, check_migrate
from fastwin.times import Duration, format_ms, to_ms
from spark_glue.plan.catalyst import Watermark, watermark_of
from spark_glue.plan.compat import check_streams, is_connect
from spark_glue.plan.connect import check_server
from spark_glue.plan.frameplan import Asked, FramePlan
from spark_glue.plan.keygroups import KEY_GROUPS, MAX_KEY_GROUPS, check_key_groups
from spark_glue.plan.sending import check_stays, check_travels
from spark_glue.plan.settings import (
    BATCH_BYTES_KEY,
    BATCH_ROWS_KEY,
    QUIET_KEY,
    has_unlimited_batches,
    running_cores,
)
from spark_glue.session import check_state_store, warn_of_format
from spark_glue.sources.parquetfiles import ParquetFiles
from spark_glue.stages.counters import check_name
from spark_glue.stages.packets import BLOB_BYTES, MOST_BINARY

__all__ = ["Given", "check_history", "check_join", "check_small", "check_windows", "warn_of_dates", "warn_of_quiet"]


@dataclass(frozen=True)
class Given:
    """The arguments of ``apply`` but the spec, as they are given. What they mean is said there."""

    df: DataFrame | ParquetFiles | tuple[DataFrame, DataFrame]
    watermark: Duration | tuple[Duration, Duration] | None
    key_groups: int | None
    max_future_skew: Duration | None
    coalesce: bool | None
    name: str | Observation
    chain: bool
    migrate: Migrate
    idle: Duration | None
    history: str | Path | DataFrame | None
    goes_on: bool
    small_state: bool

    def __post_init__(self) -> None:
        if not isinstance(self.small_state, bool):
            raise SpecError(f"small_state: must be True or False, got {self.small_state!r}")


def check_windows(spec: fw.WindowSpec, given: Given) -> tuple[DataFrame, Asked, Watermark | None]:
    """Checks all that can be told before a spec over one input is planned; warns of what is not as it should be.

    Returns the frame, for ``ParquetFiles`` one to plan with, what is asked for, and the watermark that a streaming
    frame has itself, if it has.
    """
    if not isinstance(spec, fw.WindowSpec):
        raise SpecError(f"spec: must be a WindowSpec as built from fastwin.key_by(...), got {type(spec).__name__}")
    spec.check_complete()
    warn_if_never_fires(spec)
    check_travels(spec)
    files = given.df if isinstance(given.df, ParquetFiles) else None
    df = given.df if files is None else files.frame()
    if not isinstance(df, DataFrame):
        whose = type(df).__module__.partition(".")[0]
        of = "" if whose == "builtins" else f" of {whose}"
        raise SpecError(f"df: must be a Spark DataFrame, got {type(df).__name__}{of}")
    if is_connect(df):
        check_server(df)
    check_name(given.name, df.isStreaming)
    key_groups = _key_groups(given.key_groups, df)
    if isinstance(given.watermark, tuple | list):
        raise SpecError(f"watermark: a pair goes with a join alone, got {given.watermark!r}")
    delay_ms = _duration(given.watermark, "watermark")
    skew_ms = _duration(given.max_future_skew, "max_future_skew")
    coalesce = _coalesce(spec, given.coalesce)
    check_migrate(given.migrate)
    _check_session(spec, df, given.small_state)
    _warn_of_batches(df.sparkSession)
    own = _check_streaming(spec, df, delay_ms) if df.isStreaming else None
    idle_ms = idle_time(given.idle, follows=not df.isStreaming or (delay_ms is not None and own is None))
    if given.goes_on and files is not None and not files.streaming:
        raise SpecError("goes_on: ParquetFiles do not tell how far the history goes; read it with spark.read.parquet")
    asked = Asked(
        key_groups=key_groups,
        skew_ms=skew_ms,
        coalesce=coalesce,
        migrate=given.migrate,
        idle_ms=idle_ms,
        delays=() if delay_ms is None else (delay_ms,),
        small_state=given.small_state,
    )
    return df, asked, own


def check_join(join: fw.JoinSpec, given: Given) -> tuple[tuple[DataFrame, DataFrame], Asked]:
    """Checks all that can be told before a join is planned; warns of what is not as it should be.

    Returns its frames, and what is asked for.
    """
    check_migrate(given.migrate)
    check_travels(join)
    frames = _check_frames(given)
    delays = _delays_of(given) if frames[0].isStreaming else ()
    _check_session(join, frames[0], given.small_state)
    _warn_of_batches(frames[0].sparkSession)
    skew_ms = _duration(given.max_future_skew, "max_future_skew")
    idle_ms = idle_time(given.idle, follows=True)  # in a join of streams each input has a watermark of its own
    if given.history is not None or given.goes_on:
        raise SpecError("history: a join starts from nothing; history= and goes_on= are for one input")
    if frames[0].isStreaming and skew_ms is not None:
        warn_of_dates(join.left, joined=True)
    asked = Asked(
        key_groups=_key_groups(given.key_groups, frames[0]),
        skew_ms=skew_ms,
        coalesce=_coalesce(join, given.coalesce),
        migrate=given.migrate,
        idle_ms=idle_ms,
        delays=delays,
        small_state=given.small_state,
    )
    return frames, asked


def _check_frames(given: Given) -> tuple[DataFrame, DataFrame]:
    """Returns the frames of a join, which are both streaming or both not."""
    df = given.df
    if isinstance(df, tuple | list) and any(isinstance(frame, ParquetFiles) for frame in df):
        raise SpecError("df: a join takes no ParquetFiles; read the folder with spark.readStream.parquet")
    if not isinstance(df, tuple | list) or len(df) != 2 or not all(isinstance(frame, DataFrame) for frame in df):
        raise SpecError(f"df: a join needs a pair of Spark DataFrames, got {df!r}")
    if given.chain is not False:
        raise SpecError("chain: the result of a join cannot be windowed again in the same query")
    left, right = df
    if is_connect(left):
        check_server(left)
    if left.isStreaming != right.isStreaming:
        raise SpecError("df: a join needs two streaming frames, or two batch frames")
    check_name(given.name, left.isStreaming)
    return left, right


def _delays_of(given: Given) -> tuple[int, int]:
    """Returns how far the watermark is behind each input of a join of streams, ms."""
    pair = given.watermark
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise SpecError(f"watermark: a join of streams needs a pair such as ('10 s', '1 minute'), got {pair!r}")
    left, right = (_duration(one, "watermark") for one in pair)
    if left is None or right is None:
        raise SpecError(f"watermark: each input of a join needs one, got {pair!r}")
    return left, right


def check_small(frame_plan: FramePlan, own: Watermark | None, given: Given) -> None:
    """Raises SpecError where state in one value cannot do what is asked for. own: the frame's own watermark."""
    if not given.small_state:
        return
    if given.history is not None:
        raise SpecError("small_state: Spark gives such state nothing to start from; leave it or history= out")
    if given.chain is not False or frame_plan.chained:
        raise SpecError("small_state: Spark has no watermark behind such state; leave it out in a chain")
    if own is not None:
        raise SpecError("small_state: needs watermark= in place of the frame's own withWatermark")


def check_history(frame_plan: FramePlan, own: Watermark | None, given: Given) -> int:
    """Checks what a stream starts from, or which history goes on; returns the delay of the watermark, ms.

    own: the frame's own watermark.
    """
    if given.chain is not False:
        raise SpecError(
            "chain: windows behind others need all of their results, and those that history has fired do not come "
            "again; leave chain= or the history out"
        )
    history = given.history
    if history is not None and given.goes_on:
        raise SpecError("history: it is for the stream, goes_on= for the history itself")
    if history is not None and not isinstance(history, str | Path | DataFrame):
        told = "ParquetFiles; read them with spark.read.parquet" if isinstance(history, ParquetFiles) else repr(history)
        raise SpecError(f"history: must be a batch DataFrame, or what export_state has written, got {told}")
    if isinstance(history, DataFrame) and history.isStreaming:
        raise SpecError("history: must be a batch frame, got a streaming one")
    name, kind = ("goes_on", "batch") if given.goes_on else ("history", "streaming")
    if frame_plan.streaming != (kind == "streaming"):
        raise SpecError(f"{name}: is for a {kind} frame")
    if not frame_plan.delays or own is not None or frame_plan.plan.waits_for_clock:
        raise SpecError(f"{name}: needs a watermark= for both, and windows and triggers of event time")
    return frame_plan.delays[0]


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


def warn_of_dates(spec: fw.WindowSpec, joined: bool = False) -> None:
    """Warns where a row that is too far ahead ends the query. joined: whether it is an input of a join."""
    more = "" if joined else ', .bad_rows("divert") hands them out'
    if spec.bad_row_policy == "raise":
        warnings.warn(
            'bad_rows: the policy is "raise", so one row with a date far ahead ends the query, and again at each start'
            f'; .bad_rows("drop") counts such rows{more}',
            stacklevel=callers_level(),
        )


def warn_of_quiet(frame_plan: FramePlan, spark: SparkSession) -> None:
    """Warns where a stream waits for the clock, and Spark runs no micro-batch for that alone."""
    clocked = frame_plan.streaming and frame_plan.time_mode == "ProcessingTime"
    if clocked and str(spark.conf.get(QUIET_KEY, "true")).lower() == "false":
        warnings.warn(
            f"{QUIET_KEY} is false, so no micro-batch runs without new rows, and what waits for the clock (idle=, "
            f"processing time) waits for the next row, too; leave that setting out",
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
        "two, the second would never fire. One date far ahead moves it, whatever max_future_skew= says, and closes all "
        "windows. Leave withWatermark out and give watermark= to apply",
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

"""The plan of one ``apply``: spec, columns of the frame, settings. The driver makes it, and every task gets it."""

import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

import fastwin as fw
from fastwin.errors import SpecError
from fastwin.spec.joinending import Side
from fastwin.state.identity import Migrate
from fastwin.times import LAST_DATE_MS
from spark_glue.plan.catalyst import Watermark
from spark_glue.plan.types import arrow_schema, check_columns, check_keys, combined, conform, local_to_ms

__all__ = ["LOCAL_MS", "Asked", "FramePlan", "JoinInput", "TimeMode", "plan_frame"]

LOCAL_MS = "__event_time_ms"
"""A column that is added where the event time has no time zone: the same time in epoch milliseconds."""

_VERSION = "fastwin"  # in a pickled plan: the version of fastwin that has made it

TimeMode = Literal["EventTime", "ProcessingTime", "None"]
"""What Spark's timers wait for, in Spark's words."""


@dataclass(frozen=True)
class Asked:
    """What the arguments of an ``apply`` ask for, checked: what they mean is said in ``FramePlan``.

    skew_ms is ``max_future_skew_ms`` there; that and idle_ms are for streams, the plan of a batch frame has neither.
    """

    key_groups: int
    skew_ms: int | None
    coalesce: bool
    migrate: Migrate
    idle_ms: int | None
    delays: tuple[int, ...]
    small_state: bool


@dataclass(frozen=True)
class JoinInput:
    """What the rows of one input of a join were before they became rows of both, for messages.

    side: left or right. time_column: the event time in its own frame. guesses_unit: whether that is int64 which nobody
    has called milliseconds.
    """

    side: Side
    time_column: str
    guesses_unit: bool


@dataclass(frozen=True)
class FramePlan:
    """One spec over one frame. It is immutable and can be pickled.

    spec: what to do; where the event time has no time zone, with LOCAL_MS as its time column.
    schema: all columns of the frame, and LOCAL_MS if there is one.
    time_column: the frame's event-time column; None: the spec needs none.
    time_zone: in which an event time without a zone is read; None: it has a zone. Of a join, Spark reads the times, and
    the operator's plan alone has the zone, to which it holds the checkpoint.
    key_groups: how many there are.
    streaming: whether the frame is; if not, all state ends with the task.
    carrier: whether the packed rows must carry the watermark; if not, the frame has one itself.
    max_future_skew_ms: rows further ahead of the micro-batch's time are bad; None: the time does not matter.
    coalesce: whether the rows of a micro-batch have no order among each other.
    started_ms: the processing time of a batch frame.
    chained: whether the rows come from windows before, in the same micro-batch whose watermark made these fire.
    migrate: what may have changed since the state was written, see ``apply``.
    operator: tells this ``apply`` from others, of the same spec too.
    idle_ms: after how long without rows an input is not waited for, for which shares make the watermark themselves;
    None: it is Spark's. delays: how far the rows of each input may be out of order, ms. input: which of them this is.
    start_ms: the watermark that the first micro-batch starts with, which history has brought, or the query that is
    divided anew; None: none. until_ms: the watermark that a batch frame ends with; None: the end of time.
    small_state: whether the state of a share is one value of Spark's.
    join_input: where the rows come from; None: from no join, or from both inputs of one. late_inputs: the inputs of a
    join whose late rows are handed out, those of others are counted as dropped; None: the spec says it.
    """

    spec: fw.WindowSpec
    schema: pa.Schema
    time_column: str | None
    time_zone: str | None
    key_groups: int
    streaming: bool
    carrier: bool
    max_future_skew_ms: int | None
    coalesce: bool
    started_ms: int = 0
    chained: bool = False
    migrate: Migrate = None
    operator: str = ""
    idle_ms: int | None = None
    delays: tuple[int, ...] = ()
    input: int = 0
    start_ms: int | None = None
    until_ms: int | None = None
    small_state: bool = False
    join_input: JoinInput | None = None
    late_inputs: tuple[int, ...] | None = None

    @cached_property
    def plan(self) -> fw.Plan:
        """The spec, planned for the frame."""
        return fw.plan(self.spec, self.schema, hidden=(LOCAL_MS,), coalesce=self.coalesce)

    @cached_property
    def packed_schema(self) -> pa.Schema:
        """The columns that a packer gets from Spark, in this order."""
        names = [name for name in self.plan.input_columns if name != LOCAL_MS]
        if self.time_column is not None and self.time_column not in names:
            names.append(self.time_column)
        return pa.schema([self.schema.field(name) for name in names])

    @property
    def asks_time(self) -> bool:
        """Whether a packer needs to know the micro-batch's own time: one that runs again judges each row as before."""
        return self.max_future_skew_ms is not None and self.time_column is not None

    @property
    def named_time(self) -> str | None:
        """The event-time column by the name that the user has given it."""
        return self.time_column if self.join_input is None else self.join_input.time_column

    @property
    def guesses_unit(self) -> bool:
        """Whether int64 times are taken for milliseconds without having been called so."""
        return self.plan.guesses_unit if self.join_input is None else self.join_input.guesses_unit

    @property
    def carried_delays(self) -> tuple[int, ...]:
        """How far the watermark that Spark makes is behind each input, ms; empty: this frame does not carry it."""
        return self.delays if self.carrier and self.idle_ms is None else ()

    @property
    def history_newest_ms(self) -> int | None:
        """The newest event time of history, behind which the watermark is; None: there is no history."""
        return None if self.start_ms is None else min(self.start_ms + self.delays[0] + 1, LAST_DATE_MS)

    @cached_property
    def time_mode(self) -> TimeMode:
        """What the timers of a stream wait for."""
        if self.plan.waits_for_clock or self.idle_ms is not None:
            return "ProcessingTime"
        return "None" if self.time_column is None else "EventTime"

    def __getstate__(self) -> dict[str, object]:
        kept: dict[str, object] = {_VERSION: fw.__version__}
        for name, value in self.__dict__.items():
            if not isinstance(getattr(type(self), name, None), cached_property):  # each process computes these itself
                kept[name] = value
        return kept

    def __setstate__(self, state: dict[str, object]) -> None:
        theirs = state.pop(_VERSION, "of long ago")
        if theirs != fw.__version__:  # counters, and what is packed, travel by position
            raise SpecError(
                f"fastwin: the driver has version {theirs}, and this worker has {fw.__version__}; install the same on "
                f"the driver and on all workers"
            )
        self.__dict__.update(state)

    def packed_rows(self, columns: Iterable[pa.Array]) -> pa.RecordBatch:
        """Returns the columns that Spark has handed over for ``packed_schema`` as one batch with it."""
        schema = self.packed_schema
        arrays = [conform(column, field.type) for column, field in zip(columns, schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def input_rows(self, batches: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """Returns record batches with ``packed_schema`` put together, with at least the columns of
        ``plan.input_schema``: one, or several where a column of one would have more than 2 GiB."""
        put_together = combined(pa.Table.from_batches(batches))
        if self.time_zone is None:
            return put_together
        return [
            batch.append_column(LOCAL_MS, local_to_ms(batch.column(self.time_column), self.time_zone))
            for batch in put_together
        ]


def plan_frame(
    spec: fw.WindowSpec, df: DataFrame, asked: Asked, own: Watermark | None = None, input_number: int = 0
) -> FramePlan:
    """Returns the plan of a spec over a frame. own: the watermark that the frame has itself; None: it has none.

    Raises SpecError for a column that is not there, or has a type that does not fit.
    """
    schema = arrow_schema(df.schema)
    fw.plan(spec, schema)  # names unknown columns and unsuitable types
    time_zone = None
    time_column = spec.time_column
    if time_column is not None and isinstance(df.schema[time_column].dataType, T.TimestampNTZType):
        time_zone = _time_zone(df, time_column)
        spec = replace(spec, time_column=LOCAL_MS, time_unit="ms")  # an instant, as other timestamps are
        schema = schema.append(pa.field(LOCAL_MS, pa.int64()))
    chained = own is not None and own.chained
    planned = FramePlan(
        spec=spec,
        schema=schema,
        time_column=time_column,
        time_zone=time_zone,
        key_groups=asked.key_groups,
        streaming=df.isStreaming,
        carrier=df.isStreaming and time_column is not None and own is None,
        max_future_skew_ms=asked.skew_ms if df.isStreaming and not chained else None,
        coalesce=asked.coalesce,
        started_ms=time.time_ns() // 1_000_000,
        chained=chained,
        migrate=asked.migrate,
        operator=uuid.uuid4().hex,
        idle_ms=asked.idle_ms if df.isStreaming else None,
        delays=asked.delays,
        input=input_number,
        small_state=asked.small_state,
    )
    check_keys(df.schema, spec.keys)
    check_columns(df.schema, planned.packed_schema.names)
    return planned


def _time_zone(df: DataFrame, column: str) -> str:
    """Returns the session's time zone; raises SpecError if Arrow does not know it."""
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

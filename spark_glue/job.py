"""What the driver tells its tasks: one immutable, picklable description of the windowing."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import pyarrow as pa

import fastwin as fw
from spark_glue.types import local_to_ms

__all__ = ["LOCAL_MS", "Job", "TimeMode"]

LOCAL_MS = "__event_time_ms"
"""A column added where the event time is naive: the same in epoch milliseconds."""

TimeMode = Literal["EventTime", "ProcessingTime", "None"]
"""What Spark's timers wait for, in Spark's words."""


@dataclass(frozen=True)
class Job:
    """One spec over one frame.

    spec: what to do; where the event time is naive, with LOCAL_MS as its time column.
    schema: all columns of the frame, and LOCAL_MS if there is one.
    time_column: the frame's event-time column; None: the spec needs none.
    time_zone: in which a naive event time is read; None: it is not naive.
    key_groups: how many there are.
    streaming: whether the frame is; if not, all state ends with the task.
    carrier: whether the packed rows must carry the watermark, as opposed to the frame itself.
    max_future_skew_ms: rows further ahead of the clock are bad; None: the clock does not matter.
    coalesce: whether the rows of a micro-batch have no order among each other.
    started_ms: the processing time of a batch frame.
    chained: whether the rows come from windows before, in the same micro-batch whose watermark made these fire.
    migrate: what may have changed since the state was written, see ``apply``.
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
    migrate: str | None = None

    @cached_property
    def plan(self) -> fw.Plan:
        """The spec, planned for the frame."""
        return fw.plan(self.spec, self.schema, hidden=(LOCAL_MS,))

    @cached_property
    def packed_schema(self) -> pa.Schema:
        """The columns that a packer gets from Spark, in this order."""
        names = [name for name in self.plan.input_columns if name != LOCAL_MS]
        if self.time_column is not None and self.time_column not in names:
            names.append(self.time_column)
        return pa.schema([self.schema.field(name) for name in names])

    @cached_property
    def time_mode(self) -> TimeMode:
        """What the timers of a stream wait for."""
        if self.plan.waits_for_clock:
            return "ProcessingTime"
        return "None" if self.time_column is None else "EventTime"

    def __getstate__(self) -> dict[str, object]:
        cached = ("plan", "packed_schema", "time_mode")
        return {name: value for name, value in self.__dict__.items() if name not in cached}

    def input_rows(self, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
        """Returns record batches with ``packed_schema`` as one with at least the columns of ``plan.input_schema``."""
        (batch,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
        if self.time_zone is None:
            return batch
        return batch.append_column(LOCAL_MS, local_to_ms(batch.column(self.time_column), self.time_zone))

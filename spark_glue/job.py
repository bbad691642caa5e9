"""What the driver tells its tasks: one immutable, picklable description of the windowing."""

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

import fastwin as fw
from spark_glue.types import local_to_ms

__all__ = ["LOCAL_MS", "Job"]

LOCAL_MS = "__event_time_ms"
"""A column added where the event time is naive: the same in epoch milliseconds."""


@dataclass(frozen=True)
class Job:
    """One spec over one frame.

    spec: what to do; where the event time is naive, with LOCAL_MS as its time column.
    packed_schema: the columns that a packer gets from Spark, in this order.
    streaming: whether the frame is; if not, a packed row carries no watermark and all state ends with the task.
    carrier: whether the packed rows must carry the watermark, as opposed to the frame itself.
    local_time: the naive event-time column and the time zone in which it is read; else None.
    max_future_skew_ms: rows further ahead of the clock are bad; None: the clock does not matter.
    coalesce: whether the rows of a micro-batch have no order among each other.
    """

    spec: fw.WindowSpec
    packed_schema: pa.Schema
    key_groups: int
    streaming: bool
    carrier: bool
    local_time: tuple[str, str] | None
    max_future_skew_ms: int | None
    coalesce: bool

    @cached_property
    def plan(self) -> fw.Plan:
        """The planned spec."""
        schema = self.packed_schema
        return fw.plan(self.spec, schema if self.local_time is None else schema.append(pa.field(LOCAL_MS, pa.int64())))

    @cached_property
    def blob_schema(self) -> pa.Schema:
        """The columns that a blob of good rows has."""
        schema = self.packed_schema.append(pa.field(LOCAL_MS, pa.int64()))
        return pa.schema([schema.field(name) for name in self.plan.input_columns])

    def __getstate__(self) -> dict[str, object]:
        return {key: value for key, value in self.__dict__.items() if key not in ("plan", "blob_schema")}

    def input_rows(self, batches: list[pa.RecordBatch]) -> pa.Table:
        """Returns record batches with ``packed_schema`` as a table with the columns that the plan knows."""
        table = pa.Table.from_batches(batches).combine_chunks()
        if self.local_time is not None:
            column, time_zone = self.local_time
            table = table.append_column(LOCAL_MS, local_to_ms(table[column], time_zone))
        return table

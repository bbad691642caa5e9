"""Batch frames: the packed rows of each key group run to their end, without Spark's state."""

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

import fastwin as fw
from fastwin.run.bounded import open_bounded
from fastwin.run.replica import open_replica
from fastwin.run.stream import open_plan
from spark_glue.plan.compat import applied_to_groups, arrow_schema_of, is_observation
from spark_glue.plan.frameplan import FramePlan
from spark_glue.plan.outputs import Output, ResultKind
from spark_glue.stages.counters import COUNTERS, count, observed
from spark_glue.stages.feeding import partials_in, rows_in
from spark_glue.stages.packets import Packet, PacketKind, decode, packets_in

__all__ = ["run_batch"]

_COUNTERS = "__fastwin_counters"  # a column of one more row for each key group, taken away again
_LIST = pa.list_(pa.int64())


def run_batch(packed: DataFrame, frame_plan: FramePlan, output: Output, name: str | Observation) -> DataFrame:
    """Returns the result frame of packed rows: what ``spec.run`` gives for all of them.

    name: an Observation takes the counters; text is of no use without a query's progress.
    """
    if not is_observation(name):
        return applied_to_groups(packed, "key_group", partial(_run_group, frame_plan, output), output.struct)
    struct = T.StructType([*output.struct, T.StructField(_COUNTERS, T.ArrayType(T.LongType()))])
    counted = applied_to_groups(packed, "key_group", partial(_run_counted, frame_plan, output), struct)
    return observed(counted, name, F.col(_COUNTERS)).where(F.col(_COUNTERS).isNull()).drop(_COUNTERS)


def _run_group(frame_plan: FramePlan, output: Output, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return _Group(frame_plan, output, batches).results()


def _run_counted(frame_plan: FramePlan, output: Output, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    group = _Group(frame_plan, output, batches)
    for rows in group.results():
        yield rows.append_column(_COUNTERS, pa.nulls(rows.num_rows, _LIST))
    counters = group.counters()
    schema = arrow_schema_of(output.struct)
    nulls = [pa.nulls(1, field.type) for field in schema]
    counted = pa.array([[counters[counter] for counter in COUNTERS]], _LIST)
    yield pa.RecordBatch.from_arrays([*nulls, counted], names=[*schema.names, _COUNTERS])


class _Group:
    """A key group and what runs it. Its partial results are all at hand before any window fires, as its rows are."""

    def __init__(self, frame_plan: FramePlan, output: Output, batches: Iterator[pa.RecordBatch]) -> None:
        self._frame_plan, self._output = frame_plan, output
        self._packets: list[Packet] = sorted(packet for batch in batches for packet in packets_in(batch))
        self._stream: fw.Stream | None = None

    def results(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows of the result frame."""
        output, until_ms = self._output, self._frame_plan.until_ms
        for packet in self._packets:
            if packet.kind == PacketKind.BAD and packet.blob is not None:
                yield output.rows(ResultKind.BAD, decode(packet.blob, output.parts[ResultKind.BAD].schema))
        stream, fed = self._fed()
        yield from output.result_rows(fed)
        if until_ms is not None:
            yield from output.result_rows(stream.advance_watermark(until_ms))
            return
        yield from output.result_rows(stream.advance_watermark(fw.MAX_TIMESTAMP))
        yield from output.result_rows(stream.finish_processing_time())

    def _fed(self) -> tuple[fw.Stream, fw.Result]:
        """Returns a stream that has been given all in one call, as a micro-batch is, and what came of it."""
        plan = self._frame_plan.plan
        partials = partials_in(self._packets, self._frame_plan)
        if partials:
            replica = open_replica(plan)
            self._stream = replica
            return replica, replica.merge(partials)
        opened = open_bounded if self._frame_plan.until_ms is None else open_plan  # what goes on does not end with time
        stream = opened(plan)
        self._stream = stream
        stream.advance_processing_time(self._frame_plan.started_ms)
        return stream, stream.process(rows_in(self._packets, plan.input_schema))

    def counters(self) -> dict[str, int]:
        """Returns what has been counted once all results are there."""
        assert self._stream is not None
        bad = sum(packet.rows for packet in self._packets if packet.kind == PacketKind.BAD)
        return count(fw.Metrics(), self._stream.metrics, bad=bad)

"""Batch frames: the packed rows of each key group run to their end, without Spark's state."""

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

import fastwin as fw
from fastwin.run.bounded import open_bounded
from fastwin.run.stream import open_plan
from spark_glue.plan.compat import applied_to_groups, is_observation
from spark_glue.plan.frameplan import FramePlan
from spark_glue.plan.outputs import Output, ResultKind
from spark_glue.plan.types import output_schema
from spark_glue.stages.counters import COUNTERS, count, observed
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
    return _results(frame_plan, output, *_opened(frame_plan, batches))


def _run_counted(frame_plan: FramePlan, output: Output, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    stream, packets = _opened(frame_plan, batches)
    for rows in _results(frame_plan, output, stream, packets):
        yield rows.append_column(_COUNTERS, pa.nulls(rows.num_rows, _LIST))
    bad = sum(packet.rows for packet in packets if packet.kind == PacketKind.BAD)
    counters = count(fw.Metrics(), stream.metrics, bad=bad)
    schema = output_schema(output.struct)
    nulls = [pa.nulls(1, field.type) for field in schema]
    counted = pa.array([[counters[counter] for counter in COUNTERS]], _LIST)
    yield pa.RecordBatch.from_arrays([*nulls, counted], names=[*schema.names, _COUNTERS])


def _opened(frame_plan: FramePlan, batches: Iterator[pa.RecordBatch]) -> tuple[fw.Stream, list[Packet]]:
    plan = frame_plan.plan
    opened = open_bounded if frame_plan.until_ms is None else open_plan  # what goes on does not end with time
    stream = opened(plan, coalesce=frame_plan.coalesce)
    return stream, sorted(packet for batch in batches for packet in packets_in(batch))


def _results(
    frame_plan: FramePlan, output: Output, stream: fw.Stream, packets: list[Packet]
) -> Iterator[pa.RecordBatch]:
    stream.advance_processing_time(frame_plan.started_ms)
    for packet in packets:
        if packet.kind == PacketKind.BAD and packet.blob is not None:
            yield output.rows(ResultKind.BAD, decode(packet.blob, output.parts[ResultKind.BAD].schema))
    schema = frame_plan.plan.input_schema
    good = [packet.blob for packet in packets if packet.kind != PacketKind.BAD and packet.blob is not None]
    rows = pa.Table.from_batches([decode(blob, schema) for blob in good], schema)
    yield from output.result_rows(stream.process(rows))  # in one call, as those of a micro-batch
    if frame_plan.until_ms is not None:
        yield from output.result_rows(stream.advance_watermark(frame_plan.until_ms))
        return
    yield from output.result_rows(stream.advance_watermark(fw.MAX_TIMESTAMP))
    yield from output.result_rows(stream.finish_processing_time())

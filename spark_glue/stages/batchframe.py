"""Batch frames: the packed rows of each key group run to their end, without Spark's state."""

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

import fastwin as fw
from fastwin.run.stream import open_plan
from spark_glue.plan.compat import applied_to_groups, is_observation
from spark_glue.plan.frameplan import FramePlan
from spark_glue.plan.outputs import Output, ResultKind
from spark_glue.plan.types import output_schema
from spark_glue.stages.counters import COUNTERS, count, observed
from spark_glue.stages.packets import Packet, PacketKind, decode

__all__ = ["run_batch"]

_COUNTERS = "__fastwin_counters"  # a column of one more row for each key group, taken away again
_LIST = pa.list_(pa.int64())


def run_batch(packed: DataFrame, frame_plan: FramePlan, output: Output, name: str | Observation) -> DataFrame:
    """Returns the result frame of packed rows: what ``spec.run`` gives for all of them.

    name: an Observation takes the counters; text is of no use without a query's progress.
    """
    struct = T.StructType([*output.struct, T.StructField(_COUNTERS, T.ArrayType(T.LongType()))])
    counted = applied_to_groups(packed, "key_group", partial(_run_group, frame_plan, output), struct)
    if is_observation(name):
        counted = observed(counted, name, F.col(_COUNTERS))
    return counted.where(F.col(_COUNTERS).isNull()).drop(_COUNTERS)


def _run_group(frame_plan: FramePlan, output: Output, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    packets = sorted(packet for batch in batches for packet in _packets(batch))
    stream = open_plan(frame_plan.plan, coalesce=frame_plan.coalesce)
    for rows in _results(frame_plan, output, stream, packets):
        yield rows.append_column(_COUNTERS, pa.nulls(rows.num_rows, _LIST))
    bad = sum(packet.rows for packet in packets if packet.kind == PacketKind.BAD)
    counters = count(fw.Metrics(), stream.metrics, bad=bad)
    schema = output_schema(output.struct)
    nulls = [pa.nulls(1, field.type) for field in schema]
    counted = pa.array([[counters[counter] for counter in COUNTERS]], _LIST)
    yield pa.RecordBatch.from_arrays([*nulls, counted], names=[*schema.names, _COUNTERS])


def _results(
    frame_plan: FramePlan, output: Output, stream: fw.Stream, packets: list[Packet]
) -> Iterator[pa.RecordBatch]:
    stream.advance_processing_time(frame_plan.started_ms)
    for packet in packets:
        if packet.kind == PacketKind.BAD:
            if packet.blob is not None:
                yield output.rows(ResultKind.BAD, decode(packet.blob, output.parts[ResultKind.BAD].schema))
        elif packet.blob is not None:
            result = stream.process(pa.Table.from_batches([decode(packet.blob, frame_plan.plan.input_schema)]))
            yield from output.result_rows(result)
    if frame_plan.until_ms is not None:
        yield from output.result_rows(stream.advance_watermark(frame_plan.until_ms))
        return
    yield from output.result_rows(stream.advance_watermark(fw.MAX_TIMESTAMP))
    yield from output.result_rows(stream.finish_processing_time())


def _packets(batch: pa.RecordBatch) -> Iterator[Packet]:
    names = ("mapper", "seq", "kind", "rows", "blob")
    return map(Packet, *(batch.column(name).to_pylist() for name in names))

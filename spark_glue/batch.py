"""Batch frames: the same packed rows, then one bounded run per key group."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

import fastwin as fw
from spark_glue import wire
from spark_glue.job import Job
from spark_glue.progress import observed
from spark_glue.types import output_schema
from spark_glue.unpack import Output
from spark_glue.wire import Packet, PacketKind, ResultKind

__all__ = ["run_frame"]


_COUNTERS = "__fastwin_counters"  # a column of one more row for each key group, taken away again
_LIST = pa.list_(pa.int64())


def run_frame(packed: DataFrame, job: Job, output: Output, name: str | Observation) -> DataFrame:
    """Returns the result frame of packed rows: what ``spec.run`` gives for all of them.

    name: an Observation takes the counters; text is of no use without a query's progress.
    """
    struct = T.StructType([*output.struct, T.StructField(_COUNTERS, T.ArrayType(T.LongType()))])

    # Spark reads the kind of function from its annotations, and takes them from plain functions only.
    def run_group(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _run_group(job, output, batches)

    counted = packed.groupBy("key_group").applyInArrow(run_group, struct)
    if isinstance(name, Observation):
        counted = observed(counted, name, F.col(_COUNTERS))
    return counted.where(F.col(_COUNTERS).isNull()).drop(_COUNTERS)


def _run_group(job: Job, output: Output, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    packets = sorted(packet for batch in batches for packet in _packets(batch))
    stream = job.plan.open(coalesce=job.coalesce)
    for rows in _results(job, output, stream, packets):
        yield rows.append_column(_COUNTERS, pa.nulls(rows.num_rows, _LIST))
    counters = _counters(stream, packets)
    schema = output_schema(output.struct)
    nulls = [pa.nulls(1, field.type) for field in schema]
    counted = pa.array([[counters[counter] for counter in wire.COUNTERS]], _LIST)
    yield pa.RecordBatch.from_arrays([*nulls, counted], names=[*schema.names, _COUNTERS])


def _results(job: Job, output: Output, stream: fw.Stream, packets: list[Packet]) -> Iterator[pa.RecordBatch]:
    stream.advance_processing_time(job.started_ms)
    for packet in packets:
        if packet.kind == PacketKind.BAD:
            if packet.blob is not None:
                yield output.rows(ResultKind.BAD, wire.decode(packet.blob, output.parts[ResultKind.BAD].schema))
        elif packet.blob is not None:
            result = stream.process(pa.Table.from_batches([wire.decode(packet.blob, job.plan.input_schema)]))
            yield from output.result_rows(result)
    yield from output.result_rows(stream.advance_watermark(fw.MAX_TIMESTAMP))
    yield from output.result_rows(stream.finish_processing_time())


def _counters(stream: fw.Stream, packets: list[Packet]) -> dict[str, int]:
    metrics = stream.metrics
    return dict.fromkeys(wire.COUNTERS, 0) | {
        "events": metrics.events,
        "late": metrics.late,
        "dropped": metrics.num_late_records_dropped,
        "bad": sum(packet.rows for packet in packets if packet.kind == PacketKind.BAD),
        "unassigned": metrics.unassigned,
        "fired": metrics.fired,
        "unfired": metrics.unfired,
    }


def _packets(batch: pa.RecordBatch) -> Iterator[Packet]:
    names = ("mapper", "seq", "kind", "rows", "blob")
    return map(Packet, *(batch.column(name).to_pylist() for name in names))

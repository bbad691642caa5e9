"""Batch frames: the same packed rows, then one bounded run per key group."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

import fastwin as fw
from spark_glue import wire
from spark_glue.job import Job
from spark_glue.unpack import Output
from spark_glue.wire import Packet, PacketKind, ResultKind

__all__ = ["run_frame"]


def run_frame(packed: DataFrame, job: Job, output: Output) -> DataFrame:
    """Returns the result frame of packed rows: what ``spec.run`` gives for all of them."""

    # Spark reads the kind of function from its annotations, and takes them from plain functions only.
    def run_group(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _run_group(job, output, batches)

    return packed.groupBy("key_group").applyInArrow(run_group, output.struct)


def _run_group(job: Job, output: Output, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    packets = sorted(packet for batch in batches for packet in _packets(batch))
    stream = job.plan.open(coalesce=job.coalesce)
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


def _packets(batch: pa.RecordBatch) -> Iterator[Packet]:
    names = ("mapper", "seq", "kind", "rows", "blob")
    return map(Packet, *(batch.column(name).to_pylist() for name in names))

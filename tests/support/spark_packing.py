"""Rows packed as a task of Spark packs them, without Spark, and what a stream makes of them."""

import pyarrow as pa

import fastwin as fw
from fastwin.run.replica import open_replica
from spark_glue.plan.frameplan import FramePlan
from spark_glue.stages.pack import Packer
from spark_glue.stages.packets import PacketKind
from tests.support.spark_events import START_MS

__all__ = ["expected", "good", "merged", "packed", "partials"]


def packed(
    frame_plan: FramePlan, table: pa.Table, mapper: int = 3, size: int = 100, now_ms: int = START_MS
) -> list[dict]:
    """Packs a table, given in batches, and returns the packed rows. now_ms: the micro-batch's time."""
    packer = Packer(frame_plan, mapper)
    found = []
    for batch in table.select(frame_plan.packed_schema.names).to_batches(max_chunksize=size):
        now = [pa.array([now_ms * 1_000] * batch.num_rows, pa.timestamp("us", "UTC"))] if frame_plan.asks_time else []
        out = packer.add([*batch.columns, *now])
        if out is not None:
            found.append(out)
    found += packer.finish()
    return [row for batch in found for row in batch.to_pylist()]


def good(rows: list[dict]) -> list[dict]:
    """Returns those that hold rows."""
    return [row for row in rows if row["kind"] == PacketKind.GOOD]


def partials(rows: list[dict]) -> list[dict]:
    """Returns those that hold partial results."""
    return [row for row in rows if row["kind"] == PacketKind.PARTIAL]


def merged(frame_plan: FramePlan, rows: list[dict]) -> list[dict]:
    """What a stream makes of packed partial results."""
    stream = open_replica(frame_plan.plan)
    stream.merge([row["blob"] for row in partials(rows)])
    return sorted(stream.advance_watermark(fw.MAX_TIMESTAMP).main.to_pylist(), key=repr)


def expected(frame_plan: FramePlan, table: pa.Table) -> list[dict]:
    """Returns what a stream makes of the rows themselves."""
    stream = open_replica(frame_plan.plan)
    stream.process(table)
    return sorted(stream.advance_watermark(fw.MAX_TIMESTAMP).main.to_pylist(), key=repr)

"""Packing: a map task's rows, routed to key groups, leave as one blob per key group.

The same packer serves both ways in which Spark hands columns to Python: ``pack_rows`` for mapInArrow, and
``pack_columns`` for an iterator Arrow UDF, which gets columnar scans without a detour through rows.
"""

import time
from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fastwin import batches
from spark_glue import wire
from spark_glue.job import Job
from spark_glue.keygroups import LEDGER_ID, ids
from spark_glue.types import conform, spark_struct
from spark_glue.wire import PacketKind

__all__ = ["FLUSH_BYTES", "FLUSH_ROWS", "Packer", "pack_frame"]

FLUSH_ROWS = 262_144
FLUSH_BYTES = 64 << 20

_PACKED_STRUCT = spark_struct(wire.PACKED)
_LIST = pa.list_(pa.struct(list(wire.PACKED)))


class Packer:
    """Takes the record batches of one task and returns packed rows, at most FLUSH_ROWS input rows at a time.

    mapper: the number of the task, which orders the blobs of a key group. now_ms: the clock for the skew check.
    """

    def __init__(self, job: Job, mapper: int, now_ms: int) -> None:
        self._job = job
        self._plan = job.plan
        self._mapper = mapper
        self._ids = ids(job.key_groups)
        self._latest = None if job.max_future_skew_ms is None else now_ms + job.max_future_skew_ms
        self._buffer: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._seq = 0
        self._newest: int | None = None

    def add(self, columns: list[pa.Array]) -> pa.RecordBatch | None:
        """Takes the columns of a batch, in the job's order; returns packed rows when enough has been gathered."""
        schema = self._job.packed_schema
        arrays = [conform(column, field.type) for column, field in zip(columns, schema, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        self._buffer.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        return self._flush() if self._rows >= FLUSH_ROWS or self._bytes >= FLUSH_BYTES else None

    def finish(self) -> list[pa.RecordBatch]:
        """Returns the packed rows that are left, and those that every task sends once."""
        packed = [self._flush()] if self._rows else []
        if self._seq and self._job.streaming:
            packed.append(wire.packed_batch(self._closing_rows()))
        return [batch for batch in packed if batch is not None]

    def _closing_rows(self) -> list[wire.PackedRow]:
        rows = [self._row(LEDGER_ID, PacketKind.LEDGER, 0, None)]
        if self._job.carrier and self._newest is not None:
            # One millisecond less than the newest: Spark subtracts the delay alone, Flink's strategy one more.
            carrier_us = (self._newest - 1) * 1000
            rows.append((LEDGER_ID, self._mapper, self._seq, PacketKind.LEDGER, 0, None, carrier_us))
        return rows

    def _flush(self) -> pa.RecordBatch | None:
        table = self._job.input_rows(self._buffer).combine_chunks()
        self._buffer, self._rows, self._bytes = [], 0, 0
        good, bad = self._checked(table)
        rows = self._route(good) + self._bad_rows(bad, table.num_rows - good.num_rows)
        self._seq += 1
        return wire.packed_batch(rows) if rows else None

    def _checked(self, table: pa.Table) -> tuple[pa.Table, pa.Table]:
        earliest = 0 if self._job.streaming else None  # Spark's watermark starts in 1970
        return batches.check_rows(table, self._plan, earliest_ms=earliest, latest_ms=self._latest)

    def _route(self, table: pa.Table) -> list[wire.PackedRow]:
        if table.num_rows == 0:
            return []
        if self._job.carrier:
            newest = int(batches.event_times(table[self._job.time_column]).max())
            self._newest = newest if self._newest is None else max(newest, self._newest)
        table = table.select(self._plan.input_columns)
        groups = self._job.key_groups
        hashes = batches.key_hash(table, list(self._job.spec.keys))
        group = (hashes % np.uint64(groups)).astype(np.uint16)
        sizes = np.bincount(group, minlength=groups)
        order = np.argsort(group, kind="stable")  # a radix sort for 16 bits
        batch = table.take(pa.array(order)).combine_chunks().to_batches()[0]
        ends = np.cumsum(sizes)
        return [
            self._row(int(self._ids[g]), PacketKind.GOOD, size, wire.encode(batch.slice(end - size, size)))
            for g, (size, end) in enumerate(zip(sizes.tolist(), ends.tolist(), strict=True))
            if size
        ]

    def _bad_rows(self, bad: pa.Table, count: int) -> list[wire.PackedRow]:
        if count == 0:
            return []
        group_id = int(self._ids[self._mapper % self._job.key_groups])
        if self._plan.bad_schema is None:
            return [self._row(group_id, PacketKind.BAD, count, None)]
        (batch,) = bad.combine_chunks().to_batches()
        return [self._row(group_id, PacketKind.BAD, count, wire.encode(batch))]

    def _row(self, group_id: int, kind: PacketKind, rows: int, blob: pa.Buffer | None) -> wire.PackedRow:
        return group_id, self._mapper, self._seq, kind, rows, blob, None


def pack_frame(df: DataFrame, job: Job, columnar: bool) -> DataFrame:
    """Returns the packed rows of a frame, with the columns of ``wire.PACKED``.

    columnar: hand over columns through an Arrow UDF; right for every source, and faster where the scan is columnar.
    """
    columns = [F.col(quoted(name)) for name in job.columns]
    if not columnar:
        return df.select(*columns).mapInArrow(partial(_pack_rows, job), _PACKED_STRUCT)
    packer = F.arrow_udf(partial(_pack_columns, job), T.ArrayType(_PACKED_STRUCT), F.ArrowUDFType.SCALAR_ITER)
    # Without this mark the filter would make Spark run it twice.
    packed = df.select(packer.asNondeterministic()(*columns).alias("packed")).where("packed is not null")
    return packed.select(F.explode("packed").alias("packed")).select("packed.*")


def quoted(name: str) -> str:
    """Returns a column name as Spark takes it literally, dots and all."""
    return "`" + name.replace("`", "``") + "`"


def _new_packer(job: Job) -> Packer:
    context = TaskContext.get()
    return Packer(job, context.partitionId() if context else 0, time.time_ns() // 1_000_000)


def _pack_rows(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    packer = _new_packer(job)
    for batch in batches:
        if batch.num_rows:
            packed = packer.add(batch.columns)
            if packed is not None:
                yield packed
    yield from packer.finish()


def _pack_columns(job: Job, batches: Iterator[tuple[pa.Array, ...] | pa.Array]) -> Iterator[pa.Array]:
    # One value per input row: all are null, but for the last of a batch, which takes what is ready. A batch is held
    # back until the next one has come, so that the task's last row can take the rest.
    packer = _new_packer(job)
    held: tuple[int, list[pa.RecordBatch]] | None = None
    for columns in batches:
        arrays = list(columns) if isinstance(columns, tuple) else [columns]
        if len(arrays[0]) == 0:
            continue
        if held is not None:
            yield _on_last_row(*held)
        packed = packer.add(arrays)
        held = len(arrays[0]), [] if packed is None else [packed]
    if held is not None:
        yield _on_last_row(held[0], held[1] + packer.finish())


def _on_last_row(count: int, packed: list[pa.RecordBatch]) -> pa.Array:
    if not packed:
        return pa.nulls(count, _LIST)
    rows = pa.concat_batches(packed).to_struct_array()
    ends = np.zeros(count + 1, np.int32)
    ends[count] = len(rows)
    empty = np.ones(count, np.bool_)
    empty[-1] = False
    return pa.ListArray.from_arrays(pa.array(ends), rows, type=_LIST, mask=pa.array(empty))

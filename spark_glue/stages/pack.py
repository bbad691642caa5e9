"""Packing: the rows of a map task leave as one blob for each share, aggregated first where the spec allows.

One packer serves both ways in which Spark hands batches to Python: ``_pack_rows`` for mapInArrow, and ``_pack_columns``
for an iterator Arrow UDF, which gets the columns of a columnar scan.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise, zip_longest

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fastwin import MIN_TIMESTAMP
from fastwin.columns.checking import Limits, bad_table, check_rows
from fastwin.columns.keys import key_hash
from fastwin.columns.units import warn_of_unit
from fastwin.core.keys.keycolumns import group_rows
from fastwin.operators.partials import Feeder
from fastwin.times import LAST_DATE_MS
from spark_glue.plan.catalyst import prefers_columns, quoted
from spark_glue.plan.compat import spark_struct_of
from spark_glue.plan.eventtimes import time_where_ahead
from spark_glue.plan.frameplan import FramePlan
from spark_glue.plan.keygroups import RECORD_ID, ids
from spark_glue.stages.packets import BLOB_BYTES, PACKED, PackedRow, PacketKind, cuts, encode, packed_batch
from spark_glue.stages.worker import is_first_batch, settle, shares_of

__all__ = [
    "FLUSH_BYTES",
    "FLUSH_ROWS",
    "FLUSH_ROWS_AT_ONCE",
    "LARGE_BLOB_BYTES",
    "MOST_HELD",
    "MOST_HELD_OF_ALL",
    "MOST_PARTIALS",
    "MOST_PARTIAL_BYTES",
    "Packer",
    "new_packer",
    "pack_frame",
]

FLUSH_ROWS = 262_144
"""A task packs its rows when it holds so many."""
FLUSH_ROWS_AT_ONCE = 1 << 20
"""The same, for partial results that are made of many rows at once."""
FLUSH_BYTES = 64 << 20
"""The same, in bytes."""
MOST_PARTIALS = 1 << 20
"""A task ships its partial results when it holds more than so many."""
MOST_PARTIAL_BYTES = 256 << 20
"""The same, in bytes: sketches and lists may take thousands of them for each partial result."""
LARGE_BLOB_BYTES = 32 << 20
"""How many bytes the first task may send a share in larger blobs, each of which costs less than many small ones.

The task with number ``n`` may send an ``n + 1``-th of that, since there are at least so many tasks: 0.3 GB from 10,000.
"""
MOST_HELD = 0.7
"""A task of a stream that makes more partial results for a row than this ships rows instead."""
MOST_HELD_OF_ALL = 0.1
"""The same for a task of a batch frame, as its first flush says: a run of all rows costs less than two steps, unless
these have far fewer to hand on."""

_PACKED_STRUCT = spark_struct_of(PACKED)
_LIST = pa.list_(pa.struct(list(PACKED)))


class Packer:
    """Takes the record batches of one task and returns packed rows, of many input rows at a time.

    mapper: the number of the task, which orders the blobs of a key group. shares: into how many the key groups are
    divided; None: each is on its own. newest: a time that counts as the newest until there is a newer one, ms.
    """

    def __init__(
        self, frame_plan: FramePlan, mapper: int, shares: int | None = None, newest: int | None = None
    ) -> None:
        self._frame_plan = frame_plan
        self._plan = frame_plan.plan
        self._mapper = mapper
        # A stream's rows go to shares, the key groups of a partition together; those of a batch frame to key groups,
        # one after the other, because a run holds all of its input.
        self._groups = frame_plan.key_groups if shares is None else shares
        self._ids = ids(self._groups)
        # Spark's watermark starts in 1970, so a stream takes nothing older. How far ahead rows may be counts as soon as
        # one has brought the micro-batch's time: none before is too far ahead.
        side = None if frame_plan.join_input is None else frame_plan.join_input.side
        earliest_ms = 0 if frame_plan.streaming else MIN_TIMESTAMP
        self._limits = frame_plan.plan.limits(Limits(earliest_ms=earliest_ms, side=side))
        self._feeder = self._new_feeder()
        self._fed = self._made = 0
        self._large = LARGE_BLOB_BYTES // (mapper + 1)  # bytes for a share that may still go in larger blobs
        self._buffer: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._seq = 0
        self._newest = newest

    def _new_feeder(self) -> Feeder | None:
        return self._plan.new_feeder(self._frame_plan.key_groups, self._groups)

    def add(self, columns: list[pa.Array]) -> pa.RecordBatch | None:
        """Takes the columns of a batch, in the plan's order; returns packed rows when enough has been gathered.

        Where the plan asks for the micro-batch's time, one more column holds it: in each row that may be too far ahead
        of it, else it may be null.
        """
        if self._frame_plan.asks_time:
            *columns, times = columns
            if self._limits.now_ms is None and times.null_count < len(times):
                now_ms = times.drop_null().cast(pa.int64())[0].as_py() // 1_000
                self._limits = replace(
                    self._limits, max_future_skew_ms=self._frame_plan.max_future_skew_ms, now_ms=now_ms
                )
        batch = self._frame_plan.packed_rows(columns)
        self._buffer.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        enough = FLUSH_ROWS_AT_ONCE if self._feeder is not None and self._feeder.at_once else FLUSH_ROWS
        return self._flush() if self._rows >= enough or self._bytes >= FLUSH_BYTES else None

    def finish(self) -> list[pa.RecordBatch]:
        """Returns the packed rows that are left, and those that every task sends once."""
        packed = [self._flush()] if self._rows else []
        if self._feeder is not None and self._feeder.rows:
            packed.append(packed_batch(self._partial_rows()))
        if self._seq and self._frame_plan.streaming:
            packed.append(packed_batch(self._closing_rows()))
        return [batch for batch in packed if batch is not None]

    def _closing_rows(self) -> list[PackedRow]:
        if self._newest is None or not self._frame_plan.carrier:
            return [self._row(RECORD_ID, PacketKind.RECORD, 0, None)]
        told = self._newest, None, None
        if self._frame_plan.idle_ms is None:
            rows: list[PackedRow] = [(RECORD_ID, self._mapper, self._frame_plan.input, PacketKind.RECORD, *told)]
            # One millisecond less than the newest: Spark subtracts the delay alone, Flink's strategy one more.
            carrier_us = min(self._newest - 1, LAST_DATE_MS) * 1000
            rows.append((RECORD_ID, self._mapper, self._seq, PacketKind.RECORD, 0, None, carrier_us))
            return rows
        rows = [self._row(RECORD_ID, PacketKind.RECORD, 0, None)]
        kind = PacketKind.CLOCK
        return rows + [(int(one), self._mapper, self._frame_plan.input, kind, *told) for one in self._ids]

    def _flush(self) -> pa.RecordBatch | None:
        rows = self._frame_plan.input_rows(self._buffer)
        self._buffer, self._rows, self._bytes = [], 0, 0
        packed = [row for batch in rows for row in self._packed(batch)]
        return packed_batch(packed) if packed else None

    def _packed(self, rows: pa.RecordBatch) -> list[PackedRow]:
        times, reasons = self._check(rows)
        rows = rows.select(self._plan.input_columns)
        packed: list[PackedRow] = []
        if reasons is not None:
            packed += self._bad_rows(rows, reasons)
            good = np.flatnonzero(reasons == 0)
            rows, times = rows.take(pa.array(good)), times[good]
        if rows.num_rows:
            newest = int(times.max())
            if newest > MIN_TIMESTAMP:
                self._newest = newest if self._newest is None else max(newest, self._newest)
            packed += self._route(rows) if self._feeder is None else self._feed(rows, times)
        self._seq += 1
        return packed

    def _feed(self, rows: pa.RecordBatch, times: NDArray[np.int64]) -> list[PackedRow]:
        """Gives rows to the feeder; returns its results when there are enough, or no more are to come.

        From a feeder that takes rows only once, these are the results of each flush.
        """
        assert self._feeder is not None
        self._feeder.add(self._plan.batch(rows, times))
        if not self._fed and not self._frame_plan.streaming and self._feeder.rows > MOST_HELD_OF_ALL * rows.num_rows:
            self._feeder = None
            return self._route(rows)
        self._fed += rows.num_rows
        if self._made + self._feeder.rows > MOST_HELD * self._fed and self._fed >= FLUSH_ROWS:
            packed = self._partial_rows()
            self._feeder = None  # hardly any two rows meet: as rows, the others cost less
            return packed
        full = self._feeder.rows > MOST_PARTIALS or self._feeder.nbytes > MOST_PARTIAL_BYTES
        return self._partial_rows() if self._feeder.at_once or full else []

    def _partial_rows(self) -> list[PackedRow]:
        """Returns the feeder's partial results as packed rows, and takes another feeder."""
        assert self._feeder is not None
        self._made += self._feeder.rows
        partials = self._feeder.partials(max(self._large, BLOB_BYTES), BLOB_BYTES)
        self._send(max((len(one.chunk) for one in partials), default=0))
        self._feeder = self._new_feeder()
        return [
            self._row(int(self._ids[one.part]), PacketKind.PARTIAL, one.elements, pa.py_buffer(one.chunk))
            for one in partials
        ]

    def _check(self, rows: pa.RecordBatch) -> tuple[NDArray[np.int64], NDArray[np.uint8] | None]:
        spec, told = self._frame_plan.spec, self._frame_plan.named_time or ""
        times, reasons = check_rows(rows, spec.time_column, spec.bad_row_policy, self._limits, told=told)
        if self._seq == 0 and reasons is None and self._frame_plan.guesses_unit:
            warn_of_unit(told, times)
        return times, reasons

    def _route(self, rows: pa.RecordBatch) -> list[PackedRow]:
        hashes = key_hash(rows, self._frame_plan.spec.keys)
        order, bounds = group_rows(hashes % np.uint64(self._frame_plan.key_groups), self._groups)
        rows = rows.take(pa.array(order))  # within a group, rows keep their order
        spans = [(begin, end) for begin, end in pairwise(bounds.tolist())]
        sizes = [rows.slice(begin, end - begin).nbytes for begin, end in spans]
        most = self._send(max(sizes))
        packed = []
        for at, blobs in enumerate(zip_longest(*map(partial(cuts, rows, most), spans))):
            self._seq += at > 0  # blobs are used in the order of these
            for identity, cut in zip(self._ids, blobs, strict=True):
                if cut is not None:
                    packed.append(self._row(int(identity), PacketKind.GOOD, cut.num_rows, encode(cut)))
        return packed

    def _send(self, nbytes: int) -> int | None:
        """Returns into blobs of how many bytes so many for a share are cut; None: they may be one blob.

        If that is a larger one, fewer may follow.
        """
        if nbytes <= BLOB_BYTES:
            return None
        if nbytes > self._large:
            return BLOB_BYTES
        self._large -= nbytes
        return None

    def _bad_rows(self, rows: pa.RecordBatch, reasons: NDArray[np.uint8]) -> list[PackedRow]:
        group_id = int(self._ids[self._mapper % self._groups])
        if self._plan.bad_schema is None:
            return [self._row(group_id, PacketKind.BAD, int(np.count_nonzero(reasons)), None)]
        bad, packed = bad_table(rows, reasons), []
        for at, cut in enumerate(cuts(bad, self._send(bad.nbytes), (0, bad.num_rows))):
            self._seq += at > 0
            packed.append(self._row(group_id, PacketKind.BAD, cut.num_rows, encode(cut)))
        return packed

    def _row(self, group_id: int, kind: PacketKind, rows: int, blob: pa.Buffer | None) -> PackedRow:
        return group_id, self._mapper, self._seq, kind, rows, blob, None


def pack_frame(df: DataFrame, frame_plan: FramePlan) -> DataFrame:
    """Returns the packed rows of a frame, with the columns of ``PACKED``.

    Either way gives the same over every source: columns go through an Arrow UDF, and rows through mapInArrow.
    """
    names = frame_plan.packed_schema.names
    columnar = prefers_columns(df, names)
    # The packer goes by their order; Spark's mapInArrow cannot take all names that a column may have.
    columns = [F.col(quoted(name)).alias(f"c{i}") for i, name in enumerate(names)]
    if frame_plan.asks_time:  # in a stream this is the time that the micro-batch has in the checkpoint
        time, skew_ms = frame_plan.time_column, frame_plan.max_future_skew_ms
        assert time is not None
        assert skew_ms is not None
        now = F.current_timestamp() if columnar else time_where_ahead(df, time, frame_plan.spec.time_unit, skew_ms)
        columns.append(now.alias("now"))
    if not columnar:
        return df.select(*columns).mapInArrow(partial(_pack_rows, frame_plan), _PACKED_STRUCT)

    # Spark reads the kind of function from its annotations, and takes them from plain functions only.
    def pack(inputs: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        return _pack_columns(frame_plan, inputs)

    packer = F.arrow_udf(pack, T.ArrayType(_PACKED_STRUCT))
    # Without this mark the filter would make Spark run it twice.
    packed = df.select(packer.asNondeterministic()(*columns).alias("packed")).where("packed is not null")
    return packed.select(F.explode("packed").alias("packed")).select("packed.*")


def new_packer(frame_plan: FramePlan, mapper: int | None = None) -> Packer:
    """Returns the packer of a task. mapper: see ``Packer``; None: the number of the task's partition."""
    settle()
    if mapper is None:
        context = TaskContext.get()
        mapper = context.partitionId() if context else 0
    shares = shares_of(frame_plan.key_groups) if frame_plan.streaming else None
    # The watermark then keeps what history has brought. A later start may be given more of it, which counts no more.
    return Packer(frame_plan, mapper, shares, frame_plan.history_newest_ms if is_first_batch() else None)


def _pack_rows(frame_plan: FramePlan, inputs: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    packer = new_packer(frame_plan)
    for batch in inputs:
        if batch.num_rows:
            packed = packer.add(batch.columns)
            if packed is not None:
                yield packed
    yield from packer.finish()


def _pack_columns(frame_plan: FramePlan, inputs: Iterator[tuple[pa.Array, ...] | pa.Array]) -> Iterator[pa.Array]:
    # One value per input row: all are null, but for the last of a batch, which takes what is ready. A batch is held
    # back until the next one has come, so that the task's last row can take the rest.
    packer = new_packer(frame_plan)
    held: tuple[int, list[pa.RecordBatch]] | None = None
    for columns in inputs:
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

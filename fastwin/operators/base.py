"""What the operators share: the protocol, a validated batch, the configuration, results, saved rows."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin import statecodec
from fastwin.aggregates import Aggregate
from fastwin.arrowbuffers import from_int64, from_text, from_values, take_rows, text_values
from fastwin.core.accumulators import AccumulatorSet
from fastwin.core.columns import take
from fastwin.core.keys import KeyTable
from fastwin.core.rows import RowStore
from fastwin.describe import describe
from fastwin.errors import StateError
from fastwin.keycodec import EncodedKeys, KeyCodec
from fastwin.operators.refresh import Refresh
from fastwin.statespec import StateAggregate, StateSpec
from fastwin.valuecolumns import ValueColumn

__all__ = ["TIME_TYPE", "Batch", "Config", "Counters", "Fed", "Operator", "ResultColumn"]

TIME_TYPE = pa.timestamp("ms", tz="UTC")


@dataclass(frozen=True)
class Batch:
    """Elements as kernels take them; made and checked by ``fastwin.batches``.

    keys: encoded key columns. times: int64[n], ms. columns: what accumulators are fed with. rows: the same elements
    as they came in, where Python code reads them.
    """

    keys: EncodedKeys
    times: NDArray[np.int64]
    columns: list[ValueColumn]
    rows: pa.RecordBatch | None = None

    def __len__(self) -> int:
        return len(self.times)

    def select(self, rows: NDArray) -> "Batch":
        """Returns the elements whose indices or marks (bool[n]) are given, in that order."""
        if rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        taken = None if self.rows is None else take_rows(self.rows, rows)
        return Batch(KeyCodec.select(self.keys, rows), take(self.times, rows), self.columns_at(rows), taken)

    def columns_at(self, rows: NDArray[np.int64]) -> list[ValueColumn]:
        """Returns what accumulators are fed with, of the elements whose indices are given, in that order."""
        return [
            KeyCodec.select_column(column, rows) if len(column) == 3 else _numbers_at(column, rows)
            for column in self.columns
        ]


def _numbers_at(column: ValueColumn, rows: NDArray[np.int64]) -> ValueColumn:
    values, valid = column
    taken = None if values is None else take(values.view(np.int64), rows).view(values.dtype)
    return taken, None if valid is None else valid.take(rows)


@dataclass(frozen=True)
class ResultColumn:
    """An aggregate in a spec: its name in the result, the types of its columns, and where its inputs are.

    at: positions among the inputs of the whole spec, see ``Plan.inputs``.
    """

    name: str
    aggregate: Aggregate
    kinds: tuple[pa.DataType, ...]
    at: tuple[int, ...]

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, self.aggregate.result_type(*self.kinds))

    def to_arrow(self, result: tuple) -> pa.Array:
        """Returns results as Arrow's; result: see Accumulator.result."""
        kind, found, valid = self.field.type, result[0], result[-1]
        if len(result) == 3:
            return from_text(found, result[1], valid, kind)
        if pa.types.is_floating(kind):
            return from_values(found.astype(f"f{kind.bit_width // 8}", copy=False), valid, kind)
        return from_int64(found.view(np.int64), valid, kind)

    def for_state(self) -> StateAggregate:
        """Returns what state depends on."""
        cells = self.aggregate.accumulator(self.kinds, self.at).cells
        return StateAggregate(self.name, describe(self.aggregate), ", ".join(map(str, self.kinds)) or "none", cells)


@dataclass(frozen=True)
class Config:
    """All that an operator is told by the planner.

    lateness_ms: how long after its end a window is kept. coalesce: whether the elements of one
    ``process`` call have no order among each other, and late firings are one per (key, window) and call.
    fingerprint: 16 bytes that tell the spec; text: the spec in words, for errors. input_schema: the
    input's columns as ``batches.schema_to_text`` gives them, kept in the state so that it can be read alone. state:
    what the state depends on, kept in it as well.
    """

    codec: KeyCodec
    results: tuple[ResultColumn, ...]
    lateness_ms: int
    coalesce: bool
    fingerprint: bytes
    text: str
    input_schema: str
    state: StateSpec

    def encode_state(
        self, kind: Any, watermark: int, tables: dict[str, pa.Table], objects: bytes | None = None, **more: Any
    ) -> bytes:
        """Returns a chunk of state; see ``statecodec``. objects: pickled user state. more: further small values."""
        meta = {"watermark": watermark, "spec": self.state.to_json(), "input_schema": self.input_schema, **more}
        return statecodec.encode(statecodec.Chunk(kind, meta, tables, objects), self.fingerprint)

    @property
    def main_schema(self) -> pa.Schema:
        """Schema of the main result: key columns, window bounds, aggregates."""
        bounds = [pa.field("window_start", TIME_TYPE), pa.field("window_end", TIME_TYPE)]
        return pa.schema([*self.codec.out_fields, *bounds, *(column.field for column in self.results)])

    def new_accumulators(self, head_cells: int = 3) -> AccumulatorSet:
        """Returns fresh kernels for the aggregates."""
        members = [column.aggregate.accumulator(column.kinds, column.at) for column in self.results]
        return AccumulatorSet(members, head_cells)

    def rows_to_result(
        self, keys: KeyTable, accumulators: AccumulatorSet, rows: RowStore, slots: NDArray[np.int32], ends: NDArray
    ) -> pa.RecordBatch:
        """Returns the result rows of fired windows: those at ``slots``, ending at ``ends`` (int64[n], ms)."""
        return self.result(keys, rows.keys(slots), rows.starts(slots), ends, self.values_of(accumulators, rows, slots))

    def result(
        self, keys: KeyTable, ids: NDArray[np.int32], starts: NDArray, ends: NDArray, values: list[pa.Array]
    ) -> pa.RecordBatch:
        """Returns result rows, from key ids, bounds of windows (int64[n], ms) and the columns of the aggregates."""
        bounds = [from_values(starts, None, TIME_TYPE), from_values(ends, None, TIME_TYPE)]
        return pa.RecordBatch.from_arrays([*self.codec.decode(keys, ids), *bounds, *values], schema=self.main_schema)

    def values_of(self, accumulators: AccumulatorSet, rows: RowStore, slots: NDArray[np.int32]) -> list[pa.Array]:
        """Returns the columns of the aggregates for some rows."""
        found = accumulators.results(rows, slots)
        return [column.to_arrow(result) for column, result in zip(self.results, found, strict=True)]


@dataclass
class Counters:
    """What has happened to elements and windows since the operator was made."""

    events: int = 0
    num_late_records_dropped: int = 0
    unassigned: int = 0
    fired: int = 0
    unfired: int = 0


@dataclass
class Fed:
    """What came of one ``process`` call: result rows, and the elements that were late (bool[n]; None: none)."""

    main: list[pa.RecordBatch] = field(default_factory=list)
    late: NDArray[np.bool_] | None = None


class Operator(Protocol):
    """What the aligned, session and general operators offer to those who run them."""

    watermark: int
    counters: Counters

    def process(self, batch: Batch) -> Fed:
        """Takes elements in order."""

    def advance_watermark(self, watermark: int) -> list[pa.RecordBatch]:
        """Fires and cleans what is due; a watermark that does not advance is ignored."""

    def next_timer(self) -> int | None:
        """Returns a watermark, ms, below which nothing fires or is cleaned; None: nothing is waiting."""

    def snapshot(self) -> bytes:
        """Returns all state as one chunk."""

    def delta(self, refresh: Refresh | None = None) -> bytes:
        """Returns the state changed since the last snapshot() or delta() as one chunk.

        Its meta holds ``rows``, how many there are, and ``last_end``, the last end of a window that they are part of
        (null: there is none; missing: not known). With ``refresh``, unchanged rows are repeated, and ``refreshed`` says
        of how many groups.
        """

    def apply(self, chunks: list[bytes]) -> None:
        """Takes the deltas of an operator that went on from this one's state; a fresh one takes its first ones, too.

        Deltas may be missing if by the last one's watermark all their windows are cleaned, or if refreshes have
        repeated all rows since.
        """

    def restore(self, chunks: list[bytes]) -> None:
        """Puts a fresh operator into the state of one snapshot and the deltas after it."""

    def open_windows(self) -> int:
        """Counts (key, window) pairs that have contents."""

    @property
    def state_rows(self) -> int:
        """Rows of state held."""

    @property
    def state_bytes(self) -> int:
        """Bytes allocated for state."""

    def _check(self) -> None:
        """Raises AssertionError where an invariant does not hold."""


def save_rows(
    codec: KeyCodec, keys: KeyTable, rows: RowStore, slots: NDArray[np.int32], cells: dict[str, int], first_cell: int
) -> dict[str, pa.Table]:
    """Returns rows of a store as tables ``keys`` (the distinct keys) and ``rows`` (which point into it).

    cells: head cells to keep, by column name. first_cell: where the accumulators begin.
    """
    ids, key_of = _by_appearance(rows.keys(slots), keys.top)
    table = row_cells(rows, slots, cells, first_cell).add_column(0, "key", pa.array(key_of))
    return {"keys": key_rows(codec, keys, ids), "rows": table}


def _by_appearance(held: NDArray[np.int32], top: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Returns the distinct ones of ids below ``top`` in the order in which they appear, and where each of ``held`` is.

    So rows of which each has another key, or which lie key by key, have places that tell nothing and take no bytes.
    """
    count = np.arange(len(held), dtype=np.int32)
    if len(held) < top // 32:  # a small delta of a large state: nothing as large as all keys is touched
        _, first_at, inverse = np.unique(held, return_index=True, return_inverse=True)
        first = first_at.astype(np.int32)[inverse]
    else:
        first_of = np.empty(top, dtype=np.int32)
        first_of[held[::-1]] = count[::-1]
        first = first_of[held]
    new = first == count
    return held[new], (np.cumsum(new, dtype=np.int32) - np.int32(1))[first]


def row_cells(rows: RowStore, slots: NDArray[np.int32], cells: dict[str, int], first_cell: int) -> pa.Table:
    """Returns rows of a store as a table without their keys. The rest is as in save_rows()."""
    wanted = {**cells, **{f"c{cell}": cell for cell in range(first_cell, rows.stride // 8)}}
    plain = {name: cell for name, cell in wanted.items() if cell not in rows.owned_cells}
    found = dict(zip(plain, rows.gather(slots, np.array(list(plain.values()), dtype=np.int32)), strict=True))
    columns: dict[str, Any] = {"bits": rows.bits(slots)}
    for name, cell in wanted.items():
        columns[name] = found[name] if name in plain else _blobs(*rows.blobs(slots, cell))
    return pa.table(columns)


def _blobs(offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> pa.Array:
    return from_text(offsets, data, None, pa.large_binary())


def key_rows(codec: KeyCodec, keys: KeyTable, ids: NDArray[np.int32]) -> pa.Table:
    """Returns the key columns of ids; without key columns, a table of as many empty rows."""
    columns = codec.decode(keys, ids)
    count = pa.array(np.zeros(len(ids), dtype=np.int8))
    return pa.table([count, *columns], names=["_", *(f"k{i}" for i in range(len(columns)))])


def load_keys(codec: KeyCodec, keys: KeyTable, saved: pa.Table) -> NDArray[np.int32]:
    """Returns the ids of saved keys, interned anew."""
    columns = [column.combine_chunks() for column in saved.columns[1:]]
    kinds = [field.type for field in codec.out_fields]
    if [column.type for column in columns] != kinds:
        raise StateError(f"state: key columns of {[str(c.type) for c in columns]}, the spec's are {[*map(str, kinds)]}")
    plain = KeyCodec(tuple(codec.out_fields))
    return KeyCodec.intern(keys, plain.encode(columns, saved.num_rows))


def load_rows(tables: dict[str, pa.Table], ids: NDArray[np.int32], wanted: list[str]) -> dict[str, NDArray]:
    """Returns the saved rows as numpy columns: ``key`` as ids, ``bits`` and the ``wanted`` ones as int64[n].

    What cells own comes as Arrow's large_binary.
    """
    saved = tables["rows"]
    if saved.column_names != ["key", "bits", *wanted]:
        raise StateError(f"state: columns {saved.column_names}, the spec's rows have {['key', 'bits', *wanted]}")
    found = {name: saved[name].combine_chunks() for name in saved.column_names}
    columns = {
        name: column if pa.types.is_large_binary(column.type) else column.to_numpy() for name, column in found.items()
    }
    positions = columns["key"]
    if len(positions) and not 0 <= positions.min() <= positions.max() < len(ids):
        raise StateError(f"state: rows point to keys {positions.min()} to {positions.max()}, of {len(ids)}")
    columns["key"] = ids[positions]
    return columns


def some_rows(columns: dict[str, Any], wanted: NDArray[np.bool_]) -> dict[str, Any]:
    """Returns those of the rows of load_rows() that are marked."""
    if wanted.all():
        return columns
    mask = pa.array(wanted)
    return {
        name: column.filter(mask) if isinstance(column, pa.Array) else column[wanted]
        for name, column in columns.items()
    }


def row_blocks(columns: dict[str, Any], most: int) -> list[dict[str, Any]]:
    """Returns the rows of load_rows() in blocks of at most so many, which copy nothing."""
    rows = len(columns["key"])
    return [{name: column[at : at + most] for name, column in columns.items()} for at in range(0, rows, most)]


def fill_rows(
    accumulators: AccumulatorSet, rows: RowStore, slots: NDArray[np.int32], columns: dict[str, Any], first_cell: int
) -> None:
    """Puts saved cells into rows, from ``first_cell`` on. Raises StateError where they cannot be the accumulators'."""
    rows.set_bits(slots, columns["bits"])
    plain = []
    for cell in range(first_cell, rows.stride // 8):
        saved = columns[f"c{cell}"]
        if isinstance(saved, pa.Array) != (cell in rows.owned_cells):
            raise StateError(f"state: cell {cell} of the rows is of another kind than the spec's")
        if isinstance(saved, pa.Array):
            offsets, data = text_values(saved)
            rows.set_blobs(slots, cell, offsets.astype(np.int64, copy=False), data)
        else:
            plain.append(cell)
    rows.set_cells(slots, np.array(plain, dtype=np.int32), [columns[f"c{cell}"] for cell in plain])
    try:
        accumulators.adopt_rows(rows, slots)
    except ValueError as problem:
        raise StateError(f"state: {problem}") from problem


def read_chunks(
    chunks: list[bytes], config: Config, deltas: bool = False, partial: bool = False
) -> list[statecodec.Chunk]:
    """Decodes the chunks of a restore: one snapshot, then deltas. Raises StateError for anything else.

    deltas: the first one may be a delta, too. partial: they are partial results, which deltas are not.
    """
    decoded = [statecodec.decode(chunk, config.fingerprint, config.text) for chunk in chunks]
    kinds = [chunk.kind for chunk in decoded]
    if kinds[1:] != ["delta"] * (len(kinds) - 1) or (kinds[:1] != ["snapshot"] and not (deltas or partial)):
        raise StateError(f"state: takes one snapshot and then deltas, got {kinds}")
    for chunk in decoded:
        if "rows" not in chunk.tables or ("elements" in chunk.tables["rows"].column_names) != partial:
            raise StateError("state: no partial results" if partial else "state: partial results, or none at all")
        if chunk.meta.get("spec") != config.state.to_json():
            config.state.check_follows(StateSpec.from_json(chunk.meta.get("spec")), None)
    return decoded

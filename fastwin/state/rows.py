"""Rows of a store as the tables of a chunk, and back."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.buffers import aligned, from_text, in_one, roomy_text, text_values
from fastwin.columns.keys import KeyCodec
from fastwin.core.accumulators.accumulator_set import AccumulatorSet
from fastwin.core.accumulators.exchange import adopt_rows, tidy_rows
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.memory.ordering import begins_of
from fastwin.core.rows.rowstore import RowStore
from fastwin.errors import StateError
from fastwin.state.chunks import Chunk

__all__ = [
    "by_appearance",
    "fed_meta",
    "feed_behind",
    "fill_rows",
    "key_rows",
    "load_keys",
    "load_rows",
    "row_blocks",
    "row_cells",
    "save_rows",
    "some_rows",
]

_WIDE: Final = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


def save_rows(
    codec: KeyCodec,
    keys: KeyTable,
    accumulators: AccumulatorSet,
    rows: RowStore,
    slots: NDArray[np.int32],
    cells: dict[str, int],
    first_cell: int,
) -> dict[str, pa.Table]:
    """Returns rows of a store as tables ``keys`` (the distinct keys) and ``rows`` (which point into it).

    accumulators: those of the rows, which are tidied: only so can another operator take them in, and equal rows have
    equal bytes. cells: head cells to keep, by column name. first_cell: where the accumulators begin.
    """
    ids, key_of = by_appearance(rows.keys(slots), keys.top)
    table = row_cells(accumulators, rows, slots, cells, first_cell).add_column(0, "key", pa.array(key_of))
    return {"keys": key_rows(codec, keys, ids), "rows": table}


def by_appearance(held: NDArray[np.int32], top: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
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


def cell_names(rows: RowStore, first_cell: int) -> list[str]:
    """Returns the names of the columns of saved cells, from ``first_cell`` on."""
    return [f"c{cell}" for cell in range(first_cell, rows.stride // 8)]


def row_cells(
    accumulators: AccumulatorSet, rows: RowStore, slots: NDArray[np.int32], cells: dict[str, int], first_cell: int
) -> pa.Table:
    """Returns rows of a store as a table without their keys. The rest is as in save_rows()."""
    tidy_rows(accumulators, rows, slots)
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
    """Returns the ids of saved keys, interned anew. Those of much text were saved with offsets of 64 bits."""
    columns = [_in_one(column) for column in saved.columns[1:]]
    kinds = [field.type for field in codec.out_fields]
    known = [(kind, _WIDE.get(kind, kind)) for kind in kinds]
    if len(columns) != len(kinds) or any(column.type not in one for column, one in zip(columns, known, strict=True)):
        raise StateError(f"state: key columns of {[str(c.type) for c in columns]}, the spec's are {[*map(str, kinds)]}")
    plain = KeyCodec(tuple(codec.out_fields))
    return KeyCodec.intern(keys, plain.encode(columns, saved.num_rows))


def _in_one(column: pa.ChunkedArray) -> pa.Array:
    """Returns a column as one array, however much text it has."""
    return in_one(roomy_text(column) if column.num_chunks > 1 else column)


def load_rows(tables: Mapping[str, pa.Table], ids: NDArray[np.int32], wanted: list[str]) -> dict[str, NDArray]:
    """Returns the saved rows as numpy columns: ``key`` as ids, ``bits`` and the ``wanted`` ones as int64[n].

    What cells own comes as Arrow's large_binary.
    """
    saved = tables["rows"]
    if saved.column_names != ["key", "bits", *wanted]:
        raise StateError(f"state: columns {saved.column_names}, the spec's rows have {['key', 'bits', *wanted]}")
    found = {name: in_one(saved[name]) for name in saved.column_names}
    columns = {
        name: column if pa.types.is_large_binary(column.type) else aligned(column.to_numpy())
        for name, column in found.items()
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
    """Returns the rows of load_rows() in blocks of about so many, which copy nothing; those of a key stay together."""
    keys = columns["key"]
    ends = np.append(np.flatnonzero(begins_of(keys))[1:], len(keys))
    cuts = ends[np.searchsorted(ends, np.arange(most, len(keys), most))]
    bounds = np.unique([0, *cuts, len(keys)]).tolist()
    return [{name: column[at:end] for name, column in columns.items()} for at, end in pairwise(bounds)]


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
        adopt_rows(accumulators, rows, slots)
    except ValueError as problem:
        raise StateError(f"state: {problem}") from problem


def fed_meta(accumulators: AccumulatorSet) -> dict[str, int]:
    """Returns what a chunk says of the elements that have been fed, where rows remember when theirs arrived."""
    return {"fed": accumulators.arrived} if accumulators.remembers else {}


def feed_behind(accumulators: AccumulatorSet, chunks: list[Chunk]) -> None:
    """Makes what arrives from now on come behind the elements that chunks tell of; those of old formats tell none."""
    accumulators.arrived = max([accumulators.arrived, *(chunk.meta.get("fed", 0) for chunk in chunks)])

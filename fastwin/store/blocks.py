"""A table of panes, cut into the blocks that are written as one step each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastwin.columns.decoding import converted, decoded, decoded_type, taken
from fastwin.columns.tables import check_names
from fastwin.columns.validtext import is_text, valid_text
from fastwin.errors import SpecError
from fastwin.store.cells import Cell, to_cells
from fastwin.store.keytext import converted_exactly, is_taken, keys_to_text, shown_key
from fastwin.store.layout import Layout
from fastwin.store.records import Block, Written

__all__ = ["blocks_of"]


def blocks_of(table: pa.Table, layout: Layout, starts: np.ndarray, floor: int) -> tuple[list[Block], Written]:
    """Returns the blocks of a table of panes; and which panes are left out, older than ``floor`` or of a key that no
    store takes, in how many values text was mended, with the starts of the first and the last of the others.

    starts: int64, of the panes, ms. floor: on the grid of blocks, ms. Of a pane that is there twice, the last counts.
    Raises SpecError for a column that is not there, or that cannot be what the layout says.
    """
    check_names(table.column_names, [field.name for field in (*layout.keys, *layout.fields)])
    keys = keys_to_text([_key_column(table[field.name], field) for field in layout.keys], table.num_rows)
    given = [_cast(table[f.name], f.name, f.kind, converted) for f in layout.fields]
    valid = [_valid(column) for column in given]
    columns = [to_cells(column) for column, _ in valid]
    blocks: dict[tuple[str, int], dict[int, list[Cell]]] = {}
    not_taken = {key for key in set(keys) if not is_taken(key)}
    expired = refused = 0
    grid = layout.block
    block_starts = (starts - (starts - grid.offset_ms) % grid.width_ms).tolist()
    for key, start, at, *cells in zip(keys, starts.tolist(), block_starts, *columns, strict=True):
        if key in not_taken:
            refused += 1
        elif at < floor:
            expired += 1
        else:
            blocks.setdefault((key, at), {})[start] = cells
    kept = [start for panes in blocks.values() for start in panes]
    told = Written(
        expired=expired,
        refused=refused,
        refused_key=shown_key(min(not_taken, default="")),
        replaced=sum(count for _, count in valid),
        first=min(kept, default=None),
        last=max(kept, default=None),
    )
    return [Block(key, at, list(panes.items())) for (key, at), panes in blocks.items()], told


def _valid(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, int]:
    """Returns a column with text that is all UTF-8, and in how many values it was not."""
    if not is_text(column.type):
        return column, 0
    chunks = [valid_text(chunk) for chunk in column.chunks]
    differ = [
        pc.sum(pc.not_equal(*(text.cast(pa.large_binary()) for text in pair))).as_py()
        for pair in zip(column.chunks, chunks, strict=True)
        if pair[0] is not pair[1]
    ]
    return pa.chunked_array(chunks, column.type), sum(differ)


def _key_column(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Returns a key column whose values have the texts of the store's keys: ints that pandas made floats are ints."""
    if decoded_type(column.type) == field.type:
        return column
    return _cast(column, field.name, field.type, converted_exactly)


def _cast(
    column: pa.ChunkedArray, name: str, kind: pa.DataType, cast: Callable[[pa.Array, pa.DataType], pa.Array]
) -> pa.ChunkedArray:
    """Returns a column as one of the type that the layout says. Raises SpecError."""
    if column.type == kind:
        return column
    try:
        return pa.chunked_array([cast(decoded(taken(chunk)), kind) for chunk in column.chunks], kind)
    except pa.ArrowException as problem:
        raise SpecError(f"put: column {name!r} must be {kind}: {problem}") from None

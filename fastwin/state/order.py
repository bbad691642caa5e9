"""The order of what a chunk holds: by time and key. It follows from the rows alone, and not from where they lie.

So whoever computes the same state writes the same bytes: a stream that has lived on, or one that was restored.
"""

from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fastwin.columns.keys import KeyCodec
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.memory.ordering import ordered
from fastwin.core.rows.rowstore import RowStore

__all__ = ["START_CELL", "key_order", "row_order"]

START_CELL: Final = 1
"""Where the head of each row has the start of its pane, window or session."""


def row_order(keys: KeyTable, rows: RowStore, slots: NDArray[np.int32], *cells: int) -> NDArray[np.int32]:
    """Returns slots in the order of their rows: by their starts, by these cells, then by their keys. O(slots).

    cells: where, beside the start, rows of one key differ.
    """
    times = rows.gather(slots, np.array([START_CELL, *cells], dtype=np.int32))
    return slots[key_order(keys, rows.keys(slots), *times)]


def key_order(keys: KeyTable, ids: NDArray[np.int32], *before: NDArray[np.int64]) -> NDArray[np.int32]:
    """Returns the places of ids in the order of other columns, then of their keys: int32[n]. O(ids).

    before: int64[n] each. Keys of numbers go by number, others by their hash; null is the last.
    """
    if not len(ids):
        return np.zeros(0, dtype=np.int32)
    columns = [*before, *_key_columns(keys, ids)]
    places, ties = ordered(columns)
    if ties and keys.is_bytes:  # perhaps two keys have one hash
        places, _ = ordered([*columns, _ranks(keys, ids)])
    return places


def _key_columns(keys: KeyTable, ids: NDArray[np.int32]) -> list[NDArray[np.int64]]:
    taken: Any = keys.take_bytes(ids) if keys.is_bytes else keys.take_int64(ids)
    values = KeyCodec.hash(taken).view(np.int64) if keys.is_bytes else taken[0]
    return [values] if taken[-1] is None else [(~taken[-1]).astype(np.int64), values]


def _ranks(keys: KeyTable, ids: NDArray[np.int32]) -> NDArray[np.int64]:
    """Returns the ranks of keys by their bytes."""
    offsets, data, _ = keys.take_bytes(ids)
    bounds, text = offsets.tolist(), data.tobytes()
    found = [text[begin:end] for begin, end in pairwise(bounds)]
    rank = {key: i for i, key in enumerate(sorted(set(found)))}
    return np.array([rank[key] for key in found], dtype=np.int64)

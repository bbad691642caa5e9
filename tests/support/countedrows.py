"""Rows of which each tells by its key and its start that it is the right one."""

import numpy as np

from fastwin.core.rows.rowstore import RowStore

__all__ = ["ROWS", "add", "is_whole", "store"]

ROWS = 20_000
CELLS = np.arange(4, dtype=np.int64)


def store(rows: int = ROWS, owned: tuple[int, ...] = ()) -> RowStore:
    """Returns a store of so many rows; ``owned``: see RowStore."""
    made = RowStore(CELLS, owned)
    add(made, rows)
    return made


def add(rows: RowStore, n: int) -> None:
    """Adds n rows."""
    first = len(rows)
    keys = np.arange(first, first + n, dtype=np.int32)
    rows.fresh(keys, keys.astype(np.int64) * 7)


def is_whole(rows: RowStore) -> bool:
    """Returns whether all rows are what they were when they were added."""
    rows._check()
    slots = rows.slots()
    return rows.keys(slots).tolist() == list(range(len(rows))) and rows.starts(slots).tolist() == list(
        range(0, 7 * len(rows), 7)
    )

"""Kernels put together for tests."""

import numpy as np

from fastwin.core.accumulators.basic import AccumulatorSet, Count, Max, Mean, Min, Sum
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.panes.panetable import PaneTable
from fastwin.core.sessions.sessiontable import HEAD_CELLS, SessionTable

__all__ = ["accumulators", "ids", "no_columns", "pane_table", "row_of", "session_table", "slots", "times"]


def accumulators(dtype: str = "int64", head_cells: int = 3) -> AccumulatorSet:
    """One of each, in the order of kernel_models.RESULTS, over column 0; overflows are null."""
    members = [Count(column=-1), Count(dtype), Sum(dtype, on_overflow="null"), Min(dtype), Max(dtype), Mean(dtype)]
    return AccumulatorSet(members, head_cells)


def pane_table(members: AccumulatorSet | None = None) -> PaneTable:
    return PaneTable(KeyTable("int64"), accumulators() if members is None else members)


def row_of(panes: PaneTable, key: int, start: int) -> int:
    """The slot of a key's row in the pane that begins at ``start``, or -1."""
    found = panes.slots_of(start)
    return int(found[panes.rows.keys(found) == key][0]) if key in panes.rows.keys(found) else -1


def session_table(dtype: str = "int64") -> SessionTable:
    return SessionTable(KeyTable("int64"), accumulators(dtype, HEAD_CELLS))


def times(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def ids(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int32)


slots = ids


def no_columns(n: int) -> list[tuple[np.ndarray, None]]:
    """Columns for accumulators() where values do not matter."""
    return [(np.zeros(n, dtype=np.int64), None)]

"""Batch: elements that have been checked, as the operators' kernels take them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.decoding import take_rows
from fastwin.columns.keys import EncodedKeys, KeyCodec
from fastwin.columns.values import ValueColumn
from fastwin.core.memory.gather import take

__all__ = ["Batch", "rows_at", "rows_between"]


@dataclass(frozen=True)
class Batch:
    """Elements as kernels take them; made by ``Plan.batch`` of checked rows, and by ``PushedRows``.

    keys: encoded key columns. times: int64[n], ms. columns: what accumulators are fed with. rows: the same elements
    as they came in, where Python code reads them. arrival: which of the columns tells the order of arrival,
    from 0 on; None: none does.
    """

    keys: EncodedKeys
    times: NDArray[np.int64]
    columns: list[ValueColumn]
    rows: pa.RecordBatch | None = None
    arrival: int | None = None

    def __len__(self) -> int:
        return len(self.times)

    def select(self, rows: NDArray) -> Batch:
        """Returns the elements whose indices or marks (bool[n]) are given, in that order."""
        if rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        taken = None if self.rows is None else take_rows(self.rows, rows)
        return Batch(
            KeyCodec.select(self.keys, rows), take(self.times, rows), self.columns_at(rows), taken, self.arrival
        )

    def numbered(self, first: int) -> Batch:
        """Returns the elements with arrivals that count on from ``first``; what has been numbered stays as it is."""
        if self.arrival is None:
            return self
        columns = list(self.columns)
        columns[self.arrival] = (columns[self.arrival][0] + first, None)
        return replace(self, columns=columns, arrival=None)

    def columns_at(self, rows: NDArray[np.int64]) -> list[ValueColumn]:
        """Returns what accumulators are fed with, of the elements whose indices are given, in that order."""
        return [rows_at(column, rows) for column in self.columns]


def rows_at(column: ValueColumn, rows: NDArray[np.int64]) -> ValueColumn:
    """Returns rows, by their indices and in that order, of a column of values or of keys that are encoded likewise."""
    if len(column) == 3:
        return KeyCodec.select_column(column, rows)
    values, valid = column
    taken = None if values is None else take(values.view(np.int64), rows).view(values.dtype)
    return taken, None if valid is None else valid.take(rows)


def rows_between(column: ValueColumn, at: int, stop: int) -> ValueColumn:
    """Returns rows [at, stop) of such a column; nothing is copied."""
    valid = None if column[-1] is None else column[-1][at:stop]
    if len(column) == 3:
        return column[0][at : stop + 1], column[1], valid
    return None if column[0] is None else column[0][at:stop], valid

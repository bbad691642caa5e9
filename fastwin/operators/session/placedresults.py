"""Results made in parts, by several threads if need be, and put where they belong among all of them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.buffers import is_fixed_width, roomy_text
from fastwin.columns.decoding import converted
from fastwin.core.accumulators.basic import AccumulatorSet
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.memory.gather import put
from fastwin.core.rows.rowstore import RowStore
from fastwin.operators.config import Config, ResultColumn
from fastwin.state.order import START_CELL

__all__ = ["PlacedResults"]

# Rows that are handed over together where they hold text: its 32-bit offsets reach no further than 2 GiB, 8 KiB a row.
_TEXT_ROWS = 1 << 18


class PlacedResults:
    """Result rows that come in parts and leave in an order of their own; each is written once, at its place.

    n: how many there are.
    """

    def __init__(self, config: Config, n: int) -> None:
        self._config = config
        self._ids = np.empty(n, dtype=np.int32)
        self._starts, self._ends = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        self._columns = [_Column(column, n) for column in config.results]

    def put(self, places: NDArray[np.int64], accumulators: AccumulatorSet, rows: RowStore, end_cell: int) -> None:
        """Takes all rows of a store, of windows that end at what a cell of them holds.

        places: where they belong, int64[rows]; each of 0 to n - 1 once in all calls.
        """
        slots = rows.slots()
        self._ids[places] = rows.keys(slots)
        starts, ends = rows.gather(slots, np.array([START_CELL, end_cell], dtype=np.int32))
        put(self._starts, places, starts)
        put(self._ends, places, ends)
        for column, result in zip(self._columns, accumulators.results(rows, slots), strict=True):
            column.put(places, result)

    def batches(self, keys: KeyTable) -> list[pa.RecordBatch]:
        """Returns all rows, after the last of them was put: at once, or by so many that text among them has room."""
        n = len(self._ids)
        fixed = all(is_fixed_width(field.type) for field in self._config.main_schema)
        step = max(n, 1) if fixed else _TEXT_ROWS
        return [self._batch(keys, slice(at, at + step)) for at in range(0, n, step)]

    def _batch(self, keys: KeyTable, rows: slice) -> pa.RecordBatch:
        values = [column.array(rows) for column in self._columns]
        return self._config.result(keys, self._ids[rows], self._starts[rows], self._ends[rows], values)


class _Column:
    """The results of one aggregate: numbers at their places, or text and lists as they came, to be put in order at the
    end."""

    def __init__(self, column: ResultColumn, n: int) -> None:
        self._column = column
        # Memory that is never written costs nothing.
        self._values, self._null = np.empty(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
        self._dtype, self._has_nulls = np.dtype(np.int64), False
        self._texts: list[tuple[NDArray[np.int64], pa.Array]] = []

    def put(self, places: NDArray[np.int64], result: tuple) -> None:
        if len(result) != 2:
            self._texts.append((places, roomy_text(self._column.to_arrow(result))))
            return
        values, valid = result
        self._dtype = values.dtype
        put(self._values, places, values.view(np.int64))
        if valid is not None:
            self._has_nulls = True
            self._null[places] = ~valid

    def array(self, rows: slice) -> pa.Array:
        if self._texts:
            texts, order = self._in_order
            return converted(texts.take(pa.array(order[rows])), self._column.field.type)
        valid = ~self._null[rows] if self._has_nulls else None
        return self._column.to_arrow((self._values.view(self._dtype)[rows], valid))

    @cached_property
    def _in_order(self) -> tuple[pa.Array, NDArray[np.int64]]:
        places = np.concatenate([places for places, _ in self._texts])
        order = np.empty_like(places)
        put(order, places, np.arange(len(order)))
        return pa.concat_arrays([texts for _, texts in self._texts]), order

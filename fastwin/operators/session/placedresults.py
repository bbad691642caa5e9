"""Results made in parts, by several threads if need be, and put where they belong among all of them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.buffers import is_fixed_width
from fastwin.core.accumulators.basic import AccumulatorSet
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.memory.gather import put
from fastwin.core.rows.rowstore import RowStore
from fastwin.operators.config import Config, ResultColumn
from fastwin.state.order import START_CELL

__all__ = ["PlacedResults"]

# Rows that are handed over together where they hold text: the offsets of keys reach no further than 2 GiB, 8 KiB a row.
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
        for part, found in self._config.results_in_parts(accumulators, rows, slots):
            for column, result in zip(self._columns, found, strict=True):
                column.put(places[part], result)

    def batches(self, keys: KeyTable) -> list[pa.RecordBatch]:
        """Returns all rows, after the last of them was put: at once, or by so many that text and lists have room."""
        n = len(self._ids)
        fixed = all(is_fixed_width(field.type) for field in self._config.main_schema)
        step = max(n, 1) if fixed else _TEXT_ROWS
        steps = [slice(at, min(at + step, n)) for at in range(0, n, step)]
        return [self._batch(keys, rows) for some in steps for rows in self._parts(some)]

    def _parts(self, rows: slice) -> list[slice]:
        """Returns rows by so many that their texts and lists have room."""
        sizes = np.zeros(rows.stop - rows.start, dtype=np.int64)
        for column in self._columns:
            if column.has_texts:
                sizes += column.sizes[rows]
        return [slice(rows.start + part.start, rows.start + part.stop) for part in self._config.parts_of(sizes)]

    def _batch(self, keys: KeyTable, rows: slice) -> pa.RecordBatch:
        values = [column.array(rows) for column in self._columns]
        return self._config.result(keys, self._ids[rows], self._starts[rows], self._ends[rows], values)


class _Column:
    """The results of one aggregate: numbers at their places, or text and lists as they came, to be put in order at the
    end.

    sizes: bytes of each row's text or list, int64[n].
    """

    def __init__(self, column: ResultColumn, n: int) -> None:
        self._column = column
        # Memory that is never written costs nothing.
        self._values, self._null = np.empty(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
        self.sizes = np.zeros(n, dtype=np.int64)
        self._dtype, self._has_nulls = np.dtype(np.int64), False
        self._texts: list[tuple[NDArray[np.int64], pa.Array]] = []

    @property
    def has_texts(self) -> bool:
        """Whether they are text or lists, as far as some were put."""
        return bool(self._texts)

    def put(self, places: NDArray[np.int64], result: tuple) -> None:
        if len(result) != 2:
            self.sizes[places] = _sizes(result)
            self._texts.append((places, self._column.to_arrow(result)))
            return
        values, valid = result
        self._dtype = values.dtype
        put(self._values, places, values.view(np.int64))
        if valid is not None:
            self._has_nulls = True
            self._null[places] = ~valid

    def array(self, rows: slice) -> pa.Array:
        if self._texts:
            return self._gathered(self._numbers[rows])
        valid = ~self._null[rows] if self._has_nulls else None
        return self._column.to_arrow((self._values.view(self._dtype)[rows], valid))

    @cached_property
    def _numbers(self) -> NDArray[np.int64]:
        """Numbers of the rows, as they came, by their places."""
        places = np.concatenate([places for places, _ in self._texts])
        order = np.empty_like(places)
        put(order, places, np.arange(len(order)))
        return order

    def _gathered(self, numbers: NDArray[np.int64]) -> pa.Array:
        """Returns the texts or lists of some rows, by their numbers."""
        stops = np.cumsum([len(texts) for _, texts in self._texts])
        order = np.argsort(numbers)
        ordered = numbers[order]
        cuts = np.searchsorted(ordered, stops).tolist()
        parts = [
            texts.take(pa.array(ordered[at:stop] - (end - len(texts))))
            for (_, texts), at, stop, end in zip(self._texts, [0, *cuts], cuts, stops.tolist(), strict=False)
            if at < stop
        ]
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        return pa.concat_arrays(parts).take(pa.array(places))


def _sizes(result: tuple) -> NDArray[np.int64]:
    """Returns how many bytes of text or lists a kernel has given for each row: int64[n]."""
    if len(result) == 3:
        return np.diff(result[0])
    offsets, counts, values, data = result
    words = np.diff(offsets) * (8 if counts is None else 16)
    return words if data is None else words + np.diff(values[offsets])

"""Picks: which of the rows that windows keep are their results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fastwin.columns.buffers import int64_values

__all__ = ["Best", "Fired", "Latest", "Pick", "counts_of", "places_in_groups", "taken"]


@dataclass(frozen=True)
class Fired:
    """Rows of windows that fire: each row once for each of them.

    slots: of the rows, among all that are kept. keys: their ids. starts, ends: of the windows, ms. In order of ends,
    keys and arrival.
    """

    slots: NDArray[np.int64]
    keys: NDArray[np.int32]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.slots)

    def select(self, places: NDArray) -> Fired:
        """Returns some of the rows, given by places or marks."""
        return Fired(self.slots[places], self.keys[places], self.starts[places], self.ends[places])

    def begins(self) -> NDArray[np.bool_]:
        """Returns marks of the first row of each (key, window)."""
        first = np.ones(len(self), np.bool_)
        first[1:] = (self.keys[1:] != self.keys[:-1]) | (self.ends[1:] != self.ends[:-1])
        return first


class Pick(Protocol):
    """What becomes of the rows of windows that fire."""

    prunes: bool
    """Whether rows of a slice that ``best`` leaves out can be dropped: no window over it will ever pick them."""

    def lateness(self, columns: pa.RecordBatch, allowed_ms: int) -> int | NDArray[np.int64]:
        """Returns how late rows with these columns may be, ms: all the same, or each."""

    def best(self, table: pa.Table, fired: Fired) -> Fired:
        """Returns the rows that are picked, in order. table: of all rows that are kept."""

    def results(self, table: pa.Table, fired: Fired) -> Iterator[tuple[Fired, list[pa.Array]]]:
        """Yields results: their keys and windows, and their columns."""

    def holds(self, table: pa.Table, fired: Fired) -> dict[str, pa.Array]:
        """Returns what each window holds, in the order of their rows, as columns by name. Runs no user code."""


class _OfOne:
    """What is picked of the rows of one input."""

    prunes = True

    def lateness(self, columns: pa.RecordBatch, allowed_ms: int) -> int:
        return allowed_ms

    def best(self, table: pa.Table, fired: Fired) -> Fired:
        raise NotImplementedError

    def holds(self, table: pa.Table, fired: Fired) -> dict[str, pa.Array]:
        """Returns how many rows each window has, and which would be its results now."""
        found = self.best(table, fired) if len(fired) else fired
        begins = np.flatnonzero(found.begins()) if len(found) else np.empty(0, np.int64)
        columns = [taken(column, found.slots) for column in table.columns]
        rows = pa.StructArray.from_arrays(columns, fields=list(table.schema))
        ends = np.append(begins, len(found)).astype(np.int32)
        return {"rows": counts_of(fired), "results": pa.ListArray.from_arrays(pa.array(ends), rows)}


class Latest(_OfOne):
    """The last row in time of each (key, window); of several, the last to arrive.

    column: of the event time; None: it is the same for all rows of a key.
    """

    def __init__(self, column: str | None) -> None:
        self._column = column

    def best(self, table: pa.Table, fired: Fired) -> Fired:
        if self._column is not None:
            times = int64_values(taken(table.column(self._column), fired.slots))
            fired = fired.select(np.lexsort((fired.slots, times, fired.keys, fired.ends)))
        last = np.ones(len(fired), np.bool_)
        last[:-1] = fired.begins()[1:]
        return fired.select(last)

    def results(self, table: pa.Table, fired: Fired) -> Iterator[tuple[Fired, list[pa.Array]]]:
        found = self.best(table, fired)
        yield found, [taken(column, found.slots) for column in table.columns]


class Best(_OfOne):
    """The first n rows of each (key, window), by a column; of equal values, the first to arrive is first."""

    def __init__(self, n: int, by: str, ascending: bool) -> None:
        self._n, self._by, self._ascending = n, by, ascending

    def best(self, table: pa.Table, fired: Fired) -> Fired:
        values = taken(table.column(self._by), fired.slots)
        # Nulls are last, and NaN is above all other numbers.
        order = pc.rank(_rankable(values), sort_keys="ascending", tiebreaker="dense").to_numpy()
        order = order.astype(np.int64)
        if not self._ascending and values.null_count:
            order = np.where(values.is_valid().to_numpy(zero_copy_only=False), -order, 1)
        elif not self._ascending:
            order = -order
        found = fired.select(np.lexsort((fired.slots, order, fired.keys, fired.ends)))
        return found.select(places_in_groups(found.begins()) < self._n)

    def results(self, table: pa.Table, fired: Fired) -> Iterator[tuple[Fired, list[pa.Array]]]:
        found = self.best(table, fired)
        ranks = pa.array(places_in_groups(found.begins()) + 1)
        yield found, [ranks, *(taken(column, found.slots) for column in table.columns)]


def _rankable(values: pa.Array) -> pa.Array:
    """Returns values of the same order: Arrow ranks no small floats and decimals."""
    kind = values.type
    if pa.types.is_float16(kind):
        return values.cast(pa.float32())
    if pa.types.is_decimal(kind) and kind.bit_width < 128:
        return values.cast(pa.decimal128(38, kind.scale))
    return values


def counts_of(fired: Fired) -> pa.Array:
    """Returns how many rows each (key, window) has."""
    begins = np.flatnonzero(fired.begins()) if len(fired) else np.empty(0, np.int64)
    return pa.array(np.diff(begins, append=len(fired)), pa.int64())


def places_in_groups(begins: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Returns the place of each row within its group, from 0. begins: marks of the first ones."""
    firsts = np.flatnonzero(begins)
    return np.arange(len(begins)) - np.repeat(firsts, np.diff(firsts, append=len(begins)))


def taken(column: pa.ChunkedArray, slots: NDArray[np.int64] | pa.Array) -> pa.Array:
    """Returns the values at some places; null where a place is."""
    found = column.take(slots if isinstance(slots, pa.Array) else pa.array(slots))
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found

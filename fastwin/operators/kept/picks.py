"""Picks: which of the rows that windows keep are their results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fastwin.columns.buffers import int64_values, sortable
from fastwin.core.memory.ordering import begins_of, ordered
from fastwin.core.rows.firings import best_of
from fastwin.operators.kept.pieces import Pieces, cut
from fastwin.operators.kept.upto import best_upto, rows_upto

__all__ = ["Best", "Fired", "Latest", "Pick", "counts_of"]

# So many results of a firing are found by insertion; more of them by sorting all its rows.
_MOST_INSERTED = 16


@dataclass(frozen=True)
class Fired:
    """Rows of windows that fire: each row once for each firing.

    slots: of the rows, among all that are kept; those of a firing ascend until some are picked. keys: their ids.
    starts, ends: of the windows, ms. groups: a number of each firing, ascending, so that its rows come together.
    """

    slots: NDArray[np.int64]
    keys: NDArray[np.int32]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    groups: NDArray[np.int64]

    @classmethod
    def in_order(
        cls, slots: NDArray[np.int64], keys: NDArray[np.int32], starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> Fired:
        """Returns rows in order of ends, keys and arrival, of one firing for each (key, window).

        slots: ascending, so that those of a (key, window) are.
        """
        order, _ = ordered([ends, keys.astype(np.int64)])
        return cls.grouped(slots[order], keys[order], starts[order], ends[order])

    @classmethod
    def grouped(
        cls, slots: NDArray[np.int64], keys: NDArray[np.int32], starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> Fired:
        """Returns rows of which those of a (key, end), one firing, come together."""
        return cls(slots, keys, starts, ends, np.cumsum(begins_of(keys, ends)))

    @classmethod
    def put_together(cls, parts: list[Fired]) -> Fired:
        """Returns the rows of parts in order of their groups, which need not ascend in them."""
        found = cls(*map(np.concatenate, zip(*(part._columns for part in parts), strict=True)))
        return found.select(np.argsort(found.groups, kind="stable"))

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def _columns(self) -> tuple[NDArray, ...]:
        return self.slots, self.keys, self.starts, self.ends, self.groups

    def select(self, places: NDArray | slice) -> Fired:
        """Returns some of the rows, given by places, marks or a slice."""
        return Fired(*(column[places] for column in self._columns))

    def groups_with(self, marks: NDArray[np.bool_]) -> Fired:
        """Returns all rows of the firings that have a marked row."""
        wanted = np.zeros(int(self.groups[-1]) + 1 if len(self) else 0, np.bool_)
        wanted[self.groups[marks]] = True
        return self.select(wanted[self.groups])

    def begins(self) -> NDArray[np.bool_]:
        """Returns marks of the first row of each firing."""
        return begins_of(self.groups)


class Pick(Protocol):
    """What becomes of the rows of windows that fire."""

    @property
    def most(self) -> int | None:
        """How many rows of each firing ``best`` picks. None: all.

        Rows of a slice that it leaves out can be dropped: no window over it will ever pick them.
        """

    def lateness(self, columns: pa.RecordBatch, allowed_ms: int) -> int | NDArray[np.int64]:
        """Returns how late rows with these columns may be, ms: all the same, or each."""

    def best(self, rows: Pieces, fired: Fired) -> Fired:
        """Returns the rows that are picked, in order. rows: the columns of all that are kept.

        Those of each firing are in order of arrival, or have been picked; so they are for ``results``.
        """

    def results(self, rows: Pieces, fired: Fired) -> Iterator[tuple[Fired, list[pa.Array]]]:
        """Yields results: their keys and windows, and their columns."""

    def upto(self, rows: Pieces, fired: Fired, firings: NDArray[np.int64]) -> Iterator[Fired]:
        """Yields what ``results`` needs for windows that fire at some of their rows, with those up to each.

        fired: all rows of these windows, in each by arrival. firings: places among them, at least one, in the order in
        which the windows fire; their numbers in it are the groups of what comes. O(n log n + results), n: len(fired).
        """

    def holds(self, rows: Pieces, fired: Fired) -> dict[str, pa.Array | pa.ChunkedArray]:
        """Returns what each window holds, in the order of their rows, as columns by name. Runs no user code."""


class _OfOne:
    """What is picked of the rows of one input: so many of each firing."""

    latest: ClassVar[bool] = False
    """Whether of rows with equal values the last one to arrive is picked, and not the first."""

    def __init__(self, n: int) -> None:
        self.most = n

    def lateness(self, columns: pa.RecordBatch, allowed_ms: int) -> int:
        return allowed_ms

    def _values(self, rows: Pieces, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns a number for each row, of which the least are picked first."""
        raise NotImplementedError

    def _ranked(self, rows: Pieces, fired: Fired) -> NDArray[np.int64]:
        """Returns the places of all rows, in each firing those to be picked first."""
        columns = [fired.groups, self._values(rows, fired.slots)]
        if self.latest:
            columns.append(~fired.slots)
        return ordered(columns)[0].astype(np.int64)

    def best(self, rows: Pieces, fired: Fired) -> Fired:
        if self.most <= _MOST_INSERTED:
            return fired.select(best_of(fired.groups, self._values(rows, fired.slots), self.most, self.latest))
        found = fired.select(self._ranked(rows, fired))
        return found.select(_places_in_groups(found.begins()) < self.most)

    def upto(self, rows: Pieces, fired: Fired, firings: NDArray[np.int64]) -> Iterator[Fired]:
        begins = fired.begins()
        of = np.cumsum(begins) - 1
        # Whether the window of a row fires more often than it has results.
        often = (np.bincount(of[firings], minlength=of[-1] + 1) > self.most)[of]
        rarely, many = np.flatnonzero(~often[firings]), np.flatnonzero(often[firings])
        shown = []
        if len(rarely):
            places, numbers = rows_upto(begins, firings[rarely])
            shown.append(self.best(rows, replace(fired.select(places), groups=rarely[numbers])))
        if len(many):
            some, at = fired.select(often), np.cumsum(often)[firings[many]] - 1
            places, numbers = best_upto(some.begins(), self._ranked(rows, some), at, self.most)
            shown.append(replace(some.select(places), groups=many[numbers]))
        yield Fired.put_together(shown)

    def holds(self, rows: Pieces, fired: Fired) -> dict[str, pa.Array | pa.ChunkedArray]:
        """Returns how many rows of each window are kept, and which would be its results now."""
        found = self.best(rows, fired) if len(fired) else fired
        begins = np.flatnonzero(found.begins()) if len(found) else np.empty(0, np.int64)
        edges, lists = np.append(begins, len(found)), []
        sizes = np.add.reduceat(rows.sizes(found.slots), begins) if len(begins) else begins
        for part in cut(sizes):
            within = edges[part.start : part.stop + 1]
            columns = rows.take(found.slots[within[0] : within[-1]])
            structs = pa.StructArray.from_arrays(columns, fields=list(rows.schema))
            lists.append(pa.ListArray.from_arrays(pa.array((within - within[0]).astype(np.int32)), structs))
        return {"rows": counts_of(fired), "results": lists[0] if len(lists) == 1 else pa.chunked_array(lists)}


class Latest(_OfOne):
    """The last row in time of each (key, window); of several, the last to arrive.

    column: of the event time; None: it is the same for all rows of a key.
    """

    latest: ClassVar[bool] = True

    def __init__(self, column: str | None) -> None:
        super().__init__(1)
        self._column = column

    def _values(self, rows: Pieces, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        if self._column is None:
            return np.zeros(len(slots), np.int64)
        return ~int64_values(rows.take(slots, [self._column])[0])

    def results(self, rows: Pieces, fired: Fired) -> Iterator[tuple[Fired, list[pa.Array]]]:
        found = self.best(rows, fired)
        for part in rows.parts(found.slots):
            yield found.select(part), rows.take(found.slots[part])


class Best(_OfOne):
    """The first n rows of each (key, window), by a column; of equal values, the first to arrive is first."""

    def __init__(self, n: int, by: str, ascending: bool) -> None:
        super().__init__(n)
        self._by, self._ascending = by, ascending

    def _values(self, rows: Pieces, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        values = rows.gathered(self._by, slots)
        if not values.null_count and (numbers := sortable(values)) is not None:
            return numbers if self._ascending else ~numbers
        # Nulls are last, and NaN is above all other numbers.
        order = pc.rank(_rankable(values), sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
        ranked = order if self._ascending else -order
        if not values.null_count:
            return ranked
        # Some versions of Arrow rank null and NaN alike.
        return np.where(values.is_valid().to_numpy(zero_copy_only=False), ranked, order.max() + 1)

    def results(self, rows: Pieces, fired: Fired) -> Iterator[tuple[Fired, list[pa.Array]]]:
        found = self.best(rows, fired)
        ranks = _places_in_groups(found.begins()) + 1
        for part in rows.parts(found.slots):
            yield found.select(part), [pa.array(ranks[part]), *rows.take(found.slots[part])]


def _rankable(values: pa.Array) -> pa.Array:
    """Returns values of the same order: Arrow ranks no small floats and decimals."""
    kind = values.type
    if pa.types.is_float16(kind):
        return values.cast(pa.float32())
    if pa.types.is_decimal(kind) and kind.bit_width < 128:
        return values.cast(pa.decimal128(38, kind.scale))
    return values


def counts_of(fired: Fired) -> pa.Array:
    """Returns how many rows each firing has."""
    begins = np.flatnonzero(fired.begins()) if len(fired) else np.empty(0, np.int64)
    return pa.array(np.diff(begins, append=len(fired)), pa.int64())


def _places_in_groups(begins: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Returns the place of each row within its group, from 0. begins: marks of the first ones."""
    firsts = np.flatnonzero(begins)
    return np.arange(len(begins)) - np.repeat(firsts, np.diff(firsts, append=len(begins)))

"""Pruner: which rows go, because their windows are gone or no window will ever pick them, and how their gaps close."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.core.keys.keytable import KeyTable
from fastwin.core.memory.ordering import begins_of, ordered
from fastwin.operators.kept.byslice import BySlice, Taken
from fastwin.operators.kept.keptrows import KeptRows
from fastwin.operators.kept.picks import Fired, Pick
from fastwin.operators.kept.pieces import Pieces
from fastwin.times import MAX_TIMESTAMP

__all__ = ["Pruner"]

# With fewer new rows nothing is pruned, unless it has to be.
_FEW = 4096
# Where a greater part of new rows may be picked, the others are not looked for; but where they are the first ones.
_MOST_STAY = 0.75


class Pruner:
    """Lets rows go, and the keys that they retain. step: between ends of windows, ms."""

    def __init__(self, kept: KeptRows, keys: KeyTable, pick: Pick, step: int) -> None:
        self._kept, self._keys, self._pick, self._step = kept, keys, pick, step
        self._by_slice: BySlice | None = None  # made when it is needed for the first time
        self._pruned = 0  # places up to which there are, in each slice, no rows that are not picked

    @property
    def nbytes(self) -> int:
        """Bytes allocated beside the rows."""
        return 0 if self._by_slice is None else self._by_slice.nbytes

    def place(self, in_file: bool) -> int:
        """Moves what lies beside the rows to files or back to memory; returns its bytes in files."""
        return 0 if self._by_slice is None else self._by_slice.panes.place(in_file)

    def by_slice(self) -> BySlice:
        """Returns all rows by key and slice. O(rows added since the last call)."""
        if self._by_slice is None:
            self._by_slice = BySlice(self._kept, self._keys, self._step)
        self._by_slice.catch_up()
        return self._by_slice

    def drop_before(self, start: int) -> None:
        """Lets the rows of slices before ``start`` go. Amortised O(these + log² rows)."""
        self._drop(self._kept.take_before(start))
        if self._by_slice is not None:
            self._by_slice.drop_before(start)
        self._close_gaps()

    def prune_many(self) -> None:
        """Prunes if that at least halves the rows, or would if no window picked the new ones: amortised O(1) a row."""
        fresh = self._kept.top - self._pruned
        if fresh > max(len(self._kept) - fresh, _FEW):
            self.prune()

    def prune(self, more: bool = False) -> None:
        """Lets rows go that no window will ever pick, because their slice has enough better ones.

        O(rows of slices that have had new ones, key by key). more: whether this is one call of many. The first one
        looks at all rows, and the second one finds out which slices they are in.
        """
        kept = self._kept
        if self._pick.most is None or kept.top == self._pruned:
            return
        if self._by_slice is None and not (more and self._pruned):
            slots = kept.slots()
            slots = slots[_in_slices(kept.keys(slots), kept.number("start")[slots])]
            wanted = self._picked(slots)
        else:
            by_slice = self.by_slice()
            some = by_slice.take(kept.slots(self._pruned))
            slots, wanted = some.slots, self._picked(some.slots)
            by_slice.put_back(Taken(some.slots[wanted], some.panes[wanted]))
        self._drop(slots[~wanted])
        self._pruned = kept.top
        self._close_gaps()

    def _picked(self, slots: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Tells which rows are picked among those of their key and slice, which come together: bool[slots]."""
        keys, starts = self._kept.keys(slots), self._kept.number("start")[slots]
        assert self._pick.most is not None
        if not (_sizes(keys, starts) > self._pick.most).any():
            return np.ones(len(slots), np.bool_)
        return _picked(self._pick, self._kept.columns, slots, keys, starts)

    def worth_keeping(
        self, rows: pa.RecordBatch, keys: NDArray[np.int32], starts: NDArray[np.int64]
    ) -> NDArray[np.int64] | None:
        """Returns the places of those of many new rows that a window may pick, though the others come: ascending.

        None: of all, as hardly any can go, or ``prune`` is quicker. rows: their columns. All are in the same windows of
        their slice. starts: of their slices, ms. O(rows), and what ``best`` takes.
        """
        most, n = self._pick.most, len(keys)
        if most is None or n <= _FEW:
            return None
        order = _in_slices(keys, starts)
        keys, starts = keys[order], starts[order]
        stay = int(np.minimum(_sizes(keys, starts), most).sum())
        if not self._kept.top:
            self._pruned = stay  # so `prune` does not sort them once more
        if stay == n or (self._kept.top and stay > _MOST_STAY * n):
            return None
        wanted = np.empty(n, np.bool_)
        wanted[order] = _picked(self._pick, Pieces(rows.schema, rows), order, keys, starts)
        return np.flatnonzero(wanted)

    def _drop(self, slots: NDArray) -> None:
        self._keys.release_ids(self._kept.keys(slots))
        self._kept.drop(slots)

    def _close_gaps(self) -> None:
        """Moves rows together where gaps take a third of the places: amortised O(1) for each gap."""
        kept = self._kept
        if 2 * kept.gone <= len(kept):
            return
        places = kept.slots()
        if self._by_slice is not None:
            self._by_slice.move(places)
        self._pruned = int(np.searchsorted(places, self._pruned))
        kept.keep(places)

    def put_in_order(self) -> None:
        """Puts rows in order of arrival, each once: after a load, what was repeated is there twice."""
        kept = self._kept
        slots = kept.slots()
        _, firsts = np.unique(kept.number("arrival")[slots], return_index=True)
        self._keys.release_ids(kept.keys(np.delete(slots, firsts)))
        kept.keep(slots[firsts])
        if self._by_slice is not None:
            self._by_slice.drop_before(MAX_TIMESTAMP)  # so that its keys are released
        self._by_slice, self._pruned = None, 0

    def _check(self) -> None:
        assert 2 * self._kept.gone <= len(self._kept), f"{self._kept.gone} gaps between {len(self._kept)} rows"
        if self._by_slice is not None:
            self._by_slice._check()


def _in_slices(keys: NDArray[np.int32], starts: NDArray[np.int64]) -> NDArray[np.int32]:
    """Returns the places of rows, slice by slice, and in these key by key; those of a key and slice as they came."""
    return ordered([starts, keys.astype(np.int64)])[0]


def _sizes(keys: NDArray[np.int32], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns how many rows each key has in each slice, where these come together."""
    return np.diff(np.flatnonzero(begins_of(keys, starts)), append=len(keys))


def _picked(
    pick: Pick, rows: Pieces, slots: NDArray[np.int32], keys: NDArray[np.int32], starts: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Tells which rows, given by slots, are picked among those of their key and slice, which come together."""
    # Slices take the place of windows. The starts of these are not looked at, and tell afterwards which rows it is.
    found = pick.best(rows, Fired.grouped(slots.astype(np.int64), keys, np.arange(len(slots)), starts))
    wanted = np.zeros(len(slots), np.bool_)
    wanted[found.starts] = True
    return wanted

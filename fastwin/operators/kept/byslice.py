"""BySlice: which rows each key has in each slice, so that those of a few are found without a look at all others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastwin.core.accumulators.accumulator_set import AccumulatorSet
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.memory.ordering import unique
from fastwin.core.panes.members import link, members_of, unlink
from fastwin.core.panes.openends import OpenEnds
from fastwin.core.panes.panetable import PaneTable
from fastwin.operators.aligned.slicing import expanded
from fastwin.operators.kept.keptrows import KeptRows

__all__ = ["BySlice", "Taken"]

_NONE = -1
# To look up a slice of a key takes as long as to look at about so many rows.
_SCAN = 16


class Taken(NamedTuple):
    """Rows that were taken out, and the slots of their (key, slice) in the table of these: int32[n] each."""

    slots: NDArray[np.int32]
    panes: NDArray[np.int32]


class BySlice:
    """Rows by (key, slice). It is told of none that come: ``catch_up`` finds them, behind those that it knows.

    step: between ends of windows, ms.
    """

    def __init__(self, kept: KeptRows, keys: KeyTable, step: int) -> None:
        self._kept = kept
        self.panes = PaneTable(keys, AccumulatorSet([]))
        """A row for each (key, slice)."""
        self.open_ends = OpenEnds(self.panes, step)
        self._before = np.empty(0, np.int32)  # of each row, the one before it in its slice
        self._known = 0

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self.panes.nbytes + self.open_ends.nbytes + self._before.nbytes

    def catch_up(self) -> None:
        """Takes the rows that have been added since the last time. O(these)."""
        kept = self._kept
        if len(self._before) < kept.top:
            before = np.full(max(kept.top, len(self._before) * 5 // 4), _NONE, np.int32)
            before[: len(self._before)] = self._before
            self._before = before
        fresh = kept.slots(self._known)
        link(self.panes, self._panes_of(fresh), fresh, self._before)
        self._known = kept.top

    def _panes_of(self, slots: NDArray[np.int32]) -> NDArray[np.int32]:
        return self.panes.ensure(self._kept.number("key")[slots], self._kept.number("start")[slots])

    def take(self, slots: NDArray[np.int32]) -> Taken:
        """Takes out all rows of the slices that these are in, slice by slice, in order of arrival. O(their rows)."""
        return Taken(*unlink(self.panes, self._panes_of(slots), self._before))

    def rows_between(
        self, keys: NDArray[np.int32], firsts: NDArray[np.int64], ends: NDArray[np.int64], slices: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Returns the rows of keys in intervals, in order of arrival, and maybe other rows of these keys; each once.

        firsts, ends: of each key's interval. slices: the starts of those that hold rows. O(slices in the intervals, and
        their rows), or O(rows) where that is less.
        """
        at, behind = np.searchsorted(slices, firsts), np.searchsorted(slices, ends)
        if _SCAN * int((behind - at).sum()) > self._kept.top:
            return np.flatnonzero(np.isin(self._kept.number("key"), keys))
        counts, places = expanded(at, behind - 1, 1)
        pairs = unique(np.repeat(keys.astype(np.int64) * len(slices), counts) + places)
        rows = members_of(
            self.panes, (pairs // len(slices)).astype(np.int32), slices[pairs % len(slices)], self._before
        )
        return np.sort(rows).astype(np.int64)

    def put_back(self, some: Taken) -> None:
        """Takes rows back; of each slice, they are in order of arrival."""
        link(self.panes, some.panes, some.slots, self._before)

    def drop_before(self, start: int) -> None:
        """Forgets the slices that start before ``start``; their rows are gone."""
        self.panes.drop_before(start)

    def move(self, places: NDArray[np.int32]) -> None:
        """Is told that only the rows at these places, ascending, are left and move together. O(rows)."""
        moved = np.full(self._kept.top + 1, _NONE, np.int32)  # the last one is for no row
        moved[places] = np.arange(len(places), dtype=np.int32)
        rows = self.panes.rows
        slots = rows.slots()
        rows.set_bits(slots, moved[rows.bits(slots) - 1].astype(np.int64) + 1)
        self._known = int(np.searchsorted(places, self._known))
        self._before = moved[self._before[places[: self._known]]]

    def _check(self) -> None:
        self.panes._check()
        kept, rows = self._kept, self.panes.rows
        slots = rows.slots()
        found = {}
        for slot, key, start in zip(slots.tolist(), rows.keys(slots), rows.starts(slots), strict=True):
            members, member = [], int(rows.bits(np.array([slot], np.int32))[0]) - 1
            while member != _NONE:
                members.append(member)
                member = int(self._before[member])
            found[int(key), int(start)] = members[::-1]
        there: dict[tuple[int, int], list[int]] = {}
        for slot in kept.slots().tolist():
            if slot < self._known:
                there.setdefault((int(kept.number("key")[slot]), int(kept.number("start")[slot])), []).append(slot)
        assert found == there, "the rows of slices are others"

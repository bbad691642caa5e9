"""Deltas that repeat unchanged rows, a few key groups at a time, so that the deltas before them can be forgotten."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastwin.columns.keys import KeyCodec
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.rows.rowstore import RowStore
from fastwin.errors import StateError

__all__ = ["Refresh", "Repeated", "Round"]


class Repeated(NamedTuple):
    """What a delta with a refresh holds.

    slots: int32[n], of the rows that have changed, then of unchanged ones of the repeated groups. repeated: bool[n],
    which of these are of repeated groups, changed or not. keys: bool[top of the key table], which keys are.
    groups: how many groups.
    """

    slots: NDArray[np.int32]
    repeated: NDArray[np.bool_]
    keys: NDArray[np.bool_]
    groups: int


@dataclass(frozen=True)
class Refresh:
    """Which unchanged rows a delta is to repeat, so that deltas before it can be forgotten in the end.

    key_groups: into how many the keys are divided, by their hash. groups: those of the state, in the order in which
        they are repeated. turn: how many have been: the next one is, and more as long as they add no more than a
        quarter to what has changed.
    """

    key_groups: int
    groups: tuple[int, ...]
    turn: int = 0

    @property
    def left(self) -> int:
        """How many groups have not been repeated yet."""
        return len(self.groups) - self.turn

    def take(
        self,
        keys: KeyTable,
        rows: RowStore,
        changed: NDArray[np.int32],
        holding: NDArray[np.int32] | None = None,
    ) -> Repeated:
        """Returns which rows to write. changed: their slots. holding: keys that have something besides rows.

        O(rows of state); a ``Round`` finds the same with less. Raises StateError if there is a row of another group,
        which nothing would ever repeat.
        """
        ids = keys.ids()
        group_of = np.full(keys.top, -1, dtype=np.int32)
        group_of[ids] = KeyCodec.groups(keys, ids, self.key_groups)
        clean = np.ones(rows.top, dtype=np.bool_)
        clean[changed] = False
        slots = rows.slots()
        slots = slots[clean[slots]]
        group = group_of[rows.keys(slots)]
        counted = group if holding is None else np.concatenate([group, group_of[holding]])
        sizes = np.bincount(counted, minlength=self.key_groups)
        self._check(sizes)
        here = list(self.groups)
        fit = int(np.searchsorted(np.cumsum(sizes[here[self.turn :]]), len(changed) // 4, side="right"))
        taken = here[self.turn :][: max(fit, 1)]
        wanted = np.zeros(self.key_groups + 1, dtype=np.bool_)  # the last one: of keys that are not there
        wanted[taken] = True
        whose = wanted[group_of]
        unchanged = slots[wanted[group]]
        repeated = np.concatenate([whose[rows.keys(changed)], np.ones(len(unchanged), dtype=np.bool_)])
        return Repeated(np.concatenate([changed, unchanged]), repeated, whose, len(taken))

    def _check(self, sizes: NDArray[np.intp]) -> None:
        """Raises StateError if a row is of a group that nothing would repeat. sizes: rows of each group."""
        here = list(self.groups)
        if sizes.sum() != sizes[here].sum():
            wrong = sizes.copy()
            wrong[here] = 0
            raise StateError(f"state: rows of key group {wrong.argmax()} among those of the groups {here}")


class Round:
    """A round of deltas that repeat all key groups, for state that is nothing but the rows of one store.

    It looks at all rows once, when it is made; each turn then costs what it repeats and what has changed. It has to see
    each delta from then on, and goes by slots: a row that was released is told by its mark, one that has taken its slot
    by its key. What a turn finds is what ``Refresh.take`` finds, whenever the round was made: others may have to go on
    from the same turn.
    """

    def __init__(self, refresh: Refresh, keys: KeyTable, rows: RowStore) -> None:
        self._next = refresh
        slots = rows.slots()
        groups = self._groups(keys, rows, slots)
        self._limit = len(slots)
        self._later = 0
        order = np.argsort(groups, kind="stable")
        ends = np.cumsum(np.bincount(groups, minlength=refresh.key_groups))[:-1]
        self._found = [[part] for part in np.split(slots[order], ends)]

    @property
    def nbytes(self) -> int:
        """Bytes of slots."""
        return 4 * (self._limit + self._later)

    def goes_on(self, refresh: Refresh) -> bool:
        """Whether the next turn is this one, and what has changed meanwhile is still less than what was looked at."""
        return refresh == self._next and refresh.left > 0 and self._later <= self._limit

    def take(self, keys: KeyTable, rows: RowStore, changed: NDArray[np.int32]) -> Repeated:
        """Returns which rows to write in the next turn. changed: slots of those that changed since the last one.

        Raises StateError if there is a row of another group, which nothing would ever repeat.
        """
        turn = self._next
        groups = self._groups(keys, rows, changed)
        self._note(changed, groups)
        fresh = np.zeros(rows.top, dtype=np.bool_)
        fresh[changed] = True
        most, count = len(changed) // 4, 0
        taken: list[int] = []
        parts: list[NDArray[np.int32]] = []
        for group in turn.groups[turn.turn :]:
            part = self._unchanged(group, keys, rows, fresh)
            count += len(part)
            if count > most and taken:
                break
            taken.append(group)
            parts.append(part)
            if count > most:
                break
        unchanged = np.sort(np.concatenate([np.empty(0, dtype=np.int32), *parts]))
        mine = np.isin(groups, taken)
        whose = np.zeros(keys.top, dtype=np.bool_)
        whose[rows.keys(unchanged)] = True
        whose[rows.keys(changed[mine])] = True
        self._next = replace(turn, turn=turn.turn + len(taken))
        for group in taken:
            self._found[group] = []
        repeated = np.concatenate([mine, np.ones(len(unchanged), dtype=np.bool_)])
        return Repeated(np.concatenate([changed, unchanged]), repeated, whose, len(taken))

    def _note(self, slots: NDArray[np.int32], groups: NDArray[np.int32]) -> None:
        """Takes rows that may be unchanged when the turn of their group comes."""
        order = np.argsort(groups, kind="stable")
        found, starts = np.unique(groups[order], return_index=True)
        left = set(self._next.groups[self._next.turn :])
        for group, part in zip(found.tolist(), np.split(slots[order], starts)[1:], strict=True):
            if group in left:
                self._found[group].append(part)
                self._later += len(part)

    def _unchanged(self, group: int, keys: KeyTable, rows: RowStore, fresh: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Returns the slots of the unchanged rows of a group. fresh: which slots have changed."""
        slots = np.unique(np.concatenate(self._found[group]))
        slots = slots[rows.live_marks(slots)]
        slots = slots[~fresh[slots]]
        return slots[self._groups(keys, rows, slots) == group]

    def _groups(self, keys: KeyTable, rows: RowStore, slots: NDArray[np.int32]) -> NDArray[np.int32]:
        found = KeyCodec.groups(keys, rows.keys(slots), self._next.key_groups)
        self._next._check(np.bincount(found, minlength=self._next.key_groups))
        return found

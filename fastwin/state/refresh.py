"""Deltas that repeat unchanged rows, a few key groups at a time, so that the deltas before them can be forgotten."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fastwin.columns.keys import KeyCodec
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.memory.ordering import unique
from fastwin.errors import StateError

__all__ = ["MOST_TURNS", "Refresh", "Repeated", "RepeatedRows", "Round", "in_round", "round_bytes"]

MOST_TURNS = 256
"""Deltas that a round of a log takes at most: of many groups, each repeats several, since all of them stay until its
end."""


class RepeatedRows(Protocol):
    """State of one kind, as a round asks for it: rows of keys. A slot is a row's own for as long as that is there."""

    def slots(self) -> NDArray[Any]:
        """Returns the slots of all rows. O(rows)."""

    def dirty_slots(self) -> NDArray[Any]:
        """Returns the slots of the rows that have changed since they were saved."""

    def live_marks(self, slots: NDArray[Any]) -> NDArray[np.bool_]:
        """Tells which slots, of rows that were there once, hold one."""

    def keys(self, slots: NDArray[Any]) -> NDArray[np.int32]:
        """Returns the key ids of rows."""


class Repeated(NamedTuple):
    """What a delta with a refresh holds: lists with an array for each kind of rows.

    changed: slots of the rows that have changed. among: bool, which of these are of repeated groups. unchanged: slots
    of the unchanged rows of repeated groups, ascending. groups: how many groups are repeated.
    """

    changed: list[NDArray[Any]]
    among: list[NDArray[np.bool_]]
    unchanged: list[NDArray[Any]]
    groups: int


@dataclass(frozen=True)
class Refresh:
    """Which unchanged rows a delta is to repeat, so that deltas before it can be forgotten in the end.

    key_groups: into how many the keys are divided, by their hash. groups: those of the state, in the order in which
        they are repeated. turn: how many have been: the next ones are, so many that a round has no more than
        ``most_turns`` deltas, and more as long as they add no more than a quarter to what has changed. Where a round
        has as many turns as groups, and nothing has changed, those that have rows are repeated one by one.
    """

    key_groups: int
    groups: tuple[int, ...]
    turn: int = 0
    most_turns: int = MOST_TURNS

    @property
    def left(self) -> int:
        """How many groups have not been repeated yet."""
        return len(self.groups) - self.turn


class Round:
    """A round of deltas that repeat all key groups.

    It looks at all rows once, in its first turn; each turn then costs what it repeats and what has changed. Where
    nearly all rows have changed, that turn takes all groups, and lists no rows by theirs. It has to see each delta from
    then on, and goes by slots: a row that is gone is told by its mark, one that has taken its slot by its key. What a
    turn finds does not depend on when the round was made: others may have to go on from the same turn.

    kinds: all that the state is made of.
    """

    def __init__(self, refresh: Refresh, keys: KeyTable, kinds: Sequence[RepeatedRows]) -> None:
        self._next, self._keys, self._kinds = refresh, keys, kinds
        self._limit = self._later = self._nbytes = 0
        self._mine = np.zeros(refresh.key_groups, np.bool_)
        self._mine[list(refresh.groups)] = True
        self._found: list[list[list[NDArray[Any]]]] = []  # of each kind: of each group: parts

    @property
    def nbytes(self) -> int:
        """Bytes of slots."""
        return self._nbytes

    def goes_on(self, refresh: Refresh) -> bool:
        """Whether the next turn is this one, and what has changed meanwhile is still less than what was looked at."""
        return refresh == self._next and refresh.left > 0 and self._later <= self._limit

    def take(self) -> Repeated:
        """Returns which rows to write in the next turn.

        Raises StateError if there is a row of another group, which nothing would ever repeat.
        """
        turn = self._next
        changed = [rows.dirty_slots() for rows in self._kinds]
        most = sum(map(len, changed)) // 4
        if not self._found:
            held = [rows.slots() for rows in self._kinds]
            listed = [self._groups(rows, slots) for rows, slots in zip(self._kinds, held, strict=True)]
            if turn.turn == 0 and sum(map(len, held)) - sum(map(len, changed)) <= most:
                self._next = replace(turn, turn=len(turn.groups))
                others = [_others(slots, some) for slots, some in zip(held, changed, strict=True)]
                return Repeated(changed, [np.ones(len(some), np.bool_) for some in changed], others, turn.left)
            self._list(held, listed)
        groups = [self._groups(rows, slots) for rows, slots in zip(self._kinds, changed, strict=True)]
        for kind, (slots, theirs) in enumerate(zip(changed, groups, strict=True)):
            self._note(kind, slots, theirs)
        fresh = [np.sort(slots) for slots in changed]
        least, count = -(-len(turn.groups) // turn.most_turns), 0
        taken: list[int] = []
        parts: list[list[NDArray[Any]]] = [[slots[:0]] for slots in changed]
        for at in range(turn.turn, len(turn.groups)):
            group = turn.groups[at]
            found = [self._unchanged(kind, group, some) for kind, some in enumerate(fresh)]
            count += sum(map(len, found))
            if count > most and len(taken) >= least:
                break
            taken.append(group)
            for some, part in zip(parts, found, strict=True):
                some.append(part)
            if count > most and len(taken) >= least:
                break
        self._next = replace(turn, turn=turn.turn + len(taken))
        for by_group in self._found:
            for group in taken:
                by_group[group] = []
        among = [np.isin(theirs, taken) for theirs in groups]
        return Repeated(changed, among, [np.sort(np.concatenate(some)) for some in parts], len(taken))

    def _list(self, held: list[NDArray[Any]], groups: list[NDArray[np.int32]]) -> None:
        """Lists rows of each kind by their groups, which are given."""
        for slots, theirs in zip(held, groups, strict=True):
            order, in_order = _by_group(theirs, self._next.key_groups)
            ends = np.cumsum(np.bincount(in_order, minlength=self._next.key_groups))[:-1]
            self._found.append([[part] for part in np.split(slots[order], ends)])
            self._limit += len(slots)
            self._nbytes += slots.nbytes

    def _note(self, kind: int, slots: NDArray[Any], groups: NDArray[np.int32]) -> None:
        """Takes rows that may be unchanged when the turn of their group comes."""
        if not len(slots):
            return
        order, groups = _by_group(groups, self._next.key_groups)
        found, starts = np.unique(groups, return_index=True)
        left = set(self._next.groups[self._next.turn :])
        for group, part in zip(found.tolist(), np.split(slots[order], starts)[1:], strict=True):
            if group in left:
                self._found[kind][group].append(part)
                self._later += len(part)
                self._nbytes += part.nbytes

    def _unchanged(self, kind: int, group: int, changed: NDArray[Any]) -> NDArray[Any]:
        """Returns the slots of the unchanged rows of a group, ascending. changed: those that are not, ascending."""
        rows = self._kinds[kind]
        listed = self._found[kind][group]
        if not any(map(len, listed)):  # as in most of very many groups
            return changed[:0]
        slots = unique(np.concatenate(listed))
        slots = slots[rows.live_marks(slots)]
        if len(changed):
            places = np.searchsorted(changed, slots)
            slots = slots[changed[np.minimum(places, len(changed) - 1)] != slots]
        return slots[self._groups(rows, slots) == group]

    def _groups(self, rows: RepeatedRows, slots: NDArray[Any]) -> NDArray[np.int32]:
        """Returns the key group of each row; raises StateError where it is none of those that are repeated."""
        found = KeyCodec.groups(self._keys, rows.keys(slots), self._next.key_groups)
        if not (mine := self._mine[found]).all():
            here = list(self._next.groups)
            raise StateError(f"state: rows of key group {found[~mine][0]} among those of the groups {here}")
        return found


def in_round(on: Round | None, refresh: Refresh, keys: KeyTable, kinds: Sequence[RepeatedRows]) -> Round:
    """Returns the round of a delta: the one that is on, or a new one. kinds: see ``Round``."""
    return on if on is not None and on.goes_on(refresh) else Round(refresh, keys, kinds)


def round_bytes(on: Round | None) -> int:
    """Returns the bytes of the round that is on; 0: none is."""
    return 0 if on is None else on.nbytes


def _others(slots: NDArray[Any], some: NDArray[Any]) -> NDArray[Any]:
    """Returns the slots without some of them, ascending."""
    return np.setdiff1d(slots, some)  # not by a mark for each slot: numbers of arrivals grow for ever


def _by_group(groups: NDArray[np.int32], count: int) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Returns the order of rows by their groups, and these in that order. count: how many groups there are."""
    small = groups.astype(np.uint16) if count <= 1 << 16 else groups  # NumPy sorts those in O(rows)
    order = np.argsort(small, kind="stable")
    return order, small[order]

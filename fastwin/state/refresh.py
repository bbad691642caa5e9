"""Deltas that repeat unchanged rows, a few key groups at a time, so that the deltas before them can be forgotten."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastwin.columns.keys import KeyCodec
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.rows.rowstore import RowStore
from fastwin.errors import StateError

__all__ = ["Refresh", "Repeated"]


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

        O(rows of state). Raises StateError if there is a row of another group, which nothing would ever repeat.
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
        here = list(self.groups)
        if sizes.sum() != sizes[here].sum():
            sizes[here] = 0
            raise StateError(f"state: rows of key group {sizes.argmax()} among those of the groups {here}")
        fit = int(np.searchsorted(np.cumsum(sizes[here[self.turn :]]), len(changed) // 4, side="right"))
        taken = here[self.turn :][: max(fit, 1)]
        wanted = np.zeros(self.key_groups + 1, dtype=np.bool_)  # the last one: of keys that are not there
        wanted[taken] = True
        whose = wanted[group_of]
        unchanged = slots[wanted[group]]
        repeated = np.concatenate([whose[rows.keys(changed)], np.ones(len(unchanged), dtype=np.bool_)])
        return Repeated(np.concatenate([changed, unchanged]), repeated, whose, len(taken))

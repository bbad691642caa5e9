"""What deltas of the general operator repeat in turns: rows of windows with their timers, and what keys keep."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastwin.core.windows.timerservice import TimerService
from fastwin.operators.general.userstate import UserState
from fastwin.state.refresh import Refresh, Round

if TYPE_CHECKING:
    from fastwin.operators.general.operator import GeneralOperator

__all__ = ["GeneralRound", "RowTimer", "is_unmarked", "unmarked"]

RowTimer = tuple[int, int, int]
"""The slot of a timer's row, its time, ms, and its kind: 0 event time, 1 processing time."""


def is_unmarked(service: TimerService, slot: int, time: int, kind: int) -> bool:
    """Whether the row in a slot has a timer, of which no mark in it tells."""
    return service.has_timer(slot, time, kind) and (time, kind) not in service.marks(slot)[0]


def unmarked(service: TimerService, wanted: NDArray[np.uint8] | None = None) -> list[RowTimer]:
    """Returns the timers of rows that no marks tell of. wanted: of which, uint8[rows]; None: of all. O(timers)."""
    slots, times, kinds = service.unmarked()
    if wanted is not None:
        mine = wanted[slots] != 0
        slots, times, kinds = slots[mine], times[mine], kinds[mine]
    return list(zip(slots.tolist(), times.tolist(), kinds.tolist(), strict=True))


class _Keys:
    """Keys with state of their own, as ``state.refresh`` asks for rows: a slot is the id of a key."""

    def __init__(self, state: UserState) -> None:
        self._state = state

    def slots(self) -> NDArray[np.int32]:
        return np.fromiter(self._state.keys, np.int32, len(self._state.keys))

    def dirty_slots(self) -> NDArray[np.int32]:
        return np.fromiter(self._state.dirty_keys, np.int32, len(self._state.dirty_keys))

    def live_marks(self, slots: NDArray[np.int32]) -> NDArray[np.bool_]:
        held = self._state.keys
        return np.fromiter((key in held for key in slots.tolist()), np.bool_, len(slots))

    def keys(self, slots: NDArray[np.int32]) -> NDArray[np.int32]:
        return slots


class GeneralRound(Round):
    """A round of the general operator. It lists the timers that no marks of rows tell of as it does rows: once."""

    def __init__(self, refresh: Refresh, operator: GeneralOperator) -> None:
        super().__init__(refresh, operator.table.keys, [operator.table.rows, _Keys(operator.state)])
        self._service: TimerService = operator.timer_service
        slots, times, kinds = self._service.unmarked()
        order = np.argsort(slots, kind="stable")
        self._slots, self._times, self._kinds_of_timers = slots[order], times[order], kinds[order]
        self._noted: dict[int, list[tuple[int, int]]] = {}  # by slot: those that came since

    @property
    def nbytes(self) -> int:
        """Bytes of slots and timers; of those that came later, only the references."""
        listed = self._slots.nbytes + self._times.nbytes + self._kinds_of_timers.nbytes
        return super().nbytes + listed + 8 * len(self._noted)

    def note_timers(self, timers: Iterable[RowTimer]) -> None:
        """Takes timers that a delta tells of."""
        for slot, time, kind in timers:
            self._noted.setdefault(slot, []).append((time, kind))

    def timers(self, slots: NDArray[np.int32]) -> set[RowTimer]:
        """Returns the timers of rows that no marks tell of. O(rows log timers + result)."""
        first = np.searchsorted(self._slots, slots)
        counts = np.searchsorted(self._slots, slots, "right") - first
        at = np.arange(counts.sum()) + np.repeat(first - (np.cumsum(counts) - counts), counts)
        columns = self._slots[at], self._times[at], self._kinds_of_timers[at]
        found = set(zip(*(column.tolist() for column in columns), strict=True))
        if self._noted:
            found |= {(slot, *timer) for slot in slots.tolist() for timer in self._noted.get(slot, ())}
        return {timer for timer in found if is_unmarked(self._service, *timer)}

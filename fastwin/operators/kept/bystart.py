"""ByStart: rows in the order of their slices, so that those of windows that fire are found without a look at others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastwin.core.memory.ordering import ordered
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP

__all__ = ["ByStart", "ascending"]

# Shorter runs than that are not worth looking for.
_RUN = 64


class ByStart:
    """Places of rows by the starts of their slices, in sorted runs of which each is at least twice as long as the next.

    It is told of no single row that goes. All starts in ms. Adding is amortised O(log rows) a row.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[NDArray[np.int64], NDArray[np.int32]]] = []
        self._first = MAX_TIMESTAMP  # the first slice that is not forgotten
        self.known = 0
        """How many places have been added."""

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(starts.nbytes + places.nbytes for starts, places in self._runs)

    def add(self, starts: NDArray[np.int64]) -> None:
        """Adds the places behind those that are known. starts: of their slices, int64[n]."""
        live = np.flatnonzero(starts != MIN_TIMESTAMP)  # the others are of rows that are gone already
        places = (self.known + live).astype(np.int32)
        self.known += len(starts)
        starts = starts[live]
        if not len(starts):
            return
        self._runs.append(_in_order(starts, places))
        while len(self._runs) > 1 and len(self._runs[-2][0]) < 2 * len(self._runs[-1][0]):
            last, before = self._runs.pop(), self._runs[-1]
            self._runs[-1] = _in_order(np.concatenate([before[0], last[0]]), np.concatenate([before[1], last[1]]))
        self._first = min(self._first, int(starts.min()))

    def count(self, first: int, last: int) -> int:
        """Returns how many places ``between`` would return. O(log² rows)."""
        return sum(part.stop - part.start for part in self._parts(first, last))

    def between(self, first: int, last: int) -> NDArray[np.int32]:
        """Returns the places of slices with first <= start <= last. O(these + log² rows)."""
        parts = self._parts(first, last)
        found = [places[part] for (_, places), part in zip(self._runs, parts, strict=True)]
        return np.concatenate(found) if found else np.empty(0, np.int32)

    def take_before(self, start: int) -> NDArray[np.int32]:
        """Forgets the slices before ``start``; returns their places. Amortised O(these + log² rows)."""
        found = self.between(self._first, start - 1)
        self._first = max(self._first, start)
        for i, (starts, places) in enumerate(self._runs):
            gone = int(np.searchsorted(starts, start))
            if 2 * gone > len(starts):
                self._runs[i] = starts[gone:].copy(), places[gone:].copy()
        self._runs = [run for run in self._runs if len(run[0])]
        return found

    def _parts(self, first: int, last: int) -> list[slice]:
        first = max(first, self._first)
        if first > last:
            return [slice(0, 0)] * len(self._runs)
        return [
            slice(int(np.searchsorted(starts, first)), int(np.searchsorted(starts, last, side="right")))
            for starts, _ in self._runs
        ]


def ascending(places: NDArray) -> NDArray:
    """Returns places of some slices in order. They come in ascending runs, which are long where rows come by time."""
    runs = np.count_nonzero(places[1:] < places[:-1])
    return np.sort(places, kind="stable" if runs * _RUN <= len(places) else None)


def _in_order(starts: NDArray[np.int64], places: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    order, _ = ordered([starts])
    return starts[order], places[order]

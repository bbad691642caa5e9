"""The slices of calendar windows: irregular ones, found in a sorted table of bounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastwin.operators.aligned.slicing import Windows, clamped, expanded, within
from fastwin.times import MIN_TIMESTAMP
from fastwin.windows.bounds import NO_BOUNDS
from fastwin.windows.calendar import CalendarEventTimeWindows

__all__ = ["CalendarSlicing"]

_DAY_MS = 86_400_000
_HALF_A_YEAR_MS = 180 * _DAY_MS
# With fewer slides in a window, blocks of them would save no memory.
_BLOCKS_FROM = 16


class CalendarSlicing:
    """Slices of calendar windows; see Slicing. ``cover`` is told of all times before anything is asked about them.

    Elements outside of the table's ranges there are none, so what is asked of other times is answered with the first or
    the last bound of one: no slice with contents lies beyond. What is over and forgotten never reaches into the time
    before a range: elements may still come there. Before the first element, the table knows of no time.
    """

    # A grid that all bounds are on.
    slide = 1
    offset = 0
    # Ends are counted by their places in the table.
    step = 1
    grid = (1, 0, 0)

    def __init__(self, windows: CalendarEventTimeWindows) -> None:
        self._windows = windows
        self.shared = windows.shape == "cumulative" or windows.most_windows > 1
        self.covering = windows.most_windows
        self._known = NO_BOUNDS

    @property
    def blocks(self) -> tuple[int, ...]:
        if self._windows.shape == "cumulative" or self.covering < _BLOCKS_FROM:
            return ()
        return (int(self.covering**0.5) * self._windows.size.most_days * _DAY_MS // self.covering,)

    @property
    def bounds(self) -> NDArray[np.int64] | None:
        return self._known.bounds

    def cover(self, times: NDArray[np.int64]) -> None:
        if not len(times):
            return
        if not self._known.knows(int(times.min()), int(times.max())):
            self._known = self._windows.bounds_with(self._known, times)

    def knows(self, first: int, last: int) -> bool:
        return self._known.knows(first, last)

    def _at(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns which slices times are in."""
        return np.searchsorted(self._known.bounds, starts, side="right") - 1

    def _bound_after(self, t: int) -> int:
        """Returns the place of the first bound later than t; one behind the last where there is none."""
        return int(np.searchsorted(self._known.bounds, within(t), side="right"))

    def assign(self, times: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
        return self._known.bounds[self._at(times)], None

    def bound_at(self, t: int) -> int:
        return int(self._known.bounds[max(self._bound_after(t) - 1, 0)])

    def bound_after(self, t: int) -> int:
        return self.end_after(t)

    def start_of(self, end: int) -> int:
        known = self._known
        return int(known.bounds[known.starts[max(self._bound_after(end) - 1, 0)]])

    def end_after(self, t: int) -> int:
        bounds = self._known.bounds
        return int(bounds[min(self._bound_after(t), len(bounds) - 1)])

    def last_end(self, start: int) -> int:
        known = self._known
        return int(known.bounds[known.last_ends[max(self._bound_after(start) - 1, 0)]])

    def last_ends(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        known = self._known
        return known.bounds[known.last_ends[self._at(starts)]]

    def first_kept(self, watermark: int, lateness: int) -> int:
        if watermark == MIN_TIMESTAMP:
            return MIN_TIMESTAMP
        known = self._known
        # For a plain int, numpy would copy the table as int64 first.
        place = int(known.last_ends.searchsorted(np.int32(self._bound_after(watermark - lateness + 1))))
        # Of slices behind the last time, not all ends are known.
        place = min(place, int(known.bounds.searchsorted(known.last)))
        return int(known.bounds[place]) if place else MIN_TIMESTAMP  # the table may yet get earlier slices

    def first_unpassed(self, watermark: int) -> int:
        if watermark == MIN_TIMESTAMP:
            return MIN_TIMESTAMP
        place = self._bound_after(watermark + 1)
        return clamped(int(self._known.bounds[place - 1])) if place else MIN_TIMESTAMP  # as above

    def late_windows(
        self, starts: NDArray[np.int64], watermark: int, lateness: int, afters: NDArray[np.int64] | None = None
    ) -> Windows:
        known, at = self._known, self._at(starts)
        first = np.maximum(at + 1, self._bound_after(watermark - lateness + 1))
        if afters is not None:
            first = np.maximum(first, self._at(afters) + 1)
        last = np.minimum(known.last_ends[at], self._bound_after(watermark + 1) - 1)
        counts, ends = expanded(first, last, 1)
        return Windows(counts, known.bounds[known.starts[ends]], known.bounds[ends])

    def kept_ends(
        self, starts: NDArray[np.int64], watermark: int, lateness: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        known, at = self._known, self._at(starts)
        first = at + 1
        if watermark > MIN_TIMESTAMP:
            first = np.maximum(first, self.first_end(watermark - lateness + 1))
        return first, known.last_ends[at].astype(np.int64)

    def first_end(self, t: int) -> int:
        return self._bound_after(t)

    def ends_at(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._known.bounds[ends]

    def end_behind(self, end: int, windows: int) -> int:
        bounds = self._known.bounds
        return int(bounds[min(max(self._bound_after(end) - 1, 0) + windows, len(bounds) - 1)])

    def cover_between(self, afters: NDArray[np.int64], untils: NDArray[np.int64]) -> None:
        # The windows between two ranges have not been asked for so far.
        while (apart := self._known.ranges_of(afters - 1) != self._known.ranges_of(untils - 1)).any():
            first, last = int(afters[apart][0]) - 1, int(untils[apart][0]) - 1
            self.cover(np.append(np.arange(first, last, _HALF_A_YEAR_MS), last))

    def places_of(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._at(ends)

    def windows_at(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        known = self._known
        return known.bounds[known.starts[places]], known.bounds[places]

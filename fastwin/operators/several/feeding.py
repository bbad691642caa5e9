"""Which of several windows feeds which: the coarsest one whose slices lie in those of the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fastwin.operators.aligned.calendarslicing import CalendarSlicing
from fastwin.operators.aligned.slicing import CumulativeSlicing, Slicing, SlidingSlicing
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP
from fastwin.windows.assigner import WindowAssigner
from fastwin.windows.calendar import CalendarEventTimeWindows
from fastwin.windows.cumulative import CumulativeEventTimeWindows
from fastwin.windows.named_windows import NamedWindows
from fastwin.windows.sliding import SlidingEventTimeWindows
from fastwin.windows.tumbling import TumblingEventTimeWindows

__all__ = ["fed_from", "feeders", "slicing_of"]

# Calendars are held to others by their bounds of these years, ms: from 1970 to 2039.
_FIRST, _LAST = 0, 2_208_988_800_000


def slicing_of(assigner: WindowAssigner | None) -> Slicing | None:
    """Returns the slices of windows, of several those of the finest ones; None for windows that have none."""
    match assigner:
        case NamedWindows(named=named):
            return slicing_of(named[feeders(named).index(None)][1])
        case TumblingEventTimeWindows():
            return SlidingSlicing(assigner.size_ms, assigner.size_ms, assigner.offset_ms)
        case SlidingEventTimeWindows():
            return SlidingSlicing(assigner.size_ms, assigner.slide_ms, assigner.offset_ms)
        case CumulativeEventTimeWindows():
            return CumulativeSlicing(assigner.max_size_ms, assigner.step_ms, assigner.offset_ms)
        case CalendarEventTimeWindows():
            return CalendarSlicing(assigner)
    return None


def feeders(windows: Sequence[tuple[str, WindowAssigner]]) -> list[int | None]:
    """Returns for each of some windows which other one feeds it; None: elements do.

    Each slice of the one that feeds lies in one slice of the other.
    """
    grids = [_grid(assigner) for _, assigner in windows]
    found: list[int | None] = []
    for i, grid in enumerate(grids):
        finer = [
            (other.width, -j)
            for j, other in enumerate(grids)
            if (other.width, j) < (grid.width, i) and other.holds(grid)
        ]
        found.append(-max(finer)[1] if finer else None)
    return found


def fed_from(windows: Sequence[tuple[str, WindowAssigner]], fed_by: list[int | None]) -> list[int]:
    """Returns for each of some windows from which slice start on it may feed others, ms; int64 min: from any.

    fed_by: see ``feeders``.
    Before 1970, many days began at odd seconds, in the middle of slices that lie within days today.
    """
    grids, found = [_grid(assigner) for _, assigner in windows], [MIN_TIMESTAMP] * len(windows)
    for i in sorted(range(len(windows)), key=lambda i: (grids[i].width, i), reverse=True):  # the fed ones come first
        feeder = fed_by[i]
        if feeder is not None:
            first = found[i] if grids[i].begins is None else max(found[i], _FIRST)
            if first > MIN_TIMESTAMP:
                found[feeder] = max(found[feeder], grids[feeder].bound_from(first))
    return found


class _Grid:
    """The bounds of slices: ``offset + k * step`` for some offsets; or a table, with steps from each one on or none.

    step: 0: none. width: of a slice on average, ms.
    """

    def __init__(self, step: int, offsets: set[int], begins: NDArray[np.int64] | None = None) -> None:
        self.step, self.offsets, self.begins = step, offsets, begins
        if begins is None:
            self.width = step / len(offsets)
            return
        inside = begins[(begins >= _FIRST) & (begins <= _LAST)]
        self.compared = inside if len(inside) > 1 else begins
        lengths = np.diff(self.compared)
        self.width = float(lengths.sum() / (-(-lengths // step) if step else np.ones_like(lengths)).sum())

    def holds(self, other: _Grid) -> bool:
        """Whether all bounds of another grid are bounds of this one."""
        step = self.step
        if self.begins is None:
            same = {(offset + other.step) % step for offset in self.offsets} == self.offsets
            firsts = np.array(list(other.offsets)) if other.begins is None else other.compared
            return same and bool(np.isin(firsts % step, list(self.offsets)).all())
        if other.begins is None:
            return False
        if not step:
            return not other.step and bool(np.isin(other.compared, self.begins).all())
        if other.step % step or not _on_steps(other.compared, self.begins, step):
            return False
        return not other.step or _on_steps(self.compared, other.begins, step)

    def bound_from(self, time: int) -> int:
        """Returns a bound, ms, that is not before a time: the next one, or one that no steps lead to."""
        if self.begins is None:
            return min(min(time + (offset - time) % self.step for offset in self.offsets), MAX_TIMESTAMP)
        at = int(self.begins.searchsorted(time))
        return int(self.begins[at]) if at < len(self.begins) else MAX_TIMESTAMP


def _on_steps(times: NDArray[np.int64], begins: NDArray[np.int64], step: int) -> bool:
    """Whether each time is a number of steps behind the last begin that is not after it."""
    at = begins.searchsorted(times, side="right") - 1
    return bool((at >= 0).all()) and not ((times - begins[at]) % step).any()


def _grid(assigner: WindowAssigner) -> _Grid:
    if isinstance(assigner, CalendarEventTimeWindows):
        step = 0
        if isinstance(assigner.every, int):  # too many for a table of all
            step = assigner.every
            assigner = replace(assigner, shape="fixed", every=assigner.size)
        return _Grid(step, set(), assigner.bounds(_FIRST, _LAST).bounds)
    slicing = slicing_of(assigner)
    assert slicing is not None
    assert slicing.grid is not None
    slide, rest, offset = slicing.grid
    return _Grid(slide, {offset % slide, (offset + rest) % slide})

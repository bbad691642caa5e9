"""Which of several windows feeds which: the coarsest one whose slices lie in those of the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fastwin.operators.aligned.calendarslicing import CalendarSlicing
from fastwin.operators.aligned.slicing import CumulativeSlicing, Slicing, SlidingSlicing
from fastwin.windows.assigner import WindowAssigner
from fastwin.windows.calendar import CalendarEventTimeWindows
from fastwin.windows.cumulative import CumulativeEventTimeWindows
from fastwin.windows.named_windows import NamedWindows
from fastwin.windows.sliding import SlidingEventTimeWindows
from fastwin.windows.tumbling import TumblingEventTimeWindows

__all__ = ["feeders", "slicing_of"]

# Calendars are held to others by their bounds of these years, ms; those that have many, of ten years.
_YEARS = 315_532_800_000, 2_208_988_800_000
_FEW_YEARS = 946_684_800_000, 1_262_304_000_000


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


class _Grid:
    """The bounds of slices: ``offset + k * step`` for some offsets, or a table of them.

    width: of a slice on average, ms.
    """

    def __init__(self, step: int, offsets: set[int], bounds: NDArray[np.int64] | None = None) -> None:
        self.step, self.offsets, self.bounds = step, offsets, bounds
        self.width = step / len(offsets) if bounds is None else float(np.diff(bounds).mean())

    def holds(self, other: _Grid) -> bool:
        """Whether all bounds of another grid are bounds of this one."""
        if self.bounds is not None:
            return other.bounds is not None and bool(np.isin(other.bounds, self.bounds).all())
        if other.bounds is not None:
            return bool(np.isin(other.bounds % self.step, list(self.offsets)).all())
        return other.step % self.step == 0 and all(offset % self.step in self.offsets for offset in other.offsets)


def _grid(assigner: WindowAssigner) -> _Grid:
    if isinstance(assigner, CalendarEventTimeWindows):
        first, last = _FEW_YEARS if isinstance(assigner.every, int) else _YEARS
        bounds = assigner.bounds(first, last).bounds
        return _Grid(1, set(), bounds[(bounds >= first) & (bounds <= last)])
    slicing = slicing_of(assigner)
    assert slicing is not None
    assert slicing.grid is not None
    slide, rest, offset = slicing.grid
    return _Grid(slide, {offset % slide, (offset + rest) % slide})

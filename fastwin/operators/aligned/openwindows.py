"""How many windows are open over slices, without a look at those that were counted before."""

from fastwin.core.panes.openends import OpenEnds
from fastwin.core.panes.panetable import PaneTable
from fastwin.operators.aligned.slicing import Slicing, within
from fastwin.operators.lateness import Lateness
from fastwin.times import MIN_TIMESTAMP

__all__ = ["open_windows_over"]


def open_windows_over(panes: PaneTable, ends: OpenEnds, slicing: Slicing, watermark: int, lateness: Lateness) -> int:
    """Counts pairs of a key and a window over one of its slices that is not cleaned yet.

    panes: a row for each (key, slice). ends: of these. O(1), but O(slices + rows made since the last call) where
    windows share slices, and O(rows) with calendars.
    """
    if not slicing.shared:
        return len(panes)
    starts, kept = panes.starts(), lateness.at(watermark)
    if slicing.bounds is not None:
        return panes.count_ends(*slicing.kept_ends(starts, watermark, kept), slicing.step)
    since = MIN_TIMESTAMP if watermark == MIN_TIMESTAMP else within(slicing.end_after(watermark - kept + 1))
    return ends.count(*slicing.kept_ends(starts, MIN_TIMESTAMP, 0), since)

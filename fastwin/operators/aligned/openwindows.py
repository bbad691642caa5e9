"""How many windows are open over slices, without a look at those that were counted before."""

from fastwin.core.panes.openends import OpenEnds
from fastwin.core.panes.panetable import PaneTable
from fastwin.operators.aligned.slicing import Slicing
from fastwin.operators.lateness import Lateness
from fastwin.times import MIN_TIMESTAMP

__all__ = ["open_windows_over"]


def open_windows_over(panes: PaneTable, ends: OpenEnds, slicing: Slicing, watermark: int, lateness: Lateness) -> int:
    """Counts pairs of a key and a window over one of its slices that is not cleaned yet.

    panes: a row for each (key, slice). ends: of these. O(1), but O(slices + rows made since the last call) where
    windows share slices, and O(rows) where the table of a calendar has changed since.
    """
    if not slicing.shared:
        return len(panes)
    since = MIN_TIMESTAMP
    if watermark != MIN_TIMESTAMP:
        since = slicing.first_end(watermark - lateness.at(watermark) + 1)
    ends.go_by(slicing.bounds)
    return ends.count(*slicing.kept_ends(panes.starts(), MIN_TIMESTAMP, 0), since)

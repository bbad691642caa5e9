"""Refiring: windows that fire once more for each of the late rows in them, in the order in which these came."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from fastwin.core.memory.ordering import unique
from fastwin.operators.kept.picks import Fired, Pick
from fastwin.operators.kept.pieces import Pieces, cut

__all__ = ["refired"]


def refired(pick: Pick, rows: Pieces, bands: Iterator[Fired], late: NDArray[np.int64], most: int) -> Iterator[Fired]:
    """Yields what ``Pick.results`` needs for windows that fire at each of their late rows, with those up to it: late
    row by late row, and of each in order of the windows' ends.

    rows: the columns of all that are kept. bands: all rows of the windows, in each by arrival; the ends in a band are
    behind those in the band before. late: slots, ascending. most: how many rows are yielded together, or those of one
    firing, where several bands have several late rows: then all that is shown is held until it is in order. O(results).
    """
    first = list(islice(bands, 2))
    together = chain(first, bands)
    if len(first) < 2 or len(late) == 1:  # in order already
        yield from (shown for band in together for shown, _ in _shown(pick, rows, band, late))
        return
    yield from _in_order([part for band in together for part in _shown(pick, rows, band, late)], most)


def _shown(pick: Pick, rows: Pieces, band: Fired, late: NDArray[np.int64]) -> Iterator[tuple[Fired, NDArray[np.int64]]]:
    """Yields what the windows of a band show, and of each row of that the slot of the late one that fires."""
    firings = np.flatnonzero(band.slots >= late[0])  # those of other new rows are in no window that has passed
    firings = firings[np.lexsort((band.ends[firings], band.slots[firings]))]
    for shown in pick.upto(rows, band, firings):
        yield shown, band.slots[firings][shown.groups]


def _in_order(parts: list[tuple[Fired, NDArray[np.int64]]], most: int) -> Iterator[Fired]:
    """Yields rows in order of the late ones that fire, and of the ends of windows."""
    ends = unique(np.concatenate([unique(shown.ends) for shown, _ in parts]))
    found = Fired.put_together(
        [replace(shown, groups=by * len(ends) + np.searchsorted(ends, shown.ends)) for shown, by in parts]
    )
    if not len(found):
        return
    edges = np.append(np.flatnonzero(found.begins()), len(found))
    for part in cut(np.diff(edges), most):
        yield found.select(slice(edges[part.start], edges[part.stop]))

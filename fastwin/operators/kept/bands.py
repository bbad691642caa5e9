"""Bands: which windows fire together, so that their rows, each as often as there are windows over it, are not too many.

A band is an interval of watermarks: the windows that pass in it fire together. Times in ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastwin.core.memory.ordering import unique
from fastwin.operators.aligned.slicing import Slicing, within
from fastwin.operators.kept.bystart import ascending

__all__ = ["Band", "end_of_band", "first_end", "late_bands", "late_spans"]


class Band(NamedTuple):
    """Windows with before < end - 1 <= until, and the places of the rows that are in some of them, ascending."""

    before: int
    until: int
    places: NDArray[np.int64]


def first_end(slicing: Slicing, slices: NDArray[np.int64], watermark: int) -> int | None:
    """Returns the first end of a window over slices that has not passed; None: there is none. O(log slices).

    slices: their starts, ascending: int64[n].
    """
    if not len(slices):
        return None
    at = np.searchsorted(slices, slicing.first_kept(watermark, 0))
    first, last = slicing.kept_ends(slices[at : at + 1], watermark, 0)
    return int(slicing.ends_at(first)[0]) if len(first) and first[0] <= last[0] else None


def end_of_band(slicing: Slicing, end: int, watermark: int, count: Callable[[int, int], int], most: int) -> int:
    """Returns the last watermark of the band that begins with the window at ``end``; ``watermark`` at most.

    count: returns how many rows are in slices that start from one time to another. Each as often as there are windows
    over it, they are at most ``most``, or those of one window alone.
    """
    covering, first = slicing.covering, slicing.start_of(end)
    if count(first, watermark) * covering <= most:
        return watermark
    windows, until = 1, end - 1
    while True:
        windows *= 2
        more = slicing.end_behind(end, windows - 1) - 1
        if not until < more < watermark or count(first, more) * min(windows, covering) > most:
            return until
        until = more


def late_bands(slicing: Slicing, starts: NDArray[np.int64], watermark: int, lateness: int, most: int) -> Iterator[Band]:
    """Yields bands of the windows that have passed and are still kept, in order; mostly one.

    starts: of the slices of the rows in them, and maybe of others: int64[n]. most: as in ``end_of_band``, of these.
    O(n log n).
    """
    before = watermark - lateness
    if len(starts) * slicing.covering <= most:
        yield Band(before, watermark, np.arange(len(starts)))
        return
    order = np.argsort(starts, kind="stable")
    in_order = starts[order]
    slices = unique(in_order)

    def between(first: int, last: int) -> slice:
        return slice(int(np.searchsorted(in_order, first)), int(np.searchsorted(in_order, last, side="right")))

    def count(first: int, last: int) -> int:
        part = between(first, last)
        return part.stop - part.start

    while (end := first_end(slicing, slices, before)) is not None and end - 1 <= watermark:
        until = end_of_band(slicing, end, watermark, count, most)
        yield Band(before, until, ascending(order[between(slicing.start_of(end), until)]))
        before = until


def late_spans(
    slicing: Slicing, starts: NDArray[np.int64], since: NDArray[np.int64], watermark: int, lateness: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Returns which late elements are in windows that have passed and are still kept, and what these windows span.

    starts: of the elements' slices, since: the first ends of windows that take them: int64[n] each. Returned are
    places, ascending, and for each where its first such window begins, and a time that none of them ends after. O(n).
    """
    first, last = slicing.kept_ends(starts, watermark, lateness)
    some = np.flatnonzero(first <= last)
    firsts = np.maximum(slicing.ends_at(first[some]), since[some])
    ends = np.minimum(slicing.ends_at(last[some]), within(watermark + 1))
    fires = firsts <= ends
    windows = slicing.windows_at(slicing.places_of(firsts[fires]))
    return some[fires], windows[0], ends[fires]

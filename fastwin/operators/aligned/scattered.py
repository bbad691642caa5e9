"""Elements that jump between many slices, in the order of these: each slice is in the cache only once then."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastwin.core.memory.ordering import ordered, unique
from fastwin.core.panes.slices import most_slices, order_by_slice
from fastwin.operators.aligned.slicing import Slicing

__all__ = [
    "are_sparse",
    "cuts_between",
    "order_by_slices",
    "order_of_starts",
]

# Elements in so many slices, of so many neighbours, which go back as often, are put in order before they are taken.
_SCATTERED, _SAMPLE = 256, 4096
# Fewer elements in a slice than this are sparse.
_SPARSE = 8
# Pieces are no smaller than such a part of the largest, and a window by itself than a larger one.
_TINY, _ALONE = 16, 4


@dataclass(frozen=True)
class _SliceRange:
    """``count`` slices of ``slide`` ms, the first of which begins at ``first``."""

    first: int
    slide: int
    count: int

    def order(self, times: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the stable order of elements by slices, and where each slice ends in it: int64[n], int64[count].

        times: int64[n], ms, all within the slices.
        """
        return order_by_slice(times, self.first, self.slide, self.count)


def _range_of(slicing: Slicing, first: int, last: int) -> _SliceRange | None:
    """Returns the slices from a time to another one, ms; None where they are too many, or not of one length."""
    if slicing.grid is None or slicing.bounds is not None or slicing.grid[1]:
        return None
    slide, _, offset = slicing.grid
    start = first - (first - offset) % slide
    count = (last - start) // slide + 1
    return _SliceRange(start, slide, count) if count <= most_slices and start >= -(2**61) else None


def _are_scattered(slicing: Slicing, times: NDArray[np.int64]) -> bool:
    """Whether neighbours among elements are in many slices, so that to order them pays. times: int64[n], ms."""
    if slicing.grid is None or not len(times):
        return False
    slicing.cover(times)
    starts, _ = slicing.assign(times[:_SAMPLE])
    return bool(len(unique(starts)) >= _SCATTERED and np.count_nonzero(starts[1:] < starts[:-1]) >= _SCATTERED)


def are_sparse(slicing: Slicing, times: NDArray[np.int64]) -> bool:
    """Whether neighbours among elements are in nearly as many slices. times: int64[n], ms."""
    if slicing.grid is None or not len(times):
        return False
    slicing.cover(times)
    starts, _ = slicing.assign(times[:_SAMPLE])
    return _SPARSE * len(unique(starts)) > len(starts)


def cuts_between(slicing: Slicing, times: NDArray[np.int64], most: int) -> list[int]:
    """Returns where to cut elements into pieces of ``most`` or fewer: where a slice begins, if times ascend there and
    what comes before and behind is not tiny. The end of each piece but the last. times: int64[n], ms.
    """
    least = most // _TINY
    found, at = [], 0
    while at < len(times):
        part = times[at : at + most]
        ends = part[[0, -1]]
        slicing.cover(ends)
        behind = len(times) - at - len(part)
        bounds = (slicing.bound_after(int(ends[0])), most // _ALONE), (slicing.bound_at(int(ends[1])), least)
        for bound, enough in bounds:
            size = int(np.searchsorted(part, bound))
            if size >= enough and len(part) - size + behind >= least:
                break
        else:
            size = len(part)
        at += max(size, 1)
        found.append(at)
    return found[:-1]


def order_by_slices(slicing: Slicing, times: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Returns the order of elements by their slices, those of a slice as they come: int64[n]; None: it does not pay.

    times: int64[n], ms.
    """
    if not _are_scattered(slicing, times):
        return None
    found = _range_of(slicing, int(times.min()), int(times.max()))
    return order_of_starts(slicing, slicing.assign(times)[0]) if found is None else found.order(times)[0]


def order_of_starts(slicing: Slicing, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the stable order of starts of slices, at least one: int64[n]."""
    found = _range_of(slicing, int(starts.min()), int(starts.max()))
    return ordered([starts])[0].astype(np.int64) if found is None else found.order(starts)[0]

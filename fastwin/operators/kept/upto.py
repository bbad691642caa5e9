"""What windows show that fire at some of their rows, with those up to each: as numbers alone, all of them at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastwin.operators.aligned.slicing import expanded

__all__ = ["Shown", "best_upto", "firsts_of", "rows_upto"]


class Shown(NamedTuple):
    """Places of rows, and of each the number of the firing that shows it: int64[n] each."""

    places: NDArray[np.int64]
    numbers: NDArray[np.int64]


def rows_upto(begins: NDArray[np.bool_], firings: NDArray[np.int64]) -> Shown:
    """Returns the rows of a window up to each firing, firing by firing, in each in their order. O(these).

    begins: marks of the first row of each window. firings: the places of the last row of each.
    """
    counts, places = expanded(-firings, -firsts_of(begins)[firings], 1)  # the last one comes first there
    return Shown(-places, np.repeat(np.arange(len(firings)), counts))


def best_upto(begins: NDArray[np.bool_], ranked: NDArray[np.int64], firings: NDArray[np.int64], n: int) -> Shown:
    """Returns the best n of the rows of a window up to each firing, the best first, in no order of firings.

    ranked: the places of all rows, window by window, the best first. The rest is as in ``rows_upto``. O(n * rows).
    """
    firsts, count = firsts_of(begins), np.arange(len(begins))
    sizes = np.diff(np.flatnonzero(begins), append=len(begins))
    # A number for each row: better ones of a window have greater ones, below all of later windows.
    worth, row_of = np.empty_like(count), np.empty_like(count)
    worth[ranked] = 2 * firsts + np.repeat(sizes, sizes) - 1 - count
    row_of[worth] = count
    at, came, numbers = count, worth, np.arange(len(firings))
    places, of = [], []
    for _ in range(n):
        best = np.maximum.accumulate(came)
        last = np.searchsorted(at, firings[numbers], side="right") - 1
        some = (last >= 0) & (firsts[at[last]] == firsts[firings[numbers]])
        last, numbers = last[some], numbers[some]
        places.append(row_of[best[last]])
        of.append(numbers)
        # Each row behind the first one of a window drives one out, itself or the best, for which the next turn is.
        out, same = np.minimum(came[1:], best[:-1]), firsts[at[1:]] == firsts[at[:-1]]
        at, came = at[1:][same], out[same]
        if not len(at):
            break
    return Shown(np.concatenate(places), np.concatenate(of))


def firsts_of(begins: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Returns of each row the place of the first one of its window."""
    return np.flatnonzero(begins)[np.cumsum(begins) - 1]

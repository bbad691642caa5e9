"""Ranges of the elements of a table, for threads: nothing is copied."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from fastwin.core.panes.sessiongroups import are_in_order
from fastwin.machine.threads import Threads
from fastwin.operators.aligned.groups import GroupsOperator
from fastwin.operators.batch import Batch
from fastwin.run.planner import Plan
from fastwin.run.sample import Part, largest_window, times_from_all_over

__all__ = ["row_ranges", "window_ranges"]

# So many elements for each row of state, on each thread, pay for merging these.
_PER_GROUP = 8
# So many times, about, tell how many elements windows have.
_WINDOW_TIMES = 1 << 12
# As many elements as a range of windows has, about; and so many ranges for each thread at least, so that all are busy:
# no window has more than half of a thread's elements.
_RANGE_ROWS, _PER_THREAD, _BUSY = 1 << 18, 8, 2
# Where a window has more rows of state, which are found one by one, a division is faster.
_RANGE_GROUPS = 1 << 18


def row_ranges(plan: Plan, parts: list[Part], groups: float, threads: int) -> list[Iterator[Batch]] | None:
    """Returns as many elements for each thread, which then merge their state; None: there is too much of it.

    groups: about how many rows of state all elements make.
    """
    before = _places(parts)
    if groups * _PER_GROUP * threads > before[-1]:
        return None
    cuts = before[-1] * np.arange(1, threads) // threads
    bounds = [np.clip(cuts - start, 0, len(times)) for start, (_, times) in zip(before[:-1], parts, strict=True)]
    return [_batches(plan, some) for some in _cut(parts, bounds)]


def window_ranges(
    plan: Plan, whole: GroupsOperator, parts: list[Part], groups: float, each: Threads
) -> list[Iterator[Batch]] | None:
    """Returns the elements of some windows, then those of later ones; None: to divide them by key as well is better.

    Each part has to be in order of time. whole: covers all times. groups: see ``row_ranges``. each: see
    ``run_divided``.
    """
    if not all(each(lambda part: are_in_order(part[1]), parts)):
        return None
    count = max(_PER_THREAD * each.count, int(_places(parts)[-1]) // _RANGE_ROWS)
    some = times_from_all_over(parts, _WINDOW_TIMES)
    most = largest_window(whole, some)
    if most * _BUSY * each.count > 1 or most * groups > _RANGE_GROUPS:
        return None
    cuts = np.unique(whole.cuts_of(some, count))
    bounds = [np.searchsorted(times, cuts) for _, times in parts]
    return [_batches(plan, found) for found in _cut(parts, bounds)]


def _places(parts: list[Part]) -> NDArray[np.int64]:
    """Returns how many elements are in front of each part, and how many there are."""
    return np.array(list(accumulate((len(times) for _, times in parts), initial=0)))


def _cut(parts: list[Part], bounds: list[NDArray]) -> list[list[tuple[int, Part]]]:
    """Cuts each part at its bounds; returns what is in front of the first ones, and so on: places, and parts there."""
    found: list[list[tuple[int, Part]]] = [[] for _ in range(len(bounds[0]) + 1)]
    for (rows, times), place, some in zip(parts, _places(parts).tolist(), bounds, strict=False):
        for at, (first, last) in enumerate(pairwise([0, *some.tolist(), len(times)])):
            if first < last:
                found[at].append((place + first, (rows.slice(first, last - first), times[first:last])))
    return found


def _batches(plan: Plan, parts: list[tuple[int, Part]]) -> Iterator[Batch]:
    return (plan.batch(*part).numbered(place) for place, part in parts)

"""Samples of a table: what some of its elements tell of the others."""

from __future__ import annotations

from itertools import pairwise
from math import expm1, sqrt

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.decoding import take_rows
from fastwin.core.memory.gather import take
from fastwin.operators.aligned.groups import GroupsOperator
from fastwin.run.fresh import new_groups, new_operator
from fastwin.run.planner import Plan

__all__ = [
    "SAMPLE_ROWS",
    "Part",
    "goes_back",
    "has_few_windows",
    "largest_window",
    "middle",
    "most_groups",
    "number_of_groups",
    "times_from_all_over",
]

Part = tuple[pa.RecordBatch, NDArray[np.int64]]
"""Rows that have been checked, and their times, ms."""

# So many neighbours tell what the others are like; and so many that are drawn one by one, each from its own place in
# memory.
SAMPLE_ROWS, _DRAWN = 1 << 15, 1 << 13
# Where one element in so many is in a window before that of the one before it, windows are open for long.
_BACK = 16


def has_few_windows(plan: Plan, part: Part, least: int = 2) -> bool:
    """Whether rows like these are at least so many for each row of state that they make: such state is small, and soon
    merged."""
    rows, times = _middle(part)
    operator = new_operator(plan)
    operator.process(plan.batch(rows, times))
    return least * operator.state_rows <= len(times)


def goes_back(plan: Plan, part: Part) -> bool:
    """Whether elements like these often go back to earlier windows. plan: of GroupsOperator."""
    _, times = _middle(part)
    operator = new_groups(plan)
    return operator.steps_back(times) * _BACK >= len(times)


def number_of_groups(plan: Plan, parts: list[Part]) -> float:
    """Returns about how many rows of state all elements make, by those of a sample from all over.

    Of n elements that are drawn from G groups, about G * (1 - exp(-n / G)) groups have one.
    """
    operator = new_operator(plan)
    n = 0
    for rows, times in _from_all_over(parts):
        operator.process(plan.batch(rows, times))
        n += len(times)
    found = operator.state_rows
    low, high = float(found), float(sum(len(times) for _, times in parts))  # no more than one for each element
    while high > 1.01 * low:
        groups = sqrt(low * high)
        if -groups * expm1(-n / groups) < found:
            low = groups
        else:
            high = groups
    return high


def most_groups(plan: Plan, parts: list[Part]) -> float:
    """Returns about how many rows of state there are at a time at most: those of one window, or of all windows where
    the newest elements come first. plan: of GroupsOperator."""
    if parts[0][1][0] > parts[-1][1][-1]:
        return number_of_groups(plan, parts)
    operator = new_groups(plan)
    times = times_from_all_over(parts, SAMPLE_ROWS)
    operator.expect(int(times[0]), int(times[-1]))
    return number_of_groups(plan, parts) * largest_window(operator, times)


def largest_window(operator: GroupsOperator, times: NDArray[np.int64]) -> float:
    """Returns how much of some times is in the window with most of them, 0 to 1. times: covered, at least one."""
    _, counts = np.unique(operator.starts_of(times), return_counts=True)
    return float(counts.max()) / len(times)


def times_from_all_over(parts: list[Part], count: int) -> NDArray[np.int64]:
    """Returns about ``count`` of the times, or all where they are no more, ascending: int64[n], ms."""
    step = max(sum(len(times) for _, times in parts) // count, 1)
    return np.sort(np.concatenate([times[::step] for _, times in parts]))


def _middle(part: Part) -> Part:
    rows, times = part
    return middle(rows), times[_middle_of(len(times))]


def middle(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Returns SAMPLE_ROWS neighbours in the middle of rows, or all where they are fewer."""
    return rows.slice(_middle_of(rows.num_rows).start, SAMPLE_ROWS)


def _middle_of(n: int) -> slice:
    at = max(n - SAMPLE_ROWS, 0) // 2
    return slice(at, at + SAMPLE_ROWS)


def _from_all_over(parts: list[Part]) -> list[Part]:
    """Returns elements drawn one by one, each as likely as any other: neighbours are often of the same few windows."""
    before = np.cumsum([0] + [len(times) for _, times in parts])
    if before[-1] <= _DRAWN:
        return parts
    places = np.sort(np.random.default_rng(0).choice(before[-1], _DRAWN, replace=False, shuffle=False))
    bounds = np.searchsorted(places, before)
    found = []
    for (rows, times), start, (first, last) in zip(parts, before, pairwise(bounds), strict=False):
        if first < last:
            at = places[first:last] - start
            found.append((take_rows(rows, at), take(times, at)))
    return found

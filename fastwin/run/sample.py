"""Samples of a table: what some of its elements tell of the others."""

from __future__ import annotations

from math import expm1, inf, sqrt
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.operators.aligned.groups import GroupsOperator
from fastwin.run.planner import Plan

__all__ = ["SAMPLE_ROWS", "Part", "goes_back", "has_few_windows", "most_groups", "number_of_groups"]

Part = tuple[pa.RecordBatch, NDArray[np.int64]]
"""Rows that have been checked, and their times, ms."""

# So many elements tell what the others are like; and so many blocks of neighbours, where they are from all over.
SAMPLE_ROWS, _BLOCKS = 1 << 15, 32
# Where one element in so many is in a window before that of the one before it, windows are open for long.
_BACK = 16
# Into so many parts a sample of times is cut, to see how many are in a window.
_CUTS = 64


def has_few_windows(plan: Plan, part: Part) -> bool:
    """Whether rows like these are many for each row of state that they make: such state is small, and soon merged."""
    rows, times = _middle(part)
    operator = plan.new_operator(False)
    operator.process(plan.batch(rows, times))
    return 2 * operator.state_rows <= len(times)


def goes_back(plan: Plan, part: Part) -> bool:
    """Whether elements like these often go back to earlier windows. plan: of GroupsOperator."""
    _, times = _middle(part)
    operator = cast(GroupsOperator, plan.new_operator(False))
    return operator.steps_back(times) * _BACK >= len(times)


def number_of_groups(plan: Plan, parts: list[Part]) -> float:
    """Returns about how many rows of state all elements make, by those of a sample from all over.

    Of n elements that are drawn from G groups, about G * (1 - exp(-n / G)) groups have one.
    """
    operator = plan.new_operator(False)
    n = 0
    for rows, times in _from_all_over(parts):
        operator.process(plan.batch(rows, times))
        n += len(times)
    found = operator.state_rows
    if found == n:
        return inf
    low, high = float(found), float(n) ** 2
    while high > 1.01 * low:
        groups = sqrt(low * high)
        if -groups * expm1(-n / groups) < found:
            low = groups
        else:
            high = groups
    return high


def most_groups(plan: Plan, parts: list[Part]) -> float:
    """Returns about how many rows of state the elements of one window make at most. plan: of GroupsOperator."""
    operator = cast(GroupsOperator, plan.new_operator(False))
    step = max(sum(len(times) for _, times in parts) // SAMPLE_ROWS, 1)
    times = np.sort(np.concatenate([times[::step] for _, times in parts]))
    operator.expect(int(times[0]), int(times[-1]))
    _, counts = np.unique(operator.cuts_of(times, _CUTS), return_counts=True)
    return number_of_groups(plan, parts) * counts.max() / _CUTS


def _middle(part: Part) -> Part:
    rows, times = part
    at = max(len(times) - SAMPLE_ROWS, 0) // 2
    return rows.slice(at, SAMPLE_ROWS), times[at : at + SAMPLE_ROWS]


def _from_all_over(parts: list[Part]) -> list[Part]:
    """Returns blocks of elements, about as far from each other."""
    before = np.cumsum([0] + [len(times) for _, times in parts])
    if before[-1] <= SAMPLE_ROWS:
        return parts
    block = SAMPLE_ROWS // _BLOCKS
    places = (before[-1] - block) * np.arange(_BLOCKS) // (_BLOCKS - 1)
    found = []
    for number, place in zip(np.searchsorted(before, places, side="right") - 1, places, strict=True):
        (rows, times), at = parts[number], int(place - before[number])
        found.append((rows.slice(at, block), times[at : at + block]))
    return found

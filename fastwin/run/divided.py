"""Runs tumbling windows of many keys over a table share by share, so that the state of a share stays in the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate, pairwise
from queue import SimpleQueue
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.buffers import int64_values
from fastwin.core.panes.division import most_shares
from fastwin.core.panes.slices import extent
from fastwin.operators.aligned.groups import GroupsOperator
from fastwin.operators.aligned.shares import Shares
from fastwin.operators.batch import Batch
from fastwin.run.planner import Plan

__all__ = ["SAMPLE_ROWS", "Part", "has_few_windows", "is_divided", "run_divided", "sorted_by_end"]

Part = tuple[pa.RecordBatch, NDArray[np.int64]]
"""Rows that have been checked, and their times, ms."""


# As many elements as the windows of a share have, about.
_SHARE_ROWS = 40_000
# Elements that are divided, and so copied, at a time, about.
_SECTION_ROWS = 1 << 24
# So many times tell where a section ends.
_SAMPLE = 1 << 14
# Fewer elements are not worth it, on one thread.
_FEW_ROWS = 100_000
# So many tell what the others are like; and where one in so many is in a window before that of the one before it,
# windows are open for long.
SAMPLE_ROWS, _BACK = 1 << 15, 16
# Rows of so many windows are put in order window by window; and none of their columns outgrows Arrow's 32-bit offsets.
_FEW_ENDS, _JOINED_BYTES = 256, 1 << 30


def run_divided(
    plan: Plan, parts: list[Part], threads: int = 1, each: Callable = map
) -> Iterator[list[list[pa.RecordBatch]]]:
    """Yields the results of each share of some windows, those in order of their ends; then of the next windows.

    plan: of GroupsOperator. parts: all elements; none is empty. each: calls a function with each of some arguments, as
    ``map`` does, maybe on several threads.
    """
    if not parts:
        return
    extents = list(each(lambda part: extent(part[1]), parts))
    whole = _new_operator(plan)
    whole.expect(min(first for first, _ in extents), max(last for _, last in extents))
    free: SimpleQueue[GroupsOperator] = SimpleQueue()
    for _ in range(threads):
        free.put(whole.fresh())
    before = list(accumulate((len(times) for _, times in parts), initial=0))[:-1]

    def batch(at: int) -> Batch:
        return plan.batch(*parts[at]).numbered(before[at])

    def run_share(shares: Shares, share: int) -> list[pa.RecordBatch]:
        operator = free.get()
        try:
            operator.process(shares.batch(share))
            return operator.fire_all()
        finally:
            free.put(operator)

    for since, until in pairwise(_bounds(whole, [times for _, times in parts])):
        some = [
            at
            for at, (first, last) in enumerate(extents)
            if (since is None or last >= since) and (until is None or first < until)
        ]
        if not some:
            continue
        count = min(max(threads, sum(len(parts[at][1]) for at in some) // _SHARE_ROWS), most_shares)
        shares = whole.divided(list(each(batch, some)), count, since, until, each)
        yield list(each(partial(run_share, shares), range(count)))
        del shares  # before the next ones are made


def _new_operator(plan: Plan) -> GroupsOperator:
    return cast(GroupsOperator, plan.new_operator(False))


def _bounds(whole: GroupsOperator, times: list[NDArray[np.int64]]) -> list[int | None]:
    """Returns where sections begin, ms, between windows; None: before the first and behind the last."""
    n = sum(map(len, times))
    count = -(-n // _SECTION_ROWS)
    if count == 1:
        return [None, None]
    step = max(n // _SAMPLE, 1)
    some = np.sort(np.concatenate([part[::step] for part in times]))
    cuts = {whole.bound_at(int(some[len(some) * part // count])) for part in range(1, count)}
    return [None, *sorted(cuts), None]


def has_few_windows(plan: Plan, part: Part) -> bool:
    """Whether rows like these are many for each row of state that they make: such state is small, and soon merged."""
    rows, times = part
    operator = plan.new_operator(False)
    some = _some(times)
    operator.process(plan.batch(rows.slice(some.start, SAMPLE_ROWS), times[some]))
    return 2 * operator.state_rows <= min(len(times), SAMPLE_ROWS)


def _some(times: NDArray[np.int64]) -> slice:
    """Returns which elements tell what the others are like: some from the middle."""
    at = max(len(times) - SAMPLE_ROWS, 0) // 2
    return slice(at, at + SAMPLE_ROWS)


def is_divided(plan: Plan, parts: list[Part]) -> bool:
    """Whether ``run_divided`` pays on one thread: rows of so many keys and open windows that they do not fit in the
    cache."""
    if plan.operator != GroupsOperator.name or sum(len(times) for _, times in parts) < _FEW_ROWS:
        return False
    rows, times = parts[len(parts) // 2]
    back = _new_operator(plan).steps_back(times[_some(times)])
    return back * _BACK >= min(len(times), SAMPLE_ROWS) and not has_few_windows(plan, (rows, times))


def sorted_by_end(shares: list[list[pa.RecordBatch]]) -> list[pa.RecordBatch]:
    """Returns the rows of shares, each of which is in order of the ends, in that order; those of a window together."""
    parts = [rows for fired in shares for rows in fired if rows.num_rows]
    ends = [int64_values(rows.column("window_end")) for rows in parts]
    known = np.unique(np.concatenate([np.unique(one) for one in ends])) if parts else np.zeros(0, np.int64)
    step = max(len(known) // _FEW_ENDS, 1)
    found = (_joined(parts, ends, known[at : at + step]) for at in range(0, len(known), step))
    return [rows for some in found for rows in some]


def _joined(
    parts: list[pa.RecordBatch], ends: list[NDArray[np.int64]], known: NDArray[np.int64]
) -> list[pa.RecordBatch]:
    """Returns the rows of some windows by their ends, which are neighbours: in one batch, unless that were large."""
    some = []
    for rows, one in zip(parts, ends, strict=True):
        first, last = np.searchsorted(one, known[0]), np.searchsorted(one, known[-1], side="right")
        if first < last:
            some.append(rows.slice(first, last - first))
    if sum(rows.nbytes for rows in some) > _JOINED_BYTES:
        half = len(known) // 2
        return some if not half else _joined(parts, ends, known[:half]) + _joined(parts, ends, known[half:])
    rows = pa.concat_batches(some)
    if len(known) == 1:
        return [rows]
    return [rows.take(pa.array(np.argsort(int64_values(rows.column("window_end")), kind="stable")))]

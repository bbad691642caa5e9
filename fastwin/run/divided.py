"""Runs tumbling windows of many keys over a table share by share, so that the state of a share stays in the cache."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate, chain, pairwise

import numpy as np
import pyarrow as pa

from fastwin.core.panes.division import most_shares
from fastwin.core.panes.slices import extent
from fastwin.machine.threads import ALONE, Threads
from fastwin.operators.aligned.groups import GroupsOperator
from fastwin.operators.batch import Batch
from fastwin.run.fresh import new_groups
from fastwin.run.planner import Plan
from fastwin.run.ranges import row_ranges, window_ranges
from fastwin.run.sample import (
    Part,
    goes_back,
    has_few_windows,
    most_groups,
    number_of_groups,
    times_from_all_over,
)
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP

__all__ = ["is_divided", "run_divided"]

# As many elements as the windows of a share have, about.
_SHARE_ROWS = 40_000
# Elements that are divided, and so copied, at a time, about.
_SECTION_ROWS = 1 << 24
# So many times tell where to cut them.
_CUT_TIMES = 1 << 15
# So much of the groups that are expected have room from the start.
_ROOM = 0.75
# On one thread: fewer elements are not worth it; and those in order are only where a window has more rows of state.
_DIVIDED_ROWS, _CACHED_GROUPS = 100_000, 1 << 19


def run_divided(plan: Plan, parts: list[Part], each: Threads = ALONE) -> Iterator[pa.RecordBatch]:
    """Yields results in order of their ends.

    plan: of GroupsOperator. parts: all elements; none is empty. each: the threads that take part.
    """
    if not parts:
        return
    extents = list(each(lambda part: extent(part[1]), parts))
    whole = new_groups(plan)
    whole.expect(min(first for first, _ in extents), max(last for _, last in extents))
    if each.count > 1:
        groups = number_of_groups(plan, parts)
        if (ranges := row_ranges(plan, parts, groups, each.count)) is not None:
            first, *others = each(lambda batches: _fed(whole.fresh(_room(groups)), batches), ranges)
            others.reverse()
            while others:  # each goes when its groups are there
                first.absorb(others.pop())
            yield from first.fire_all()
            return
    free: list[GroupsOperator] = []

    def run_batches(batches: Iterable[Batch], room: int = 0) -> list[pa.RecordBatch]:
        try:
            operator = free.pop()
        except IndexError:
            operator = whole.fresh(room)
        fired = _fed(operator, batches).fire_all()
        free.append(operator)
        return fired

    if each.count > 1 and (ranges := window_ranges(plan, whole, parts, groups, each)) is not None:
        room = _room(groups / len(ranges))
        yield from chain.from_iterable(each(lambda batches: run_batches(batches, room), ranges))
        return
    before = list(accumulate((len(times) for _, times in parts), initial=0))
    some = times_from_all_over(parts, _CUT_TIMES)
    sections = np.unique(whole.cuts_of(some, -(-before[-1] // _SECTION_ROWS)))
    for since, until in pairwise([MIN_TIMESTAMP, *sections.tolist(), MAX_TIMESTAMP]):
        here = [at for at, (first, last) in enumerate(extents) if last >= since and first < until]
        if not here:
            continue
        near = some[slice(*np.searchsorted(some, [since, until]))]
        count = min(max(each.count, len(near) * before[-1] // len(some) // _SHARE_ROWS), most_shares // 2)
        cuts = whole.cuts_of(near, count)
        # No name for the batches: they are gone once they have been copied.
        shares = whole.divided(
            list(each(lambda at: plan.batch(*parts[at]).numbered(before[at]), here)), cuts, since, until, each
        )
        yield from chain.from_iterable(each(run_batches, shares.batches()))
        del shares  # before the next ones are made


def _room(groups: float) -> int:
    """Returns for how many groups there is room from the start, of about so many: too much would cost more than to grow
    once."""
    return int(groups * _ROOM)


def _fed(operator: GroupsOperator, batches: Iterable[Batch]) -> GroupsOperator:
    for batch in batches:
        operator.process(batch)
    return operator


def is_divided(plan: Plan, parts: list[Part]) -> bool:
    """Whether ``run_divided`` pays on one thread: rows of so many keys and open windows that they do not fit in the
    cache."""
    n = sum(len(times) for _, times in parts)
    if plan.operator != GroupsOperator.name or n < _DIVIDED_ROWS:
        return False
    part = parts[len(parts) // 2]
    if has_few_windows(plan, part):
        return False
    return goes_back(plan, part) or (n > _CACHED_GROUPS and most_groups(plan, parts) > _CACHED_GROUPS)

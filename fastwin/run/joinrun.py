"""Runs a join over two bounded inputs; with threads, each takes the rows of some windows, or of some keys."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.buffers import int64_values
from fastwin.columns.checking import Checked
from fastwin.columns.decoding import within_reach
from fastwin.columns.units import warn_of_unit
from fastwin.machine.memory import keep_freed
from fastwin.machine.threads import Threads
from fastwin.operators.aligned.slicing import Slicing
from fastwin.operators.kept.atonce import RowsOfSide, all_pairs
from fastwin.operators.kept.pieces import MOST_BYTES
from fastwin.run import planner
from fastwin.run.fresh import new_operator
from fastwin.run.joinbound import Bound
from fastwin.run.planner import Plan
from fastwin.run.pool import each_on
from fastwin.run.results import Result
from fastwin.run.sample import Part, times_from_all_over
from fastwin.run.shares import MOST_SHARES, between, places_of_shares, taken
from fastwin.spec.joinending import TIME, JoinEnding
from fastwin.timeline.recorder import Source
from fastwin.times import MAX_TIMESTAMP

__all__ = ["run_join"]

# Below, dividing the rows costs more than it saves.
_FEW_ROWS = 100_000
# So many times tell where the rows are; and the largest share may be too large by so much.
_SAMPLED, _UNEVEN = 8192, 1.3
# As many rows as some keys have, about, where they are taken together: they are sorted, and read in any order.
_SHARE_ROWS = 1 << 19

_Input = tuple[int, Part]  # the side that rows are of, and the rows


def run_join(bound: Bound, tables: tuple[pa.Table, pa.Table], threads: int) -> Result:
    """Joins the two inputs of a bound join, and fires everything at their end; see ``JoinSpec.run``."""
    keep_freed()
    plan = planner.plan(bound.spec, bound.schema)
    checked = [(side, part) for side, table in enumerate(tables) for part in _checked(bound, side, table)]
    inputs = [(side, (good.rows, good.times)) for side, good in checked]
    with each_on(threads) as each:
        shares = _divided(plan, bound, inputs, each)
        found = list(each(lambda share: _joined(plan, bound, share), shares))
    result = plan.result([rows for share in found for rows in share], [], [], {})
    sides, source = bound.late_sides(result.late), Source(bound.spec.keys, None)
    dropped = sum(good.bad for _, good in checked)
    return replace(result, late=pa.table({}), bad=pa.table({}), side=sides, source=source, bad_dropped=dropped)


def _checked(bound: Bound, side: int, table: pa.Table) -> Iterator[Checked]:
    """Yields the good rows of one input; warns of times that look like those of another unit."""
    column, settled = bound.sides[side].time_column, not bound.guesses_unit(side)
    assert column is not None
    for good in bound.checked(side, table, "run"):
        settled = settled or warn_of_unit(column, good.times)
        yield good


def _divided(plan: Plan, bound: Bound, inputs: list[_Input], each: Threads) -> Sequence[Iterable[_Input]]:
    """Returns the inputs of each share: so many are joined at a time."""
    ending, rows = plan.spec.ending, sum(len(times) for _, (_, times) in inputs)
    assert isinstance(ending, JoinEnding)
    # A function of the user's is called on one thread, in the order of windows.
    if each.count == 1 or rows < max(_FEW_ROWS, 1) or ending.function is not None:
        return [inputs]
    if _is_at_once(plan) and (bounds := _bounds_of_shares(plan.slicing(), inputs, each.count)):
        return [_between(inputs, first, last) for first, last in itertools.pairwise([None, *bounds, None])]
    if not plan.spec.keys:
        return [inputs]
    shares = -(-min(max(rows // _SHARE_ROWS, 1), MOST_SHARES) // each.count) * each.count
    divided = list(each(lambda one: places_of_shares(bound.keys(one[0], one[1][0]), bound.spec.keys, shares), inputs))
    return [_at(inputs, [places[share] for places in divided]) for share in range(shares)]


def _at(inputs: list[_Input], places: list[NDArray[np.int64]]) -> Iterator[_Input]:
    """Yields the rows of each input at some places, copied when they are asked for."""
    return ((side, taken(part, at)) for (side, part), at in zip(inputs, places, strict=True))


def _between(inputs: list[_Input], first: int | None, last: int | None) -> Iterator[_Input]:
    """Yields the rows of each input between two times, see ``between``; copied, if at all, when they are asked for."""
    return ((side, between(part, first, last)) for side, part in inputs)


def _bounds_of_shares(slicing: Slicing, inputs: list[_Input], shares: int) -> list[int] | None:
    """Returns starts of windows, ms, between which about as many rows are; None: there are too few windows for that."""
    sample = times_from_all_over([part for _, part in inputs], _SAMPLED)
    slicing.cover(sample)
    bounds = [slicing.bound_at(int(sample[len(sample) * share // shares])) for share in range(1, shares)]
    counts = np.diff(np.searchsorted(sample, bounds), prepend=0, append=len(sample))
    return bounds if counts.max() * shares <= _UNEVEN * len(sample) else None


def _joined(plan: Plan, bound: Bound, inputs: Iterable[_Input]) -> list[pa.RecordBatch]:
    """Returns what comes of the rows of some keys or windows."""
    if _is_at_once(plan):
        assert isinstance(plan.spec.ending, JoinEnding)
        sides: list[tuple[pa.Schema, list[RowsOfSide]]] = [(bound.shown_schema(side), []) for side in (0, 1)]
        for side, (rows, times) in inputs:
            keys = plan.config.codec.encode(bound.keys(side, rows).columns, len(times))
            sides[side][1].append(RowsOfSide(keys, times, bound.shown(side, rows)))
        return list(all_pairs(plan.config, plan.slicing(), plan.spec.ending.how, sides))
    operator = new_operator(plan)
    united = [bound.united(side, rows, pa.array(times)) for side, (rows, times) in inputs]
    rows = pa.concat_tables([bound.schema.empty_table(), *united])
    if rows.nbytes <= MOST_BYTES:  # rows of one batch are read with one look
        rows = rows.combine_chunks()
    for some in (batch[at] for batch in rows.to_batches() for at in within_reach(batch)):
        operator.process(plan.batch(some, int64_values(some.column(TIME))))
    return operator.advance_watermark(MAX_TIMESTAMP)


def _is_at_once(plan: Plan) -> bool:
    """Whether windows share no rows, and pairs are results: so no row has to be kept for others."""
    ending = plan.spec.ending
    return isinstance(ending, JoinEnding) and ending.function is None and not plan.slicing().shared

"""Runs a join over two bounded inputs; with threads, each takes the rows of some keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.buffers import int64_values
from fastwin.columns.decoding import within_reach
from fastwin.columns.units import warn_of_unit
from fastwin.operators.kept.pieces import MOST_BYTES
from fastwin.run import planner
from fastwin.run.fresh import new_operator
from fastwin.run.joinbound import Bound
from fastwin.run.planner import Plan
from fastwin.run.results import Result
from fastwin.run.sample import Part
from fastwin.run.shares import MOST_SHARES, places_of_shares, taken
from fastwin.spec.joinending import TIME, JoinEnding
from fastwin.timeline.recorder import Source
from fastwin.times import MAX_TIMESTAMP

__all__ = ["run_join"]

# Below, dividing the rows costs more than it saves.
_FEW_ROWS = 100_000
# As many rows as some keys have, about, where they are taken together: they are sorted, and read in any order.
_SHARE_ROWS = 1 << 19


def run_join(bound: Bound, tables: tuple[pa.Table, pa.Table], threads: int) -> Result:
    """Joins the two inputs of a bound join, and fires everything at their end; see ``JoinSpec.run``."""
    plan = planner.plan(bound.spec, bound.schema)
    inputs = [(side, part) for side, table in enumerate(tables) for part in _checked(bound, side, table)]
    shares = _count(plan, sum(len(times) for _, (_, times) in inputs), threads)
    with _each(threads) as each:
        if shares == 1:
            found = [_joined(plan, bound, inputs)]
        else:
            divided = list(each(lambda one: _places(bound, one[0], one[1], shares), inputs))

            def run_one(share: int) -> list[pa.RecordBatch]:
                some = ((side, taken(part, at[share])) for (side, part), at in zip(inputs, divided, strict=True))
                return _joined(plan, bound, some)

            found = list(each(run_one, range(shares)))
    result = plan.result([rows for share in found for rows in share], [], [], {})
    sides, source = bound.late_sides(result.late), Source(bound.spec.keys, None)
    return replace(result, late=pa.table({}), bad=pa.table({}), side=sides, source=source)


@contextmanager
def _each(threads: int) -> Iterator[Callable]:
    """Yields what calls a function with each of some arguments, on so many threads."""
    if threads == 1:
        yield map
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="fastwin") as pool:
        yield pool.map


def _checked(bound: Bound, side: int, table: pa.Table) -> Iterator[Part]:
    """Yields the good rows of one input, and their times, ms; warns of times that look like those of another unit."""
    column, settled = bound.sides[side].time_column, not bound.guesses_unit(side)
    assert column is not None
    for good in bound.checked(side, table, "run"):
        settled = settled or warn_of_unit(column, good.times)
        yield good.rows, good.times


def _count(plan: Plan, rows: int, threads: int) -> int:
    """Returns into how many shares of the keys the rows are divided: as many for each thread."""
    assert isinstance(plan.spec.ending, JoinEnding)
    # A function of the user's is called on one thread, in the order of windows.
    if threads == 1 or rows < _FEW_ROWS or not plan.spec.keys or plan.spec.ending.function is not None:
        return 1
    return -(-min(max(rows // _SHARE_ROWS, 1), MOST_SHARES) // threads) * threads


def _places(bound: Bound, side: int, part: Part, shares: int) -> list[NDArray[np.int64]]:
    return places_of_shares(bound.keys(side, part[0]), bound.spec.keys, shares)


def _joined(plan: Plan, bound: Bound, inputs: Iterable[tuple[int, Part]]) -> list[pa.RecordBatch]:
    """Returns what comes of the rows of some keys. inputs: the side that rows are of, and the rows."""
    operator = new_operator(plan)
    united = [bound.united(side, rows, pa.array(times)) for side, (rows, times) in inputs]
    rows = pa.concat_tables([bound.schema.empty_table(), *united])
    if rows.nbytes <= MOST_BYTES:  # rows of one batch are read with one look
        rows = rows.combine_chunks()
    for some in (batch[at] for batch in rows.to_batches() for at in within_reach(batch)):
        operator.process(plan.batch(some, int64_values(some.column(TIME))))
    return operator.advance_watermark(MAX_TIMESTAMP)

"""Runs a spec over a bounded input: on several threads each takes whole pieces of it, or the elements of some keys.

Where few windows have most elements, each time is looked at once, as its element finds its window; on one thread, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.checking import Limits, good_rows, times_in_ms
from fastwin.columns.schemas import conform
from fastwin.columns.tables import as_table, has_small_chunks
from fastwin.columns.units import warn_of_unit
from fastwin.core.panes.slices import extent
from fastwin.errors import BadRowError, SpecError
from fastwin.machine.memory import keep_freed
from fastwin.machine.threads import Threads
from fastwin.operators.aligned.groups import GroupsOperator
from fastwin.operators.eventtime import WatermarkOperator
from fastwin.run import planner
from fastwin.run.bounded import (
    is_too_much_for_shares,
    needed_columns,
    run,
    run_pieces,
    run_share,
    runs_whole,
)
from fastwin.run.divided import run_divided
from fastwin.run.fresh import new_operator
from fastwin.run.grouped import grouped
from fastwin.run.planner import Plan
from fastwin.run.pool import each_on
from fastwin.run.reading import mentions_column, reads_column
from fastwin.run.results import Result
from fastwin.run.sample import has_few_windows, middle
from fastwin.run.shares import MOST_SHARES, places_of_shares, taken
from fastwin.spec.builder import SpecBuilder
from fastwin.spec.checks import warn_if_never_fires
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP

__all__ = ["check_threads", "run_threads"]

# Below, dividing the rows and waiting for threads costs more than they save.
_FEW_ROWS = 100_000
# As many rows as a thread looks at together. Where their state is small: as many pieces for a thread, each of up to so
# many rows.
_PIECE_ROWS, _PIECES, _MOST_PIECE_ROWS = 1 << 19, 2, 1 << 21
# On one thread windows stay open to the end where each row of state has so many elements, of no more than so many.
_OPEN, _OPEN_ROWS = 16, 1 << 23
# As many rows as the elements of some keys have, about, so that their windows stay in the cache.
_KEYED_ROWS = 1 << 18


def check_threads(threads: int) -> None:
    """Raises SpecError unless it is a number of threads."""
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise SpecError(f"threads: must be an int of at least 1, got {threads!r}")


def run_threads(spec: SpecBuilder, data: Any, threads: int) -> Result:
    """Runs a spec over a bounded input; see ``WindowSpec.run``."""
    check_threads(threads)
    warn_if_never_fires(spec)
    keep_freed()
    if threads == 1 and not (isinstance(data, Sized) and _FEW_ROWS <= len(data) <= _OPEN_ROWS):
        return run(spec, data)
    spec.check_complete()
    table = as_table(data, mentions_column(spec), reads_column(spec))
    if table.num_rows < _FEW_ROWS:
        frame = not table.num_rows and hasattr(data, "iloc")  # which may tell no types; a reader has been read
        return run(spec, data if frame else table)
    plan = planner.plan(spec, table.schema)
    # Functions and triggers of the user's run on one thread; without keys there is nothing to divide by.
    if not plan.operator_type.may_fire_ahead or not spec.keys or is_too_much_for_shares(plan, table):
        return run(spec, table, plan=plan)
    if threads == 1:
        found = _run_at_once(plan, table)
        return run(spec, table, plan=plan) if found is None else found
    if runs_whole(plan, table):
        with each_on(threads) as each:
            return run(spec, table, each, plan)
    table = conform(table, plan.input_schema)
    if has_small_chunks(table):
        table = table.combine_chunks()
    chunks = _chunks(table, _PIECE_ROWS)
    with each_on(threads) as each:
        few = _plan_of_few(plan, chunks)
        if few is not None:
            size = min(-(-table.num_rows // (_PIECES * threads)), _MOST_PIECE_ROWS)
            chunks = _chunks(table, max(_PIECE_ROWS, size))
        before = accumulate((rows.num_rows for rows in chunks), initial=0)
        check = partial(_checked, plan) if few is None else partial(_fed, few)
        checked: list[_Piece] | None = None
        with suppress(BadRowError):
            checked = list(each(check, chunks, before))
        if checked is None:  # raises it again, as one thread does: it counts the bad rows of all pieces
            return run(spec, table, plan=plan)
        if plan.guesses_unit:
            assert spec.time_column is not None
            any(warn_of_unit(spec.time_column, piece.times) for piece in checked)  # up to the first that settles it
        diverted = [piece.diverted for piece in checked if piece.diverted is not None]
        pieces = [piece for piece in checked if len(piece.times)]
        plan = few or grouped(plan, (piece.rows for piece in pieces))
        if few is not None:
            results = _run_by_pieces(plan, pieces, each)
        elif plan.operator == GroupsOperator.name:
            results = list(run_divided(plan, [(piece.rows, piece.times) for piece in pieces], each))
        else:
            results = _run_by_keys(plan, pieces, each)
    return replace(plan.result(results, [], diverted, {}), bad_dropped=sum(piece.dropped for piece in checked))


def _chunks(table: pa.Table, most: int) -> list[pa.RecordBatch]:
    return [rows for rows in table.to_batches(max_chunksize=most) if rows.num_rows]


@dataclass(frozen=True)
class _Piece:
    """Good rows and their times (int64[n], ms), with the first and the last one; and the bad ones to divert.

    dropped: how many bad ones were. fed: an operator that has taken the good rows already, if there is one.
    """

    rows: pa.RecordBatch
    times: NDArray[np.int64]
    first: int
    last: int
    diverted: pa.RecordBatch | None
    dropped: int = 0
    fed: WatermarkOperator | None = None


def _checked(plan: Plan, rows: pa.RecordBatch, before: int) -> _Piece:
    spec = plan.spec
    assert spec.time_column is not None
    limits = plan.limits(Limits())
    good = good_rows(rows, spec.time_column, spec.bad_row_policy, limits, before)
    first, last = good.extent or (extent(good.times) if len(good.times) else (0, 0))
    dropped = good.bad if good.diverted is None else 0
    return _Piece(good.rows.select(needed_columns(plan)), good.times, first, last, good.diverted, dropped)


def _plan_of_few(plan: Plan, chunks: list[pa.RecordBatch], least: int = 2) -> Plan | None:
    """Returns the plan of pieces that each become state on any thread; None: their state would not be small.

    least: see has_few_windows().
    """
    if not chunks:
        return None
    plan = grouped(plan, chunks)
    if not new_operator(plan).absorbs:
        return None
    try:
        some = _checked(plan, middle(chunks[len(chunks) // 2]), 0)
    except BadRowError:
        return None
    return plan if len(some.times) and has_few_windows(plan, (some.rows, some.times), least) else None


def _run_at_once(plan: Plan, table: pa.Table) -> Result | None:
    """Runs a plan on this thread, with one look at each time and all windows open to the end.

    None: that cannot be, or would be no gain, or a row is bad.
    """
    if has_small_chunks(table):
        return None
    table = conform(table, plan.input_schema)
    chunks = _chunks(table, _PIECE_ROWS)
    if grouped(plan, chunks).operator != GroupsOperator.name or any(_unseen(plan, rows) is None for rows in chunks):
        return None
    few = _plan_of_few(plan, chunks, _OPEN)
    if few is None:
        return None
    operator, fed = new_operator(few), 0
    for rows in chunks:
        fed += rows.num_rows
        if _looked_at(few, operator, rows) is None or operator.state_rows * _OPEN > 4 * fed:
            return None
    if plan.guesses_unit:
        assert plan.spec.time_column is not None
        seen = [_unseen(plan, rows) for rows in table.to_batches()]
        any(warn_of_unit(plan.spec.time_column, one[0]) for one in seen if one is not None)
    return few.result(operator.advance_watermark(MAX_TIMESTAMP), [], [], {})


def _unseen(plan: Plan, rows: pa.RecordBatch) -> tuple[NDArray[np.int64], int, int] | None:
    """Returns times that an operator may look at itself, see times_in_ms(); None where they have to be looked at first.

    What the user's expressions are asked of has to be good.
    """
    assert plan.spec.time_column is not None
    return None if plan.inputs.computed else times_in_ms(rows.column(plan.spec.time_column), plan.limits(Limits()))


def _looked_at(plan: Plan, operator: WatermarkOperator, rows: pa.RecordBatch) -> _Piece | None:
    """Feeds rows to an operator that looks at their times itself; None: it does not, or a row is bad."""
    found = _unseen(plan, rows) if isinstance(operator, GroupsOperator) else None
    if found is None:
        return None
    assert isinstance(operator, GroupsOperator)
    (times, *limits), needed = found, rows.select(needed_columns(plan))
    seen = operator.process_within(plan.batch(needed, times), *limits)
    if seen is None:
        return None
    return _Piece(needed, times, *seen, None, fed=operator)


def _fed(plan: Plan, rows: pa.RecordBatch, before: int) -> _Piece:
    """Makes state of rows while their times are still near: where it can, with one look at these."""
    piece = _looked_at(plan, new_operator(plan), rows)
    if piece is not None:
        return piece
    operator, piece = new_operator(plan), _checked(plan, rows, before)
    if len(piece.times):
        operator.process(plan.batch(piece.rows, piece.times))
    return replace(piece, fed=operator)


def _run_by_pieces(plan: Plan, pieces: list[_Piece], each: Callable) -> list[pa.RecordBatch]:
    """Fires what is in one piece alone, on any thread; one operator takes the state of all in order, and fires."""

    lasts = [MIN_TIMESTAMP, *accumulate((piece.last for piece in pieces), max)]
    firsts = [*list(accumulate((piece.first for piece in reversed(pieces)), min))[::-1], MAX_TIMESTAMP]

    def alone(number: int) -> WatermarkOperator:
        operator = pieces[number].fed
        assert operator is not None
        operator.fire_alone(lasts[number], firsts[number + 1])
        return operator

    operator = new_operator(plan)
    return run_pieces(operator, each(alone, range(len(pieces))), firsts[:-1], operator.absorb)


def _run_by_keys(plan: Plan, pieces: list[_Piece], each: Threads) -> list[pa.RecordBatch]:
    """Runs the elements of some of the keys after those of others: all of a key on one thread."""
    shares = max(each.count, min(sum(len(piece.times) for piece in pieces) // _KEYED_ROWS, MOST_SHARES))

    divided = list(each(lambda piece: places_of_shares(piece.rows, plan.spec.keys, shares), pieces))

    def run_one(number: int) -> list[pa.RecordBatch]:
        parts = zip(pieces, divided, strict=True)
        return run_share(plan, [taken((piece.rows, piece.times), places[number]) for piece, places in parts])

    return [rows for result in each(run_one, range(shares)) for rows in result]

"""Runs a spec over a bounded table: all of it is at hand, so it is known what is still to come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa

from fastwin.columns.decoding import take_rows, within_reach
from fastwin.core.memory.gather import take
from fastwin.machine.threads import ALONE, Threads
from fastwin.operators.batch import Batch
from fastwin.operators.eventtime import WatermarkOperator
from fastwin.operators.protocol import Operator
from fastwin.run.divided import is_divided, run_divided
from fastwin.run.fresh import new_operator
from fastwin.run.grouped import grouped
from fastwin.run.planner import Plan
from fastwin.run.results import Result
from fastwin.run.sample import SAMPLE_ROWS, Part, has_few_windows
from fastwin.run.stream import Stream
from fastwin.spec.builder import SpecBuilder
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP

__all__ = [
    "is_too_much_for_shares",
    "needed_columns",
    "open_bounded",
    "run",
    "run_pieces",
    "run_share",
    "runs_whole",
]

Piece = TypeVar("Piece")

# As many rows as fit in the cache with the windows that they touch; and where nearly each of them touches another one.
_CACHED_ROWS, _CACHED_WINDOWS = 1 << 19, 1 << 16
# Sessions of no more elements are made all at once.
_WHOLE_ROWS = 1 << 23
# So that none of their columns outgrows Arrow's 32-bit offsets.
_WHOLE_BYTES = 1 << 30


def run(spec: SpecBuilder, data: Any, each: Threads = ALONE, plan: Plan | None = None) -> Result:
    """Runs a spec over a bounded input and ends with the watermark at int64 max; see ``WindowSpec.run``.

    each: see ``Operator.run``. plan: the spec's for this input, if there is one already.
    """
    stream = _Bounded(spec, each, plan)
    stream.advance_processing_time()
    fed = stream.process(data)
    end = stream.advance_watermark(MAX_TIMESTAMP)
    last = stream.finish_processing_time()
    sides = {tag: pa.concat_tables([part.side[tag] for part in (fed, end, last)]) for tag in fed.side}
    main = pa.concat_tables([fed.main, end.main, last.main])
    return Result(main, fed.late, fed.bad, sides, fed.source, fed.bad_dropped)


def open_bounded(plan: Plan) -> Stream:
    """Opens a stream that is given everything in one call of ``process``, and ends with the watermark at int64 max; see
    ``run``, which does so."""
    return _Bounded(plan.spec, ALONE, plan)


class _Bounded(Stream):
    """A stream that is given everything in one call.

    Built-in windows fire as soon as nothing that is still to come can reach them: while they are in the cache, and the
    state stays as small as that of a stream. Those of the general operator wait for the end, which user code may see.
    """

    def __init__(self, spec: SpecBuilder, each: Threads, plan: Plan | None) -> None:
        super().__init__(spec, plan=plan)
        self._each = each

    def _feed(
        self, operator: Operator, parts: list[tuple[pa.RecordBatch, np.ndarray]], late: list[pa.RecordBatch]
    ) -> list[pa.RecordBatch]:
        if not operator.may_fire_ahead:
            return super()._feed(operator, parts, late)
        assert self._plan is not None
        plan = grouped(self._plan, (rows for rows, _ in parts))
        if plan is not self._plan:
            operator = new_operator(plan)
            self._take_plan(plan, operator)
        if operator.takes_whole and (whole := _whole(self._plan, parts)) is not None:
            return operator.run(whole, self._each)
        filled = [part for part in parts if len(part[1])]
        if is_divided(plan, filled):
            found = list(run_divided(plan, filled))
            operator.counters.events += sum(len(times) for _, times in filled)
            operator.counters.fired += sum(rows.num_rows for rows in found)
            return found
        operator = cast(WatermarkOperator, operator)

        def feed(piece: Part) -> list[pa.RecordBatch]:
            return super(_Bounded, self)._feed(operator, [piece], late)

        pieces, firsts = _pieces(self._plan, operator, parts)
        return _feed_pieces(operator, pieces, firsts, feed)


def runs_whole(plan: Plan, table: pa.Table) -> bool:
    """Whether all rows of a table are taken at once, by key."""
    if not plan.operator_type.takes_whole or table.num_rows > _WHOLE_ROWS:
        return False
    if all(column.num_chunks == 1 for column in table.columns):
        return True
    return table.select(needed_columns(plan)).nbytes <= _WHOLE_BYTES


def is_too_much_for_shares(plan: Plan, table: pa.Table) -> bool:
    """Whether rows have no order, so that all of a key have to come together, and are too large to be joined."""
    return plan.keeps_rows and plan.config.coalesce and table.nbytes > _WHOLE_BYTES


def run_share(plan: Plan, parts: list[Part]) -> list[pa.RecordBatch]:
    """Runs a plan of built-in windows over rows that have been checked, to the end; returns what fires."""
    operator = new_operator(plan)
    if operator.takes_whole and (whole := _whole(plan, parts)) is not None:
        return operator.run(whole)
    if len(parts) > 1 and _may_be_joined(plan, parts):
        parts = [_joined(plan, parts)]
    if plan.keeps_rows:
        parts = [(rows[at], times[at]) for rows, times in parts for at in within_reach(rows)]
    pieces, firsts = _pieces(plan, operator, parts)
    return run_pieces(operator, pieces, firsts, lambda piece: operator.process(plan.batch(*piece)).main)


def run_pieces(
    operator: WatermarkOperator,
    pieces: Iterable[Piece],
    firsts: list[int],
    feed: Callable[[Piece], list[pa.RecordBatch]],
) -> list[pa.RecordBatch]:
    """Feeds pieces one by one, after each fires what none to come can reach, and at last the rest; returns what fires.

    firsts: a time, ms, that no row of a piece is before.
    """
    return _feed_pieces(operator, pieces, firsts, feed) + operator.advance_watermark(MAX_TIMESTAMP)


def needed_columns(plan: Plan) -> list[str]:
    """Returns the columns that built-in windows read beside the times, or any one, so that rows can be counted.

    No other is copied: nothing is late in a bounded run. Where results are rows, these are all.
    """
    if plan.keeps_rows:
        return plan.input_schema.names
    return list(dict.fromkeys([*plan.spec.keys, *plan.inputs.names])) or plan.input_schema.names[:1]


def _pieces(plan: Plan, operator: WatermarkOperator, parts: list[Part]) -> tuple[Iterator[Part], list[int]]:
    """Returns parts in pieces that fit in the cache, and a time, ms, that no row of each is before.

    Where neighbours are many windows apart, and these are many, all rows are put in order of their windows first.
    """
    scattered = any(operator.order_of(times[:SAMPLE_ROWS]) is not None for _, times in parts)
    if scattered and _may_be_joined(plan, parts) and not has_few_windows(plan, parts[len(parts) // 2]):
        rows, times = _joined(plan, parts)
        order = operator.order_of(times)
        if order is not None:
            times = take(times, order)
            size = _CACHED_WINDOWS if operator.passes_windows(times[:SAMPLE_ROWS]) else _CACHED_ROWS
            bounds = range(0, len(times), size)
            pieces = ((take_rows(rows, order[at : at + size]), times[at : at + size]) for at in bounds)
            return pieces, [int(times[at : at + size].min()) for at in bounds]
    if any(operator.passes_windows(times[:SAMPLE_ROWS]) for _, times in parts):
        found = _cut_parts(operator, parts, _CACHED_WINDOWS)
        firsts = [int(times.min()) for _, times in found]
        if firsts == sorted(firsts):  # else windows stay open, and each piece would look at all of them
            return iter(found), firsts
    found = _cut_parts(operator, parts, _CACHED_ROWS)
    return iter(found), [int(times.min()) for _, times in found]


def _cut_parts(operator: WatermarkOperator, parts: list[Part], most: int) -> list[Part]:
    """Returns parts in pieces of at most so many rows, cut where the operator likes it."""
    return [
        (rows.slice(at, end - at), times[at:end])
        for rows, times in parts
        for at, end in pairwise([0, *operator.cuts(times, most), len(times)])
        if at < end
    ]


def _feed_pieces(
    operator: WatermarkOperator,
    pieces: Iterable[Piece],
    firsts: list[int],
    feed: Callable[[Piece], list[pa.RecordBatch]],
) -> list[pa.RecordBatch]:
    """Feeds pieces one by one, and after each fires what none to come can reach. See run_pieces()."""
    earliest = np.minimum.accumulate(np.array(firsts, dtype=np.int64)[::-1])[::-1]
    main: list[pa.RecordBatch] = []
    for piece, first in zip(pieces, [*earliest.tolist()[1:], MIN_TIMESTAMP], strict=False):
        main += feed(piece)
        # What makes nothing late, or one less: an element at the end of a session still touches it.
        main += operator.advance_watermark(max(first - 1 - operator.ends_touch, MIN_TIMESTAMP))
    return main


def _whole(plan: Plan, parts: list[Part]) -> Batch | None:
    """Returns what sessions need of all rows, as one batch; None where that is too much for one."""
    if not parts or sum(len(times) for _, times in parts) > _WHOLE_ROWS:
        return None
    return plan.batch(*_joined(plan, parts)) if _may_be_joined(plan, parts) else None


def _may_be_joined(plan: Plan, parts: list[Part]) -> bool:
    """Whether several parts are small enough for one."""
    return len(parts) == 1 or sum(rows.select(needed_columns(plan)).nbytes for rows, _ in parts) <= _WHOLE_BYTES


def _joined(plan: Plan, parts: list[Part]) -> Part:
    """Returns all rows as one part, of several those columns alone that are read."""
    if len(parts) == 1:
        return parts[0]
    rows = pa.concat_batches([rows.select(needed_columns(plan)) for rows, _ in parts])
    return rows, np.concatenate([times for _, times in parts])

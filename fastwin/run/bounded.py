"""Runs a spec over a bounded table: all of it is at hand, so it is known what is still to come."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.operators.batch import Batch
from fastwin.operators.protocol import Operator
from fastwin.run.planner import Plan
from fastwin.run.results import Result
from fastwin.run.stream import Stream
from fastwin.spec.builder import SpecBuilder
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP

__all__ = ["Part", "needed_columns", "run", "run_share", "runs_whole"]

Part = tuple[pa.RecordBatch, NDArray[np.int64]]
"""Rows that have been checked, and their times, ms."""

# As many rows as fit in the cache with the windows that they touch.
_CACHED_ROWS = 1 << 19
# Sessions of no more elements are made all at once.
_WHOLE_ROWS = 1 << 23
# So that none of their columns outgrows Arrow's 32-bit offsets.
_WHOLE_BYTES = 1 << 30


def run(spec: SpecBuilder, data: Any, each: Callable = map, plan: Plan | None = None) -> Result:
    """Runs a spec over a bounded input and ends with the watermark at int64 max; see ``WindowSpec.run``.

    each: what sessions of some keys at a time are made with; see ``Operator.run``. plan: the spec's for this input, if
    there is one already.
    """
    stream = _Bounded(spec, each, plan)
    stream.advance_processing_time()
    fed = stream.process(data)
    end = stream.advance_watermark(MAX_TIMESTAMP)
    last = stream.finish_processing_time()
    sides = {tag: pa.concat_tables([part.side[tag] for part in (fed, end, last)]) for tag in fed.side}
    return Result(pa.concat_tables([fed.main, end.main, last.main]), fed.late, fed.bad, sides, fed.source)


class _Bounded(Stream):
    """A stream that is given everything in one call.

    Built-in windows fire as soon as nothing that is still to come can reach them: while they are in the cache, and the
    state stays as small as that of a stream. Those of the general operator wait for the end, which user code may see.
    """

    def __init__(self, spec: SpecBuilder, each: Callable, plan: Plan | None) -> None:
        super().__init__(spec, plan=plan)
        self._each = each

    def _feed(
        self, operator: Operator, parts: list[tuple[pa.RecordBatch, np.ndarray]], late: list[pa.RecordBatch]
    ) -> list[pa.RecordBatch]:
        if not operator.may_fire_ahead:
            return super()._feed(operator, parts, late)
        assert self._plan is not None
        if operator.takes_whole and (whole := _whole(self._plan, parts)) is not None:
            return operator.run(whole, self._each)
        pieces = [
            (rows.slice(at, _CACHED_ROWS), times[at : at + _CACHED_ROWS])
            for rows, times in parts
            for at in range(0, len(times), _CACHED_ROWS)
        ]

        def feed(piece: Part) -> list[pa.RecordBatch]:
            return super(_Bounded, self)._feed(operator, [piece], late)

        return _feed_pieces(operator, pieces, [int(times.min()) for _, times in pieces], feed)


def runs_whole(plan: Plan, table: pa.Table) -> bool:
    """Whether all rows of a table are taken at once, by key."""
    if not plan.operator_type.takes_whole or table.num_rows > _WHOLE_ROWS:
        return False
    if all(column.num_chunks == 1 for column in table.columns):
        return True
    return table.select(needed_columns(plan)).nbytes <= _WHOLE_BYTES


def run_share(plan: Plan, parts: Iterable[Part], rows: int, firsts: list[int]) -> list[pa.RecordBatch]:
    """Runs a plan of built-in windows over rows that have been checked, to the end; returns what fires.

    parts: rows with their times, looked at one by one. rows: how many there are in all. firsts: a time, ms, that no
    row of a part is before.
    """
    operator = plan.new_operator(False)
    if operator.takes_whole and rows <= _WHOLE_ROWS:
        parts = list(parts)
        if (whole := _whole(plan, parts)) is not None:
            return operator.run(whole)
    main = _feed_pieces(operator, parts, firsts, lambda part: operator.process(plan.batch(*part)).main)
    return main + operator.advance_watermark(MAX_TIMESTAMP)


def needed_columns(plan: Plan) -> list[str]:
    """Returns the columns that built-in windows read beside the times, or any one, so that rows can be counted.

    No other is copied: nothing is late in a bounded run. Where results are rows, these are all.
    """
    if plan.keeps_rows:
        return plan.input_schema.names
    return list(dict.fromkeys([*plan.spec.keys, *plan.inputs.names])) or plan.input_schema.names[:1]


def _feed_pieces(
    operator: Operator, pieces: Iterable[Part], firsts: list[int], feed: Callable[[Part], list[pa.RecordBatch]]
) -> list[pa.RecordBatch]:
    """Feeds pieces one by one, and after each fires what none to come can reach. firsts: see run_share()."""
    earliest = np.minimum.accumulate(np.array(firsts, dtype=np.int64)[::-1])[::-1]
    main: list[pa.RecordBatch] = []
    for piece, first in zip(pieces, [*earliest.tolist()[1:], MIN_TIMESTAMP], strict=False):
        main += feed(piece)
        # One less than what makes nothing late: an element at the end of a session still touches it.
        main += operator.advance_watermark(max(first - 2, MIN_TIMESTAMP))
    return main


def _whole(plan: Plan, parts: list[Part]) -> Batch | None:
    """Returns what sessions need of all rows, as one batch; None where that is too much for one."""
    if not parts or sum(len(times) for _, times in parts) > _WHOLE_ROWS:
        return None
    if len(parts) == 1:
        return plan.batch(*parts[0])
    needed = [rows.select(needed_columns(plan)) for rows, _ in parts]
    if sum(rows.nbytes for rows in needed) > _WHOLE_BYTES:
        return None
    return plan.batch(pa.concat_batches(needed), np.concatenate([times for _, times in parts]))

"""TracedStream: a stream that keeps a journal of its decisions. A stream without one has no part in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastwin.columns.decoding import take_rows
from fastwin.columns.pythonvalues import told_values
from fastwin.errors import SpecError
from fastwin.operators.protocol import Operator
from fastwin.run.ownedstream import OwnedStream
from fastwin.run.planner import Plan
from fastwin.run.results import Result
from fastwin.run.why.journal import Fired, Journal, Late, Moved
from fastwin.spec.ending import AggregateEnding, ReduceEnding
from fastwin.spec.joinending import SIDE, SIDES, Side
from fastwin.spec.resultcolumns import BOUNDS, CHANGE, DELETE, WINDOW_COLUMN
from fastwin.times import MIN_TIMESTAMP

__all__ = ["TracedStream", "check_trace"]

_Cause = Literal["element", "watermark", "clock"]
_Mover = Literal["caller", "idle"]


def check_trace(trace: object) -> int:
    """Returns how many decisions are to be kept. Raises SpecError unless it is an int of at least 1."""
    if isinstance(trace, bool) or not isinstance(trace, int) or trace < 1:
        raise SpecError(f"trace: must be the number of decisions that are kept, at least 1, got {trace!r}")
    return trace


class TracedStream(OwnedStream):
    """A stream that notes what fires and by what, what is late, and what moves the watermark. trace: how many of these.

    Firings are known by their rows. Where each may give several, those of a window that follow each other are one.
    Each row that fires costs a microsecond or two, and a pushed row what a batch of one row does.
    """

    _journal: Journal

    def __init__(self, *arguments: Any, trace: int, **options: Any) -> None:
        self._journal = Journal(trace)
        self._mover: tuple[Any, int, Side] | None = None
        self._otherwise: _Mover = "caller"
        self._newest: tuple[pa.RecordBatch, int] | None = None
        super().__init__(*arguments, **options)

    @property
    def _one_row(self) -> bool:
        """Whether each firing gives one row."""
        assert self._spec.ending is not None
        return isinstance(self._spec.ending, AggregateEnding | ReduceEnding) and self._spec.ending.then is None

    def advance_by(
        self, watermark: int, call: int, element: tuple[pa.Table, int, Side] | None, otherwise: _Mover
    ) -> Result:
        """Moves the watermark as ``advance_watermark`` does, for an owner that follows elements itself.

        call: the number of the owner's call. element: what moves it: rows of which the first one counts, its time, ms,
        and its input; None: what is told by ``otherwise``.
        """
        self.count_from(call)
        if element is not None:
            rows, time, side = element
            self._mover = self._keys_of(rows.slice(0, 1))[0], time, side
        self._otherwise = otherwise
        try:
            return self.advance_watermark(watermark)
        finally:
            self._mover, self._otherwise = None, "caller"

    def count_from(self, call: int) -> None:
        """Says which number the next call has."""
        self._journal.calls = call - 1

    def _take_plan(self, plan: Plan, operator: Operator) -> None:
        super()._take_plan(plan, operator)
        self._pushed.bind(plan, quick=False)  # its rows are seen here

    def _process(self, data: Any) -> Result:
        self._journal.calls += 1
        self._newest = None
        return super()._process(data)

    def _feed(
        self, operator: Operator, parts: list[tuple[pa.RecordBatch, np.ndarray]], late: list[pa.RecordBatch]
    ) -> list[pa.RecordBatch]:
        newest = MIN_TIMESTAMP
        for rows, times in parts:
            if len(times) and int(times.max()) > newest:
                newest = int(times.max())
                self._newest = rows, int(times.argmax())
        main = super()._feed(operator, parts, late)
        self._note_fired(main, "element")
        return main

    def _follow(self, operator: Operator, newest: int) -> list[pa.RecordBatch]:
        before = operator.watermark
        main = super()._follow(operator, newest)
        if operator.watermark > before:
            moved = (self._journal.calls, before, operator.watermark)
            if newest > MIN_TIMESTAMP and self._newest is not None:
                rows, at = self._newest
                (key,) = self._keys_of(rows.slice(at, 1))
                self._journal.note(Moved(*moved, "element", key, newest))
            else:
                self._journal.note(Moved(*moved, "idle"))
        self._note_fired(main, "watermark")
        return main

    def _take_late(
        self, operator: Operator, rows: pa.RecordBatch | None, marks: np.ndarray | None, late: list[pa.RecordBatch]
    ) -> None:
        super()._take_late(operator, rows, marks, late)
        if marks is None or rows is None:
            return
        assert self._plan is not None
        places = np.flatnonzero(marks)
        self._journal.skip(max(len(places) - self._journal.most, 0))
        rows = take_rows(rows, places[-self._journal.most :])
        times = [self._clock] * rows.num_rows if self._spec.time_column is None else self._plan.times(rows).tolist()
        sides: list[Side] = [None] * rows.num_rows
        if SIDE in rows.schema.names:
            sides = [SIDES[side] for side in rows.column(SIDE).to_pylist()]
        for key, time, side in zip(self._keys_of(rows), times, sides, strict=True):
            self._journal.note(Late(self._journal.calls, key, time, operator.watermark, self._journal.moved, side))

    def _advance(self, advance: Callable[[Operator], list[pa.RecordBatch]]) -> Result:
        self._journal.calls += 1
        before = self._stood_at()
        result = super()._advance(advance)
        moved = self.watermark > before
        if moved:
            by: Literal["element", "caller", "idle"] = self._otherwise if self._mover is None else "element"
            self._journal.note(Moved(self._journal.calls, before, self.watermark, by, *(self._mover or ())))
        self._note_fired(result.main.to_batches(), "watermark" if moved else "clock")
        return result

    def _stood_at(self) -> int:
        """Returns the watermark before a call that moves it, ms: ``watermark`` tells the new one, before any rows."""
        if self._operator is not None:
            return self._operator.watermark
        return MIN_TIMESTAMP if self._journal.moved is None else self._journal.moved.watermark

    def _take_times(self, operator: Operator) -> None:
        super()._take_times(operator)
        if operator.watermark > MIN_TIMESTAMP or self._journal.moved is not None:
            self._journal.note(Moved(self._journal.calls, MIN_TIMESTAMP, operator.watermark, "restore"))

    def _keys_of(self, rows: pa.RecordBatch | pa.Table) -> list[Any]:
        """Returns the keys of rows: what is told of them for one key column, else tuples."""
        values = [told_values(rows.column(name)) for name in self._spec.keys]
        return values[0] if len(values) == 1 else list(zip(*values, strict=True)) or [()] * rows.num_rows

    def _note_fired(self, main: list[pa.RecordBatch], by: _Cause) -> None:
        if self._spec.changelog:  # what is deleted has not fired: it has become part of another window
            main = [rows.filter(pc.not_equal(rows.column(CHANGE), DELETE)) for rows in main]
        count = sum(rows.num_rows for rows in main)
        journal, spare = self._journal, max(count - self._journal.most, 0) if self._one_row else 0
        journal.skip(spare)
        for rows in main:
            begin = min(spare, rows.num_rows)
            spare -= begin
            self._note_rows(rows.slice(begin), by)

    def _note_rows(self, rows: pa.RecordBatch, by: _Cause) -> None:
        bounds = [rows.column(name).cast(pa.int64()).to_pylist() for name in BOUNDS]
        names = [None] * rows.num_rows
        if self._plan is not None and self._plan.config.window is not None:
            names = rows.column(WINDOW_COLUMN).to_pylist()
        moved = self._journal.moved if by == "watermark" else None
        before = None
        for key, start, end, name in zip(self._keys_of(rows), *bounds, names, strict=True):
            fired = Fired(self._journal.calls, key, start, end, name, by, self.watermark, self._clock, moved)
            if self._one_row or fired != before:
                self._journal.note(fired)
            before = fired

"""Questions: what may be asked of a running stream, besides its numbers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from fastwin.errors import StateError
from fastwin.operators.protocol import Operator
from fastwin.run.datawatermark import DataWatermark
from fastwin.run.guard import Guard, alone
from fastwin.run.planner import Plan
from fastwin.run.results import Metrics
from fastwin.run.why.answer import Subject, why, why_nothing
from fastwin.run.why.inspected import inspected
from fastwin.run.why.journal import Journal
from fastwin.run.why.report import WhyReport
from fastwin.spec.builder import SpecBuilder

__all__ = ["Questions"]


class Questions:
    """What ``Stream`` answers about its state. Nothing changes by it, and nothing is kept for it."""

    _spec: SpecBuilder
    _plan: Plan | None
    _operator: Operator | None
    _follows: DataWatermark | None
    _guard: Guard
    _journal: Journal | None = None

    def _refuse_if_failed(self) -> None:
        """Raises StateError after an error in the middle of a batch."""
        raise NotImplementedError

    @property
    def metrics(self) -> Metrics:
        """Counters and sizes as they stand."""
        raise NotImplementedError

    @property
    def watermark(self) -> int:
        """The current watermark, ms."""
        raise NotImplementedError

    @alone
    def why(self, key: Any = ..., at: Any = None, *, window: Any = None) -> WhyReport:
        """Says why the windows of a key have fired or have not, and what is missing. ``print`` the report.

        key: the value of the key column, a tuple of several, or a dict by column; a spec without keys has none. at: a
            time: the windows at that time are told of, also those that are not there, and why. A datetime, such a text,
            or an int in the unit of the column (ms where it has timestamps); without a zone, it is in the column's.
            window: one window, as a TimeWindow or a pair (start, end) of such times. Neither: all windows of the key.

        Costs nothing until it is called; then O(rows of state). What has fired and what was late is known if the stream
        was opened with ``trace=``. Raises SpecError for a key that does not suit, and for ``at`` and ``window`` both.
        """
        self._refuse_if_failed()
        plan, operator = self._plan, self._operator
        if plan is None or operator is None:
            return why_nothing(self._spec, key, self.watermark, self.metrics.processing_time)
        return why(self._subject(plan, operator), key, at, window)

    def _subject(self, plan: Plan, operator: Operator) -> Subject:
        return Subject(plan, operator, self.metrics, self.watermark, self._follows, self._journal)

    @alone
    def inspect(self) -> pa.Table:
        """Returns what is known of windows: a row for each key and window that the state has.

        The columns are the keys, ``window`` where there are several, ``window_start`` and ``window_end``; what the
        window holds: the aggregates as they stand, or how many rows or elements; then ``fired``, ``firings`` (how
        often; null: not known), ``fires_at`` (when it fires next, or its trigger is asked; null: only an element makes
        it fire, or, where ``fires_by`` is there, the end of time does), ``fires_by`` (``"watermark"`` or ``"clock"``),
        ``gone_at`` (when it goes), ``timers`` (those that are registered) and ``bytes`` (of its rows; windows that
        share slices count these each). Where a key or an aggregate has one of these names, an underscore is behind it.
        Raises StateError before the first batch, unless a schema was given.
        """
        self._refuse_if_failed()
        if self._plan is None or self._operator is None:
            raise StateError("inspect: the stream has seen no batch and no schema yet, so there is no state")
        return inspected(self._plan, self._operator)

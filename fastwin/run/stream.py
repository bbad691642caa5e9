"""Runs specs in this process, as a stream that the caller feeds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from typing import Any, NoReturn, SupportsIndex

import numpy as np
import pyarrow as pa

from fastwin.columns.checking import Checked, Limits, good_rows
from fastwin.columns.decoding import take_rows, within_reach
from fastwin.columns.schemas import conform
from fastwin.columns.tables import as_table, has_small_chunks, tells_no_types
from fastwin.columns.units import warn_of_unit
from fastwin.errors import SpecError, StateError
from fastwin.operators.protocol import Operator
from fastwin.run import planner
from fastwin.run.datawatermark import DataWatermark
from fastwin.run.guard import Guard, alone
from fastwin.run.lostchunks import fails_with_its_chunk
from fastwin.run.planner import Plan
from fastwin.run.pushed import PushedRows
from fastwin.run.reading import columns_named, mentions_column, reads_column
from fastwin.run.restoring import restored, widened
from fastwin.run.results import Metrics, Result
from fastwin.run.showing import ShownStream
from fastwin.run.timelimits import check_clock
from fastwin.run.why.questions import Questions
from fastwin.spec.builder import SpecBuilder
from fastwin.state.identity import Migrate
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP, Duration, int64_ms, to_ms

__all__ = ["Stream", "open_plan"]

# What may only be read while the operator stands still.
_LOOKS: dict[str, Callable[[Any], Any]] = {
    "sizes": lambda stream: stream._sizes(),
    "next_timer": lambda stream: None if stream._operator is None else stream._operator.next_timer(),
    "next_processing_timer": lambda stream: (
        None if stream._operator is None else stream._operator.next_processing_timer()
    ),
}


class Stream(Questions, ShownStream):
    """A running spec: feed it with ``process`` and ``advance_watermark``; both return a Result.

    After an error in the middle of a batch, or an interrupt that loses a chunk of state, every call but ``restore``
    raises StateError. One call is inside at a time: a second one, of another thread or of user code that the stream
    runs, raises StateError and changes nothing. Metrics, watermark and next timers may be read from any thread at any
    time.
    """

    def __init__(
        self,
        spec: SpecBuilder,
        *,
        plan: Plan | None = None,
        follows: DataWatermark | None = None,
        max_future_skew: Duration | None = None,
        any_time: bool = False,
        schema: pa.Schema | None = None,
    ) -> None:
        spec.check_complete()
        skew = None if max_future_skew is None else to_ms(max_future_skew, argument="max_future_skew")
        if skew is not None and skew < 0:
            raise SpecError(f"max_future_skew: must not be negative, got {skew} ms")
        self._spec = spec
        self._follows = follows
        self._limits = Limits(skew, any_int64=any_time)
        self._watermark = MIN_TIMESTAMP
        self._clock = 0
        self._bad = self._late = 0
        self._failed: str | None = None
        self._unit_checked = False
        self._guard = Guard("stream", _LOOKS)
        self._schema, self._mentions = schema, mentions_column(spec)
        self._unbind()
        if plan is not None:
            self._bind(plan)

    def _unbind(self) -> None:
        """Knows no types of columns, as before the first call."""
        self._plan: Plan | None = None
        self._operator: Operator | None = None
        self._reads: Callable[[str], bool] | None = reads_column(self._spec)
        self._pushed = PushedRows(self._spec, self._schema)
        self._empty: Result | None = None

    def _bind(self, plan: Plan) -> Operator:
        operator = plan.new_operator()
        operator.advance_watermark(self._watermark)
        operator.advance_processing_time(self._clock)
        self._take_plan(plan, operator)
        return operator

    def _take_plan(self, plan: Plan, operator: Operator) -> None:
        self._plan, self._operator = plan, operator
        self._reads = None if plan.of_state else frozenset(plan.input_columns).__contains__
        self._pushed.bind(plan, quick=self._limits.max_future_skew_ms is None)
        self._empty = None

    @alone
    def process(self, data: Any) -> Result:
        """Takes elements, in their order; returns what fires at once, and late and bad rows.

        data: pyarrow Table or RecordBatch, pandas or polars DataFrame; all calls with the same columns. Those that the
            spec does not read may hold anything.
        Raises SpecError if the columns do not suit, BadRowError as the policy says.
        """
        return self._process(data)

    @alone
    def push(self, rows: Any) -> Result:
        """Takes a row, or a list of some, as ``process`` takes a table of them; a single one costs far less here.

        rows: dicts by column, which may have more columns than are needed, or tuples in the order of the schema that
            the stream was opened with. Without a schema, no call takes tuples, and the first one tells the types.
        Raises as ``process`` does, and SpecError for values that do not suit their column.
        """
        rows = rows if isinstance(rows, list) else [rows]
        self._refuse_elements()
        operator, batch = self._operator, self._pushed.batch(rows, self._unit_checked)
        if operator is None or batch is None:
            return self._process(self._pushed.table(rows))
        late: list[pa.RecordBatch] = []
        try:
            fed = operator.process(batch)
            if fed.late is not None:
                told = self._pushed.record_batch(rows) if self._spec.late_output else None
                self._take_late(operator, told, fed.late, late)
            newest = int(batch.times[0] if len(rows) == 1 else batch.times.max())
            return self._result(fed.main + self._follow(operator, newest), late, [])
        except BaseException as problem:
            self._fail(problem)
            raise

    def _process(self, data: Any) -> Result:
        table = as_table(data, self._mentions, self._reads)
        self._refuse_elements()
        if self._operator is None and tells_no_types(data, table, columns_named(self._spec)):
            return planner.result_before_input(self._spec)
        first, late = self._operator is None, list[pa.RecordBatch]()
        try:
            operator, checked = self._checked(table)
        except BaseException:
            if first:  # a call that is refused settles no types
                self._unbind()
            raise
        self._bad += sum(one.bad for one in checked)
        bad = [one.diverted for one in checked if one.diverted is not None]
        try:
            main = self._feed(operator, [(one.rows, one.times) for one in checked], late)
            if self._follows is not None:
                newest = max((int(one.times.max(initial=MIN_TIMESTAMP)) for one in checked), default=MIN_TIMESTAMP)
                main += self._follow(operator, newest)
            dropped = sum(one.bad for one in checked if one.diverted is None)
            result = self._result(main, late, bad)
            return replace(result, bad_dropped=dropped) if dropped else result
        except BaseException as problem:
            self._fail(problem)
            raise

    def _checked(self, table: pa.Table) -> tuple[Operator, list[Checked]]:
        """Returns the operator, and the good rows and the bad ones of a call. The first one tells the columns."""
        operator = self._operator or self._bind(planner.plan(self._spec, table.schema))
        assert self._plan is not None
        plan = widened(self._plan, table.schema) if self._plan.of_state and table.num_rows else self._plan
        table = conform(table, plan.input_schema)
        if plan is not self._plan:  # a batch that is refused settles nothing
            self._take_plan(plan, operator)
        if plan.config.coalesce or has_small_chunks(table):
            table = table.combine_chunks()
        parts = table.to_batches()
        places = accumulate((rows.num_rows for rows in parts), initial=0)
        # A warning that is an error ends the call here: nothing is counted yet.
        return operator, [self._check(rows, before) for rows, before in zip(parts, places, strict=False)]

    def _follow(self, operator: Operator, newest: int) -> list[pa.RecordBatch]:
        """Moves the watermark behind the newest time of a batch, if it follows the data; returns what fires."""
        if self._follows is None:
            return []
        operator.newest = max(operator.newest, newest)
        return operator.advance_watermark(self._follows.after(newest, operator.newest))

    def _feed(
        self, operator: Operator, parts: list[tuple[pa.RecordBatch, np.ndarray]], late: list[pa.RecordBatch]
    ) -> list[pa.RecordBatch]:
        """Gives rows with their times to the operator; returns what fires, and adds to what is late."""
        assert self._plan is not None
        if self._plan.keeps_rows:
            parts = [(rows[at], times[at]) for rows, times in parts for at in within_reach(rows)]
        main: list[pa.RecordBatch] = []
        for rows, times in parts:
            fed = operator.process(self._plan.batch(rows, times))
            main += fed.main
            self._take_late(operator, rows, fed.late, late)
        return main

    def _check(self, rows: pa.RecordBatch, before: int) -> Checked:
        """Tells good rows from bad ones, and counts none. before: rows of the input before."""
        spec, plan = self._spec, self._plan
        assert plan is not None
        checked = good_rows(rows, spec.time_column, spec.bad_row_policy, plan.limits(self._limits), before)
        if spec.time_column is not None and plan.guesses_unit and not self._unit_checked:
            self._unit_checked = True  # also where the warning is raised as an error
            self._unit_checked = warn_of_unit(spec.time_column, checked.times)
        return checked

    def _take_late(
        self, operator: Operator, rows: pa.RecordBatch | None, marks: np.ndarray | None, late: list[pa.RecordBatch]
    ) -> None:
        if marks is None:
            return
        if self._spec.late_output and rows is not None:
            late.append(take_rows(rows, np.flatnonzero(marks)))
            self._late += late[-1].num_rows
        else:
            operator.counters.num_late_records_dropped += int(np.count_nonzero(marks))

    @alone
    def advance_watermark(self, watermark: int) -> Result:
        """Says that no element with a time up to ``watermark`` in ms is expected any more; returns what fires.

        A watermark at or below the current one is ignored. Raises SpecError unless it is an int64.
        """
        self._refuse_if_failed()
        self._watermark = max(self._watermark, int64_ms("watermark", watermark))
        return self._advance(lambda operator: operator.advance_watermark(int(watermark)))

    @alone
    def advance_processing_time(self, processing_time: int | None = None, *, before: bool = False) -> Result:
        """Sets the clock of processing time, in ms, and returns what fires; None: to the machine's clock.

        before: timers at this very millisecond wait for the next call, as in a task of Flink, where elements that
            arrive in it come first.

        A stream's clock stands at 0 until it is set, and only moves by this call. Raises SpecError unless it is an
        int64.
        """
        self._refuse_if_failed()
        now = time.time_ns() // 1_000_000 if processing_time is None else processing_time
        self._clock = int64_ms("processing_time", now)
        return self._advance(lambda operator: operator.advance_processing_time(self._clock, False, before))

    @alone
    def finish_processing_time(self) -> Result:
        """Fires all that waits for the processing time, at the end of a bounded input: sets the clock to int64 max."""
        self._refuse_if_failed()
        self._clock = MAX_TIMESTAMP
        return self._advance(lambda operator: operator.advance_processing_time(MAX_TIMESTAMP, True))

    def _advance(self, advance: Callable[[Operator], list[pa.RecordBatch]]) -> Result:
        if self._operator is None:
            return planner.result_before_input(self._spec)
        try:
            return self._result(advance(self._operator), [], [])
        except BaseException as problem:
            self._fail(problem)
            raise

    def _result(self, main: list, late: list, bad: list) -> Result:
        """Returns what a call has given. An error here fails the stream as one before does: the windows have fired."""
        plan, operator = self._plan, self._operator
        assert plan is not None
        assert operator is not None
        if plan.side_schemas:
            return plan.result(main, late, bad, operator.take_side())
        if main or late or bad:
            return plan.result(main, late, bad, {})
        if self._empty is None or self._empty.side:  # somebody has put something into it
            self._empty = plan.result([], [], [], {})
        return self._empty

    def next_timer(self) -> int | None:
        """Returns a watermark, ms, below which nothing fires and no state goes; None: nothing is waiting.

        Which elements are late goes by each watermark: where windows share state, one may close for them before that.
        """
        return self._guard.look(self, "next_timer", None)

    def next_processing_timer(self) -> int | None:
        """Returns the time of the first timer of processing time, ms; None: there is none."""
        return self._guard.look(self, "next_processing_timer", None)

    @property
    def watermark(self) -> int:
        """The current watermark, ms; int64 min for none yet."""
        return self._watermark if self._operator is None else self._operator.watermark

    @property
    def processing_time(self) -> int:
        """The clock of processing time, ms."""
        return self._clock

    @property
    def metrics(self) -> Metrics:
        """Counters and sizes as they stand. O(1), but for some counts of open windows and some sums of bytes.

        Of aligned windows that overlap, and of those that keep rows (``deduplicate("last")``, ``top``, joins), O(slices
        + rows made since the last time); of calendars' that overlap, and of joins that overlap and whose inputs have
        different lateness, O(state). Where aggregates keep text, lists, sets or sketches, such as ``Collect``,
        ``CountDistinct``, ``HyperLogLog`` and ``Quantile``, O(``state_rows``): their bytes are added up.

        While a call is inside, ``open_windows``, ``state_rows``, ``state_bytes`` and ``timers`` are what they were when
        they were last read, or when a call ended during which they were.
        """
        operator = self._operator
        if operator is None:
            return Metrics(watermark=self._watermark, processing_time=self._clock)
        return Metrics.of(operator, self._guard.look(self, "sizes", (0, 0, 0, 0)), self._bad, self._late, self._clock)

    def _sizes(self) -> tuple[int, int, int, int]:
        operator = self._operator
        if operator is None:
            return 0, 0, 0, 0
        return operator.open_windows(), operator.state_rows, operator.state_bytes, operator.timers

    @fails_with_its_chunk(lambda stream: stream)
    @alone
    def snapshot(self) -> bytes:
        """Returns all state as one chunk. Raises StateError before the first batch, unless a schema was given."""
        return self._planned("snapshot").snapshot()

    @fails_with_its_chunk(lambda stream: stream)
    @alone
    def delta(self) -> bytes:
        """Returns what has changed since the last snapshot() or delta() as one chunk."""
        return self._planned("delta").delta()

    def _planned(self, call: str) -> Operator:
        self._refuse_if_failed()
        if self._operator is None:
            raise StateError(f"{call}: the stream has seen no batch and no schema yet, so there is no state")
        return self._operator

    @alone
    def restore(self, chunks: list[bytes] | bytes, *, forget_watermark: bool = False, migrate: Migrate = None) -> None:
        """Replaces all state by that of one snapshot and the deltas after it, in order.

        forget_watermark: starts without a watermark, as Flink does; for the general operator only, because the others
            tell from the watermark which windows have fired.
        migrate: ``"added aggregates"`` also takes state of a spec without some of the aggregates, which then cover, in
            the windows that are open, only what comes from now on. If they read other columns, the stream needs to be
            opened with a schema. ``"changed functions"`` takes state of lambdas, of functions inside functions and of
            those of ``__main__`` whatever their code was, and of ones that have been given a name since; see ``named``.
            ``"removed aggregates"`` drops what the state has of others, ``"renamed total to amount"`` gives one another
            name, and ``"wider types"`` allows longer integers, and double for float, in keys and aggregated columns.
            A set allows several: ``{"added aggregates", "changed functions"}``.

        State of a spec with a shorter allowed lateness is taken as well; what had been cleaned by then stays late.
        Raises StateError if a chunk is corrupt, cut off, or of another spec, input type or version. The watermark
        is part of the state; counters start over.
        """
        plan, operator = restored(self._spec, self._plan, chunks, forget_watermark, migrate)
        self._take_plan(plan, operator)
        self._failed = None
        self._take_times(operator)
        self._bad = self._late = 0

    def _take_times(self, operator: Operator) -> None:
        """Goes on from the times of state that was restored. The wait for elements begins anew."""
        self._watermark = operator.watermark
        if operator.processing_time is not None:
            self._clock = operator.processing_time
        if self._follows is not None:
            self._follows.restart()

    def _fail(self, problem: BaseException) -> None:
        self._failed = f"{type(problem).__name__}: {problem}"

    def _refuse_if_failed(self) -> None:
        if self._failed is not None:
            raise StateError(f"stream: it failed in the middle of a batch ({self._failed}); restore() a snapshot first")

    def _refuse_elements(self) -> None:
        self._refuse_if_failed()
        if self._clock == MAX_TIMESTAMP:
            check_clock(self._spec)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        self._guard.refuse_copy()

    def _check_invariants(self) -> None:
        if self._operator is not None:
            self._operator._check()


def open_plan(plan: Plan) -> Stream:
    """Opens a stream for a plan."""
    return Stream(plan.spec, plan=plan)

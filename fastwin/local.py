"""Runs specs in this process, as a stream that the caller feeds."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import accumulate
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from fastwin import batches, statecodec
from fastwin.arrowbuffers import take_rows
from fastwin.duration import Duration, to_ms
from fastwin.errors import SpecError, StateError
from fastwin.operators.aligned import AlignedOperator
from fastwin.operators.base import Operator
from fastwin.operators.general import GeneralOperator
from fastwin.operators.refresh import Refresh
from fastwin.operators.session import SessionOperator
from fastwin.planner import Plan, columns_named, schema_before_input
from fastwin.planner import plan as make_plan
from fastwin.results import Metrics, Result
from fastwin.spec import WindowSpec
from fastwin.statespec import check_migrate
from fastwin.windows import MAX_TIMESTAMP, MIN_TIMESTAMP

__all__ = ["Stream", "open_stream"]


class Stream:
    """A running spec: feed it with ``process`` and ``advance_watermark``; both return a Result.

    After an error in the middle of a batch, every call but ``restore`` raises StateError.
    """

    def __init__(
        self,
        spec: WindowSpec,
        *,
        plan: Plan | None = None,
        coalesce: bool = False,
        delay_ms: int | None = None,
        max_future_skew: Duration | None = None,
        earliest_ms: int = MIN_TIMESTAMP,
        idle_ms: int | None = None,
    ) -> None:
        spec.check_complete()
        skew = None if max_future_skew is None else to_ms(max_future_skew, argument="max_future_skew")
        if skew is not None and skew < 0:
            raise SpecError(f"max_future_skew: must not be negative, got {skew} ms")
        self._spec = spec
        self._coalesce = coalesce
        self._delay_ms = delay_ms
        self._limits = batches.Limits(skew, earliest_ms)
        self._plan: Plan | None = None
        self._operator: Operator | None = None
        self._watermark = MIN_TIMESTAMP
        self._clock = 0
        self._idle_ms = idle_ms
        self._newest = MIN_TIMESTAMP
        self._last_element = time.monotonic()
        self._bad = self._late = 0
        self._failed: str | None = None
        if plan is not None:
            self._bind(plan)

    def _bind(self, plan: Plan) -> Operator:
        operator = plan.new_operator(self._coalesce)
        operator.advance_watermark(self._watermark)
        if isinstance(operator, GeneralOperator):
            operator.advance_processing_time(self._clock)
        self._plan, self._operator = plan, operator
        return operator

    def process(self, data: Any) -> Result:
        """Takes elements, in their order; returns what fires at once, and late and bad rows.

        data: pyarrow Table or RecordBatch, pandas or polars DataFrame; all calls with the same columns.
        Raises SpecError if the columns do not suit, BadRowError as the policy says.
        """
        table = batches.as_table(data)
        self._refuse_if_failed()
        if self._operator is None and batches.tells_no_types(data, table, columns_named(self._spec)):
            return self._nothing()
        operator = self._operator or self._bind(make_plan(self._spec, table.schema))
        assert self._plan is not None
        table = batches.conform(table, self._plan.input_schema)
        if self._coalesce_now or batches.has_small_chunks(table):
            table = table.combine_chunks()
        late: list[pa.RecordBatch] = []
        bad: list[pa.RecordBatch] = []
        parts = table.to_batches()
        places = accumulate((rows.num_rows for rows in parts), initial=0)
        checked = [self._check(rows, bad, before) for rows, before in zip(parts, places, strict=False)]
        try:
            main = self._feed(operator, checked, late)
            if self._delay_ms is not None:
                newest = max((int(times.max(initial=MIN_TIMESTAMP)) for _, times in checked), default=MIN_TIMESTAMP)
                main += operator.advance_watermark(self._follow(newest))
        except BaseException as problem:
            self._failed = f"{type(problem).__name__}: {problem}"
            raise
        return self._result(main, late, bad)

    def _feed(
        self, operator: Operator, parts: list[tuple[pa.RecordBatch, np.ndarray]], late: list[pa.RecordBatch]
    ) -> list[pa.RecordBatch]:
        """Gives rows with their times to the operator; returns what fires, and adds to what is late."""
        assert self._plan is not None
        main: list[pa.RecordBatch] = []
        for rows, times in parts:
            fed = operator.process(self._plan.batch(rows, times))
            main += fed.main
            self._take_late(operator, rows, fed.late, late)
        return main

    def merge(self, partials: list[bytes]) -> Result:
        """Takes partial results of elements that a feeder has made; see ``Plan.new_feeder``.

        They count as one batch of elements without order. Raises StateError for chunks that are none, or of another
        spec; the stream is of no use then, and every call but restore() is refused.
        """
        operator = self._planned("merge")
        if not isinstance(operator, AlignedOperator | SessionOperator):
            raise SpecError("merge: only aligned and session windows take partial results")
        try:
            main, late = operator.merge(partials)
        except BaseException as problem:
            self._failed = f"{type(problem).__name__}: {problem}"
            raise
        operator.counters.num_late_records_dropped += late
        return self._result(main, [], [])

    def _follow(self, newest: int) -> int:
        """Returns the watermark after a batch whose newest element has this time, int64 min for an empty one."""
        assert self._delay_ms is not None
        now = time.monotonic()
        if newest > MIN_TIMESTAMP:
            self._newest, self._last_element = max(self._newest, newest), now
            return max(newest - self._delay_ms - 1, MIN_TIMESTAMP)
        idle = self._idle_ms is not None and now - self._last_element >= self._idle_ms / 1_000
        return self._newest if idle else MIN_TIMESTAMP

    @property
    def _coalesce_now(self) -> bool:
        return self._coalesce if self._spec.coalesce is None else self._spec.coalesce

    def _check(self, rows: pa.RecordBatch, bad: list[pa.RecordBatch], before: int) -> tuple[pa.RecordBatch, np.ndarray]:
        """Returns the good rows and their times; diverts or counts the others. before: rows of the input before."""
        spec, plan = self._spec, self._plan
        assert plan is not None
        if spec.time_column is None:
            return rows, np.full(rows.num_rows, MIN_TIMESTAMP)
        limits = plan.limits(self._limits)
        checked = batches.good_rows(rows, spec.time_column, spec.bad_row_policy, limits, before)
        self._bad += checked.bad
        if checked.diverted is not None:
            bad.append(checked.diverted)
        return checked.rows, checked.times

    def _take_late(
        self, operator: Operator, rows: pa.RecordBatch, marks: np.ndarray | None, late: list[pa.RecordBatch]
    ) -> None:
        if marks is None:
            return
        if self._spec.late_output:
            late.append(take_rows(rows, np.flatnonzero(marks)))
            self._late += late[-1].num_rows
        else:
            operator.counters.num_late_records_dropped += int(np.count_nonzero(marks))

    def advance_watermark(self, watermark: int) -> Result:
        """Says that no element with a time up to ``watermark`` in ms is expected any more; returns what fires.

        A watermark at or below the current one is ignored. Raises SpecError unless it is an int64.
        """
        self._watermark = max(self._watermark, self._int64("watermark", watermark))
        return self._advance(lambda operator: operator.advance_watermark(int(watermark)))

    def advance_processing_time(self, processing_time: int | None = None, *, before: bool = False) -> Result:
        """Sets the clock of processing time, in ms, and returns what fires; None: to the machine's clock.

        before: timers at this very millisecond wait for the next call, as in a task of Flink, where elements that
            arrive in it come first.

        A stream's clock stands at 0 until it is set, and only moves by this call. Raises SpecError unless it is an
        int64.
        """
        now = time.time_ns() // 1_000_000 if processing_time is None else processing_time
        self._clock = self._int64("processing_time", now)
        return self._advance(
            lambda operator: (
                operator.advance_processing_time(self._clock, False, before)
                if isinstance(operator, GeneralOperator)
                else []
            )
        )

    def finish_processing_time(self) -> Result:
        """Fires all that waits for the processing time, at the end of a bounded input."""
        return self._advance(
            lambda operator: (
                operator.advance_processing_time(MAX_TIMESTAMP, True) if isinstance(operator, GeneralOperator) else []
            )
        )

    def _int64(self, argument: str, value: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise SpecError(f"{argument}: must be an int of milliseconds, got {value!r}")
        if not MIN_TIMESTAMP <= value <= MAX_TIMESTAMP:
            raise SpecError(f"{argument}: must fit in int64, got {value}")
        self._refuse_if_failed()
        return int(value)

    def _advance(self, advance: Callable[[Any], list[pa.RecordBatch]]) -> Result:
        if self._operator is None:
            return self._nothing()
        try:
            main = advance(self._operator)
        except BaseException as problem:
            self._failed = f"{type(problem).__name__}: {problem}"
            raise
        return self._result(main, [], [])

    def _nothing(self) -> Result:
        """Returns a result without rows, as long as the types of the input are not known."""
        side = {tag: schema.empty_table() for tag, schema in self._spec.sides}
        return Result(schema_before_input(self._spec).empty_table(), pa.table({}), pa.table({}), side)

    def _result(self, main: list, late: list, bad: list) -> Result:
        plan = self._plan
        assert plan is not None
        bad_schema = batches.bad_schema(plan.input_schema)
        return Result(
            pa.Table.from_batches(main, schema=plan.main_schema),
            pa.Table.from_batches(late, schema=plan.input_schema),
            pa.Table.from_batches(bad, schema=bad_schema),
            self._sides(),
        )

    def _sides(self) -> dict[str, pa.Table]:
        assert self._plan is not None
        operator, schemas = self._operator, self._plan.side_schemas
        if not schemas or not isinstance(operator, GeneralOperator):
            return {tag: schema.empty_table() for tag, schema in schemas.items()}
        taken = operator.take_side()
        return {
            tag: pa.Table.from_batches([taken[tag]] if tag in taken else [], schema=schema)
            for tag, schema in schemas.items()
        }

    def next_timer(self) -> int | None:
        """Returns a watermark, ms, below which nothing fires or is cleaned; None: nothing is waiting."""
        return None if self._operator is None else self._operator.next_timer()

    def next_processing_timer(self) -> int | None:
        """Returns the time of the first timer of processing time, ms; None: there is none."""
        return self._operator.next_processing_timer() if isinstance(self._operator, GeneralOperator) else None

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
        """Counters and sizes as they stand. O(1), but O(state) with overlapping windows."""
        operator = self._operator
        if operator is None:
            return Metrics(watermark=self._watermark, processing_time=self._clock)
        counters = operator.counters
        return Metrics(
            events=counters.events + self._bad,
            bad=self._bad,
            late=self._late,
            num_late_records_dropped=counters.num_late_records_dropped,
            unassigned=counters.unassigned,
            fired=counters.fired,
            open_windows=operator.open_windows(),
            state_rows=operator.state_rows,
            state_bytes=operator.state_bytes,
            watermark=operator.watermark,
            unfired=counters.unfired,
            timers=getattr(operator, "timers", 0),
            processing_time=self._clock,
        )

    def snapshot(self) -> bytes:
        """Returns all state as one chunk. Raises StateError before the first batch, unless a schema was given."""
        return self._planned("snapshot").snapshot()

    def delta(self, refresh: Refresh | None = None) -> bytes:
        """Returns what has changed since the last snapshot() or delta() as one chunk.

        refresh: which unchanged rows to repeat, for a log that forgets its oldest deltas.
        """
        return self._planned("delta").delta(refresh)

    def catch_up(self, deltas: list[bytes]) -> None:
        """Takes the deltas of a stream that went on from this one's state, and with them its watermark.

        A fresh stream takes all deltas from a fresh one's first. Raises StateError as restore() does; the state is
        of no use then, and every call but restore() is refused.
        """
        operator = self._planned("catch_up")
        try:
            operator.apply(deltas)
        except BaseException as problem:
            self._failed = f"{type(problem).__name__}: {problem}"
            if isinstance(problem, StateError | MemoryError) or not isinstance(problem, Exception):
                raise
            raise StateError(f"catch_up: the state makes no sense: {problem}") from problem
        self._watermark = operator.watermark
        if isinstance(operator, GeneralOperator):
            self._clock = operator.processing_time

    def _planned(self, call: str) -> Operator:
        self._refuse_if_failed()
        if self._operator is None:
            raise StateError(f"{call}: the stream has seen no batch and no schema yet, so there is no state")
        return self._operator

    def restore(
        self,
        chunks: list[bytes] | bytes,
        *,
        forget_watermark: bool = False,
        migrate: Literal["added aggregates"] | None = None,
    ) -> None:
        """Replaces all state by that of one snapshot and the deltas after it, in order.

        forget_watermark: starts without a watermark, as Flink does; for the general operator only, because the others
            tell from the watermark which windows have fired.
        migrate: ``"added aggregates"`` also takes state of a spec without some of the aggregates, which then cover, in
            the windows that are open, only what comes from now on. If they read other columns, the stream needs to be
            opened with a schema.

        State of a spec with a shorter allowed lateness is taken as well; what had been cleaned by then stays late.
        Raises StateError if a chunk is corrupt, cut off, or of another spec, input type or version. The watermark
        is part of the state; counters start over.
        """
        check_migrate(migrate)
        chunks = [chunks] if isinstance(chunks, bytes | bytearray | memoryview) else chunks
        if not isinstance(chunks, list | tuple):
            raise StateError(f"restore: takes a list of bytes, a snapshot and deltas, got {type(chunks).__name__}")
        if not chunks:
            raise StateError("restore: at least a snapshot is needed, got no chunk")
        try:
            plan = self._plan
            if plan is None:
                meta = statecodec.decode(chunks[0], statecodec.owner(chunks[0])).meta
                plan = self._plan_for(batches.text_to_schema(meta["input_schema"]))
            chunks = [plan.migrated(chunk, migrate) for chunk in chunks]
            operator = plan.new_operator(self._coalesce)
            if isinstance(operator, GeneralOperator):
                operator.restore(chunks, forget_watermark)
            else:
                operator.restore(chunks)
        except (StateError, MemoryError):
            raise
        except Exception as problem:
            raise StateError(f"restore: the state makes no sense: {problem}") from problem
        if isinstance(operator, GeneralOperator):
            self._clock = operator.processing_time
        elif forget_watermark:
            raise SpecError(f"restore: the {plan.operator} operator cannot forget the watermark")
        self._plan, self._operator, self._failed = plan, operator, None
        self._watermark = operator.watermark
        self._bad = self._late = 0

    def _plan_for(self, schema: pa.Schema) -> Plan:
        """Returns the plan for the input that the state was made of."""
        try:
            return make_plan(self._spec, schema)
        except SpecError as problem:
            raise StateError(
                f"restore: the state was written for other columns: {problem}; if they are new, open the stream with a "
                f"schema"
            ) from problem

    def _refuse_if_failed(self) -> None:
        if self._failed is not None:
            raise StateError(f"stream: it failed in the middle of a batch ({self._failed}); restore() a snapshot first")

    def _check_invariants(self) -> None:
        if self._operator is not None:
            self._operator._check()


def open_stream(
    spec: WindowSpec,
    watermark: Duration | Literal["monotonous"] | None = None,
    *,
    schema: pa.Schema | None = None,
    max_future_skew: Duration | None = None,
    idle: Duration | None = None,
) -> Stream:
    """Opens a stream; see ``WindowSpec.open``."""
    delay_ms = None
    if watermark is not None:
        delay_ms = 0 if watermark == "monotonous" else to_ms(watermark, argument="watermark")
        if delay_ms < 0:
            raise SpecError(f"watermark: must not be negative, got {delay_ms} ms")
    idle_ms = None if idle is None else to_ms(idle, argument="idle")
    if idle_ms is not None and (idle_ms < 1 or delay_ms is None):
        raise SpecError(f"idle: must be at least 1 ms, and needs a watermark= that follows the data, got {idle_ms} ms")
    plan = None if schema is None else make_plan(spec, schema)
    return Stream(spec, plan=plan, delay_ms=delay_ms, max_future_skew=max_future_skew, idle_ms=idle_ms)

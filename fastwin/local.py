"""Runs specs in this process: over a bounded table, or as a stream that the caller feeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from fastwin import batches, statecodec
from fastwin.arrowbuffers import take_rows
from fastwin.duration import Duration, to_ms
from fastwin.errors import SpecError, StateError
from fastwin.operators.base import Operator
from fastwin.planner import Plan
from fastwin.planner import plan as make_plan
from fastwin.spec import WindowSpec
from fastwin.windows import MAX_TIMESTAMP, MIN_TIMESTAMP

__all__ = ["Metrics", "Result", "Stream", "open_stream", "run"]

_SMALL_BATCH = 65_536


@dataclass(frozen=True)
class Result:
    """What a call has produced.

    main: key columns, ``window_start``, ``window_end`` (timestamp[ms, UTC]) and the aggregates.
    late: elements that no window takes any more, with the input's columns; empty unless asked for.
    bad: rows without a usable timestamp, with the input's columns and ``bad_reason``; empty unless diverted.
    """

    main: pa.Table
    late: pa.Table
    bad: pa.Table


@dataclass(frozen=True)
class Metrics:
    """Counters of a stream since it was opened, and its state as it stands.

    events: rows taken in, bad ones included. bad: rows without a usable timestamp.
    num_late_records_dropped: Flink's counter: late elements, unless they are handed out; ``late`` counts those.
    unassigned: elements in time that no window covers. fired: result rows. open_windows: (key, window) pairs
    with contents. state_rows, state_bytes: rows held and bytes allocated. watermark: ms, int64 min for none yet.
    """

    events: int = 0
    bad: int = 0
    late: int = 0
    num_late_records_dropped: int = 0
    unassigned: int = 0
    fired: int = 0
    open_windows: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    watermark: int = MIN_TIMESTAMP


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
        self._bad = self._late = 0
        self._failed: str | None = None
        if plan is not None:
            self._bind(plan)

    def _bind(self, plan: Plan) -> Operator:
        self._plan = plan
        self._operator = plan.new_operator(self._coalesce)
        self._operator.advance_watermark(self._watermark)
        return self._operator

    def process(self, data: Any) -> Result:
        """Takes elements, in their order; returns what fires at once, and late and bad rows.

        data: pyarrow Table or RecordBatch, pandas or polars DataFrame; all calls with the same columns.
        Raises SpecError if the columns do not suit, BadRowError as the policy says.
        """
        table = batches.as_table(data)
        self._refuse_if_failed()
        operator = self._operator or self._bind(make_plan(self._spec, table.schema))
        assert self._plan is not None
        table = batches.conform(table, self._plan.input_schema)
        if self._coalesce_now or table.num_rows < _SMALL_BATCH * table.column(0).num_chunks:
            table = table.combine_chunks()
        main: list[pa.RecordBatch] = []
        late: list[pa.RecordBatch] = []
        bad: list[pa.RecordBatch] = []
        newest = MIN_TIMESTAMP
        checked = [self._check(rows, bad) for rows in table.to_batches()]
        try:
            for rows, times in checked:
                fed = operator.process(self._plan.batch(rows, times))
                main += fed.main
                self._take_late(operator, rows, fed.late, late)
                newest = max(newest, int(times.max(initial=MIN_TIMESTAMP)))
            if self._delay_ms is not None and newest > MIN_TIMESTAMP:
                main += operator.advance_watermark(newest - self._delay_ms - 1)
        except BaseException as problem:
            self._failed = f"{type(problem).__name__}: {problem}"
            raise
        return self._result(main, late, bad)

    @property
    def _coalesce_now(self) -> bool:
        return self._coalesce if self._spec.coalesce is None else self._spec.coalesce

    def _check(self, rows: pa.RecordBatch, bad: list[pa.RecordBatch]) -> tuple[pa.RecordBatch, np.ndarray]:
        """Returns the good rows and their times; diverts or counts the others."""
        spec = self._spec
        column = rows.column(spec.time_column)
        times, reasons = batches.check_rows(column, str(spec.time_column), spec.bad_row_policy, self._limits)
        if reasons is None:
            return rows, times
        self._bad += int(np.count_nonzero(reasons))
        if spec.bad_row_policy == "divert":
            bad.append(batches.bad_table(rows, reasons))
        good = np.flatnonzero(reasons == 0)
        return take_rows(rows, good), times[good]

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
        if isinstance(watermark, bool) or not isinstance(watermark, int | np.integer):
            raise SpecError(f"watermark: must be an int of milliseconds, got {watermark!r}")
        if not MIN_TIMESTAMP <= watermark <= MAX_TIMESTAMP:
            raise SpecError(f"watermark: must fit in int64, got {watermark}")
        self._refuse_if_failed()
        self._watermark = max(self._watermark, int(watermark))
        if self._operator is None:
            return Result(pa.table({}), pa.table({}), pa.table({}))
        try:
            main = self._operator.advance_watermark(int(watermark))
        except BaseException as problem:
            self._failed = f"{type(problem).__name__}: {problem}"
            raise
        return self._result(main, [], [])

    def _result(self, main: list, late: list, bad: list) -> Result:
        plan = self._plan
        assert plan is not None
        bad_schema = batches.bad_schema(plan.input_schema)
        return Result(
            pa.Table.from_batches(main, schema=plan.main_schema),
            pa.Table.from_batches(late, schema=plan.input_schema),
            pa.Table.from_batches(bad, schema=bad_schema),
        )

    def next_timer(self) -> int | None:
        """Returns a watermark, ms, below which nothing fires or is cleaned; None: nothing is waiting."""
        return None if self._operator is None else self._operator.next_timer()

    @property
    def watermark(self) -> int:
        """The current watermark, ms; int64 min for none yet."""
        return self._watermark if self._operator is None else self._operator.watermark

    @property
    def metrics(self) -> Metrics:
        """Counters and sizes as they stand. O(1), but O(state) with overlapping windows."""
        operator = self._operator
        if operator is None:
            return Metrics(watermark=self._watermark)
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
        )

    def snapshot(self) -> bytes:
        """Returns all state as one chunk. Raises StateError before the first batch, unless a schema was given."""
        return self._planned("snapshot").snapshot()

    def delta(self) -> bytes:
        """Returns what has changed since the last snapshot() or delta() as one chunk."""
        return self._planned("delta").delta()

    def _planned(self, call: str) -> Operator:
        self._refuse_if_failed()
        if self._operator is None:
            raise StateError(f"{call}: the stream has seen no batch and no schema yet, so there is no state")
        return self._operator

    def restore(self, chunks: list[bytes] | bytes) -> None:
        """Replaces all state by that of one snapshot and the deltas after it, in order.

        Raises StateError if a chunk is corrupt, cut off, or of another spec, input type or version. The watermark
        is part of the state; counters start over.
        """
        chunks = [chunks] if isinstance(chunks, bytes | bytearray | memoryview) else chunks
        if not isinstance(chunks, list | tuple):
            raise StateError(f"restore: takes a list of bytes, a snapshot and deltas, got {type(chunks).__name__}")
        if not chunks:
            raise StateError("restore: at least a snapshot is needed, got no chunk")
        try:
            plan = self._plan
            if plan is None:
                meta = statecodec.decode(chunks[0], self._spec.fingerprint, str(self._spec)).meta
                plan = make_plan(self._spec, batches.text_to_schema(meta["input_schema"]))
            operator = plan.new_operator(self._coalesce)
            operator.restore(chunks)
        except (StateError, MemoryError):
            raise
        except Exception as problem:
            raise StateError(f"restore: the state makes no sense: {problem}") from problem
        self._plan, self._operator, self._failed = plan, operator, None
        self._watermark = operator.watermark
        self._bad = self._late = 0

    def _refuse_if_failed(self) -> None:
        if self._failed is not None:
            raise StateError(f"stream: it failed in the middle of a batch ({self._failed}); restore() a snapshot first")

    def _check_invariants(self) -> None:
        if self._operator is not None:
            self._operator._check()


def run(spec: WindowSpec, data: Any) -> Result:
    """Runs a spec over a bounded input and ends with the watermark at int64 max; see ``WindowSpec.run``."""
    stream = Stream(spec)
    fed = stream.process(data)
    end = stream.advance_watermark(MAX_TIMESTAMP)
    return Result(pa.concat_tables([fed.main, end.main]), fed.late, fed.bad)


def open_stream(
    spec: WindowSpec,
    watermark: Duration | Literal["monotonous"] | None = None,
    *,
    schema: pa.Schema | None = None,
    max_future_skew: Duration | None = None,
) -> Stream:
    """Opens a stream; see ``WindowSpec.open``."""
    delay_ms = None
    if watermark is not None:
        delay_ms = 0 if watermark == "monotonous" else to_ms(watermark, argument="watermark")
        if delay_ms < 0:
            raise SpecError(f"watermark: must not be negative, got {delay_ms} ms")
    plan = None if schema is None else make_plan(spec, schema)
    return Stream(spec, plan=plan, delay_ms=delay_ms, max_future_skew=max_future_skew)

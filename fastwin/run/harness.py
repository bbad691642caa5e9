"""WindowHarness: windows under test, one element at a time, with everything they do laid open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn, SupportsIndex, cast

import pyarrow as pa

from fastwin.columns.objects import schema_of_rows, table_of_rows
from fastwin.columns.pythonvalues import told_rows
from fastwin.errors import SpecError, StateError
from fastwin.operators.general.operator import GeneralOperator
from fastwin.run import planner
from fastwin.run.guard import Guard, alone
from fastwin.run.opening import open_owned
from fastwin.run.ownedstream import OwnedStream
from fastwin.run.results import Result
from fastwin.run.showing import watermark_text
from fastwin.run.timelines import is_bad, kind_of_element
from fastwin.spec.builder import SpecBuilder, check_spec
from fastwin.spec.resultcolumns import BOUNDS
from fastwin.timeline.recorder import Recorder, Source
from fastwin.timeline.timeline import Timeline
from fastwin.times import MIN_TIMESTAMP, int64_ms
from fastwin.windows.timewindow import GlobalWindow, TimeWindow

__all__ = ["Emission", "PendingTimer", "WindowHarness"]


class Emission(NamedTuple):
    """One result row.

    key: a scalar for one key column, else a tuple. value: the other columns by name. timestamp: the window's last ms.
    timer: the time of the timer that fired, None if an element did.
    """

    key: Any
    window: TimeWindow | GlobalWindow
    value: dict[str, Any]
    timestamp: int
    timer: int | None


class PendingTimer(NamedTuple):
    """A registered timer. time: ms; of the processing time if ``event_time`` is False."""

    key: Any
    window: TimeWindow | GlobalWindow
    time: int
    event_time: bool


class WindowHarness:
    """Runs a spec on the general operator, element by element, and remembers all that comes of it.

    schema: of the elements; None: told from the first one. any_time: takes event times of all int64, as Flink does; a
    stream, and the harness by itself, takes those within ±2⁶¹ ms.

    >>> import fastwin as fw
    >>> spec = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(10)).aggregate(n=fw.Count())
    >>> harness = WindowHarness(spec)
    >>> harness.push({"k": "a", "ts": 3}), harness.timers
    ([], 1)
    >>> harness.advance_watermark(9)
    [Emission(key='a', window=TimeWindow(start=0, end=10), value={'n': 1}, timestamp=9, timer=9)]
    """

    def __init__(self, spec: SpecBuilder, schema: pa.Schema | None = None, any_time: bool = False) -> None:
        check_spec(spec)
        self.spec = spec
        self.emissions: list[Emission] = []
        """All emissions so far."""
        self.late: list[dict[str, Any]] = []
        """All elements that went to the late output so far."""
        self.side: dict[str, list[dict[str, Any]]] = {tag: [] for tag, _ in spec.sides}
        """All rows of side outputs so far, by tag."""
        self.dropped = 0
        """How many late elements were dropped and counted so far."""
        self._schema: pa.Schema | None = None
        self._any_time = any_time
        self._guard = Guard("harness")
        self._stream: OwnedStream | None = None
        self._watermark: int | None = None
        self._clock = 0
        by_clock = spec.time_column is None
        self._recorder = Recorder(
            Source(spec.keys, spec.time_column, spec.time_unit), axis="processing time" if by_clock else "event time"
        )
        self._dropped_before = 0
        if schema is not None:
            self._open(schema)

    def _open(self, schema: pa.Schema) -> OwnedStream:
        """Opens the stream; a schema that does not suit is not kept."""
        self._stream = open_owned(planner.plan(self.spec, schema, general=True), any_time=self._any_time)
        self._schema = schema
        self._operator.firing.causes = []
        if self._clock:
            self._stream.advance_processing_time(self._clock)
        if self._watermark is not None:
            self._stream.advance_watermark(self._watermark)
        return self._stream

    @property
    def _operator(self) -> GeneralOperator:
        assert self._stream is not None
        return cast(GeneralOperator, self._stream.operator)  # as the plan was asked to

    @alone
    def push(self, element: Mapping[str, Any]) -> list[Emission]:
        """Takes one element, by column; returns what it fires.

        Raises SpecError for what is no dict, and for columns that the first element, or ``schema``, does not have, or
        has otherwise.
        """
        if not isinstance(element, Mapping):
            raise SpecError(f"push: the element must be a dict by column, got {type(element).__name__}")
        if self._schema is not None and set(element) != set(self._schema.names):
            raise SpecError(
                f"push: the elements have the columns {', '.join(self._schema.names)}, got {', '.join(element)}"
            )
        schema = self._schema or schema_of_rows([element], "push")
        stream = self._stream or self._open(schema)
        table = table_of_rows([element], schema, schema.names, "push")
        before, result = stream.metrics, stream.process(table)
        if not is_bad(before, stream.metrics):
            self._recorder.arrived(
                table, kind_of_element(before, stream.metrics), None if self.spec.time_column else self._clock
            )
        return self._take(result)

    @alone
    def advance_watermark(self, watermark: int) -> list[Emission]:
        """Moves the watermark, ms; returns what fires. Raises SpecError unless it is an int64."""
        watermark = int64_ms("watermark", watermark)
        self._watermark = watermark if self._watermark is None else max(watermark, self._watermark)
        self._recorder.moved(watermark)
        return [] if self._stream is None else self._take(self._stream.advance_watermark(watermark))

    @alone
    def advance_processing_time(self, processing_time: int) -> list[Emission]:
        """Sets the processing time, ms; returns what fires. It starts at 0. Raises SpecError unless it is an int64."""
        self._clock = int64_ms("processing_time", processing_time)
        return [] if self._stream is None else self._take(self._stream.advance_processing_time(self._clock))

    def _take(self, result: Result) -> list[Emission]:
        assert self._stream is not None
        causes, self._operator.firing.causes = self._operator.firing.causes, []
        keys = self.spec.keys
        main = result.main
        self._recorder.fired(main, causes)
        bounds = [main[name].cast(pa.int64()).to_pylist() for name in BOUNDS]
        found = []
        for row, start, end, timer in zip(told_rows(main), *bounds, causes, strict=True):
            window = GlobalWindow() if start is None else TimeWindow(start, end)
            key = tuple(row.pop(name) for name in keys)
            value = {name: row[name] for name in row if name not in BOUNDS}
            found.append(Emission(key[0] if len(keys) == 1 else key, window, value, window.max_timestamp(), timer))
        self.emissions += found
        self.late += told_rows(result.late)
        for tag, table in result.side.items():
            self.side[tag] += told_rows(table)
        metrics = self._stream.metrics
        self.dropped += metrics.num_late_records_dropped - self._dropped_before
        self._dropped_before = metrics.num_late_records_dropped
        self._stream.check_invariants()
        return found

    @property
    def watermark(self) -> int:
        """The watermark, ms; int64 min for none yet."""
        if self._stream is not None:
            return self._stream.watermark
        return MIN_TIMESTAMP if self._watermark is None else self._watermark

    @property
    def timers(self) -> int:
        """How many timers are registered, of event and processing time."""
        return self._stream.metrics.timers if self._stream is not None else 0

    @alone
    def timeline(self, key: Any = None) -> Timeline:
        """Returns what has happened so far, as a picture: elements, watermark and firings in their order.

        key: of whose windows; a value, or a tuple for several key columns. None: of all keys.

        Raises SpecError for a key that nothing has come of, and for more than a picture can show.
        """
        return self._recorder.timeline(key)

    @alone
    def pending_timers(self) -> list[PendingTimer]:
        """Returns the registered timers, of triggers and for cleaning, in order of time."""
        if self._stream is None:
            return []
        elements, service = self._operator.elements, self._operator.timer_service
        found = []
        for event_time in (True, False):
            times, slots = service.listed(event_time)
            for time, slot in zip(times.tolist(), slots.tolist(), strict=True):
                key, window = elements.key_and_window(slot)
                found.append(PendingTimer(key, window, time, event_time))
        return sorted(found, key=lambda timer: timer.time)

    @alone
    def states(self) -> dict[tuple[Any, TimeWindow | GlobalWindow], dict[str, Any]]:
        """Returns what is kept per window by triggers and functions: by (key, window), then by the state's name.

        Names of a trigger's state begin with ``trigger0:``, ``trigger1:`` and so on.
        """
        if self._stream is None:
            return {}
        elements, windows = self._operator.elements, self._operator.state.windows
        return {elements.key_and_window(slot): dict(held) for slot, held in enumerate(windows) if held}

    @property
    def open_windows(self) -> int:
        """How many (key, window) pairs have contents."""
        return self._stream.metrics.open_windows if self._stream is not None else 0

    @property
    def state_rows(self) -> int:
        """How many (key, window) pairs, and keys with state of their own, anything is known about."""
        return self._stream.metrics.state_rows if self._stream is not None else 0

    @alone
    def snapshot(self) -> bytes | None:
        """Returns all state; None if nothing has been pushed yet."""
        return self._stream.snapshot() if self._stream is not None else None

    @alone
    def delta(self) -> bytes | None:
        """Returns what has changed since the last snapshot or delta; None if nothing has been pushed yet."""
        return self._stream.delta() if self._stream is not None else None

    @alone
    def restore(self, *chunks: bytes | None, forget_watermark: bool = False) -> None:
        """Goes on in a new operator with the state of a snapshot and the deltas after it.

        forget_watermark: starts without a watermark, as Flink does. What was emitted so far is kept.
        """
        saved = [chunk for chunk in chunks if chunk is not None]
        if forget_watermark:
            self._watermark = None
        if not saved:
            return
        if self._stream is None:
            raise StateError("WindowHarness: restore() before the first element needs the schema= of the elements")
        self._stream.restore(saved, forget_watermark=forget_watermark)
        self._clock = self._stream.processing_time
        self._dropped_before = 0
        self._operator.firing.causes = []
        self._stream.check_invariants()

    def __repr__(self) -> str:
        return (
            f"WindowHarness(watermark {watermark_text(self.watermark)}, {len(self.emissions):,} emissions, "
            f"{len(self.late) + self.dropped:,} late, {self.open_windows:,} open windows, {self.timers:,} timers)"
        )

    def _repr_svg_(self) -> str | None:
        try:
            return self.timeline()._repr_svg_()
        except SpecError:  # more than a picture can show
            return None

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        self._guard.refuse_copy()

"""WindowSpec: what to compute, said once; it runs on a table, on a stream in the process, and on Spark."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from fastwin import panespec, speccheck
from fastwin.aggregates import Aggregate
from fastwin.assigners import GlobalWindows, WindowAssigner
from fastwin.combinators import PurgingTrigger
from fastwin.ddl import to_schema
from fastwin.describe import describe
from fastwin.duration import Duration, format_ms, to_ms
from fastwin.errors import SpecError
from fastwin.evictors import CountEvictor, Evictor
from fastwin.functions import AggregateFunction, ProcessWindowFunction, ReduceFunction, as_reduce_function
from fastwin.triggers import CountTrigger, Trigger

if TYPE_CHECKING:
    import pyarrow as pa

    from fastwin.local import Stream
    from fastwin.planner import Explanation
    from fastwin.results import Result

__all__ = ["BAD_ROW_POLICIES", "WindowSpec", "key_by"]

BAD_ROW_POLICIES = ("raise", "divert", "drop")
_BOUNDS = ("window_start", "window_end")
# A row of state has one mark for each.
_MAX_AGGREGATES = 63


@dataclass(frozen=True)
class WindowSpec:
    """An immutable window specification; every method returns a new one. Start with ``key_by``.

    keys: names of the key columns. time_column: name of the event-time column. assigner: the windows.
    lateness_ms: allowed lateness. coalesce: None leaves it to the runner. late_output: whether late rows are
    handed out. bad_row_policy: one of BAD_ROW_POLICIES. aggregates: ``(name, aggregate)`` pairs, built in or
    user-written. arrival: whether elements have the time of their arrival. firing: the trigger, None for the assigner's
    own. eviction: the evictor. function: a user-written aggregate of several columns. reducer, processor: what their
    methods were given. output: the columns that Python code fills. sides: schemas of side outputs by tag. pane_info:
    whether results say which firing they are. origin: the spec whose panes these are.
    """

    keys: tuple[str, ...] = ()
    time_column: str | None = None
    assigner: WindowAssigner | None = None
    lateness_ms: int = 0
    coalesce: bool | None = None
    late_output: bool = False
    bad_row_policy: Literal["raise", "divert", "drop"] = "raise"
    aggregates: tuple[tuple[str, Aggregate | AggregateFunction], ...] = ()
    arrival: bool = False
    firing: Trigger | None = None
    eviction: Evictor | None = None
    function: AggregateFunction | None = None
    reducer: ReduceFunction | None = None
    processor: ProcessWindowFunction | None = None
    output: pa.Schema | None = None
    sides: tuple[tuple[str, pa.Schema], ...] = ()
    pane_info: bool = False
    origin: WindowSpec | None = None

    def event_time(self, column: str) -> WindowSpec:
        """Takes time from a column: a timestamp of any unit, floored to ms, or int64 milliseconds.

        Naive timestamps are UTC (on Spark: of the session's time zone).
        """
        if not isinstance(column, str) or not column:
            raise SpecError(f"event_time: column must be the name of a column, got {column!r}")
        return self._with(time_column=column, arrival=False)

    def processing_time(self) -> WindowSpec:
        """Takes as an element's time that of its arrival: the stream's processing time; for processing-time windows."""
        return self._with(time_column=None, arrival=True)

    def _with(self, **changes: Any) -> WindowSpec:
        changed = replace(self, **changes)
        speccheck.check_parts(changed)
        return changed

    def window(self, assigner: WindowAssigner) -> WindowSpec:
        """Assigns elements to windows, such as ``TumblingEventTimeWindows.of("1 hour")``."""
        if not isinstance(assigner, WindowAssigner):
            raise SpecError(
                f"window: must be a window assigner such as TumblingEventTimeWindows.of(...), got {assigner!r}"
            )
        if type(assigner).assign_windows is WindowAssigner.assign_windows:
            raise SpecError(
                f"window: {type(assigner).__name__} has no assign_windows(self, element, timestamp, context)"
            )
        return self._with(assigner=assigner)

    def count_window(self, size: int, slide: int | None = None) -> WindowSpec:
        """Groups elements by number instead of time: ``size`` at a time.

        slide: fire every ``slide`` elements, over the last ``size``. Source: Flink's countWindow.
        Raises SpecError for counts below 1.
        """
        for name, count in (("size", size), ("slide", 1 if slide is None else slide)):
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise SpecError(f"count_window: {name} must be an int of at least 1, got {count!r}")
        if self.firing is not None or self.eviction is not None:
            raise SpecError("count_window: brings its own trigger and evictor, but the spec has one already")
        if slide is None:
            return self._with(assigner=GlobalWindows(), firing=PurgingTrigger.of(CountTrigger.of(size)))
        return self._with(assigner=GlobalWindows(), firing=CountTrigger.of(slide), eviction=CountEvictor.of(size))

    def trigger(self, trigger: Trigger) -> WindowSpec:
        """Says when windows fire, in place of the assigner's default trigger."""
        if not isinstance(trigger, Trigger):
            raise SpecError(f"trigger: must be a trigger such as CountTrigger.of(100), got {trigger!r}")
        return self._with(firing=trigger)

    def evictor(self, evictor: Evictor) -> WindowSpec:
        """Removes elements from windows when they fire. Windows then keep all their elements."""
        if not isinstance(evictor, Evictor):
            raise SpecError(f"evictor: must be an evictor such as CountEvictor.of(100), got {evictor!r}")
        return self._with(eviction=evictor)

    def side_output(self, tag: str, schema: str | pa.Schema) -> WindowSpec:
        """Declares a side output, which ``context.output(tag, value)`` fills: ``result.side[tag]``.

        schema: DDL such as ``"user string, n bigint"`` or a pa.Schema.
        """
        if not isinstance(tag, str) or not tag.isidentifier():
            raise SpecError(f"side_output: tag must be a name, got {tag!r}")
        return self._with(sides=(*self.sides, (tag, to_schema(schema, f"side_output {tag!r}"))))

    def with_pane_info(self) -> WindowSpec:
        """Adds to the results which firing of its window each is.

        ``pane_index`` counts from 0. ``pane_timing``: EARLY before the end of the window, ON_TIME for the first timer
        behind it, then LATE. ``pane_is_last``: no other can follow.
        """
        return self._with(pane_info=True)

    def allowed_lateness(self, lateness: Duration, *, coalesce: bool | None = None) -> WindowSpec:
        """Keeps windows for ``lateness`` after the watermark has passed their end; late elements fire them again.

        coalesce: False fires once for each late element. True takes the elements of one ``process`` call as
            a set without order and fires once for each (key, window) of them. None: False in the process,
            True on Spark.
        Raises SpecError for a negative lateness.
        """
        ms = to_ms(lateness, argument="allowed_lateness")
        if ms < 0:
            raise SpecError(f"allowed_lateness: must not be negative, got {ms} ms")
        if coalesce not in (None, True, False):
            raise SpecError(f"allowed_lateness: coalesce must be None, True or False, got {coalesce!r}")
        return replace(self, lateness_ms=ms, coalesce=coalesce)

    def side_output_late_data(self) -> WindowSpec:
        """Hands out elements that no window takes any more, in ``result.late``, instead of counting them."""
        return replace(self, late_output=True)

    def bad_rows(self, policy: Literal["raise", "divert", "drop"]) -> WindowSpec:
        """Says what happens to rows without a usable timestamp: null, outside years 1 to 9999, far in the future.

        policy: ``"raise"`` BadRowError (the default), ``"divert"`` them to ``result.bad``, or ``"drop"`` and
            count them.
        """
        if policy not in BAD_ROW_POLICIES:
            raise SpecError(f"bad_rows: policy must be one of {', '.join(BAD_ROW_POLICIES)}, got {policy!r}")
        return replace(self, bad_row_policy=policy)

    def aggregate(
        self,
        function: AggregateFunction | None = None,
        /,
        *,
        then: ProcessWindowFunction | None = None,
        output: str | pa.Schema | None = None,
        **aggregates: Aggregate | AggregateFunction,
    ) -> WindowSpec:
        """Computes aggregates for each (key, window): ``aggregate(n=Count(), total=Sum("price"))``.

        function: a user-written aggregate, for the columns of ``output`` that no other fills. aggregates: built-in
            ones, and user-written ones for the column of that name.
        then: is called with the one result instead of the elements; its rows are the output.
        output: the columns that Python code fills: DDL such as ``"user string, n bigint"`` or a pa.Schema.

        Raises SpecError if there is no aggregate, if one is none, or if a name is taken by a key or by the
        window's bounds; and if the spec has no time or window yet.
        """
        for name, aggregate in aggregates.items():
            known = isinstance(aggregate, Aggregate) and type(aggregate).accumulator is not Aggregate.accumulator
            if not known and not isinstance(aggregate, AggregateFunction):
                raise SpecError(f"aggregate: {name} must be an aggregate such as fastwin.Count(), got {aggregate!r}")
            if not name:
                raise SpecError(f"aggregate: the name of {aggregate} is empty")
        built_in = sum(isinstance(aggregate, Aggregate) for aggregate in aggregates.values())
        if built_in > _MAX_AGGREGATES:
            raise SpecError(f"aggregate: at most {_MAX_AGGREGATES} in one spec, got {built_in}")
        if function is not None and not isinstance(function, AggregateFunction):
            raise SpecError(f"aggregate: the function must be an AggregateFunction, got {function!r}")
        if function is None and not aggregates:
            raise SpecError("aggregate: at least one is needed, such as n=fastwin.Count(), got none")
        if then is not None and not isinstance(then, ProcessWindowFunction):
            raise SpecError(f"aggregate: then must be a ProcessWindowFunction, got {then!r}")
        return self._ending(
            aggregates=tuple(aggregates.items()),
            function=function,
            processor=then,
            output=None if output is None else to_schema(output, "aggregate: output"),
        )

    def reduce(
        self,
        function: ReduceFunction | Callable[[Any, Any], Any],
        *,
        then: ProcessWindowFunction | None = None,
        output: str | pa.Schema | None = None,
    ) -> WindowSpec:
        """Reduces the elements of each (key, window), two by two, to one.

        function: a ReduceFunction or a callable of two rows; it returns a row (``a._replace(...)``), a dict, or a
            tuple with all columns of the input. output: the columns of the result; None: the input's but the keys.
        then: is called with the one reduced element; its rows are the output, and ``output`` names them.
        """
        made = as_reduce_function(function, "reduce")
        if then is not None and not isinstance(then, ProcessWindowFunction):
            raise SpecError(f"reduce: then must be a ProcessWindowFunction, got {then!r}")
        if then is not None and output is None:
            raise SpecError(f"reduce: then={type(then).__name__} needs output=, the columns of the rows that it yields")
        return self._ending(
            reducer=made, processor=then, output=None if output is None else to_schema(output, "reduce: output")
        )

    def process(self, function: ProcessWindowFunction, *, output: str | pa.Schema) -> WindowSpec:
        """Calls a function with all elements of each (key, window) that fires.

        output: the columns of the rows that it yields: DDL such as ``"user string, n bigint"`` or a pa.Schema.
        """
        if not isinstance(function, ProcessWindowFunction):
            raise SpecError(f"process: the function must be a ProcessWindowFunction, got {function!r}")
        return self._ending(processor=function, output=to_schema(output, "process: output"))

    def _ending(self, **changes: Any) -> WindowSpec:
        empty: dict[str, Any] = {"aggregates": (), "function": None, "reducer": None, "processor": None, "output": None}
        complete = self._with(**{**empty, **changes})
        complete.check_complete()
        _ = complete.fingerprint, complete.state_parts
        return complete

    def panes(self, width: Duration | None = None) -> WindowSpec:
        """Returns the spec of the tumbling panes that these windows can be put together from; see ``fastwin.store``.

        width: of a pane; divides the windows' size, slide and offset. None: the slide (of tumbling windows: the size).
        Aggregates become what can be merged later: a mean its sum and count, a distinct count its sketch. Lateness and
        outputs stay: an element that is late for its pane is missing in all windows over it.

        Raises SpecError for a width that does not divide, for other windows than tumbling, sliding and cumulative ones
        in event time, and for aggregates that cannot be put together.
        """
        return panespec.pane_spec(self, None if width is None else to_ms(width, argument="panes: width"))

    def check_complete(self) -> None:
        """Raises SpecError if a part without which nothing runs is missing."""
        speccheck.check_complete(self)

    @cached_property  # once: user code may keep something in itself while it runs
    def fingerprint(self) -> bytes:
        """16 bytes that tell this spec from others whose state means something else."""
        return hashlib.blake2b(str(self).encode(), digest_size=16).digest()

    @cached_property
    def state_parts(self) -> tuple[tuple[str, str], ...]:
        """What the methods that make this spec are given, in words; see ``StateSpec.parts``."""
        parts: dict[str, str] = {}
        for name, text in self._calls(state_only=True):
            parts[name] = f"{parts[name]}; {text}" if name in parts else text
        return tuple(parts.items())

    def __str__(self) -> str:
        return ".".join(f"{name}({text})" for name, text in self._calls(state_only=False))

    def _calls(self, *, state_only: bool) -> list[tuple[str, str]]:
        calls = [("key_by", ", ".join(map(repr, self.keys)))]
        if self.time_column is not None:
            calls.append(("event_time", repr(self.time_column)))
        if self.arrival:
            calls.append(("processing_time", ""))
        calls.append(("window", describe(self.assigner)))
        if self.firing is not None:
            calls.append(("trigger", describe(self.firing)))
        if self.eviction is not None:
            calls.append(("evictor", describe(self.eviction)))
        if self.lateness_ms and not state_only:
            calls.append(("allowed_lateness", repr(format_ms(self.lateness_ms))))
        calls += [("side_output", f"{tag!r}, {_types(schema)}") for tag, schema in self.sides]
        if self.pane_info:
            calls.append(("with_pane_info", ""))
        then = [] if self.processor is None else [f"then={describe(self.processor)}"]
        output = [] if self.output is None else [f"output={_types(self.output)}"]
        if self.function is not None or self.aggregates:
            arguments = [describe(self.function)] if self.function is not None else []
            told = [one for one in self.aggregates if not (state_only and isinstance(one[1], Aggregate))]
            arguments += [f"{name}={describe(aggregate)}" for name, aggregate in told]
            calls.append(("aggregate", ", ".join([*arguments, *then, *output])))
        elif self.reducer is not None:
            calls.append(("reduce", ", ".join([describe(self.reducer), *then, *output])))
        elif self.processor is not None:
            calls.append(("process", ", ".join([describe(self.processor), *output])))
        return calls

    # The two runners live a floor above; they are offered here so that a spec reads as one sentence.

    def run(self, table: Any, *, threads: int = 1) -> Result:
        """Runs over a bounded input and fires everything at its end.

        table: pyarrow Table or RecordBatch, pandas or polars DataFrame. Returns a Result.
        threads: over how many the keys are divided. The rows are the same, in order of their window ends within each
            thread's part, one part after another; sessions are in order as a whole, unless there are more than eight
            million elements or a gigabyte of them in several chunks. One is the default, because it needs no copy of
            the input and leaves the other cores to whoever calls. The general operator, and a spec without keys, run
            on one anyway.
        Raises SpecError if the columns do not suit, BadRowError as the policy says.
        """
        from fastwin import parallel

        return parallel.run_threads(self, table, threads)

    def open(
        self,
        watermark: Duration | Literal["monotonous"] | None = None,
        *,
        schema: pa.Schema | None = None,
        max_future_skew: Duration | None = None,
        idle: Duration | None = None,
    ) -> Stream:
        """Opens a stream in this process; see ``Stream``.

        watermark: how the watermark follows the data after each batch: a duration, by which elements
            may be out of order (``max - delay - 1`` as in Flink); ``"monotonous"`` for none; None: the caller
            calls ``advance_watermark``.
        schema: the input's schema, if it is to be checked before the first batch.
        max_future_skew: rows further ahead of the clock are bad rows. None: no limit.
        idle: needs a ``watermark``. When no element has come for so long by the machine's clock, the elements that
            could be out of order are not waited for any longer: the next ``process`` call without rows brings the
            watermark up to the newest timestamp. None: they are waited for.
        """
        from fastwin import local

        return local.open_stream(self, watermark, schema=schema, max_future_skew=max_future_skew, idle=idle)

    def explain(self, schema: pa.Schema | None = None) -> Explanation:
        """Says which operator runs the spec, and why: text that shows itself well in a notebook, too.

        schema: of the input, if it is to be checked as well.
        """
        from fastwin import planner

        return planner.explain(self) if schema is None else planner.plan(self, schema).explain()


def _types(schema: pa.Schema) -> dict[str, str]:
    return {field.name: str(field.type) for field in schema}


def key_by(*columns: str) -> WindowSpec:
    """Starts a spec whose windows are kept for each value of the key columns; null is a value like any other.

    columns: names; none: one global key. Raises SpecError for what is no name, or a name given twice.

    >>> from fastwin import Count, TumblingEventTimeWindows
    >>> spec = key_by("page").event_time("ts").window(TumblingEventTimeWindows.of("1 hour")).aggregate(n=Count())
    >>> spec.keys
    ('page',)
    """
    for column in columns:
        if not isinstance(column, str) or not column:
            raise SpecError(f"key_by: columns must be names, got {column!r}")
        if column in _BOUNDS:
            raise SpecError(f"key_by: {column!r} is the name of a result column; rename the key")
    if len(set(columns)) != len(columns):
        raise SpecError(f"key_by: a column is named twice in {list(columns)}")
    return WindowSpec(keys=columns)

"""SpecBuilder: the parts of a window specification, and the methods that set them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

from fastwin.aggregates.aggregate import Aggregate
from fastwin.columns.units import UNITS, Unit
from fastwin.errors import SpecError, did_you_mean
from fastwin.functions.aggregate import AggregateFunction
from fastwin.functions.evictors import CountEvictor, Evictor
from fastwin.functions.process import ProcessWindowFunction
from fastwin.functions.reduce import ReduceFunction, as_reduce_function
from fastwin.spec.checks import check_complete, check_parts
from fastwin.spec.ddl import to_schema
from fastwin.spec.ending import AggregateEnding, Ending, ProcessEnding, ReduceEnding
from fastwin.spec.filling import check_names, fill_ms
from fastwin.spec.panes import pane_spec
from fastwin.spec.rowendings import DeduplicateEnding, TopEnding
from fastwin.spec.text import spec_text, state_parts
from fastwin.times import Duration, to_ms
from fastwin.triggers import CountTrigger, PurgingTrigger, Trigger
from fastwin.windows.apart import RowsApart
from fastwin.windows.assigner import WindowAssigner
from fastwin.windows.global_windows import GlobalWindows
from fastwin.windows.named_windows import NamedWindows

if TYPE_CHECKING:
    import pyarrow as pa


__all__ = ["BAD_ROW_POLICIES", "SpecBuilder", "check_spec"]

BAD_ROW_POLICIES = ("raise", "divert", "drop")
_OUTPUTS = ("main", "late", "bad")  # that each result has


def check_spec(spec: Any) -> None:
    """Raises SpecError unless it is a spec of windows, which a join is not, and complete."""
    if not isinstance(spec, SpecBuilder):
        raise SpecError(f"spec: must be a WindowSpec as built from fastwin.key_by(...), got {type(spec).__name__}")
    spec.check_complete()


@dataclass(frozen=True)
class SpecBuilder:
    """An immutable window specification; every method returns a new one. ``WindowSpec`` is one that runs.

    keys: names of the key columns. time_column: name of the event-time column. time_unit: what its int64 times count,
    None: ms. arrival: whether elements have the time of their arrival instead. assigner: the windows. firing: the
    trigger, None for the assigner's own. eviction: the evictor. lateness_ms: allowed lateness. coalesce: None leaves it
    to the runner. late_output: whether late rows are handed out. bad_row_policy: one of BAD_ROW_POLICIES. sides:
    schemas of side outputs by tag. pane_info: whether results say which firing they are. changelog: what they change.
    window_time: whether they have the last millisecond of their windows. fill_ms: the longest gap whose empty windows
    they have, of each window; None for none. ending: what is computed, None as long as that is open. origin: the spec
    whose panes these are.
    """

    keys: tuple[str, ...] = ()
    time_column: str | None = None
    time_unit: Unit | None = None
    assigner: WindowAssigner | None = None
    lateness_ms: int = 0
    coalesce: bool | None = None
    late_output: bool = False
    bad_row_policy: Literal["raise", "divert", "drop"] = "raise"
    arrival: bool = False
    firing: Trigger | None = None
    eviction: Evictor | None = None
    ending: Ending | None = None
    sides: tuple[tuple[str, pa.Schema], ...] = ()
    pane_info: bool = False
    changelog: bool = False
    window_time: bool = False
    fill_ms: tuple[int, ...] | None = None
    origin: SpecBuilder | None = None

    def event_time(self, column: str, *, unit: Unit | None = None) -> Self:
        """Takes time from a column: a timestamp of any unit, floored to ms, or an int64 of milliseconds.

        Naive timestamps are UTC (on Spark: of the session's time zone).
        unit: what an int64 column counts since 1970: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``; then times outside the
            years 1 to 9999 are bad rows, as those of timestamps are. None: milliseconds, as plain numbers; where
            they look like another unit, there is a warning. It goes with no timestamp column: that says its own.
        """
        if not isinstance(column, str) or not column:
            raise SpecError(f"event_time: column must be the name of a column, got {column!r}")
        if unit is not None and unit not in UNITS:
            raise SpecError(f"event_time: unit must be one of {', '.join(UNITS)}, got {unit!r}")
        match self.ending:
            case DeduplicateEnding(keep="last", time_column=before) if before != column:
                by = "the event time" if before is None else repr(before)
                raise SpecError(
                    f"deduplicate: keep='last' goes by {by}, and the event time was set to {column!r} behind it; set "
                    f"it before"
                )
        return self._with(time_column=column, time_unit=unit, arrival=False)

    def processing_time(self) -> Self:
        """Takes as an element's time that of its arrival: the stream's processing time; for processing-time windows."""
        return self._with(time_column=None, time_unit=None, arrival=True)

    def _with(self, **changes: Any) -> Self:
        changed = replace(self, **changes)
        check_parts(changed)
        return changed

    def window(
        self,
        assigner: WindowAssigner,
        *,
        fill: Literal["empty"] | None = None,
        longest_gap: Duration | None = None,
    ) -> Self:
        """Assigns elements to windows, such as ``TumblingEventTimeWindows.of("1 hour")``.

        fill: ``"empty"`` gives a row to each window without elements, too, between the first and the last window of a
            key that has some: counts are 0, other aggregates what they are of no elements, mostly null. These rows
            come with the window that ends their gap. A late element may correct one.
        longest_gap: how far windows with elements may end apart for the gap between them to be filled; a key that is
            away for longer begins anew. A key is remembered for that long. At least the allowed lateness. None: as long
            as 10,000 windows.

        Raises SpecError for ``fill`` with sessions, global windows, windows of processing time and of your own, and
        with triggers, evictors, pane info, functions in Python, and changelogs beside allowed lateness.
        """
        if not isinstance(assigner, WindowAssigner):
            raise SpecError(
                f"window: must be a window assigner such as TumblingEventTimeWindows.of(...), got {assigner!r}"
            )
        if type(assigner).assign_windows is WindowAssigner.assign_windows:
            raise SpecError(
                f"window: {type(assigner).__name__} has no assign_windows(self, element, timestamp, context)"
            )
        return self._with(assigner=assigner, fill_ms=fill_ms(assigner, fill, longest_gap))

    def windows(
        self,
        *,
        fill: Literal["empty"] | None = None,
        longest_gap: Duration | None = None,
        **named: WindowAssigner,
    ) -> Self:
        """Assigns elements to several windows at once: ``windows(minute=..., hour=...)``, instead of ``window``.

        named: windows of event time that tumble, slide, cumulate or go by a calendar, by the names that the column
            ``window`` of the results has.
        fill, longest_gap: as in ``window``, of each of them.

        Each gives what a spec of its own gives; elements that are late for all of them are late. They share one state:
        elements go into the finest windows, and what these have aggregated goes into the coarser ones, if their slices
        fit into each other. So a few more windows cost little: O(1) for an element, O(windows) for a finished slice.
        Sums of floats are rounded as slices are added up. Raises SpecError for sessions and other windows, and with
        triggers, evictors, pane info, side outputs and functions in Python.
        """
        check_names(fill=fill, longest_gap=longest_gap)
        assigner = NamedWindows(tuple(named.items()))
        return self._with(assigner=assigner, fill_ms=fill_ms(assigner, fill, longest_gap))

    def count_window(self, size: int, slide: int | None = None) -> Self:
        """Groups elements by number instead of time: ``size`` at a time.

        slide: fire every ``slide`` elements, over the last ``size``. Source: Flink's countWindow.
        Raises SpecError for counts below 1.
        """
        for name, count in (("size", size), ("slide", 1 if slide is None else slide)):
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise SpecError(f"count_window: {name} must be an int of at least 1, got {count!r}")
        if self.firing is not None or self.eviction is not None:
            raise SpecError("count_window: brings its own trigger and evictor, but the spec has one already")
        spec = self.window(GlobalWindows())
        if slide is None:
            return spec._with(firing=PurgingTrigger.of(CountTrigger.of(size)))
        return spec._with(firing=CountTrigger.of(slide), eviction=CountEvictor.of(size))

    def trigger(self, trigger: Trigger) -> Self:
        """Says when windows fire, in place of the assigner's default trigger."""
        if not isinstance(trigger, Trigger):
            raise SpecError(f"trigger: must be a trigger such as CountTrigger.of(100), got {trigger!r}")
        return self._with(firing=trigger)

    def evictor(self, evictor: Evictor) -> Self:
        """Removes elements from windows when they fire. Windows then keep all their elements."""
        if not isinstance(evictor, Evictor):
            raise SpecError(f"evictor: must be an evictor such as CountEvictor.of(100), got {evictor!r}")
        return self._with(eviction=evictor)

    def side_output(self, tag: str, schema: str | pa.Schema) -> Self:
        """Declares a side output, which ``context.output(tag, value)`` fills: ``result.side[tag]``.

        tag: a name; not ``"main"``, ``"late"`` or ``"bad"``, as results have these. schema: DDL such as
            ``"user string, n bigint"`` or a pa.Schema.
        """
        if not isinstance(tag, str) or not tag.isidentifier() or tag in _OUTPUTS:
            raise SpecError(f"side_output: tag must be a name, and none of {', '.join(_OUTPUTS)}, got {tag!r}")
        return self._with(sides=(*self.sides, (tag, to_schema(schema, f"side_output {tag!r}"))))

    def with_pane_info(self) -> Self:
        """Adds to the results which firing of its window each is.

        ``pane_index`` counts from 0. ``pane_timing``: EARLY before the end of the window, ON_TIME for the first timer
        behind it, then LATE. ``pane_is_last``: no other can follow.
        """
        return self._with(pane_info=True)

    def with_changelog(self) -> Self:
        """Adds to the results what each does to a table of them: the column ``change``.

        ``"insert"``: the first result of its key and window. ``"update"``: another one, in place of the one before.
        ``"delete"``: the window has become part of another one, as sessions do; the columns behind its bounds are null.
        Applied in order to an empty table, by key columns and bounds, they make it hold the newest result of each
        window at every moment. These are Flink's row kinds in upsert mode: +I, +U and -D, without -U.

        Goes with aggregates and reductions, which have one result for each window; raises SpecError for others. With
        allowed lateness, the general operator runs it.
        """
        return self._with(changelog=True)

    def with_window_time(self) -> Self:
        """Adds ``window_time`` to the results, the last millisecond of each window: the time of what comes behind.

        It is ``window_end`` less a millisecond, as in Flink SQL; null for global windows.
        """
        return self._with(window_time=True)

    def allowed_lateness(self, lateness: Duration, *, coalesce: bool | None = None) -> Self:
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

    def side_output_late_data(self) -> Self:
        """Hands out elements that no window takes any more, in ``result.late``, instead of counting them."""
        return replace(self, late_output=True)

    def bad_rows(self, policy: Literal["raise", "divert", "drop"]) -> Self:
        """Says what happens to rows without a usable timestamp: null, outside years 1 to 9999, far in the future.

        So it does to those whose gap is none, where a column has the gaps of sessions.

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
        then: ProcessWindowFunction | Aggregate | AggregateFunction | None = None,
        output: str | pa.Schema | Aggregate | AggregateFunction | None = None,
        **aggregates: Aggregate | AggregateFunction,
    ) -> Self:
        """Computes aggregates for each (key, window): ``aggregate(n=Count(), total=Sum("price"))``.

        function: a user-written aggregate, for the columns of ``output`` that no other fills. aggregates: built-in
            ones, and user-written ones for the column of that name.
        then: is called with the one result instead of the elements; its rows are the output.
        output: the columns that Python code fills: DDL such as ``"user string, n bigint"`` or a pa.Schema.
        An aggregate given as ``then`` or ``output`` is one for the column of that name, behind the others.

        Raises SpecError if there is no aggregate, if one is none, or if a name is taken by a key or by the
        window's bounds; and if the spec has no time or window yet.
        """
        if isinstance(then, Aggregate | AggregateFunction):
            aggregates, then = {**aggregates, "then": then}, None
        if isinstance(output, Aggregate | AggregateFunction):
            aggregates, output = {**aggregates, "output": output}, None
        columns = None if output is None else to_schema(output, "aggregate: output")
        return self._ended(AggregateEnding(tuple(aggregates.items()), function, then, columns))

    def reduce(
        self,
        function: ReduceFunction | Callable[[Any, Any], Any],
        *,
        then: ProcessWindowFunction | None = None,
        output: str | pa.Schema | None = None,
    ) -> Self:
        """Reduces the elements of each (key, window), two by two, to one.

        function: a ReduceFunction or a callable of two rows; it returns a row (``a._replace(...)``), a dict, or a
            tuple with all columns of the input. output: the columns of the result; None: the input's but the keys.
        then: is called with the one reduced element; its rows are the output, and ``output`` names them.
        """
        columns = None if output is None else to_schema(output, "reduce: output")
        return self._ended(ReduceEnding(as_reduce_function(function, "reduce"), then, columns))

    def process(self, function: ProcessWindowFunction, *, output: str | pa.Schema) -> Self:
        """Calls a function with all elements of each (key, window) that fires.

        output: the columns of the rows that it yields: DDL such as ``"user string, n bigint"`` or a pa.Schema.
        """
        return self._ended(ProcessEnding(function, to_schema(output, "process: output")))

    def deduplicate(self, keep: Literal["first", "last"] = "first", *, within: Duration | None = None) -> Self:
        """Keeps one row of each (key, window): the input's columns, behind the bounds of the window.

        keep: ``"first"`` hands out the first row to arrive, at once, and drops the others. ``"last"`` hands out the row
            with the latest event time when the window fires; of several, the last to arrive.
        within: instead of ``.window(...)``: a row is handed out, at once, unless a row of its key that was handed out
            lies less than ``within`` before or after it in event time. Its bounds are its time and ``within`` later.

        Where the rows of a batch have no order, as on Spark, the first is the one with the earliest event time. Rows
        behind the watermark are late as elsewhere: with windows, when all of theirs are gone; with ``within``, when
        their time plus the allowed lateness is not after the watermark.

        Raises SpecError for another ``keep``, for ``within`` beside windows or ``"last"``, and where a first row could
        not be handed out at once: with a trigger, an evictor, pane info, sessions and processing time.
        """
        within_ms = None if within is None else to_ms(within, argument="deduplicate: within")
        spec = self
        if within_ms is not None:
            if self.assigner is not None:
                raise SpecError(f"deduplicate: within= takes the place of windows, but the spec has {self.assigner}")
            spec = self._with(assigner=RowsApart(within_ms))
        elif self.assigner is None:
            raise SpecError("deduplicate: incomplete without .window(assigner), or within= in place of windows")
        return spec._ended(DeduplicateEnding(keep, self.keys, self.time_column, within_ms))

    def top(self, n: int, by: str, *, ascending: bool = False) -> Self:
        """Keeps the ``n`` rows of each (key, window) with the largest values of a column, in order.

        by: a column of numbers, times or texts. ascending: the smallest values instead.

        The result has the input's columns, behind the bounds of the window and ``rank``, from 1. Of equal values, the
        row that arrived first is ranked first. NaN is above all other numbers; null comes last either way.

        Raises SpecError for an ``n`` below 1. State: at most ``n`` rows for each (key, slice), and as many new ones.
        """
        return self._ended(TopEnding(self.keys, n, by, ascending))

    def _ended(self, ending: Ending) -> Self:
        complete = self._with(ending=ending)
        complete.check_complete()
        _ = complete.fingerprint, complete.state_parts
        return complete

    def panes(self, width: Duration | None = None) -> Self:
        """Returns the spec of the tumbling panes that these windows can be put together from; see ``fastwin.store``.

        width: of a pane; divides the windows' size and slide. None: the slide (of tumbling windows: the size).
        Aggregates become what can be merged later: a mean its sum and count, a distinct count its sketch. Lateness and
        outputs stay: an element that is late for its pane is missing in all windows over it.

        Raises SpecError for a width that does not divide, for other windows than tumbling, sliding and cumulative ones
        in event time, and for aggregates that cannot be put together.
        """
        return pane_spec(self, None if width is None else to_ms(width, argument="panes: width"))

    def check_complete(self) -> None:
        """Raises SpecError if a part without which nothing runs is missing."""
        check_complete(self)

    @cached_property  # once: user code may keep something in itself while it runs
    def fingerprint(self) -> bytes:
        """16 bytes that tell this spec from others whose state means something else."""
        return hashlib.blake2b(str(self).encode(), digest_size=16).digest()

    @cached_property
    def state_parts(self) -> tuple[tuple[str, str], ...]:
        """What the methods that make this spec are given, in words; see ``StateSpec.parts``."""
        return state_parts(self)

    def __str__(self) -> str:
        return spec_text(self)

    if not TYPE_CHECKING:  # a checker shall still tell names that are not there

        def __getattr__(self, name: str) -> Any:
            said = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name.startswith("_"):
                raise AttributeError(said)
            if name in dir(type(self)):
                return object.__getattribute__(self, name)  # a property that failed says why
            fields = type(self).__dataclass_fields__
            methods = [known for known in dir(type(self)) if known not in fields]
            raise AttributeError(f"{said}{did_you_mean(name, methods)}")

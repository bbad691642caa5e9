"""WindowSpec: what to compute, said once; it runs on a table, on a stream in the process, and on Spark."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from fastwin.aggregates import Aggregate
from fastwin.assigners import WindowAssigner
from fastwin.duration import Duration, format_ms, to_ms
from fastwin.errors import SpecError

if TYPE_CHECKING:
    import pyarrow as pa

    from fastwin.local import Result, Stream

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
    handed out. bad_row_policy: one of BAD_ROW_POLICIES. aggregates: ``(name, aggregate)`` pairs.
    """

    keys: tuple[str, ...] = ()
    time_column: str | None = None
    assigner: WindowAssigner | None = None
    lateness_ms: int = 0
    coalesce: bool | None = None
    late_output: bool = False
    bad_row_policy: Literal["raise", "divert", "drop"] = "raise"
    aggregates: tuple[tuple[str, Aggregate], ...] = ()

    def event_time(self, column: str) -> WindowSpec:
        """Takes time from a column: a timestamp of any unit, floored to ms, or int64 milliseconds.

        Naive timestamps are UTC (on Spark: of the session's time zone).
        """
        if not isinstance(column, str) or not column:
            raise SpecError(f"event_time: column must be the name of a column, got {column!r}")
        return replace(self, time_column=column)

    def window(self, assigner: WindowAssigner) -> WindowSpec:
        """Assigns elements to windows, such as ``TumblingEventTimeWindows.of("1 hour")``."""
        if not isinstance(assigner, WindowAssigner):
            raise SpecError(
                f"window: must be a window assigner such as TumblingEventTimeWindows.of(...), got {assigner!r}"
            )
        return replace(self, assigner=assigner)

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

    def aggregate(self, **aggregates: Aggregate) -> WindowSpec:
        """Computes aggregates for each (key, window): ``aggregate(n=Count(), total=Sum("price"))``.

        Raises SpecError if there is none, if one is no aggregate, or if a name is taken by a key or by the
        window's bounds; and if the spec has no event time or window yet.
        """
        if not aggregates:
            raise SpecError("aggregate: at least one is needed, such as n=fastwin.Count(), got none")
        for name, aggregate in aggregates.items():
            if not isinstance(aggregate, Aggregate) or type(aggregate).accumulator is Aggregate.accumulator:
                raise SpecError(f"aggregate: {name} must be an aggregate such as fastwin.Count(), got {aggregate!r}")
            if not name:
                raise SpecError(f"aggregate: the name of {aggregate} is empty")
            if name in self.keys or name in _BOUNDS:
                raise SpecError(f"aggregate: the name {name!r} is taken by a key column or a bound of the window")
        if len(aggregates) > _MAX_AGGREGATES:
            raise SpecError(f"aggregate: at most {_MAX_AGGREGATES} in one spec, got {len(aggregates)}")
        complete = replace(self, aggregates=tuple(aggregates.items()))
        complete.check_complete()
        return complete

    def check_complete(self) -> None:
        """Raises SpecError if a part without which nothing runs is missing."""
        missing = [
            call
            for call, part in (
                (".event_time(column)", self.time_column),
                (".window(assigner)", self.assigner),
                (".aggregate(name=...)", self.aggregates),
            )
            if not part
        ]
        if missing:
            raise SpecError(f"spec: incomplete without {' and '.join(missing)}")

    @property
    def fingerprint(self) -> bytes:
        """16 bytes that tell this spec from others whose state means something else."""
        return hashlib.blake2b(str(self).encode(), digest_size=16).digest()

    def __str__(self) -> str:
        parts = [f"key_by({', '.join(map(repr, self.keys))})", f"event_time({self.time_column!r})"]
        parts.append(f"window({self.assigner!r})")
        if self.lateness_ms:
            parts.append(f"allowed_lateness({format_ms(self.lateness_ms)!r})")
        parts.append(f"aggregate({', '.join(f'{name}={aggregate!r}' for name, aggregate in self.aggregates)})")
        return ".".join(parts)

    # The two runners live a floor above; they are offered here so that a spec reads as one sentence.

    def run(self, table: Any) -> Result:
        """Runs over a bounded input and fires everything at its end.

        table: pyarrow Table or RecordBatch, pandas or polars DataFrame. Returns a Result.
        Raises SpecError if the columns do not suit, BadRowError as the policy says.
        """
        from fastwin import local

        return local.run(self, table)

    def open(
        self,
        watermark: Duration | Literal["monotonous"] | None = None,
        *,
        schema: pa.Schema | None = None,
        max_future_skew: Duration | None = None,
    ) -> Stream:
        """Opens a stream in this process; see ``Stream``.

        watermark: how the watermark follows the data after each batch: a duration, by which elements
            may be out of order (``max - delay - 1`` as in Flink); ``"monotonous"`` for none; None: the caller
            calls ``advance_watermark``.
        schema: the input's schema, if it is to be checked before the first batch.
        max_future_skew: rows further ahead of the clock are bad rows. None: no limit.
        """
        from fastwin import local

        return local.open_stream(self, watermark, schema=schema, max_future_skew=max_future_skew)

    def explain(self, schema: pa.Schema) -> str:
        """Says which operator runs the spec on an input of this schema, and why."""
        from fastwin import planner

        return planner.plan(self, schema).explain()


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

"""WindowSpec: what to compute, said once; it runs on a table, on a stream in the process, and on Spark."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from fastwin.callers import callers_level
from fastwin.errors import SpecError
from fastwin.run.choice import Explanation, choose, explain
from fastwin.run.opening import open_stream
from fastwin.run.planner import plan
from fastwin.run.results import Result
from fastwin.run.showing import spec_html, spec_lines
from fastwin.run.stream import Stream
from fastwin.run.threads import run_threads
from fastwin.run.timelines import spec_timeline
from fastwin.spec.builder import SpecBuilder
from fastwin.spec.resultcolumns import BOUNDS
from fastwin.timeline.timeline import Timeline
from fastwin.times import Duration

__all__ = ["WindowSpec", "key_by"]


@dataclass(frozen=True, repr=False)
class WindowSpec(SpecBuilder):
    """An immutable window specification; every method returns a new one. Start with ``key_by``."""

    def run(self, table: Any, *, threads: int = 1) -> Result:
        """Runs over a bounded input and fires everything at its end.

        table: pyarrow Table or RecordBatch, pandas or polars DataFrame. Columns that the spec does not read may hold
            anything. Returns a Result.
        threads: how many take part, the caller's included; the others stay, idle, for the next run. The rows are the
            same, but for the last bits of float64 results that are put together from parts. Rows of tumbling windows
            are in order of their window ends, unless a key is null or comes as a dictionary, and so are sessions,
            unless there are more than eight million elements, or a gigabyte of them in several chunks. All others may
            be divided by their keys: rows are in order within each of many parts, one part after another. One is the
            default, because it leaves the other cores to whoever calls. The general operator, a spec without keys, and
            fewer than 100,000 rows run on one anyway.
        From then on glibc, if that is the C library, keeps up to 256 MiB of what the process frees, unless one of its
        variables is set, such as ``MALLOC_TRIM_THRESHOLD_``.
        Raises SpecError if the columns do not suit, BadRowError as the policy says.
        """
        return run_threads(self, table, threads)

    def open(
        self,
        *delay: Duration | Literal["monotonous"] | None,
        watermark: Duration | Literal["monotonous"] | None = None,
        schema: pa.Schema | None = None,
        max_future_skew: Duration | None = None,
        idle: Duration | None = None,
        trace: int | None = None,
    ) -> Stream:
        """Opens a stream in this process; see ``Stream``.

        watermark: how the watermark follows the data after each batch: a duration, by which elements
            may be out of order (``max - delay - 1`` as in Flink); ``"monotonous"`` for none; None: the caller
            calls ``advance_watermark``.
        schema: the input's schema, if it is to be checked before the first batch.
        max_future_skew: rows further ahead of the clock are bad rows. None: no limit.
        idle: needs a ``watermark``. When no element has come for so long by the machine's clock, the elements that
            could be out of order are not waited for any longer: the next ``process`` call without rows brings the
            watermark up to the newest timestamp, and each one after it further, as far as the clock has gone on.
            None: they are waited for.
        trace: keeps so many decisions for ``Stream.why``: what fired and by what, what was late, what moved the
            watermark. None: none are kept, and nothing is spent on it.
        """
        if delay:
            watermark = _named_watermark(delay, watermark)
        return open_stream(self, watermark, schema=schema, max_future_skew=max_future_skew, idle=idle, trace=trace)

    def explain(self, schema: pa.Schema | None = None) -> Explanation:
        """Says which operator runs the spec, and why: text that shows itself well in a notebook, too.

        schema: of the input, if it is to be checked as well.
        """
        return explain(self) if schema is None else plan(self, schema).explain()

    def timeline(
        self, rows: Any, *, key: Any = None, watermark: Duration | Literal["monotonous"] | None = "0 s"
    ) -> Timeline:
        """Takes a few rows one by one, and returns a picture of it: elements, watermark and firings in their order.

        rows: pyarrow Table or RecordBatch, pandas or polars DataFrame, at most 10,000 rows. The last watermark ends it.
        key: of whose windows; a value, or a tuple for several key columns. None: of all keys.
        watermark: as in ``open``: it follows each row. None: there is none but the last one.

        Raises as ``process`` does, and SpecError without ``event_time``, for a key that is not there, and for more than
        a picture can show.
        """
        return spec_timeline(self, rows, key, watermark)

    def __repr__(self) -> str:
        return spec_lines(self)

    def _repr_html_(self) -> str:
        if self.ending is None or self.assigner is None:
            return spec_html(self)
        operator, why = choose(self)
        return spec_html(self, {"operator": f"{operator}, because {why}"})


def _named_watermark(delay: tuple[Any, ...], watermark: Any) -> Any:
    """Returns the watermark that was given without its name, with a warning; raises SpecError for more than that."""
    if len(delay) > 1 or watermark is not None:
        raise SpecError(f"open: takes one watermark, by its name: open(watermark={delay[0]!r}), got {len(delay)} more")
    warnings.warn(
        f"open({delay[0]!r}): say what that is: open(watermark={delay[0]!r}), by how much elements may be out of order",
        stacklevel=callers_level(),
    )
    return delay[0]


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
        if column in BOUNDS:
            raise SpecError(f"key_by: {column!r} is the name of a result column; rename the key")
    if len(set(columns)) != len(columns):
        raise SpecError(f"key_by: a column is named twice in {list(columns)}")
    return WindowSpec(keys=columns)

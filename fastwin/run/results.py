"""What streams give back: results and metrics."""

from __future__ import annotations

import importlib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fastwin.columns.tables import as_table
from fastwin.errors import NotInstalledError, SpecError
from fastwin.run.showing import pairs_html, table_html
from fastwin.spec.resultcolumns import WINDOW_END
from fastwin.timeline.recorder import Recorder, Source
from fastwin.timeline.timeline import Timeline
from fastwin.times import MIN_TIMESTAMP

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from fastwin.operators.protocol import Operator

__all__ = ["Metrics", "Result"]


@dataclass(frozen=True, repr=False)
class Result:
    """What a call has produced.

    main: key columns, ``window_start``, ``window_end`` and the aggregates. The bounds are timestamp[ms], in the zone of
    the event time if it has one, else in UTC.
    late: elements that no window takes any more, with the input's columns; empty unless asked for.
    bad: rows without a usable timestamp or gap, with the input's columns and ``bad_reason``; empty unless diverted.
    side: the side outputs that the spec declares, by tag.
    bad_dropped: how many bad rows the call has dropped, as ``bad_rows("drop")`` says.
    source: which columns are keys and time, for pictures.
    """

    main: pa.Table
    late: pa.Table
    bad: pa.Table
    side: dict[str, pa.Table] = field(default_factory=dict)
    source: Source | None = field(default=None, compare=False)
    bad_dropped: int = field(default=0, compare=False)

    def to_pandas(self, output: str = "main") -> pd.DataFrame:
        """Returns an output as a pandas DataFrame.

        output: ``"main"``, ``"late"``, ``"bad"``, or the tag of a side output. Raises SpecError for any other,
        NotInstalledError where pandas is missing.
        """
        table = self._output("to_pandas", output)
        _need("to_pandas", "pandas")
        return table.to_pandas()

    def to_polars(self, output: str = "main") -> pl.DataFrame:
        """Returns an output as a polars DataFrame.

        output: ``"main"``, ``"late"``, ``"bad"``, or the tag of a side output. Raises SpecError for any other,
        NotInstalledError where polars is missing.
        """
        table = self._output("to_polars", output)
        return _need("to_polars", "polars").from_arrow(table)

    def timeline(self, key: Any = None, *, rows: Any = None) -> Timeline:
        """Returns a picture of the windows that fired, and of the late rows.

        key: of whose windows; a value, or a tuple for several key columns. None: of all keys.
        rows: the input, if its elements are to be shown as well. A result does not know them, nor when each arrived:
            ``spec.timeline(rows)`` shows that.

        Raises SpecError for a key that is not there, for results without windows, and for more than a picture can show.
        """
        if self.source is None or WINDOW_END not in self.main.column_names:
            raise SpecError("timeline: the result has no windows of a spec")
        recorder = Recorder(self.source, ordered=False)
        if rows is not None:
            read = {*self.source.keys, self.source.time_column or ""}.__contains__
            recorder.arrived(as_table(rows, read, read))
        if self.late.num_rows and self.source.time_column is not None:
            recorder.arrived(self.late, "late")
        recorder.fired(self.main, [None] * self.main.num_rows)
        return recorder.timeline(key)

    def _output(self, call: str, name: str) -> pa.Table:
        outputs = {**self.side, "main": self.main, "late": self.late, "bad": self.bad}
        if name not in outputs:
            raise SpecError(f"{call}: output must be one of {', '.join(map(repr, outputs))}, got {name!r}")
        return outputs[name]

    def _others(self) -> list[tuple[str, pa.Table]]:
        """Returns the outputs besides ``main`` that have rows, by name."""
        sides = ((f"side[{tag!r}]", table) for tag, table in self.side.items())
        return [one for one in (("late", self.late), ("bad", self.bad), *sides) if one[1].num_rows]

    def __repr__(self) -> str:
        main = f"main: {self.main.num_rows:,} rows of {', '.join(self.main.column_names)}"
        counts = [f"{name}: {table.num_rows:,} rows" for name, table in self._others()]
        counts += [f"bad_dropped: {self.bad_dropped:,} rows"] if self.bad_dropped else []
        return f"Result({'; '.join([main, *counts])})"

    def _repr_html_(self) -> str:
        parts = [table_html(f"result.{name}", table) for name, table in self._others()]
        parts += [pairs_html("result", {"bad_dropped": self.bad_dropped})] if self.bad_dropped else []
        return "".join([table_html("result.main", self.main), *parts])


def _need(call: str, library: str) -> Any:
    """Returns a library that only this call needs."""
    try:
        return importlib.import_module(library)
    except ImportError as problem:
        raise NotInstalledError(
            f"{call}: {library} is not installed; the outputs themselves are Arrow tables; pip install {library}"
        ) from problem


@dataclass(frozen=True)
class Metrics:
    """Counters of a stream since it was opened, and its state as it stands.

    events: rows taken in, bad ones included. bad: rows without a usable timestamp or gap.
    num_late_records_dropped: Flink's counter: late elements, unless they are handed out; ``late`` counts those.
    unassigned: elements in time that no window covers. fired: result rows. open_windows: (key, window) pairs
    with contents; of several windows, what a finer one still holds counts there alone. state_rows, state_bytes: rows
    held and bytes allocated. watermark: ms, int64 min for none yet. unfired: (key, window) pairs whose contents went
    without ever firing. timers: those that triggers and windows have registered; where the watermark tells what fires,
    there are none. processing_time: the clock, ms.
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
    unfired: int = 0
    timers: int = 0
    processing_time: int = 0

    @classmethod
    def of(cls, operator: Operator, sizes: tuple[int, int, int, int], bad: int, late: int, clock: int) -> Metrics:
        """Returns those of an operator. sizes: open windows, rows and bytes of state, timers."""
        counters = operator.counters
        open_windows, state_rows, state_bytes, timers = sizes
        return cls(
            events=counters.events + bad,
            bad=bad,
            late=late,
            num_late_records_dropped=counters.num_late_records_dropped,
            unassigned=counters.unassigned,
            fired=counters.fired,
            open_windows=open_windows,
            state_rows=state_rows,
            state_bytes=state_bytes,
            watermark=operator.watermark,
            unfired=counters.unfired,
            timers=timers,
            processing_time=clock,
        )

    def _repr_html_(self) -> str:
        return pairs_html("metrics", asdict(self))

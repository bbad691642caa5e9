"""One question, said to fastwin, to polars and in SQL: keys, aggregates, and a window that tumbles, slides or has gaps.

Peers are asked in the fastest form that was found. Sliding windows are made of slices there too, by hand: what falls
into a slide is aggregated first, and only that is multiplied by the windows that it is in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import fastwin as fw
from bench.sessions import at_once, polars_sessions

__all__ = ["Dialect", "Question", "Window", "fingerprint"]

_FUNCTIONS = {"count": fw.Count, "sum": fw.Sum, "min": fw.Min, "max": fw.Max, "mean": fw.Mean}
TEXT_PREFIX = 7
"""Text in the tables of a matrix is ``device-17`` or ``colour-3``: seven characters and a number."""


@dataclass(frozen=True)
class Window:
    """A window, ms. slide_ms: 0 for windows that tumble. gap: ``size_ms`` is the gap of sessions."""

    size_ms: int
    slide_ms: int = 0
    gap: bool = False

    def assigner(self) -> fw.WindowAssigner:
        if self.gap:
            return fw.EventTimeSessionWindows.with_gap(self.size_ms)
        if self.slide_ms:
            return fw.SlidingEventTimeWindows.of(self.size_ms, self.slide_ms)
        return fw.TumblingEventTimeWindows.of(self.size_ms)


@dataclass(frozen=True)
class Dialect:
    """How a database says a whole-number division, a sum of int64, and a table of the numbers below n."""

    divide: str = "({} / {})"
    whole_sum: str = "sum({})"
    numbers: str = "generate_series(0, {} - 1) AS numbers(o)"
    mean: str = "avg({})"


@dataclass(frozen=True)
class Question:
    """What is asked. aggregates: (name, function, column), the column None for ``count``."""

    keys: tuple[str, ...]
    aggregates: tuple[tuple[str, str, str | None], ...]
    window: Window
    floats: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """The columns of a result that are compared."""
        return [*self.keys, "window_start", *(name for name, _, _ in self.aggregates)]

    def spec(self) -> fw.WindowSpec:
        found = {
            name: _FUNCTIONS[function](*([] if column is None else [column]))
            for name, function, column in self.aggregates
        }
        return fw.key_by(*self.keys).event_time("ts").window(self.window.assigner()).aggregate(**found)

    def sql(self, dialect: Dialect) -> str:
        """Returns a statement over ``events``, whose time is ``t`` in ms."""
        if self.window.gap:
            return self._sessions_sql(dialect)
        size, slide = self.window.size_ms, self.window.slide_ms or self.window.size_ms
        keys, names = ", ".join(self.keys), ", ".join(name for name, _, _ in self.aggregates)
        slices = (
            f"SELECT {keys}, {dialect.divide.format('t', slide)} AS p, {self._sql_aggregates(dialect)} "
            f"FROM events GROUP BY {keys}, {dialect.divide.format('t', slide)}"
        )
        if not self.window.slide_ms:
            return f"SELECT {keys}, p * {size} AS window_start, {names} FROM ({slices}) AS found"
        merged = ", ".join(f"{self._sql_merge(dialect, *one)} AS {one[0]}_" for one in self.aggregates)
        again = ", ".join(f"{name}_ AS {name}" for name, _, _ in self.aggregates)
        return (
            f"SELECT {keys}, w * {slide} AS window_start, {again} FROM (SELECT {keys}, p - o AS w, {merged} "
            f"FROM ({slices}) AS found CROSS JOIN {dialect.numbers.format(size // slide)} "
            f"GROUP BY {keys}, p - o) AS merged"
        )

    def _sql_aggregates(self, dialect: Dialect) -> str:
        found = []
        for name, function, column in self.aggregates:
            if function == "sum" and column not in self.floats:
                text = dialect.whole_sum.format(column)
            elif function == "mean":
                text = dialect.mean.format(column)
            else:
                text = f"{function}({'*' if column is None else column})"
            found.append(f"{text} AS {name}")
        return ", ".join(found)

    def _sql_merge(self, dialect: Dialect, name: str, function: str, column: str | None) -> str:
        if _merge(function) == "sum" and column not in self.floats:
            return dialect.whole_sum.format(name)
        return f"{_merge(function)}({name})"

    def _sessions_sql(self, dialect: Dialect) -> str:
        keys, gap = ", ".join(self.keys), self.window.size_ms
        over = f"OVER (PARTITION BY {keys} ORDER BY t)"
        inputs = ", ".join(sorted({column for _, _, column in self.aggregates if column is not None}))
        names = ", ".join(name for name, _, _ in self.aggregates)
        return (
            f"SELECT {keys}, first_t AS window_start, {names} FROM ("
            f"SELECT {keys}, session, min(t) AS first_t, {self._sql_aggregates(dialect)} FROM ("
            f"SELECT {keys}, t, {inputs}, sum(fresh) {over} AS session FROM ("
            f"SELECT {keys}, t, {inputs}, CASE WHEN t - lag(t) {over} > {gap} THEN 1 ELSE 0 END AS fresh FROM events"
            f") AS opened) AS numbered GROUP BY {keys}, session) AS found"
        )

    def by_polars(self, table: pa.Table) -> Callable[[Any, Any], Any]:
        """Returns what asks polars for a table: given its module and the table as a frame, it returns a frame."""
        if not self.window.gap:
            return self._polars_windows
        form = at_once(table, self.keys)

        def sessions(polars: Any, frame: Any) -> Any:
            aggregates = self._polars_aggregates(polars)
            found = polars_sessions(polars, frame, self.keys, self.window.size_ms, aggregates, form)
            return found.select(self.columns).collect()

        return sessions

    def _polars_windows(self, polars: Any, frame: Any) -> Any:
        size, slide = self.window.size_ms, self.window.slide_ms or self.window.size_ms
        part = (polars.col("ts").cast(polars.Int64) // slide).alias("p")
        found = frame.lazy().group_by(*self.keys, part).agg(self._polars_aggregates(polars))
        if self.window.slide_ms:
            offsets = polars.LazyFrame({"o": polars.Series(range(size // slide), dtype=polars.Int64)})
            merged = [getattr(polars.col(name), _merge(function))() for name, function, _ in self.aggregates]
            window = (polars.col("p") - polars.col("o")).alias("w")
            found = found.join(offsets, how="cross").group_by(*self.keys, window).agg(merged).rename({"w": "p"})
        return found.select(
            *self.keys, (polars.col("p") * slide).alias("window_start"), *(name for name, _, _ in self.aggregates)
        ).collect()

    def _polars_aggregates(self, polars: Any) -> list:
        return [
            (polars.len().cast(polars.Int64) if column is None else getattr(polars.col(column), function)()).alias(name)
            for name, function, column in self.aggregates
        ]


def _merge(function: str) -> str:
    """The function that puts together what another one made of parts."""
    return "sum" if function == "count" else function


def fingerprint(result: pa.Table, columns: list[str]) -> tuple[int, ...]:
    """Returns the number of rows and a sum over hashes of them: equal for equal rows in any order.

    A null counts as 0: the sum of no values is null in SQL, and 0 in polars.
    """
    with np.errstate(over="ignore"):
        mixed = np.zeros(result.num_rows, dtype=np.uint64)
        found = []
        for place, name in enumerate(columns):
            bits = _bits(result[name])
            found.append(int(bits.sum(dtype=np.uint64)))
            mixed = (mixed ^ bits) * np.uint64(0x9E3779B97F4A7C15 + 2 * place)
            mixed ^= mixed >> np.uint64(29)
        return result.num_rows, *found, int(mixed.sum(dtype=np.uint64))


def _bits(column: pa.ChunkedArray) -> np.ndarray:
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_string_view(kind) or pa.types.is_large_binary(kind):
        column, kind = column.cast(pa.large_string()), pa.large_string()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        column = pc.utf8_slice_codeunits(column, TEXT_PREFIX)
    wanted = pa.float64() if pa.types.is_floating(kind) else pa.int64()
    filled = pc.fill_null(column.cast(wanted), 0).to_numpy()
    # 0.0 and -0.0 are one value, and floats that only differ by an order of adding do not occur here
    return (filled + 0.0 if wanted == pa.float64() else filled).view(np.uint64)

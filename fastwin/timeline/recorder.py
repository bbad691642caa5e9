"""Recorder: takes down what a stream does, and makes a Timeline of it when it is asked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.buffers import in_one
from fastwin.columns.checking import event_times
from fastwin.columns.decoding import take_column, take_rows, taken
from fastwin.columns.pythonvalues import told_rows, told_values
from fastwin.columns.schemas import check_time_type
from fastwin.columns.units import Unit, as_instants
from fastwin.errors import SpecError
from fastwin.spec.resultcolumns import (
    BOUNDS,
    CHANGE,
    DELETE,
    PANE_COLUMNS,
    PANE_TIMING,
    WINDOW_COLUMN,
    WINDOW_END,
    WINDOW_TIME,
)
from fastwin.timeline.recording import Arrived, Fired, Kind, Moved, Timing
from fastwin.timeline.timeline import Timeline
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP

__all__ = ["MOST_ELEMENTS", "MOST_FIRINGS", "MOST_KEYS", "Recorder", "Source"]

MOST_ELEMENTS, MOST_FIRINGS, MOST_KEYS = 400, 200, 6
"""What a picture can show so that one can tell things apart."""

_ABOUT = {*BOUNDS, WINDOW_COLUMN, WINDOW_TIME, CHANGE}
_TIMINGS: dict[str, Timing] = {"EARLY": "early", "ON_TIME": "on time", "LATE": "late"}
_LONGEST_TEXT = 28
_TOGETHER = 10_000  # rows that become Python objects at once


@dataclass(frozen=True)
class Source:
    """Which columns of an input are its keys and its time. unit: what an int64 time counts; None: ms."""

    keys: tuple[str, ...]
    time_column: str | None
    unit: Unit | None = None

    def elements(self, rows: pa.Table) -> list[tuple[tuple[Any, ...], int | None]]:
        """Returns key and time, ms, of each row; None where it has no usable one.

        Raises SpecError if there is no such column, or one whose type is no time.
        """
        if self.time_column is None:
            raise SpecError("timeline: the spec has no event_time(column), so rows have no place on the axis")
        for name in (*self.keys, self.time_column):
            if name not in rows.column_names:
                raise SpecError(
                    f"timeline: rows: there is no column {name!r}; they have {', '.join(rows.column_names)}"
                )
        column = taken(in_one(rows[self.time_column]))
        check_time_type(self.time_column, column.type, self.unit)
        times, reasons = event_times(as_instants(column, self.unit))
        told = [None if reasons is not None and reasons[i] else int(time) for i, time in enumerate(times)]
        columns = (map(_as_key, told_values(rows[name])) for name in self.keys)
        keys = zip(*columns, strict=True) if self.keys else [()] * len(told)
        return list(zip(keys, told, strict=True))

    def places_of(self, rows: pa.RecordBatch, key: tuple[Any, ...]) -> NDArray[np.int64]:
        """Returns the places of the rows that have the values of a key, as ``told_values`` tells them."""
        found = np.arange(rows.num_rows if len(key) == len(self.keys) else 0)
        if not {*self.keys} <= {*rows.schema.names}:
            return found  # whoever reads them says what is missing
        for name, wanted in zip(self.keys, key, strict=False):
            told, wanted = told_values(take_column(rows.column(name), pa.array(found))), _as_key(wanted)
            found = found[[value is wanted or value == wanted for value in map(_as_key, told)]]
        return found


class _Rows(NamedTuple):
    """Elements. at: their time, ms, if they have none of their own."""

    rows: pa.Table
    kind: Kind
    at: int | None


class _Results(NamedTuple):
    """Results. watermark: the one that stood then. timers: times of the timers that fired; None: by an element."""

    main: pa.Table
    watermark: int
    timers: Sequence[int | None]


class Recorder:
    """Takes down elements, moves of the watermark and results, in their order.

    source: what the elements are read with. ordered: whether that order means something. axis: what times are.
    """

    def __init__(self, source: Source, *, ordered: bool = True, axis: str = "event time") -> None:
        self._source, self._ordered, self._axis = source, ordered, axis
        self._taken: list[_Rows | Moved | _Results] = []
        self._watermark = MIN_TIMESTAMP

    def arrived(self, rows: pa.Table, kind: Kind = "in time", at: int | None = None) -> None:
        """Takes down elements. at: their time, ms, where the source has no column of times."""
        names = [name for name in (*self._source.keys, self._source.time_column) if name in rows.column_names]
        told = pa.table({name: taken(in_one(rows[name])) for name in names}) if names else rows
        self._taken.append(_Rows(told, kind, at))

    def moved(self, watermark_ms: int) -> None:
        """Takes down a watermark, unless it is no news."""
        if watermark_ms > self._watermark:
            self._watermark = watermark_ms
            self._taken.append(Moved(watermark_ms))

    def fired(self, main: pa.Table, timers: Sequence[int | None]) -> None:
        """Takes down results. timers: for each, the time of the timer that fired it, ms; None: an element did."""
        if main.num_rows and set(BOUNDS) <= set(main.column_names):
            self._taken.append(_Results(main, self._watermark, timers))

    def timeline(self, key: Any = None) -> Timeline:
        """Returns what was taken down, of one key (a value, or a tuple of several), or of all.

        Raises SpecError where that is more than a picture can show.
        """
        wanted = None if key is None else key if isinstance(key, tuple) else (key,)
        if wanted is None:
            _check("firings", sum(len(one.main) for one in self._taken if isinstance(one, _Results)), MOST_FIRINGS)
        mine = list(self._entries(wanted))
        behind = [*mine[1:], None]
        entries = [
            one for one, other in zip(mine, behind, strict=False) if key is None or not _is_overtaken(one, other)
        ]
        keyed = [one for one in entries if not isinstance(one, Moved)]
        if wanted is not None and not keyed:
            raise SpecError(f"timeline: key: nothing has come of {key!r}; there are {_first(self._entries())}")
        _check("keys", len({repr(one.key) for one in keyed}), MOST_KEYS)
        _check("elements", sum(isinstance(one, Arrived) for one in keyed), MOST_ELEMENTS)
        _check("firings", sum(isinstance(one, Fired) for one in keyed), MOST_FIRINGS)
        return Timeline(tuple(entries), self._ordered, self._source.keys, self._axis, self._zone())

    def _entries(self, key: tuple[Any, ...] | None = None) -> Iterator[Arrived | Moved | Fired]:
        """Yields what was taken down, of one key or of all."""
        for one in self._taken:
            if isinstance(one, Moved):
                yield one
                continue
            begin = 0
            for rows in (one.rows if isinstance(one, _Rows) else one.main).to_batches(_TOGETHER):
                places = np.arange(rows.num_rows) if key is None else self._source.places_of(rows, key)
                part = pa.Table.from_batches([take_rows(rows, places)])
                if isinstance(one, _Rows):
                    yield from self._elements(one._replace(rows=part))
                else:
                    timers = [one.timers[begin + place] for place in places.tolist()]
                    yield from self._results(_Results(part, one.watermark, timers))
                begin += rows.num_rows

    def _elements(self, taken: _Rows) -> Iterator[Arrived]:
        if taken.at is not None:
            names = self._source.keys
            keys = [tuple(_as_key(row[name]) for name in names) for row in told_rows(taken.rows.select(names))]
            yield from (Arrived(key, taken.at, taken.kind) for key in keys)
            return
        for key, time in self._source.elements(taken.rows):
            if time is not None:
                yield Arrived(key, time, taken.kind)

    def _results(self, taken: _Results) -> Iterator[Fired]:
        bounds = [taken.main[name].cast(pa.int64()).to_pylist() for name in BOUNDS]
        for row, start, end, timer in zip(told_rows(taken.main), *bounds, taken.timers, strict=True):
            key = tuple(_as_key(row.pop(name)) for name in self._source.keys)
            timing = self._timing(row, end, timer, taken.watermark)
            yield Fired(key, start, end, _text(row), timing, str(row.get(WINDOW_COLUMN, "")))

    def _timing(self, row: dict[str, Any], end: int | None, timer: int | None, watermark: int) -> Timing:
        if row.get(CHANGE) == DELETE:
            return "deleted"
        if _has_pane_info(row):
            return _TIMINGS[row[PANE_TIMING]]
        if end is None or not self._ordered:
            return "on time"
        if timer is not None:
            return "early" if timer < end - 1 else "on time"
        return "early" if watermark < end - 1 else "late"

    def _zone(self) -> str:
        """Returns the time zone of the results; that of UTC where they have none."""
        kinds = (one.main.schema.field(WINDOW_END).type for one in self._taken if isinstance(one, _Results))
        return next((kind.tz for kind in kinds if getattr(kind, "tz", None)), "UTC")


def _as_key(value: Any) -> Any:
    """Returns a value of a key in the form that all its equals have: all NaN are one object, and -0.0 is 0.0."""
    if isinstance(value, float | np.floating):
        return math.nan if math.isnan(value) else value + 0.0
    return value


def _is_overtaken(one: Arrived | Moved | Fired, behind: Arrived | Moved | Fired | None) -> bool:
    """Whether one is a watermark and what comes behind it is another one: of other keys there may be thousands."""
    return isinstance(one, Moved) and isinstance(behind, Moved) and behind.watermark_ms < MAX_TIMESTAMP


def _check(what: str, count: int, most: int) -> None:
    if count > most:
        raise SpecError(
            f"timeline: a picture shows up to {most} {what}, got {count:,}; choose a key with key=, or fewer rows"
        )


def _first(entries: Iterable[Arrived | Moved | Fired], count: int = 5) -> str:
    """Returns the first keys in words."""
    keys = {repr(one.key): one.key for one in entries if not isinstance(one, Moved)}.values()
    told = [repr(key[0]) if len(key) == 1 else repr(key) for key in keys]
    return (", ".join(told[:count]) or "none") + (f" and {len(told) - count:,} others" if len(told) > count else "")


def _has_pane_info(row: dict[str, Any]) -> bool:
    """Whether a result has the columns of pane info: one of these names alone may be an aggregate's."""
    return all(name in row for name in PANE_COLUMNS)


def _text(row: dict[str, Any]) -> str:
    """Returns the values of a result, in short."""
    if row.get(CHANGE) == DELETE:
        return "deleted"
    about = _ABOUT.union(PANE_COLUMNS) if _has_pane_info(row) else _ABOUT
    values = {name: value for name, value in row.items() if name not in about}
    text = ", ".join(_short(value) if len(values) == 1 else f"{name} {_short(value)}" for name, value in values.items())
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)

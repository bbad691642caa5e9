"""Endings whose results are rows of the input: the first or last of each window, or its best."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from fastwin.columns.decoding import decoded_type
from fastwin.columns.row import Row, exact_items
from fastwin.columns.windoworder import order_values
from fastwin.errors import SpecError
from fastwin.functions.process import KeylessFunction, ProcessWindowFunction
from fastwin.spec.ending import Ending
from fastwin.times import format_ms
from fastwin.triggers import EventTimeTrigger
from fastwin.windows.apart import RowsApart
from fastwin.windows.named_windows import ALIGNED

if TYPE_CHECKING:
    from fastwin.spec.builder import SpecBuilder

__all__ = ["RANK", "DeduplicateEnding", "RowsEnding", "TopEnding", "is_aligned"]

RANK = "rank"
"""The column that ``top`` adds."""


def is_aligned(spec: SpecBuilder) -> bool:
    """Whether windows follow from the watermark alone: aligned ones of event time, with the default trigger."""
    plain = spec.firing in (None, EventTimeTrigger()) and spec.eviction is None and not spec.pane_info
    return plain and type(spec.assigner) in ALIGNED


class RowsEnding(Ending):
    """Rows of a window, as they came in."""

    sees_elements = True
    function = None
    output = None
    ranked = False
    """Whether rows bear a rank."""
    fires: str | None = None
    """When rows are handed out, in words; None: when the trigger fires."""

    @property
    def python(self) -> str | None:
        return None

    @property
    def names(self) -> tuple[str, ...]:
        return (RANK,) if self.ranked else ()

    def filled(self, rows: pa.Schema | None, keys: tuple[str, ...]) -> pa.Schema | None:
        assert rows is not None
        kept = [pa.field(field.name, decoded_type(field.type)) for field in rows if field.name not in keys]
        return pa.schema([*([pa.field(RANK, pa.int64())] if self.ranked else []), *kept])

    @abstractmethod
    def operator(self, spec: SpecBuilder) -> tuple[str, str]:
        """Returns the name of the operator that runs a spec, and why it does."""


@dataclass(frozen=True)
class DeduplicateEnding(RowsEnding):
    """One row of each (key, window). within_ms: rows of a key this close are one, instead of windows; None: windows.

    keys, time_column: the spec's.
    """

    keep: Literal["first", "last"]
    keys: tuple[str, ...]
    time_column: str | None
    within_ms: int | None = None
    method = "deduplicate"

    def __post_init__(self) -> None:
        if self.keep not in ("first", "last"):
            raise SpecError(f"deduplicate: keep must be 'first' or 'last', got {self.keep!r}")
        if self.within_ms is not None and self.keep != "first":
            raise SpecError("deduplicate: within= goes with keep='first' only: the last row has no end to wait for")

    @property
    def fires(self) -> str | None:  # type: ignore[override]
        return "each row at once, if it is the first" if self.keep == "first" else None

    @property
    def called(self) -> ProcessWindowFunction | None:
        return None if self.keep == "first" else _Last(self.keys, self.time_column)

    def arguments(self, *, state_only: bool) -> str:
        within = "" if self.within_ms is None else f", within={format_ms(self.within_ms)!r}"
        return f"keep={self.keep!r}{within}"

    def check(self, spec: SpecBuilder) -> None:
        if self.keep == "last":
            if spec.time_column is None:
                raise SpecError("deduplicate: keep='last' needs .event_time(column), which says what is last")
            return
        if self.within_ms is not None:
            if not isinstance(spec.assigner, RowsApart):
                raise SpecError(f"deduplicate: within= takes the place of windows, but the spec has {spec.assigner}")
            plain = spec.firing is None and spec.eviction is None and not spec.pane_info
            if not plain:
                raise SpecError("deduplicate: within= goes with no trigger, evictor or pane info")
        elif not is_aligned(spec):
            raise SpecError(
                "deduplicate: keep='first' hands rows out at once: it goes with tumbling, sliding, cumulative and "
                "calendar windows of event time, without trigger, evictor and pane info, or with within= instead of "
                "windows"
            )

    def operator(self, spec: SpecBuilder) -> tuple[str, str]:
        if self.keep == "first":
            return "firsts", "it needs to know which (key, window) had a row, and no rows"
        return _kept(spec)


@dataclass(frozen=True)
class TopEnding(RowsEnding):
    """The first n rows of each (key, window) in the order of a column. keys: the spec's."""

    keys: tuple[str, ...]
    n: int
    by: str
    ascending: bool = False
    method = "top"
    ranked = True

    def __post_init__(self) -> None:
        if isinstance(self.n, bool) or not isinstance(self.n, int) or self.n < 1:
            raise SpecError(f"top: n must be an int of at least 1, got {self.n!r}")
        if not isinstance(self.by, str) or not self.by:
            raise SpecError(f"top: by must be the name of a column, got {self.by!r}")
        if not isinstance(self.ascending, bool):
            raise SpecError(f"top: ascending must be True or False, got {self.ascending!r}")

    @property
    def called(self) -> ProcessWindowFunction | None:
        return _Top(self.keys, self.n, self.by, self.ascending)

    def arguments(self, *, state_only: bool) -> str:
        return f"{self.n}, by={self.by!r}{', ascending=True' if self.ascending else ''}"

    def operator(self, spec: SpecBuilder) -> tuple[str, str]:
        return _kept(spec)


def _kept(spec: SpecBuilder) -> tuple[str, str]:
    if is_aligned(spec):
        return "rows", "windows are aligned to the clock, the trigger is the default one, and rows are kept as columns"
    return "general", "windows are not aligned to the clock, or a trigger, an evictor or pane info was asked for"


@dataclass(frozen=True)
class _Last(KeylessFunction):
    """The last row in time, of several the last to arrive: what the general operator calls."""

    keys: tuple[str, ...]
    time_column: str | None

    def process(self, key: Any, context: Any, elements: Any) -> Iterator[dict[str, Any]]:
        assert self.time_column is not None
        if not elements:  # an evictor has taken them all
            return
        last = 0
        if len(elements) > 1:
            times = order_values(elements, self.time_column)[::-1]
            newest = max((time for time in times if time is not None), default=None)
            last = len(times) - 1 - times.index(newest)
        yield _without(self.keys, elements[last])


@dataclass(frozen=True)
class _Top(KeylessFunction):
    """The first n rows in order: what the general operator calls."""

    keys: tuple[str, ...]
    n: int
    by: str
    ascending: bool

    def process(self, key: Any, context: Any, elements: Any) -> Iterator[dict[str, Any]]:
        values = order_values(elements, self.by) if len(elements) > 1 else [None] * len(elements)
        order = [i for i, value in enumerate(values) if value is not None]
        order.sort(key=lambda i: _above(values[i]), reverse=not self.ascending)  # stable in both directions
        order += [i for i, value in enumerate(values) if value is None]
        for rank, at in enumerate(order[: self.n], 1):
            yield {RANK: rank, **_without(self.keys, elements[at])}


def _above(value: Any) -> tuple[bool, Any]:
    """Returns what values are compared by: NaN is above all other numbers."""
    return (True, 0) if value != value else (False, value)


def _without(keys: tuple[str, ...], row: Row) -> dict[str, Any]:
    return {name: value for name, value in exact_items(row).items() if name not in keys}

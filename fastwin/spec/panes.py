"""Panes: the tumbling windows that larger windows can be put together from, and what they must keep for that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from fastwin.aggregates.aggregate import Aggregate
from fastwin.aggregates.distinct import HyperLogLog
from fastwin.aggregates.extremes import Max, Min
from fastwin.aggregates.numbers import Count, Mean, Sum
from fastwin.errors import SpecError
from fastwin.spec.ending import AggregateEnding
from fastwin.times import format_ms
from fastwin.windows.cumulative import CumulativeEventTimeWindows
from fastwin.windows.sliding import SlidingEventTimeWindows
from fastwin.windows.tumbling import TumblingEventTimeWindows

__all__ = ["Merge", "PaneField", "PaneOutput", "outputs_of", "pane_spec", "window_of"]

Merge = Literal["sum", "min", "max", "union"]
"""How the values of two panes become one; ``union`` is that of sketches."""


@dataclass(frozen=True)
class PaneField:
    """A column of a pane: its name, the aggregate that fills it, and how panes are merged."""

    name: str
    aggregate: Aggregate
    merge: Merge


@dataclass(frozen=True)
class PaneOutput:
    """A column of the windows: its name, the fields it is made of, and how.

    how: ``"field"`` as merged; ``"count"`` likewise, 0 where there is no pane; ``"mean"`` the first by the second;
    ``"estimate"`` what a sketch counts, 0 where there is no pane.
    """

    name: str
    how: Literal["field", "count", "mean", "estimate"]
    fields: tuple[PaneField, ...]


def _field(merge: Merge, how: Literal["field", "count"] = "field") -> Callable[[str, Any], PaneOutput]:
    return lambda name, aggregate: PaneOutput(name, how, (PaneField(name, aggregate, merge),))


def _mean(name: str, aggregate: Mean) -> PaneOutput:
    assert aggregate.column is not None
    parts = (
        PaneField(f"{name}__sum", Sum(aggregate.column, where=aggregate.where), "sum"),
        PaneField(f"{name}__count", Count(aggregate.column, where=aggregate.where), "sum"),
    )
    return PaneOutput(name, "mean", parts)


def _distinct(name: str, aggregate: HyperLogLog) -> PaneOutput:
    sketch = PaneField(name, replace(aggregate, output="sketch"), "union")
    return PaneOutput(name, "estimate" if aggregate.output == "estimate" else "field", (sketch,))


_OUTPUTS: dict[type, Callable[[str, Any], PaneOutput]] = {
    Count: _field("sum", "count"),
    Sum: _field("sum"),
    Min: _field("min"),
    Max: _field("max"),
    Mean: _mean,
    HyperLogLog: _distinct,
}


def outputs_of(spec: Any) -> tuple[PaneOutput, ...]:
    """Returns what a pane keeps for each aggregate of a spec.

    Raises SpecError for what cannot be put together from panes.
    """
    ending = spec.ending
    odd = spec.firing or spec.eviction or ending.function or ending.called
    if odd is not None or not isinstance(ending, AggregateEnding):
        odd = ending.method if odd is None else type(odd).__name__
        raise SpecError(f"panes: {odd} goes with no panes; they take built-in aggregates and the default trigger")
    outputs = []
    for name, aggregate in ending.aggregates:
        make = _OUTPUTS.get(type(aggregate))
        if make is None:
            known = ", ".join(kind.__name__ for kind in _OUTPUTS)
            raise SpecError(f"panes: {name}={aggregate} cannot be put together from panes; {known} can")
        outputs.append(make(name, aggregate))
    names = [field.name for output in outputs for field in output.fields]
    for name in names:
        if names.count(name) > 1 or name in spec.keys:
            raise SpecError(f"panes: the column {name!r} is there twice; rename an aggregate")
    return tuple(outputs)


def window_of(spec: Any) -> tuple[int, int, int]:
    """Returns size, slide and offset, ms, of a spec's windows.

    Raises SpecError for windows that have none of the three.
    """
    match spec.assigner:
        case TumblingEventTimeWindows(size_ms=size, offset_ms=offset):
            return size, size, offset
        case SlidingEventTimeWindows(size_ms=size, slide_ms=slide, offset_ms=offset):
            return size, slide, offset
        case CumulativeEventTimeWindows(max_size_ms=size, step_ms=slide, offset_ms=offset):
            return size, slide, offset
    raise SpecError(f"panes: only windows of event time that tumble, slide or cumulate have panes, not {spec.assigner}")


def pane_spec(spec: Any, width_ms: int | None) -> Any:
    """Returns the spec of the panes; see ``SpecBuilder.panes``."""
    spec.check_complete()
    if spec.fill_ms is not None:
        raise SpecError("panes: fill='empty' goes with no panes: of a store, one asks for windows, empty or not")
    size, slide, offset = window_of(spec)
    width = slide if width_ms is None else width_ms
    if width < 1:
        raise SpecError(f"panes: width must be at least 1 ms, got {width} ms")
    for name, length in (("size", size), ("slide", slide)):
        if length % width:
            raise SpecError(f"panes: {format_ms(width)} does not divide the {name} of the windows, {format_ms(length)}")
    aggregates = tuple((field.name, field.aggregate) for output in outputs_of(spec) for field in output.fields)
    assigner = TumblingEventTimeWindows(width, offset % width)
    return replace(
        spec, assigner=assigner, ending=AggregateEnding(aggregates), pane_info=False, origin=spec.origin or spec
    )

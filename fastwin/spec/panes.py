"""Panes: the tumbling windows that larger windows can be put together from, and what they must keep for that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from fastwin.aggregates.aggregate import Aggregate
from fastwin.aggregates.bits import BitAnd, BitOr, BitXor, BoolAnd, BoolOr
from fastwin.aggregates.distinct import CountDistinct, HyperLogLog
from fastwin.aggregates.extremes import Max, Min
from fastwin.aggregates.frequent import Mode, TopK
from fastwin.aggregates.histogram import Histogram
from fastwin.aggregates.lists import Collect, CollectSet, Largest, Smallest, StringAgg
from fastwin.aggregates.numbers import Count, Mean, Sum
from fastwin.aggregates.panestate import PaneState
from fastwin.aggregates.picks import ArgMax, ArgMin, First, FirstArrived, Last, LastArrived
from fastwin.aggregates.quantiles import Median, Quantile
from fastwin.aggregates.statistics import Corr, Covar, Kurtosis, Skewness, StdDev, Variance
from fastwin.errors import SpecError
from fastwin.spec.ending import AggregateEnding
from fastwin.times import format_ms
from fastwin.windows.cumulative import CumulativeEventTimeWindows
from fastwin.windows.sliding import SlidingEventTimeWindows
from fastwin.windows.tumbling import TumblingEventTimeWindows

if TYPE_CHECKING:
    from fastwin.spec.builder import SpecBuilder

__all__ = ["STATES", "Merge", "PaneField", "PaneOutput", "fields_of", "outputs_of", "pane_spec", "window_of"]

_Spec = TypeVar("_Spec", bound="SpecBuilder")

Merge = Literal["sum", "min", "max", "union", "state"]
"""How the values of two panes become one; ``union`` is that of sketches, ``state`` what the aggregate itself does."""


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
    ``"estimate"`` what a sketch counts, 0 where there is no pane; ``"state"`` the result of ``aggregate``.
    """

    name: str
    how: Literal["field", "count", "mean", "estimate", "state"]
    fields: tuple[PaneField, ...]
    aggregate: Aggregate | None = None


def _field(merge: Merge, how: Literal["field", "count"] = "field") -> Callable[[str, Any], PaneOutput]:
    return lambda name, aggregate: PaneOutput(name, how, (PaneField(name, aggregate, merge),))


def _mean(name: str, aggregate: Mean) -> PaneOutput:
    if aggregate.on_overflow == "null":  # its sum, too, may overflow without an error
        return _state(name, aggregate)
    assert aggregate.column is not None
    parts = (
        PaneField(f"{name}__sum", Sum(aggregate.column, where=aggregate.where), "sum"),
        PaneField(f"{name}__count", Count(aggregate.column, where=aggregate.where), "sum"),
    )
    return PaneOutput(name, "mean", parts)


def _distinct(name: str, aggregate: HyperLogLog) -> PaneOutput:
    sketch = PaneField(name, replace(aggregate, output="sketch"), "union")
    return PaneOutput(name, "estimate" if aggregate.output == "estimate" else "field", (sketch,))


def _state(name: str, aggregate: Aggregate) -> PaneOutput:
    return PaneOutput(name, "state", (PaneField(name, PaneState(inner=aggregate), "state"),), aggregate)


def _sum(name: str, aggregate: Sum) -> PaneOutput:
    # A sum that overflows in one pane may fit over several.
    whole = aggregate.distinct or aggregate.on_overflow == "null"
    return _state(name, aggregate) if whole else _field("sum")(name, aggregate)


_OUTPUTS: dict[type, Callable[[str, Any], PaneOutput]] = {
    Count: _field("sum", "count"),
    Sum: _sum,
    Min: _field("min"),
    Max: _field("max"),
    Mean: _mean,
    BoolAnd: _field("min"),
    BoolOr: _field("max"),
    HyperLogLog: _distinct,
}

_KEPT = (ArgMax, ArgMin, BitAnd, BitOr, BitXor, Collect, CollectSet, Corr, CountDistinct, Covar, First, Histogram,
         Kurtosis, Largest, Last, Mean, Median, Mode, Quantile, Skewness, Smallest, StdDev, StringAgg, Sum, TopK,
         Variance)  # fmt: skip
STATES: dict[str, type[Aggregate]] = {kind.__name__: kind for kind in _KEPT}
"""Aggregates of which a pane keeps the state, by name."""

_SHARING = ({Quantile, Median}, {TopK, Mode})


def outputs_of(spec: SpecBuilder) -> tuple[PaneOutput, ...]:
    """Returns what a pane keeps for each aggregate of a spec.

    Raises SpecError for what cannot be put together from panes.
    """
    ending = spec.ending
    assert ending is not None
    odd: object = spec.firing or spec.eviction
    if isinstance(ending, AggregateEnding):
        odd = odd or ending.function or ending.called
    if odd is not None or not isinstance(ending, AggregateEnding):
        odd = ending.method if odd is None else type(odd).__name__
        raise SpecError(f"panes: {odd} goes with no panes; they take built-in aggregates and the default trigger")
    outputs: list[PaneOutput] = []
    for name, aggregate in ending.aggregates:
        make: Any = _OUTPUTS.get(type(aggregate)) or (_state if type(aggregate) in _KEPT else None)
        if make is None:
            raise SpecError(f"panes: {name}={aggregate} cannot be put together from panes: {_why_not(aggregate)}")
        output = make(name, aggregate)
        shared = next((other for other in outputs if _share(other, output)), None)
        outputs.append(output if shared is None else replace(output, fields=shared.fields))
    names = [field.name for field in fields_of(outputs)]
    for name in names:
        if names.count(name) > 1 or name in spec.keys:
            raise SpecError(f"panes: the column {name!r} is there twice; rename an aggregate")
    return tuple(outputs)


def fields_of(outputs: Sequence[PaneOutput]) -> list[PaneField]:
    """Returns the fields of outputs, each once."""
    found: dict[int, PaneField] = {id(field): field for output in outputs for field in output.fields}
    return list(found.values())


def _share(one: PaneOutput, other: PaneOutput) -> bool:
    """Whether two outputs are results of the same state."""
    a, b = one.aggregate, other.aggregate
    if a is None or b is None or not any({type(a), type(b)} <= kinds for kinds in _SHARING):
        return False
    return (a.shared(), a.columns, a.where) == (b.shared(), b.columns, b.where)


def _why_not(aggregate: object) -> str:
    if isinstance(aggregate, FirstArrived | LastArrived):
        return "panes do not tell which of their elements arrived first; First and Last go by the event time"
    return (
        "readers of a store do not have its code; "
        + ", ".join(sorted({k.__name__ for k in _OUTPUTS} | {*STATES}))
        + " can"
    )


def window_of(spec: SpecBuilder) -> tuple[int, int, int]:
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


def pane_spec(spec: _Spec, width_ms: int | None) -> _Spec:
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
    aggregates = tuple((field.name, field.aggregate) for field in fields_of(outputs_of(spec)))
    assigner = TumblingEventTimeWindows(width, offset % width)
    return replace(
        spec, assigner=assigner, ending=AggregateEnding(aggregates), pane_info=False, origin=spec.origin or spec
    )

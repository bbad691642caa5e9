"""Which operator runs a spec, and why: the fastest one that means the same."""

from __future__ import annotations

import html
from typing import Any

from fastwin.columns.expressions import Computed
from fastwin.operators.aligned.filling import FillingOperator
from fastwin.operators.aligned.operator import AlignedOperator
from fastwin.operators.general.operator import GeneralOperator
from fastwin.operators.session.operator import SessionOperator
from fastwin.operators.several.feeding import feeders
from fastwin.operators.several.operator import SeveralOperator
from fastwin.spec.builder import SpecBuilder
from fastwin.spec.describe import shown
from fastwin.spec.rowendings import DeduplicateEnding, RowsEnding
from fastwin.spec.text import outputs_text
from fastwin.times import format_ms
from fastwin.triggers import EventTimeTrigger
from fastwin.windows.assigner import MergingWindowAssigner
from fastwin.windows.calendar import CalendarEventTimeWindows
from fastwin.windows.cumulative import CumulativeEventTimeWindows
from fastwin.windows.named_windows import NamedWindows
from fastwin.windows.session import EventTimeSessionWindows
from fastwin.windows.sliding import SlidingEventTimeWindows
from fastwin.windows.tumbling import TumblingEventTimeWindows

__all__ = ["Explanation", "choose", "explain", "explained", "trigger_of"]


class Explanation(str):
    """Text that shows itself in a notebook as it is laid out. ``text``: the same as plain text."""

    @property
    def text(self) -> str:
        """The text."""
        return str(self)

    def _repr_html_(self) -> str:
        first, *rest = (html.escape(line) for line in self.splitlines())
        lines = "".join(f"<li>{line.strip()}</li>" for line in rest)
        return f"<div><code>{first}</code><ul>{lines}</ul></div>"


def _special(spec: SpecBuilder) -> str | None:
    """Returns what only the general operator does, if the spec asks for it."""
    if spec.firing is not None and spec.firing != EventTimeTrigger():
        return f"it has a trigger of its own ({shown(spec.firing)})"
    if spec.eviction is not None:
        return "an evictor needs the elements of a window"
    if spec.ending is not None and spec.ending.python is not None:
        return spec.ending.python
    if spec.pane_info:
        return "pane info tells the firings of each window apart"
    if spec.changelog and spec.lateness_ms:
        return "a changelog tells the first result of a window from its corrections"
    return None


def choose(spec: SpecBuilder) -> tuple[str, str]:
    """Returns the name of the operator that runs a complete spec, and why it does."""
    if isinstance(spec.ending, RowsEnding):
        return spec.ending.operator(spec)
    special = _special(spec)
    if special is not None:
        return GeneralOperator.name, special
    kind = type(spec.assigner)
    if isinstance(spec.assigner, NamedWindows):
        filled = "" if spec.fill_ms is None else "; those without elements are to be there, too"
        return SeveralOperator.name, f"windows are aligned and share one state: {_fed(spec.assigner)}{filled}"
    if spec.fill_ms is not None:
        return FillingOperator.name, "windows are aligned to the clock, and those without elements are to be there, too"
    if kind is TumblingEventTimeWindows:
        return (
            AlignedOperator.name,
            "windows are aligned to the clock, the trigger is the default one, aggregates merge",
        )
    if kind is SlidingEventTimeWindows:
        size, slide = spec.assigner.size_ms, spec.assigner.slide_ms  # type: ignore[union-attr]
        per_slide = 2 if size > slide and size % slide else 1
        return AlignedOperator.name, (
            f"windows are aligned to the clock and share slices: {per_slide} for each slide of {format_ms(slide)}, "
            f"and an element updates one of them instead of {max(size // slide, 1)} windows"
        )
    if kind is CumulativeEventTimeWindows:
        step = spec.assigner.step_ms  # type: ignore[union-attr]
        return AlignedOperator.name, (
            f"windows are aligned to the clock and share slices of {format_ms(step)}, of which an element updates one"
        )
    if kind is CalendarEventTimeWindows:
        return AlignedOperator.name, (
            "windows begin and end as the calendar says, and share the slices in between, of which an element updates "
            "one; they are found in a table of bounds"
        )
    if kind is EventTimeSessionWindows:
        return SessionOperator.name, "sessions have a fixed gap, the trigger is the default one, aggregates merge"
    return GeneralOperator.name, f"the windows are {shown(spec.assigner)}"


def _fed(windows: NamedWindows) -> str:
    """Returns where each of several windows has its elements from, in words."""
    names = [name for name, _ in windows.named]
    return ", ".join(
        f"{name} is fed by {'elements' if feeder is None else names[feeder]}"
        for name, feeder in zip(names, feeders(windows.named), strict=True)
    )


def explain(spec: SpecBuilder) -> Explanation:
    """Says which operator runs a spec, and why."""
    spec.check_complete()
    return explained(spec, *choose(spec))


def explained(spec: SpecBuilder, operator: str, why: str) -> Explanation:
    """Says which operator runs a spec, and why, where that is known."""
    lines = [str(spec), f"  operator: {operator}, because {why}", f"  windows: {shown(spec.assigner)}"]
    fires = spec.ending.fires if isinstance(spec.ending, RowsEnding) else None
    lines.append(f"  fires: {fires or shown(trigger_of(spec))}")
    if spec.eviction is not None:
        lines.append(f"  evicts: {shown(spec.eviction)}; windows keep all their elements")
    if operator == GeneralOperator.name:
        lines.append("  state: one row for each (key, window)")
    computed = _computed(spec)
    if computed:
        lines.append(f"  computes: {', '.join(computed)}; each once for a batch")
    lines += [f"  {line}" for line in outputs_text(spec)]
    decides = _order_decides(spec)
    if decides is not None:
        lines.append(
            f"  order: as the rows come in this process; on Spark, those of a micro-batch have none, so {decides}; "
            "allowed_lateness(..., coalesce=True or False) makes them the same"
        )
    return Explanation("\n".join(lines))


def _order_decides(spec: SpecBuilder) -> str | None:
    """Returns what comes out otherwise where the rows of a batch have no order, in words; None: nothing, or it is said.

    Late firings are not meant: what is said of allowed lateness tells of them.
    """
    if spec.coalesce is not None or spec.assigner is None or not spec.assigner.is_event_time():
        return None
    if isinstance(spec.ending, DeduplicateEnding) and spec.ending.keep == "first":
        return "the first one is the earliest in event time"
    if isinstance(spec.assigner, MergingWindowAssigner):
        return "a late one is taken if others of them are in its session and in time"
    return None


def _computed(spec: SpecBuilder) -> list[str]:
    """Returns the expressions of a spec in words, each once."""
    operands = [] if spec.ending is None else spec.ending.operands
    return list(dict.fromkeys(str(one) for one in operands if isinstance(one, Computed)))


def trigger_of(spec: SpecBuilder) -> Any:
    """Returns the trigger of a spec, or the default one of its windows."""
    assert spec.assigner is not None
    return spec.firing if spec.firing is not None else spec.assigner.get_default_trigger()

"""Filling: which specs may have rows for windows without elements, and over how long a gap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastwin.core.panes.marks import MOST_GAP
from fastwin.errors import SpecError
from fastwin.spec.ending import AggregateEnding
from fastwin.times import Duration, format_ms, to_ms
from fastwin.triggers import EventTimeTrigger
from fastwin.windows.assigner import WindowAssigner
from fastwin.windows.calendar import CalendarEventTimeWindows
from fastwin.windows.cumulative import CumulativeEventTimeWindows
from fastwin.windows.named_windows import NamedWindows, each_of
from fastwin.windows.periods import DAY_MS
from fastwin.windows.sliding import SlidingEventTimeWindows
from fastwin.windows.tumbling import TumblingEventTimeWindows

if TYPE_CHECKING:
    from fastwin.spec.builder import SpecBuilder

__all__ = ["MOST_FILLED", "check_fill", "check_names", "fill_ms"]

MOST_FILLED = 10_000
"""How many windows make up the longest gap that is filled, where no other is given."""


def fill_ms(assigner: WindowAssigner, fill: str | None, longest_gap: Duration | None) -> tuple[int, ...] | None:
    """Returns the longest gap to fill, ms, of each window that there is; None: none is.

    Raises SpecError for windows without a grid.
    """
    said = _method(assigner)
    if fill is None:
        if longest_gap is not None:
            raise SpecError(f"{said}: longest_gap= goes with fill='empty' only")
        return None
    if fill != "empty":
        raise SpecError(f"{said}: fill must be None or 'empty', got {fill!r}")
    return tuple(_longest(one, longest_gap, said) for one in each_of(assigner))


def check_names(**options: object) -> None:
    """Raises SpecError for a window of ``windows`` that is called as one of its options is."""
    for option, value in options.items():
        if isinstance(value, WindowAssigner):
            raise SpecError(f"windows: {option}= is an option, so it names no window; give another name to {value}")


def _method(assigner: WindowAssigner | None) -> str:
    """Returns which method of the spec has taken them, for errors."""
    return "windows" if isinstance(assigner, NamedWindows) else "window"


def _longest(assigner: WindowAssigner | None, longest_gap: Duration | None, said: str) -> int:
    step = _step(assigner, said)
    if longest_gap is None:
        return min(MOST_FILLED * step, MOST_GAP)
    ms = to_ms(longest_gap, argument=f"{said}: longest_gap")
    if not step <= ms <= MOST_GAP:
        raise SpecError(
            f"{said}: longest_gap must be at least the {format_ms(step)} from one window to the next and at most "
            f"{MOST_GAP} ms, got {ms} ms"
        )
    return ms


def _step(assigner: Any, said: str) -> int:
    """Returns how long it is from one window's end to the next one's, at most, ms."""
    kind = type(assigner)  # a subclass may have other windows
    if kind is TumblingEventTimeWindows:
        return assigner.size_ms
    if kind is SlidingEventTimeWindows:
        return assigner.slide_ms
    if kind is CumulativeEventTimeWindows:
        return assigner.step_ms
    if kind is CalendarEventTimeWindows:
        return assigner.every if isinstance(assigner.every, int) else assigner.every.most_days * DAY_MS
    raise SpecError(
        f"{said}: fill='empty' goes with tumbling, sliding, cumulative and calendar windows of event time, which "
        f"follow each other on a grid; got {assigner}"
    )


def check_fill(spec: SpecBuilder) -> None:
    """Raises SpecError for what goes with no empty windows: all that needs an element, or other firings."""
    said = _method(spec.assigner)
    ending = spec.ending
    written = ending is not None and isinstance(ending, AggregateEnding) and ending.python is not None
    for asked, what in (
        (spec.firing not in (None, EventTimeTrigger()), f"trigger {spec.firing}"),
        (spec.eviction is not None, f"evictor {spec.eviction}"),
        (spec.pane_info, "with_pane_info()"),
        (spec.changelog and spec.lateness_ms, "with_changelog() beside allowed lateness"),
        (written, "functions written in Python"),
        (ending is not None and not isinstance(ending, AggregateEnding), f"{ending and ending.method}(...)"),
    ):
        if asked:
            raise SpecError(
                f"{said}: fill='empty' goes with built-in aggregates and the default trigger; without elements, there "
                f"is nothing for {what}"
            )
    assert spec.fill_ms is not None
    if spec.lateness_ms > min(spec.fill_ms):
        raise SpecError(
            f"{said}: longest_gap must be at least the allowed lateness, got {format_ms(min(spec.fill_ms))} and "
            f"{format_ms(spec.lateness_ms)}"
        )

"""What is known of windows and triggers before the general operator runs: what they need, and what is too much."""

from __future__ import annotations

from fastwin.errors import SpecError
from fastwin.operators.general.assigners import MAX_WINDOWS, is_built_in, too_many
from fastwin.triggers import builtin
from fastwin.triggers.trigger import Trigger
from fastwin.windows.assigner import WindowAssigner
from fastwin.windows.calendar import CalendarEventTimeWindows
from fastwin.windows.cumulative import CumulativeEventTimeWindows, CumulativeProcessingTimeWindows
from fastwin.windows.global_windows import GlobalWindows
from fastwin.windows.named_windows import NamedWindows
from fastwin.windows.sliding import SlidingEventTimeWindows, SlidingProcessingTimeWindows

__all__ = ["check_assigner", "reads_rows", "waits_for_clock"]


def check_assigner(assigner: WindowAssigner) -> None:
    """Raises SpecError for an assigner whose elements have too many windows, before there are any."""
    if isinstance(assigner, NamedWindows):
        raise SpecError("windows: the general operator runs one kind of windows; give each a spec with .window(...)")
    windows = 0
    match assigner:
        case SlidingEventTimeWindows() | SlidingProcessingTimeWindows():
            windows = -(-assigner.size_ms // assigner.slide_ms)
        case CumulativeEventTimeWindows() | CumulativeProcessingTimeWindows():
            windows = assigner.max_size_ms // assigner.step_ms
        case CalendarEventTimeWindows():
            windows = assigner.most_windows
    if windows > MAX_WINDOWS and is_built_in(assigner):
        raise too_many(assigner, windows)


def reads_rows(assigner: WindowAssigner, trigger: Trigger) -> bool:
    """Tells whether an assigner or a trigger is handed elements: those that are written in Python are."""
    return not is_built_in(assigner) or builtin.reads_rows(trigger)


def waits_for_clock(assigner: WindowAssigner, trigger: Trigger) -> bool:
    """Tells whether windows or triggers may wait for the processing time, and so have to be told it at all times."""
    passes_with_clock = not assigner.is_event_time() and type(assigner) is not GlobalWindows
    return passes_with_clock or builtin.waits_for_clock(trigger)

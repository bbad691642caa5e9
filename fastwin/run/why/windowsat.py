"""Which windows a time is in, where the assigner alone tells, and until when an element of that time is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastwin.spec.builder import SpecBuilder
from fastwin.windows.apart import RowsApart
from fastwin.windows.calendar import CalendarEventTimeWindows
from fastwin.windows.cumulative import CumulativeEventTimeWindows, CumulativeProcessingTimeWindows
from fastwin.windows.global_windows import GlobalWindows
from fastwin.windows.named_windows import NamedWindows, each_of
from fastwin.windows.session import EventTimeSessionWindows, ProcessingTimeSessionWindows
from fastwin.windows.sliding import SlidingEventTimeWindows, SlidingProcessingTimeWindows
from fastwin.windows.timewindow import GlobalWindow, TimeWindow
from fastwin.windows.tumbling import TumblingEventTimeWindows, TumblingProcessingTimeWindows

__all__ = ["Wanted", "are_apart", "late_from", "window_bounds", "windows_at"]

_KNOWN = (
    TumblingEventTimeWindows, SlidingEventTimeWindows, CumulativeEventTimeWindows, CalendarEventTimeWindows,
    TumblingProcessingTimeWindows, SlidingProcessingTimeWindows, CumulativeProcessingTimeWindows, GlobalWindows,
)  # fmt: skip
_SESSIONS = (EventTimeSessionWindows, ProcessingTimeSessionWindows)


@dataclass(frozen=True)
class Wanted:
    """A window that is asked for. name: of several; None: of any. is_session: it is that of one element alone."""

    window: TimeWindow | GlobalWindow
    name: str | None = None
    is_session: bool = False


@dataclass(frozen=True)
class _At:
    """What assigners of processing time ask for the clock."""

    time: int

    def get_current_processing_time(self) -> int:
        return self.time


def windows_at(assigner: Any, time: int, name: str | None = None) -> list[Wanted] | None:
    """Returns the windows that a time, ms, is in; None where nobody can tell: user code decides, or other elements."""
    if isinstance(assigner, NamedWindows):
        found = [windows_at(one, time, name) for name, one in assigner.named]
        return [one for some in found if some is not None for one in some]
    if type(assigner) in _KNOWN:
        return [Wanted(one, name) for one in assigner.assign_windows(None, time, _At(time))]
    if type(assigner) in _SESSIONS:
        return [Wanted(TimeWindow(time, time + assigner.gap_ms), None, True)]
    return None


def window_bounds(window: TimeWindow | GlobalWindow) -> tuple[int | None, int | None]:
    """Returns start and end of a window, ms; None, None for the global one."""
    return (window.start, window.end) if isinstance(window, TimeWindow) else (None, None)


def are_apart(assigner: Any) -> bool:
    """Whether an element of a window is in no other one, nor ever will be."""
    if isinstance(assigner, CalendarEventTimeWindows):
        return assigner.most_windows == 1
    if isinstance(assigner, SlidingEventTimeWindows):
        return assigner.size_ms <= assigner.slide_ms
    return isinstance(assigner, TumblingEventTimeWindows | RowsApart)


def late_from(spec: SpecBuilder, time: int, lateness_ms: int | None = None) -> int | None:
    """Returns the watermark, ms, from which on an element of a time is late, if no session of others takes it.

    lateness_ms: that is allowed to it; None: what the spec allows. Returns None where nobody can tell.
    """
    ends = [end for end in (_last_end(one, time) for one in each_of(spec.assigner)) if end is not None]
    allowed = spec.lateness_ms if lateness_ms is None else lateness_ms
    return max(ends) - 1 + allowed if ends else None


def _last_end(assigner: Any, time: int) -> int | None:
    """Returns the end of the last window that a time is in, ms; None: it is in none, or nobody can tell."""
    match assigner:
        case SlidingEventTimeWindows(size_ms=size, slide_ms=slide, offset_ms=offset):
            end = time - (time - offset) % slide + size
            return end if end > time else None
        case CumulativeEventTimeWindows(max_size_ms=size, offset_ms=offset):
            return time - (time - offset) % size + size
    found = windows_at(assigner, time) or []
    return max((one.window.end for one in found if isinstance(one.window, TimeWindow)), default=None)

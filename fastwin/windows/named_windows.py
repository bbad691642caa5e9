"""Several windows over one stream, each with a name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fastwin.errors import SpecError
from fastwin.windows.assigner import EventTimeWindows, WindowAssigner
from fastwin.windows.calendar import CalendarEventTimeWindows
from fastwin.windows.cumulative import CumulativeEventTimeWindows
from fastwin.windows.sliding import SlidingEventTimeWindows
from fastwin.windows.timewindow import TimeWindow
from fastwin.windows.tumbling import TumblingEventTimeWindows

__all__ = ["ALIGNED", "NamedWindows", "each_of"]

ALIGNED = (TumblingEventTimeWindows, SlidingEventTimeWindows, CumulativeEventTimeWindows, CalendarEventTimeWindows)
"""Windows of event time that follow from the watermark alone, without a look at elements."""


@dataclass(frozen=True)
class NamedWindows(EventTimeWindows, WindowAssigner):
    """What ``spec.windows`` makes: names and assigners. Raises SpecError for windows that cannot share a state."""

    named: tuple[tuple[str, WindowAssigner], ...]

    def __post_init__(self) -> None:
        if not self.named:
            raise SpecError("windows: at least one is needed, such as minute=TumblingEventTimeWindows.of('1 minute')")
        for name, assigner in self.named:
            if type(assigner) not in ALIGNED:
                known = ", ".join(kind.__name__ for kind in ALIGNED)
                if not isinstance(assigner, WindowAssigner):
                    raise SpecError(
                        f"windows: {name} must be windows such as TumblingEventTimeWindows.of('1 minute'), "
                        f"got {assigner!r}"
                    )
                raise SpecError(
                    f"windows: {name} must be one of {known}, which share slices, got {assigner}; "
                    f"it needs a spec of its own, with .window(...)"
                )
            if isinstance(assigner, SlidingEventTimeWindows) and assigner.slide_ms > assigner.size_ms:
                raise SpecError(
                    f"windows: {name} leaves gaps, {assigner}; it needs a spec of its own, with .window(...)"
                )

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> Iterable[TimeWindow]:
        found = [one for _, assigner in self.named for one in assigner.assign_windows(element, timestamp, context)]
        return [window for window in found if isinstance(window, TimeWindow)]

    def __str__(self) -> str:
        return "; ".join(f"{name}: {assigner}" for name, assigner in self.named)


def each_of(assigner: WindowAssigner | None) -> list[WindowAssigner | None]:
    """Returns the windows of a spec, each of several by itself."""
    return [one for _, one in assigner.named] if isinstance(assigner, NamedWindows) else [assigner]

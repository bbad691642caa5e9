"""WindowAssigner: decides which windows an element belongs to; the base of all families of windows."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from fastwin.errors import SpecError
from fastwin.functions.factories import Factories
from fastwin.times import MAX_DURATION_MS, format_ms
from fastwin.triggers import EventTimeTrigger, ProcessingTimeTrigger, Trigger
from fastwin.windows.timewindow import GlobalWindow, TimeWindow, merge_time_windows

__all__ = [
    "EventTimeWindows",
    "MergingWindowAssigner",
    "ProcessingTimeWindows",
    "WindowAssigner",
    "check_ms",
    "check_offset",
    "format_offset",
]


class WindowAssigner(metaclass=Factories):
    """Decides the windows of an element. Subclass it and override ``assign_windows``.

    Source: Flink's WindowAssigner.
    """

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> Iterable[TimeWindow | GlobalWindow]:
        """Returns the windows of an element: ``TimeWindow(start, end)``, any number up to 10,000.

        element: a read-only row. timestamp: ms. context: has ``get_current_processing_time()``.
        """
        raise NotImplementedError(f"{type(self).__name__} needs assign_windows(self, element, timestamp, context)")

    def get_default_trigger(self) -> Trigger:
        """Returns the trigger that a spec without one gets."""
        return EventTimeTrigger() if self.is_event_time() else ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        """Tells whether windows pass with the watermark; else, with the processing time."""
        return True

    def _repr_html_(self) -> str:
        return f"<code>{html.escape(str(self))}</code>"


class MergingWindowAssigner(WindowAssigner):
    """An assigner whose windows can merge, such as sessions. Subclass it.

    Source: Flink's MergingWindowAssigner.
    """

    def merge_windows(
        self, windows: Iterable[TimeWindow], callback: Callable[[list[TimeWindow], TimeWindow], None]
    ) -> None:
        """Calls ``callback(merged, result)`` for each group of windows that becomes one.

        By default windows that overlap or touch are merged to the one that covers them.
        """
        merge_time_windows(windows, callback)


def check_ms(owner: str, *, maker: str = "of", least: int = 1, **durations: int) -> None:
    """Raises SpecError for a duration that is no int of milliseconds, below ``least``, or too long.

    owner: whose argument it is; maker: its method that takes other forms of durations.
    """
    for name, ms in durations.items():
        if not isinstance(ms, int) or isinstance(ms, bool):
            raise SpecError(
                f"{owner}: {name} must be an int of milliseconds, got {ms!r}; {owner}.{maker}(...) takes text as well"
            )
        if ms < least:
            raise SpecError(f"{owner}: {name} must be at least {least} ms, got {name}={ms}")
        if ms > MAX_DURATION_MS:
            raise SpecError(f"{owner}: {name} must be within {MAX_DURATION_MS} ms, got {name}={ms}")


def check_offset(owner: str, offset_ms: int, **period: int) -> None:
    """Raises SpecError unless an offset is shorter than the period, in ms, after which windows repeat."""
    check_ms(owner, least=-MAX_DURATION_MS, offset=offset_ms)
    ((name, ms),) = period.items()
    if abs(offset_ms) >= ms:
        raise SpecError(f"{owner}: |offset| must be below {name}, got offset={offset_ms} {name}={ms}")


def format_offset(offset_ms: int) -> str:
    """Returns what the text of an assigner says about its offset: nothing where there is none."""
    return f", offset {format_ms(offset_ms)}" if offset_ms else ""


class EventTimeWindows:
    """Mixed into assigners of windows over the elements' own timestamps."""

    kind: ClassVar[str] = ""

    def is_event_time(self) -> bool:
        return True

    @staticmethod
    def _time(timestamp: int, context: Any) -> int:
        return timestamp


class ProcessingTimeWindows:
    """Mixed into assigners of windows over the clock at the arrival of elements."""

    kind: ClassVar[str] = " of processing time"

    def is_event_time(self) -> bool:
        return False

    @staticmethod
    def _time(timestamp: int, context: Any) -> int:
        return context.get_current_processing_time()

"""Global windows: one window for all of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from fastwin.triggers import NeverTrigger, Trigger
from fastwin.windows.assigner import WindowAssigner
from fastwin.windows.timewindow import GlobalWindow

__all__ = ["GlobalWindows"]


@dataclass(frozen=True)
class GlobalWindows(WindowAssigner):
    """One window for all of time. Without a trigger of your own it never fires. Use ``create``.

    Source: Flink's GlobalWindows.
    """

    @classmethod
    def create(cls) -> Self:
        """Returns the assigner."""
        return cls()

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[GlobalWindow]:
        return [GlobalWindow()]

    def get_default_trigger(self) -> Trigger:
        return NeverTrigger()

    def is_event_time(self) -> bool:
        return False

    def __str__(self) -> str:
        return "one global window"

"""What results call the columns that say which window a row is of, and which firing."""

from __future__ import annotations

from typing import Protocol

__all__ = [
    "BOUNDS",
    "CHANGE",
    "DELETE",
    "INSERT",
    "PANE_COLUMNS",
    "PANE_INDEX",
    "PANE_IS_LAST",
    "PANE_TIMING",
    "UPDATE",
    "WINDOW_COLUMN",
    "WINDOW_END",
    "WINDOW_START",
    "WINDOW_TIME",
    "TellsFirings",
    "added_columns",
]

WINDOW_COLUMN = "window"
"""Says which of several windows a row is of."""

WINDOW_START, WINDOW_END = "window_start", "window_end"
BOUNDS = (WINDOW_START, WINDOW_END)

WINDOW_TIME = "window_time"
"""The last millisecond of each window: ``with_window_time`` adds it, and ``chain=True`` on Spark."""

PANE_INDEX, PANE_TIMING, PANE_IS_LAST = "pane_index", "pane_timing", "pane_is_last"
PANE_COLUMNS = (PANE_INDEX, PANE_TIMING, PANE_IS_LAST)
"""What ``with_pane_info`` adds."""

CHANGE = "change"
"""What ``with_changelog`` adds: one of the three that follow."""
INSERT, UPDATE, DELETE = "insert", "update", "delete"


class TellsFirings(Protocol):
    """A spec, or what an operator is told of it: which columns say something of each firing."""

    @property
    def pane_info(self) -> bool:
        """Whether results say which firing of their window they are."""

    @property
    def changelog(self) -> bool:
        """Whether they say what they change."""


def added_columns(spec: TellsFirings) -> tuple[str, ...]:
    """Returns the names of the columns behind the others that say something of each firing."""
    return (*(PANE_COLUMNS if spec.pane_info else ()), *((CHANGE,) if spec.changelog else ()))

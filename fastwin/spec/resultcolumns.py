"""What results call the columns that say which window a row is of, and which firing."""

from __future__ import annotations

from typing import Any

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


def added_columns(spec: Any) -> tuple[str, ...]:
    """Returns the names of the columns behind the others that say something of each firing."""
    return (*(PANE_COLUMNS if spec.pane_info else ()), *((CHANGE,) if spec.changelog else ()))

"""RowsApart: what stands in place of windows where rows of a key that are close in time count as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from fastwin.errors import SpecError
from fastwin.times import format_ms
from fastwin.windows.assigner import EventTimeWindows, WindowAssigner, check_ms

__all__ = ["RowsApart"]


@dataclass(frozen=True)
class RowsApart(EventTimeWindows, WindowAssigner):
    """Each row that is handed out has ``[time, time + within)`` for its window. Made by ``deduplicate``."""

    within_ms: int

    def __post_init__(self) -> None:
        check_ms("deduplicate", within=self.within_ms)

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> NoReturn:
        raise SpecError("deduplicate: within= runs on an operator of its own, which knows the rows before")

    def __str__(self) -> str:
        return f"rows of a key at least {format_ms(self.within_ms)} apart"

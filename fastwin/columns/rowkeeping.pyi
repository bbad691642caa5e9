from collections.abc import Iterable

from fastwin.columns.row import Rows
from fastwin.columns.windowrows import WindowRows

__all__ = ["keep_first", "keep_rows", "move_out"]

def keep_rows(window: WindowRows, rows: Rows, places: Iterable[int]) -> None: ...
def keep_first(window: WindowRows, n: int) -> None: ...
def move_out(objects: list[WindowRows | None], sparse: list[Rows]) -> None: ...

from typing import final

from fastwin.core.panes import PaneTable
from fastwin.core.rows import RowStore

@final
class WindowCombiner:
    """Collects fired windows, one row for each (key, window), in a store of their own."""

    panes: PaneTable
    rows: RowStore
    def __init__(self, panes: PaneTable) -> None: ...
    def fire(self, start: int, end: int) -> int: ...
    def fire_key(self, key: int, start: int, end: int) -> bool: ...
    def clear(self) -> None: ...

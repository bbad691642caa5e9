from typing import final

import numpy as np
from numpy.typing import NDArray

from fastwin.core.accumulators.basic import Valid, Values
from fastwin.core.panes.panetable import PaneTable
from fastwin.core.rows.rowstore import RowStore

@final
class WindowSlider:
    """Fires windows ``[start, end)`` one after another, both bounds ascending, for all keys at once."""

    panes: PaneTable
    rows: RowStore
    end: int
    active_n: int
    def __init__(self, panes: PaneTable, slide: int, offset: int = 0, blocks: tuple[int, ...] = ()) -> None: ...
    @property
    def nbytes(self) -> int: ...
    def place(self, in_file: bool) -> int: ...
    def fire(self, start: int, end: int, fired: RowStore) -> int: ...
    def leave(self, start: int) -> None: ...
    def add(
        self, keys: NDArray[np.int32], starts: NDArray[np.int64], columns: list[tuple[Values | None, Valid]]
    ) -> None: ...
    def absorb(self, others: RowStore, slots: NDArray[np.int32]) -> None: ...
    def _check(self) -> None: ...

from typing import final

import numpy as np
from numpy.typing import NDArray

from fastwin.core.accumulators.basic import Valid, Values
from fastwin.core.panes.panetable import PaneTable
from fastwin.core.rows.rowstore import RowStore

@final
class WindowCombiner:
    """Collects fired windows, one row for each (key, window), in a store of their own."""

    panes: PaneTable
    shared: bool
    rows: RowStore
    def __init__(self, panes: PaneTable, shared: bool = True) -> None: ...
    def fire(self, keys: NDArray[np.int32], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> None: ...
    def add_firing(
        self,
        keys: NDArray[np.int32],
        panes: NDArray[np.int64],
        columns: list[tuple[Values | None, Valid]],
        counts: NDArray[np.int64],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
    ) -> None: ...
    def clear(self) -> None: ...

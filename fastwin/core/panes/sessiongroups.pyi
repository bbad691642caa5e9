import numpy as np
from numpy.typing import NDArray

from fastwin.core.panes.grouptable import GroupTable
from fastwin.core.rows.rowstore import RowStore

__all__ = ["SessionGroups", "are_in_order"]

def are_in_order(times: NDArray[np.int64]) -> bool: ...

class SessionGroups(GroupTable):
    """Rows of accumulators by key, each for the open session of its key, for elements that are all at hand."""

    ended: RowStore
    def feed_sessions(
        self,
        keys: list[tuple],
        times: NDArray[np.int64],
        gap: int,
        columns: list[tuple],
    ) -> None: ...
    def absorb_sessions(
        self,
        keys: list[tuple],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        others: RowStore,
        slots: NDArray[np.int32],
    ) -> None: ...
    def end_before(self, time: int) -> None: ...
    def ended_sessions(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
    def ended_heads(self, slots: NDArray[np.int32]) -> tuple[NDArray[np.int64], list[tuple]]: ...
    def forget_ended(self) -> None: ...
    def open_sessions(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...

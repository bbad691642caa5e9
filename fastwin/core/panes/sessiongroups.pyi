import numpy as np
from numpy.typing import NDArray

from fastwin.core.panes.grouptable import GroupTable

__all__ = ["SessionGroups", "are_in_order"]

def are_in_order(times: NDArray[np.int64]) -> bool: ...

class SessionGroups(GroupTable):
    """Rows of accumulators by (key, session), for elements in order of time that are all at hand."""

    def feed_sessions(
        self,
        keys: list[tuple],
        times: NDArray[np.int64],
        gap: int,
        columns: list[tuple],
        share: int = 0,
        shares: int = 1,
    ) -> None: ...

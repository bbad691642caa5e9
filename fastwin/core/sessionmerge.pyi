import numpy as np
from numpy.typing import NDArray

from fastwin.core.rows import RowStore
from fastwin.core.sessions import SessionTable

__all__ = ["absorb"]

def absorb(
    table: SessionTable,
    keys: NDArray[np.int32],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    watermark: int,
    lateness: int,
    others: RowStore,
    from_slots: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]: ...

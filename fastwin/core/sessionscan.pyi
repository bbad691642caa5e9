from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fastwin.core.accumulators import AccumulatorSet, Valid, Values
from fastwin.core.rows import RowStore

__all__ = ["END_CELL", "by_key", "by_time", "sessions_by_key"]

END_CELL: int

def by_key(
    ids: NDArray[np.int32], times: NDArray[np.int64], top: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...
def sessions_by_key(
    accumulators: AccumulatorSet,
    bounds: NDArray[np.int64],
    times: NDArray[np.int64],
    gap: int,
    columns: list[tuple[Values | None, Valid]],
    part: int,
) -> Iterator[RowStore]: ...
def by_time(times: NDArray[np.int64]) -> NDArray[np.int64]: ...

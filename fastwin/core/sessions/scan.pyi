from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fastwin.core.accumulators.basic import AccumulatorSet
from fastwin.core.keys.keyorder import KeyOrder
from fastwin.core.rows.rowstore import RowStore

__all__ = ["END_CELL", "order_by_time", "places_by_time", "sessions_of_keys"]

END_CELL: int

def sessions_of_keys(
    accumulators: AccumulatorSet,
    elements: KeyOrder,
    first: int,
    stop: int,
    gap: int,
    columns_at: Callable[[NDArray[np.int64]], list[tuple]],
) -> RowStore: ...
def places_by_time(times: NDArray[np.int64]) -> NDArray[np.int64]: ...
def order_by_time(times: NDArray[np.int64], each: Callable = map, threads: int = 1) -> NDArray[np.int64] | None: ...

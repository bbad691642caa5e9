from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from fastwin.core.accumulators.accumulator_set import AccumulatorSet
from fastwin.core.rows.rowstore import RowStore

__all__ = ["adopt_rows", "owned_sizes", "renumber_rows", "tidy_rows"]

def owned_sizes(rows: RowStore, slots: NDArray[np.int32], cells: Iterable[int]) -> NDArray[np.int64]: ...
def tidy_rows(accumulators: AccumulatorSet, rows: RowStore, slots: NDArray[np.int32]) -> None: ...
def adopt_rows(accumulators: AccumulatorSet, rows: RowStore, slots: NDArray[np.int32]) -> None: ...
def renumber_rows(accumulators: AccumulatorSet, rows: RowStore, slots: NDArray[np.int32]) -> None: ...

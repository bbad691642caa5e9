from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fastwin.core.accumulators.basic import AccumulatorSet
from fastwin.core.rows.rowstore import RowStore

def head_cells(texts: Sequence[bool]) -> int: ...

class GroupTable:
    """Rows of accumulators by (key, pane start), for elements that are all at hand."""

    accumulators: AccumulatorSet
    rows: RowStore
    texts: tuple[bool, ...]
    ascending: bool
    def __init__(self, accumulators: AccumulatorSet, texts: Sequence[bool], like: GroupTable | None = None) -> None: ...
    def __len__(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def feed(
        self,
        keys: list[tuple],
        times: NDArray[np.int64],
        slide: int,
        offset: int,
        columns: list[tuple],
        bounds: NDArray[np.int64] | None = None,
        share: int = 0,
        shares: int = 1,
    ) -> None: ...
    def ensure(self, keys: list[tuple], starts: NDArray[np.int64]) -> NDArray[np.int32]: ...
    def absorb(self, other: GroupTable, first: int = 0, last: int = 0) -> None: ...
    def slots_before(self, start: int, since: int = ...) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
    def keys(self, slots: NDArray[np.int32]) -> list[tuple]: ...
    def drop_before(self, start: int) -> None: ...
    def _check(self) -> None: ...

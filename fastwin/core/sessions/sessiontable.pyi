from typing import final

import numpy as np
from numpy.typing import NDArray

from fastwin.core.accumulators.basic import AccumulatorSet, Valid, Values
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.rows.rowstore import RowStore

HEAD_CELLS: int

@final
class SessionTable:
    """Per key, sessions that neither overlap nor touch, each with a row of accumulators."""

    keys: KeyTable
    accumulators: AccumulatorSet
    rows: RowStore
    def __init__(self, keys: KeyTable, accumulators: AccumulatorSet) -> None: ...
    def __len__(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def looked(self) -> int: ...
    def add(
        self,
        keys: NDArray[np.int32],
        times: NDArray[np.int64],
        gap: int,
        watermark: int,
        lateness: int,
        columns: list[tuple[Values | None, Valid]],
        fired: RowStore | None = None,
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]: ...
    def absorb(
        self,
        keys: NDArray[np.int32],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        watermark: int,
        lateness: int,
        others: RowStore,
        from_slots: NDArray[np.int32],
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]: ...
    def drop(self, slots: NDArray[np.int32]) -> None: ...
    def ends(self, slots: NDArray[np.int32]) -> NDArray[np.int64]: ...
    def insert(
        self, keys: NDArray[np.int32], starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> NDArray[np.int32]: ...
    def find(self, keys: NDArray[np.int32], starts: NDArray[np.int64]) -> NDArray[np.int32]: ...
    def covering(self, keys: NDArray[np.int32], times: NDArray[np.int64]) -> NDArray[np.int32]: ...
    def removals(self, changed: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
    def saved(self, slots: NDArray[np.int32]) -> None: ...
    def _farthest(self) -> int: ...
    def _check(self) -> None: ...

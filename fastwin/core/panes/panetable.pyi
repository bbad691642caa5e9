from typing import final

import numpy as np
from numpy.typing import NDArray

from fastwin.core.accumulators.basic import AccumulatorSet, Valid, Values
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.rows.rowstore import RowStore

NOTHING: NDArray[np.int64]

@final
class PaneTable:
    """Rows of accumulators by (key id, pane start)."""

    keys: KeyTable
    accumulators: AccumulatorSet
    rows: RowStore
    def __init__(self, keys: KeyTable, accumulators: AccumulatorSet) -> None: ...
    def __len__(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def moved(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def place(self, in_file: bool) -> int: ...
    def add(
        self, keys: NDArray[np.int32], starts: NDArray[np.int64], columns: list[tuple[Values | None, Valid]]
    ) -> NDArray[np.int32]: ...
    def feed(
        self,
        ids: NDArray[np.int32] | None,
        values: NDArray[np.int64] | None,
        valid: NDArray[np.uint8] | None,
        times: NDArray[np.int64],
        first: int,
        slide: int,
        rest: int,
        offset: int,
        columns: list[tuple[Values | None, Valid]],
        bounds: NDArray[np.int64] | None = None,
    ) -> NDArray[np.int64]: ...
    def starts(self) -> NDArray[np.int64]: ...
    def first_start(self, at_least: int) -> int | None: ...
    def slots_of(self, start: int) -> NDArray[np.int32]: ...
    def slots_from(self, first: int, last: int, most: int) -> NDArray[np.int32]: ...
    def ensure(self, keys: NDArray[np.int32], starts: NDArray[np.int64]) -> NDArray[np.int32]: ...
    def drop_before(self, start: int) -> None: ...
    def _check(self) -> None: ...

from collections.abc import Iterable
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from fastwin.core.rows.rowstore import RowStore

Values = NDArray[np.int64] | NDArray[np.float64]
Valid = NDArray[np.bool_] | None
Dtype = Literal["int64", "float64"]

class Accumulator:
    """What one aggregate keeps in each row."""

    dtypes: tuple[str, ...]
    cells: int
    is_float: bool
    gives_float: bool
    takes_values: bool
    column: int
    columns: tuple[int, ...]
    def __init__(self, dtype: Dtype = "int64", column: int = 0) -> None: ...
    gives_bytes: bool
    owned: tuple[int, ...]

@final
class AccumulatorSet:
    """The accumulators of a row, side by side."""

    members: tuple[Accumulator, ...]
    head_cells: int
    cells: int
    owned: tuple[int, ...]
    columns: int
    def __init__(self, members: Iterable[Accumulator], head_cells: int = 3) -> None: ...
    def blank(self) -> NDArray[np.int64]: ...
    def add_rows(self, rows: RowStore, slots: NDArray[np.int32], columns: list[tuple]) -> None: ...
    def merge_rows(
        self, rows: RowStore, slots: NDArray[np.int32], others: RowStore, from_slots: NDArray[np.int32]
    ) -> None: ...
    def results(self, rows: RowStore, slots: NDArray[np.int32]) -> list[tuple[Any, ...]]: ...
    def new_rows(self) -> RowStore: ...
    arrived: int
    remembers: bool
    def check_rows(self, rows: RowStore, slots: NDArray[np.int32]) -> None: ...

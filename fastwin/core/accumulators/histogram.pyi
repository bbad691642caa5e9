from typing import Any

from numpy.typing import NDArray

from fastwin.core.accumulators.accumulator_set import Accumulator, Dtype

__all__ = ["Histogram"]

class Histogram(Accumulator):
    def __init__(self, dtype: Dtype = "int64", column: int = 0, edges: NDArray[Any] | None = None) -> None: ...

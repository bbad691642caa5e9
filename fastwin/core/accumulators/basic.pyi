from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fastwin.core.accumulators.accumulator_set import Accumulator as Accumulator
from fastwin.core.accumulators.accumulator_set import AccumulatorSet as AccumulatorSet
from fastwin.core.accumulators.accumulator_set import Dtype as Dtype
from fastwin.core.accumulators.accumulator_set import Valid as Valid
from fastwin.core.accumulators.accumulator_set import Values as Values

__all__ = ["Accumulator", "AccumulatorSet", "Count", "Extreme", "Max", "Mean", "Min", "Sum", "int_means"]

class Count(Accumulator): ...

class Sum(Accumulator):
    name: str
    def __init__(
        self,
        dtype: Dtype = "int64",
        column: int = 0,
        on_overflow: Literal["raise", "null"] = "raise",
        name: str = "Sum",
        unsigned: bool = False,
    ) -> None: ...

class Extreme(Accumulator): ...
class Min(Extreme): ...
class Max(Extreme): ...
class Mean(Accumulator): ...

def int_means(sums: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.float64]: ...

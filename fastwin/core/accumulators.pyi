from typing import Literal

from fastwin.core.accumulator_set import Accumulator as Accumulator
from fastwin.core.accumulator_set import AccumulatorSet as AccumulatorSet
from fastwin.core.accumulator_set import Dtype as Dtype
from fastwin.core.accumulator_set import Valid as Valid
from fastwin.core.accumulator_set import Values as Values

__all__ = ["Accumulator", "AccumulatorSet", "Count", "Extreme", "Max", "Mean", "Min", "Sum"]

class Count(Accumulator): ...

class Sum(Accumulator):
    name: str
    def __init__(
        self,
        dtype: Dtype = "int64",
        column: int = 0,
        on_overflow: Literal["raise", "null"] = "raise",
        name: str = "Sum",
    ) -> None: ...

class Extreme(Accumulator): ...
class Min(Extreme): ...
class Max(Extreme): ...
class Mean(Accumulator): ...

from fastwin.core.accumulators.accumulator_set import Accumulator, Dtype

__all__ = ["Comoment", "Shape", "Variance"]

class Variance(Accumulator):
    ddof: int
    root: bool
    def __init__(self, dtype: Dtype = "int64", column: int = 0, ddof: int = 1, root: bool = False) -> None: ...

class Shape(Accumulator):
    fourth: bool
    def __init__(self, dtype: Dtype = "int64", column: int = 0, fourth: bool = False) -> None: ...

class Comoment(Accumulator):
    ddof: int
    scaled: bool
    def __init__(
        self,
        dtype: Dtype = "int64",
        column: int = 0,
        other_dtype: Dtype = "int64",
        other: int = -1,
        ddof: int = 1,
        scaled: bool = False,
    ) -> None: ...

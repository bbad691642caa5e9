from typing import final

from fastwin.core.accumulator_set import Accumulator, Dtype

__all__ = ["Variance"]

@final
class Variance(Accumulator):
    ddof: int
    root: bool
    def __init__(self, dtype: Dtype = "int64", column: int = 0, ddof: int = 1, root: bool = False) -> None: ...

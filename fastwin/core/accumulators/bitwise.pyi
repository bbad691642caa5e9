from typing import Literal

from fastwin.core.accumulators.accumulator_set import Accumulator

__all__ = ["Bitwise"]

class Bitwise(Accumulator):
    def __init__(
        self, dtype: Literal["int64"] = "int64", column: int = 0, operation: Literal["and", "or", "xor"] = "and"
    ) -> None: ...

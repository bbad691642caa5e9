from typing import Literal, final

from fastwin.core.accumulators.accumulator_set import Accumulator

__all__ = ["DecimalTotal"]

@final
class DecimalTotal(Accumulator):
    name: str
    def __init__(
        self,
        dtype: Literal["text"] = "text",
        column: int = 0,
        width: int = 16,
        digits: int = 38,
        shift: int = -1,
        on_overflow: Literal["raise", "null"] = "raise",
        name: str = "Sum",
    ) -> None: ...

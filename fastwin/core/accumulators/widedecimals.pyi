from typing import Literal, final

from fastwin.core.accumulators.accumulator_set import Accumulator

__all__ = ["WideTotal"]

@final
class WideTotal(Accumulator):
    name: str
    def __init__(
        self,
        dtype: Literal["text"] = "text",
        column: int = 0,
        digits: int = 76,
        on_overflow: Literal["raise", "null"] = "raise",
        name: str = "Sum",
    ) -> None: ...

from typing import Literal, final

from fastwin.core.accumulators.accumulator_set import Accumulator

__all__ = ["Pick"]

_Kind = Literal["int64", "float64", "text"]

@final
class Pick(Accumulator):
    def __init__(
        self,
        dtype: _Kind = "int64",
        column: int = 0,
        time: int = -1,
        order_dtype: _Kind | None = None,
        order: int = -1,
        largest: bool = False,
        last: bool = False,
        arrival: int = -1,
        rows: int = -1,
    ) -> None: ...

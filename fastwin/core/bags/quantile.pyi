from typing import Literal, final

from fastwin.core.accumulators.accumulator_set import Accumulator

__all__ = ["Quantile"]

@final
class Quantile(Accumulator):
    def __init__(
        self,
        dtype: Literal["float64"] = "float64",
        column: int = 0,
        q: float = 0.5,
        error: float = 0.01,
        source: Quantile | None = None,
    ) -> None: ...

from collections.abc import Iterable
from typing import Any, Literal, final

from fastwin.core.accumulators.accumulator_set import Accumulator

__all__ = ["NumpyAccumulator"]

_Number = Literal["int64", "float64"]

@final
class NumpyAccumulator(Accumulator):
    def __init__(
        self,
        dtype: _Number = "int64",
        column: int = 0,
        user: Any = None,
        reads: Iterable[tuple[int, _Number]] = (),
        state: Iterable[_Number] = (),
        result: _Number = "float64",
    ) -> None: ...

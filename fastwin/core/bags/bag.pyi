from typing import Literal, final

from fastwin.core.accumulators.accumulator_set import Accumulator

__all__ = ["Distinct", "DistinctSum", "Listed", "Ranked"]

_Kind = Literal["int64", "float64", "text"]

class Bag(Accumulator):
    def __init__(self, dtype: _Kind = "int64", column: int = 0) -> None: ...

@final
class Distinct(Bag):
    def __init__(self, dtype: _Kind = "int64", column: int = 0, source: Bag | None = None) -> None: ...

@final
class DistinctSum(Bag):
    name: str
    def __init__(
        self,
        dtype: Literal["int64", "float64"] = "int64",
        column: int = 0,
        on_overflow: Literal["raise", "null"] = "raise",
        name: str = "Sum",
        source: Bag | None = None,
        unsigned: bool = False,
    ) -> None: ...

class Giving(Bag): ...

@final
class Listed(Giving):
    def __init__(
        self,
        dtype: _Kind = "int64",
        column: int = 0,
        keeps: Literal["all", "distinct", "hashed", "elements"] = "all",
        limit: int | None = None,
        largest: bool = False,
        time: int = -1,
    ) -> None: ...

@final
class Ranked(Giving):
    def __init__(self, dtype: _Kind = "int64", column: int = 0, k: int = 1, source: Bag | None = None) -> None: ...

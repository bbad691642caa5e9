from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from fastwin.core.accumulator_set import Accumulator

__all__ = ["HyperLogLog", "hash_int64", "hash_text", "hash_uint64"]

def hash_text(offsets: NDArray[np.int32] | NDArray[np.int64], data: NDArray[np.uint8]) -> NDArray[np.int64]: ...
def hash_int64(values: NDArray[np.int64]) -> NDArray[np.int64]: ...
def hash_uint64(values: NDArray[np.uint64]) -> NDArray[np.int64]: ...

@final
class HyperLogLog(Accumulator):
    def __init__(
        self, dtype: Literal["int64"] = "int64", column: int = 0, output: Literal["estimate", "sketch"] = "estimate"
    ) -> None: ...

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Number = TypeVar("_Number", bound=np.integer)

__all__ = ["distinct", "ordered", "unique"]

def distinct(values: NDArray[np.int64]) -> NDArray[np.int64]: ...
def unique(values: NDArray[_Number]) -> NDArray[_Number]: ...
def ordered(columns: list[NDArray[np.int64]]) -> tuple[NDArray[np.int32], int]: ...

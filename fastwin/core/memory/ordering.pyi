import numpy as np
from numpy.typing import NDArray

__all__ = ["distinct", "ordered"]

def distinct(values: NDArray[np.int64]) -> NDArray[np.int64]: ...
def ordered(columns: list[NDArray[np.int64]]) -> tuple[NDArray[np.int32], int]: ...

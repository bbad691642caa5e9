import numpy as np
from numpy.typing import NDArray

__all__ = ["ordered"]

def ordered(columns: list[NDArray[np.int64]]) -> tuple[NDArray[np.int32], int]: ...

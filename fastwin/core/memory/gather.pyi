import numpy as np
from numpy.typing import NDArray

__all__ = ["put", "take"]

def take(values: NDArray[np.int64], places: NDArray[np.int64] | NDArray[np.int32]) -> NDArray[np.int64]: ...
def put(into: NDArray[np.int64], places: NDArray[np.int64], values: NDArray[np.int64]) -> None: ...

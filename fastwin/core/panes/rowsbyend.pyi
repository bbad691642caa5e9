import numpy as np
from numpy.typing import NDArray

__all__ = ["repeat_until", "rows_by_end"]

def rows_by_end(
    keys: NDArray[np.int32], firsts: NDArray[np.int64], lasts: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...
def repeat_until(values: NDArray[np.int64], bounds: NDArray[np.int64]) -> NDArray[np.int64]: ...

import numpy as np
from numpy.typing import NDArray

most_slices: int

def all_within(times: NDArray[np.int64], first: int, last: int) -> bool: ...
def assign_slices(
    times: NDArray[np.int64], size: int, slide: int, offset: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]: ...
def order_by_slice(
    times: NDArray[np.int64], first: int, slide: int, count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...

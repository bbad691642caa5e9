import numpy as np
from numpy.typing import NDArray

__all__ = ["best_of", "pairs_between", "sides_apart"]

def best_of(groups: NDArray[np.int64], values: NDArray[np.int64], n: int, last: bool = False) -> NDArray[np.int64]: ...
def pairs_between(
    begins: NDArray[np.int64], rights: NDArray[np.int64], ends: NDArray[np.int64], first: int, last: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...
def sides_apart(
    groups: NDArray[np.int64], sides: NDArray[np.int8]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...

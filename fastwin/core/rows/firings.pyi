import numpy as np
from numpy.typing import NDArray

__all__ = ["best_of", "groups_of_sides", "pairs_between", "sides_apart"]

def best_of(groups: NDArray[np.int64], values: NDArray[np.int64], n: int, last: bool = False) -> NDArray[np.int64]: ...
def groups_of_sides(
    left_starts: NDArray[np.int64],
    left_keys: NDArray[np.int32],
    right_starts: NDArray[np.int64],
    right_keys: NDArray[np.int32],
    left_alone: bool,
    right_alone: bool,
) -> tuple[
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
]: ...
def pairs_between(
    left_begins: NDArray[np.int64],
    lefts: NDArray[np.int64],
    right_begins: NDArray[np.int64],
    rights: NDArray[np.int64],
    ends: NDArray[np.int64],
    first: int,
    last: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...
def sides_apart(
    groups: NDArray[np.int64], sides: NDArray[np.int8]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...

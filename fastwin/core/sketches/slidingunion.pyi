from typing import Literal, overload

import numpy as np
from numpy.typing import NDArray

__all__ = ["union_windows"]

@overload
def union_windows(
    offsets: NDArray[np.int64],
    data: NDArray[np.uint8],
    firsts: NDArray[np.int64],
    ends: NDArray[np.int64],
    counted: Literal[True],
) -> NDArray[np.int64]: ...
@overload
def union_windows(
    offsets: NDArray[np.int64],
    data: NDArray[np.uint8],
    firsts: NDArray[np.int64],
    ends: NDArray[np.int64],
    counted: Literal[False],
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]: ...
@overload
def union_windows(
    offsets: NDArray[np.int64],
    data: NDArray[np.uint8],
    firsts: NDArray[np.int64],
    ends: NDArray[np.int64],
    counted: bool,
) -> NDArray[np.int64] | tuple[NDArray[np.int64], NDArray[np.uint8]]: ...

from typing import final

import numpy as np
from numpy.typing import NDArray

@final
class KeyOrder:
    """Elements by key, and those of a key by time and arrival."""

    n: int
    bounds: NDArray[np.int64]
    def __init__(self, ids: NDArray[np.int32], times: NDArray[np.int64], top: int) -> None: ...
    def slice(self, begin: int, end: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
    def parts(self, least: int) -> NDArray[np.int32]: ...
    def session_ends(self, gap: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...

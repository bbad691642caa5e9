import numpy as np
from numpy.typing import NDArray

Offsets = NDArray[np.int32] | NDArray[np.int64]

def hash_int64(values: NDArray[np.int64], valid: NDArray[np.uint8] | None = None) -> NDArray[np.uint64]: ...
def hash_text(
    offsets: Offsets, data: NDArray[np.uint8], valid: NDArray[np.uint8] | None = None
) -> NDArray[np.uint64]: ...
def group_rows(hashes: NDArray[np.uint64], groups: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...

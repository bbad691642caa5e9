import numpy as np
from numpy.typing import NDArray

Fixed = tuple[NDArray[np.int64], NDArray[np.uint8] | None]
Text = tuple[NDArray[np.int32] | NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint8] | None]

def encode_rows(columns: list[Fixed | Text], n: int) -> tuple[NDArray[np.int64], NDArray[np.uint8]]: ...
def decode_rows(
    offsets: NDArray[np.int64], data: NDArray[np.uint8], fixed: list[bool]
) -> list[
    tuple[NDArray[np.int64], NDArray[np.bool_]] | tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.bool_]]
]: ...

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["Divider", "Division", "most_shares"]

most_shares: int

class Division:
    """In which share each of n elements is. Made by Divider."""

    shares: int
    counts: NDArray[np.int64]
    def __init__(self, n: int, shares: int) -> None: ...
    def spread(
        self,
        values: NDArray[np.int64] | NDArray[np.uint8],
        starts: NDArray[np.int64],
        into: NDArray[np.int64] | NDArray[np.uint8],
    ) -> None: ...
    def text_bytes(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]: ...
    def spread_texts(
        self,
        offsets: NDArray[np.int64],
        data: NDArray[np.uint8],
        starts: NDArray[np.int64],
        first_bytes: NDArray[np.int64],
        into_offsets: NDArray[np.int64],
        into_data: NDArray[np.uint8],
    ) -> None: ...

class Divider:
    """Divides elements into shares by their panes, and by the hash of the key."""

    shares: int
    def __init__(self, texts: Sequence[bool], edges: NDArray[np.int64], widths: NDArray[np.int64]) -> None: ...
    def divide(
        self,
        keys: list[tuple],
        times: NDArray[np.int64],
        slide: int,
        offset: int,
        bounds: NDArray[np.int64] | None = None,
    ) -> Division: ...

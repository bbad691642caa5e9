"""Parts: rows are cut where they would be too much together."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["FIRST_COPIES", "next_copies", "parts_within"]

FIRST_COPIES = 1 << 6
"""How many windows fire together at first where what fires is a copy of lists or sketches."""
_COPIES_BYTES = 1 << 26


def next_copies(copies: int, nbytes: int) -> int:
    """Returns how many windows to fire together behind so many whose copies took ``nbytes``: about 64 MB.

    >>> next_copies(64, 1 << 20), next_copies(64, 1 << 30)
    (128, 4)
    """
    return max(1, min(2 * copies, copies * _COPIES_BYTES // max(nbytes, 1)))


def parts_within(sizes: NDArray[np.int64], most: int) -> Iterator[slice]:
    """Yields parts of sizes: as many as are at most ``most`` together, or one that is more. Of none, one empty part.

    >>> list(parts_within(np.array([2, 3, 9, 1, 1]), 5))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 5, None)]
    """
    ends, at = np.cumsum(sizes), 0
    while True:
        before = int(ends[at - 1]) if at else 0
        end = max(int(np.searchsorted(ends, before + most, side="right")), at + 1)
        yield slice(at, end)
        at = end
        if at >= len(sizes):
            return

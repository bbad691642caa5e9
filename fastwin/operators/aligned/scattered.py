"""Elements that jump between many slices, in the order of these: each slice is in the cache only once then."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastwin.core.memory.ordering import ordered
from fastwin.operators.aligned.slicing import Slicing

__all__ = ["order_by_slices", "order_of_starts"]

# Elements in so many slices, of so many neighbours, which go back as often, are put in order before they are taken.
_SCATTERED, _SAMPLE = 256, 4096


def order_by_slices(slicing: Slicing, times: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Returns the order of elements by their slices, those of a slice as they come: int64[n]; None: it does not pay.

    times: int64[n], ms.
    """
    if slicing.grid is None or not len(times):
        return None
    slicing.cover(times)
    starts, _ = slicing.assign(times[:_SAMPLE])
    if len(np.unique(starts)) < _SCATTERED or np.count_nonzero(starts[1:] < starts[:-1]) < _SCATTERED:
        return None
    return order_of_starts(slicing, slicing.assign(times)[0])


def order_of_starts(slicing: Slicing, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the stable order of starts of slices, at least one: int64[n]."""
    assert slicing.grid is not None
    first, (step, rest, _) = int(starts.min()), slicing.grid
    if rest == 0 and (int(starts.max()) - first) // step < 1 << 16:
        return np.argsort(((starts - first) // step).astype(np.uint16), kind="stable")  # a radix sort for 16 bits
    return ordered([starts])[0].astype(np.int64)

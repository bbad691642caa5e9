"""Unions of sketches over windows: which panes are in each, for the kernel that joins them."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.buffers import from_int64, from_text, text_values, validity
from fastwin.core.memory.ordering import unique
from fastwin.core.sketches.slidingunion import union_windows

__all__ = ["unions"]


def unions(
    groups: NDArray[np.int32],
    times: NDArray[np.int64],
    sketches: pa.Array,
    where: NDArray[np.int32],
    starts: NDArray[np.int64],
    size: int,
    counted: bool,
) -> pa.Array:
    """Returns the union of the sketches of each window; null where there is none.

    groups, times, sketches: of the panes, n each; null is no sketch. where, starts: group and start of each window, in
    order of both. size: of the windows, ms. counted: whether to return what the unions count, int64, instead of them.
    Raises SketchError for what is no sketch.
    """
    known = unique(times)
    there = groups * np.int64(len(known) + 1) + np.searchsorted(known, times)
    order = np.argsort(there, kind="stable")
    if (valid := validity(sketches)) is not None:
        order = order[valid[order] != 0]
    firsts, ends = (
        np.searchsorted(there[order], where * np.int64(len(known) + 1) + np.searchsorted(known, bounds))
        for bounds in (starts, starts + size)
    )
    offsets, data = text_values(sketches.take(pa.array(order)))
    found = union_windows(offsets.astype(np.int64), data, firsts.astype(np.int64), ends.astype(np.int64), counted)
    some = (ends > firsts).view(np.uint8)
    if isinstance(found, tuple):
        return from_text(*found, some, pa.binary())
    return from_int64(found, some, pa.int64())

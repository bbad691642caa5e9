"""Which windows the slices of aligned windows make, and what each would give: nothing fires, nothing changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastwin.core.accumulators.accumulator_set import AccumulatorSet
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.memory.ordering import begins_of
from fastwin.core.rows.rowstore import RowStore
from fastwin.operators.aligned.slicing import Slicing, expanded
from fastwin.operators.config import Config
from fastwin.operators.heldwindows import HeldWindows, end_firings, in_rows
from fastwin.operators.lateness import Lateness

__all__ = ["Slices", "held_windows", "starts_of"]


class Slices(NamedTuple):
    """Rows of slices, at least as fine as those of the windows that are looked at."""

    rows: RowStore
    slots: NDArray[np.int32]


def held_windows(
    config: Config,
    table: KeyTable,
    accumulators: AccumulatorSet,
    slicing: Slicing,
    parts: Sequence[Slices],
    watermark: int,
    lateness: Lateness,
) -> HeldWindows:
    """Returns the windows over some slices that are kept, with what they hold. O(slices times windows over each).

    parts: what one window holds may be in the slices of several operators; each slice is in one of them.
    """
    found = [_expanded(slicing, part, watermark, lateness) for part in parts]
    keys, ends, starts, slots = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    part_of = np.repeat(np.arange(len(parts)), [len(one[0]) for one in found])
    order = np.lexsort((starts, part_of, ends, keys))
    keys, ends, slots, part_of = keys[order], ends[order], slots[order], part_of[order]
    begins = begins_of(keys, ends)
    into = np.cumsum(begins) - 1
    keys, ends = keys[begins], ends[begins]
    starts = starts_of(slicing, ends)
    rows = accumulators.new_rows()
    windows = rows.fresh(keys, starts)
    nbytes = np.zeros(len(keys), np.int64)
    for i, part in enumerate(parts):
        mine = part_of == i
        accumulators.merge_rows(rows, windows[into[mine]], part.rows, slots[mine])
        np.add.at(nbytes, into[mine], in_rows(part.rows, slots[mine]))
    return HeldWindows(
        keys=config.codec.decode(table, keys),
        starts=starts,
        ends=ends,
        values=config.values_by_name(accumulators, rows, windows),
        nbytes=nbytes,
        **end_firings(ends, watermark, config.lateness_ms),
    )


def _expanded(slicing: Slicing, part: Slices, watermark: int, lateness: Lateness) -> tuple[NDArray, ...]:
    """Returns keys and ends of the windows over slices, and start and slot of each slice that is in them."""
    starts = part.rows.starts(part.slots)
    slicing.cover(starts)
    own, _ = slicing.assign(starts)
    first, last = slicing.kept_ends(own, watermark, lateness.at(watermark))
    counts, ends = expanded(first, last, slicing.step)
    keys = np.repeat(part.rows.keys(part.slots), counts)
    return keys, slicing.ends_at(ends), np.repeat(starts, counts), np.repeat(part.slots, counts)


def starts_of(slicing: Slicing, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the starts of the windows that end at ``ends``: int64[n]."""
    some, at = np.unique(ends, return_inverse=True)
    return np.array([slicing.start_of(end) for end in some.tolist()], np.int64)[at]

"""Which windows the rows that are kept make, and what is picked from each: nothing fires, nothing changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastwin.core.keys.keytable import KeyTable
from fastwin.operators.aligned.looking import starts_of
from fastwin.operators.aligned.slicing import Slicing, expanded
from fastwin.operators.heldwindows import HeldWindows, end_firings
from fastwin.operators.kept.config import KeptConfig
from fastwin.operators.kept.keptrows import KeptRows
from fastwin.operators.kept.picks import Fired, Pick
from fastwin.operators.lateness import Lateness

__all__ = ["held_windows"]


def held_windows(
    config: KeptConfig,
    table: KeyTable,
    kept: KeptRows,
    slots: NDArray[np.int32],
    slicing: Slicing,
    pick: Pick,
    watermark: int,
    lateness: Lateness,
) -> HeldWindows:
    """Returns the windows over some rows that are kept. O(rows times windows over each)."""
    starts = kept.number("start")[slots]
    first, last = slicing.kept_ends(starts, watermark, lateness.at(watermark))
    counts, ends = expanded(first, last, slicing.step)
    ends, places = slicing.ends_at(ends), np.repeat(slots, counts).astype(np.int64)
    rows = Fired.in_order(places, kept.number("key")[places], starts_of(slicing, ends), ends)
    rows = rows.select(rows.ends >= kept.number("since")[rows.slots])
    groups = np.flatnonzero(rows.begins()) if len(rows) else np.empty(0, np.int64)
    windows = rows.select(groups)
    told: dict[str, Any] = end_firings(windows.ends, watermark, config.lateness_ms)
    counts = np.diff(groups, append=len(rows))
    return HeldWindows(
        keys=config.codec.decode(table, windows.keys),
        starts=windows.starts,
        ends=windows.ends,
        values=pick.holds(kept.columns, rows),
        nbytes=(counts * (kept.nbytes / max(len(kept), 1))).astype(np.int64),
        **told,
    )

"""Which windows the rows that are kept make, and what is picked from each: nothing fires, nothing changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastwin.core.keys.keytable import KeyTable
from fastwin.operators.aligned.looking import starts_of
from fastwin.operators.aligned.slicing import Slicing, expanded, within
from fastwin.operators.heldwindows import HeldWindows, end_firings
from fastwin.operators.kept.config import KeptConfig
from fastwin.operators.kept.keptrows import KeptRows
from fastwin.operators.kept.picks import Fired, Pick
from fastwin.operators.lateness import Lateness

__all__ = ["held_windows", "windows_without_rows"]


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


def windows_without_rows(kept: KeptRows, slicing: Slicing, watermark: int, lateness: Lateness) -> int:
    """Counts pairs of a key and a window over one of its slices, not cleaned yet, that none of its rows is in.

    There are some where one input of a join may be less late than the other: late rows of it are in the later windows
    over their slice alone. O(rows), and for keys with such rows their windows that have passed; O(1) for all others.
    """
    allowed = lateness.at(watermark)
    cleaned = watermark - allowed
    if not slicing.shared or kept.last_since <= within(slicing.end_after(cleaned + 1)):
        return 0
    slots = kept.slots()
    keys, starts, since = (kept.number(name)[slots] for name in ("key", "start", "since"))
    some = since > slicing.ends_at(slicing.kept_ends(starts, watermark, allowed)[0])
    if not some.any():
        return 0
    until = int(since[some].max()) - 2  # later windows have all rows of their slices
    mine = slots[np.isin(keys, keys[some])].astype(np.int64)
    windows = slicing.late_windows(kept.number("start")[mine], until, until - cleaned)
    mine = np.repeat(mine, windows.counts)
    rows = Fired.in_order(mine, kept.number("key")[mine], windows.starts, windows.ends)
    taken = rows.select(rows.ends >= kept.number("since")[rows.slots])
    return int(np.count_nonzero(rows.begins()) - np.count_nonzero(taken.begins()))

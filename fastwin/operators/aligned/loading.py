"""Room for the rows of chunks, before they are loaded."""

import numpy as np
from numpy.typing import NDArray

from fastwin.core.memory.ordering import begins_of
from fastwin.core.panes.panetable import PaneTable
from fastwin.core.panes.room import make_room
from fastwin.state.chunks import Chunk
from fastwin.state.narrow import column_of

__all__ = ["make_room_for"]


def make_room_for(panes: PaneTable, found: list[tuple[Chunk, NDArray[np.bool_]]]) -> None:
    """Makes room for the rows of chunks that are marked, as far as the chunks tell how many keys there are."""
    held = max((chunk.meta.get("held", 0) for chunk, _ in found), default=0)
    counts: dict[int, int] = {}
    for chunk, live in found:
        starts = column_of(chunk.tables, "rows", "start")[live]
        runs = np.flatnonzero(begins_of(starts))
        for start, count in zip(starts[runs].tolist(), np.diff(runs, append=len(starts)).tolist(), strict=True):
            counts[start] = counts.get(start, 0) + count
    keys = min(held, sum(counts.values()))
    if keys:
        wanted = np.fromiter(counts.values(), dtype=np.int64, count=len(counts))
        make_room(panes, keys, np.fromiter(counts, dtype=np.int64), np.minimum(wanted, keys))

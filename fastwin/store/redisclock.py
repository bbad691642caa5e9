"""How long names live in Redis, and from where on panes are there although the clock goes on and the stream does not.

A store keeps a few entries ``DIES:WATERMARK`` in its meta: what is written from then on is there until DIES, ms of the
clock, and what was written before ends by WATERMARK.
"""

from __future__ import annotations

from fastwin.store.layout import Layout

__all__ = ["ENTRIES", "entry_of", "first_kept", "life_of"]

ENTRIES = 16
_RETENTIONS = 4
_MARGIN_MS = 3_600_000  # the clocks of writers, readers and Redis may differ by so much


def life_of(layout: Layout) -> int:
    """Returns how long names live that nobody deletes, ms: longer than retention, as a stream may pause or lag."""
    return _RETENTIONS * layout.retention_ms + max(2 * layout.block.width_ms, _MARGIN_MS)


def entry_of(layout: Layout, now: int) -> tuple[int, int]:
    """Returns until when what is written now is there for sure, and how much later an entry is one of its own, ms."""
    life = _RETENTIONS * layout.retention_ms
    return now + life, 2 * life // ENTRIES


def first_kept(clock: str, watermark: int | None, now: int) -> int | None:
    """Returns from where on all panes are there still, ms, by a store's entries; None if none can have run out.

    Raises ValueError for entries that are none.
    """
    entries = [tuple(map(int, entry.split(":"))) for entry in clock.split()]
    bound = None
    for i, (dies, _) in enumerate(entries):
        if dies <= now:
            bound = entries[i + 1][1] if i + 1 < len(entries) else watermark
    return bound

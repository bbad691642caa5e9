"""What a store has lost: kept until a batch can tell its readers."""

from __future__ import annotations

from dataclasses import replace

from fastwin.errors import StoreUnavailableError
from fastwin.store.records import Meta, Step
from fastwin.store.spans import FIRST_MS, latest

__all__ = ["Losses", "MovedError", "check_unmoved", "interrupted"]


class Losses:
    """Losses that one writer knows of and has not told yet.

    Where a loss ends is known if this writer put the panes that are gone. If not, it ends with the next batch that
    moves the watermark: until then the store itself keeps in mind that it has one.
    """

    def __init__(self) -> None:
        self._until: int | None = None  # ms: panes that ended by then may be gone
        self._accepted = False

    def emptied(self, last: Meta) -> None:
        """Notes that all is gone of a store that had said ``last``."""
        self._until = latest(self._until, last.watermark, last.since)

    def accept(self, last: Meta | None) -> None:
        """Notes a loss of unknown extent; ``last`` is what the store said before, as far as this writer knows."""
        self._accepted = True
        if last is not None:
            self.emptied(last)

    def step(self, meta: Meta | None, step: Step, lateness: int) -> Step:
        """Returns a step that ends a batch, with what it has to tell, to the store that now says ``meta``.

        lateness: ms, how long after its end a pane may have been put.
        """
        if meta is None:
            return replace(step, complete_from=self._until, lost=self._accepted or None)
        goal, layout = step.watermark, meta.layout
        reached = latest(goal, meta.watermark)
        floor = None if reached is None else layout.block.start_of(reached - layout.retention_ms)
        until = self._until
        lost: bool | None = self._accepted or None
        if (lost or meta.lost) and goal is not None and (meta.watermark is None or goal > meta.watermark):
            lost = False if meta.lost else None
            behind = layout.fine.start_of(goal + lateness + layout.pane_ms - 1)
            until = behind if until is None else max(until, behind)
        return replace(step, floor=floor, complete_from=until, lost=lost, identity=meta.identity)

    def told(self) -> None:
        """Forgets what the store now knows itself."""
        self._until, self._accepted = None, False


class MovedError(StoreUnavailableError):
    """What was read is of another store than the meta before it, or lacks panes that were there then."""


def check_unmoved(meta: Meta, now: Meta | None, start: int | None, shown: str) -> Meta:
    """Returns what a store says, ``now``, behind a read of panes from ``start`` on, ms. start: None: of no panes.

    Raises MovedError if what was read does not belong to ``meta``, which it said before. shown: the store's address.
    """
    if now is not None and now.follows(meta):
        since = now.since
        if since is None or start is None or since <= max(start, FIRST_MS if meta.since is None else meta.since):
            return now
    raise MovedError(f"store: {shown} was emptied, or went back, or dropped old panes, while it was read; ask again")


def interrupted(shown: str) -> StoreUnavailableError:
    """Returns what to raise for a batch of which a part may be gone; ``shown`` is the store's address."""
    return StoreUnavailableError(
        f"store: {shown} was started again or emptied in the middle of a batch, and may have lost a part of it; put "
        f"the batch again"
    )

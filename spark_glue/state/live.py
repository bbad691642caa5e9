"""The streams that a Python worker leaves standing between micro-batches, within a budget of all workers together.

The module is imported by the workers, not pickled to them: what it holds outlives the micro-batch.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spark_glue.state.folders import cache_root, limit_of, say_once
from spark_glue.state.ledger import Ledger

__all__ = ["LIVE", "LIVE_VARIABLE", "Live", "LiveStreams"]

LIVE_VARIABLE = "FASTWIN_LIVE_BYTES"

_DEFAULT_LIVE_BYTES = 2 << 30
_IDLE_S = 600.0


@dataclass
class Live:
    """A stream as a task has left it. metrics: as they stood then. nbytes: what it takes, about."""

    token: str
    stream: Any
    metrics: Any
    nbytes: int
    used: float = 0.0


class LiveStreams:
    """The streams of one Python worker, by place: the run, then what tells a share of it.

    limit: bytes for all workers of the machine; None: FASTWIN_LIVE_BYTES, or 2 GiB. root: the folder that the workers
    share; None: ``cache_root()``. owner: the worker; None: this process.
    """

    def __init__(self, limit: int | None = None, root: Path | None = None, owner: int | None = None) -> None:
        self._limit = limit
        self._root = root
        self._owner = owner
        self._held: dict[tuple, Live] = {}

    def __len__(self) -> int:
        return len(self._held)

    @property
    def nbytes(self) -> int:
        """Bytes that the streams take, about."""
        return sum(live.nbytes for live in self._held.values())

    def take(self, place: tuple) -> Live | None:
        """Returns the stream left at a place, which is then no longer there."""
        return self._held.pop(place, None)

    def put(self, place: tuple, live: Live) -> None:
        """Leaves a stream at a place, if the budget has room for it, and lets go of those that have to go."""
        live.used = time.monotonic()
        self._held[place] = live
        limit = limit_of(LIVE_VARIABLE, _DEFAULT_LIVE_BYTES) if self._limit is None else self._limit
        run = place[0]
        try:
            kept = self._ledger(run).kept(_share(place), live.nbytes, limit)
        except OSError as problem:
            part = limit // (os.cpu_count() or 1)
            say_once(
                f"streams: the workers cannot tell each other what they keep ({problem}), so each keeps at most "
                f"{part} bytes"
            )
            kept = self._first(run, part)
        for other in list(self._held):
            if other[0] == run:
                goes = _share(other) not in kept
            else:
                goes = live.used - self._held[other].used >= _IDLE_S or not self._ledger(other[0]).there()
            if goes:
                del self._held[other]

    def _first(self, run: str, limit: int) -> set[str]:
        """Returns the shares of the first streams that take so many bytes together."""
        kept, total = set(), 0
        for place, live in self._held.items():
            total += live.nbytes
            if place[0] == run and total <= limit:
                kept.add(_share(place))
        return kept

    def _ledger(self, run: str) -> Ledger:
        root = cache_root() if self._root is None else self._root
        return Ledger(root, run, os.getpid() if self._owner is None else self._owner)

    def clear(self) -> None:
        """Lets go of all."""
        self._held.clear()


def _share(place: tuple) -> str:
    return "/".join(map(_text, place[1:]))


def _text(part: object) -> str:
    return part.hex() if isinstance(part, bytes) else str(part)


LIVE = LiveStreams()

"""The chain of a stream's chunks: each names the one that it goes on from, so that only what fits goes together.

A chunk has a number, one more than that of the chunk before it, and names that one by its id, a digest of its bytes. So
chunks left out, swapped, repeated, or of another stream are noticed, also where two streams went on from one snapshot;
and equal streams write equal bytes.

Two things need not be there. A *bare* delta, which has no rows and only brings the watermark on: the next delta has
its number and goes on from the chunk before it. And the beginning of a log, when the chunks that are left hold all
state: a snapshot does, and a delta when nothing is left of the state before; deltas that repeat the rows of all key
groups do together, see ``state.refresh``; and chunks hold nothing any more when all their windows are cleaned. Each
chunk says from which number on the log is enough, and where the windows of the chunks before it end.
"""

from __future__ import annotations

from typing import Any

from fastwin.errors import StateError
from fastwin.state.chunks import Chunk, Link, id_of
from fastwin.state.refresh import Refresh
from fastwin.times import MIN_TIMESTAMP

__all__ = ["Chain"]

_NEVER = 1 << 63  # later than the end of every window: for rows whose windows are not known
_MOST_ENDS = 4096


class Chain:
    """Where a stream stands in its chain: behind which chunk, and what the log before it holds."""

    def __init__(self) -> None:
        self._sequence = 0
        self._id = ""
        self._since = 1
        self._ends: tuple[tuple[int, int], ...] = ()
        self._round: tuple[int, int] | None = None
        self._watermark = self._newest = MIN_TIMESTAMP

    @property
    def place(self) -> tuple[object, ...]:
        """Where the stream stands, to be compared: another one as soon as a chunk is written."""
        return tuple(vars(self).values())

    @property
    def fresh(self) -> bool:
        """Whether no chunk has been written or taken that counts."""
        return not self._id

    def link(self, kind: str, meta: dict[str, Any], complete: bool, refresh: Refresh | None) -> Link:
        """Returns the place of the next chunk.

        meta: the chunk's. complete: whether nothing before the chunk is needed. refresh: what it repeats.
        """
        number = self._sequence + 1
        since = number if complete or kind == "snapshot" else self._since
        turn = None
        if refresh is not None:
            begun = (number, 0) if refresh.turn == 0 else self._round
            if begun is not None and begun[1] == refresh.turn:
                turn = (begun[0], refresh.turn + meta["refreshed"])
                if turn[1] >= len(refresh.groups):
                    since, turn = max(since, turn[0]), None
        ends = tuple(pair for pair in self._ends if pair[0] >= since and pair[1] - 1 > meta["cleaned"])
        return Link(number, self._id, since, _newest(ends), turn)

    def wrote(self, blob: bytes, chunk: Chunk) -> None:
        """Goes on behind a chunk just written. blob: its bytes."""
        self._take(chunk, id_of(blob))

    def _take(self, chunk: Chunk, own_id: str) -> None:
        link, meta = _link(chunk), chunk.meta
        self._watermark, self._newest = meta["watermark"], meta.get("newest", MIN_TIMESTAMP)
        self._since, self._round = link.since, link.round
        if not link.sequence:
            self._since = 0
        else:
            self._ends = link.ends
        last = meta.get("last_end", _NEVER)
        if last is not None:
            before = tuple(pair for pair in self._ends if pair[1] > last)
            self._ends = (*before, (link.sequence, last))
        if chunk.kind == "snapshot" or last is not None:
            self._sequence, self._id = link.sequence, own_id
        elif link.sequence:  # bare
            self._sequence, self._id = link.sequence - 1, link.previous

    def check_saved(self, watermark: int, changed: bool) -> None:
        """Raises StateError if the stream is not as it was behind its last chunk. changed: whether its rows are not."""
        if changed or watermark != self._watermark:
            raise StateError("state: deltas go on from what was saved, and the stream has changed since")

    def follow(self, chunks: list[Chunk]) -> None:
        """Goes on behind chunks. Raises StateError unless they go together, and on from here.

        Of a stream behind no chunk, the first one may be a snapshot, or any delta if what came before it is not needed.
        """
        first = self.fresh
        for i, chunk in enumerate(chunks):
            link, where = _link(chunk), f"chunk {i + 1} of {len(chunks)}"
            if i or not first:
                self._check_next(chunk, where)
            if link.sequence:
                self._check_times(chunk, where)
            self._take(chunk, chunk.id)
        if first and chunks:
            self._check_beginning(chunks[0], chunks[-1])

    def _check_next(self, chunk: Chunk, where: str) -> None:
        link, number = _link(chunk), self._sequence + 1
        if chunk.kind == "snapshot":
            raise StateError(f"state: {where} is a snapshot, which only a stream without state takes, and first")
        if not link.sequence:
            if self._sequence:
                raise StateError(f"state: {where} is of format 4, and does not go on from one of a later format")
            return
        if link.sequence > number:
            raise StateError(
                f"state: {where} is delta {link.sequence}, expected delta {number}: what is between is missing"
            )
        if link.sequence < number:
            raise StateError(f"state: {where} is delta {link.sequence}, expected delta {number}: it was taken before")
        if link.previous != self._id:
            raise StateError(
                f"state: {where}, delta {number}, goes on from chunk {link.previous or 'none'}, expected "
                f"{self._id or 'none'}: it is of another stream"
            )

    def _check_times(self, chunk: Chunk, where: str) -> None:
        """Raises StateError where time goes back, which tells a bare delta of another stream."""
        for name, known in (("watermark", self._watermark), ("newest", self._newest)):
            found = chunk.meta.get(name, MIN_TIMESTAMP)
            if found < known:
                raise StateError(f"state: {where} has {name}={found}, after {name}={known}: it is of another stream")

    def _check_beginning(self, first: Chunk, last: Chunk) -> None:
        link, since = _link(first), _link(last).since
        left = [end for number, end in link.ends if number >= since]
        if link.sequence > since and left and left[0] - 1 > last.meta["cleaned"]:
            raise StateError(
                f"state: the first chunk is delta {link.sequence}, expected delta {since} or a snapshot: what came "
                f"before is needed"
            )


def _newest(ends: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Returns the last pairs, as many as a chunk takes.

    Ends go down from pair to pair, so those left out end last: the oldest pair that is kept takes their end.
    """
    if len(ends) <= _MOST_ENDS:
        return ends
    (number, _), *others = ends[-_MOST_ENDS:]
    return ((number, max(end for _, end in ends[:-_MOST_ENDS])), *others)


def _link(chunk: Chunk) -> Link:
    if chunk.link is None:
        raise StateError("state: the chunk has no place in a chain")
    return chunk.link

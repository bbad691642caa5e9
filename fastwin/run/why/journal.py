"""The journal of a stream's decisions: what fired and by what, what was late, what moved the watermark. Bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from fastwin.spec.joinending import Side
from fastwin.times import MIN_TIMESTAMP

__all__ = ["Decision", "Fired", "Journal", "Late", "Moved"]


@dataclass(frozen=True, slots=True)
class Moved:
    """The watermark has moved. call: the number of the stream's call. before, watermark: ms.

    by: an element, the caller, the wait for elements that was over, or state that was restored. key, time: of the
    element. side: of a join, which input the element is of.
    """

    call: int
    before: int
    watermark: int
    by: Literal["element", "caller", "idle", "restore"]
    key: Any = None
    time: int | None = None
    side: Side = None


@dataclass(frozen=True, slots=True)
class Fired:
    """A window has fired. start, end: ms, None for a global window. watermark, processing_time: as they stood.

    by: an element, the watermark, or the clock. name: of several windows. moved: what had moved the watermark, if that
    fired it.
    """

    call: int
    key: Any
    start: int | None
    end: int | None
    name: str | None
    by: Literal["element", "watermark", "clock"]
    watermark: int
    processing_time: int
    moved: Moved | None = None


@dataclass(frozen=True, slots=True)
class Late:
    """An element came too late. time: of the element, ms. watermark: as it stood. moved: what had brought it there.

    side: of a join, which input it is of.
    """

    call: int
    key: Any
    time: int
    watermark: int
    moved: Moved | None
    side: Side = None


Decision = Moved | Fired | Late


class Journal:
    """The last decisions of a stream, at most so many."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.calls = 0
        self.noted = 0
        """How many decisions have been noted since the stream was opened."""
        self._decisions: deque[Decision] = deque(maxlen=most)
        self._moved: Moved | None = None

    def note(self, decision: Decision) -> None:
        """Adds a decision; the oldest one may go."""
        if isinstance(decision, Moved):
            self._moved = decision if decision.watermark > MIN_TIMESTAMP else None
        self.noted += 1
        self._decisions.append(decision)

    def skip(self, count: int) -> None:
        """Counts decisions that would be gone at once."""
        self.noted += count

    @property
    def moved(self) -> Moved | None:
        """What brought the watermark to where it is; None: nothing has."""
        return self._moved

    @property
    def lost(self) -> int:
        """How many decisions are gone."""
        return self.noted - len(self._decisions)

    @property
    def first_call(self) -> int | None:
        """The number of the call that the journal begins at; None: there is no decision yet."""
        return self._decisions[0].call if self._decisions else None

    def mover_past(self, watermark: int, late: Late) -> Moved | None:
        """Returns what first brought the watermark to at least so far since state was restored, before an element came
        late; None: that is lost, or nothing did."""
        found = None
        for one in self._decisions:
            if one is late:
                break
            if not isinstance(one, Moved):
                continue
            if one.by == "restore":
                found = None
            if found is None and one.before < watermark <= one.watermark:
                found = one
        return found

    def of(self, kind: type) -> Iterator[Any]:
        """Yields the decisions of a kind, the oldest first."""
        return (one for one in self._decisions if isinstance(one, kind))

    def __len__(self) -> int:
        return len(self._decisions)

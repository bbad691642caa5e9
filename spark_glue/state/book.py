"""The book of a delta log: which deltas are needed, when rows are to be repeated, what can be forgotten.

A log has no snapshots. Once it holds several times as many rows as there are, each delta repeats the unchanged rows of
one key group as well; when all key groups have had their turn, the deltas before that round hold nothing that is not
repeated. So long as rounds begin for the rows and not for the number of deltas, ``1 / (_LOGGED_TIMES - 1)`` of what
changes is written once more.
"""

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from fastwin import MAX_TIMESTAMP, MIN_TIMESTAMP
from fastwin.state.refresh import MOST_TURNS, Refresh

__all__ = ["MOST_BEHIND", "DeltaLog", "Entry"]

_LOGGED_TIMES = 4  # a round begins when a log holds so many times the rows that there are,
_SLACK_ROWS = 10_000  # and these: a log of few rows is not worth a round
# It begins at 32 to 512 deltas, too: each takes room in the head, and a read when the state is loaded.
_LEAST_LIMIT, _MOST_LIMIT = 32, 512
MOST_BEHIND = 16
"""So many states behind, a copy may still go on to the newest one; further behind, all has to be loaded."""


@dataclass(frozen=True)
class Entry:
    """A delta as the book knows it: ``chunks`` values in the store, from number ``first`` on, of ``size`` bytes in all.

    token: tells it from all others. rows: of state. last_end: after which none of them counts; None: not known.
    """

    first: int
    chunks: int
    size: int
    rows: int
    last_end: int | None
    token: str

    @classmethod
    def of(cls, first: int, chunks: int, size: int, token: str, meta: dict[str, Any]) -> "Entry":
        """Returns the entry of a delta with this meta."""
        last = meta.get("last_end", MAX_TIMESTAMP)
        last_end = None if last == MAX_TIMESTAMP else MIN_TIMESTAMP if last is None else last
        return cls(first, chunks, size, meta["rows"], last_end, token)

    @property
    def bare(self) -> bool:
        """Whether it only brings the watermark on, as the next delta does."""
        return self.last_end == MIN_TIMESTAMP

    def numbers(self) -> range:
        """Returns the numbers of its chunks."""
        return range(self.first, self.first + self.chunks)


_COLUMNS = [field.name for field in fields(Entry)][1:]  # the first is told by the gap to the one before


@dataclass(frozen=True)
class DeltaLog:
    """The deltas to load, oldest first, and the round that is on.

    turn: how many key groups have been repeated in this round; None: none is on. since: number of its first chunk.
    recent: the last states, by the token and the last chunk's number of the delta that led to them.
    """

    entries: tuple[Entry, ...] = ()
    turn: int | None = None
    since: int = 0
    recent: tuple[tuple[str, int], ...] = ()

    @property
    def token(self) -> str | None:
        """The token of the last delta, which tells the state; None: there is no state."""
        return self.entries[-1].token if self.entries else None

    @property
    def next_chunk(self) -> int:
        """The number that the next delta begins with."""
        return self.entries[-1].numbers().stop if self.entries else 0

    @property
    def size(self) -> int:
        """Bytes of all deltas."""
        return sum(entry.size for entry in self.entries)

    def refresh(self, state_rows: int, key_groups: int, groups: Sequence[int]) -> Refresh | None:
        """Returns what the next delta is to repeat; None: nothing.

        state_rows: how many rows there are. key_groups: into how many all keys are divided. groups: those of this log.
        """
        if self.turn is not None:
            return Refresh(key_groups, tuple(groups), self.turn)
        logged = sum(entry.rows for entry in self.entries)
        # What many entries cost in each head weighs as much as repeating all rows does at about the root of these. A
        # round may leave one for each of its turns, and is not to begin again at once.
        least = 2 * min(len(groups), MOST_TURNS)
        most = max(min(max(_LEAST_LIMIT, math.isqrt(state_rows)), _MOST_LIMIT), least)
        if logged > _LOGGED_TIMES * state_rows + _SLACK_ROWS or len(self.entries) >= most:
            return Refresh(key_groups, tuple(groups))
        return None

    def append(
        self, entry: Entry, refreshed: int, groups: int, cleaned_until: int | None
    ) -> tuple["DeltaLog", list[Entry]]:
        """Returns the log with a delta more, and the deltas that are not needed any longer.

        refreshed: how many groups it repeats, out of ``groups``. cleaned_until: windows with an end up to here are
        cleaned; None: none is.
        """
        since, turn = (entry.first, 0) if self.turn is None else (self.since, self.turn)
        turn += refreshed
        done = turn >= groups
        kept: list[Entry] = []
        gone: list[Entry] = []
        cut = 0
        for old in self.entries:
            over = old.last_end is not None and cleaned_until is not None and old.last_end <= cleaned_until
            # Only the beginning of the log can go: each delta says which one it goes on from.
            if old.bare or (done and old.first < since) or (over and not kept):
                gone.append(old)
                cut = cut if old.bare else old.numbers().stop
            else:
                kept.append(old)
        on = turn > 0 and not done
        # Who lacks some of what is forgotten must load all.
        known = [(token, at) for token, at in self.recent if at >= cut]
        recent = (*known, (entry.token, entry.numbers().stop))[-MOST_BEHIND:]
        return DeltaLog((*kept, entry), turn if on else None, since if on else 0, recent), gone

    def to_json(self) -> dict[str, Any]:
        """Returns the log as plain values, entries column by column, which compresses better."""
        stops = [0, *(entry.numbers().stop for entry in self.entries)]
        gaps = [entry.first - stop for entry, stop in zip(self.entries, stops, strict=False)]
        columns = [[getattr(entry, name) for entry in self.entries] for name in _COLUMNS]
        return {"entries": [gaps, *columns], "turn": self.turn, "since": self.since, "recent": self.recent}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "DeltaLog":
        """Returns the log that ``to_json`` gave."""
        entries, stop = [], 0
        for gap, *row in zip(*values["entries"], strict=True):
            entries.append(Entry(stop + gap, *row))
            stop = entries[-1].numbers().stop
        recent = tuple((token, at) for token, at in values["recent"])
        return cls(tuple(entries), values["turn"], values["since"], recent)

    def since_one_of(self, tokens: Container[str]) -> Iterator[tuple[str, tuple[Entry, ...]]]:
        """Yields, latest first, each of these tokens that a recent state has, with the deltas that came after it.

        Only bare deltas are gone from between.
        """
        for token, at in reversed(self.recent):
            if token in tokens:
                yield token, tuple(entry for entry in self.entries if entry.first >= at)

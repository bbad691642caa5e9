"""What goes into a store and comes out of it, before it is a table."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from fastwin.errors import SpecError
from fastwin.store.cells import Cell
from fastwin.store.layout import Layout
from fastwin.store.spans import LAST_MS, earliest, latest

__all__ = [
    "HISTORY",
    "STAMP_CHARACTERS",
    "Block",
    "Meta",
    "Revision",
    "Scan",
    "Step",
    "TooManyBytesError",
    "Written",
    "check_results",
    "new_identity",
    "windows_at_once",
]

HISTORY = 64
"""Versions whose stamps a store remembers."""

STAMP_CHARACTERS = 12

_MOST_BYTES = 2**30

Revision = tuple[int, int]
"""The epoch of a run and the number of a batch in it; a lower one never overwrites a higher one."""


@dataclass(frozen=True)
class Meta:
    """What a store knows of itself.

    watermark: up to where panes are complete, ms, exclusive. since: from where on they are, ms: the start of the first
    pane that was written and is still kept, or where a loss ended that was accepted. version: counts the batches.
    identity: a random text, as old as the store. history: the stamp of each of the last versions, newest last.
    lost: whether a loss was accepted that ends with the next batch that moves the watermark.
    """

    layout: Layout
    watermark: int | None
    since: int | None
    version: int
    identity: str = ""
    history: tuple[str, ...] = ()
    lost: bool = False

    @property
    def stamp(self) -> tuple[str, int, str]:
        """What no other store and no other version has: not even the same version, written once more."""
        return self.identity, self.version, self.history[-1] if self.history else ""

    def follows(self, earlier: Meta) -> bool:
        """Returns whether this is the same store, and has all batches that it had when it said ``earlier``."""
        age = self.version - earlier.version
        if age < 0 or self.identity != (earlier.identity or self.identity):
            return False
        return not earlier.history or age >= len(self.history) or self.history[-1 - age] == earlier.history[-1]

    def changed_since(self, earlier: Meta) -> int | None:
        """Returns the start of the first pane that may be another one than when this store said ``earlier``, ms.

        LAST_MS: none is. None: it went back, is another store, or that was too long ago.
        """
        age = self.version - earlier.version
        if self.identity != earlier.identity or not 0 <= age < len(self.history) or not earlier.history:
            return None
        if self.history[-1 - age] != earlier.history[-1]:
            return None
        changed = LAST_MS
        for stamp in self.history[len(self.history) - age :]:
            _, told, first = stamp.partition("@")
            if not told:  # written by an earlier fastwin
                return None
            changed = min(changed, int(first)) if first else changed
        return changed

    @staticmethod
    def of(
        layout: Layout,
        watermark: int | None,
        since: int | None,
        complete_from: int | None,
        version: int,
        identity: str,
        history: str,
        lost: bool = False,
    ) -> Meta:
        """Returns the meta of what a store keeps; a watermark within a pane counts as the pane's start."""
        if watermark is not None:
            watermark = layout.fine.start_of(watermark)
        return Meta(layout, watermark, latest(since, complete_from), version, identity, tuple(history.split()), lost)


@dataclass(frozen=True)
class Step:
    """How a store's meta moves at the end of a batch.

    watermark: ms, or None if the batch says nothing of it; a store that is further stays there. first: the start of the
    first pane of the batch, ms. floor: what is older goes, ms. mark: the name of a query, and the batch that it has now
    put whole. complete_from: where a loss ends, ms. lost: True: one was accepted whose end is not known yet; False: the
    one that the store told of ends here; None: neither, so what others have accepted meanwhile stays.
    identity: of the store that the batch was put into, '' if it has none yet. process: which process of the store's had
    the begin of the batch; None if that does not matter. changed: the start of the first pane that was put, also by
    attempts of before that failed, ms; None: none was.
    """

    watermark: int | None = None
    first: int | None = None
    floor: int | None = None
    mark: tuple[str, int] | None = None
    complete_from: int | None = None
    lost: bool | None = None
    identity: str = ""
    process: str | None = None
    changed: int | None = None
    token: str = field(default_factory=lambda: secrets.token_hex(STAMP_CHARACTERS // 2))

    @property
    def stamp(self) -> str:
        """What the new version has in the store's history: a random text, and what the batch changed."""
        return f"{self.token}@{'' if self.changed is None else self.changed}"


@dataclass(frozen=True)
class Written:
    """What ``put`` has done: panes stored; left alone as a newer revision is there; left out as older than retention;
    left out as their key is too long or not in UTF-8, and how the text of such a key begins; and in how many values
    of ``Min`` and ``Max`` bytes that are no UTF-8 were replaced by U+FFFD.

    first, last: starts of the first and the last pane that was not left out, ms; None: all were. They do not count when
    two of these are compared.
    """

    stored: int = 0
    outdated: int = 0
    expired: int = 0
    refused: int = 0
    refused_key: str = ""
    replaced: int = 0
    first: int | None = field(default=None, repr=False, compare=False)
    last: int | None = field(default=None, repr=False, compare=False)

    def __add__(self, other: Written) -> Written:
        return Written(
            self.stored + other.stored,
            self.outdated + other.outdated,
            self.expired + other.expired,
            self.refused + other.refused,
            self.refused_key or other.refused_key,
            self.replaced + other.replaced,
            earliest(self.first, other.first),
            latest(self.last, other.last),
        )


@dataclass(frozen=True)
class Block:
    """The panes of a key that go into one coarse pane: ``(start, cells)`` each."""

    key: str
    start: int
    panes: list[tuple[int, list[Cell]]]


class TooManyBytesError(SpecError):
    """A question reads too many bytes of panes, or makes too many of results."""


def windows_at_once(nbytes: int) -> int:
    """Returns of how many windows states are merged at a time; at least 1.

    nbytes: of the states of all panes that were read, and no window has more.
    """
    return max(1, _MOST_BYTES // 4 // max(1, nbytes))


def check_results(nbytes: int, windows: int) -> None:
    """Raises TooManyBytesError where results have too many bytes; windows: of how many they are."""
    if nbytes > _MOST_BYTES:
        raise TooManyBytesError(
            f"store: at most {_MOST_BYTES:,} bytes of results in one go, got {nbytes:,} in the first {windows:,} "
            f"windows; ask for fewer keys or less time"
        )


@dataclass
class Scan:
    """Panes as they were read: the index of the key, the start, and the cells of each field.

    nbytes, values: of the cells that were counted.
    """

    groups: list[int]
    times: list[int]
    cells: list[list[Cell]]
    nbytes: int = 0
    values: int = 0

    @classmethod
    def empty(cls, fields: int) -> Scan:
        """Returns a scan without panes."""
        return cls([], [], [[] for _ in range(fields)])

    def add(self, group: int, start: int, cells: Sequence[Cell]) -> None:
        """Adds a pane."""
        self.groups.append(group)
        self.times.append(start)
        for column, cell in zip(self.cells, cells, strict=True):
            column.append(cell)

    def count(self, cells: Sequence[Cell]) -> None:
        """Counts cells that were read, or raises TooManyBytesError where a question has read too many bytes."""
        self.nbytes += sum(map(len, filter(None, cells)))
        self.values += len(cells)
        if self.nbytes > _MOST_BYTES:
            raise TooManyBytesError(
                f"store: at most {_MOST_BYTES:,} bytes of panes in one go, got {self.nbytes:,} in the first "
                f"{self.values:,} values; ask for fewer keys or less time"
            )


def new_identity() -> str:
    """Returns what tells a new store from all others."""
    return secrets.token_hex(16)

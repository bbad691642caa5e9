"""What goes into a store and comes out of it, before it is a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastwin.store.cells import Cell
from fastwin.store.layout import Layout

__all__ = ["Block", "Meta", "Revision", "Scan", "Written"]

Revision = tuple[int, int]
"""The epoch of a run and the number of a batch in it; a lower one never overwrites a higher one."""


@dataclass(frozen=True)
class Meta:
    """What a store knows of itself.

    watermark: up to where panes are complete, ms, exclusive. since: the start of the first pane that was written and is
    still kept, ms. version: changes with every write.
    """

    layout: Layout
    watermark: int | None
    since: int | None
    version: int


@dataclass(frozen=True)
class Written:
    """What ``put`` has done: panes stored; left alone as a newer revision is there; dropped as older than retention."""

    stored: int = 0
    outdated: int = 0
    expired: int = 0

    def __add__(self, other: Written) -> Written:
        return Written(self.stored + other.stored, self.outdated + other.outdated, self.expired + other.expired)


@dataclass(frozen=True)
class Block:
    """The panes of a key that go into one coarse pane: ``(start, cells)`` each."""

    key: str
    start: int
    panes: list[tuple[int, list[Cell]]]


@dataclass
class Scan:
    """Panes as they were read: the index of the key, the start, and the cells of each field."""

    groups: list[int]
    times: list[int]
    cells: list[list[Cell]]

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

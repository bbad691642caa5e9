"""Panes on their way into Redis: what is there of a block is read, merged here, and written if it still is so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastwin.errors import StoreError
from fastwin.store.cells import Cell, from_cells
from fastwin.store.records import Block, Revision
from fastwin.store.redisfaults import foreign
from fastwin.store.redisnames import EPOCH, STAMP, Names, Places
from fastwin.store.rollup import rolled_up

__all__ = ["Change", "Found", "coarse_cells", "grouped"]

Pane = tuple[int, list[Cell]]

_REVISION = re.compile(rb"\d+(\.\d+)?")


def grouped(places: Places, blocks: Sequence[Block]) -> list[Block]:
    """Returns blocks as large as what is written as one."""
    if places.coarse is not None:
        return list(blocks)
    units: dict[tuple[str, int], list[Pane]] = {}
    for block in blocks:
        units.setdefault((block.key, places.unit.start_of(block.start)), []).extend(block.panes)
    return [Block(key, start, panes) for (key, start), panes in units.items()]


@dataclass
class Found:
    """What was read of a block: its shelves by start, and the hashes beside them by start and field.

    prefix: of the key's names. shown: the server's address, for errors.
    """

    places: Places
    prefix: str
    shown: str
    shelves: dict[int, dict[bytes, bytes]] = field(default_factory=dict)
    beside: dict[tuple[int, int], dict[bytes, bytes]] = field(default_factory=dict)

    @classmethod
    def ask(cls, pipeline: Any, places: Places, prefix: str, block: Block) -> list[tuple[int, int]]:
        """Adds the commands that read a block; returns what each reads: start of a shelf, and field, -1 for numbers."""
        wanted = []
        for shelf in places.shelves(block.start):
            name = prefix + places.fine.name(shelf)
            pipeline.hgetall(name)
            wanted.append((shelf, -1))
            if places.coarse is not None:
                for i in places.beside(places.fine):
                    if i not in places.sketches:
                        pipeline.hgetall(f"{name}:{places.fields[i]}")
                        wanted.append((shelf, i))
        return wanted

    @property
    def nbytes(self) -> int:
        """How many bytes of values are beside the shelves."""
        return sum(sum(map(len, values.values())) for values in self.beside.values())

    def add(self, wanted: tuple[int, int], values: dict[bytes, bytes]) -> None:
        """Adds an answer. Raises StoreError for a shelf with a field that is none of ours."""
        shelf, i = wanted
        if i < 0:
            name = _foreign_field(values)
            if name is not None:
                raise foreign(self.shown, f"{self.prefix}{self.places.fine.name(shelf)} {name}")
            self.shelves[shelf] = values
        else:
            self.beside[wanted] = values


def _foreign_field(shelf: dict[bytes, bytes]) -> str | None:
    """Returns the first field of a shelf, beside numbers, that does not hold what it should; None: all do."""
    if not shelf:
        return None
    for name in (STAMP, EPOCH):
        if not shelf.get(name.encode(), b"").isdigit():
            return name
    odd = (name for name, value in shelf.items() if name.isdigit() and not _REVISION.fullmatch(value))
    return next((name.decode() for name in odd), None)


class Change:
    """What to write of a block: the panes that have no newer revision there."""

    def __init__(self, places: Places, block: Block, found: Found, revision: Revision) -> None:
        self.places, self.block, self.found = places, block, found
        self._revision = revision
        self.panes: list[Pane] = []
        self._held: dict[int, list[tuple[int, list[Cell]]]] = {}  # the same by shelf and place
        self.outdated = 0
        self._fresh = True  # whether none of the panes is there already
        rack = places.fine
        grid, width = rack.grid, rack.level.width_ms
        for start, cells in block.panes:
            shelf = grid.start_of(start)
            place = (start - shelf) // width
            known = self._known(shelf, place)
            if known is not None and known > revision:
                self.outdated += 1
                continue
            self.panes.append((start, cells))
            self._held.setdefault(shelf, []).append((place, cells))
            self._fresh = self._fresh and known is None

    def _known(self, at: int, place: int) -> Revision | None:
        shelf = self.found.shelves[at]
        text = shelf.get(b"%d" % place)
        if text is None:
            return None
        epoch, point, batch = text.rpartition(b".")
        return int(epoch if point else shelf[EPOCH.encode()]), int(batch)

    def all_panes(self, fields: Sequence[int]) -> dict[int, list[Cell]]:
        """Returns these fields of the panes of the block, as they are when it is written."""
        places, rack = self.places, self.places.fine
        panes: dict[int, list[Cell]] = {}
        for shelf, values in self.found.shelves.items():
            for place, start in enumerate(rack.level.starts(shelf, shelf + rack.grid.width_ms)):
                if b"%d" % place in values:
                    panes[start] = [
                        values.get(places.number_field(place, i).encode())
                        if places.layout.fields[i].is_number
                        else self.found.beside[shelf, i].get(b"%d" % place)
                        for i in fields
                    ]
        for start, cells in self.panes:
            panes[start] = [cells[i] for i in fields]
        return panes

    def call(self, prefix: str, coarse: Sequence[Cell] | None, ttl: int) -> tuple[list[str], list[Any]]:
        """Returns names and arguments of the script that writes.

        prefix: of the key's names. coarse: cells of the coarse pane, but for sketches; None: there is none.
        """
        names: dict[str, int] = {}

        def at(tail: str) -> int:
            return names.setdefault(prefix + tail, len(names) + 1)

        checks: list[Any] = []
        for shelf, values in self.found.shelves.items():
            checks += [at(self.places.fine.name(shelf)), STAMP, values.get(STAMP.encode(), b"")]
        steps = [*self._fine_steps(at)]
        if self.places.coarse is not None:
            assert coarse is not None
            steps += self._coarse_steps(at, coarse)
        args = [ttl, len(checks) // 3, *checks]
        for step in steps:
            args += step
        return [*names, f"{prefix}:scratch:"], args

    def _fine_steps(self, at: Any) -> Iterable[list[Any]]:
        places, rack = self.places, self.places.fine
        for shelf, panes in self._held.items():
            name = rack.name(shelf)
            found = self.found.shelves[shelf]
            epoch, batch = b"%d" % self._revision[0], b"%d" % self._revision[1]
            shared = found.get(EPOCH.encode(), epoch)  # mostly all panes are of one run: its epoch is there once
            revision = batch if shared == epoch else epoch + b"." + batch
            values: dict[str, Cell] = {STAMP: b"%d" % (int(found.get(STAMP.encode(), b"0")) + 1), EPOCH: shared}
            for place, cells in panes:
                values[str(place)] = revision
                values |= {places.number_field(place, i): cells[i] for i in places.numbers}
            yield from _hash_steps(at(name), values)
            for i in places.beside(rack):
                yield from _hash_steps(
                    at(f"{name}:{places.fields[i]}"), {str(place): cells[i] for place, cells in panes}
                )
        if rack is places.top:
            for start, cells in self.panes:
                for i in places.sketches:
                    name, cell = at(f"{rack.name(start)}:{places.fields[i]}"), cells[i]
                    yield ["X", name] if cell is None else ["S", name, cell]

    def _coarse_steps(self, at: Any, coarse: Sequence[Cell]) -> Iterable[list[Any]]:
        places, start = self.places, self.block.start
        rack = places.top
        name, place = rack.name(rack.grid.start_of(start)), rack.place(start)
        if places.numbers:
            yield from _hash_steps(at(name), {places.number_field(place, i): coarse[i] for i in places.numbers})
        for i in places.beside(rack):
            yield from _hash_steps(at(f"{name}:{places.fields[i]}"), {str(place): coarse[i]})
        for i in places.sketches:
            hashes = [at(f"{places.fine.name(shelf)}:{places.fields[i]}") for shelf in places.shelves(start)]
            new = [cells[i] for _, cells in self.panes if cells[i] is not None]
            target = at(f"{rack.name(start)}:{places.fields[i]}")
            yield ["U", target, len(hashes), *hashes, "1" if self._fresh else "", len(new), *new]


def _hash_steps(name: int, values: dict[str, Cell]) -> Iterable[list[Any]]:
    """Yields the steps that set fields of a hash, and delete those that are null."""
    pairs = [part for name, cell in values.items() if cell is not None for part in (name, cell)]
    gone = [name for name, cell in values.items() if cell is None]
    if pairs:
        yield ["H", name, len(pairs) // 2, *pairs]
    if gone:
        yield ["D", name, len(gone), *gone]


def coarse_cells(places: Places, changes: Sequence[Change], names: Names, shown: str) -> list[list[Cell] | None]:
    """Returns the cells of the coarse pane of each block, None in the places of sketches; None for one level.

    shown: the server's address, for errors. Raises as ``rolled_up``.
    """
    if places.coarse is None:
        return [None] * len(changes)
    some = [i for i in range(len(places.fields)) if i not in places.sketches]
    fields = [places.layout.fields[i] for i in some]
    blocks = [change.all_panes(some) for change in changes]
    try:
        merged = rolled_up(fields, blocks)
    except StoreError:
        for change, panes in zip(changes, blocks, strict=True):
            _check_cells(places, change.block.key, panes, some, names, shown)
        raise
    found: list[list[Cell] | None] = []
    for cells in merged:
        row: list[Cell] = [None] * len(places.fields)
        for i, cell in zip(some, cells, strict=True):
            row[i] = cell
        found.append(row)
    return found


def _check_cells(
    places: Places, key: str, panes: dict[int, list[Cell]], some: Sequence[int], names: Names, shown: str
) -> None:
    """Raises StoreError that names the first cell that is no value of its field."""
    for start, cells in panes.items():
        for i, cell in zip(some, cells, strict=True):
            one, rack = places.layout.fields[i], places.fine
            try:
                from_cells([cell], one.kind, one.name)
            except StoreError:
                shelf = names.of_key(key) + rack.name(rack.grid.start_of(start))
                place = rack.place(start)
                where = f"{shelf} {places.number_field(place, i)}" if one.is_number else f"{shelf}:{one.name} {place}"
                raise foreign(shown, where) from None

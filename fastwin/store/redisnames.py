"""Names in a Redis store, and which panes of a key share one.

Panes lie in *shelves*: hashes of a key, for some panes in a row. A number is in the shelf itself, anything longer in
a hash of its field beside it, and the sketch of a widest pane is a string of its own, for any client's PFCOUNT.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from fastwin.store.layout import Layout
from fastwin.store.spans import Level, Span, time_text
from fastwin.times import format_ms

__all__ = ["EPOCH", "STAMP", "Names", "Places", "Rack", "Read", "places_of"]

STAMP, EPOCH = "#", "@"
"""Fields of a shelf: what changes with each write, and the epoch of revisions that are a batch alone."""

# Redis packs a hash of up to 128 entries, by default, into one allocation.
_MOST_ENTRIES = 120
_MOST_PANES = 60
_COARSE_PANES = (24, 12, 8, 6, 4, 3, 2)
_LONE_PANES = 8  # where one level is all: shelves are dropped whole, so they should not outlive retention for long


class Names:
    """The names of a namespace. one_slot: whether all have the same hash tag; else those of a key have one."""

    def __init__(self, namespace: str, one_slot: bool = False) -> None:
        self._namespace = namespace
        self.one_slot = one_slot
        self.meta = self.own("meta")
        self.keys = self.own("keys")
        self.blocks = self.own("blocks")
        self.queries = self.own("queries")
        self.all = f"{{{namespace}}}:* and {{{namespace}:*"

    def own(self, what: str) -> str:
        """Returns a name that belongs to no key."""
        return f"{{{self._namespace}}}:{what}"

    def members(self, start: int) -> str:
        """Returns the name of the set of keys that have panes in the block of this start, ms."""
        return self.own(f"block:{time_text(start)}")

    def of_key(self, key: str) -> str:
        """Returns what the names of a key begin with."""
        return f"{{{self._namespace}}}:{key}" if self.one_slot else f"{{{self._namespace}:{key}}}"


@dataclass(frozen=True)
class Rack:
    """The shelves for the panes of one level: ``panes`` in each."""

    level: Level
    panes: int

    @cached_property
    def grid(self) -> Level:
        """Where shelves start."""
        return Level(self.level.width_ms * self.panes, self.level.offset_ms)

    def name(self, start: int) -> str:
        """Returns a name, behind that of the key: of the shelf, or of the pane's own, that starts there, ms."""
        return f":{format_ms(self.level.width_ms).replace(' ', '')}:{time_text(start)}"

    def place(self, start: int) -> int:
        """Returns the number of a pane in its shelf."""
        return (start - self.grid.start_of(start)) // self.level.width_ms


@dataclass(frozen=True)
class Read:
    """A command that reads: fields of the hash ``name``, or strings where that is None. Names are behind the key's.

    cells: for each of what is asked, the number of the pane and of its field.
    """

    name: str | None
    asked: tuple[str, ...]
    cells: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Places:
    """Where a layout's panes are. fine, coarse: the levels; unit: what is written, and dropped, as one."""

    layout: Layout
    fine: Rack
    coarse: Rack | None
    unit: Level

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(field.name for field in self.layout.fields)

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The fields that lie in the shelf."""
        return tuple(i for i, field in enumerate(self.layout.fields) if field.is_number)

    @cached_property
    def sketches(self) -> tuple[int, ...]:
        """The fields that are Redis's own sketches."""
        return tuple(i for i, field in enumerate(self.layout.fields) if field.merge == "union")

    @cached_property
    def _beside(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        apart = [i for i in range(len(self.fields)) if i not in self.numbers]
        return tuple(apart), tuple(i for i in apart if i not in self.sketches)

    def beside(self, rack: Rack) -> tuple[int, ...]:
        """Returns the fields that lie in a hash of their own."""
        return self._beside[rack is self.top]

    @property
    def top(self) -> Rack:
        """The widest panes, whose sketches are strings."""
        return self.coarse or self.fine

    def shelves(self, start: int) -> range:
        """Returns the starts of the shelves with the panes of a unit."""
        return self.fine.grid.starts(start, start + self.unit.width_ms)

    def number_field(self, place: int, field: int) -> str:
        """Returns the name in a shelf of a pane's number; its revision has the place alone."""
        return f"{place}:{self.fields[field]}"

    def reads(self, spans: Sequence[Span]) -> tuple[list[int], list[Read]]:
        """Returns the starts of the panes in spans, and the commands that read them for a key."""
        starts: list[int] = []
        found: list[Read] = []
        for span in spans:
            rack = (self.fine, self.coarse or self.fine)[span.level]
            first = len(starts)
            panes = list(enumerate(rack.level.starts(span.start, span.end), first))
            starts += [start for _, start in panes]
            found += self._of_rack(rack, panes)
        return starts, found

    def _of_rack(self, rack: Rack, panes: list[tuple[int, int]]) -> Iterable[Read]:
        shelves: dict[int, list[tuple[int, int]]] = {}
        for number, start in panes:
            shelves.setdefault(rack.grid.start_of(start), []).append((number, rack.place(start)))
        for shelf, held in shelves.items():
            name = rack.name(shelf)
            if self.numbers:
                asked = tuple(self.number_field(place, i) for _, place in held for i in self.numbers)
                yield Read(name, asked, tuple((number, i) for number, _ in held for i in self.numbers))
            for i in self.beside(rack):
                asked = tuple(str(place) for _, place in held)
                yield Read(f"{name}:{self.fields[i]}", asked, tuple((number, i) for number, _ in held))
        if rack is self.top and self.sketches:
            asked = tuple(f"{rack.name(start)}:{self.fields[i]}" for _, start in panes for i in self.sketches)
            yield Read(None, asked, tuple((number, i) for number, _ in panes for i in self.sketches))

    def drops(self, start: int) -> tuple[list[str], list[tuple[str, list[str]]]]:
        """Returns what goes with a unit: whole names, and hashes with the fields to delete. Names are behind the
        key's."""
        whole, parts = [], []
        for shelf in self.shelves(start):
            name = self.fine.name(shelf)
            whole += [name, *(f"{name}:{self.fields[i]}" for i in self.beside(self.fine))]
        for pane in self.top.level.starts(start, start + self.unit.width_ms):
            whole += [f"{self.top.name(pane)}:{self.fields[i]}" for i in self.sketches]
        if self.coarse is not None:
            name, place = self.coarse.name(self.coarse.grid.start_of(start)), self.coarse.place(start)
            if self.numbers:
                parts.append((name, [self.number_field(place, i) for i in self.numbers]))
            parts += [(f"{name}:{self.fields[i]}", [str(place)]) for i in self.beside(self.coarse)]
        return whole, parts


@lru_cache(maxsize=64)
def places_of(layout: Layout) -> Places:
    """Returns where a layout's panes are."""
    numbers = sum(field.is_number for field in layout.fields)
    most = max(1, min(_MOST_PANES, _MOST_ENTRIES // (numbers + 1)))
    if layout.coarse is None:
        fine = Rack(layout.fine, min(most, _LONE_PANES))
        return Places(layout, fine, None, fine.grid)
    ratio = layout.coarse.width_ms // layout.pane_ms
    fine = Rack(layout.fine, max(n for n in range(1, min(most, ratio) + 1) if ratio % n == 0))
    together = next((n for n in _COARSE_PANES if n * numbers <= _MOST_ENTRIES), 1)
    return Places(layout, fine, Rack(layout.coarse, together), layout.coarse)

"""Partial results: what a task far from the state makes of its elements, for the operator that has the state.

To a feeder nothing is late, and nothing fires. What it makes, rows of accumulators by (key, slice) or (key, session)
with the number of elements in each, goes to the operator proper, whose ``merge()`` takes it as one batch of elements
that have no order among each other.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fastwin.aggregates.numbers import Count
from fastwin.columns.keys import KeyCodec
from fastwin.core.keys.keyorder import KeyOrder
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.rows.rowstore import HEAD_CELLS as PANE_CELLS
from fastwin.core.rows.rowstore import MEMBER_BITS
from fastwin.core.sessions.scan import END_CELL, sessions_of_keys
from fastwin.core.sessions.sessiontable import HEAD_CELLS
from fastwin.operators.aligned.operator import AlignedOperator
from fastwin.operators.aligned.slicing import Slicing
from fastwin.operators.batch import Batch
from fastwin.operators.config import Config, ResultColumn
from fastwin.operators.session.operator import PART_ELEMENTS
from fastwin.state.order import START_CELL
from fastwin.state.rows import key_rows, row_cells, save_rows

__all__ = ["AlignedFeeder", "Feeder", "Partial", "SessionFeeder", "can_count"]

_START = {"start": START_CELL}


def can_count(config: Config) -> bool:
    """Whether there is room for one more aggregate, which counts the elements."""
    return len(config.results) < MEMBER_BITS


@dataclass(frozen=True)
class Partial:
    """The rows of one part of the keys.

    part: its number. elements: how many have gone into the rows. chunk: for merge().
    """

    part: int
    elements: int
    chunk: bytes


class Feeder(Protocol):
    """Makes partial results. Made for the elements of one task, and used up by ``partials()``."""

    at_once: ClassVar[bool]
    """Whether it takes elements only once, so that it should get many."""

    def add(self, batch: Batch) -> None:
        """Takes elements. Raises RuntimeError if it takes them only once and has some."""

    @property
    def rows(self) -> int:
        """Rows of partial results held."""

    @property
    def nbytes(self) -> int:
        """Bytes held, about."""

    def partials(self, whole: int | None = None, most: int = 1) -> list[Partial]:
        """Returns all rows, divided by their keys.

        whole: a part is one chunk as long as no chunk gets more bytes than this; None: however many they are.
        most: of about how many bytes the chunks are otherwise. The rows of a key stay in one, however many they are:
        those of a later chunk would count as arrived later, whichever came first.
        """


def _counting(config: Config) -> Config:
    """Returns the configuration with a count of elements behind the other aggregates."""
    return replace(config, results=(*config.results, ResultColumn("", Count(), (), ())))


class _Parts:
    """How rows are divided: those of a key in key group ``i`` of ``groups`` belong to part ``i % parts``."""

    def __init__(self, config: Config, groups: int, parts: int) -> None:
        self._config, self._groups, self.count = config, groups, parts

    def of_keys(self, keys: KeyTable, pieces: int = 1) -> NDArray[np.uint16]:
        """Returns the part of each key, by its id, times ``pieces``, plus the piece of the part that the key is in."""
        ids = keys.ids()
        part_of = np.zeros(keys.top, dtype=np.uint16)
        groups = KeyCodec.groups(keys, ids, self._groups * pieces)  # their key group, modulo that of all key groups
        part_of[ids] = groups % self._groups % self.count * pieces + groups // self._groups
        return part_of

    def pieces(self, nbytes: int, whole: int | None, most: int) -> int:
        """Returns into how many pieces a part of so many bytes is to be divided; ``of_keys`` can number so many."""
        if whole is None or nbytes <= whole:
            return 1
        return max(1, min(-(-nbytes // most), (1 << 16) // self.count, (1 << 31) // self._groups - 1))

    def partial(self, part: int, keys: pa.Table, rows: pa.Table) -> Partial:
        """Returns the rows of a part; their last column counts the elements."""
        rows = rows.rename_columns([*rows.column_names[:-1], "elements"])
        chunk = self._config.encode_partial({"keys": keys, "rows": rows})
        return Partial(part, pc.sum(rows["elements"]).as_py(), chunk)


class AlignedFeeder(AlignedOperator):
    """Makes partial panes. No window may leave a gap to the next one: whether an element in it is late is not known.

    groups, parts: key group ``i`` of ``groups`` is in part ``i % parts``.
    """

    at_once: ClassVar[bool] = False

    def __init__(self, config: Config, slicing: Slicing, groups: int, parts: int) -> None:
        super().__init__(_counting(config), slicing)
        self._parts = _Parts(config, groups, parts)

    def add(self, batch: Batch) -> None:
        """Takes elements."""
        self.process(batch)

    @property
    def rows(self) -> int:
        """Rows of partial results held."""
        return self.state_rows

    @property
    def nbytes(self) -> int:
        """Bytes held, about."""
        return self.state_bytes

    def partials(self, whole: int | None = None, most: int = 1) -> list[Partial]:
        """Returns all rows, divided by their keys. whole, most: see Feeder."""
        found = self._divided(1)
        largest = max((len(one.chunk) for one in found), default=0)
        pieces = self._parts.pieces(largest, whole, most)
        return found if pieces == 1 else self._divided(pieces)

    def _divided(self, pieces: int) -> list[Partial]:
        """Returns all rows, each part in so many pieces."""
        rows, slots = self._panes.rows, self._panes.rows.slots()
        part = self._parts.of_keys(self._keys, pieces)[rows.keys(slots)]
        slots = slots[np.argsort(part, kind="stable")]  # a radix sort for 16 bits
        ends = np.cumsum(np.bincount(part)).tolist()
        shared = self._config.codec, self._keys, self._accumulators
        return [
            self._parts.partial(number // pieces, **save_rows(*shared, rows, slots[begin:end], _START, PANE_CELLS))
            for number, (begin, end) in enumerate(pairwise([0, *ends]))
            if end > begin
        ]


class SessionFeeder:
    """Makes partial sessions of elements put in order by part and key.

    groups, parts: key group ``i`` of ``groups`` is in part ``i % parts``.
    """

    at_once: ClassVar[bool] = True

    def __init__(self, config: Config, gap_ms: int, groups: int, parts: int) -> None:
        self._config = _counting(config)
        self._gap = gap_ms
        self._parts = _Parts(config, groups, parts)
        self._keys = config.codec.new_table()
        self._batch: Batch | None = None
        self._rows = 0

    def add(self, batch: Batch) -> None:
        """Takes elements, once."""
        if self._batch is not None:
            raise RuntimeError("SessionFeeder: it takes elements once")
        self._batch = batch
        ids = KeyCodec.intern(self._keys, batch.keys)
        part_of = self._parts.of_keys(self._keys)
        self._ids = np.argsort(part_of, kind="stable").astype(np.int32)  # by place: the parts one after the other
        self._ends = np.cumsum(np.bincount(part_of, minlength=self._parts.count))
        place = np.empty_like(self._ids)
        place[self._ids] = np.arange(len(place), dtype=np.int32)
        self._elements = KeyOrder(place[ids], batch.times, len(place))
        self._rows = len(self._elements.session_ends(self._gap)[0])

    @property
    def rows(self) -> int:
        """Rows of partial results held."""
        return self._rows

    @property
    def nbytes(self) -> int:
        """Bytes held, about."""
        return self._keys.nbytes + (0 if self._batch is None else 8 * (len(self._batch) + self._rows))

    def partials(self, whole: int | None = None, most: int = 1) -> list[Partial]:
        """Returns all rows, divided by their keys. whole, most: see Feeder."""
        if self._batch is None:
            return []
        accumulators = self._config.new_accumulators(HEAD_CELLS)
        found: dict[int, list[pa.Table]] = {}
        for keys in pairwise(self._elements.parts(PART_ELEMENTS).tolist()):
            rows = sessions_of_keys(accumulators, self._elements, *keys, self._gap, self._batch.columns_at)
            slots = np.arange(len(rows), dtype=np.int32)
            places = rows.keys(slots)
            table = row_cells(accumulators, rows, slots, {**_START, "end": END_CELL}, HEAD_CELLS)
            bounds = [0, *np.searchsorted(places, self._ends).tolist()]
            for part, (begin, end) in enumerate(pairwise(bounds)):
                if end > begin:
                    key = places[begin:end] - np.int32(self._ends[part - 1] if part else 0)
                    found.setdefault(part, []).append(
                        table.slice(begin, end - begin).add_column(0, "key", pa.array(key))
                    )
        return [
            partial
            for part, tables in found.items()
            for partial in self._cut(part, pa.concat_tables(tables), whole, most)
        ]

    def _cut(self, part: int, rows: pa.Table, whole: int | None, most: int) -> list[Partial]:
        """Returns the rows of a part, which lie key by key, in as many pieces between two keys as their bytes ask."""
        begin, end = int(self._ends[part - 1]) if part else 0, int(self._ends[part])
        one = self._parts.partial(part, key_rows(self._config.codec, self._keys, self._ids[begin:end]), rows)
        pieces = self._parts.pieces(len(one.chunk), whole, most)
        if pieces == 1:
            return [one]
        held = rows["key"].to_numpy()
        cuts = np.unique([*held[:: -(-len(held) // pieces)], end - begin])  # keys that a piece begins with
        found = []
        for first, behind in pairwise(cuts.tolist()):
            at, to = np.searchsorted(held, [first, behind]).tolist()
            some = rows.slice(at, to - at)
            some = some.set_column(0, "key", pa.array(held[at:to] - np.int32(first)))
            keys = key_rows(self._config.codec, self._keys, self._ids[begin + first : begin + behind])
            found.append(self._parts.partial(part, keys, some))
        return found

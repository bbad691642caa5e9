"""Level: one of several windows, with its rows; what passes in it goes on to those that it feeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.keys import EncodedKeys
from fastwin.core.accumulators.accumulator_set import AccumulatorSet
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.memory.ordering import unique
from fastwin.core.rows.rowstore import RowStore
from fastwin.errors import SpecError
from fastwin.operators.aligned.filling import FillingOperator
from fastwin.operators.aligned.looking import Slices
from fastwin.operators.aligned.operator import AlignedOperator
from fastwin.operators.aligned.slicing import Slicing, within
from fastwin.operators.batch import Batch
from fastwin.operators.config import Config
from fastwin.operators.heldwindows import HeldWindows, slots_of_key
from fastwin.times import MIN_TIMESTAMP

__all__ = ["FillingLevel", "Level", "Part"]

# Rows of slices that close are handed on while they are in the cache.
_TOGETHER = 1 << 16
_Touched = list[tuple[NDArray[np.int32], NDArray[np.int64]]]


class Part(NamedTuple):
    """What a chunk has of a level: tables, and the last end of a window that they matter to; None: of none."""

    tables: dict[str, pa.Table]
    last_end: int | None


class Level(AlignedOperator):
    """An aligned operator that feeds others.

    A slice is *closed* once the watermark has passed its last millisecond. What comes until then is held here alone;
    when it closes, its rows are merged into the slices of ``fed`` that it lies in. What comes later goes to them as
    well. So each level has in its windows, when they fire, what it would have by itself.

    fed_from: what lies before this bound, ms, is not kept back either: its slices may not lie in those of ``fed``.
    """

    def __init__(self, config: Config, slicing: Slicing, keys: KeyTable, accumulators: AccumulatorSet) -> None:
        super().__init__(config, slicing, keys, accumulators)
        self.fed: list[Level] = []
        self.fed_from = MIN_TIMESTAMP
        self._touched: _Touched = []

    @property
    def window(self) -> str | None:
        """The name of its windows."""
        return self._config.window

    @property
    def cleaned_at(self) -> int:
        """The last millisecond of its latest window that is cleaned; int64 min: none is."""
        return self._lateness.cleaned_at(self.watermark)

    @property
    def _closed(self) -> int:
        """The first start of a slice that is kept back: it is not closed, and lies in one slice of each of ``fed``."""
        return max(self.first_open(self.watermark), self.fed_from)

    def first_open(self, watermark: int) -> int:
        """Returns the first start of a slice that is not closed at a watermark, ms."""
        return self._slicing.bound_at(within(watermark) + 1)

    def feed(self, batch: Batch) -> tuple[list[pa.RecordBatch], NDArray[np.bool_]]:
        """Takes elements, and hands on those of closed slices; returns what fires, and which were late everywhere."""
        taken = self.process(batch)
        late = np.zeros(len(batch), np.bool_) if taken.late is None else taken.late
        if self.fed and len(batch) and int(batch.times.min()) < self._closed:
            direct = batch.times < self._closed
            part = batch.select(direct)
            for level in self.fed:
                fired, late_there = level.feed(part)
                taken.main += fired
                late[direct] &= late_there
        return taken.main, late

    def take(
        self, others: RowStore, slots: NDArray[np.int32], keys: NDArray[np.int32], starts: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Merges rows of finer slices, and hands on those of closed slices; returns which were late everywhere.

        others: of the same accumulators. slots, keys: of its rows, int32[n]. starts: of their slices, int64[n]. Raises
        SpecError where such a slice lies in two of a level that it feeds.
        """
        slicing = self._slicing
        slicing.cover(starts)
        own, _ = slicing.assign(starts)
        late = own < self._first_kept
        taken = ~late
        into = self._panes.ensure(keys[taken], own[taken])
        self._accumulators.merge_rows(self._panes.rows, into, others, slots[taken])
        if slicing.shared and len(into):
            self._slider.absorb(others, slots[taken])
        passed = taken & (own < slicing.first_unpassed(self.watermark))
        if passed.any():
            self._touched.append((keys[passed], own[passed]))
        direct = starts < self._closed
        if self.fed and direct.any():
            self._check_inside(starts[direct])
            for level in self.fed:
                late[direct] &= level.take(others, slots[direct], keys[direct], starts[direct])
        return late

    def fire_touched(self) -> Iterator[pa.RecordBatch]:
        """Fires once more the windows that have passed and that ``take`` has merged rows into."""
        touched, self._touched = self._touched, []
        if touched:
            keys, starts = (np.concatenate(arrays) for arrays in zip(*touched, strict=True))
            yield from self._fire_coalesced(keys, starts)

    def close(self, watermark: int) -> None:
        """Hands on the slices that close at a watermark, before anything fires."""
        if not self.fed or watermark <= self.watermark:
            return
        rows = self._panes.rows
        first, last = self._closed, self._slicing.bound_at(within(watermark) + 1) - 1
        while len(slots := self._panes.slots_from(first, last, _TOGETHER)):
            keys, starts = rows.keys(slots), rows.starts(slots)
            self._check_inside(starts)
            for level in self.fed:
                level.receive(rows, slots, keys, starts)
            first = int(starts[-1]) + 1

    def receive(
        self, rows: RowStore, slots: NDArray[np.int32], keys: NDArray[np.int32], starts: NDArray[np.int64]
    ) -> None:
        """Merges the rows of slices that close: no window over them has passed here."""
        self._slicing.cover(starts)
        own, _ = self._slicing.assign(starts)
        self._accumulators.merge_rows(self._panes.rows, self._panes.ensure(keys, own), rows, slots)

    def _check_inside(self, starts: NDArray[np.int64]) -> None:
        """Raises SpecError where one of the slices at ``starts`` lies in two slices of a level that it feeds.

        Bounds on a grid were compared when it was chosen what feeds what; those of a calendar only from 1970 on.
        Elements from before come here as partial results alone.
        """
        some = [level for level in self.fed if level._slicing.bounds is not None]
        if not some:
            return
        starts = unique(starts)
        lasts = np.array([self._slicing.bound_after(start) - 1 for start in starts.tolist()])
        for level in some:
            level._slicing.cover(starts)
            level._slicing.cover(lasts)
            apart = level._slicing.assign(starts)[0] != level._slicing.assign(lasts)[0]
            if apart.any():
                name = level.window
                raise SpecError(
                    f"windows: at {starts[apart][0]} ms, {name!r} begins in the middle of {self.window!r}, as "
                    f"days of zones did long ago; give {name!r} a spec of its own"
                )

    def look_with(self, key: EncodedKeys | None, above: list[Slices]) -> tuple[HeldWindows, list[Slices]]:
        """Returns its windows, and the slices that have not come yet to the levels that it feeds.

        above: those that have not come to this one.
        """
        rows = self._panes.rows
        slots = slots_of_key(self._keys, rows, key)
        held = slots[rows.starts(slots) >= self._closed]
        return self._looked_at([Slices(rows, slots), *above]), [Slices(rows, held), *above]

    def next_timer(self) -> int | None:
        """Returns the next watermark at which a window fires, a slice goes, or one closes."""
        found = super().next_timer()
        first = self._panes.first_start(self._closed) if self.fed else None
        if found is None or first is None:
            return found
        return min(found, self._slicing.bound_after(first) - 1)

    def part(
        self, kind: Literal["snapshot", "delta"], slots: NDArray[np.int32], unchanged: list[NDArray[np.int32]]
    ) -> Part:
        """Returns what a chunk says of it.

        slots: of the rows of its slices. unchanged: of the rows of other kinds that the chunk repeats, of each kind.
        """
        tables, beside = self._tables(kind, slots), self._beside(kind, unchanged)
        ends = [beside.last_end, self._last_end(tables["rows"]) if len(slots) else None]
        return Part(tables | beside.tables, max((end for end in ends if end is not None), default=None))

    def _check(self) -> None:
        self._panes._check()
        self._slider._check()


class FillingLevel(FillingOperator, Level):
    """A level that hands out its windows without elements as well."""

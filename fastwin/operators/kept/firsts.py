"""The operator of firsts: hands each row out at once if it is the first of its key and window; keeps no rows.

What it knows is which (key, window) has had a row, or when a key last had one that was handed out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fastwin.columns.keys import EncodedKeys, KeyCodec
from fastwin.core.panes.firsts import add_apart, add_firsts
from fastwin.core.panes.panetable import PaneTable
from fastwin.core.rows.rowstore import HEAD_CELLS, RowStore
from fastwin.errors import SpecError
from fastwin.operators.aligned.looking import starts_of
from fastwin.operators.aligned.slicing import Slicing, clamped, expanded
from fastwin.operators.batch import Batch
from fastwin.operators.eventtime import PanesOperator
from fastwin.operators.heldwindows import NEVER, HeldWindows, in_rows, slots_of_key
from fastwin.operators.kept.config import KeptConfig
from fastwin.operators.kept.pieces import Pieces
from fastwin.operators.lateness import Lateness, Split, split
from fastwin.operators.protocol import Counters, Fed
from fastwin.state.chain import Chain
from fastwin.state.chunks import Chunk
from fastwin.state.refresh import round_bytes
from fastwin.state.rows import cell_names, fill_rows, load_keys, load_rows, some_rows
from fastwin.times import MIN_TIMESTAMP

__all__ = ["Apart", "FirstsOperator", "InWindows"]

# Elements that are looked at together, each as often as there are windows over it.
_TOGETHER = 1 << 18


class Seen(NamedTuple):
    """Elements that were handed out: their places, and the bounds of their windows, ms."""

    places: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


class Firsts(Protocol):
    """What makes an element the first. Each row of state is in a pane, which tells when it goes."""

    cells: ClassVar[int]
    """Cells that a row of state has."""

    def split(self, times: NDArray, watermark: int, lateness: int) -> Split:
        """Tells late elements from those that are taken."""

    def add(self, panes: PaneTable, ids: NDArray[np.int32], times: NDArray, watermark: int, lateness: int) -> Seen:
        """Adds elements that are not late; returns those that are first."""

    def last_end(self, pane: int) -> int:
        """Returns the end behind which a pane means nothing any more, ms."""

    def first_kept(self, watermark: int, lateness: int) -> int:
        """Returns the first pane that means anything: last_end - 1 + lateness > watermark."""

    def windows(self, rows: RowStore, slots: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns start and end of the window of each row of state, ms."""


@dataclass(frozen=True)
class InWindows:
    """The first of its key in each of its windows. The pane of a window is its end."""

    slicing: Slicing
    cells: ClassVar[int] = 0

    def split(self, times: NDArray, watermark: int, lateness: int) -> Split:
        self.slicing.cover(times)
        starts, unassigned = self.slicing.assign(times)
        late = starts < self.slicing.first_kept(watermark, lateness)
        return split(late, unassigned, times, max(watermark - lateness, MIN_TIMESTAMP))

    def add(self, panes: PaneTable, ids: NDArray[np.int32], times: NDArray, watermark: int, lateness: int) -> Seen:
        starts, _ = self.slicing.assign(times)
        first, last = self.slicing.kept_ends(starts, watermark, lateness)
        step = max(1, _TOGETHER // self.slicing.covering)
        found: list[Seen] = []
        for at in range(0, max(len(ids), 1), step):
            counts, ends = expanded(first[at : at + step], last[at : at + step], self.slicing.step)
            ends = self.slicing.ends_at(ends)
            places = np.repeat(np.arange(at, at + len(counts)), counts)
            firsts = add_firsts(panes, ids[places], ends)
            places, ends = places[firsts], ends[firsts]
            found.append(Seen(places, starts_of(self.slicing, ends), ends))
        return found[0] if len(found) == 1 else Seen(*map(np.concatenate, zip(*found, strict=True)))

    def windows(self, rows: RowStore, slots: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        ends = rows.starts(slots)
        self.slicing.cover(ends - 1)  # nothing has told of those that were restored
        return starts_of(self.slicing, ends), ends

    def last_end(self, pane: int) -> int:
        return pane

    def first_kept(self, watermark: int, lateness: int) -> int:
        return watermark - lateness + 2


@dataclass(frozen=True)
class Apart:
    """At least ``within_ms`` from all rows of its key that were handed out. A pane is ``within_ms`` long."""

    within_ms: int
    cells: ClassVar[int] = 1

    def split(self, times: NDArray, watermark: int, lateness: int) -> Split:
        late = times <= max(watermark - lateness, MIN_TIMESTAMP)
        return Split(late, ~late, 0)

    def add(self, panes: PaneTable, ids: NDArray[np.int32], times: NDArray, watermark: int, lateness: int) -> Seen:
        places = np.flatnonzero(add_apart(panes, ids, times, self.within_ms))
        return Seen(places, times[places], times[places] + self.within_ms)

    def windows(self, rows: RowStore, slots: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        times = rows.cells(slots, HEAD_CELLS)
        return times, times + self.within_ms

    def last_end(self, pane: int) -> int:
        return pane + 2 * self.within_ms - 1

    def first_kept(self, watermark: int, lateness: int) -> int:
        return watermark - lateness - 2 * self.within_ms + 3


class FirstsOperator(PanesOperator):
    """Hands rows out at once, if they are the first."""

    name: ClassVar[str] = "firsts"

    def __init__(self, config: KeptConfig, firsts: Firsts) -> None:
        self._config: KeptConfig = config
        self._firsts = firsts
        self._lateness = Lateness(config.lateness_ms)
        self._keys = config.codec.new_table()
        self._accumulators = config.new_accumulators(HEAD_CELLS + firsts.cells)
        self._panes = PaneTable(self._keys, self._accumulators)
        self.chain = Chain()
        self.watermark = MIN_TIMESTAMP
        self.counters = Counters()

    def process(self, batch: Batch) -> Fed:
        """Takes elements in order; where they have none, in order of time."""
        self.counters.events += len(batch)
        lateness = self._lateness.at(self.watermark)
        late, taken, outside = self._firsts.split(batch.times, self.watermark, lateness)
        self.counters.unassigned += outside
        fed = Fed(late=late if late.any() else None)
        if not taken.all():
            batch = batch.select(taken)
        if self._config.coalesce and (np.diff(batch.times) < 0).any():
            batch = batch.select(np.argsort(batch.times, kind="stable"))
        ids = KeyCodec.intern(self._keys, batch.keys)
        seen = self._firsts.add(self._panes, ids, batch.times, self.watermark, lateness)
        fed.main = list(self._results(batch, ids, seen))
        self._keys.sweep()
        return fed

    def cuts(self, times: NDArray[np.int64], most: int) -> list[int]:
        """Returns no cuts where elements have no order: which is the first is known of all of them together."""
        return [] if self._config.coalesce else super().cuts(times, most)

    def _results(self, batch: Batch, ids: NDArray[np.int32], seen: Seen) -> Iterator[pa.RecordBatch]:
        if not len(seen.places):
            return
        assert batch.rows is not None
        self.counters.fired += len(seen.places)
        rows = Pieces(self._config.kept, self._config.kept_columns(batch.rows))
        for part in rows.parts(seen.places):
            found = Seen(*(values[part] for values in seen))
            columns = rows.take(found.places)
            yield self._config.result(self._keys, ids[found.places], found.starts, found.ends, columns)

    def advance_watermark(self, watermark: int) -> list[pa.RecordBatch]:
        """Forgets what means nothing any more."""
        if watermark > self.watermark:
            self.watermark = watermark
            self._clean()
        return []

    @property
    def _first_kept(self) -> int:
        """The first start of a pane that is still asked for, by the lateness that holds at the watermark."""
        return self._firsts.first_kept(self.watermark, self._lateness.at(self.watermark))

    def _clean(self) -> None:
        if self.watermark > MIN_TIMESTAMP:
            self._panes.drop_before(clamped(self._first_kept))

    def next_timer(self) -> int | None:
        """Returns the next watermark at which something is forgotten."""
        first = self._panes.first_start(MIN_TIMESTAMP)
        return None if first is None else self._firsts.last_end(first) - 1 + self._config.lateness_ms

    def merge(self, chunks: list[bytes]) -> tuple[list[pa.RecordBatch], int]:
        """Refuses partial results: rows themselves are handed out."""
        raise SpecError("merge: deduplicate takes no partial results")

    def open_windows(self) -> int:
        """Counts what is known: (key, window) pairs that had a row, or rows that were handed out."""
        return len(self._panes)

    def look(self, key: EncodedKeys | None = None) -> HeldWindows:
        """Returns the windows that a row was handed out of; they fire no more."""
        rows = self._panes.rows
        slots = slots_of_key(self._keys, rows, key)
        starts, ends = self._firsts.windows(rows, slots)
        panes, n = rows.starts(slots), len(slots)
        found = HeldWindows(
            keys=self._config.codec.decode(self._keys, rows.keys(slots)),
            starts=starts,
            ends=ends,
            values={},
            filled=np.zeros(n, np.bool_),
            fired=np.ones(n, np.bool_),
            firings=np.ones(n, np.int64),
            fires_at=np.full(n, NEVER),
            by_clock=np.zeros(n, np.bool_),
            gone_at=np.array([self._firsts.last_end(pane) for pane in panes.tolist()], np.int64)
            + (self._config.lateness_ms - 1),
            nbytes=in_rows(rows, slots),
        )
        self._keys.sweep()
        return found

    @property
    def state_bytes(self) -> int:
        """Bytes allocated for panes, keys, and a round of repeating."""
        held = self._panes.nbytes + self._keys.nbytes
        return held + round_bytes(self._round)

    def _last_end(self, rows: pa.Table) -> int:
        return self._firsts.last_end(pc.max(rows["start"]).as_py())

    def take_chunks(self, chunks: list[Chunk]) -> None:
        rows = self._panes.rows
        self._take_progress(chunks)
        wanted = ["start", *cell_names(rows, HEAD_CELLS)]
        for chunk in chunks:
            if not self._matters(chunk):
                continue
            ids = load_keys(self._config.codec, self._keys, chunk.tables["keys"])
            columns = load_rows(chunk.tables, ids, wanted)
            columns = some_rows(columns, columns["start"] >= self._first_kept)
            # What is repeated need not be left out: a row never changes, so one that is here gets what it has.
            slots = self._panes.ensure(columns["key"], columns["start"])
            fill_rows(self._accumulators, rows, slots, columns, HEAD_CELLS)
        self._clean()
        self._keys.sweep()
        rows.clear_dirty()

    def _check(self) -> None:
        self._panes._check()
        self._check_keys(self.kinds())

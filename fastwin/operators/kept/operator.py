"""The operator of rows: aligned windows that keep rows as columns, and pick results from them when they fire.

A row is kept once, with its slice, however many windows cover it. Rows only come, and go with the watermark: what no
window can pick any more may stay or go, so a delta holds new rows and nothing else. It goes before each delta, so that
one holds no more than windows pick: only the slices in which a key has had rows since the last time are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fastwin.columns.buffers import aligned, in_one
from fastwin.columns.decoding import take_rows
from fastwin.columns.keys import EncodedKeys, KeyCodec
from fastwin.core.accumulators.accumulator_set import AccumulatorSet
from fastwin.core.memory.ordering import distinct
from fastwin.core.rows.rowstore import RowStore
from fastwin.errors import SpecError, StateError
from fastwin.operators.aligned.openwindows import open_windows_over
from fastwin.operators.aligned.slicing import Slicing, Windows, within
from fastwin.operators.batch import Batch
from fastwin.operators.eventtime import EventTimeOperator
from fastwin.operators.heldwindows import HeldWindows, slots_of_key
from fastwin.operators.kept import looking
from fastwin.operators.kept.bands import end_of_band, first_end, late_bands, late_spans
from fastwin.operators.kept.bystart import ascending
from fastwin.operators.kept.config import KeptConfig
from fastwin.operators.kept.keptrows import NUMBERS, ByArrival, KeptRows
from fastwin.operators.kept.picks import Fired, Pick
from fastwin.operators.kept.pieces import Pieces
from fastwin.operators.kept.pruning import Pruner
from fastwin.operators.kept.refiring import refired
from fastwin.operators.lateness import Lateness, split
from fastwin.operators.protocol import Counters, Fed
from fastwin.state.chain import Chain
from fastwin.state.chunks import Chunk
from fastwin.state.narrow import column_of
from fastwin.state.refresh import Refresh, Repeated, RepeatedRows, round_bytes
from fastwin.state.rows import by_appearance, key_rows, load_keys
from fastwin.times import MIN_TIMESTAMP

__all__ = ["RowsOperator"]

# Rows that fire together, each as often as there are windows over it.
_TOGETHER = 1 << 18


class _Elements(NamedTuple):
    """Elements: ids of their keys, starts of slices, first ends of windows that take them, numbers of arrival."""

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]
    since: NDArray[np.int64]
    arrivals: NDArray[np.int64]
    columns: pa.RecordBatch

    def select(self, places: NDArray[np.int64]) -> _Elements:
        """Returns the elements at some places, ascending."""
        ids, starts, since, arrivals, columns = self
        return _Elements(ids[places], starts[places], since[places], arrivals[places], take_rows(columns, places))


class RowsOperator(EventTimeOperator):
    """Runs aligned windows with the default trigger, whose results are picked from their rows."""

    name: ClassVar[str] = "rows"

    def __init__(self, config: KeptConfig, slicing: Slicing, pick: Pick) -> None:
        self._config: KeptConfig = config
        self._slicing, self._pick = slicing, pick
        self._lateness = Lateness(config.lateness_ms)
        self._keys = config.codec.new_table()
        self._accumulators = AccumulatorSet([])
        self._kept = KeptRows(config.kept)
        self._by_arrival = ByArrival(self._kept)
        self._pruner = Pruner(self._kept, self._keys, pick, slicing.step)
        self._arrived = 0
        self._slices = np.empty(0, np.int64)  # the starts of those that hold rows
        self._next_end: int | None = None
        self.chain = Chain()
        self.watermark = MIN_TIMESTAMP
        self.counters = Counters()

    # --- elements ---

    def process(self, batch: Batch) -> Fed:
        """Keeps elements; windows that have passed and are kept fire again."""
        self.counters.events += len(batch)
        slicing, watermark = self._slicing, self.watermark
        assert batch.rows is not None
        slicing.cover(batch.times)
        starts, unassigned = slicing.assign(batch.times)
        lateness = self._pick.lateness(batch.rows, self._lateness.at(watermark))
        late = starts < _each(lateness, lambda ms: slicing.first_kept(watermark, ms))
        reached = _each(0 if unassigned is None else lateness, lambda ms: max(watermark - ms, MIN_TIMESTAMP))
        late, taken, outside = split(late, unassigned, batch.times, reached)
        self.counters.unassigned += outside
        fed = Fed(late=late if late.any() else None)
        if not taken.all():
            batch, starts = batch.select(taken), starts[taken]
            lateness = lateness if isinstance(lateness, int) else lateness[taken]
        ids = KeyCodec.intern(self._keys, batch.keys)
        assert batch.rows is not None
        columns = self._config.kept_columns(batch.rows)
        since = _each(lateness, lambda ms: within(slicing.end_after(watermark - ms + 1)))
        arrivals = self._arrived + np.arange(len(ids))
        self._arrived += len(ids)
        elements = _Elements(ids, starts, np.broadcast_to(since, ids.shape), arrivals, columns)
        passed = starts < slicing.first_unpassed(watermark)
        # Without coalescing a late row that is the best for a while is a result.
        if self._config.coalesce or not passed.any():
            places = self._pruner.worth_keeping(columns, ids, starts)
            if places is not None:
                elements, passed = elements.select(places), passed[places]
        before = self._kept.top
        self._add(elements)
        fed.main = list(self._refire(elements, np.flatnonzero(passed), before))
        if self._pick.most is not None:
            self._pruner.prune_many()
        return fed

    def _add(self, elements: _Elements) -> None:
        ids, starts, since, arrivals, columns = elements
        if not len(ids):
            return
        self._keys.retain_ids(ids)
        self._kept.add(columns, key=ids, start=starts, arrival=arrivals, since=since)
        self._note_slices(starts)
        self._next_end = self._first_end()

    def _note_slices(self, starts: NDArray[np.int64]) -> None:
        fresh, there = distinct(starts), self._slices
        at = np.searchsorted(there, fresh)
        new = at == np.searchsorted(there, fresh, side="right")
        if new.any():
            self._slices = np.insert(there, at[new], fresh[new])

    def _first_end(self) -> int | None:
        """Returns the first end of a window with rows that has not passed; None: there is none. O(log slices)."""
        return first_end(self._slicing, self._slices, self.watermark)

    def _refire(self, elements: _Elements, places: NDArray[np.int64], before: int) -> Iterator[pa.RecordBatch]:
        """Fires the windows that have passed and that some elements are in.

        Elements are kept by now, from slot ``before`` on. Where they have no order, each window fires once. Else it
        fires for each of its elements, in their order, and shows what had arrived by then. O(n log n + results), n:
        rows of these windows.
        """
        if not len(places):
            return
        bands = self._touched(elements, places, before)
        if not self._config.coalesce:
            bands = refired(self._pick, self._kept.columns, bands, before + places, _TOGETHER)
        for fired in bands:
            yield from self._results(fired)

    def _touched(self, elements: _Elements, places: NDArray[np.int64], before: int) -> Iterator[Fired]:
        """Yields the rows of the windows that some elements are in, of those that have passed and are kept.

        They come in order of ends, and not too many of them together.
        """
        slicing, lateness = self._slicing, self._lateness.at(self.watermark)
        late, late_since = elements.starts[places], elements.since[places]
        some, firsts, ends = late_spans(slicing, late, late_since, self.watermark, lateness)
        if not len(some):
            return
        slots = self._pruner.by_slice().rows_between(elements.ids[places[some]], firsts, ends, self._slices)
        starts = self._kept.number("start")[slots]
        for band in late_bands(slicing, starts, self.watermark, lateness, _TOGETHER):
            mine = slots[band.places]
            if mine[-1] < before:  # no window of these has a row that is new
                continue
            windows = slicing.late_windows(starts[band.places], band.until, band.until - band.before)
            fired = self._fired(mine, windows)
            fired = fired.groups_with(fired.slots >= before)
            if len(fired):
                yield fired

    # --- time ---

    def advance_watermark(self, watermark: int) -> list[pa.RecordBatch]:
        """Fires the windows with watermark before < end - 1 <= watermark, in order of their ends.

        O(rows of these windows, once for each, + pairs + log² rows).
        """
        if watermark <= self.watermark:
            return []
        results: list[pa.RecordBatch] = []
        while self._next_end is not None and self._next_end - 1 <= watermark:
            count = self._kept.by_start.count
            until = end_of_band(self._slicing, self._next_end, watermark, count, _TOGETHER)
            results += self._results(self._due(until))
            self._next_end = self._first_end()
        self.watermark = watermark
        self._clean()
        return results

    def _due(self, watermark: int) -> Fired:
        """Moves the watermark; returns the rows of the windows that it passes."""
        before, self.watermark = self.watermark, watermark
        assert self._next_end is not None
        slots = ascending(self._kept.between(self._slicing.start_of(self._next_end), watermark))
        windows = self._slicing.late_windows(self._kept.number("start")[slots], watermark, watermark - before)
        return self._fired(slots, windows)

    def _fired(self, slots: NDArray[np.int64], windows: Windows) -> Fired:
        slots = np.repeat(slots, windows.counts)
        starts, ends = windows.starts, windows.ends
        in_it = ends >= self._kept.number("since")[slots]
        if not in_it.all():
            slots, starts, ends = slots[in_it], starts[in_it], ends[in_it]
        return Fired.in_order(slots, self._kept.number("key")[slots], starts, ends)

    def _results(self, fired: Fired) -> Iterator[pa.RecordBatch]:
        if not len(fired):
            return
        for found, columns in self._pick.results(self._kept.columns, fired):
            self.counters.fired += len(found)
            yield self._config.result(self._keys, found.keys, found.starts, found.ends, columns)

    @property
    def _first_kept(self) -> int:
        """The first slice start with a window that is not late, by the lateness that holds at the watermark."""
        return self._slicing.first_kept(self.watermark, self._lateness.at(self.watermark))

    def _clean(self) -> None:
        """Lets rows go whose windows are all gone, and keys without rows. O(1) where there are none."""
        first = self._first_kept
        if len(self._slices) and self._slices[0] < first:
            self._slices = self._slices[np.searchsorted(self._slices, first) :]
            self._pruner.drop_before(first)
        self._keys.sweep()

    def next_timer(self) -> int | None:
        """Returns the next watermark at which a window fires or rows go."""
        if not len(self._slices):
            return None
        gone = self._slicing.last_end(int(self._slices[0])) - 1 + self._config.lateness_ms
        return gone if self._next_end is None else min(gone, self._next_end - 1)

    def merge(self, chunks: list[bytes]) -> tuple[list[pa.RecordBatch], int]:
        """Refuses partial results: windows keep rows."""
        raise SpecError("merge: windows that keep rows take no partial results")

    # --- sizes and state ---

    def open_windows(self) -> int:
        """Counts (key, window) pairs with contents that are not cleaned yet, as ``open_windows_over`` does.

        O(rows) where windows share slices and the inputs of a join have different lateness.
        """
        if not len(self._kept):
            return 0
        held = self._pruner.by_slice()
        found = open_windows_over(held.panes, held.open_ends, self._slicing, self.watermark, self._lateness)
        return found - looking.windows_without_rows(self._kept, self._slicing, self.watermark, self._lateness)

    def look(self, key: EncodedKeys | None = None) -> HeldWindows:
        """Returns the windows over the rows that are kept."""
        slots = slots_of_key(self._keys, self._rows, key)
        found = looking.held_windows(
            self._config, self._keys, self._kept, slots, self._slicing, self._pick, self.watermark, self._lateness
        )
        self._keys.sweep()
        return found

    def place_rows(self, in_file: bool) -> int:
        return self._pruner.place(in_file)

    @property
    def state_rows(self) -> int:
        """Rows that are kept."""
        return len(self._kept)

    @property
    def state_bytes(self) -> int:
        """Bytes allocated for rows, what finds them, keys, and a round of repeating."""
        held = self._kept.nbytes + self._pruner.nbytes + self._keys.nbytes
        return held + round_bytes(self._round)

    @property
    def _rows(self) -> RowStore:
        return cast(RowStore, self._kept)  # all that is asked of it here

    def snapshot(self) -> bytes:
        """Returns all rows that a window may still pick."""
        self._pruner.prune()
        return super().snapshot()

    def delta(self, refresh: Refresh | None = None) -> bytes:
        """Returns the rows that are new since the last call and that a window may still pick."""
        self._pruner.prune(more=True)
        return super().delta(refresh)

    def kinds(self) -> list[RepeatedRows]:
        return [self._by_arrival]

    def _repeated(self, refresh: Refresh) -> Repeated:
        found, places = super()._repeated(refresh), self._by_arrival.places
        return found._replace(changed=[places(found.changed[0])], unchanged=[places(found.unchanged[0])])

    def saved_order(self, slots: NDArray[np.int32]) -> NDArray[np.int32]:
        return slots  # in which they arrived

    def _tables(self, kind: Literal["snapshot", "delta"], slots: NDArray[np.int32]) -> dict[str, pa.Table]:
        ids, key_of = by_appearance(self._kept.keys(slots), self._keys.top)
        numbers: dict[str, Any] = {name: self._kept.number(name)[slots] for name in NUMBERS}
        numbers["key"] = key_of.astype(np.int32)
        rows = pa.Table.from_batches(self._kept.columns.batches(slots), self._config.kept)
        return {
            "keys": key_rows(self._config.codec, self._keys, ids.astype(np.int32)),
            "rows": pa.table(numbers),
            "columns": rows.rename_columns([f"e{i}" for i in range(rows.num_columns)]),
        }

    def _fed(self) -> dict[str, int]:
        return {"fed": self._arrived}

    def _last_end(self, rows: pa.Table) -> int:
        return self._slicing.last_end(pc.max(rows["start"]).as_py())

    def changed(self) -> bool:
        return len(self._kept.dirty_slots()) > 0

    def saved(self, slots: NDArray[np.int32]) -> None:
        self._kept.clear_dirty()

    def take_chunks(self, chunks: list[Chunk]) -> None:
        fresh = self._take_progress(chunks)
        for chunk in chunks:
            self._slicing.cover(column_of(chunk.tables, "rows", "start"))
        first = self._first_kept
        before = self._kept.top
        for chunk in chunks:
            if self._matters(chunk):
                self._load(chunk, first, fresh)
        if (np.diff(self._kept.number("arrival")[max(before - 1, 0) :]) <= 0).any():
            self._pruner.put_in_order()
        fed = [chunk.meta.get("fed", 0) for chunk in chunks]  # of rows, too, that no window picks any more
        self._arrived = max([self._arrived, *(self._kept.number("arrival")[-1:] + 1).tolist(), *fed])
        self._kept.clear_dirty()
        self._clean()
        self._next_end = self._first_end()

    def _load(self, chunk: Chunk, first: int, fresh: bool) -> None:
        """Takes the rows of a chunk whose slices are not before ``first``."""
        ids = load_keys(self._config.codec, self._keys, chunk.tables["keys"])
        rows, columns = chunk.tables["rows"], chunk.tables["columns"]
        kept = self._config.kept
        if rows.column_names != list(NUMBERS) or [column.type for column in columns.columns] != kept.types:
            raise StateError(f"state: the rows have the columns {columns.schema.types}, the spec's have {kept.types}")
        numbers = {name: aligned(in_one(rows[name]).to_numpy()) for name in NUMBERS}
        live = numbers["start"] >= first
        self._unmark_repeated(live, chunk, fresh)
        places = np.flatnonzero(live)
        key_of = numbers["key"][places]
        if len(places) and not 0 <= key_of.min() <= key_of.max() < len(ids):
            raise StateError(f"state: rows point to keys {key_of.min()} to {key_of.max()}, of {len(ids)}")
        taken = {name: values[places] for name, values in numbers.items()}
        taken["key"] = ids[key_of]
        self._keys.retain_ids(taken["key"])
        self._note_slices(taken["start"])
        saved = [pa.RecordBatch.from_arrays(batch.columns, schema=kept) for batch in columns.to_batches()]
        at = 0
        for batch in Pieces(kept, *saved).batches(places):
            part = slice(at, at + batch.num_rows)
            self._kept.add(batch, **{name: values[part] for name, values in taken.items()})
            at = part.stop

    def _check(self) -> None:
        self._kept._check()
        self._keys._check()
        self._pruner._check()
        first = self._first_kept
        slots = self._kept.slots()
        assert (self._kept.number("start")[slots] >= first).all(), "a row of cleaned windows is still there"
        assert (np.unique(self._kept.number("start")[slots]) == self._slices).all(), "other slices have rows"
        firsts, lasts = self._slicing.kept_ends(self._slices, self.watermark, 0)
        ends = self._slicing.ends_at(firsts[firsts <= lasts])
        assert self._next_end == min(ends.tolist(), default=None), "the next end is another"
        self._check_keys([self._rows])


def _each(lateness: int | NDArray[np.int64], find: Callable[[int], int]) -> NDArray[np.int64]:
    """Returns what is found for each lateness, of which there are few."""
    some, at = np.unique(lateness, return_inverse=True)
    return np.array([find(ms) for ms in some.tolist()], np.int64)[at]

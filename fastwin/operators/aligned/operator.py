"""The aligned operator: tumbling, sliding and cumulative windows in event time, one row of state for each (key, slice).

An element updates its slice alone, however many windows cover it; a window is put together from its
slices when it fires, incrementally. Which windows have fired follows from the watermark, so there are no timers.
"""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fastwin.columns.keys import EncodedKeys, KeyCodec
from fastwin.core.accumulators.accumulator_set import AccumulatorSet
from fastwin.core.accumulators.exchange import renumber_rows
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.memory.ordering import begins_of
from fastwin.core.panes.combiner import WindowCombiner
from fastwin.core.panes.openends import OpenEnds
from fastwin.core.panes.panetable import PaneTable
from fastwin.core.panes.windowslider import WindowSlider
from fastwin.core.rows.rowstore import HEAD_CELLS, RowStore
from fastwin.operators.aligned.loading import make_room_for
from fastwin.operators.aligned.looking import Slices, held_windows
from fastwin.operators.aligned.openwindows import open_windows_over
from fastwin.operators.aligned.scattered import order_by_slices
from fastwin.operators.aligned.slicing import Slicing, within
from fastwin.operators.batch import Batch, rows_between
from fastwin.operators.config import Config
from fastwin.operators.eventtime import PanesOperator, WatermarkOperator
from fastwin.operators.heldwindows import HeldWindows, slots_of_key
from fastwin.operators.lateness import Lateness, split
from fastwin.operators.partialrows import add_partial, partial_columns
from fastwin.operators.parts import FIRST_COPIES, next_copies
from fastwin.operators.protocol import Counters, Fed
from fastwin.state.chain import Chain
from fastwin.state.chunks import Chunk
from fastwin.state.narrow import column_of
from fastwin.state.refresh import round_bytes
from fastwin.state.rows import cell_names, fill_rows, load_keys, load_rows, some_rows
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP

__all__ = ["AlignedOperator"]

# Fired rows are handed over while they are in the cache.
_FLUSH_ROWS = 1 << 16


class AlignedOperator(PanesOperator):
    """Runs aligned windows with the default trigger.

    keys, accumulators: those of operators that hand rows to each other; None: its own.
    """

    name: ClassVar[str] = "aligned"
    absorbs: ClassVar[bool] = True
    _fires_few: ClassVar[bool] = True
    """Whether windows whose results are copies may fire a few at a time: their order is that of their ends."""

    def __init__(
        self,
        config: Config,
        slicing: Slicing,
        keys: KeyTable | None = None,
        accumulators: AccumulatorSet | None = None,
    ) -> None:
        self._config = config
        self._slicing = slicing
        self._lateness = Lateness(config.lateness_ms)
        self._keys = config.codec.new_table() if keys is None else keys
        self._accumulators = config.new_accumulators(HEAD_CELLS) if accumulators is None else accumulators
        self._panes = PaneTable(self._keys, self._accumulators)
        self._slider = self._new_slider()
        self._combiner = WindowCombiner(self._panes, slicing.shared)
        self._open_ends = OpenEnds(self._panes, slicing.step)
        self.chain = Chain()
        self.watermark = self._quiet_until = MIN_TIMESTAMP
        self.counters = Counters()

    def _new_slider(self) -> WindowSlider:
        slicing = self._slicing
        return WindowSlider(self._panes, slicing.slide, slicing.offset, slicing.blocks)

    def process(self, batch: Batch) -> Fed:
        """Adds elements to their slices; windows that have passed and are kept fire again."""
        slicing, watermark = self._slicing, self.watermark
        slicing.cover(batch.times)
        lateness = self._lateness.at(watermark)
        self.counters.events += len(batch)
        batch = batch.numbered(self._accumulators.arrived)
        rest = self._feed(batch, slicing.first_unpassed(watermark))
        fed = self._process_rest(batch, rest, lateness) if len(rest) else Fed()
        self._keys.sweep()
        return fed

    def _feed(self, batch: Batch, first: int) -> NDArray[np.int64]:
        """Adds the elements that are not before ``first`` to their slices: they are not late, and fire nothing.

        Returns the indices of the others, ascending; of all where some may have no window.
        """
        if self._slicing.grid is None:
            return np.arange(len(batch))
        if self._keys.is_bytes:
            ids, values, valid = KeyCodec.intern(self._keys, batch.keys), None, None
        else:
            assert isinstance(batch.keys, tuple)
            ids, (values, valid) = None, batch.keys
        grid, bounds = self._slicing.grid, self._slicing.bounds
        return self._panes.feed(ids, values, valid, batch.times, first, *grid, batch.columns, bounds)

    def _process_rest(self, batch: Batch, rest: NDArray[np.int64], lateness: int) -> Fed:
        """Takes the elements that ``_feed`` has left."""
        slicing, watermark, fed = self._slicing, self.watermark, Fed()
        part = batch if len(rest) == len(batch) else batch.select(rest)
        starts, unassigned = slicing.assign(part.times)
        reached = max(watermark - lateness, MIN_TIMESTAMP)
        late, taken, outside = split(starts < slicing.first_kept(watermark, lateness), unassigned, part.times, reached)
        self.counters.unassigned += outside
        if late.any():
            fed.late = np.zeros(len(batch), np.bool_)
            fed.late[rest[late]] = True
        if not taken.all():
            part, starts = part.select(taken), starts[taken]
        passed = starts < slicing.first_unpassed(watermark)
        if passed.any():
            fed.main = list(self._add_passed(part, starts, passed))
        else:
            self._add(part, starts)
        return fed

    @property
    def _first_kept(self) -> int:
        """The first slice start with a window that is not late, by the lateness that holds at the watermark."""
        return self._slicing.first_kept(self.watermark, self._lateness.at(self.watermark))

    def merge(self, chunks: list[bytes]) -> tuple[list[pa.RecordBatch], int]:
        """Takes what feeders have made of elements; see ``operators.partials``.

        Returns the results of windows that have passed and fire again, each once, and how many elements were late.
        """
        slicing, late, main = self._slicing, 0, []
        touched: list[tuple[NDArray[np.int32], NDArray[np.int64]]] = []
        for columns in partial_columns(chunks, self._config, self._keys, self._accumulators, "start"):
            slicing.cover(columns["start"])
            kept = columns["start"] >= self._first_kept
            self.counters.events += int(columns["elements"].sum())
            late += int(columns["elements"][~kept].sum())
            columns = some_rows(columns, kept)
            keys, starts = columns["key"], columns["start"]
            others = self._accumulators.new_rows()
            slots = add_partial(self._accumulators, others, columns)
            self._merge(keys, starts, others, slots)
            if slicing.shared and len(slots):
                self._slider.absorb(others, slots)
            passed = starts < slicing.first_unpassed(self.watermark)
            if passed.any():
                touched.append((keys[passed], starts[passed]))
        if touched:
            keys, starts = (np.concatenate(arrays) for arrays in zip(*touched, strict=True))
            main = list(self._fire_coalesced(keys, starts))
        self._keys.sweep()
        return main, late

    def absorb(self, other: WatermarkOperator) -> list[pa.RecordBatch]:
        """Takes the slices of another operator of the same spec."""
        assert isinstance(other, AlignedOperator)
        rows, slots = other._panes.rows, other._panes.rows.slots()
        starts = rows.starts(slots)
        self._slicing.cover(starts)
        ids = KeyCodec.intern(self._keys, KeyCodec.encoded(other._keys, rows.keys(slots)))
        renumber_rows(self._accumulators, rows, slots)
        self._merge(ids, starts, rows, slots)
        self._keys.sweep()
        return []

    def _merge(
        self, ids: NDArray[np.int32], starts: NDArray[np.int64], others: RowStore, slots: NDArray[np.int32]
    ) -> None:
        """Merges rows that were put together elsewhere into the rows of their slices."""
        self._accumulators.merge_rows(self._panes.rows, self._panes.ensure(ids, starts), others, slots)

    def order_of(self, times: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Orders elements by their slices where neighbours jump between many, if nothing tells when they came.

        Those of a slice stay in their order, so sums of floats are the same too.
        """
        return None if self._accumulators.remembers else order_by_slices(self._slicing, times)

    def _add(self, batch: Batch, starts: NDArray[np.int64]) -> NDArray[np.int32]:
        ids = KeyCodec.intern(self._keys, batch.keys)
        self._panes.add(ids, starts, batch.columns)
        return ids

    def _add_passed(
        self, batch: Batch, starts: NDArray[np.int64], passed: NDArray[np.bool_]
    ) -> Iterator[pa.RecordBatch]:
        """Adds elements of which some, the ``passed`` ones, are in slices of windows that have passed."""
        # Elements that fire nothing touch no window that has passed and is kept, so they may go first.
        rest, starts_passed = batch.select(~passed), starts[passed]
        self._add(rest, starts[~passed])
        batch = batch.select(passed)
        slicing, lateness = self._slicing, self._lateness.at(self.watermark)
        if self._config.coalesce:
            ids = self._add(batch, starts_passed)
            yield from self._fire_coalesced(ids, starts_passed)
            if slicing.shared:
                self._slider.add(ids, starts_passed, batch.columns)
            return
        each = max(1, min(lateness // slicing.step + 1, slicing.covering))
        most = max(1, _FLUSH_ROWS // each)
        owns = len(self._accumulators.owned) > 0 and self._fires_few
        all_ids = KeyCodec.intern(self._keys, batch.keys)
        at, step = 0, max(1, min(FIRST_COPIES // each, most)) if owns else most
        while at < len(batch):
            ids, panes = all_ids[at : at + step], starts_passed[at : at + step]
            columns = [rows_between(column, at, at + len(ids)) for column in batch.columns]
            windows = slicing.late_windows(panes, self.watermark, lateness)
            if not len(windows.ends):
                self._panes.add(ids, panes, columns)
            else:
                self._combiner.add_firing(ids, panes, columns, windows.counts, windows.starts, windows.ends)
                step = min(most, next_copies(step, self._combiner.rows.nbytes)) if owns else step
                yield from self._take_fired(windows.ends)
            if slicing.shared:
                self._slider.add(ids, panes, columns)
            at += len(ids)

    def _fire_coalesced(self, ids: NDArray[np.int32], starts: NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
        """Fires each (key, window) that late elements have touched once, in order of window end.

        ids, starts: the keys and slices of these elements. No window is listed twice: a slice has those alone that the
        key's slice before it has not.
        """
        slicing = self._slicing
        order = np.lexsort((-starts, ids))
        keys, starts = ids[order], starts[order]
        once = begins_of(keys, starts)
        keys, starts = keys[once], starts[once]
        afters = np.full(len(keys), within(MIN_TIMESTAMP))
        afters[:-1] = np.where(keys[1:] == keys[:-1], slicing.last_ends(starts[1:]), afters[:-1])
        windows = slicing.late_windows(starts, self.watermark, self._lateness.at(self.watermark), afters)
        if not len(windows.ends):
            return
        keys = np.repeat(keys, windows.counts)
        self._combiner.fire(keys, windows.starts, windows.ends)
        yield from self._take_fired(windows.ends, np.lexsort((keys, windows.ends)).astype(np.int32))

    def _take_fired(self, ends: NDArray[np.int64], order: NDArray[np.int32] | None = None) -> Iterator[pa.RecordBatch]:
        """Hands over the rows of the combiner, whose windows end at ``ends``, in the given order."""
        rows = self._combiner.rows
        slots = np.arange(len(ends), dtype=np.int32) if order is None else order
        yield from self._results(rows, slots, ends[slots])
        self._combiner.clear()

    def advance_watermark(self, watermark: int) -> list[pa.RecordBatch]:
        """Fires the windows with watermark before < end - 1 <= watermark, in order of their ends."""
        if watermark <= self.watermark:
            return []
        if watermark <= self._quiet_until:
            self.watermark = watermark
            return []
        counted = self.counters.fired
        try:
            results = list(self._fire_shared(watermark) if self._slicing.shared else self._fire_single(watermark))
        except BaseException:
            # No pane is gone yet: what slides over them is made anew.
            self._slider = self._new_slider()
            self.counters.fired = counted
            raise
        self.watermark = watermark
        kept = self._slicing.first_kept(watermark, self._lateness.at(watermark))
        if self._slicing.shared:
            self._slider.leave(kept)
        self._panes.drop_before(kept)
        self._quiet_until = self._until_next_end(watermark)
        return results

    def _until_next_end(self, watermark: int) -> int:
        """Returns the last watermark, ms, up to which no window passes and none is cleaned, whatever comes.

        Int64 min: not known, as what comes may change the bounds of slices.
        """
        lateness = self._config.lateness_ms
        if not self._slicing.knows(watermark - lateness + 1, watermark + 1):
            return MIN_TIMESTAMP
        cleaned = self._slicing.end_after(watermark - lateness + 1) - 2 + lateness
        return min(self._slicing.end_after(watermark + 1) - 2, cleaned, MAX_TIMESTAMP)

    def _fire_single(self, watermark: int) -> Iterator[pa.RecordBatch]:
        """Fires windows that are one slice each: its rows are the result."""
        rows, slicing = self._panes.rows, self._slicing
        first = slicing.first_unpassed(self.watermark)
        last = max(slicing.first_unpassed(watermark) - 1, MIN_TIMESTAMP)
        while len(slots := self._panes.slots_from(first, last, _FLUSH_ROWS)):
            for at in range(0, len(slots), _FLUSH_ROWS):
                part = slots[at : at + _FLUSH_ROWS]
                starts = rows.starts(part)
                yield from self._results(rows, part, slicing.last_ends(starts))
            first = int(starts[-1]) + 1

    def _fire_shared(self, watermark: int) -> Iterator[pa.RecordBatch]:
        end = self._next_end()
        owns = len(self._accumulators.owned) > 0 and self._fires_few
        most = 1 if owns else _FLUSH_ROWS
        while end is not None and end - 1 <= watermark:
            rows = self._accumulators.new_rows()
            ends: list[int] = []
            counts: list[int] = []
            while end is not None and end - 1 <= watermark and len(rows) < _FLUSH_ROWS and len(ends) < most:
                counts.append(self._slider.fire(self._slicing.start_of(end), end, rows))
                ends.append(end)
                end = self._next_end(end)
            most = next_copies(most, rows.nbytes) if owns else most
            yield from self._results(rows, np.arange(len(rows), dtype=np.int32), np.repeat(ends, counts))

    def _next_end(self, after: int | None = None) -> int | None:
        """Returns the first end later than ``after`` of a window with contents; None: later than all that fired."""
        end = self._slicing.end_after(self.watermark + 1 if after is None else after)
        first = self._panes.first_start(min(max(self._slicing.start_of(end), MIN_TIMESTAMP), MAX_TIMESTAMP))
        if first is None or first < end:
            return None if first is None else end
        return self._slicing.end_after(first)

    def _results(self, rows: RowStore, slots: NDArray[np.int32], ends: NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
        self.counters.fired += len(slots)
        return self._config.results_of_rows(self._keys, self._accumulators, rows, slots, ends)

    def next_timer(self) -> int | None:
        """Returns the next watermark at which a window fires or a slice goes."""
        first = self._panes.first_start(MIN_TIMESTAMP)
        if first is None:
            return None
        gone = self._slicing.last_end(first) - 1 + self._config.lateness_ms
        end = self._next_end()
        return gone if end is None else min(gone, end - 1)

    def open_windows(self) -> int:
        """Counts (key, window) pairs with contents that are not cleaned yet, as ``open_windows_over`` does."""
        return open_windows_over(self._panes, self._open_ends, self._slicing, self.watermark, self._lateness)

    def look(self, key: EncodedKeys | None = None) -> HeldWindows:
        """Returns the windows over the slices that there are."""
        found = self._looked_at([Slices(self._panes.rows, slots_of_key(self._keys, self._panes.rows, key))])
        self._keys.sweep()
        return found

    def _looked_at(self, parts: list[Slices]) -> HeldWindows:
        slicing, accumulators = self._slicing, self._accumulators
        return held_windows(self._config, self._keys, accumulators, slicing, parts, self.watermark, self._lateness)

    def place_rows(self, in_file: bool) -> int:
        return super().place_rows(in_file) + self._slider.place(in_file)

    @property
    def state_bytes(self) -> int:
        """Bytes allocated for panes, the window that slides over them, keys, open windows, and a round of repeating."""
        held = self._panes.nbytes + self._slider.nbytes + self._keys.nbytes + self._open_ends.nbytes
        return held + round_bytes(self._round)

    def _last_end(self, rows: pa.Table) -> int:
        return self._slicing.last_end(pc.max(rows["start"]).as_py())

    def take_chunks(self, chunks: list[Chunk]) -> None:
        rows = self._panes.rows
        wanted = ["start", *cell_names(rows, HEAD_CELLS)]
        self._quiet_until = MIN_TIMESTAMP
        fresh = self._take_progress(chunks)
        for chunk in chunks:
            self._slicing.cover(column_of(chunk.tables, "rows", "start"))
        kept = self._first_kept
        found = []
        for chunk in chunks:
            if self._matters(chunk):
                starts = column_of(chunk.tables, "rows", "start")
                live = starts >= kept
                self._unmark_repeated(live, chunk, fresh)
                if (starts[live] < self._slider.end).any():
                    self._slider = self._new_slider()
                found.append((chunk, live))
        if self._slicing.shared:
            self._slider.leave(kept)
        self._panes.drop_before(kept)
        if fresh:
            make_room_for(self._panes, found)
        for chunk, live in found:
            ids = load_keys(self._config.codec, self._keys, chunk.tables["keys"])
            columns = some_rows(load_rows(chunk.tables, ids, wanted), live)
            slots = self._panes.ensure(columns["key"], columns["start"])
            fill_rows(self._accumulators, rows, slots, columns, HEAD_CELLS)
        self._keys.sweep()
        rows.clear_dirty()

    def _check(self) -> None:
        self._panes._check()
        self._slider._check()
        kept = self._first_kept
        assert all(start >= kept for start in self._panes.starts()), "a slice of cleaned windows is still there"
        self._check_keys(self.kinds())

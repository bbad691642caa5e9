"""The aligned operator: tumbling and sliding windows in event time, one row of state for each (key, slice).

An element updates its slice alone, however many windows cover it; a window is put together from its
slices when it fires. Which windows have fired follows from the watermark, so there are no timers.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.core.combine import WindowCombiner
from fastwin.core.panes import PaneTable
from fastwin.core.rows import RowStore
from fastwin.core.slices import assign_slices
from fastwin.errors import StateError
from fastwin.keycodec import KeyCodec
from fastwin.operators.base import (
    Batch,
    Config,
    Counters,
    Fed,
    fill_rows,
    load_keys,
    load_rows,
    read_chunks,
    save_rows,
)
from fastwin.operators.slicing import Slicing
from fastwin.windows import MIN_TIMESTAMP

__all__ = ["AlignedOperator"]

_HEAD_CELLS = 3
_FLUSH_ROWS = 1 << 18
# No window ends beyond; differences of such ends stay in int64.
_END_LIMIT = 2**62


class AlignedOperator:
    """Runs aligned windows with the default trigger. Implements the Operator protocol."""

    def __init__(self, config: Config, slicing: Slicing) -> None:
        self._config = config
        self._slicing = slicing
        self._keys = config.codec.new_table()
        self._accumulators = config.new_accumulators(_HEAD_CELLS)
        self._panes = PaneTable(self._keys, self._accumulators)
        self._combiner = WindowCombiner(self._panes)
        self.watermark = MIN_TIMESTAMP
        self.counters = Counters()

    def process(self, batch: Batch) -> Fed:
        """Adds elements to their slices; windows that have passed and are kept fire again."""
        slicing, lateness, watermark = self._slicing, self._config.lateness_ms, self.watermark
        self.counters.events += len(batch)
        starts, unassigned = assign_slices(batch.times, slicing.size, slicing.slide, slicing.offset)
        late = starts < slicing.first_kept(watermark, lateness)
        if unassigned is not None:
            # An element in a gap between windows is late by its own time, or simply has no window.
            late = np.where(unassigned, batch.times <= max(watermark - lateness, MIN_TIMESTAMP), late)
            self.counters.unassigned += int(np.count_nonzero(unassigned & ~late))
        taken = ~late if unassigned is None else ~(late | unassigned)
        fed = Fed(late=late if late.any() else None)
        if not taken.all():
            batch, starts = batch.select(taken), starts[taken]
        again = starts < slicing.first_unpassed(watermark)
        if not again.any():
            self._add(batch, starts)
        elif self._config.coalesce:
            ids = self._add(batch, starts)
            self._fire_coalesced(ids[again], starts[again])
            fed.main = list(self._take_fired())
        else:
            # Elements that fire nothing touch no window that has passed, so they may go first.
            self._add(batch.select(~again), starts[~again])
            for row in np.flatnonzero(again):
                one = np.array([row])
                ids = self._add(batch.select(one), starts[one])
                for end in slicing.late_ends(int(starts[row]), watermark, lateness):
                    self._combiner.fire_key(int(ids[0]), end - slicing.size, end)
            fed.main = list(self._take_fired())
        self._keys.sweep()
        return fed

    def _add(self, batch: Batch, starts: NDArray[np.int64]) -> NDArray[np.int32]:
        ids = KeyCodec.intern(self._keys, batch.keys)
        self._panes.add(ids, starts, batch.columns)
        return ids

    def _fire_coalesced(self, ids: NDArray[np.int32], starts: NDArray[np.int64]) -> None:
        """Fires each (key, window) that late elements have touched once, in order of window end."""
        touched = set()
        for key, start in set(zip(ids.tolist(), starts.tolist(), strict=True)):
            for end in self._slicing.late_ends(start, self.watermark, self._config.lateness_ms):
                touched.add((end, key))
        for end, key in sorted(touched):
            self._combiner.fire_key(key, end - self._slicing.size, end)

    def advance_watermark(self, watermark: int) -> list[pa.RecordBatch]:
        """Fires the windows with watermark before < end - 1 <= watermark, in order of their ends."""
        if watermark <= self.watermark:
            return []
        results = list(self._fire_until(watermark))
        self.watermark = watermark
        self._panes.drop_before(self._slicing.first_kept(watermark, self._config.lateness_ms))
        return results

    def _fire_until(self, watermark: int) -> Iterator[pa.RecordBatch]:
        slicing = self._slicing
        end = self._next_end()
        if slicing.size <= slicing.slide:  # a window is one slice: its rows are the result
            while end is not None and end - 1 <= watermark:
                yield from self._results(self._panes.rows, self._panes.slots_of(end - slicing.size))
                end = self._next_end(end)
            return
        while end is not None and end - 1 <= watermark:
            self._combiner.fire(end - slicing.size, end)
            if len(self._combiner.rows) >= _FLUSH_ROWS:
                yield from self._take_fired()
            end = self._next_end(end)
        yield from self._take_fired()

    def _next_end(self, after: int | None = None) -> int | None:
        """Returns the first end later than ``after`` of a window with contents; None: later than all that fired."""
        slicing = self._slicing
        if after is None:
            after = self.watermark + 1
        first = self._panes.first_start(max(after - slicing.size, MIN_TIMESTAMP))
        while first is not None:
            end = slicing.end_after(max(after, first))
            if end - slicing.size <= first:
                return end
            first = self._panes.first_start(end - slicing.size)
        return None

    def _take_fired(self) -> Iterator[pa.RecordBatch]:
        rows = self._combiner.rows
        if len(rows):
            yield from self._results(rows, rows.slots())
            self._combiner.clear()

    def _results(self, rows: RowStore, slots: NDArray[np.int32]) -> Iterator[pa.RecordBatch]:
        self.counters.fired += len(slots)
        ends = rows.starts(slots) + self._slicing.size
        yield self._config.rows_to_result(self._keys, self._accumulators, rows, slots, ends)

    def next_timer(self) -> int | None:
        """Returns the next watermark at which a window fires or a slice goes."""
        first = self._panes.first_start(MIN_TIMESTAMP)
        if first is None:
            return None
        gone = self._slicing.last_end(first) - 1 + self._config.lateness_ms
        end = self._next_end()
        return gone if end is None else min(gone, end - 1)

    def open_windows(self) -> int:
        """Counts (key, window) pairs with contents that are not cleaned yet. O(rows log rows) for sliding windows."""
        slicing, rows = self._slicing, self._panes.rows
        if slicing.size <= slicing.slide:
            return len(rows)
        slots = rows.slots()
        keys, starts = rows.keys(slots), rows.starts(slots)
        order = np.lexsort((starts, keys))
        keys, starts = keys[order], starts[order]
        grid = slicing.offset + slicing.size
        first = starts - (starts - grid) % slicing.slide + slicing.slide
        if self.watermark > MIN_TIMESTAMP:
            kept = slicing.end_after(self.watermark - self._config.lateness_ms + 1)
            first = np.maximum(first, max(-_END_LIMIT, min(kept, _END_LIMIT)))
        last = starts - (starts - slicing.offset) % slicing.slide + slicing.size
        # A window is counted at the key's first slice in it.
        first[1:] = np.where(keys[1:] == keys[:-1], np.maximum(first[1:], last[:-1] + slicing.slide), first[1:])
        return int(np.maximum((last - first) // slicing.slide + 1, 0).sum())

    @property
    def state_rows(self) -> int:
        """Rows of state: one for each (key, slice)."""
        return len(self._panes)

    @property
    def state_bytes(self) -> int:
        """Bytes allocated for panes and keys."""
        return self._panes.nbytes + self._keys.nbytes

    def snapshot(self) -> bytes:
        """Returns all rows and the watermark."""
        return self._save("snapshot", self._panes.rows.slots())

    def delta(self) -> bytes:
        """Returns the rows changed since the last call and the watermark, which tells the rows that are gone."""
        return self._save("delta", self._panes.rows.dirty_slots())

    def _save(self, kind: str, slots: NDArray[np.int32]) -> bytes:
        tables = save_rows(self._config.codec, self._keys, self._panes.rows, slots, {"start": 1}, _HEAD_CELLS)
        self._panes.rows.clear_dirty()
        return self._config.encode_state(kind, self.watermark, tables)

    def restore(self, chunks: list[bytes]) -> None:
        """Takes the state of one snapshot and the deltas after it; raises StateError unless the operator is fresh."""
        if self.counters.events or self.state_rows or self.watermark != MIN_TIMESTAMP:
            raise StateError("restore: the operator has run already")
        rows = self._panes.rows
        wanted = ["start", *(f"c{cell}" for cell in range(_HEAD_CELLS, rows.stride // 8))]
        for chunk in read_chunks(chunks, self._config):
            ids = load_keys(self._config.codec, self._keys, chunk.tables["keys"])
            columns = load_rows(chunk.tables, ids, wanted)
            slots = self._panes.ensure(columns["key"], columns["start"])
            fill_rows(self._accumulators, rows, slots, columns, _HEAD_CELLS)
            self.watermark = max(self.watermark, chunk.meta["watermark"])
            self._panes.drop_before(self._slicing.first_kept(self.watermark, self._config.lateness_ms))
            self._keys.sweep()
        rows.clear_dirty()

    def _check(self) -> None:
        self._panes._check()
        kept = self._slicing.first_kept(self.watermark, self._config.lateness_ms)
        assert all(start >= kept for start in self._panes.starts()), "a slice of cleaned windows is still there"
        assert len(np.unique(self._panes.rows.keys(self._panes.rows.slots()))) == len(self._keys), "a key has no row"

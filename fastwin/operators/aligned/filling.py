"""The filling operator: aligned windows, and a row for each window without elements between two that have some."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.buffers import spread
from fastwin.core.accumulators.accumulator_set import AccumulatorSet
from fastwin.core.panes.marks import MARK_CELLS, pass_windows
from fastwin.core.panes.panetable import PaneTable
from fastwin.core.panes.rowsbyend import repeat_until, rows_by_end
from fastwin.core.rows.rowstore import HEAD_CELLS, RowStore
from fastwin.operators.aligned.operator import AlignedOperator
from fastwin.operators.aligned.slicing import Slicing, clamped
from fastwin.operators.config import Config
from fastwin.operators.eventtime import Beside
from fastwin.operators.parts import parts_within
from fastwin.state.chunks import Chunk
from fastwin.state.order import START_CELL, row_order
from fastwin.state.refresh import RepeatedRows
from fastwin.state.rows import fill_rows, load_keys, load_rows, save_rows, some_rows
from fastwin.times import MIN_TIMESTAMP

__all__ = ["FillingOperator"]

# Windows without elements that are found at once, but for those that one window ends; bytes of the keys of a batch.
_TOGETHER, _MOST_BYTES = 1 << 20, 1 << 30
_CELLS = [f"c{cell}" for cell in range(HEAD_CELLS, HEAD_CELLS + MARK_CELLS)]


class FillingOperator(AlignedOperator):
    """Hands out the windows of a gap together with the window that ends it: before, nobody knows that it ends.

    longest_gap_ms: windows with elements that end further apart have no gap between them that is filled. Up to
    twice so long after its last window, and the allowed lateness, what is known of a key is forgotten: its marks, see
    ``pass_windows``. shared: keys and accumulators of one of several operators, see AlignedOperator.
    """

    name: ClassVar[str] = "filling"
    _fires_few: ClassVar[bool] = False  # those of gaps are put among what fires with them

    def __init__(self, config: Config, slicing: Slicing, longest_gap_ms: int, *shared: Any) -> None:
        super().__init__(config, slicing, *shared)
        self._gap = longest_gap_ms
        self._marks = PaneTable(self._keys, AccumulatorSet([], HEAD_CELLS + MARK_CELLS))
        rows = self._accumulators.new_rows()
        nothing = rows.fresh(np.zeros(1, np.int32), np.zeros(1, np.int64))
        self._empty = config.values_of(self._accumulators, rows, nothing)

    def _results(self, rows: RowStore, slots: NDArray[np.int32], ends: NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
        self.counters.fired += len(slots)
        for part, values in self._config.values_in_parts(self._accumulators, rows, slots):
            yield from self._filled(rows.keys(slots[part]), rows.starts(slots[part]), ends[part], values)

    def _filled(
        self, keys: NDArray[np.int32], starts: NDArray[np.int64], ends: NDArray[np.int64], values: list[pa.Array]
    ) -> Iterator[pa.RecordBatch]:
        """Yields the results of windows, and those of the gaps that they end; each batch is in order of ends.

        It is one, unless that had too many rows or too much text.
        """
        slicing = self._slicing
        in_order = not (ends[1:] < ends[:-1]).any()  # those of a late element come with the latest first
        order = np.arange(len(ends)) if in_order else np.argsort(ends, kind="stable")
        ended_by, afters, untils = pass_windows(self._marks, keys[order], ends[order], self._gap)
        slicing.cover_between(afters, untils)
        firsts, lasts = slicing.places_of(afters) + 1, slicing.places_of(untils) - 1
        some = firsts <= lasts
        if not some.any():
            yield self._config.result(self._keys, keys, starts, ends, values)
            return
        ended_by, firsts, lasts = ended_by[some], firsts[some], lasts[some]
        keys, places = keys[order], slicing.places_of(ends[order])
        if not in_order:
            wanted = pa.array(order)
            values = [column.take(wanted) for column in values]
        filled = np.zeros(len(order), np.int64)
        np.add.at(filled, ended_by, lasts - firsts + 1)
        for part in parts_within(filled, _TOGETHER):
            mine = np.flatnonzero((ended_by >= part.start) & (ended_by < part.stop))
            yield from self._together(
                np.concatenate([keys[ended_by[mine]], keys[part]]),
                np.concatenate([firsts[mine], places[part]]),
                np.concatenate([lasts[mine], places[part]]),
                [column[part] for column in values],
                len(keys[part]),
            )

    def _together(
        self,
        keys: NDArray[np.int32],
        firsts: NDArray[np.int64],
        lasts: NDArray[np.int64],
        values: list[pa.Array],
        fired: int,
    ) -> Iterator[pa.RecordBatch]:
        """Yields the results of gaps, and behind them in each end those of windows that have fired.

        keys, firsts, lasts: runs of windows, see ``rows_by_end``; those of gaps come first. fired: how many follow, of
        one window each. values: the results of these.
        """
        ids, at, places, bounds = rows_by_end(keys, firsts, lasts)
        starts, ends = (repeat_until(each, bounds) for each in self._slicing.windows_at(places))
        alone, at = keys[len(keys) - fired :], at[len(at) - fired :]
        self.counters.fired += len(ids) - fired
        values = [spread(column, at, len(ids), empty) for column, empty in zip(values, self._empty, strict=True)]
        for part in self._parts(alone, ids):
            some = [column[part] for column in values]
            yield self._config.result(self._keys, ids[part], starts[part], ends[part], some)

    def _parts(self, keys: NDArray[np.int32], ids: NDArray[np.int32]) -> Iterable[slice]:
        """Returns which rows go together so that their keys have not too many bytes. keys: all those of ``ids``."""
        if not self._keys.is_bytes:
            return [slice(0, len(ids))]
        sizes = np.diff(self._keys.take_bytes(keys)[0])
        if int(sizes.max()) * len(ids) <= _MOST_BYTES:
            return [slice(0, len(ids))]
        known, at = np.unique(keys, return_index=True)
        return parts_within(sizes[at][np.searchsorted(known, ids)], _MOST_BYTES)

    def advance_watermark(self, watermark: int) -> list[pa.RecordBatch]:
        """Fires windows, with those of gaps that end; forgets keys that have had none for too long."""
        results = super().advance_watermark(watermark)
        self._forget()
        return results

    def _forget(self) -> None:
        if self.watermark > MIN_TIMESTAMP:
            self._marks.drop_before(self._first_mark_kept())

    def _first_mark_kept(self) -> int:
        """Returns the first pane of marks of which a window that is not cleaned may end a gap."""
        return clamped(self.watermark - self._lateness.at(self.watermark) - 2 * self._gap + 3)

    def _gone(self, pane: int) -> int:
        """Returns the end of the last window that a mark in a pane means anything to."""
        return clamped(pane + 2 * self._gap - 1)

    def next_timer(self) -> int | None:
        """Returns the next watermark at which a window fires, or a slice or a mark goes."""
        found = super().next_timer()
        first = self._marks.first_start(MIN_TIMESTAMP)
        if first is None:
            return found
        gone = clamped(self._gone(first) - 1 + self._config.lateness_ms)
        return gone if found is None else min(found, gone)

    @property
    def state_rows(self) -> int:
        """Rows of state: one for each (key, slice), and one to three for each key that has had a window."""
        return super().state_rows + len(self._marks)

    @property
    def state_bytes(self) -> int:
        """Bytes allocated."""
        return super().state_bytes + self._marks.nbytes

    def changed(self) -> bool:
        return super().changed() or len(self._marks.rows.dirty_slots()) > 0

    def kinds(self) -> list[RepeatedRows]:
        return [*super().kinds(), self._marks.rows]

    def _beside(self, kind: Literal["snapshot", "delta"], unchanged: list[NDArray[np.int32]]) -> Beside:
        rows = self._marks.rows
        slots = rows.slots() if kind == "snapshot" else np.concatenate([rows.dirty_slots(), *unchanged])
        slots = row_order(self._keys, rows, slots)
        held = self._marks.accumulators
        saved = save_rows(self._config.codec, self._keys, held, rows, slots, {"start": START_CELL}, HEAD_CELLS)
        last = self._gone(int(rows.starts(slots).max())) if len(slots) else None
        return Beside({"mark_keys": saved["keys"], "marks": saved["rows"]}, len(slots), last)

    def saved(self, slots: NDArray[np.int32]) -> None:
        super().saved(slots)
        self._marks.rows.clear_dirty()

    def take_chunks(self, chunks: list[Chunk]) -> None:
        super().take_chunks(chunks)
        rows = self._marks.rows
        for chunk in chunks:
            ids = load_keys(self._config.codec, self._keys, chunk.tables["mark_keys"])
            columns = load_rows({"rows": chunk.tables["marks"]}, ids, ["start", *_CELLS])
            columns = some_rows(columns, columns["start"] >= self._first_mark_kept())
            self._slicing.cover(columns[_CELLS[0]])
            slots = self._marks.ensure(columns["key"], columns["start"])
            fill_rows(self._marks.accumulators, rows, slots, columns, HEAD_CELLS)
        self._forget()
        self._keys.sweep()
        rows.clear_dirty()

    def _check(self) -> None:
        super()._check()
        self._marks._check()

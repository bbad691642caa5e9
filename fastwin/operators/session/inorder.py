"""Sessions of a table whose elements come in order of time, or are put in it: each is written once."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.buffers import int64_values
from fastwin.columns.keys import DictionaryKeys
from fastwin.columns.values import ValueColumn
from fastwin.core.accumulators.exchange import renumber_rows
from fastwin.core.keys.keycolumns import decode_rows
from fastwin.core.memory.ordering import ordered
from fastwin.core.panes.grouptable import head_cells
from fastwin.core.panes.sessiongroups import SessionGroups, are_in_order
from fastwin.core.panes.slices import most_slices, order_by_slice
from fastwin.core.sessions.scan import order_by_time
from fastwin.operators.batch import Batch, rows_at, rows_between
from fastwin.operators.config import Config
from fastwin.spec.resultcolumns import WINDOW_END
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP

__all__ = ["order_of", "run_in_order"]

# Elements that are taken before what is over fires: their rows stay in the cache until then.
_PIECE_ROWS = 1 << 17
# Fewer sessions than that wait until more are over.
_FEW_SESSIONS = 1 << 13


def order_of(config: Config, batch: Batch, each: Callable = map, threads: int = 1) -> NDArray[np.int64] | None:
    """Returns the order in which ``run_in_order`` takes the elements of a batch, int64[n], or none, int64[0], where
    they are in order of time already; None where it does not take them.

    It takes keys without nulls, no text that threads would share, and times that are in order. Where they are not, but
    near each other, it takes keys that are numbers: text is slow to copy; and not on threads if results ask for the
    order of arrival, which is not that of the parts then. each, threads: see ``run_in_order``.
    """
    if isinstance(batch.keys, DictionaryKeys) or batch.keys[-1] is not None:
        return None
    if threads > 1 and any(len(column) == 3 for column in batch.columns):
        return None
    cuts = _cuts(len(batch), threads)
    if all(each(lambda first, stop: are_in_order(batch.times[max(first - 1, 0) : stop]), cuts, cuts[1:])):
        return np.zeros(0, np.int64)
    if len(batch.keys) != 2 or (threads > 1 and batch.arrival is not None):
        return None
    return order_by_time(batch.times, each, threads)


def run_in_order(
    config: Config, gap_ms: int, batch: Batch, order: NDArray[np.int64], each: Callable = map, threads: int = 1
) -> list[pa.RecordBatch]:
    """Returns the results of all sessions, in order of their ends.

    order: of the elements, see ``order_of``. each: calls a function with each of some arguments, as ``map`` does, maybe
    on several threads. Each of ``threads`` takes a part of the time.
    """

    def run_part(first: int, stop: int) -> _Part:
        part = _Part(config, gap_ms, batch, order)
        part.run(first, stop)
        return part

    cuts = _cuts(len(batch), threads)
    first, *others = each(run_part, cuts, cuts[1:])
    results = first.results
    for part in others:
        results += each(_merged, part.with_those_before(first))
    return results


def _cuts(n: int, threads: int) -> list[int]:
    """Returns where the parts of n elements begin and end, one for each thread."""
    return sorted({n * i // threads for i in range(threads + 1)}) if n else [0, 0]


class _Part:
    """The sessions of some elements of a batch. order: see ``order_of``."""

    def __init__(self, config: Config, gap_ms: int, batch: Batch, order: NDArray[np.int64]) -> None:
        self._config, self._gap, self._batch, self._order = config, gap_ms, batch, order
        texts = [len(cast(tuple, batch.keys)) == 3]
        self.table: SessionGroups = SessionGroups(config.new_accumulators(head_cells(texts)), texts)
        self.results: list[pa.RecordBatch] = []  # of sessions that are over, piece by piece, in order of their ends
        self._befores: list[int] = []  # those of a piece end up to it, ms, and those of the next one not before it
        self._early: list[tuple] = []  # sessions that may go on with one from before the part: see absorb_sessions()
        self._since = MIN_TIMESTAMP  # others start after it, ms

    def run(self, first: int, stop: int) -> None:
        """Takes the elements [first, stop)."""
        batch = self._batch
        if first:
            self._since = self._time(first - 1) + self._gap
        for at in range(first, stop, _PIECE_ROWS):
            end = min(at + _PIECE_ROWS, stop)
            keys, times, *columns = (
                self._rows(column, at, end) for column in (cast(tuple, batch.keys), (batch.times, None), *batch.columns)
            )
            self.table.feed_sessions([keys], times[0], self._gap, columns)
            before = self._time(end) if end < len(batch) else MAX_TIMESTAMP
            self.table.end_before(before)
            if end == stop or len(self.table.ended) >= _FEW_SESSIONS:
                self._fire(before)

    def _time(self, i: int) -> int:
        """Returns the time of element i in order, ms."""
        return int(self._batch.times[self._order[i] if len(self._order) else i])

    def _rows(self, column: ValueColumn, at: int, stop: int) -> ValueColumn:
        """Returns rows [at, stop), in order, of a column, or of keys that are encoded likewise."""
        return rows_at(column, self._order[at:stop]) if len(self._order) else rows_between(column, at, stop)

    def with_those_before(self, first: _Part) -> list[tuple[pa.RecordBatch, ...]]:
        """Gives sessions that may go on with one from before this part to the first part, which has what was open then.

        Returns the results of this part, piece by piece in one or two batches, each in order of its ends. What is open
        after it is in the first part.
        """
        table, before = self.table, first.table
        slots, ends = table.open_sessions()
        for sessions in [*self._early, (table.keys(slots), table.rows.starts(slots), ends, table.rows, slots)]:
            renumber_rows(before.accumulators, *sessions[3:])
            before.absorb_sessions(*sessions)
        before.end_before(self._befores[-1])
        count = len(first.results)
        first._fire(self._befores[-1])
        found = pa.concat_batches(first.results[count:])
        del first.results[count:]
        cuts = np.searchsorted(int64_values(found.column(WINDOW_END)), self._befores)
        parts = zip([0, *cuts], cuts, self.results, strict=False)
        return [(piece, found.slice(at, end - at)) for at, end, piece in parts]

    def _fire(self, before: int) -> None:
        """Fires the sessions that are over, which end before ``before``, ms, in order of their ends."""
        table, config = self.table, self._config
        slots, ends = table.ended_sessions()
        starts = table.ended.starts(slots)
        early = starts <= self._since
        if early.any():
            self._keep(slots[early], starts[early], ends[early])
            slots, starts, ends = slots[~early], starts[~early], ends[~early]
        for part, values in config.values_in_parts(table.accumulators, table.ended, slots):
            keys = _decoded(config, table.ended_keys(slots[part])[0])
            self.results.append(config.result_of(keys, starts[part], ends[part], values))
            self._befores.append(before if part.stop == len(slots) else int(ends[part.stop]))
        table.forget_ended()

    def _keep(self, slots: NDArray[np.int32], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        """Keeps copies of sessions that are over, but may go on with one from before the part."""
        accumulators = self.table.accumulators
        rows = accumulators.new_rows()
        kept = rows.fresh(np.zeros(len(slots), np.int32), starts)
        accumulators.merge_rows(rows, kept, self.table.ended, slots)
        self._early.append((self.table.ended_keys(slots), starts, ends, rows, kept))


def _order(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the stable order of times, ms: int64[n]."""
    if not len(ends):
        return np.zeros(0, np.int64)
    first, last = int(ends.min()), int(ends.max())
    if last - first < most_slices:
        # Counted from the first of them: a session ends a gap later than the latest time there may be.
        return order_by_slice(ends - first, 0, 1, last - first + 1)[0]
    return ordered([ends])[0].astype(np.int64)


def _decoded(config: Config, keys: tuple) -> list[pa.Array]:
    if len(config.codec.fields) == 1:
        return config.codec.decode_columns([keys])
    if not config.codec.fields:
        return []
    offsets, data, _ = keys
    return config.codec.decode_columns(decode_rows(offsets, data, [not is_text for is_text in config.codec.are_texts]))


def _merged(parts: tuple[pa.RecordBatch, ...]) -> pa.RecordBatch:
    """Returns the rows of several batches, each of which is in order of the ends, in that order."""
    some = [part for part in parts if part.num_rows]
    if len(some) < 2:
        return some[0] if some else parts[0]
    rows = pa.concat_batches(some)
    return rows.take(pa.array(_order(int64_values(rows.column(WINDOW_END)))))

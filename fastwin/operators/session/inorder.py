"""Sessions of a table whose elements come in order of time, or are put in it: each is written once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock
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
from fastwin.machine.threads import ALONE, Threads
from fastwin.operators.batch import Batch, rows_at, rows_between
from fastwin.operators.config import Config
from fastwin.spec.resultcolumns import WINDOW_END
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP

__all__ = ["order_of", "run_in_order"]

# Elements that are taken before what is over fires: their rows stay in the cache until then.
_PIECE_ROWS = 1 << 17
# Fewer sessions than that wait until more are over.
_FEW_SESSIONS = 1 << 13
# Later parts keep sessions for the first one, so they are smaller.
_FIRST, _LATER = 12, 11
# When sessions start, ms, and their key columns.
_Heads = tuple[NDArray[np.int64], list[tuple]]


def order_of(config: Config, batch: Batch, each: Threads = ALONE) -> NDArray[np.int64] | None:
    """Returns the order in which ``run_in_order`` takes the elements of a batch, int64[n], or none, int64[0], where
    they are in order of time already; None where it does not take them.

    It takes keys without nulls, no text that threads would share, and times that are in order. Where they are not, but
    near each other, it takes keys that are numbers: text is slow to copy; and not on threads if results ask for the
    order of arrival, which is not that of the parts then. each: the threads that take part.
    """
    if isinstance(batch.keys, DictionaryKeys) or batch.keys[-1] is not None:
        return None
    if each.count > 1 and any(len(column) == 3 for column in batch.columns):
        return None
    cuts = _cuts(len(batch), each.count)
    if all(each(lambda first, stop: are_in_order(batch.times[max(first - 1, 0) : stop]), cuts, cuts[1:])):
        return np.zeros(0, np.int64)
    if len(batch.keys) != 2 or (each.count > 1 and batch.arrival is not None):
        return None
    return order_by_time(batch.times, each, each.count)


def run_in_order(
    config: Config, gap_ms: int, batch: Batch, order: NDArray[np.int64], each: Threads = ALONE
) -> list[pa.RecordBatch]:
    """Returns the results of all sessions, in order of their ends.

    order: of the elements, see ``order_of``. each: the threads that take part; each of them takes a part of the time.
    """

    def run_part(first: int, stop: int) -> _Part:
        part = _Part(config, gap_ms, batch, order)
        part.run(first, stop)
        return part

    cuts = _cuts(len(batch), each.count, _FIRST, _LATER)
    first, *others = each(run_part, cuts, cuts[1:])
    results = [rows for _, rows in first.pieces]
    for part in others:
        results += _with_those_before(part, first, each)
    return results


def _cuts(n: int, threads: int, first: int = 1, later: int = 1) -> list[int]:
    """Returns where the parts of n elements begin and end, one for each thread. first, later: how large parts are."""
    ends = [first + later * i for i in range(threads)]
    return sorted({0, *(n * end // ends[-1] for end in ends)}) if n else [0, 0]


def _with_those_before(part: _Part, first: _Part, each: Callable) -> list[pa.RecordBatch]:
    """Returns the results of a part, with those of sessions that began before it.

    The first part has what was open then, and takes what is open after this one. each: see ``run_in_order``.
    """
    first.take_early(part)
    befores = [before for before, _ in part.pieces]
    first.table.end_before(befores[-1])
    slots, ends = first.table.ended_sessions()
    cuts = np.searchsorted(ends, befores)
    one_reads = Lock()

    def merge(at: int, stop: int, piece: tuple[int, pa.RecordBatch]) -> pa.RecordBatch:
        with one_reads:
            fired = [rows for _, rows in first.results(slots[at:stop], ends[at:stop])]
        return _merged([*fired, piece[1]])

    found = each(merge, [0, *cuts], cuts, part.pieces)
    first.table.forget_ended()
    return found


class _Part:
    """The sessions of some elements of a batch. order: see ``order_of``."""

    def __init__(self, config: Config, gap_ms: int, batch: Batch, order: NDArray[np.int64]) -> None:
        self._config, self._gap, self._batch, self._order = config, gap_ms, batch, order
        texts = [len(cast(tuple, batch.keys)) == 3]
        self.table: SessionGroups = SessionGroups(config.new_accumulators(head_cells(texts)), texts)
        # Results of sessions that are over, piece by piece, in order of their ends; those of a piece end up to a time,
        # ms, and those of the next one not before it.
        self.pieces: list[tuple[int, pa.RecordBatch]] = []
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

    def take_early(self, part: _Part) -> None:
        """Takes sessions of the next part that may go on with one from before it, and what is open after it."""
        table, other = self.table, part.table
        slots, ends = other.open_sessions()
        for sessions in [*part._early, (other.keys(slots), other.rows.starts(slots), ends, other.rows, slots)]:
            renumber_rows(table.accumulators, *sessions[3:])
            table.absorb_sessions(*sessions)

    def results(
        self, slots: NDArray[np.int32], ends: NDArray[np.int64], heads: _Heads | None = None
    ) -> Iterator[tuple[slice, pa.RecordBatch]]:
        """Yields the results of sessions that are over, with which of them these are: mostly all at once.

        heads: of these sessions, if they are at hand.
        """
        table, config = self.table, self._config
        for part, values in config.values_in_parts(table.accumulators, table.ended, slots):
            if heads is None or part.stop - part.start < len(slots):
                heads = table.ended_heads(slots[part])
            starts, keys = heads
            yield part, config.result_of(_decoded(config, keys[0]), starts, ends[part], values)

    def _fire(self, before: int) -> None:
        """Fires the sessions that are over, which end before ``before``, ms, in order of their ends."""
        slots, ends = self.table.ended_sessions()
        heads = self.table.ended_heads(slots)
        early = heads[0] <= self._since
        if early.any():
            self._keep(slots[early], ends[early])
            slots, ends = slots[~early], ends[~early]
        for part, rows in self.results(slots, ends, None if early.any() else heads):
            self.pieces.append((before if part.stop == len(slots) else int(ends[part.stop]), rows))
        self.table.forget_ended()

    def _keep(self, slots: NDArray[np.int32], ends: NDArray[np.int64]) -> None:
        """Keeps copies of sessions that are over, but may go on with one from before the part."""
        accumulators = self.table.accumulators
        starts, keys = self.table.ended_heads(slots)
        rows = accumulators.new_rows()
        kept = rows.fresh(np.zeros(len(slots), np.int32), starts)
        accumulators.merge_rows(rows, kept, self.table.ended, slots)
        self._early.append((keys, starts, ends, rows, kept))


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


def _merged(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Returns the rows of several batches, each of which is in order of the ends, in that order."""
    some = [part for part in parts if part.num_rows]
    if len(some) < 2:
        return some[0] if some else parts[0]
    rows = pa.concat_batches(some)
    return rows.take(pa.array(_order(int64_values(rows.column(WINDOW_END)))))

"""Sessions of a table whose elements come in order of time: each is a row found by its key, and written once."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.buffers import int64_values
from fastwin.columns.keys import DictionaryKeys
from fastwin.columns.values import ValueColumn
from fastwin.core.keys.keycolumns import decode_rows
from fastwin.core.memory.ordering import ordered
from fastwin.core.panes.grouptable import head_cells
from fastwin.core.panes.sessiongroups import SessionGroups, are_in_order
from fastwin.core.panes.slices import most_slices, order_by_slice
from fastwin.operators.batch import Batch
from fastwin.operators.config import Config
from fastwin.times import MAX_TIMESTAMP

__all__ = ["run_in_order", "suits"]

# Elements that are taken before what is over fires: their rows stay in the cache until then.
_PIECE_ROWS = 1 << 18


def suits(batch: Batch, threads: int) -> bool:
    """Whether ``run_in_order`` takes a batch: keys without nulls, times in order, no text that threads would share."""
    if isinstance(batch.keys, DictionaryKeys) or batch.keys[-1] is not None:
        return False
    if threads > 1 and any(len(column) == 3 for column in batch.columns):
        return False
    return are_in_order(batch.times)


def run_in_order(
    config: Config, gap_ms: int, batch: Batch, each: Callable = map, threads: int = 1
) -> list[pa.RecordBatch]:
    """Returns the results of all sessions, in order of their ends.

    each: calls a function with each of some arguments, as ``map`` does, maybe on several threads; each of ``threads``
    looks at all elements, and takes those of its share of the keys.
    """
    keys = cast(tuple, batch.keys)
    texts = [len(keys) == 3]
    starts = range(0, len(batch), _PIECE_ROWS)
    whole = SessionGroups(config.new_accumulators(head_cells(texts)), texts)

    def run_share(share: int) -> list[pa.RecordBatch]:
        table = SessionGroups(config.new_accumulators(head_cells(texts)), texts, whole)
        found = []
        for at in starts:
            stop = at + _PIECE_ROWS
            columns = [_part(column, at, stop) for column in batch.columns]
            table.feed_sessions([_part(keys, at, stop)], batch.times[at:stop], gap_ms, columns, share, threads)
            over = int(batch.times[stop]) if stop < len(batch) else MAX_TIMESTAMP
            found.append(_fired(config, table, over))
            table.drop_before(over)
        return found

    shares = list(each(run_share, range(threads)))
    return list(each(_merged, zip(*shares, strict=True)))


def _part(column: ValueColumn, at: int, stop: int) -> ValueColumn:
    """Returns rows [at, stop) of a column, or of keys that are encoded likewise."""
    valid = None if column[-1] is None else column[-1][at:stop]
    if len(column) == 3:
        return column[0][at : stop + 1], column[1], valid
    return None if column[0] is None else column[0][at:stop], valid


def _order(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the stable order of times, ms: int64[n]."""
    if not len(ends):
        return np.zeros(0, np.int64)
    first, last = int(ends.min()), int(ends.max())
    if last - first < most_slices:
        # Counted from the first of them: a session ends a gap later than the latest time there may be.
        return order_by_slice(ends - first, 0, 1, last - first + 1)[0]
    return ordered([ends])[0].astype(np.int64)


def _fired(config: Config, table: SessionGroups, over: int) -> pa.RecordBatch:
    """Returns the results of the sessions that end before ``over``, ms, in order of their ends."""
    slots, ends = table.slots_before(over)
    order = _order(ends)
    slots, ends = slots[order], ends[order]
    values = config.values_of(table.accumulators, table.rows, slots)
    return config.result_of(_decoded(config, table.keys(slots)[0]), table.rows.starts(slots), ends, values)


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
    return rows.take(pa.array(_order(int64_values(rows.column("window_end")))))

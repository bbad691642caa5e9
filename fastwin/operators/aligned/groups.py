"""The operator of groups: windows that are a slice each, over elements that are all at hand.

It does what the aligned operator does, in less time: nothing comes late, no state is saved, and no key has a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.keys import EncodedKeys
from fastwin.core.panes.grouptable import GroupTable, head_cells
from fastwin.errors import StateError
from fastwin.operators.aligned.scattered import (
    are_sparse,
    cuts_between,
    order_by_slices,
    order_of_starts,
)
from fastwin.operators.aligned.shares import Shares
from fastwin.operators.aligned.slicing import Slicing
from fastwin.operators.batch import Batch
from fastwin.operators.config import Config
from fastwin.operators.eventtime import WatermarkOperator
from fastwin.operators.heldwindows import HeldWindows
from fastwin.operators.protocol import Counters, Fed
from fastwin.state.chain import Chain
from fastwin.state.chunks import Chunk
from fastwin.state.refresh import Refresh
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP

__all__ = ["GroupsOperator"]

# Fired rows are handed over while they are in the cache.
_FLUSH_ROWS = 1 << 16
# Fewer rows of a window have bounds of their own.
_SHARING_ROWS = 1 << 14


def _no_state(call: str) -> StateError:
    return StateError(f"{call}: the groups of a table are not kept beyond it, so they have no state to save or to read")


class GroupsOperator(WatermarkOperator):
    """Runs tumbling windows over a bounded table: one row for each key and window, written once.

    Keys are columns without nulls, see ``KeyCodec.columns``. The watermark never passes elements to come.
    """

    name: ClassVar[str] = "groups"
    absorbs: ClassVar[bool] = True
    ends_touch: ClassVar[bool] = False

    def __init__(self, config: Config, slicing: Slicing) -> None:
        assert slicing.grid is not None
        self._config, self._slicing = config, slicing
        texts = config.codec.are_texts
        accumulators = config.new_accumulators(head_cells(texts))
        self._table: GroupTable = GroupTable(accumulators, texts)
        self._keys = config.codec.new_table()  # of keys with numbers: there are none
        self._alone = (0, 0)  # of windows that start in between, no other operator has elements
        self._fired: list[pa.RecordBatch] = []  # their results
        self._shared: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None  # bounds of one window, see _bounds()
        self.chain = Chain()
        self.watermark = MIN_TIMESTAMP
        self.counters = Counters()

    def fresh(self, groups: int = 0) -> GroupsOperator:
        """Returns an empty operator that shares its slices, see ``expect``, with room for so many groups."""
        operator = GroupsOperator(self._config, self._slicing)
        operator._table.reserve_rows(groups)
        return operator

    def process(self, batch: Batch) -> Fed:
        """Adds elements to their groups."""
        self._slicing.cover(batch.times)
        self._feed(batch)
        return Fed()

    def process_within(self, batch: Batch, first: int, last: int) -> tuple[int, int] | None:
        """Adds elements of which nobody has looked at the times yet; returns the first and the last of these.

        first, last: ms, that all times are to be from and to. None where one is not: the operator is spoilt then. And
        where there are no elements, or windows have to be told of the times first: it is as before then.
        """
        if self._slicing.bounds is not None:
            return None
        try:
            return self._feed(batch, (first, last))
        except ValueError:
            return None

    def _feed(self, batch: Batch, within: tuple[int, int] | None = None) -> tuple[int, int] | None:
        keys, grid = batch.keys, self._slicing.grid
        assert isinstance(keys, list)
        assert grid is not None
        batch = batch.numbered(self._table.accumulators.arrived)
        found = self._table.feed(keys, batch.times, grid[0], grid[2], batch.columns, self._slicing.bounds, within)
        self.counters.events += len(batch)
        return found

    def fire_alone(self, last: int, first: int) -> None:
        """Fires the windows between that of the last element of others and that of their first; see the base class."""
        if first != MAX_TIMESTAMP:
            self._slicing.cover(np.array([first]))
            first = self._slicing.bound_at(first)
        if last < first:
            self._alone = last + 1, first
            self._fired = list(self._fire(first, last + 1))

    def absorb(self, other: WatermarkOperator) -> list[pa.RecordBatch]:
        """Takes the groups of another operator of the same spec."""
        assert isinstance(other, GroupsOperator)
        first, last = other._alone
        self._slicing.cover(other._open_starts())
        self._table.absorb(other._table, first, last)
        if not other._fired:
            return []
        # Nothing to come is in a window before these, so those that have been waiting go first.
        fired = [*self._fire(first), *other._fired]
        self._table.drop_before(last)
        return fired

    def advance_watermark(self, watermark: int) -> list[pa.RecordBatch]:
        """Fires the windows with watermark before < end - 1 <= watermark, in order of their ends."""
        if watermark <= self.watermark:
            return []
        self.watermark = watermark
        first = self._slicing.first_unpassed(watermark)
        fired = list(self._fire(first))
        self._table.drop_before(first)
        return fired

    def fire_all(self) -> list[pa.RecordBatch]:
        """Fires all windows, in order of their ends, and forgets them. The watermark stays, so others may come."""
        fired = list(self._fire(MAX_TIMESTAMP))
        self._table.clear()
        return fired

    def expect(self, first: int, last: int) -> None:
        """Is told that all elements are from ``first`` to ``last``, ms: who shares its slices changes none then."""
        self._slicing.cover(np.array([first, last]))

    def steps_back(self, times: NDArray[np.int64]) -> int:
        """Counts the elements that are in a window before that of the one before: int64[n], ms."""
        self._slicing.cover(times)
        starts = self.starts_of(times)
        return int(np.count_nonzero(starts[1:] < starts[:-1]))

    def starts_of(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the start of the window of each time, ms: int64[n], covered."""
        return self._slicing.assign(times)[0]

    def cuts_of(self, times: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """Returns the starts of windows that part these times into ``count`` about alike, ms, with repetition.

        times: int64[n], ms, ascending and covered.
        """
        return self.starts_of(times[np.arange(1, count if len(times) else 1) * len(times) // count])

    def divided(
        self, batches: list[Batch], cuts: NDArray[np.int64], since: int, until: int, each: Callable = map
    ) -> Shares:
        """Returns elements in shares, see Shares: an operator takes all of one, and fires all, before the next one."""
        return Shares(self._slicing, batches, cuts, since, until, each)

    def _fire(self, first: int, begin: int = MIN_TIMESTAMP) -> Iterator[pa.RecordBatch]:
        """Fires the windows that start before ``first``, and not before ``begin``."""
        table, config = self._table, self._config
        slots, starts = table.slots_before(first, begin)
        if not table.ascending and len(slots):
            order = order_of_starts(self._slicing, starts)
            slots, starts = slots[order], starts[order]
        self.counters.fired += len(slots)
        for at in range(0, len(slots), _FLUSH_ROWS):
            part = slots[at : at + _FLUSH_ROWS]
            since, ends = self._bounds(starts[at : at + _FLUSH_ROWS])
            for some, values in config.values_in_parts(table.accumulators, table.rows, part):
                keys = config.codec.decode_columns(table.keys(part[some]))
                yield config.result_of(keys, since[some], ends[some], values)

    def _bounds(self, starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the starts and ends of up to _FLUSH_ROWS windows in their order. Rows of one window share theirs with
        those that come next, so they are in memory once."""
        n = len(starts)
        if n < _SHARING_ROWS or starts[0] != starts[-1]:
            return starts, self._slicing.last_ends(starts)
        goes_on = self._shared is not None and self._shared[0][0] == starts[0]
        if self._shared is None or not goes_on or len(self._shared[0]) < n:
            room, ends = _FLUSH_ROWS if goes_on else n, self._slicing.last_ends(starts[:1])
            self._shared = np.full(room, starts[0]), np.full(room, ends[0])
            for bound in self._shared:
                bound.flags.writeable = False
        since, until = self._shared
        return since[:n], until[:n]

    def order_of(self, times: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Orders elements by their windows where neighbours jump between many, if nothing tells when they came."""
        return None if self._table.accumulators.remembers else order_by_slices(self._slicing, times)

    def cuts(self, times: NDArray[np.int64], most: int) -> list[int]:
        """Cuts between windows, where times ascend: so a window's groups go before the next one's come."""
        return cuts_between(self._slicing, times, most)

    def passes_windows(self, times: NDArray[np.int64]) -> bool:
        """Whether neighbours are in nearly as many windows, so that a few rows make much state."""
        return are_sparse(self._slicing, times)

    def next_timer(self) -> int | None:
        """Returns the next watermark at which a window fires; None: there is none."""
        starts = self._open_starts()
        return int(self._slicing.last_ends(starts).min()) - 1 if len(starts) else None

    def open_windows(self) -> int:
        """Counts the windows that have not fired. O(rows)."""
        return len(self._open_starts())

    def _open_starts(self) -> NDArray[np.int64]:
        return self._table.slots_before(MAX_TIMESTAMP)[1]

    def merge(self, chunks: list[bytes]) -> tuple[list[pa.RecordBatch], int]:
        raise _no_state("merge")

    def snapshot(self) -> bytes:
        raise _no_state("snapshot")

    def delta(self, refresh: Refresh | None = None) -> bytes:
        raise _no_state("delta")

    def look(self, key: EncodedKeys | None = None) -> HeldWindows:
        raise _no_state("look")

    def changed(self) -> bool:
        return len(self._table) > 0

    def take_chunks(self, chunks: list[Chunk]) -> None:
        raise _no_state("apply")

    @property
    def state_rows(self) -> int:
        """Rows of state: one for each key and window."""
        return len(self._table)

    @property
    def state_bytes(self) -> int:
        """Bytes allocated."""
        return self._table.nbytes

    def _check(self) -> None:
        self._table._check()

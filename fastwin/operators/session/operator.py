"""The session operator: session windows with a fixed gap in event time, one row of state for each session.

Which sessions have fired follows from their end and the watermark; a timer a session finds those that
are due. A timer is set once and looks up the session's end when it goes off, so extending a session
costs nothing.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fastwin.columns.buffers import aligned, in_one
from fastwin.columns.keys import EncodedKeys, KeyCodec
from fastwin.columns.values import ValueColumn
from fastwin.core.keys.keyorder import KeyOrder
from fastwin.core.memory.ordering import unique
from fastwin.core.panes.slices import all_within
from fastwin.core.rows.rowstore import RowStore
from fastwin.core.sessions.scan import END_CELL, places_by_time, sessions_of_keys
from fastwin.core.sessions.sessiontable import HEAD_CELLS, SessionTable
from fastwin.core.sessions.sessiontimers import SessionTimers
from fastwin.errors import StateError
from fastwin.machine.threads import ALONE, Threads
from fastwin.operators.batch import Batch, rows_between
from fastwin.operators.config import Config
from fastwin.operators.eventtime import EventTimeOperator
from fastwin.operators.heldwindows import HeldWindows, end_firings, in_rows, slots_of_key
from fastwin.operators.lateness import Lateness, coalesced_order
from fastwin.operators.partialrows import add_partial, partial_columns
from fastwin.operators.parts import FIRST_COPIES, next_copies
from fastwin.operators.protocol import Counters, Fed
from fastwin.operators.session.inorder import order_of, run_in_order
from fastwin.operators.session.placedresults import PlacedResults
from fastwin.state.chain import Chain
from fastwin.state.chunks import Chunk
from fastwin.state.order import START_CELL, key_order
from fastwin.state.refresh import round_bytes
from fastwin.state.rows import cell_names, fill_rows, key_rows, load_keys, load_rows, row_blocks, save_rows, some_rows
from fastwin.times import MIN_TIMESTAMP

__all__ = ["PART_ELEMENTS", "SessionOperator"]

# Partial sessions are looked for while their rows are in the cache.
_ABSORBED_ROWS = 1 << 14
# Fired rows are handed over while they are in the cache.
_FLUSH_ROWS = 1 << 15
# Late elements that are taken at once where a copy of their session may be large: as many at most.
_MOST_LATE = 1 << 10
PART_ELEMENTS = 1 << 16
"""As many elements as find room in the cache together with their sessions."""
# Beyond all times; less than 2**63 from its opposite.
_FAR = 2**62 - 1
# Buckets of timers in a gap.
_BUCKETS = 16


class SessionOperator(EventTimeOperator):
    """Runs session windows with the default trigger."""

    name: ClassVar[str] = "session"
    takes_whole: ClassVar[bool] = True

    def __init__(self, config: Config, gap_ms: int) -> None:
        self._config = config
        self._gap = gap_ms
        self._lateness = Lateness(config.lateness_ms)
        self._keys = config.codec.new_table()
        self._accumulators = config.new_accumulators(HEAD_CELLS)
        self._sessions = SessionTable(self._keys, self._accumulators)
        self._timers = SessionTimers(self._sessions, max(1, gap_ms // _BUCKETS))
        self.chain = Chain()
        self.watermark = MIN_TIMESTAMP
        self.counters = Counters()

    def process(self, batch: Batch) -> Fed:
        """Adds elements to their sessions; sessions that have passed and are kept fire again."""
        self.counters.events += len(batch)
        batch = batch.numbered(self._accumulators.arrived)
        fed = Fed()
        # Only elements whose own window has passed care for the order: they may be late, or fire at once.
        first = min(max(self.watermark - self._gap + 2, -_FAR), _FAR + 1)
        if first <= _FAR and all_within(batch.times, first, _FAR):
            self._add(self._in_order(batch))
        else:
            passed = batch.times < first
            if self._config.coalesce:
                slots = self._process_coalesced(batch, passed, fed)
            elif self._config.lateness_ms == 0:
                slots = self._add(batch)
            else:
                slots = self._process_one_by_one(batch, fed)
            late = slots < 0
            fed.late = late if late.any() else None
        self._keys.sweep()
        return fed

    def run(self, batch: Batch, each: Threads = ALONE) -> list[pa.RecordBatch]:
        """Takes all elements that there will ever be, and returns the results of all sessions, in order of their ends.

        What process() and a last advance_watermark() give, but key by key where times cannot be put in order. For an
        operator that has taken none before. each: the threads that take part.
        """
        self.counters.events += len(batch)
        if (order := order_of(self._config, batch, each)) is not None:
            found = run_in_order(self._config, self._gap, batch, order, each)
            self.counters.fired += sum(rows.num_rows for rows in found)
            return found
        elements = KeyOrder(KeyCodec.intern(self._keys, batch.keys), batch.times, self._keys.top)
        ends, begins = elements.session_ends(self._gap)
        places = places_by_time(ends)
        results = PlacedResults(self._config, len(ends))

        def run_keys(first: int, stop: int) -> None:
            accumulators = self._config.new_accumulators(END_CELL + 1)
            rows = sessions_of_keys(accumulators, elements, first, stop, self._gap, batch.columns_at)
            results.put(places[begins[first] : begins[stop]], accumulators, rows, END_CELL)

        parts = elements.parts(PART_ELEMENTS).tolist()
        list(each(run_keys, parts, parts[1:]))
        self.counters.fired += len(ends)
        found = results.batches(self._keys)
        self._keys.sweep()
        return found

    def _in_order(self, batch: Batch) -> Batch:
        """Returns the batch sorted by time if it is far out of order: finding sessions is quicker then."""
        times = batch.times
        if len(times) == 1:
            return batch
        backwards = np.count_nonzero(times[1:] < times[:-1] - 4 * self._gap)
        return batch.select(np.argsort(times, kind="stable")) if backwards * 16 > len(times) else batch

    def _add(self, batch: Batch) -> NDArray[np.int32]:
        """Adds elements; returns the row each one went to, -1 for late ones."""
        return self._add_of(KeyCodec.intern(self._keys, batch.keys), batch.times, batch.columns)

    def _add_of(
        self,
        ids: NDArray[np.int32],
        times: NDArray[np.int64],
        columns: list[ValueColumn],
        fired: RowStore | None = None,
    ) -> NDArray[np.int32]:
        """Adds elements of keys by their ids, as ``_add`` does. fired: see SessionTable.add."""
        lateness = self._lateness.at(self.watermark)
        slots, armed = self._sessions.add(ids, times, self._gap, self.watermark, lateness, columns, fired)
        self._arm(armed)
        return slots

    def _arm(self, slots: NDArray[np.int32]) -> None:
        """Sets a timer for each session: for its firing, or for its cleanup if its end has passed."""
        self._timers.arm(slots, self.watermark, self._config.lateness_ms)

    def _process_coalesced(self, batch: Batch, passed: NDArray[np.bool_], fed: Fed) -> NDArray[np.int32]:
        """Takes the order that accepts most."""
        order = coalesced_order(batch.times, passed)
        if order is None:
            return self._add(batch)
        slots = np.empty(len(batch), dtype=np.int32)
        batch = batch.select(order)
        ids = KeyCodec.intern(self._keys, batch.keys)
        slots[order] = self._add_of(ids, batch.times, batch.columns)
        touched = passed[order] & (slots[order] >= 0)
        if self._config.lateness_ms and touched.any():
            found = self._sessions.covering(ids[touched], batch.times[touched])
            found = unique(found)
            self._fire(found[self._sessions.ends(found) - 1 <= self.watermark], fed.main)
        return slots

    def merge(self, chunks: list[bytes]) -> tuple[list[pa.RecordBatch], int]:
        """Takes what feeders have made of elements; see ``operators.partials``.

        They merge with each other and with open sessions, then it is decided what is late. Returns the results of
        sessions that have passed and fire again, each once, and how many elements were late.
        """
        main: list[pa.RecordBatch] = []
        parts = list(partial_columns(chunks, self._config, self._keys, self._accumulators, "start", "end"))
        if any((part["end"] <= part["start"]).any() for part in parts):
            raise StateError("state: a partial session is empty")
        elements = np.concatenate([part["elements"] for part in parts] or [np.zeros(0, np.int64)])
        self.counters.events += int(elements.sum())
        # Only where some have passed does it matter in which order they come.
        if any((part["end"] - 1 <= self.watermark).any() for part in parts):
            into = self._absorb_passed(parts, main)
        else:
            blocks = [block for part in parts for block in row_blocks(part, _ABSORBED_ROWS)]
            into = np.concatenate([self._absorb([block]) for block in blocks] or [np.zeros(0, np.int32)])
        self._keys.sweep()
        return main, int(elements[into < 0].sum())

    def _absorb_passed(self, parts: list[dict[str, Any]], main: list[pa.RecordBatch]) -> NDArray[np.int32]:
        """Takes partial sessions of which some have passed; kept ones that have passed fire again, each once."""
        keys, starts, ends = (np.concatenate([part[name] for part in parts]) for name in ("key", "start", "end"))
        # From the latest back: what connects an early one to a session that is open is there before it.
        into = self._absorb(parts, np.argsort(-ends, kind="stable"))
        touched = (ends - 1 <= self.watermark) & (into >= 0)
        if self._config.lateness_ms and touched.any():
            found = unique(self._sessions.covering(keys[touched], starts[touched]))
            self._fire(found[self._sessions.ends(found) - 1 <= self.watermark], main)
        return into

    def _absorb(self, parts: list[dict[str, Any]], order: NDArray[np.int64] | None = None) -> NDArray[np.int32]:
        """Merges partial sessions into the table, in this order; returns the row each went to, -1 for late ones."""
        others = self._accumulators.new_rows()
        columns = []
        for part in parts:
            slots = add_partial(self._accumulators, others, part)
            columns.append((part["key"], part["start"], part["end"], slots))
        keys, starts, ends, slots = (np.concatenate(arrays) for arrays in zip(*columns, strict=True))
        if order is not None:
            keys, starts, ends, slots = (column[order] for column in (keys, starts, ends, slots))
        lateness = self._lateness.at(self.watermark)
        into, armed = self._sessions.absorb(keys, starts, ends, self.watermark, lateness, others, slots)
        self._arm(armed)
        if order is not None:
            into[order] = into.copy()
        return into

    def _process_one_by_one(self, batch: Batch, fed: Fed) -> NDArray[np.int32]:
        """Takes elements in their order; one that leaves its session passed fires it at once."""
        slots = np.empty(len(batch), dtype=np.int32)
        ids = KeyCodec.intern(self._keys, batch.keys)
        owns = len(self._accumulators.owned) > 0
        at, step = 0, FIRST_COPIES if owns else _FLUSH_ROWS
        while at < len(batch):
            part = slice(at, min(at + step, len(batch)))
            at = part.stop
            fired = self._accumulators.new_rows()
            columns = [rows_between(column, part.start, part.stop) for column in batch.columns]
            slots[part] = self._add_of(ids[part], batch.times[part], columns, fired)
            if len(fired):
                fed.main += self._results(fired, fired.slots())
            if owns:
                step = min(next_copies(step, fired.nbytes), _MOST_LATE)
        return slots

    def _fire(self, slots: NDArray[np.int32], results: list[pa.RecordBatch]) -> None:
        """Appends the results of sessions, in order of their ends."""
        if not len(slots):
            return
        results += self._results(self._sessions.rows, slots[np.argsort(self._sessions.ends(slots), kind="stable")])

    def _results(self, rows: RowStore, slots: NDArray[np.int32]) -> Iterator[pa.RecordBatch]:
        self.counters.fired += len(slots)
        ends = rows.cells(slots, END_CELL)
        return self._config.results_of_rows(self._keys, self._accumulators, rows, slots, ends)

    def advance_watermark(self, watermark: int) -> list[pa.RecordBatch]:
        """Fires the sessions with watermark before < end - 1 <= watermark, in order of their ends."""
        if watermark <= self.watermark:
            return []
        counted = self.counters.fired
        fired, over = self._timers.advance(self.watermark, watermark, self._config.lateness_ms)
        try:
            parts = (fired[at : at + _FLUSH_ROWS] for at in range(0, len(fired), _FLUSH_ROWS))
            results = [result for part in parts for result in self._results(self._sessions.rows, part)]
        except BaseException:
            # Nothing has fired: all is as it was.
            self._arm(np.concatenate([fired, over]))
            self.counters.fired = counted
            raise
        self.watermark = watermark
        self._sessions.drop(over)
        return results

    def next_timer(self) -> int | None:
        """Returns the first watermark at which a session fires or goes."""
        return self._timers.peek(self.watermark, self._config.lateness_ms)

    def open_windows(self) -> int:
        """Counts the sessions that are not cleaned yet."""
        return len(self._sessions)

    def look(self, key: EncodedKeys | None = None) -> HeldWindows:
        """Returns the sessions."""
        rows, config = self._sessions.rows, self._config
        slots = slots_of_key(self._keys, rows, key)
        ends = rows.cells(slots, END_CELL)
        starts = rows.starts(slots)
        told = end_firings(ends, self.watermark, config.lateness_ms)
        if config.lateness_ms:  # it may have fired while it was shorter; without lateness it would have gone then
            told["firings"][starts + (self._gap - 1) <= self.watermark] = -1
        found = HeldWindows(
            keys=config.codec.decode(self._keys, rows.keys(slots)),
            starts=starts,
            ends=ends,
            values=config.values_by_name(self._accumulators, rows, slots),
            nbytes=in_rows(rows, slots),
            **told,
        )
        self._keys.sweep()
        return found

    @property
    def state_rows(self) -> int:
        """Rows of state: one for each session."""
        return len(self._sessions)

    @property
    def state_bytes(self) -> int:
        """Bytes allocated for sessions, timers, keys, and a round of repeating."""
        held = self._sessions.nbytes + self._timers.nbytes + self._keys.nbytes
        return held + round_bytes(self._round)

    def place_rows(self, in_file: bool) -> int:
        """Moves the rows; what finds and times sessions stays in memory."""
        return self._rows.place(in_file)

    @property
    def _rows(self) -> RowStore:
        return self._sessions.rows

    def _tables(self, kind: Literal["snapshot", "delta"], slots: NDArray[np.int32]) -> dict[str, pa.Table]:
        """Returns the sessions, and for a delta those merged away."""
        codec, cells = self._config.codec, {"start": START_CELL, "end": END_CELL}
        tables = save_rows(codec, self._keys, self._accumulators, self._sessions.rows, slots, cells, HEAD_CELLS)
        if kind == "delta":
            ids, starts = self._sessions.removals(slots)
            if len(ids):
                order = key_order(self._keys, ids, starts)
                ids, starts = ids[order], starts[order]
                tables["removed_keys"] = key_rows(codec, self._keys, ids)
                tables["removed"] = pa.table({"start": starts})
        return tables

    def _last_end(self, rows: pa.Table) -> int:
        # What was merged away ended no later than what it was merged into.
        return int(pc.max(rows["end"]).as_py())

    def saved(self, slots: NDArray[np.int32]) -> None:
        self._sessions.saved(slots)

    def changed(self) -> bool:
        slots = self._sessions.rows.dirty_slots()
        return len(slots) > 0 or len(self._sessions.removals(slots)[0]) > 0

    def take_chunks(self, chunks: list[Chunk]) -> None:
        rows = self._sessions.rows
        fresh = self._take_progress(chunks)
        # What the last watermark has cleaned goes first, and comes no more: other sessions may touch it.
        slots = rows.slots()
        self._sessions.drop(slots[self._cleaned(self._sessions.ends(slots))])
        for chunk in chunks:
            self._apply_one(chunk, fresh)
        changed = rows.dirty_slots()
        self._sessions.saved(changed)
        self._keys.sweep()
        self._arm(changed)

    def _cleaned(self, ends: NDArray[np.int64]) -> NDArray[np.bool_]:
        return ends - 1 <= self._lateness.cleaned_at(self.watermark)

    def _apply_one(self, chunk: Chunk, fresh: bool) -> None:
        codec, rows = self._config.codec, self._sessions.rows
        if "removed" in chunk.tables:
            ids = load_keys(codec, self._keys, chunk.tables["removed_keys"])
            starts = aligned(in_one(chunk.tables["removed"]["start"]).to_numpy())
            self._drop_found(self._sessions.find(ids, starts))
        ids = load_keys(codec, self._keys, chunk.tables["keys"])
        columns = load_rows(chunk.tables, ids, ["start", "end", *cell_names(rows, HEAD_CELLS)])
        live = ~self._cleaned(columns["end"])
        self._unmark_repeated(live, chunk, fresh)
        columns = some_rows(columns, live)
        self._keys.retain_ids(ids)  # a key outlives the session that is replaced
        self._drop_found(self._sessions.find(columns["key"], columns["start"]))
        try:
            slots = self._sessions.insert(columns["key"], columns["start"], columns["end"])
        except ValueError as problem:
            raise StateError(f"state: {problem}") from problem
        self._keys.release_ids(ids)
        fill_rows(self._accumulators, rows, slots, columns, HEAD_CELLS)

    def _drop_found(self, slots: NDArray[np.int32]) -> None:
        self._sessions.drop(slots[slots >= 0])

    def _check(self) -> None:
        self._sessions._check()
        self._timers._check(self.watermark, self._config.lateness_ms)
        rows = self._sessions.rows
        slots = rows.slots()
        removed, _ = self._sessions.removals(np.zeros(0, dtype=np.int32))
        held = {*rows.keys(slots).tolist(), *removed.tolist()}
        assert held == set(self._keys.ids().tolist()), "a key has no session, and none to call removed"

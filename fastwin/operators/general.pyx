"""The general operator: every assigner, trigger, evictor and function; one state for each (key, window).

Elements and timers have their effects in Flink's order; it is the reference for what the other operators mean.
"""

import numpy as np

from libc.string cimport memcpy

from fastwin._typedefs cimport NONE, idx_t, int64_t, ts_t, uint8_t
from fastwin.core.accumulator_set cimport AccumulatorSet
from fastwin.core.keys cimport KeyTable
from fastwin.core.rows cimport Head, RowStore
from fastwin.core.timersort cimport Timer
from fastwin.core.windowtable cimport (
    CLEANED, FIRED, HAS_CONTENTS, IN_SET, ON_TIME, SAVED, TOUCHED, KeyWindows, Window, WindowTable, last_ms,
)
from fastwin.core.windowtable import HEAD_CELLS
from fastwin.errors import SpecError, StateError
from fastwin.keycodec import KeyCodec
from fastwin.operators import generalparts, generalstate
from fastwin.operators.assigning cimport AssignerNode
from fastwin.operators.base import Counters, Fed
from fastwin.operators.contents cimport Contents
from fastwin.operators.firing cimport Firing
from fastwin.operators.keeper cimport NO_TIME, Keeper
from fastwin.operators.triggernodes cimport CONTINUE, FIRE, PURGE, TriggerNode
from fastwin.rowview cimport RowType, Rows

cdef ts_t MAX_TIME = 0x7fffffffffffffff


cdef extern from *:
    bint add_overflows "__builtin_add_overflow"(ts_t a, ts_t b, ts_t* total) noexcept


cdef class GeneralOperator:
    """Runs any window. Implements the Operator protocol.

    config, program: what to run.
    """

    cdef readonly object config, program, counters
    cdef readonly Keeper keeper
    cdef readonly WindowTable table
    cdef readonly AssignerNode assigner
    cdef readonly TriggerNode trigger
    cdef readonly Contents contents
    cdef readonly Firing firing
    cdef KeyTable keys
    cdef AccumulatorSet accumulators
    cdef RowType row_type
    cdef bint merging, arrival, feeds, coalesce, pane_info
    cdef idx_t[::1] pending             # by element: the rows that built-in accumulators are still to be fed
    cdef Py_ssize_t fed                 # how many elements they have been fed, or that are passed over
    cdef list touched

    def __init__(self, config, program):
        trigger = generalparts.trigger_node(program.trigger)
        self.accumulators = config.new_accumulators(HEAD_CELLS + trigger.cells)
        blank = self.accumulators.blank()
        blank[HEAD_CELLS : HEAD_CELLS + trigger.cells] = trigger.blank()
        self.keys = config.codec.new_table()
        self.table = WindowTable(self.keys, blank)
        self.config = config
        self.program = program
        self.counters = Counters()
        self.keeper = Keeper(self.table, config.codec, config.lateness_ms, program.assigner.is_event_time())
        trigger.bind(self.keeper, HEAD_CELLS)
        generalparts.name_states(trigger)
        self.trigger = trigger
        self.assigner = generalparts.assigner_node(self.keeper, program.assigner)
        self.merging = self.assigner.merging
        self.contents = Contents(self.keeper, self.accumulators, program, config)
        self.firing = Firing(self.keeper, self.contents, program, config, self.counters, self.merging, blank)
        self.arrival = program.arrival
        self.coalesce = config.coalesce
        self.pane_info = program.pane_info
        self.touched = []
        self.feeds = self.contents.built_in
        if program.rows is not None:
            self.row_type = RowType(program.rows.names)

    @property
    def watermark(self):
        """The watermark, ms."""
        return self.keeper.watermark

    @property
    def processing_time(self):
        """The processing time, ms."""
        return self.keeper.clock

    # --- elements ---

    def process(self, batch):
        """Takes elements in order."""
        cdef Py_ssize_t i, n = len(batch)
        cdef idx_t[::1] ids
        cdef const int64_t[::1] times
        fed = Fed()
        self.counters.events += n
        if n == 0:
            return fed
        order = generalparts.coalesced_order(batch, self.keeper) if self.coalesce else None
        if order is not None:
            batch = batch.select(order)
        key_ids = KeyCodec.intern(self.keys, batch.keys)
        ids = key_ids
        times = np.full(n, self.keeper.clock, dtype=np.int64) if self.arrival else batch.times
        for i in range(n):
            self.keys.retain(ids[i])
        late_marks = np.zeros(n, dtype=np.uint8)
        try:
            self.keeper.begin(None if self.row_type is None else Rows(self.row_type, batch.rows))
            if self.firing.needs_keys:
                self.keeper.known_keys(key_ids)
            self._take(ids, times, late_marks, batch.columns)
        finally:
            for i in range(n):
                self.keys.release(ids[i])
        self._fire_touched()
        self.firing.flush(fed.main)
        if late_marks.any():
            late = late_marks.view(np.bool_)
            if order is not None:
                fed.late = np.empty(n, dtype=np.bool_)
                fed.late[order] = late
            else:
                fed.late = late
        self._settle()
        return fed

    cdef int _take(self, idx_t[::1] ids, const int64_t[::1] times, uint8_t[::1] late, list columns) except -1:
        cdef Py_ssize_t i, j, windows, n = ids.shape[0]
        cdef idx_t slot
        cdef bint taken, deferred, event = self.keeper.event_time
        cdef AssignerNode assigner = self.assigner
        cdef TriggerNode trigger = self.trigger
        cdef Window* window
        cdef ts_t time
        cdef int result
        if self.feeds:
            held = self.accumulators.hold(columns, n)
            self.pending = np.empty(n, dtype=np.int32)
            self.fed = 0
        for i in range(n):
            windows = assigner.assign(i, times[i], ids[i])
            taken = False
            deferred = self.feeds and windows == 1 and not self.merging
            if self.feeds and not deferred:
                self._feed(i)
                self.fed = i + 1
            for j in range(windows):
                slot = self._place(ids[i], assigner.starts[j], assigner.ends[j])
                if slot == NONE:
                    continue
                taken = True
                if deferred:
                    self.pending[i] = slot
                elif self.feeds:
                    self.accumulators.add(self.table.rows, &slot, 1, i)
                self.contents.add(slot, i, times[i])
                result = trigger.on_element(slot, i, times[i])
                if result != CONTINUE:
                    if self.feeds:
                        self._feed(i + 1)
                    self._answer(slot, result)
                self.keeper.register_cleanup(slot)
                window = self.table.at(slot)
                if not window.timers and not window.flags & (HAS_CONTENTS | IN_SET):
                    self._let_go(slot)
            if not taken:
                if deferred:
                    self._feed(i)
                    self.fed = i + 1
                # Late by its own time, or no window wants it.
                if event and not add_overflows(times[i], self.keeper.lateness, &time) and time <= self.keeper.watermark:
                    late[i] = 1
                else:
                    self.counters.unassigned += 1
        if self.feeds:
            self._feed(n)
        return 0

    cdef int _feed(self, Py_ssize_t until) except -1:
        """Feeds the built-in accumulators with the elements up to ``until`` that they have not got yet."""
        if self.fed < until:
            self.accumulators.add(self.table.rows, &self.pending[self.fed], until - self.fed, self.fed)
            self.fed = until
        return 0

    cdef int _answer(self, idx_t slot, int result) except -1:
        """Does what the trigger said for an element."""
        if result & FIRE and self.table.at(slot).flags & HAS_CONTENTS:
            if self.coalesce and result == FIRE and last_ms(self.table.at(slot)) <= self.keeper.watermark:
                if not self.table.at(slot).flags & TOUCHED:
                    self.table.at(slot).flags |= TOUCHED
                    self.touched.append(slot)
            else:
                self.firing.fire(slot, NO_TIME, False)
        if result & PURGE:
            self.contents.clear(slot)
        return 0

    cdef idx_t _place(self, idx_t key, ts_t start, ts_t end) except? -1:
        """Returns the row of an element's window, merged where windows merge; NONE if the window is late."""
        cdef Window window
        cdef idx_t slot
        if self.merging:
            slot = self._add_merging(key, start, end)
            if self.keeper.event_time and self.keeper.cleanup_time(self.table.at(slot)) <= self.keeper.watermark:
                self._retire(slot)
                self._let_go(slot)
                return NONE
            return slot
        if self.keeper.event_time:
            window.head.start = start
            window.end = end
            if self.keeper.cleanup_time(&window) <= self.keeper.watermark:
                return NONE
        slot = self.table.ensure(key, start, end)
        self.table.at(slot).flags &= ~<unsigned int> CLEANED
        return slot

    # --- merging windows ---

    cdef idx_t _add_merging(self, idx_t key, ts_t start, ts_t end) except? -1:
        """Adds a window to its key's; returns the row of what it has become."""
        cdef KeyWindows* windows = self.table.key_windows(key)
        cdef Py_ssize_t at, n = 0
        cdef idx_t slot
        cdef ts_t first = start, last = end
        if self.assigner.merge_windows is not None:
            return self._add_by_user(key, start, end)
        at = self.table.first_touching(key, start)
        while at + n < windows.n and self.table.at(windows.slots[at + n]).head.start <= end:
            slot = windows.slots[at + n]
            first = min(first, self.table.at(slot).head.start)
            last = max(last, self.table.at(slot).end)
            n += 1
        if n == 0:
            return self._open(key, start, end)
        if n == 1 and self.table.at(slot).head.start == first and self.table.at(slot).end == last:
            self.table.rows.mark(slot)
            return slot
        self.keeper.hold_merged(windows.slots + at, n)
        return self._merge(key, first, last)

    cdef idx_t _open(self, idx_t key, ts_t start, ts_t end) except? -1:
        cdef idx_t slot = self.table.ensure(key, start, end)
        if not self.table.at(slot).flags & IN_SET:
            self.table.at(slot).flags &= ~<unsigned int> CLEANED
            self.table.set_add(slot)
        return slot

    def _add_by_user(self, idx_t key, ts_t start, ts_t end):
        """The same, where the assigner has a ``merge_windows`` of its own."""
        cdef KeyWindows* windows = self.table.key_windows(key)
        cdef Py_ssize_t i
        cdef idx_t slot
        new = self.keeper.window_object(start, end)
        there = [self.keeper.window_of(windows.slots[i]) for i in range(windows.n)]
        where = f"key {self.keeper.key_value(key)!r}, {new}"
        result, joined, merges = new, False, generalparts.ask_merges(self.keeper, self.assigner, there, new, where)
        for merged, cover in merges:
            if new in merged:
                merged.remove(new)
                joined, result = True, cover
            if merged and merged != [cover]:
                self.keeper.hold_slots([self.table.find(key, w.start, w.end) for w in merged])
                self._merge(key, cover.start, cover.end)
        if not merges or (result == new and not joined):
            return self._open(key, result.start, result.end)
        slot = self.table.find(key, result.start, result.end)
        return slot if slot != NONE else self._open(key, result.start, result.end)

    cdef idx_t _merge(self, idx_t key, ts_t start, ts_t end) except? -1:
        """Merges the held windows into one, in Flink's order: trigger, timers, contents. Returns its row."""
        cdef Keeper keeper = self.keeper
        cdef idx_t slot, other
        cdef Window* window
        cdef Py_ssize_t i
        cdef ts_t time
        cdef int panes = 0
        cdef unsigned int flags = 0
        slot = self._open(key, start, end)
        window = self.table.at(slot)
        # A sum past int64 wraps here, as in Flink, which refuses the window then.
        add_overflows(last_ms(window), keeper.lateness, &time)
        if (time <= keeper.watermark) if keeper.event_time else (last_ms(window) <= keeper.clock):
            raise SpecError(
                f"window: {keeper.window_of(slot)} of key {keeper.key_value(key)!r} would by merging end before the "
                f"{'watermark' if keeper.event_time else 'processing time'} {keeper.watermark if keeper.event_time else keeper.clock}"
            )
        self.trigger.on_merge(slot)
        for i in range(keeper.merged_n):
            self.trigger.clear(keeper.merged[i])
            keeper.delete_cleanup(keeper.merged[i])
        for i in range(keeper.merged_n):
            other = keeper.merged[i]
            window = self.table.at(other)
            panes = max(panes, window.panes)
            flags |= window.flags & ON_TIME
            if other != slot:
                self.contents.merge(slot, other)
                self._retire(other)
                self.contents.clear(other)
                self._let_go(other)
        window = self.table.at(slot)
        window.panes = max(panes, window.panes)
        if keeper.event_time and last_ms(window) <= keeper.watermark:
            window.flags |= flags
        return slot

    cdef void _retire(self, idx_t slot) noexcept:
        """Takes a window out of its key's; timers that its trigger left behind stay."""
        cdef Window* window = self.table.at(slot)
        if window.flags & IN_SET:
            self.table.set_remove(slot)
        window.flags |= CLEANED

    cdef int _let_go(self, idx_t slot) except -1:
        """Frees a row that nothing is known about any more."""
        cdef Window* window = self.table.at(slot)
        cdef list states = self.keeper.states
        if window.timers or window.flags & (HAS_CONTENTS | IN_SET):
            return 0
        if not window.flags & CLEANED:
            if self.trigger.keeps(slot) or (slot < len(states) and states[slot]) or (window.panes and self.pane_info):
                return 0
            if self.keeper.event_time and self.keeper.cleanup_time(window) <= self.keeper.watermark:
                window.flags &= ~<unsigned int> SAVED       # the watermark tells that it is gone
        if slot < len(states):
            states[slot] = None
            self.keeper.contents[slot] = None
        return self.table.release(slot)

    # --- time ---

    def advance_watermark(self, ts_t watermark):
        """Fires and cleans what is due; a watermark that does not advance is ignored."""
        results = []
        if watermark <= self.keeper.watermark:
            return results
        self.keeper.watermark = watermark
        self._run(True, watermark, watermark == MAX_TIME)
        self.firing.flush(results)
        self._settle()
        return results

    def advance_processing_time(self, ts_t time, bint final=False):
        """Sets the clock, and fires and cleans what is due. final: timers are run for the last time."""
        results = []
        self.keeper.clock = time
        self._run(False, time, final)
        self.firing.flush(results)
        self._settle()
        return results

    cdef int _run(self, bint event, ts_t until, bint final) except -1:
        cdef Timer timer
        self.keeper.begin(None)
        self.keeper.final = final
        while self.keeper.take_due(event, until, &timer):
            self._on_timer(<idx_t> timer.namespace, timer.time, event)
        self.keeper.final = False
        return 0

    cdef int _on_timer(self, idx_t slot, ts_t time, bint event) except -1:
        cdef int result
        cdef Window* window = self.table.at(slot)
        if self.merging and not window.flags & IN_SET:
            return self._let_go(slot)       # merged away: what its trigger left behind means nothing
        result = self.trigger.on_event_time(slot, time) if event else self.trigger.on_processing_time(slot, time)
        if result & FIRE and self.table.at(slot).flags & HAS_CONTENTS:
            self.firing.fire(slot, time, True)
        if result & PURGE:
            self.contents.clear(slot)
        window = self.table.at(slot)
        if event == self.keeper.event_time and time == self.keeper.cleanup_time(window):
            if window.flags & HAS_CONTENTS and not window.flags & FIRED:
                self.counters.unfired += 1
            self.contents.clear(slot)
            self.trigger.clear(slot)
            self.firing.clear(slot)
            self._retire(slot)
        return self._let_go(slot)

    def _fire_touched(self):
        """Fires once each the windows that late elements have touched in this call, in order of their ends."""
        cdef idx_t slot
        touched = [slot for slot in self.touched if self.table.at(slot).flags & TOUCHED]
        self.touched = []
        touched.sort(key=lambda s: (self.table.at(s).end, self.table.at(s).head.start, self.table.at(s).head.key))
        for slot in touched:
            self.table.at(slot).flags &= ~<unsigned int> TOUCHED
            if self.table.at(slot).flags & HAS_CONTENTS:
                self.firing.fire(slot, NO_TIME, False)

    def _settle(self):
        """Forgets keys that nothing holds any more."""
        generalstate.forget_empty_keys(self.keeper)
        self.keeper.begin(None)
        self.keys.sweep()
        self.table.rows.trim()

    def next_timer(self):
        """Returns the time of the first event timer; None: there is none."""
        return self.keeper.event_timers.peek()

    def next_processing_timer(self):
        """Returns the time of the first processing timer; None: there is none."""
        return self.keeper.processing_timers.peek()

    # --- what there is ---

    def open_windows(self):
        """Counts (key, window) pairs that have contents."""
        cdef idx_t slot
        cdef Py_ssize_t n = 0
        for slot in range(self.table.rows.top):
            n += self.table.at(slot).head.bits != 0 and (self.table.at(slot).flags & HAS_CONTENTS) != 0
        return n

    @property
    def timers(self):
        """How many timers are registered, of event and processing time."""
        return len(self.keeper.event_timers) + len(self.keeper.processing_timers)

    @property
    def state_rows(self):
        """Rows of state: one for each (key, window), and one for each key with state of its own."""
        return len(self.table) + len(self.keeper.key_states)

    @property
    def state_bytes(self):
        """Bytes allocated for windows, timers and keys; of Python objects, only the references."""
        return (self.table.nbytes + self.keeper.event_timers.nbytes + self.keeper.processing_timers.nbytes
                + self.keys.nbytes + 16 * len(self.keeper.contents))

    def take_side(self):
        """Returns what user code has put into side outputs since the last call: record batches by tag."""
        return self.firing.take_side()

    # --- state ---

    def snapshot(self):
        """Returns all state as one chunk."""
        return generalstate.save(self, "snapshot")

    def delta(self):
        """Returns the state changed since the last snapshot() or delta() as one chunk."""
        return generalstate.save(self, "delta")

    def restore(self, chunks, forget_watermark=False):
        """Puts a fresh operator into the state of one snapshot and the deltas after it.

        forget_watermark: starts without a watermark, as Flink does.
        """
        if self.counters.events or len(self.table) or self.keeper.watermark != NO_TIME:
            raise StateError("restore: the operator has run already")
        generalstate.load(self, chunks)
        if forget_watermark:
            self.keeper.watermark = NO_TIME
        self.keys.sweep()

    def passed_slots(self):
        """Returns the rows whose time has passed, for a restore: the watermark tells that they are gone."""
        cdef idx_t slot
        if not self.keeper.event_time:
            return []
        return [slot for slot in self.table.rows.slots() if not self.table.at(slot).flags & CLEANED
                and self.keeper.cleanup_time(self.table.at(slot)) <= self.keeper.watermark]

    def drop_row(self, idx_t slot):
        """Frees a row that has no timers any more, with all that belongs to it, for a restore."""
        self.contents.clear(slot)
        self.table.at(slot).flags &= ~<unsigned int> SAVED
        self._retire(slot)
        self._let_go(slot)

    def _check(self):
        generalstate.check(self)

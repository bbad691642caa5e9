"""The general operator: every assigner, trigger, evictor and function; one state for each (key, window).

Elements and timers have their effects in Flink's order; it is the reference for what the other operators mean.
"""

import numpy as np

from fastwin._typedefs cimport NONE, idx_t, int64_t, ts_t, uint8_t, uint32_t
from fastwin.core.accumulator_set cimport AccumulatorSet
from fastwin.core.keys cimport KeyTable
from fastwin.core.timersort cimport Timer
from fastwin.core.windowtable cimport (
    CLEANED, FIRED, HAS_CONTENTS, IN_SET, SAVED, TOUCHED, Window, WindowTable, last_ms,
)
from fastwin.core.windowtable import HEAD_CELLS
from fastwin.errors import StateError
from fastwin.keycodec import KeyCodec
from fastwin.operators import generalparts, generalstate
from fastwin.operators.assigning cimport AssignerNode
from fastwin.operators.base import Counters, Fed
from fastwin.operators.contents cimport Contents
from fastwin.operators.firing cimport BY_ELEMENT, BY_EVENT_TIMER, BY_PROCESSING_TIMER, Firing
from fastwin.operators.keeper cimport NO_TIME, Keeper
from fastwin.operators.objectfetch cimport fetch_all
from fastwin.operators.placing cimport Placing
from fastwin.operators.triggernodes cimport CONTINUE, FIRE, PURGE, TriggerNode
from fastwin.rowview cimport RowType, Rows

cdef enum:
    BLOCK = 64          # elements whose rows are fetched ahead of them

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
    cdef Placing placing
    cdef KeyTable keys
    cdef AccumulatorSet accumulators
    cdef RowType row_type
    cdef bint merging, arrival, feeds, coalesce
    cdef idx_t[::1] pending             # by element: the rows that built-in accumulators are still to be fed
    cdef Py_ssize_t fed                 # how many elements they have been fed, or that are passed over
    cdef list touched, _held

    def __init__(self, config, program):
        trigger = generalparts.trigger_node(program.trigger)
        self.accumulators = config.new_accumulators(HEAD_CELLS + trigger.cells)
        blank = self.accumulators.blank()
        blank[HEAD_CELLS : HEAD_CELLS + trigger.cells] = trigger.blank()
        self.keys = config.codec.new_table()
        self.table = WindowTable(self.keys, blank, self.accumulators.owned)
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
        self.firing = Firing(self.keeper, self.contents, program, config, self.counters, self.merging,
                             (blank, self.accumulators.owned))
        self.placing = Placing(self.keeper, self.assigner, trigger, self.contents, program.pane_info)
        self.arrival = program.arrival
        self.coalesce = config.coalesce
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
        cdef bint taken, deferred = False, event = self.keeper.event_time
        cdef AssignerNode assigner = self.assigner
        cdef TriggerNode trigger = self.trigger
        cdef Window* window
        cdef ts_t time
        cdef int result
        if self.feeds:
            self._held = self.accumulators.hold(columns, n)
            self.pending = np.empty(n, dtype=np.int32)
            self.fed = 0
        for i in range(n):
            if i % BLOCK == 0:
                if deferred:
                    self._feed(i)       # while the rows are at hand
                if assigner.plain:
                    self._foresee(ids, times, i, min(i + BLOCK, n))
            windows = assigner.assign(i, times[i], ids[i])
            taken = False
            deferred = self.feeds and windows == 1 and not self.merging
            if self.feeds and not deferred:
                self._feed(i)
                self.fed = i + 1
            for j in range(windows):
                slot = self.placing.place(ids[i], assigner.starts[j], assigner.ends[j])
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
                    self.placing.let_go(slot)
            if not taken:
                if deferred:
                    self._feed(i)
                    self.fed = i + 1
                # Late by its own time, or no window wants it.
                if event and (NO_TIME < times[i] <= self.keeper.cleaned or (
                        not add_overflows(times[i], self.keeper.lateness, &time) and time <= self.keeper.watermark)):
                    late[i] = 1
                else:
                    self.counters.unassigned += 1
        if self.feeds:
            self._feed(n)
        return 0

    cdef int _foresee(self, idx_t[::1] ids, const int64_t[::1] times, Py_ssize_t first, Py_ssize_t stop) except -1:
        """Fetches the rows of the latest windows of some elements, and what they hold in Python."""
        cdef uint32_t[BLOCK] hashes
        cdef idx_t[BLOCK] slots
        cdef AssignerNode assigner = self.assigner
        cdef Py_ssize_t i
        for i in range(first, stop):
            hashes[i - first] = 0
            if assigner.assign(i, times[i], ids[i]):
                hashes[i - first] = self.table.soon(ids[i], assigner.starts[0], assigner.ends[0])
        for i in range(first, stop):
            slots[i - first] = self.table.sooner(hashes[i - first])
        if self.contents.in_python:
            fetch_all(self.keeper.contents, slots, stop - first)
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
                self.firing.fire(slot, NO_TIME, BY_ELEMENT)
        if result & PURGE:
            self.contents.clear(slot)
        return 0

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

    def advance_processing_time(self, ts_t time, bint final=False, bint before=False):
        """Sets the clock, and fires and cleans what is due.

        final: timers are run for the last time. before: those at ``time`` itself wait.
        """
        results = []
        self.keeper.clock = time
        if not before:
            self._run(False, time, final)
        elif time > NO_TIME:
            self._run(False, time - 1, final)
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
            return self.placing.let_go(slot)       # merged away: what its trigger left behind means nothing
        result = self.trigger.on_event_time(slot, time) if event else self.trigger.on_processing_time(slot, time)
        if result & FIRE and self.table.at(slot).flags & HAS_CONTENTS:
            self.firing.fire(slot, time, BY_EVENT_TIMER if event else BY_PROCESSING_TIMER)
        if result & PURGE:
            self.contents.clear(slot)
        window = self.table.at(slot)
        if event == self.keeper.event_time and time == self.keeper.cleanup_time(window):
            if window.flags & HAS_CONTENTS and not window.flags & FIRED:
                self.counters.unfired += 1
            self.contents.clear(slot)
            self.trigger.clear(slot)
            self.firing.clear(slot)
            self.placing.retire(slot)
        return self.placing.let_go(slot)

    def _fire_touched(self):
        """Fires once each the windows that late elements have touched in this call, in order of their ends."""
        cdef idx_t slot
        # A row that was merged away may have come back for another window: it is there twice.
        touched = [slot for slot in dict.fromkeys(self.touched) if self.table.at(slot).flags & TOUCHED]
        self.touched = []
        touched.sort(key=lambda s: (self.table.at(s).end, self.table.at(s).head.start, self.table.at(s).head.key))
        for slot in touched:
            self.table.at(slot).flags &= ~<unsigned int> TOUCHED
            if self.table.at(slot).flags & HAS_CONTENTS:
                self.firing.fire(slot, NO_TIME, BY_ELEMENT)

    def _settle(self):
        """Forgets keys that nothing holds any more."""
        generalstate.settle(self.keeper)
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

    def delta(self, refresh=None):
        """Returns the state changed since the last call as one chunk; a refresh: see Operator.delta()."""
        return generalstate.save(self, "delta", refresh)

    def apply(self, chunks):
        """Takes deltas of an operator that went on from this one's state."""
        generalstate.load(self, chunks, deltas=True)
        self.keys.sweep()

    def restore(self, chunks, forget_watermark=False):
        """Puts a fresh operator into the state of one snapshot and the deltas after it.

        forget_watermark: starts without a watermark, as Flink does.
        """
        if self.counters.events or len(self.table) or self.keeper.watermark != NO_TIME:
            raise StateError("restore: the operator has run already")
        generalstate.load(self, chunks)
        if forget_watermark:
            self.keeper.watermark = self.keeper.cleaned = NO_TIME
        self.keys.sweep()

    def passed_slots(self):
        """Returns the rows whose time has passed, for a restore: the watermark tells that they are gone."""
        cdef idx_t slot
        if not self.keeper.event_time:
            return []
        return [slot for slot in self.table.rows.slots() if not self.table.at(slot).flags & CLEANED
                and self.keeper.passed(self.table.at(slot))]

    def drop_row(self, idx_t slot):
        """Frees a row that has no timers any more, with all that belongs to it, for a restore."""
        self.contents.clear(slot)
        self.table.at(slot).flags &= ~<unsigned int> SAVED
        self.placing.retire(slot)
        self.placing.let_go(slot)

    def _check(self):
        generalstate.check(self)

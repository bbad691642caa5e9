"""The general operator: every assigner, trigger, evictor and function; one state for each (key, window).

Elements and timers have their effects in Flink's order; it is the reference for what the other operators mean.

What elements and timers do to windows: ``effects``. Saved by: ``state``.
"""

import numpy as np

from fastwin.columns.keys import KeyCodec
from fastwin.columns.row cimport RowType, Rows
from fastwin.columns.row import row_type
from fastwin.core.timemath cimport MAX_TIME, NO_TIME
from fastwin.core.typedefs cimport idx_t, int64_t, ts_t
from fastwin.core.windows.windowtable cimport CLEANED, FIRED, HAS_CONTENTS, IN_SET
from fastwin.errors import SpecError, StateError
from fastwin.machine.threads import ALONE
from fastwin.operators.general import looking, state
from fastwin.operators.general.effects cimport Effects
from fastwin.operators.lateness import coalesced_order
from fastwin.operators.protocol import Fed
from fastwin.state.chain import Chain


cdef class GeneralOperator(Effects):
    """Runs any window. Implements the Operator protocol.

    config, program: what to run.
    """

    name = "general"
    may_fire_ahead = False      # user code sees the watermark
    takes_whole = False

    cdef public object chain, newest, round     # see the protocol; the round of repeating that is on
    cdef RowType row_type

    def __init__(self, config, program):
        super().__init__(config, program)
        self.chain, self.newest = Chain(), NO_TIME
        self.row_type = None if program.rows is None else row_type(program.rows.names)

    @property
    def watermark(self):
        """The watermark, ms."""
        return self.timer_service.watermark

    @property
    def cleaned(self):
        """What was cleaned when the state was restored, ms; see the protocol."""
        return self.timer_service.cleaned

    @property
    def processing_time(self):
        """The processing time, ms."""
        return self.timer_service.clock

    def process(self, batch):
        """Takes elements in order."""
        cdef Py_ssize_t i, n = len(batch)
        cdef idx_t[::1] ids
        cdef const int64_t[::1] times
        self.counters.events += n
        if n == 0:
            return Fed()
        fed, batch = Fed(), batch.numbered(self.contents.accumulators.arrived)
        key_ids = KeyCodec.intern(self.keys, batch.keys)
        order = self._order(key_ids, batch) if self.coalesce and self.timer_service.event_time else None
        if order is not None:
            batch, key_ids = batch.select(order), key_ids[order]
        self.contents.number(n, order)
        ids = key_ids
        times = np.full(n, self.timer_service.clock, dtype=np.int64) if self.arrival else batch.times
        for i in range(0 if self.rests else n):
            self.keys.retain(ids[i])        # windows may go, and with them keys that elements to come have
        late_marks = np.zeros(n, dtype=np.uint8)
        try:
            self.elements.begin(None if self.row_type is None else Rows(self.row_type, batch.rows))
            self.elements.coming = key_ids if self.firing.needs_keys else None
            self.take(ids, times, late_marks, batch.columns)
        finally:
            self.elements.coming = None     # some may go now
            for i in range(0 if self.rests else n):
                self.keys.release(ids[i])
        self.firing.fire_touched()
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

    def _order(self, ids, batch):
        """Returns the order of elements without one that accepts most; None: as they are. ids: of their keys."""
        cdef Py_ssize_t i
        passed = batch.times <= self.timer_service.watermark
        ends = batch.times
        if passed.any() and self.assigner.asks:
            ends = ends.copy()
            self.elements.begin(Rows(self.row_type, batch.rows))
            for i in np.flatnonzero(passed):
                ends[i] = self.assigner.last_end(i, ends[i], ids[i])
            self.elements.begin(None)
        return coalesced_order(ends, passed)

    def merge(self, chunks):
        """Refuses partial results: user code sees elements."""
        raise SpecError("merge: only aligned and session windows take partial results")

    def run(self, batch, each=ALONE):
        """Takes all elements that there will ever be, and returns what fires until the end of time."""
        return [*self.process(batch).main, *self.advance_watermark(MAX_TIME)]

    def advance_watermark(self, ts_t watermark):
        """Fires and cleans what is due; a watermark that does not advance is ignored."""
        results = []
        if watermark <= self.timer_service.watermark:
            return results
        self.timer_service.watermark = watermark
        self.run_timers(True, watermark, watermark == MAX_TIME)
        self.firing.flush(results)
        self._settle()
        return results

    def advance_processing_time(self, ts_t time, bint final=False, bint before=False):
        """Sets the clock, and fires and cleans what is due.

        final: timers are run for the last time. before: those at ``time`` itself wait.
        """
        results = []
        self.timer_service.clock = time
        if time > NO_TIME or not before:
            self.run_timers(False, time - <ts_t> before, final)
        self.firing.flush(results)
        self._settle()
        return results

    def _settle(self):
        """Forgets keys that nothing holds any more."""
        state.settle(self)
        self.elements.begin(None)
        self.contents.settle()
        self.keys.sweep()
        self.table.rows.trim()

    def next_timer(self):
        """Returns the time of the first event timer, or when state expires; None: there is none."""
        return self.state.next_time(True, self.timer_service.next_time(True))

    def next_processing_timer(self):
        """Returns the time of the first processing timer, or when state expires; None: there is none."""
        return self.state.next_time(False, self.timer_service.next_time(False))

    def open_windows(self):
        """Counts (key, window) pairs that have contents."""
        return self.table.filled

    def look(self, key=None):
        """Returns what is known of windows, of one key or of all."""
        return looking.look(self, self.host.kept,
                            looking.Marks(HAS_CONTENTS, FIRED, CLEANED, IN_SET if self.merging else 0), key)

    @property
    def timers(self):
        """How many timers are registered, of event and processing time."""
        return len(self.timer_service.event_timers) + len(self.timer_service.processing_timers)

    @property
    def state_rows(self):
        """Rows of state: one for each (key, window), and one for each key with state of its own."""
        return len(self.table) + len(self.state.keys)

    @property
    def state_bytes(self):
        """Bytes allocated for windows, timers, keys, a round; of Python objects, only the references."""
        return state.allocated(self)

    def place(self, in_file):
        """Moves keys, rows and their index; returns their bytes in files. Python objects and timers stay in memory."""
        return self.keys.place(in_file) + self.table.place(in_file)

    def take_side(self):
        """Returns what user code has put into side outputs since the last call: record batches by tag."""
        return self.firing.take_side()

    def snapshot(self):
        """Returns all state as one chunk."""
        return state.save(self, "snapshot")

    def delta(self, refresh=None):
        """Returns the state changed since the last call as one chunk; a refresh: see Operator.delta()."""
        return state.save(self, "delta", refresh)

    def apply(self, chunks):
        """Takes deltas of an operator that went on from this one's state."""
        state.load(self, chunks, deltas=True)
        self.keys.sweep()

    def restore(self, chunks, forget_watermark=False):
        """Puts a fresh operator into the state of one snapshot and the deltas after it; see Operator.restore()."""
        if self.counters.events or len(self.table) or self.timer_service.watermark != NO_TIME:
            raise StateError("restore: the operator has run already")
        state.load(self, chunks)
        if forget_watermark:
            state.forget_watermark(self)
        self.keys.sweep()

    def _check(self):
        state.check(self)

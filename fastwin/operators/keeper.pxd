# What the parts of the general operator share: windows, timers, clocks, the current element.
from fastwin._typedefs cimport idx_t, ts_t, uint32_t
from fastwin.core.timerqueue cimport TimerQueue
from fastwin.core.timersort cimport Timer
from fastwin.core.windowtable cimport Window, WindowTable
from fastwin.keyedstate cimport StateHolder
from fastwin.rowview cimport Row, Rows

cdef ts_t NO_TIME               # int64 min: no watermark yet, no timestamp

cdef ts_t plus(ts_t a, ts_t b) except? -2

cdef class Keeper:
    cdef readonly WindowTable table
    cdef readonly TimerQueue event_timers, processing_timers
    cdef public ts_t watermark, clock
    cdef readonly ts_t lateness
    cdef public ts_t cleaned            # windows with their last ms up to here were cleaned before a restore
    cdef readonly bint event_time       # of the assigner
    cdef bint final                     # timers run for the last time: a watermark of int64 max
    cdef readonly list contents         # by slot: Python accumulators or elements; None for none
    cdef public dict saved_lists        # by slot: the list of elements that was saved, and how many there were
    cdef readonly list states           # by slot: dicts of user state; None for none
    cdef readonly dict key_states       # by key id: dicts of per-key user state; their keys are retained
    cdef readonly set dirty_keys        # of key_states, since the last snapshot or delta
    cdef object codec
    cdef dict key_values
    cdef Rows rows
    cdef Py_ssize_t row_at
    cdef Row row
    cdef idx_t* merged                  # the windows that on_merge() merges
    cdef Py_ssize_t merged_n, merged_capacity
    cdef public list journal            # (slot, time, kind) of timers without a mark in the row; None: not kept
    cdef ts_t cached_start, cached_end
    cdef object cached_window

    cdef inline Window* at(self, idx_t slot) noexcept:
        return <Window*> (self.table.rows.data + slot * self.table.rows.stride)

    cdef ts_t cleanup_time(self, const Window* window) noexcept
    cdef bint passed(self, const Window* window) noexcept
    cdef int register_event(self, idx_t slot, ts_t time) except -1
    cdef int register_processing(self, idx_t slot, ts_t time) except -1
    cdef int delete_event(self, idx_t slot, ts_t time) except -1
    cdef int delete_processing(self, idx_t slot, ts_t time) except -1
    cdef int register_cleanup(self, idx_t slot) except -1
    cdef int delete_cleanup(self, idx_t slot) except -1
    cdef void _fetch(self, TimerQueue timers) noexcept
    cdef bint take_due(self, bint event, ts_t until, Timer* timer) except -1
    cdef int fit(self, idx_t slot) except -1
    cdef int hold_merged(self, const idx_t* slots, Py_ssize_t n) except -1
    cdef Py_ssize_t _soon(self, TimerQueue timers) noexcept
    cdef uint32_t _mark(self, const Window* window, ts_t time, bint event) noexcept
    cdef int _changed(self, idx_t slot, ts_t time, uint32_t mark, int kind) except -1
    cdef Row element(self, Py_ssize_t i)
    cdef object window_of(self, idx_t slot)
    cdef object window_object(self, ts_t start, ts_t end)
    cdef object key_value(self, idx_t key)
    cdef object blame(self, object what, object where, problem)

cdef class WindowStates(StateHolder):
    cdef Keeper keeper
    cdef idx_t slot

cdef class KeyStates(StateHolder):
    cdef Keeper keeper
    cdef idx_t key

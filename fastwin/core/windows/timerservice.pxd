# Clocks of the general operator, and the timers of its windows.
cimport cython

from fastwin.core.timers.timer cimport Timer
from fastwin.core.timers.timerqueue cimport TimerQueue
from fastwin.core.typedefs cimport idx_t, int64_t, ts_t, uint32_t
from fastwin.core.windows.windowtable cimport END_TIMER, Window, WindowTable

cdef inline idx_t slot_of(const Timer* timer) noexcept nogil:
    """Returns the row of a timer's window."""
    return <idx_t> (timer.namespace >> 2)


cdef ts_t plus(ts_t a, ts_t b) except? -2


@cython.final
cdef class TimerService:
    cdef readonly WindowTable table
    cdef readonly TimerQueue event_timers, processing_timers
    cdef readonly TimerQueue forsaken   # when windows go whose trigger has deleted the timer that cleans them
    cdef public ts_t watermark, clock
    cdef readonly ts_t lateness
    cdef public ts_t cleaned            # windows with their last ms up to here were cleaned before a restore
    cdef readonly bint event_time       # of the assigner
    cdef bint final                     # timers run for the last time: a watermark of int64 max
    cdef public list journal            # (slot, time, kind) of timers without a mark in the row; None: not kept

    # A timer's namespace: the slot of its row, and the mark in it that tells of the timer, as TimerQueue.ask() has it.
    cdef inline int64_t namespace(self, idx_t slot, uint32_t mark) noexcept nogil:
        return <int64_t> slot << 2 | mark // END_TIMER

    cdef inline Window* at(self, idx_t slot) noexcept:
        return <Window*> (self.table.rows.data + slot * self.table.rows.stride)

    cdef ts_t cleanup_time(self, const Window* window) noexcept
    cdef bint passed(self, const Window* window) noexcept
    cdef TimerQueue queue(self, bint event)
    cdef int register_timer(self, idx_t slot, ts_t time, bint event) except -1
    cdef int delete_timer(self, idx_t slot, ts_t time, bint event) except -1
    cdef int register_cleanup(self, idx_t slot) except -1
    cdef int delete_cleanup(self, idx_t slot) except -1
    cdef bint take_due(self, bint event, ts_t until, Timer* timer) except -1
    cdef idx_t next_forsaken(self, bint event, ts_t until) except? -2
    cdef int _forsake(self, idx_t slot) except -1
    cdef int _delete(self, idx_t slot, ts_t time, bint event, uint32_t mark) except -1
    cdef uint32_t _mark(self, const Window* window, ts_t time, bint event) noexcept
    cdef int _changed(self, idx_t slot, ts_t time, uint32_t mark, int kind) except -1

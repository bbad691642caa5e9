# From windows that fire to result rows.
from fastwin.core.typedefs cimport idx_t, int64_t, ts_t
from fastwin.core.memory.owned cimport size_in
from fastwin.core.rows.rowstore cimport RowStore
from fastwin.operators.general.contents cimport Contents
from fastwin.core.windows.timerservice cimport TimerService
from fastwin.core.windows.windowtable cimport WindowTable
from fastwin.operators.general.contexts cimport WindowContext
from fastwin.operators.general.elements cimport Elements
from fastwin.operators.general.eviction cimport Eviction

cdef enum:
    BY_ELEMENT = 0              # what has fired a window
    BY_EVENT_TIMER = 1
    BY_PROCESSING_TIMER = 2

cdef class Firing:
    cdef Elements elements
    cdef WindowTable table
    cdef TimerService timers
    cdef Contents contents
    cdef Eviction eviction      # of the elements that windows keep; None: they keep none
    cdef readonly object program, config, counters
    cdef object blank, maker, process, process_clear, result_row
    cdef str what, what_clears      # the user's functions, for errors
    cdef list names                 # of the result columns in the order in which they are made
    cdef RowStore fired
    cdef int64_t held               # bytes that fired rows own: lists and sketches that are copies
    cdef readonly WindowContext ctx
    cdef readonly bint needs_keys
    cdef bint pane_info, keeps_rows, changelog
    cdef bint leaving               # the window that fires goes next
    cdef readonly bint tells_firings    # so a window that has fired is not forgotten while it is there
    cdef str change                 # what the window that fires does to the table that a changelog makes
    cdef list changes               # the same for each fired row
    cdef list values                # of the Python columns, a list for each; None: there are none
    cdef list panes                 # (index, timing, is last) for each fired row
    cdef public list causes         # the time of the timer for each fired row, None for an element; None: not kept
    cdef list touched               # windows that fire at the end of the call
    cdef list _batches

    cdef int fire(self, idx_t slot, ts_t time, int by_timer) except -1
    cdef int fire_last(self, idx_t slot, ts_t time) except -1
    cdef bint moves(self)
    cdef int touch(self, idx_t slot, bint empties) except -1
    cdef int fire_touched_one(self, idx_t slot) except -1
    cdef int move(self, idx_t slot) except -1
    cdef int withdraw(self, idx_t slot) except -1
    cdef idx_t _row(self, idx_t slot, ts_t time, int by_timer, tuple pane) except -1
    cdef int _put(self, object values) except -1

    cdef inline void _weigh(self, idx_t row) noexcept:
        cdef Py_ssize_t i
        for i in range(self.fired.owned_n):
            self.held += size_in(<char*> self.fired.head(row) + self.fired.owned[i])

    cdef int _accumulate(self) except -1
    cdef tuple _pane(self, idx_t slot, ts_t time, int by_timer)
    cdef WindowContext _enter(self, idx_t slot, str function)
    cdef int _process(self, idx_t slot, object elements, ts_t time, int by_timer, tuple pane) except -1
    cdef int clear(self, idx_t slot) except -1

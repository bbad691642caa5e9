# From windows that fire to result rows.
from fastwin._typedefs cimport idx_t, ts_t
from fastwin.core.rows cimport RowStore
from fastwin.operators.contents cimport Contents
from fastwin.operators.keeper cimport Keeper
from fastwin.operators.usercode cimport WindowContext

cdef enum:
    BY_ELEMENT = 0              # what has fired a window
    BY_EVENT_TIMER = 1
    BY_PROCESSING_TIMER = 2

cdef class Firing:
    cdef Keeper keeper
    cdef Contents contents
    cdef readonly object program, config, counters
    cdef object blank, maker, process, process_clear, result_row
    cdef str what
    cdef RowStore fired
    cdef readonly WindowContext ctx
    cdef readonly bint needs_keys
    cdef bint pane_info, keeps_rows
    cdef list values                # of the Python columns, a list for each; None: there are none
    cdef list panes                 # (index, timing, is last) for each fired row
    cdef public list causes         # the time of the timer for each fired row, None for an element; None: not kept
    cdef list _batches
    cdef Py_ssize_t _full

    cdef int fire(self, idx_t slot, ts_t time, int by_timer) except -1
    cdef idx_t _row(self, idx_t slot, ts_t time, int by_timer, tuple pane) except -1
    cdef int _put(self, list values) except -1
    cdef tuple _pane(self, idx_t slot, ts_t time, int by_timer)
    cdef int _process(self, idx_t slot, object elements, ts_t time, int by_timer, tuple pane) except -1
    cdef int clear(self, idx_t slot) except -1

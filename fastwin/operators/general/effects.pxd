# What elements and timers do to the windows of the general operator.
from fastwin.core.accumulators.accumulator_set cimport AccumulatorSet
from fastwin.core.keys.keytable cimport KeyTable
from fastwin.core.typedefs cimport idx_t, int64_t, ts_t, uint8_t, uint32_t
from fastwin.core.windows.timerservice cimport TimerService
from fastwin.core.windows.windowtable cimport WindowTable
from fastwin.operators.general.assigners cimport AssignerNode
from fastwin.operators.general.blocks cimport BLOCK, Block
from fastwin.operators.general.contents cimport Contents
from fastwin.operators.general.contexts cimport RowHost
from fastwin.operators.general.elements cimport Elements
from fastwin.operators.general.firing cimport Firing
from fastwin.operators.general.userstate cimport UserState
from fastwin.operators.general.windows cimport OpenWindows
from fastwin.triggers.trigger cimport Trigger

cdef class Effects:
    cdef readonly object config, program, counters
    cdef readonly TimerService timer_service
    cdef readonly WindowTable table
    cdef readonly Elements elements
    cdef readonly UserState state
    cdef readonly AssignerNode assigner
    cdef readonly Trigger trigger
    cdef RowHost host
    cdef readonly Contents contents
    cdef readonly Firing firing
    cdef readonly OpenWindows windows
    cdef KeyTable keys
    cdef AccumulatorSet accumulators
    cdef bint merging, arrival, feeds, coalesce
    cdef Block block
    cdef uint32_t settled               # flags of a window whose trigger has nothing to do with more elements
    cdef bint rests                     # there are such windows, and elements do not make any go
    cdef idx_t[BLOCK] pending           # by element: the rows that built-in accumulators are still to be fed
    cdef Py_ssize_t fed                 # how many elements they have been fed, or that are passed over
    cdef list _held

    cdef int take(self, idx_t[::1] ids, const int64_t[::1] times, uint8_t[::1] late, list columns) except -1
    cdef int run_timers(self, bint event, ts_t until, bint final) except -1
    cdef int _feed(self, Py_ssize_t until) except -1
    cdef int _answer(self, idx_t slot, int result) except -1
    cdef int _on_timer(self, idx_t slot, ts_t time, bint event) except -1
    cdef int _clean(self, idx_t slot) except -1

# The rows of windows.
from fastwin.core.typedefs cimport idx_t, ts_t, uint32_t
from fastwin.core.windows.timerservice cimport TimerService
from fastwin.core.windows.windowtable cimport WindowTable
from fastwin.operators.general.assigners cimport AssignerNode
from fastwin.operators.general.contents cimport Contents
from fastwin.operators.general.contexts cimport RowHost
from fastwin.operators.general.elements cimport Elements
from fastwin.operators.general.firing cimport Firing
from fastwin.operators.general.userstate cimport UserState
from fastwin.triggers.trigger cimport Trigger

cdef class OpenWindows:
    cdef RowHost host
    cdef TimerService timers
    cdef Elements elements
    cdef UserState state
    cdef WindowTable table
    cdef AssignerNode assigner
    cdef Trigger trigger
    cdef Contents contents
    cdef Firing firing

    cdef idx_t place(self, idx_t key, ts_t start, ts_t end, uint32_t hash, idx_t known) except? -1
    cdef void retire(self, idx_t slot) noexcept
    cdef int let_go(self, idx_t slot) except -1
    cdef int fire_last(self, idx_t slot, ts_t time) except -1
    cdef idx_t _add_merging(self, idx_t key, ts_t start, ts_t end) except? -1
    cdef idx_t _open(self, idx_t key, ts_t start, ts_t end) except? -1
    cdef idx_t _merge(self, idx_t key, ts_t start, ts_t end) except? -1

# From an element's window to its row.
from fastwin._typedefs cimport idx_t, ts_t
from fastwin.core.windowtable cimport WindowTable
from fastwin.operators.assigning cimport AssignerNode
from fastwin.operators.contents cimport Contents
from fastwin.operators.keeper cimport Keeper
from fastwin.operators.triggernodes cimport TriggerNode

cdef class Placing:
    cdef Keeper keeper
    cdef WindowTable table
    cdef AssignerNode assigner
    cdef TriggerNode trigger
    cdef Contents contents
    cdef bint pane_info

    cdef idx_t place(self, idx_t key, ts_t start, ts_t end) except? -1
    cdef void retire(self, idx_t slot) noexcept
    cdef int let_go(self, idx_t slot) except -1
    cdef idx_t _add_merging(self, idx_t key, ts_t start, ts_t end) except? -1
    cdef idx_t _open(self, idx_t key, ts_t start, ts_t end) except? -1
    cdef idx_t _merge(self, idx_t key, ts_t start, ts_t end) except? -1

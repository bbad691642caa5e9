# Triggers at C level.
from fastwin._typedefs cimport idx_t, int64_t, ts_t
from fastwin.operators.keeper cimport Keeper

cdef enum:
    CONTINUE = 0
    FIRE = 1
    PURGE = 2
    FIRE_AND_PURGE = 3

cdef class TriggerNode:
    cdef readonly Keeper keeper
    cdef Py_ssize_t cell                # its first cell in a row
    cdef readonly Py_ssize_t cells      # how many it has

    cdef int on_element(self, idx_t slot, Py_ssize_t i, ts_t time) except -1
    cdef int on_event_time(self, idx_t slot, ts_t time) except -1
    cdef int on_processing_time(self, idx_t slot, ts_t time) except -1
    cdef int on_merge(self, idx_t slot) except -1
    cdef int clear(self, idx_t slot) except -1
    cdef bint keeps(self, idx_t slot) except -1


cdef inline int64_t* cell_of(TriggerNode node, idx_t slot) noexcept:
    return <int64_t*> node.keeper.at(slot) + node.cell

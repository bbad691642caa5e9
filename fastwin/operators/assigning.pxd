# Assigners at C level.
from fastwin._typedefs cimport idx_t, ts_t
from fastwin.operators.keeper cimport Keeper

cdef class AssignerNode:
    cdef readonly Keeper keeper
    cdef readonly bint merging          # its windows merge
    cdef bint plain                     # it does not merge, and may be asked in advance: no user code runs
    cdef readonly object merge_windows  # how, where it is not by overlap; None: by overlap
    cdef ts_t* starts
    cdef ts_t* ends
    cdef Py_ssize_t capacity

    cdef int reserve(self, Py_ssize_t n) except -1
    cdef Py_ssize_t assign(self, Py_ssize_t i, ts_t time, idx_t key) except -1

# Assigners at C level.
from fastwin.core.typedefs cimport idx_t, ts_t
from fastwin.core.windows.timerservice cimport TimerService
from fastwin.operators.general.elements cimport Elements

cdef class AssignerNode:
    cdef Elements elements
    cdef TimerService timers
    cdef readonly bint merging          # its windows merge
    cdef bint plain                     # it does not merge, and may be asked in advance: no user code runs
    cdef bint single                    # it is plain, and gives each time the one window that the time is in
    cdef readonly bint asks             # it merges, and only code in Python or a column tells where its windows end
    cdef readonly object merge_windows  # how, where it is not by overlap; None: by overlap
    cdef str name
    cdef ts_t* starts
    cdef ts_t* ends
    cdef Py_ssize_t capacity

    cdef int reserve(self, Py_ssize_t n) except -1
    cdef Py_ssize_t assign(self, Py_ssize_t i, ts_t time, idx_t key) except -1

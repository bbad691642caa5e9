# Some rows of a call, one after the other, as user code sees them.
from fastwin.columns.row cimport Row, Rows
from fastwin.core.typedefs cimport idx_t

cdef class Picked:
    cdef Rows rows
    cdef idx_t* places          # in the call, of the rows that are picked
    cdef readonly Py_ssize_t n
    cdef list arrays            # by column, in their order: numpy arrays, None where there is none
    cdef list asked             # by column: whether that is known

    cdef object array(self, Py_ssize_t j)

cdef class RowRun:
    cdef Picked picked          # None: the call is over
    cdef Py_ssize_t first, n

    cdef int _check(self) except -1
    cdef Py_ssize_t _column(self, object name) except -1
    cdef Row _row(self, Py_ssize_t at)

cdef RowRun new_run(Picked picked)

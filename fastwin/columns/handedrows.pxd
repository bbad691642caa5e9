# Rows that user code is handed.
from fastwin.columns.row cimport Row, Rows, RowType
from fastwin.core.typedefs cimport idx_t


cdef class HandedRows:
    cdef RowType type           # of all rows
    cdef list kinds             # Arrow types of their columns
    cdef Row last, spare        # what has been handed out last, and the one before
    cdef Py_ssize_t parts       # how many older parts WindowRows have: what a look at all of them costs

    cdef Row row(self, Rows rows, idx_t i)
    cdef int settle(self) except -1
    cdef tuple arguments(self)

cdef HandedRows handed_by_themselves(list rows)

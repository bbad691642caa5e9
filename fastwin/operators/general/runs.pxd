# Elements that windows have got and functions have not.
from fastwin.columns.row cimport Rows
from fastwin.columns.rowrun cimport Picked, RowRun
from fastwin.core.typedefs cimport idx_t
from fastwin.core.windows.windowtable cimport Window

cdef struct Noted:              # an element of a window
    idx_t i                     # which one of the call
    idx_t next                  # the one after it in the run

cdef struct Run:
    idx_t slot                  # of the window
    idx_t first, last           # places among the noted ones
    idx_t n                     # 0: it has been handed over

cdef class Runs:
    cdef Noted* noted
    cdef Run* runs
    cdef Py_ssize_t noted_n, noted_room, runs_n, runs_room
    cdef RowRun view            # what functions are handed

    cdef int note(self, Window* window, idx_t slot, Py_ssize_t i) except -1
    cdef void move(self, Window* window, Window* to, idx_t slot) noexcept
    cdef Picked pick(self, Rows rows, Py_ssize_t begin, Py_ssize_t end)
    cdef RowRun handed(self, Picked picked, Py_ssize_t first, Py_ssize_t n)
    cdef int taken_back(self) except -1
    cdef void done(self) noexcept

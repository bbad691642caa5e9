# One row for each key of a bounded table whose elements come in order of time: for the session that is open.
from fastwin.core.panes.grouptable cimport GroupTable
from fastwin.core.rows.rowstore cimport RowStore
from fastwin.core.typedefs cimport idx_t, int64_t, ts_t


cdef class SessionGroups(GroupTable):
    cdef readonly RowStore ended    # copies of the rows of sessions that are over
    cdef ts_t* ends                 # theirs, by slot there
    cdef idx_t ends_room            # how many have room

    cdef int make_room(self, Py_ssize_t n) except -1 nogil
    cdef void begin(self, const idx_t* slots, const ts_t* ends, const ts_t* starts, Py_ssize_t n) noexcept nogil
    cdef Py_ssize_t extend(self, const idx_t* slots, const ts_t* starts, const ts_t* ends,
                           Py_ssize_t n) noexcept nogil
    cdef int add(self, Py_ssize_t at, Py_ssize_t n, const idx_t* slots, const ts_t* times,
                 const ts_t* ends) except -1 nogil

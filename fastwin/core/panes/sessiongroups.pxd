# One row for each (key, session) of a bounded table whose elements come in order of time.
from fastwin.core.panes.grouptable cimport GroupTable
from fastwin.core.typedefs cimport idx_t, int64_t, ts_t, uint64_t


cdef class SessionGroups(GroupTable):
    cdef void find_sessions(self, Py_ssize_t at, const idx_t* picked, Py_ssize_t n, const ts_t* times, int64_t gap,
                            const uint64_t* hashes, idx_t* slots) noexcept nogil

# Elements of a table put in order, 8 bytes each.
cimport cython

from fastwin.core.typedefs cimport idx_t, int64_t, ts_t


@cython.final
cdef class KeyOrder:
    cdef int64_t* packed        # by key: the time, counted from `base` or as a rank, above the element's number
    cdef bint ranked
    cdef const int64_t[::1] distinct    # the times that ranks stand for
    cdef ts_t first, last       # of all times
    cdef ts_t base              # what they are counted from
    cdef int bits               # of an element's number
    cdef readonly Py_ssize_t n
    cdef readonly object bounds
    """Where each key's elements begin, and where the last one's end: int64[top + 1]."""

    cdef int _group(self, const idx_t[::1] ids, const int64_t[::1] times, int64_t[::1] bounds) except -1
    cdef int check_sessions(self, int64_t gap) except -1

    cdef inline ts_t time(self, Py_ssize_t i) noexcept nogil:
        cdef int64_t above = self.packed[i] >> self.bits
        return self.distinct[above] if self.ranked else self.base + above

    cdef inline int64_t number(self, Py_ssize_t i) noexcept nogil:
        return self.packed[i] & (((<int64_t> 1) << self.bits) - 1)

# An ordered set of timers: a binary heap beside a hash set.
cimport cython

from fastwin._typedefs cimport ts_t
from fastwin.core.timersort cimport Timer

cdef enum:
    FREE = -1                   # key of an empty place in the set


@cython.final
cdef class TimerHeap:
    cdef Timer* heap
    cdef Py_ssize_t heap_n, heap_capacity
    cdef Timer* table           # open addressing, linear probing
    cdef Py_ssize_t table_size
    cdef Py_ssize_t live

    cdef int _reserve(self, Py_ssize_t extra) except -1 nogil
    cdef bint _resize_table(self, Py_ssize_t size) noexcept nogil
    cdef Py_ssize_t _place(self, const Timer* timer) noexcept nogil
    cdef Py_ssize_t _find(self, const Timer* timer) noexcept nogil
    cdef bint _insert(self, const Timer* timer) noexcept nogil
    cdef bint _remove(self, const Timer* timer) noexcept nogil
    cdef bint _in_set(self, const Timer* timer) noexcept nogil
    cdef void _push(self, const Timer* timer) noexcept nogil
    cdef void _drop_top(self) noexcept nogil
    cdef void _sift_up(self, Py_ssize_t at) noexcept nogil
    cdef void _sift_down(self, Py_ssize_t at) noexcept nogil
    cdef void _heapify(self) noexcept nogil
    cdef void _tidy(self) noexcept nogil
    cdef Py_ssize_t _due(self, Py_ssize_t at, ts_t time) noexcept nogil
    cdef Py_ssize_t _pop_few(self, ts_t time, Timer* found) noexcept nogil
    cdef Py_ssize_t _pop_many(self, ts_t time, Timer* found) noexcept nogil

# Timers of keys and windows, in order of time.
from fastwin._typedefs cimport idx_t, int64_t, ts_t

cdef struct Timer:
    ts_t time
    int64_t namespace
    int64_t key                 # an idx_t; FREE marks an empty place of the set

cdef class TimerHeap:
    cdef Timer* heap
    cdef Py_ssize_t heap_n, heap_capacity
    cdef Timer* table           # open addressing, linear probing
    cdef Py_ssize_t table_size
    cdef readonly Py_ssize_t live
    cdef Timer* due             # sorted timers on their way out of next_due(); those deleted since are not in the set
    cdef Py_ssize_t due_n, due_at
    cdef Py_ssize_t popped, next_bulk   # one by one in this run; when to look whether sorting pays

    cdef bint add(self, ts_t time, idx_t key, int64_t namespace) except -1
    cdef bint discard(self, ts_t time, idx_t key, int64_t namespace) noexcept
    cdef bint contains(self, ts_t time, idx_t key, int64_t namespace) noexcept
    cdef bint next_due(self, ts_t until, Timer* found) except -1

    cdef int _reserve(self, Py_ssize_t extra) except -1 nogil
    cdef bint _insert(self, const Timer* timer) noexcept nogil
    cdef bint _remove(self, const Timer* timer) noexcept nogil
    cdef void _sift_up(self, Py_ssize_t at) noexcept nogil
    cdef void _sift_down(self, Py_ssize_t at) noexcept nogil
    cdef void _heapify(self) noexcept nogil
    cdef void _rebuild(self) noexcept nogil
    cdef bint _in_set(self, const Timer* timer) noexcept nogil
    cdef void _drop_top(self) noexcept nogil
    cdef bint _any_until(self, ts_t time) noexcept nogil
    cdef int _take_due(self, ts_t until) except -1
    cdef void _fill(self, const Timer* timers, Py_ssize_t n, int64_t[::1] times, idx_t[::1] keys, int64_t[::1] namespaces) noexcept

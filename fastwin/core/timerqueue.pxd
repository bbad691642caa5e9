# Timers that fire one by one, while others come and go.
cimport cython

from fastwin._typedefs cimport idx_t, int64_t, ts_t
from fastwin.core.memory cimport prefetch
from fastwin.core.timers cimport TimerHeap
from fastwin.core.timersort cimport Timer


@cython.final
cdef class TimerQueue:
    cdef readonly TimerHeap heap
    cdef Timer* due             # sorted; those deleted since are not in the heap's set
    cdef Py_ssize_t due_n, due_at
    cdef Py_ssize_t popped, next_bulk   # one by one in this run; when to look whether sorting pays

    cdef bint add(self, ts_t time, idx_t key, int64_t namespace) except -1
    cdef bint discard(self, ts_t time, idx_t key, int64_t namespace) noexcept
    cdef bint contains(self, ts_t time, idx_t key, int64_t namespace) noexcept
    cdef bint next_due(self, ts_t until, Timer* found) except -1

    cdef inline const Timer* coming(self, Py_ssize_t ahead) noexcept nogil:
        # The timer that comes after so many others of those sorted already, if none is added; NULL: not known.
        return self.due + self.due_at + ahead if self.due_at + ahead < self.due_n else NULL

    cdef inline void soon(self, const Timer* timer) noexcept nogil:
        # Fetches the place in the set of a timer that will be taken out.
        prefetch(self.heap.table + self.heap._place(timer))

    cdef int _take_due(self, ts_t until) except -1

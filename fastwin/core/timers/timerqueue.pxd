# Timers that fire one by one, while others come and go.
cimport cython

from fastwin.core.typedefs cimport idx_t, int64_t, ts_t, uint64_t
from fastwin.core.memory.hashindex cimport HashIndex, first_place, is_empty, stir
from fastwin.core.memory.pages cimport prefetch
from fastwin.core.timers.timer cimport Timer
from fastwin.core.timers.timerheap cimport TimerHeap

cdef enum:
    TOLD = 3                    # the bits of a namespace, one of them set where the owner tells of the timer

# Tells whether a timer that the owner knows about is registered; delay: of the queue.
ctypedef bint (*tells)(const void* owner, const Timer* timer, ts_t delay) noexcept nogil


@cython.final
cdef class TimerQueue:
    cdef HashIndex index        # of timers: all that are registered, but for those that the owner tells of
    cdef Py_ssize_t live        # how many these are
    cdef Py_ssize_t told        # how many there are of the others
    cdef tells tell             # NULL: there is no owner
    cdef object owner
    cdef ts_t delay
    cdef TimerHeap heap         # of these, and of some that were deleted since
    cdef Timer* due             # sorted, no longer in the heap; some were deleted since
    cdef Py_ssize_t due_n, due_at
    cdef Py_ssize_t popped, next_bulk   # one by one in this run; when to look whether sorting pays

    cpdef bint add(self, ts_t time, idx_t key, int64_t namespace) except -1
    cpdef bint discard(self, ts_t time, idx_t key, int64_t namespace) noexcept
    cpdef bint contains(self, ts_t time, idx_t key, int64_t namespace) noexcept
    cdef bint next_due(self, ts_t until, Timer* found) except -1

    cdef inline const Timer* coming(self, Py_ssize_t ahead) noexcept nogil:
        # The timer that comes after so many others of those sorted already, if none is added; NULL: not known.
        return self.due + self.due_at + ahead if self.due_at + ahead < self.due_n else NULL

    cdef inline uint64_t hashed(self, const Timer* timer) noexcept nogil:
        cdef uint64_t factor = self.index.factor, h = stir(self.index.start, <uint64_t> timer.key, factor)
        return stir(stir(h, <uint64_t> timer.time, factor), <uint64_t> timer.namespace, factor)

    cdef inline bint is_told(self, const Timer* timer) noexcept nogil:
        return self.tell != NULL and timer.namespace & TOLD

    cdef inline bint is_there(self, const Timer* timer) noexcept nogil:
        if self.is_told(timer):
            return self.tell(<const void*> self.owner, timer, self.delay)
        return self.live and not is_empty(self.timer_at(self._find(timer)))

    cdef inline Timer* timer_at(self, Py_ssize_t at) noexcept nogil:
        return <Timer*> self.index.places + at

    cdef inline void soon(self, const Timer* timer) noexcept nogil:
        # Fetches the place in the index of a timer that will be taken out.
        if not self.is_told(timer):
            prefetch(self.timer_at(first_place(&self.index, self.hashed(timer))))

    cdef int ask(self, object owner, tells tell, ts_t delay) except -1
    cdef int _reserve(self) except -1
    cdef Py_ssize_t _find(self, const Timer* timer) noexcept nogil
    cdef bint _remove(self, const Timer* timer) noexcept nogil
    cdef void _tidy(self) noexcept nogil
    cdef Py_ssize_t _count_due(self, Py_ssize_t at, ts_t time) noexcept nogil
    cdef int _sort_due(self, ts_t until) except -1

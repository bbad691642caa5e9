# A binary heap of timers, the first one on top.
from libc.stdlib cimport realloc

from fastwin.core.typedefs cimport ts_t
from fastwin.core.timers.timer cimport Timer, before

cdef enum:
    FIRST_TIMERS = 64           # capacity

cdef struct TimerHeap:
    Timer* timers
    Py_ssize_t n, capacity


cdef inline bint reserve_heap(TimerHeap* heap, Py_ssize_t capacity) noexcept nogil:
    """Makes room for exactly so many timers, not fewer than there are. Returns whether there was memory."""
    cdef void* moved = realloc(heap.timers, capacity * sizeof(Timer))
    if moved == NULL:
        return False
    heap.timers = <Timer*> moved
    heap.capacity = capacity
    return True


cdef inline void sift_up(TimerHeap* heap, Py_ssize_t at) noexcept nogil:
    cdef Timer timer = heap.timers[at]
    cdef Py_ssize_t parent
    while at > 0:
        parent = (at - 1) >> 1
        if not before(&timer, heap.timers + parent):
            break
        heap.timers[at] = heap.timers[parent]
        at = parent
    heap.timers[at] = timer


cdef inline void sift_down(TimerHeap* heap, Py_ssize_t at) noexcept nogil:
    cdef Timer timer = heap.timers[at]
    cdef Py_ssize_t child
    while True:
        child = 2 * at + 1
        if child >= heap.n:
            break
        if child + 1 < heap.n and before(heap.timers + child + 1, heap.timers + child):
            child += 1
        if not before(heap.timers + child, &timer):
            break
        heap.timers[at] = heap.timers[child]
        at = child
    heap.timers[at] = timer


cdef inline void append_timer(TimerHeap* heap, const Timer* timer) noexcept nogil:
    """Puts a timer behind all others, out of order; there must be room for it."""
    heap.timers[heap.n] = timer[0]
    heap.n += 1


cdef inline void drop_first(TimerHeap* heap) noexcept nogil:
    heap.n -= 1
    heap.timers[0] = heap.timers[heap.n]
    if heap.n:
        sift_down(heap, 0)


cdef inline void put_in_order(TimerHeap* heap) noexcept nogil:
    """Makes a heap of timers that lie in any order. O(timers)."""
    cdef Py_ssize_t at = heap.n // 2
    while at > 0:
        at -= 1
        sift_down(heap, at)


cdef inline Py_ssize_t part_due(TimerHeap* heap, ts_t until, Timer* due) noexcept nogil:
    """Moves the timers at or before ``until`` to ``due``, in any order; returns how many. O(timers)."""
    cdef Py_ssize_t i, found = 0, kept = 0
    for i in range(heap.n):
        if heap.timers[i].time > until:
            heap.timers[kept] = heap.timers[i]
            kept += 1
        else:
            due[found] = heap.timers[i]
            found += 1
    heap.n = kept
    put_in_order(heap)
    return found

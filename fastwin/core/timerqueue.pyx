"""TimerQueue: a TimerHeap whose due timers are taken out one by one, while callbacks register and delete others."""

from libc.stdlib cimport free, malloc

from fastwin._typedefs cimport idx_t, int64_t, ts_t
from fastwin.core.timers cimport TimerHeap
from fastwin.core.timersort cimport Timer, before, sort_timers

cdef enum:
    BULK = 256                  # due timers beyond which sorting the rest beats popping them


cdef class TimerQueue:
    """An ordered set of timers that can be changed while it is emptied.

    Many due timers are taken from the heap and sorted at once; they stay in its set until their turn, so that they
    can still be deleted.
    """

    def __cinit__(self):
        self.heap = TimerHeap()
        self.next_bulk = BULK

    def __dealloc__(self):
        free(self.due)

    def __len__(self):
        return self.heap.live

    @property
    def nbytes(self):
        """Bytes allocated."""
        return self.heap.nbytes + self.due_n * <Py_ssize_t> sizeof(Timer)

    def peek(self):
        """Returns the time of the first timer, or None; not during a run."""
        return self.heap.peek()

    def timers(self):
        """Returns all timers in order: times int64[n], keys int32[n], namespaces int64[n]."""
        return self.heap.timers()

    cdef bint add(self, ts_t time, idx_t key, int64_t namespace) except -1:
        """Adds a timer; returns False if it was there already."""
        cdef Timer timer
        timer.time, timer.key, timer.namespace = time, key, namespace
        self.heap._reserve(1)
        if not self.heap._insert(&timer):
            return False
        self.heap._push(&timer)
        self.heap._sift_up(self.heap.heap_n - 1)
        return True

    cdef bint discard(self, ts_t time, idx_t key, int64_t namespace) noexcept:
        """Takes a timer out; returns False if there was none."""
        cdef Timer timer
        timer.time, timer.key, timer.namespace = time, key, namespace
        if not self.heap._remove(&timer):
            return False
        if self.due_at == self.due_n:       # what is due is in the set and not in the heap, and would get there
            self.heap._tidy()
        return True

    cdef bint contains(self, ts_t time, idx_t key, int64_t namespace) noexcept:
        """Tells whether a timer is registered."""
        cdef Timer timer
        timer.time, timer.key, timer.namespace = time, key, namespace
        return self.heap._in_set(&timer)

    cdef bint next_due(self, ts_t until, Timer* found) except -1:
        """Takes out the first timer at or before ``until``; returns False if there is none. Amortised O(log timers)."""
        cdef TimerHeap heap = self.heap
        cdef Timer* first
        if self.popped == self.next_bulk and self.due_at == self.due_n:
            self._take_due(until)
            self.next_bulk = 4 * self.popped
        while True:
            first = heap.heap if heap.heap_n and heap.heap[0].time <= until else NULL
            if self.due_at < self.due_n and (first == NULL or before(self.due + self.due_at, first)):
                found[0] = self.due[self.due_at]
                self.due_at += 1
            elif first != NULL:
                found[0] = first[0]
                heap._drop_top()
                self.popped += 1
            else:
                self.popped = self.due_at = self.due_n = 0
                self.next_bulk = BULK
                free(self.due)
                self.due = NULL
                heap._tidy()
                return False
            if heap._remove(found):
                return True

    cdef int _take_due(self, ts_t until) except -1:
        """Moves the heap's due timers to ``due`` if they are so many that sorting pays."""
        cdef TimerHeap heap = self.heap
        cdef Py_ssize_t i, n = heap._due(0, until), kept = 0
        if n < BULK or n < heap.heap_n // 16:
            return 0
        free(self.due)
        self.due_at = self.due_n = 0
        self.due = <Timer*> malloc(n * sizeof(Timer))
        if self.due == NULL:
            raise MemoryError(f"TimerQueue: no memory for {n} due timers")
        for i in range(heap.heap_n):
            if heap.heap[i].time > until:
                heap.heap[kept] = heap.heap[i]
                kept += 1
            else:
                self.due[self.due_n] = heap.heap[i]
                self.due_n += 1
        heap.heap_n = kept
        heap._heapify()
        return sort_timers(self.due, self.due_n)

    def _check(self):
        """Raises AssertionError where an invariant does not hold; not during a run. O(timers)."""
        assert self.due_at == self.due_n, "a run has not come to its end"
        self.heap._check()

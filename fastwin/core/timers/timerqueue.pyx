"""TimerQueue: an ordered set of timers (time, key id, namespace), taken out one by one while others come and go."""

import numpy as np

from libc.stdlib cimport free, malloc

from fastwin.core.typedefs cimport idx_t, int64_t, ts_t, uint64_t
from fastwin.core.memory.hashindex cimport (
    count_places, farthest, first_place, free_index, is_empty, next_place, resize_index, seed_index, take_out)
from fastwin.core.timers.timer cimport Timer, before, drop_twins, put_timers_in_order, same, sort_timers
from fastwin.core.timers.timerheap cimport (
    FIRST_TIMERS, append_timer, drop_first, part_due, put_in_order, reserve_heap, sift_up)

cdef enum:
    BULK = 256                  # due timers beyond which sorting the rest beats popping them


cdef uint64_t hash_in_place(const void* owner, const void* place) noexcept nogil:
    return (<TimerQueue> owner).hashed(<const Timer*> place)


cdef class TimerQueue:
    """An ordered set of timers that can be changed while it is emptied; registering one twice keeps one.

    A hash index says which timers there are, a heap in which order they come. Deleting leaves the heap alone: what
    comes out of it and is not in the index is passed over, and the heap is made anew when it has grown to twice the
    set. Many due timers are taken from the heap and sorted at once; they stay in the index until their turn.

    An owner that knows about some timers itself saves the index for these, see ask().
    """

    def __cinit__(self):
        seed_index(&self.index)
        self.next_bulk = BULK

    def __dealloc__(self):
        free(self.heap.timers)
        free(self.due)
        free_index(&self.index)

    cdef int ask(self, object owner, tells tell, ts_t delay) except -1:
        """Has the owner tell whether timers are there whose namespaces have bits of TOLD: they are in no index.

        It does not add one that is there, knows that it is gone before it discards it, and after it was taken out.
        """
        self.owner, self.tell, self.delay = owner, tell, delay
        return 0

    def __len__(self):
        return self.live + self.told

    @property
    def nbytes(self):
        """Bytes allocated."""
        return (self.heap.capacity + self.index.size + self.due_n) * <Py_ssize_t> sizeof(Timer)

    cdef int _reserve(self) except -1:
        """Makes room for one more timer in heap and index."""
        cdef Py_ssize_t capacity = max(2 * self.heap.capacity, FIRST_TIMERS)
        cdef Py_ssize_t size = max(2 * self.index.size, FIRST_TIMERS)
        if self.heap.n == self.heap.capacity and not reserve_heap(&self.heap, capacity):
            raise MemoryError(f"TimerQueue: no memory for {capacity} timers")
        if self.index.size < 2 * (self.live + 1) and not resize_index(
                &self.index, sizeof(Timer), size, hash_in_place, <void*> self):
            raise MemoryError(f"TimerQueue: no memory for an index of {size}")
        return 0

    cdef Py_ssize_t _find(self, const Timer* timer) noexcept nogil:
        """Returns where a timer is in the index, or the empty place where looking for it ends."""
        cdef Py_ssize_t at = first_place(&self.index, self.hashed(timer))
        while not is_empty(self.timer_at(at)) and not same(self.timer_at(at), timer):
            at = next_place(&self.index, at)
        return at

    cdef bint _remove(self, const Timer* timer) noexcept nogil:
        """Takes a timer out of the set; returns False if it was not there."""
        cdef Py_ssize_t at
        if self.is_told(timer):
            if not self.tell(<const void*> self.owner, timer, self.delay):
                return False
            self.told -= 1
            return True
        if self.live == 0:
            return False
        at = self._find(timer)
        if is_empty(self.timer_at(at)):
            return False
        take_out(&self.index, sizeof(Timer), at, hash_in_place, <void*> self)
        self.live -= 1
        return True

    cdef void _tidy(self) noexcept nogil:
        """Makes the heap anew if it holds too much that was deleted, and gives back memory that is no longer used."""
        cdef Py_ssize_t i, n = 0, size = FIRST_TIMERS
        if self.heap.n > 2 * (self.live + self.told) + FIRST_TIMERS:
            for i in range(self.heap.n):
                if self.is_there(self.heap.timers + i):
                    self.heap.timers[n] = self.heap.timers[i]
                    n += 1
            self.heap.n = n
            if put_timers_in_order(self.heap.timers, n):
                self.heap.n = drop_twins(self.heap.timers, n)
            else:
                put_in_order(&self.heap)
        # Where there is no memory for smaller ones, the old ones serve.
        if self.index.size > 16 * (self.live + FIRST_TIMERS):
            while size < 4 * self.live:
                size *= 2
            resize_index(&self.index, sizeof(Timer), size, hash_in_place, <void*> self)
        if self.heap.capacity > 16 * (self.heap.n + FIRST_TIMERS):
            reserve_heap(&self.heap, 4 * (self.heap.n + FIRST_TIMERS))

    cpdef bint add(self, ts_t time, idx_t key, int64_t namespace) except -1:
        """Adds a timer; returns False if it was there already. time: ms. Amortised O(log timers).

        key: a key id. Raises ValueError for a negative one.
        """
        cdef Timer timer
        cdef Py_ssize_t at
        if key < 0:
            raise ValueError(f"key: not negative, got {key}")
        timer.time, timer.key, timer.namespace = time, key, namespace
        self._reserve()
        if self.is_told(&timer):
            self.told += 1
        else:
            at = self._find(&timer)
            if not is_empty(self.timer_at(at)):
                return False
            self.timer_at(at)[0] = timer
            self.live += 1
        append_timer(&self.heap, &timer)
        sift_up(&self.heap, self.heap.n - 1)
        return True

    cpdef bint discard(self, ts_t time, idx_t key, int64_t namespace) noexcept:
        """Takes a timer out; returns False if there was none. Amortised O(1)."""
        cdef Timer timer
        timer.time, timer.key, timer.namespace = time, key, namespace
        if self.is_told(&timer):
            self.told -= 1
        elif not self._remove(&timer):
            return False
        if self.due_at == self.due_n:       # what is due is in the index and not in the heap, and would get there
            self._tidy()
        return True

    cpdef bint contains(self, ts_t time, idx_t key, int64_t namespace) noexcept:
        """Tells whether a timer is registered. O(1)."""
        cdef Timer timer
        timer.time, timer.key, timer.namespace = time, key, namespace
        return self.is_there(&timer)

    def peek(self):
        """Returns the time of the first timer, or None; not during a run. Amortised O(log timers)."""
        while self.heap.n:
            if self.is_there(self.heap.timers):
                return self.heap.timers[0].time
            drop_first(&self.heap)
        return None

    def pop(self, ts_t until):
        """Takes out the first timer at or before ``until``: ``(time, key, namespace)``, or None if there is none.

        In the order of these three. A run begins with the first call and ends with None. Amortised O(log timers).
        """
        cdef Timer found
        return (found.time, found.key, found.namespace) if self.next_due(until, &found) else None

    cdef bint next_due(self, ts_t until, Timer* found) except -1:
        """Takes out the first timer at or before ``until``; returns False if there is none. Amortised O(log timers)."""
        cdef Timer* first
        if self.popped >= self.next_bulk and self.due_at == self.due_n:
            self._sort_due(until)
            self.next_bulk = 4 * self.popped
        while True:
            first = self.heap.timers if self.heap.n and self.heap.timers[0].time <= until else NULL
            if self.due_at < self.due_n and (first == NULL or before(self.due + self.due_at, first)):
                found[0] = self.due[self.due_at]
                self.due_at += 1
            elif first != NULL:
                found[0] = first[0]
                drop_first(&self.heap)
                self.popped += 1
            else:
                self.popped = self.due_at = self.due_n = 0
                self.next_bulk = BULK
                free(self.due)
                self.due = NULL
                self._tidy()
                return False
            if self._remove(found):
                return True

    cdef Py_ssize_t _count_due(self, Py_ssize_t at, ts_t time) noexcept nogil:
        """Counts what is due in the heap from ``at`` downward. O(result)."""
        if at >= self.heap.n or self.heap.timers[at].time > time:
            return 0
        return 1 + self._count_due(2 * at + 1, time) + self._count_due(2 * at + 2, time)

    cdef int _sort_due(self, ts_t until) except -1:
        """Moves the heap's due timers to ``due`` if they are so many that sorting pays."""
        cdef Py_ssize_t n = self._count_due(0, until)
        if n < BULK or n < self.heap.n // 16:
            return 0
        free(self.due)
        self.due_at = self.due_n = 0
        self.due = <Timer*> malloc(n * sizeof(Timer))
        if self.due == NULL:
            raise MemoryError(f"TimerQueue: no memory for {n} due timers")
        self.due_n = part_due(&self.heap, until, self.due)
        return sort_timers(self.due, self.due_n)

    def timers(self):
        """Returns all timers in order, and keeps them: times int64[n], keys int32[n], namespaces int64[n]. O(n)."""
        cdef Py_ssize_t i, n = 0
        cdef const Timer* timer
        cdef int64_t[::1] time, namespace
        cdef idx_t[::1] key
        cdef Py_ssize_t most = self.heap.n + self.due_n - self.due_at
        cdef Timer* found = <Timer*> malloc(max(most, 1) * sizeof(Timer))
        if found == NULL:
            raise MemoryError(f"TimerQueue: no memory to list {most} timers")
        try:
            for i in range(most):
                timer = self.heap.timers + i if i < self.heap.n else self.due + self.due_at + i - self.heap.n
                if self.is_there(timer):
                    found[n] = timer[0]
                    n += 1
            sort_timers(found, n)
            n = drop_twins(found, n)
            times, keys, namespaces = np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.int64)
            time, key, namespace = times, keys, namespaces
            for i in range(n):
                time[i], key[i], namespace[i] = found[i].time, <idx_t> found[i].key, found[i].namespace
            return times, keys, namespaces
        finally:
            free(found)

    def _farthest(self):
        """Returns how many timers are passed over, at most, before one is found. O(timers)."""
        return farthest(&self.index, sizeof(Timer), hash_in_place, <void*> self)

    def _check(self):
        """Raises AssertionError where an invariant does not hold; not during a run. O(timers)."""
        cdef Py_ssize_t i
        cdef const Timer* timer
        assert self.due_at == self.due_n, "a run has not come to its end"
        for i in range(1, self.heap.n):
            assert not before(self.heap.timers + i, self.heap.timers + (i - 1) // 2), f"timer {i} is before its parent"
        seen = set()
        for i in range(self.heap.n):
            timer = self.heap.timers + i
            if self.contains(timer.time, <idx_t> timer.key, timer.namespace):
                seen.add((timer.time, timer.key, timer.namespace))
        for i in range(self.index.size):
            if not is_empty(self.timer_at(i)):
                assert self._find(self.timer_at(i)) == i, f"timer at {i} cannot be found"
        assert count_places(&self.index, sizeof(Timer)) == self.live, f"{self.live} timers are counted, not all there"
        assert len(seen) == len(self), f"{len(seen)} timers of {len(self)} are in the heap"

"""TimerHeap: an ordered set of timers (time, key id, namespace)."""

import numpy as np

cimport cython
from libc.stdlib cimport free, malloc, realloc

from fastwin._typedefs cimport idx_t, int64_t, ts_t, uint64_t
from fastwin.core.bounds cimport check_length
from fastwin.core.hashing cimport mix
from fastwin.core.memory cimport ask_large_pages, prefetch
from fastwin.core.timersort cimport Timer, before, sort_timers

cdef enum:
    BLOCK = 256                 # timers that go into the set together, so that their cache misses overlap
    FIRST_SIZE = 64


cdef inline bint same(const Timer* a, const Timer* b) noexcept nogil:
    return a.time == b.time and a.key == b.key and a.namespace == b.namespace


@cython.overflowcheck(False)
cdef inline uint64_t hash_of(const Timer* timer) noexcept nogil:
    return mix(<uint64_t> timer.time ^ mix((<uint64_t> timer.key << 32) ^ <uint64_t> timer.namespace))


cdef object as_arrays(const Timer* timers, Py_ssize_t n):
    """Returns ``(times, keys, namespaces)``: int64[n], int32[n], int64[n]."""
    cdef Py_ssize_t i
    cdef int64_t[::1] time, namespace
    cdef idx_t[::1] key
    times, keys, namespaces = np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.int64)
    time, key, namespace = times, keys, namespaces
    for i in range(n):
        time[i], key[i], namespace[i] = timers[i].time, <idx_t> timers[i].key, timers[i].namespace
    return times, keys, namespaces


cdef class TimerHeap:
    """An ordered set of timers: registering one twice keeps one, and it can be deleted again.

    A binary heap beside a hash set. Deleting leaves the heap alone: what is popped and not in the
    set is passed over, and the heap is rebuilt when it has grown to twice the set.
    """

    def __dealloc__(self):
        free(self.heap)
        free(self.table)

    def __len__(self):
        return self.live

    @property
    def nbytes(self):
        """Bytes allocated."""
        return (self.heap_capacity + self.table_size) * <Py_ssize_t> sizeof(Timer)

    cdef int _reserve(self, Py_ssize_t extra) except -1 nogil:
        """Makes room for ``extra`` timers in heap and set."""
        cdef Py_ssize_t capacity = self.heap_capacity, size = max(self.table_size, FIRST_SIZE)
        cdef void* moved
        if self.heap_n + extra > capacity:
            capacity = max(2 * capacity, self.heap_n + extra, FIRST_SIZE)
            moved = realloc(self.heap, capacity * sizeof(Timer))
            if moved == NULL:
                with gil:
                    raise MemoryError(f"TimerHeap: no memory for {capacity} timers")
            self.heap = <Timer*> moved
            self.heap_capacity = capacity
        while size < 2 * (self.live + extra):
            size *= 2
        if size != self.table_size and not self._resize_table(size):
            with gil:
                raise MemoryError(f"TimerHeap: no memory for a set of {size} timers")
        return 0

    cdef bint _resize_table(self, Py_ssize_t size) noexcept nogil:
        """Moves the set to a table of this size, a power of two; returns False if there is no memory."""
        cdef Timer* old = self.table
        cdef Timer* table = <Timer*> malloc(size * sizeof(Timer))
        cdef Py_ssize_t i, old_size = self.table_size
        if table == NULL:
            return False
        ask_large_pages(table, size * sizeof(Timer))
        for i in range(size):
            table[i].key = FREE
        self.table, self.table_size, self.live = table, size, 0
        for i in range(old_size):
            if old[i].key != FREE:
                self._insert(old + i)
        free(old)
        return True

    cdef Py_ssize_t _place(self, const Timer* timer) noexcept nogil:
        """Returns where looking for a timer in the set begins."""
        return <Py_ssize_t> (hash_of(timer) & <uint64_t> (self.table_size - 1))

    cdef Py_ssize_t _find(self, const Timer* timer) noexcept nogil:
        """Returns where a timer is in the set, or the empty place where looking for it ends."""
        cdef Py_ssize_t at = self._place(timer)
        while self.table[at].key != FREE and not same(self.table + at, timer):
            at = (at + 1) & (self.table_size - 1)
        return at

    cdef bint _in_set(self, const Timer* timer) noexcept nogil:
        return self.table_size > 0 and self.table[self._find(timer)].key != FREE

    cdef bint _insert(self, const Timer* timer) noexcept nogil:
        """Adds to the set; returns False if it was there."""
        cdef Py_ssize_t at = self._find(timer)
        if self.table[at].key != FREE:
            return False
        self.table[at] = timer[0]
        self.live += 1
        return True

    cdef bint _remove(self, const Timer* timer) noexcept nogil:
        """Takes out of the set; returns False if it was not there."""
        cdef Py_ssize_t mask = self.table_size - 1, at, gap, home
        if not self._in_set(timer):
            return False
        at = gap = self._find(timer)
        while True:             # close the gap: move back what probing would no longer reach
            at = (at + 1) & mask
            if self.table[at].key == FREE:
                break
            home = self._place(self.table + at)
            if ((at - home) & mask) >= ((at - gap) & mask):
                self.table[gap] = self.table[at]
                gap = at
        self.table[gap].key = FREE
        self.live -= 1
        return True

    cdef void _push(self, const Timer* timer) noexcept nogil:
        """Puts at the end of the heap, out of order."""
        self.heap[self.heap_n] = timer[0]
        self.heap_n += 1

    cdef void _drop_top(self) noexcept nogil:
        self.heap_n -= 1
        self.heap[0] = self.heap[self.heap_n]
        if self.heap_n:
            self._sift_down(0)

    cdef void _sift_up(self, Py_ssize_t at) noexcept nogil:
        cdef Timer timer = self.heap[at]
        cdef Py_ssize_t parent
        while at > 0:
            parent = (at - 1) >> 1
            if not before(&timer, self.heap + parent):
                break
            self.heap[at] = self.heap[parent]
            at = parent
        self.heap[at] = timer

    cdef void _sift_down(self, Py_ssize_t at) noexcept nogil:
        cdef Timer timer = self.heap[at]
        cdef Py_ssize_t child
        while True:
            child = 2 * at + 1
            if child >= self.heap_n:
                break
            if child + 1 < self.heap_n and before(self.heap + child + 1, self.heap + child):
                child += 1
            if not before(self.heap + child, &timer):
                break
            self.heap[at] = self.heap[child]
            at = child
        self.heap[at] = timer

    cdef void _heapify(self) noexcept nogil:
        cdef Py_ssize_t at = self.heap_n // 2
        while at > 0:
            at -= 1
            self._sift_down(at)

    cdef void _tidy(self) noexcept nogil:
        """Rebuilds the heap if it holds too much that was deleted, and gives back memory that is no longer used."""
        cdef Py_ssize_t i, size = FIRST_SIZE
        cdef void* moved
        if self.heap_n > 2 * self.live + FIRST_SIZE:
            self.heap_n = 0
            for i in range(self.table_size):
                if self.table[i].key != FREE:
                    self._push(self.table + i)
            self._heapify()
        if self.table_size > 16 * (self.live + FIRST_SIZE):
            while size < 4 * self.live:
                size *= 2
            self._resize_table(size)    # where there is no memory for it, the old one serves
        if self.heap_capacity > 16 * (self.heap_n + FIRST_SIZE):
            moved = realloc(self.heap, 4 * (self.heap_n + FIRST_SIZE) * sizeof(Timer))
            if moved != NULL:
                self.heap = <Timer*> moved
                self.heap_capacity = 4 * (self.heap_n + FIRST_SIZE)

    def register(self, ts_t time, idx_t key, int64_t namespace=0):
        """Adds a timer; returns False if it was registered already. Amortised O(log n).

        time: ms. key: a key id, not negative. Raises ValueError for a negative one.
        """
        cdef Timer timer
        if key < 0:
            raise ValueError(f"key: not negative, got {key}")
        timer.time, timer.key, timer.namespace = time, key, namespace
        self._reserve(1)
        if not self._insert(&timer):
            return False
        self._push(&timer)
        self._sift_up(self.heap_n - 1)
        return True

    def register_many(self, const int64_t[::1] times not None, const idx_t[::1] keys not None,
                      const int64_t[::1] namespaces not None):
        """Adds timers; those registered already count once. O(n + timers) at most, O(n log timers) for few.

        times: int64[n], ms. keys: int32[n]. namespaces: int64[n]. Returns how many were new.
        Raises ValueError for a negative key or unequal lengths.
        """
        cdef Py_ssize_t i, at = 0, m, n = times.shape[0], old = self.heap_n
        cdef Timer[BLOCK] timers
        cdef idx_t lowest = 0
        check_length("keys", keys.shape[0], n)
        check_length("namespaces", namespaces.shape[0], n)
        for i in range(n):
            lowest = min(lowest, keys[i])
        if lowest < 0:
            raise ValueError(f"keys: not negative, got {lowest}")
        with nogil:
            while at < n:
                m = min(BLOCK, n - at)
                self._reserve(m)
                for i in range(m):
                    timers[i].time, timers[i].key, timers[i].namespace = times[at + i], keys[at + i], namespaces[at + i]
                    prefetch(self.table + self._place(timers + i))
                for i in range(m):
                    if self._insert(timers + i):
                        self._push(timers + i)
                at += m
            if self.heap_n - old > old // 8:
                self._heapify()
            else:
                for i in range(old, self.heap_n):
                    self._sift_up(i)
        return self.heap_n - old

    def delete(self, ts_t time, idx_t key, int64_t namespace=0):
        """Takes a timer out; returns False if there was none. Amortised O(1)."""
        cdef Timer timer
        timer.time, timer.key, timer.namespace = time, key, namespace
        if not self._remove(&timer):
            return False
        self._tidy()
        return True

    def peek(self):
        """Returns the time of the first timer, or None. Amortised O(log timers)."""
        while self.heap_n:
            if self._in_set(self.heap):
                return self.heap[0].time
            self._drop_top()
        return None

    def pop_until(self, ts_t time):
        """Takes out all timers at or before ``time``, ordered by (time, key, namespace).

        Returns ``(times, keys, namespaces)``: int64[n], int32[n], int64[n].
        O(n log timers) for few, O(timers) for many.
        """
        cdef Py_ssize_t n, due = self._due(0, time)
        cdef Timer* found = <Timer*> malloc(max(due, 1) * sizeof(Timer))
        if found == NULL:
            raise MemoryError(f"TimerHeap: no memory to pop {due} timers")
        try:
            with nogil:
                if due > self.heap_n // 4:
                    n = self._pop_many(time, found)
                    sort_timers(found, n)
                else:
                    n = self._pop_few(time, found)
                self._tidy()
            return as_arrays(found, n)
        finally:
            free(found)

    cdef Py_ssize_t _due(self, Py_ssize_t at, ts_t time) noexcept nogil:
        """Counts what is due in the heap from ``at`` downward. O(result)."""
        if at >= self.heap_n or self.heap[at].time > time:
            return 0
        return 1 + self._due(2 * at + 1, time) + self._due(2 * at + 2, time)

    cdef Py_ssize_t _pop_few(self, ts_t time, Timer* found) noexcept nogil:
        cdef Py_ssize_t n = 0
        while self.heap_n and self.heap[0].time <= time:
            if self._remove(self.heap):
                found[n] = self.heap[0]
                n += 1
            self._drop_top()
        return n

    cdef Py_ssize_t _pop_many(self, ts_t time, Timer* found) noexcept nogil:
        """Parts the set in two, and makes it and the heap anew from what stays."""
        cdef Py_ssize_t n = 0, i
        self.heap_n = self.live = 0
        for i in range(self.table_size):
            if self.table[i].key != FREE:
                if self.table[i].time <= time:
                    found[n] = self.table[i]
                    n += 1
                else:
                    self._push(self.table + i)
                self.table[i].key = FREE
        for i in range(self.heap_n):
            self._insert(self.heap + i)
        self._heapify()
        return n

    def timers(self):
        """Returns all timers in order, as pop_until() does, and keeps them. O(timers)."""
        cdef Py_ssize_t i, n = 0
        cdef Timer* found = <Timer*> malloc(max(self.live, 1) * sizeof(Timer))
        if found == NULL:
            raise MemoryError(f"TimerHeap: no memory to list {self.live} timers")
        try:
            for i in range(self.table_size):
                if self.table[i].key != FREE:
                    found[n] = self.table[i]
                    n += 1
            sort_timers(found, n)
            return as_arrays(found, n)
        finally:
            free(found)

    def _check(self):
        """Raises AssertionError where an invariant does not hold. O(timers)."""
        cdef Py_ssize_t i, in_set = 0, in_heap = 0
        for i in range(1, self.heap_n):
            assert not before(self.heap + i, self.heap + (i - 1) // 2), f"timer {i} is before its parent"
        seen = set()
        for i in range(self.heap_n):
            if self._in_set(self.heap + i):
                seen.add((self.heap[i].time, self.heap[i].key, self.heap[i].namespace))
        for i in range(self.table_size):
            if self.table[i].key != FREE:
                in_set += 1
                assert self._in_set(self.table + i), f"timer at {i} cannot be found"
        in_heap = len(seen)
        assert in_set == self.live, f"{in_set} timers in the set, counted {self.live}"
        assert in_heap == self.live, f"{in_heap} timers of {self.live} are in the heap"

"""TimerHeap: an ordered set of timers (time, key id, namespace)."""

import numpy as np

from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from fastwin._typedefs cimport idx_t, int64_t, ts_t, uint64_t, uint8_t
from fastwin.core.hashing cimport mix

cdef enum:
    BULK = 256                  # due timers beyond which sorting the rest beats popping them
    FIRST_SIZE = 64
    FREE = -1


cdef inline bint before(const Timer* a, const Timer* b) noexcept nogil:
    if a.time != b.time:
        return a.time < b.time
    if a.key != b.key:
        return a.key < b.key
    return a.namespace < b.namespace


cdef inline bint same(const Timer* a, const Timer* b) noexcept nogil:
    return a.time == b.time and a.key == b.key and a.namespace == b.namespace


cdef inline uint64_t hash_of(const Timer* timer) noexcept nogil:
    return mix(<uint64_t> timer.time ^ mix((<uint64_t> timer.key << 32) ^ <uint64_t> timer.namespace))


cdef inline uint64_t digit_source(const Timer* timer, int field) noexcept nogil:
    # The fields from the least to the most significant, signs flipped so that they sort as unsigned.
    cdef uint64_t sign = (<uint64_t> 1) << 63
    if field == 0:
        return <uint64_t> timer.namespace ^ sign
    if field == 1:
        return <uint64_t> timer.key
    return <uint64_t> timer.time ^ sign


cdef int sort_timers(Timer* timers, Py_ssize_t n) except -1 nogil:
    """Sorts by (time, key, namespace): bytewise radix sort, bytes that are all alike passed over. O(n)."""
    cdef Timer* spare
    cdef Timer* source = timers
    cdef Timer* target
    cdef Py_ssize_t[256] counts
    cdef Py_ssize_t i, total, count
    cdef int field, shift, digit
    cdef uint64_t varying, first
    if n < 64:
        for i in range(1, n):
            sift_back(timers, i)
        return 0
    spare = <Timer*> malloc(n * sizeof(Timer))
    if spare == NULL:
        with gil:
            raise MemoryError(f"TimerHeap: no memory to sort {n} timers")
    target = spare
    for field in range(3):
        varying = 0
        first = digit_source(source, field)
        for i in range(n):
            varying |= digit_source(source + i, field) ^ first
        for shift in range(0, 64, 8):
            if not varying >> shift & 255:
                continue
            memset(counts, 0, sizeof(counts))
            for i in range(n):
                counts[digit_source(source + i, field) >> shift & 255] += 1
            total = 0
            for digit in range(256):
                count = counts[digit]
                counts[digit] = total
                total += count
            for i in range(n):
                digit = <int> (digit_source(source + i, field) >> shift & 255)
                target[counts[digit]] = source[i]
                counts[digit] += 1
            source, target = target, source
    if source != timers:
        memcpy(timers, source, n * sizeof(Timer))
    free(spare)
    return 0


cdef inline void sift_back(Timer* timers, Py_ssize_t i) noexcept nogil:
    cdef Timer timer = timers[i]
    while i > 0 and before(&timer, timers + i - 1):
        timers[i] = timers[i - 1]
        i -= 1
    timers[i] = timer


cdef class TimerHeap:
    """An ordered set of timers: registering one twice keeps one, and it can be deleted again.

    A binary heap beside a hash set. Deleting leaves the heap alone: what is popped and not in the
    set is passed over, and the heap is rebuilt when it has grown to twice the set.
    """

    def __cinit__(self):
        self.next_bulk = BULK

    def __dealloc__(self):
        free(self.heap)
        free(self.table)
        free(self.due)

    def __len__(self):
        return self.live

    @property
    def nbytes(self):
        """Bytes allocated."""
        return (self.heap_capacity + self.table_size) * sizeof(Timer)

    cdef int _reserve(self, Py_ssize_t extra) except -1 nogil:
        cdef Py_ssize_t capacity = self.heap_capacity, size = self.table_size, i, at
        cdef void* moved
        cdef Timer* table
        if self.heap_n + extra > capacity:
            capacity = max(2 * capacity, self.heap_n + extra, FIRST_SIZE)
            moved = realloc(self.heap, capacity * sizeof(Timer))
            if moved == NULL:
                with gil:
                    raise MemoryError(f"TimerHeap: no memory for {capacity} timers")
            self.heap = <Timer*> moved
            self.heap_capacity = capacity
        size = FIRST_SIZE if size == 0 else size
        while size < 2 * (self.live + extra):
            size *= 2
        if size != self.table_size:
            table = <Timer*> malloc(size * sizeof(Timer))
            if table == NULL:
                with gil:
                    raise MemoryError(f"TimerHeap: no memory for a set of {size} timers")
            for i in range(size):
                table[i].key = FREE
            for i in range(self.table_size):
                if self.table[i].key != FREE:
                    at = <Py_ssize_t> (hash_of(self.table + i) & <uint64_t> (size - 1))
                    while table[at].key != FREE:
                        at = (at + 1) & (size - 1)
                    table[at] = self.table[i]
            free(self.table)
            self.table = table
            self.table_size = size
        return 0

    cdef bint _insert(self, const Timer* timer) noexcept nogil:
        """Adds to the set; returns False if it was there."""
        cdef Py_ssize_t mask = self.table_size - 1, at = <Py_ssize_t> (hash_of(timer) & <uint64_t> mask)
        while self.table[at].key != FREE:
            if same(self.table + at, timer):
                return False
            at = (at + 1) & mask
        self.table[at] = timer[0]
        self.live += 1
        return True

    cdef bint _remove(self, const Timer* timer) noexcept nogil:
        """Takes out of the set; returns False if it was not there."""
        cdef Py_ssize_t mask = self.table_size - 1, at, gap, home
        if self.table_size == 0:
            return False
        at = <Py_ssize_t> (hash_of(timer) & <uint64_t> mask)
        while not (self.table[at].key != FREE and same(self.table + at, timer)):
            if self.table[at].key == FREE:
                return False
            at = (at + 1) & mask
        gap = at
        while True:             # close the gap: move back what probing would no longer reach
            at = (at + 1) & mask
            if self.table[at].key == FREE:
                break
            home = <Py_ssize_t> (hash_of(self.table + at) & <uint64_t> mask)
            if ((at - home) & mask) >= ((at - gap) & mask):
                self.table[gap] = self.table[at]
                gap = at
        self.table[gap].key = FREE
        self.live -= 1
        return True

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

    cdef void _rebuild(self) noexcept nogil:
        """Makes the heap from the set anew, without deleted timers."""
        cdef Py_ssize_t i
        self.heap_n = 0
        for i in range(self.table_size):
            if self.table[i].key != FREE:
                self.heap[self.heap_n] = self.table[i]
                self.heap_n += 1
        self._heapify()

    def register(self, ts_t time, idx_t key, int64_t namespace=0):
        """Adds a timer; returns False if it was registered already. Amortised O(log n).

        time: ms. key: a key id, not negative. Raises ValueError for a negative one.
        """
        if key < 0:
            raise ValueError(f"key: not negative, got {key}")
        return self.add(time, key, namespace)

    cdef bint add(self, ts_t time, idx_t key, int64_t namespace) except -1:
        """Adds a timer; returns False if it was there already."""
        cdef Timer timer
        timer.time, timer.key, timer.namespace = time, key, namespace
        self._reserve(1)
        if not self._insert(&timer):
            return False
        self.heap[self.heap_n] = timer
        self.heap_n += 1
        self._sift_up(self.heap_n - 1)
        return True

    def register_many(self, const int64_t[::1] times not None, const idx_t[::1] keys not None,
                      const int64_t[::1] namespaces not None):
        """Adds timers; those registered already count once. O(n + timers) at most, O(n log timers) for few.

        times: int64[n], ms. keys: int32[n]. namespaces: int64[n]. Returns how many were new.
        Raises ValueError for a negative key or unequal lengths.
        """
        cdef Py_ssize_t i, n = times.shape[0], old = self.heap_n
        cdef Timer timer
        cdef idx_t lowest = 0
        if keys.shape[0] != n or namespaces.shape[0] != n:
            raise ValueError(f"times, keys, namespaces: of one length, got {n}, {keys.shape[0]}, {namespaces.shape[0]}")
        for i in range(n):
            lowest = min(lowest, keys[i])
        if lowest < 0:
            raise ValueError(f"keys: not negative, got {lowest}")
        with nogil:
            self._reserve(n)
            for i in range(n):
                timer.time, timer.key, timer.namespace = times[i], keys[i], namespaces[i]
                if self._insert(&timer):
                    self.heap[self.heap_n] = timer
                    self.heap_n += 1
            if self.heap_n - old > old // 8:
                self._heapify()
            else:
                for i in range(old, self.heap_n):
                    self._sift_up(i)
        return self.heap_n - old

    def delete(self, ts_t time, idx_t key, int64_t namespace=0):
        """Takes a timer out; returns False if there was none. Amortised O(1)."""
        return self.discard(time, key, namespace)

    cdef bint discard(self, ts_t time, idx_t key, int64_t namespace) noexcept:
        """Takes a timer out; returns False if there was none."""
        cdef Timer timer
        timer.time, timer.key, timer.namespace = time, key, namespace
        if not self._remove(&timer):
            return False
        if self.heap_n > 2 * self.live + FIRST_SIZE and self.due_at == self.due_n:
            self._rebuild()
        return True

    cdef bint contains(self, ts_t time, idx_t key, int64_t namespace) noexcept:
        """Tells whether a timer is registered."""
        cdef Timer timer
        timer.time, timer.key, timer.namespace = time, key, namespace
        return self.table_size > 0 and self._in_set(&timer)

    cdef bint next_due(self, ts_t until, Timer* found) except -1:
        """Takes out the first timer at or before ``until``; returns False if there is none.

        Between the calls timers may be registered and deleted, also ones that are due. Many due timers are taken from
        the heap and sorted at once; they stay in the set until their turn, so that they can still be deleted.
        """
        cdef Timer* first
        if self.popped == self.next_bulk and self.due_at == self.due_n:
            self._take_due(until)
            self.next_bulk = 4 * self.popped
        while True:
            first = self.heap if self._any_until(until) else NULL
            if self.due_at < self.due_n and (first == NULL or before(self.due + self.due_at, first)):
                found[0] = self.due[self.due_at]
                self.due_at += 1
            elif first != NULL:
                found[0] = first[0]
                self._drop_top()
                self.popped += 1
            else:
                self.popped = self.due_at = self.due_n = 0
                self.next_bulk = BULK
                free(self.due)
                self.due = NULL
                return False
            if self._remove(found):
                return True

    cdef int _take_due(self, ts_t until) except -1:
        """Moves the heap's due timers to ``due`` if they are so many that sorting pays."""
        cdef Py_ssize_t i, n = 0, kept = 0
        for i in range(self.heap_n):
            n += self.heap[i].time <= until
        if n < BULK or n < self.heap_n // 16:
            return 0
        free(self.due)
        self.due_at = self.due_n = 0
        self.due = <Timer*> malloc(n * sizeof(Timer))
        if self.due == NULL:
            raise MemoryError(f"TimerHeap: no memory for {n} due timers")
        with nogil:
            for i in range(self.heap_n):
                if self.heap[i].time > until:
                    self.heap[kept] = self.heap[i]
                    kept += 1
                else:
                    self.due[self.due_n] = self.heap[i]
                    self.due_n += 1
            self.heap_n = kept
            self._heapify()
            sort_timers(self.due, self.due_n)
        return 0

    def peek(self):
        """Returns the time of the first timer, or None."""
        cdef Timer* top
        while self.heap_n:
            top = self.heap
            if self._in_set(top):
                return top.time
            self._drop_top()
        return None

    cdef bint _in_set(self, const Timer* timer) noexcept nogil:
        cdef Py_ssize_t mask = self.table_size - 1, at = <Py_ssize_t> (hash_of(timer) & <uint64_t> mask)
        while self.table[at].key != FREE:
            if same(self.table + at, timer):
                return True
            at = (at + 1) & mask
        return False

    cdef void _drop_top(self) noexcept nogil:
        self.heap_n -= 1
        self.heap[0] = self.heap[self.heap_n]
        if self.heap_n:
            self._sift_down(0)

    def pop_until(self, ts_t time):
        """Takes out all timers at or before ``time``, ordered by (time, key, namespace).

        Returns ``(times, keys, namespaces)``: int64[n], int32[n], int64[n].
        O(n log timers) for few, O(timers) for many.
        """
        cdef Timer* found
        cdef Py_ssize_t n = 0, i, kept = 0, due = 0
        with nogil:
            for i in range(self.heap_n if self._any_until(time) else 0):
                due += self.heap[i].time <= time
        found = <Timer*> malloc(max(due, 1) * sizeof(Timer))
        if found == NULL:
            raise MemoryError(f"TimerHeap: no memory to pop {due} timers")
        try:
            with nogil:
                if due > self.heap_n // 16:
                    for i in range(self.heap_n):
                        if self.heap[i].time > time:
                            self.heap[kept] = self.heap[i]
                            kept += 1
                        elif self._remove(self.heap + i):
                            found[n] = self.heap[i]
                            n += 1
                    self.heap_n = kept
                    self._heapify()
                    sort_timers(found, n)
                else:
                    while self.heap_n and self.heap[0].time <= time:
                        if self._remove(self.heap):
                            found[n] = self.heap[0]
                            n += 1
                        self._drop_top()
            times, keys, namespaces = np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.int64)
            self._fill(found, n, times, keys, namespaces)
        finally:
            free(found)
        return times, keys, namespaces

    cdef bint _any_until(self, ts_t time) noexcept nogil:
        return self.heap_n > 0 and self.heap[0].time <= time

    cdef void _fill(self, const Timer* timers, Py_ssize_t n, int64_t[::1] times, idx_t[::1] keys,
                    int64_t[::1] namespaces) noexcept:
        cdef Py_ssize_t i
        for i in range(n):
            times[i] = timers[i].time
            keys[i] = <idx_t> timers[i].key
            namespaces[i] = timers[i].namespace

    def timers(self):
        """Returns all timers in order, as pop_until() does, and keeps them. O(timers)."""
        cdef Py_ssize_t n = self.live, i, at = 0
        cdef Timer* all_of_them = <Timer*> malloc(max(n, 1) * sizeof(Timer))
        if all_of_them == NULL:
            raise MemoryError(f"TimerHeap: no memory to list {n} timers")
        try:
            for i in range(self.table_size):
                if self.table[i].key != FREE:
                    all_of_them[at] = self.table[i]
                    at += 1
            sort_timers(all_of_them, n)
            times, keys, namespaces = np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.int64)
            self._fill(all_of_them, n, times, keys, namespaces)
        finally:
            free(all_of_them)
        return times, keys, namespaces

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

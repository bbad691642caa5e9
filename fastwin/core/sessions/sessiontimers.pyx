"""SessionTimers: which sessions fire and which are over, as the watermark advances."""

import numpy as np

cimport cython
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from fastwin.core.typedefs cimport idx_t, int64_t, ts_t, uint64_t
from fastwin.core.memory.bits cimport clear_bit, has_bit, set_bit
from fastwin.core.memory.bounds cimport check_ids
from fastwin.core.memory.hashindex cimport (
    count_places, farthest, first_place, free_index, next_place, resize_index, seed_index, take_out)
from fastwin.core.memory.pages cimport prefetch
from fastwin.core.memory.radixsort cimport Timed, sort_in_place
from fastwin.core.sessions.sessiontable cimport SessionTable
from fastwin.core.sessions.timebucket cimport (
    append_entry, count_due, count_entries, first_time, free_bucket, new_bucket, put_in_order, take_due)
from fastwin.core.timemath cimport MAX_TIME, check_duration, floor_to

cdef enum:
    FIRST_SIZE = 16
    AHEAD = 12                  # entries whose sessions are fetched beforehand


cdef uint64_t hash_in_place(const void* owner, const void* place) noexcept nogil:
    return (<SessionTimers> owner)._hash((<Bucket* const*> place)[0].start)


cdef int append(Slots* slots, idx_t slot) except -1 nogil:
    cdef void* moved
    if slots.n == slots.capacity:
        moved = realloc(slots.found, (2 * slots.capacity + 64) * sizeof(idx_t))
        if moved == NULL:
            with gil:
                raise MemoryError(f"SessionTimers: no memory for {slots.n} sessions")
        slots.found = <idx_t*> moved
        slots.capacity = 2 * slots.capacity + 64
    slots.found[slots.n] = slot
    slots.n += 1
    return 0


cdef object as_array(const Slots* slots):
    out = np.empty(slots.n, dtype=np.int32)
    cdef idx_t[::1] view = out
    if slots.n:
        memcpy(&view[0], slots.found, slots.n * sizeof(idx_t))
    return out


@cython.final
cdef class SessionTimers:
    """Timers of sessions: each session has one at or before the time at which it is due next.

    sessions: whose ends the timers look up when they go off; so extending a session costs nothing here.
    width: ms of a bucket. Those that a watermark has passed are taken whole, so that nothing is sorted but what is due;
    the one that it is in is put in order.
    """

    def __cinit__(self, SessionTable sessions not None, int64_t width):
        check_duration("width", width, 1)
        self.sessions = sessions
        self.width = width
        seed_index(&self.index)

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.heap_n):
            free_bucket(self.heap[i])
        free(self.heap)
        free(self.marks)
        free_index(&self.index)

    def __len__(self):
        return self.entries_n

    @property
    def nbytes(self):
        """Bytes allocated."""
        return self.bytes_n + (self.heap_capacity + self.index.size + 2 * self.marks_n) * <Py_ssize_t> sizeof(Bucket*)

    cdef Py_ssize_t _place(self, ts_t start) noexcept nogil:
        """Returns where the bucket is in the index, or the empty place where looking for it ends."""
        cdef Py_ssize_t at = first_place(&self.index, self._hash(start))
        while self._bucket_at(at) != NULL and self._bucket_at(at).start != start:
            at = next_place(&self.index, at)
        return at

    cdef int _grow(self) except -1 nogil:
        """Makes room for one more bucket."""
        cdef Py_ssize_t size = max(2 * self.index.size, FIRST_SIZE)
        cdef void* moved
        if self.heap_n < self.heap_capacity:
            return 0
        moved = realloc(self.heap, size // 2 * sizeof(Bucket*))
        if moved != NULL:
            self.heap = <Bucket**> moved
        if moved == NULL or not resize_index(&self.index, sizeof(Bucket*), size, hash_in_place, <void*> self):
            with gil:
                raise MemoryError(f"SessionTimers: no memory for {size} buckets")
        self.heap_capacity = size // 2
        return 0

    cdef Bucket* _bucket(self, ts_t start) except NULL nogil:
        cdef Bucket* bucket
        cdef Py_ssize_t at
        if self.last != NULL and self.last.start == start:
            return self.last
        self._grow()
        at = self._place(start)
        bucket = self._bucket_at(at)
        if bucket == NULL:
            bucket = new_bucket(start)
            if bucket == NULL:
                with gil:
                    raise MemoryError("SessionTimers: no memory for a bucket")
            (<Bucket**> self.index.places)[at] = bucket
            at = self.heap_n
            self.heap_n += 1
            while at > 0 and start < self.heap[(at - 1) >> 1].start:
                self.heap[at] = self.heap[(at - 1) >> 1]
                at = (at - 1) >> 1
            self.heap[at] = bucket
            self.bytes_n += sizeof(Bucket)
        self.last = bucket
        return bucket

    cdef int _push(self, ts_t time, idx_t key, idx_t slot) except -1 nogil:
        cdef Bucket* bucket = self._bucket(floor_to(time, self.width, 0))
        cdef Py_ssize_t capacity = bucket.capacity
        if not append_entry(bucket, time, key, slot):
            with gil:
                raise MemoryError(f"SessionTimers: no memory for {bucket.n + 1} timers")
        self.bytes_n += (bucket.capacity - capacity) * <Py_ssize_t> sizeof(Entry)
        self.entries_n += 1
        return 0

    cdef void _sift_down(self) noexcept nogil:
        cdef Bucket* bucket = self.heap[0]
        cdef Py_ssize_t at = 0, child
        while True:
            child = 2 * at + 1
            if child >= self.heap_n:
                break
            if child + 1 < self.heap_n and self.heap[child + 1].start < self.heap[child].start:
                child += 1
            if self.heap[child].start >= bucket.start:
                break
            self.heap[at] = self.heap[child]
            at = child
        self.heap[at] = bucket

    cdef Bucket* _take_first(self) noexcept nogil:
        """Takes the first bucket out; the caller frees it."""
        cdef Bucket* bucket = self.heap[0]
        take_out(&self.index, sizeof(Bucket*), self._place(bucket.start), hash_in_place, <void*> self)
        self.heap_n -= 1
        self.heap[0] = self.heap[self.heap_n]
        if self.heap_n:
            self._sift_down()
        self.last = NULL
        self.entries_n -= count_entries(bucket)
        self.bytes_n -= sizeof(Bucket) + bucket.capacity * <Py_ssize_t> sizeof(Entry)
        return bucket

    cdef bint _is_current(self, const Entry* entry) noexcept nogil:
        # Sessions that were merged into others or dropped leave their timers behind.
        return entry.slot < self.sessions.rows.top and self.sessions.rows.is_live(entry.slot) and (
            self.sessions.at(entry.slot).head.key == entry.key)

    def arm(self, const idx_t[::1] slots not None, int64_t watermark, int64_t lateness):
        """Sets a timer for each session: for its firing at end - 1, or for its cleanup if it has passed.

        slots: of sessions; those that hold none are passed over. watermark: ms, int64 min for none. lateness: 0 to
        2**61 ms. Raises IndexError for a slot that was never used. Amortised O(1) for a session.
        """
        cdef Py_ssize_t i
        cdef ts_t due
        check_ids("slots", slots, self.sessions.rows.top)
        check_duration("lateness", lateness, 0)
        with nogil:
            for i in range(slots.shape[0]):
                if self.sessions.rows.is_live(slots[i]):
                    due = self._next_due(slots[i], watermark, lateness)
                    self._push(due, self.sessions.at(slots[i]).head.key, slots[i])

    cdef int _reserve_marks(self) except -1:
        cdef Py_ssize_t words = self.sessions.rows.top // 64 + 1
        if words > self.marks_n:
            free(self.marks)
            self.marks_n = 0
            self.marks = <uint64_t*> calloc(4 * words, sizeof(uint64_t))
            if self.marks == NULL:
                raise MemoryError(f"SessionTimers: no memory for the marks of {128 * words} sessions")
            self.marks_n = 2 * words
        return 0

    def advance(self, int64_t before, int64_t watermark, int64_t lateness):
        """Takes out the timers due by ``watermark``, the last watermark having been ``before``.

        Returns ``(fired, over)``, slots: sessions with before < end - 1 <= watermark, in order of their ends, and
        those with end - 1 + lateness <= watermark. The others get their next timers. Amortised O(1) for each timer
        that is taken out; but of those that were set while the watermark was in their bucket, up to 1,024 are passed
        each time, and when there are more, the bucket is sorted again. O(1) where none is due.
        """
        cdef Advance step
        cdef Py_ssize_t i
        check_duration("lateness", lateness, 0)
        if self.heap_n == 0 or self.heap[0].start > watermark:
            return np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32)
        self._reserve_marks()
        memset(&step, 0, sizeof(step))
        step.before, step.now, step.lateness = before, watermark, lateness
        step.fired, step.gone = self.marks, self.marks + self.marks_n
        try:
            with nogil:
                self._pop(&step)
            return as_array(&step.due), as_array(&step.over)
        finally:
            for i in range(step.due.n):
                clear_bit(step.fired, step.due.found[i])
            for i in range(step.over.n):
                clear_bit(step.gone, step.over.found[i])
            free(step.due.found)
            free(step.over.found)

    cdef int _pop(self, Advance* step) except -1 nogil:
        cdef Bucket* bucket
        cdef ts_t last
        while self.heap_n and self.heap[0].start <= step.now:
            last = self.heap[0].start + self.width - 1
            if last > step.now:
                if first_time(self.heap[0]) <= step.now:
                    self._run_due(self.heap[0], step)
                break           # the rest of the bucket is not due yet
            bucket = self._take_first()
            try:
                self._run(bucket.entries + bucket.taken, count_entries(bucket), last, step)
            finally:
                free_bucket(bucket)
        return 0

    cdef int _order(self, Bucket* bucket) except -1 nogil:
        if not put_in_order(bucket):
            with gil:
                raise MemoryError(f"SessionTimers: no memory to sort {bucket.n} timers")
        return 0

    cdef int _run_due(self, Bucket* bucket, Advance* step) except -1 nogil:
        """Runs what is due of the first bucket, which the watermark is in."""
        cdef Py_ssize_t n
        cdef Entry* due
        self._order(bucket)
        n = count_due(bucket, step.now)
        due = <Entry*> malloc((n + 1) * sizeof(Entry))
        if due == NULL:
            with gil:
                raise MemoryError(f"SessionTimers: no memory for {n} timers that are due")
        n = take_due(bucket, step.now, due)
        self.entries_n -= n
        try:
            self._run(due, n, step.now, step)
        finally:
            free(due)
        if count_entries(bucket) == 0:
            free_bucket(self._take_first())
        return 0

    cdef int _run(self, Entry* entries, Py_ssize_t entries_n, ts_t limit, Advance* step) except -1 nogil:
        """Fires and ends the sessions of timers that have gone off, by ``limit``; sets timers for what is due later."""
        cdef Py_ssize_t i, n = 0
        cdef ts_t last, due
        cdef idx_t slot
        cdef bint fires
        self.looked += entries_n
        for i in range(entries_n):
            if i + AHEAD < entries_n:
                prefetch(self.sessions.rows.head(entries[i + AHEAD].slot))
            slot = entries[i].slot
            if not self._is_current(entries + i) or has_bit(step.gone, slot):
                continue
            last = self.sessions.at(slot).end - 1
            due = last if last > step.before and not has_bit(step.fired, slot) else last + step.lateness
            if due > limit:
                self._push(due, entries[i].key, slot)
            else:
                entries[n] = entries[i]
                entries[n].time = due
                n += 1
        if not sort_in_place(<Timed*> entries, n):
            with gil:
                raise MemoryError(f"SessionTimers: no memory to sort {n} sessions")
        for i in range(n):
            if i + AHEAD < n:
                prefetch(self.sessions.rows.head(entries[i + AHEAD].slot))
            slot = entries[i].slot
            last = self.sessions.at(slot).end - 1
            fires = last > step.before and not has_bit(step.fired, slot)
            due = last + step.lateness
            if fires:
                append(&step.due, slot)
                set_bit(step.fired, slot)
                if due > limit:
                    self._push(due, entries[i].key, slot)
            if due <= limit and not has_bit(step.gone, slot):
                append(&step.over, slot)
                set_bit(step.gone, slot)
        return 0

    def peek(self, int64_t watermark, int64_t lateness):
        """Returns when the first session is due, ms, as arm() would set it; None: there is none. O as advance().

        So that it follows from the sessions, timers of those that have been extended are set anew on the way.
        """
        while self.heap_n:
            self._renew(self.heap[0], watermark, lateness)
            if count_entries(self.heap[0]):
                return first_time(self.heap[0])
            free_bucket(self._take_first())
        return None

    cdef int _renew(self, Bucket* bucket, ts_t watermark, ts_t lateness) except -1 nogil:
        """Sets timers of the first bucket anew and drops what is no longer current, until its first timer is right."""
        cdef Py_ssize_t i, kept
        cdef Entry entry
        cdef ts_t due = 0
        cdef bint is_current
        self._order(bucket)
        while bucket.taken < bucket.sorted:
            entry = bucket.entries[bucket.taken]
            self.looked += 1
            is_current = self._is_current(&entry)
            if is_current:
                due = self._next_due(entry.slot, watermark, lateness)
                if due <= entry.time:
                    bucket.entries[bucket.taken].time = due
                    break
            bucket.taken += 1
            self.entries_n -= 1
            if is_current:
                self._push(due, entry.key, entry.slot)
        if bucket.taken < bucket.sorted and bucket.entries[bucket.taken].time <= bucket.least:
            return 0
        kept = bucket.sorted
        bucket.least = MAX_TIME
        self.looked += bucket.n - bucket.sorted
        for i in range(bucket.sorted, bucket.n):
            entry = bucket.entries[i]
            if not self._is_current(&entry):
                continue
            entry.time = self._next_due(entry.slot, watermark, lateness)
            if floor_to(entry.time, self.width, 0) != bucket.start:
                self._push(entry.time, entry.key, entry.slot)
                continue
            bucket.least = min(bucket.least, entry.time)
            bucket.entries[kept] = entry
            kept += 1
        self.entries_n -= bucket.n - kept
        bucket.n = kept
        return 0

    def _farthest(self):
        """Returns how many buckets are passed over, at most, before one is found. O(buckets)."""
        return farthest(&self.index, sizeof(Bucket*), hash_in_place, <void*> self)

    def _check(self, int64_t watermark, int64_t lateness):
        """Raises AssertionError where an invariant does not hold, or a session could be missed. O(sessions)."""
        cdef Py_ssize_t i, k, total = 0
        cdef Entry* entry
        cdef ts_t last, least
        timed = set()
        for i in range(self.heap_n):
            assert i == 0 or self.heap[(i - 1) >> 1].start <= self.heap[i].start, "buckets are out of order"
            assert self._bucket_at(self._place(self.heap[i].start)) == self.heap[i], "a bucket cannot be found"
            total += count_entries(self.heap[i])
            least = MAX_TIME
            for k in range(self.heap[i].taken, self.heap[i].n):
                entry = self.heap[i].entries + k
                if k >= self.heap[i].sorted:
                    least = min(least, entry.time)
                elif k > self.heap[i].taken:
                    assert (entry - 1).time <= entry.time, "timers are out of order"
                assert floor_to(entry.time, self.width, 0) == self.heap[i].start, "a timer is in the wrong bucket"
                if self._is_current(entry):
                    last = self.sessions.at(entry.slot).end - 1
                    if entry.time <= (last if last > watermark else last + lateness):
                        timed.add(entry.slot)
            assert least == self.heap[i].least, "the first timer of a bucket is not known"
        assert count_places(&self.index, sizeof(Bucket*)) == self.heap_n, "buckets that are gone are in the index"
        assert total == self.entries_n, f"{total} timers, counted {self.entries_n}"
        for slot in self.sessions.rows.slots().tolist():
            assert slot in timed, f"session {slot} has no timer that goes off in time"

# Timers that are due within some time, in no order until they are needed one after the other.
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memmove

from fastwin.core.timemath cimport MAX_TIME
from fastwin.core.typedefs cimport idx_t, ts_t
from fastwin.core.memory.radixsort cimport Timed, sort_in_place

cdef enum:
    UNSORTED = 1024             # entries that are passed one by one; where there are more, all are sorted

cdef struct Entry:              # as large as Timed
    ts_t time
    idx_t key, slot             # a session, if it is still that key's

cdef struct Bucket:
    ts_t start                  # entries are due in [start, start + width)
    Entry* entries
    Py_ssize_t n, capacity
    Py_ssize_t taken            # entries before it are gone
    Py_ssize_t sorted           # entries [taken, sorted) are in order of time, those from it on are not
    ts_t least                  # the time of the first one of these; without any, the end of time


cdef inline Bucket* new_bucket(ts_t start) noexcept nogil:
    """Returns an empty bucket; NULL where there is no memory."""
    cdef Bucket* bucket = <Bucket*> calloc(1, sizeof(Bucket))
    if bucket != NULL:
        bucket.start = start
        bucket.least = MAX_TIME
    return bucket


cdef inline void free_bucket(Bucket* bucket) noexcept nogil:
    free(bucket.entries)
    free(bucket)


cdef inline Py_ssize_t count_entries(const Bucket* bucket) noexcept nogil:
    return bucket.n - bucket.taken


cdef inline bint append_entry(Bucket* bucket, ts_t time, idx_t key, idx_t slot) noexcept nogil:
    """Adds an entry behind all others. Returns whether there was memory. Amortised O(1)."""
    cdef Py_ssize_t capacity = bucket.capacity
    cdef void* moved
    if bucket.n == capacity:
        capacity += capacity // 2 + 4
        moved = realloc(bucket.entries, capacity * sizeof(Entry))
        if moved == NULL:
            return False
        bucket.entries = <Entry*> moved
        bucket.capacity = capacity
    bucket.entries[bucket.n].time = time
    bucket.entries[bucket.n].key = key
    bucket.entries[bucket.n].slot = slot
    bucket.n += 1
    bucket.least = min(bucket.least, time)
    return True


cdef inline ts_t first_time(const Bucket* bucket) noexcept nogil:
    """Returns the time of the first entry; without any, the end of time."""
    return min(bucket.least, bucket.entries[bucket.taken].time) if bucket.taken < bucket.sorted else bucket.least


cdef inline bint put_in_order(Bucket* bucket) noexcept nogil:
    """Sorts the entries unless only a few are out of order. Stable. Returns whether there was memory. O(n)."""
    if bucket.n - bucket.sorted <= UNSORTED:
        return True
    bucket.n -= bucket.taken
    memmove(bucket.entries, bucket.entries + bucket.taken, bucket.n * sizeof(Entry))
    bucket.taken = bucket.sorted = 0
    if not sort_in_place(<Timed*> bucket.entries, bucket.n):
        return False
    bucket.sorted = bucket.n
    bucket.least = MAX_TIME
    return True


cdef inline Py_ssize_t count_due(const Bucket* bucket, ts_t until) noexcept nogil:
    """Returns how many entries may be at or before ``until``. O(due)."""
    cdef Py_ssize_t stop = bucket.taken
    while stop < bucket.sorted and bucket.entries[stop].time <= until:
        stop += 1
    return stop - bucket.taken + bucket.n - bucket.sorted


cdef inline Py_ssize_t take_due(Bucket* bucket, ts_t until, Entry* due) noexcept nogil:
    """Moves the entries at or before ``until`` to ``due``; returns how many. O(due + those that are out of order)."""
    cdef Py_ssize_t n = count_due(bucket, until) - bucket.n + bucket.sorted, kept = bucket.sorted, i
    memcpy(due, bucket.entries + bucket.taken, n * sizeof(Entry))
    bucket.taken += n
    if bucket.least > until:
        return n
    bucket.least = MAX_TIME
    for i in range(bucket.sorted, bucket.n):
        if bucket.entries[i].time <= until:
            due[n] = bucket.entries[i]
            n += 1
        else:
            bucket.least = min(bucket.least, bucket.entries[i].time)
            bucket.entries[kept] = bucket.entries[i]
            kept += 1
    bucket.n = kept
    return n

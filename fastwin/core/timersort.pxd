# Timers and their order.
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from fastwin._typedefs cimport int64_t, ts_t, uint64_t

cdef struct Timer:
    ts_t time
    int64_t namespace
    int64_t key                 # an idx_t, not negative


cdef inline bint before(const Timer* a, const Timer* b) noexcept nogil:
    if a.time != b.time:
        return a.time < b.time
    if a.key != b.key:
        return a.key < b.key
    return a.namespace < b.namespace


cdef inline uint64_t digit_source(const Timer* timer, int field) noexcept nogil:
    # The fields from the least to the most significant, signs flipped so that they sort as unsigned.
    cdef uint64_t sign = (<uint64_t> 1) << 63
    if field == 0:
        return <uint64_t> timer.namespace ^ sign
    if field == 1:
        return <uint64_t> timer.key
    return <uint64_t> timer.time ^ sign


cdef inline void insert_back(Timer* timers, Py_ssize_t i) noexcept nogil:
    cdef Timer timer = timers[i]
    while i > 0 and before(&timer, timers + i - 1):
        timers[i] = timers[i - 1]
        i -= 1
    timers[i] = timer


cdef inline int sort_timers(Timer* timers, Py_ssize_t n) except -1 nogil:
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
            insert_back(timers, i)
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

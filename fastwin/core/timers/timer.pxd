# Timers and their order.
cimport cython
from libc.stdlib cimport free, malloc

from fastwin.core.memory.radixsort cimport radix_sort, sort_words
from fastwin.core.typedefs cimport int64_t, ts_t, uint64_t

cdef enum:
    FEW = 64                    # sorted by insertion

cdef struct Timer:
    int64_t key                 # an idx_t, not negative
    ts_t time
    int64_t namespace

cdef struct Span:               # of the values of a field
    int64_t first, last


cdef inline bint before(const Timer* a, const Timer* b) noexcept nogil:
    if a.time != b.time:
        return a.time < b.time
    if a.key != b.key:
        return a.key < b.key
    return a.namespace < b.namespace


cdef inline bint same(const Timer* a, const Timer* b) noexcept nogil:
    return a.time == b.time and a.key == b.key and a.namespace == b.namespace


cdef inline void insert_back(Timer* timers, Py_ssize_t i) noexcept nogil:
    cdef Timer timer = timers[i]
    while i > 0 and before(&timer, timers + i - 1):
        timers[i] = timers[i - 1]
        i -= 1
    timers[i] = timer


cdef inline void widen(Span* span, int64_t value) noexcept nogil:
    span.first, span.last = min(span.first, value), max(span.last, value)


@cython.overflowcheck(False)
cdef inline int bits_of(const Span* span) noexcept nogil:
    """Returns how many bits tell the values of a span apart."""
    cdef uint64_t rest = <uint64_t> span.last - <uint64_t> span.first
    cdef int found = 0
    while rest:
        rest >>= 1
        found += 1
    return found


@cython.overflowcheck(False)
cdef inline bint put_packed_in_order(Timer* timers, Py_ssize_t n, const Span* spans, const int* bits) noexcept nogil:
    """Sorts timers whose fields, counted from the first of their spans, fit into a word. Returns whether there was
    memory. spans, bits: of time, key and namespace."""
    cdef uint64_t* words = <uint64_t*> malloc(n * sizeof(uint64_t))
    cdef uint64_t time = spans[0].first, key = spans[1].first, namespace = spans[2].first, word
    cdef Py_ssize_t i
    if words == NULL:
        return False
    for i in range(n):
        word = (<uint64_t> timers[i].time - time) << bits[1] | (<uint64_t> timers[i].key - key)
        words[i] = word << bits[2] | (<uint64_t> timers[i].namespace - namespace)
    if not sort_words(words, n, 0, bits[0] + bits[1] + bits[2]):
        free(words)
        return False
    for i in range(n):
        word = words[i] >> bits[2]
        timers[i].namespace = <int64_t> (namespace + (words[i] - (word << bits[2])))
        timers[i].time = <ts_t> (time + (word >> bits[1]))
        timers[i].key = <int64_t> (key + (word - (word >> bits[1] << bits[1])))
    free(words)
    return True


cdef inline bint put_timers_in_order(Timer* timers, Py_ssize_t n) noexcept nogil:
    """Sorts by (time, key, namespace). Returns whether there was memory. O(n)."""
    cdef Py_ssize_t[3] fields
    cdef Span[3] spans
    cdef int[3] bits
    cdef Py_ssize_t i
    if n < FEW:
        for i in range(1, n):
            insert_back(timers, i)
        return True
    spans[0].first = spans[0].last = timers[0].time
    spans[1].first = spans[1].last = timers[0].key
    spans[2].first = spans[2].last = timers[0].namespace
    for i in range(1, n):
        widen(spans, timers[i].time)
        widen(spans + 1, timers[i].key)
        widen(spans + 2, timers[i].namespace)
    for i in range(3):
        bits[i] = bits_of(spans + i)
    if bits[0] + bits[1] + bits[2] < 64:
        return put_packed_in_order(timers, n, spans, bits)
    fields[0] = <char*> &timers.namespace - <char*> timers
    fields[1] = <char*> &timers.key - <char*> timers
    fields[2] = <char*> &timers.time - <char*> timers
    return radix_sort(timers, n, sizeof(Timer), fields, 3)


cdef inline int sort_timers(Timer* timers, Py_ssize_t n) except -1 nogil:
    """Sorts by (time, key, namespace). O(n)."""
    if not put_timers_in_order(timers, n):
        with gil:
            raise MemoryError(f"TimerQueue: no memory to sort {n} timers")
    return 0


cdef inline Py_ssize_t drop_twins(Timer* timers, Py_ssize_t n) noexcept nogil:
    """Leaves one of each of sorted timers; returns how many are left."""
    cdef Py_ssize_t i, kept = min(n, 1)
    for i in range(1, n):
        if not same(timers + i, timers + kept - 1):
            timers[kept] = timers[i]
            kept += 1
    return kept

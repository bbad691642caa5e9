# Timers and their order.
from fastwin.core.typedefs cimport int64_t, ts_t
from fastwin.core.memory.radixsort cimport radix_sort

cdef enum:
    FEW = 64                    # sorted by insertion

cdef struct Timer:
    int64_t key                 # an idx_t, not negative
    ts_t time
    int64_t namespace


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


cdef inline bint put_timers_in_order(Timer* timers, Py_ssize_t n) noexcept nogil:
    """Sorts by (time, key, namespace). Returns whether there was memory. O(n)."""
    cdef Py_ssize_t[3] fields
    cdef Py_ssize_t i
    if n < FEW:
        for i in range(1, n):
            insert_back(timers, i)
        return True
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

"""Sessions of many elements at once: grouped by key first, so that each session is put together in one go.

SessionTable looks up, for each element, where it belongs; that takes elements as they come. Where many are at hand, as
in a bounded input, one pass over them key by key touches every row once.
"""

import numpy as np

from libc.stdint cimport INT64_MAX, INT64_MIN
from libc.stdlib cimport free, malloc

from fastwin._typedefs cimport idx_t, int64_t, ts_t
from fastwin.core.accumulator_set cimport AccumulatorSet
from fastwin.core.bounds cimport check_ids, check_length, check_offsets
from fastwin.core.radixsort cimport Timed, sort_by_time
from fastwin.core.rows cimport Head, RowStore
from fastwin.core.timemath cimport check_duration, check_times

__all__ = ["END_CELL", "by_key", "by_time", "sessions_by_key"]

cdef enum:
    BLOCK = 512                 # elements that find their sessions before their values are added
    END = 3                     # the cell of a row that holds the end, behind the head
    DENSE = 4                   # milliseconds for each session: fewer than that are counted, not sorted

END_CELL = END


def by_key(const idx_t[::1] ids not None, const int64_t[::1] times not None, idx_t top):
    """Orders elements by key, and those of a key by time and arrival.

    ids: of the keys, below ``top``. times: ms, within +-2**61. Returns ``(order, sorted_times, bounds)``, int64[n],
    int64[n] and int64[top + 1]: those of key k are ``order[bounds[k]:bounds[k + 1]]``. Raises ValueError for another
    length or times out of bounds, IndexError for other ids. O(n + top), as long as keys are not far out of order.
    """
    cdef Py_ssize_t n = ids.shape[0], i, key
    cdef Timed* elements
    cdef int64_t begin
    check_length("times", times.shape[0], n)
    if top < 0:
        raise ValueError(f"top: must be at least 0, got {top}")
    check_ids("ids", ids, top)
    check_times("times", times)
    out, out_times, out_bounds = (np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.zeros(top + 1, np.int64))
    cdef int64_t[::1] order = out, sorted_times = out_times, bounds = out_bounds
    elements = <Timed*> malloc(n * sizeof(Timed) + 1)
    if elements == NULL:
        raise MemoryError(f"sessions: no memory to order {n} elements")
    try:
        with nogil:
            for i in range(n):
                bounds[ids[i] + 1] += 1
            for key in range(top):
                bounds[key + 1] += bounds[key]
            for i in range(n):              # moves each bound to the next one's place
                begin = bounds[ids[i]]
                elements[begin].time = times[i]
                elements[begin].at = i
                bounds[ids[i]] = begin + 1
            for key in range(top, 0, -1):
                bounds[key] = bounds[key - 1]
            bounds[0] = 0
            for key in range(top):
                if not sort_by_time(elements + bounds[key], bounds[key + 1] - bounds[key]):
                    with gil:
                        raise MemoryError("sessions: no memory to sort the elements of a key")
            for i in range(n):
                order[i] = elements[i].at
                sorted_times[i] = elements[i].time
    finally:
        free(elements)
    return out, out_times, out_bounds


cdef int scan(RowStore rows, AccumulatorSet accumulators, const int64_t* bounds, idx_t key, const ts_t* times,
              Py_ssize_t i, Py_ssize_t stop, int64_t gap) except -1 nogil:
    """Makes the sessions of the elements [i, stop), of which the first is one of ``key``, and adds their values."""
    cdef idx_t[BLOCK] into, keys
    cdef Py_ssize_t n, k
    cdef idx_t slot = -1, fresh
    cdef ts_t end = INT64_MIN
    cdef Head* head
    while i < stop:
        n = min(BLOCK, stop - i)
        for k in range(n):
            while i + k == bounds[key + 1]:
                key += 1
                end = INT64_MIN
            slot += times[i + k] > end      # no branch: every other element may begin a session
            end = times[i + k] + gap
            into[k] = slot
            keys[k] = key
        fresh = rows.top
        rows.append(slot + 1 - fresh)
        for fresh in range(fresh, rows.top):
            rows.head(fresh).start = INT64_MAX
        for k in range(n):
            head = rows.head(into[k])
            head.key = keys[k]
            head.start = min(head.start, times[i + k])
            (<ts_t*> head)[END] = times[i + k] + gap
        accumulators.add(rows, into, n, i)
        i += n
    return 0


def sessions_by_key(AccumulatorSet accumulators not None, const int64_t[::1] bounds not None,
                    const int64_t[::1] times not None, int64_t gap, list columns not None, Py_ssize_t part):
    """Yields the sessions of elements that are in order, of some keys at a time: RowStores, a row for each session.

    bounds, times: as by_key() gives them. gap: 1 to 2**61 ms; an element is in ``[times[i], times[i] + gap)``, and what
    overlaps or touches is one session. columns: see AccumulatorSet.add_rows, in the same order. part: about how many
    elements to take at a time. Rows come by key and start; the end of a session is in the cell END_CELL, which the
    accumulators must leave free, and nobody else may feed them meanwhile. Raises ValueError for what does not suit.
    O(n + keys).
    """
    cdef Py_ssize_t n = times.shape[0]
    cdef idx_t first = 0, stop = 0, top
    cdef RowStore rows
    check_offsets(bounds, n)
    if bounds[0] != 0 or bounds[bounds.shape[0] - 1] != n:
        raise ValueError(f"bounds: must reach from 0 to {n}, got {bounds[0]} to {bounds[bounds.shape[0] - 1]}")
    check_duration("gap", gap, 1)
    check_times("times", times)
    if accumulators.head_cells <= END:
        raise ValueError(f"accumulators: need more than {END} cells of head, got {accumulators.head_cells}")
    _held = accumulators.hold(columns, n)
    top = <idx_t> (bounds.shape[0] - 1)
    while first < top and n:
        stop = first + 1
        while stop < top and bounds[stop] - bounds[first] < part:
            stop += 1
        rows = accumulators.new_rows()
        with nogil:
            scan(rows, accumulators, &bounds[0], first, &times[0], bounds[first], bounds[stop], gap)
        first = stop
        if rows.live:
            yield rows


def by_time(const int64_t[::1] times not None):
    """Returns the order of times, ms: int64[n]. Stable. O(n)."""
    cdef Py_ssize_t n = times.shape[0], i
    cdef int64_t first = INT64_MAX, last = INT64_MIN
    out = np.empty(n, dtype=np.int64)
    cdef int64_t[::1] order = out, begins
    if n == 0:
        return out
    for i in range(n):
        first, last = min(first, times[i]), max(last, times[i])
    if last // 2 - first // 2 >= DENSE // 2 * n:      # halved: the difference itself may not fit
        _sort(times, order)
        return out
    begins = np.zeros(last - first + 2, dtype=np.int64)
    with nogil:                             # times are near each other: count them
        for i in range(n):
            begins[times[i] - first + 1] += 1
        for i in range(last - first):
            begins[i + 1] += begins[i]
        for i in range(n):
            order[begins[times[i] - first]] = i
            begins[times[i] - first] += 1
    return out


cdef int _sort(const int64_t[::1] times, int64_t[::1] order) except -1:
    cdef Py_ssize_t n = times.shape[0], i
    cdef Timed* elements = <Timed*> malloc(n * sizeof(Timed))
    if elements == NULL:
        raise MemoryError(f"sessions: no memory to sort {n} of them")
    for i in range(n):
        elements[i].time = times[i]
        elements[i].at = i
    sorted_ = sort_by_time(elements, n)
    for i in range(n):
        order[i] = elements[i].at
    free(elements)
    if not sorted_:
        raise MemoryError(f"sessions: no memory to sort {n} of them")
    return 0

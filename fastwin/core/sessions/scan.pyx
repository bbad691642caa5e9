"""Sessions of many elements at once: grouped by key first, so that each session is put together in one go.

SessionTable looks up, for each element, where it belongs; that takes elements as they come. Where many are at hand, as
in a bounded input, one pass over them key by key touches every row once.
"""

import numpy as np

from libc.stdint cimport INT64_MAX, INT64_MIN

from fastwin.core.typedefs cimport idx_t, int64_t, ts_t
from fastwin.core.accumulators.accumulator_set cimport AccumulatorSet
from fastwin.core.keys.keyorder cimport KeyOrder
from fastwin.core.memory.bounds cimport check_int64
from fastwin.core.memory.pages cimport prefetch_to_write
from fastwin.core.rows.rowstore cimport Head, RowStore

__all__ = ["END_CELL", "order_by_time", "places_by_time", "sessions_of_keys"]

cdef enum:
    BLOCK = 512                 # elements that find their sessions before their values are added
    END = 3                     # the cell of a row that holds the end, behind the head
    MOST = 0x7fffffff           # times that are counted
    AHEAD = 16                  # elements whose places are fetched before it is their turn
    DENSE = 4                   # milliseconds for each session: fewer than that are counted, not sorted
    MOST_COUNTED = 4            # counts for each time that is put in order, at most

END_CELL = END


cdef int scan(RowStore rows, AccumulatorSet accumulators, const int64_t* bounds, idx_t key, const ts_t* times,
              Py_ssize_t stop, int64_t gap) except -1 nogil:
    """Makes the sessions of elements and adds their values. The first ones are of ``key``; bounds: of the keys."""
    cdef idx_t[BLOCK] into, keys
    cdef Py_ssize_t n, k, i = 0, before = bounds[key]
    cdef idx_t slot = -1, fresh
    cdef ts_t end = INT64_MIN
    cdef Head* head
    while i < stop:
        n = min(BLOCK, stop - i)
        for k in range(n):
            while before + i + k == bounds[key + 1]:
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


def sessions_of_keys(AccumulatorSet accumulators not None, KeyOrder elements not None, idx_t first, idx_t stop,
                     int64_t gap, columns_at):
    """Returns the sessions of the keys ``[first, stop)``: a RowStore with a row for each, by key and start.

    gap: 1 to 2**61 ms, and times are within +-2**61; an element at t is in ``[t, t + gap)``, and what overlaps or
    touches is one session. columns_at: given the numbers of elements, int64[n], returns their columns, see
    AccumulatorSet.add_rows. The end of a session is in the cell END_CELL, which the accumulators must leave free.
    Raises ValueError for what does not suit, IndexError for keys that are not there. O(elements + keys).
    """
    cdef const int64_t[::1] bounds = elements.bounds, times
    cdef RowStore rows = accumulators.new_rows()
    elements.check_sessions(gap)
    if not 0 <= first <= stop < bounds.shape[0]:
        raise IndexError(f"keys: must lie within [0, {bounds.shape[0] - 1}), got [{first}, {stop})")
    if accumulators.head_cells <= END:
        raise ValueError(f"accumulators: need more than {END} cells of head, got {accumulators.head_cells}")
    numbers, times = elements.slice(bounds[first], bounds[stop])
    _held = accumulators.hold(columns_at(numbers), times.shape[0])
    if times.shape[0]:
        with nogil:
            scan(rows, accumulators, &bounds[0], first, &times[0], times.shape[0], gap)
    return rows


def places_by_time(const int64_t[::1] times not None):
    """Returns where each time, ms, stands in their order: int64[n]. Stable. O(n), where KeyOrder is."""
    cdef Py_ssize_t n = times.shape[0], i
    cdef int64_t first = INT64_MAX, last = INT64_MIN
    cdef int64_t[::1] places, begins
    out = np.empty(n, dtype=np.int64)
    with nogil:
        for i in range(n):
            first, last = min(first, times[i]), max(last, times[i])
    if n and last // 2 - first // 2 >= DENSE // 2 * n:      # halved: the difference itself may not fit
        out[KeyOrder(np.zeros(n, dtype=np.int32), times, 1).slice(0, n)[0]] = np.arange(n)
        return out
    counted = np.zeros(last - first + 2 if n else 0, dtype=np.int64)
    places, begins = out, counted
    with nogil:                             # times are near each other: count them
        for i in range(n):
            begins[times[i] - first + 1] += 1
        for i in range(begins.shape[0] - 2):
            begins[i + 1] += begins[i]
        for i in range(n):
            places[i] = begins[times[i] - first]
            begins[times[i] - first] += 1
    return out


def order_by_time(const int64_t[::1] times not None, each=map, Py_ssize_t threads=1):
    """Returns the order of times, ms: int64[n]. Stable. None where they are spread over more ms than there are of them,
    or where there is none. O(n).

    each: calls a function with each of some arguments, as ``map`` does, maybe on several threads; threads: how many.

    >>> order_by_time(np.array([7, 5, 7, 5, 6])).tolist()
    [1, 3, 4, 0, 2]
    """
    cdef Py_ssize_t n = times.shape[0]
    cdef int64_t first, last
    check_int64("times", times)
    if n == 0 or n > MOST:
        return None
    spans = list(each(_span, np.array_split(times, threads)))
    first, last = min(span[0] for span in spans), max(span[1] for span in spans)
    if last // 2 - first // 2 >= n // 2:        # halved: the difference itself may not fit
        return None
    parts = np.array_split(times, max(1, min(threads, MOST_COUNTED * n // (last - first + 1))))
    befores = np.cumsum([0] + [len(part) for part in parts]).tolist()
    counts, out = np.zeros((len(parts), last - first + 1), dtype=np.int32), np.empty(n, dtype=np.int64)
    list(each(lambda part, counted: _count(part, first, counted), parts, counts))
    _begin(counts)
    list(each(lambda part, before, begins: _place(part, before, first, begins, out), parts, befores, counts))
    return out


def _span(const int64_t[::1] times not None):
    """Returns the first and the last of some times, ms."""
    cdef int64_t first = INT64_MAX, last = INT64_MIN
    cdef Py_ssize_t i
    with nogil:
        for i in range(times.shape[0]):
            first, last = min(first, times[i]), max(last, times[i])
    return first, last


def _count(const int64_t[::1] times not None, int64_t first, idx_t[::1] counts not None):
    """Counts the times of each ms from ``first`` on."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(times.shape[0]):
            counts[times[i] - first] += 1


def _begin(idx_t[:, ::1] counts not None):
    """Makes of the counts of each part and time the place of the first one: times in order, of one time the parts."""
    cdef idx_t before = 0, many
    cdef Py_ssize_t i, part
    with nogil:
        for i in range(counts.shape[1]):
            for part in range(counts.shape[0]):
                many = counts[part, i]
                counts[part, i] = before
                before += many


def _place(const int64_t[::1] times not None, Py_ssize_t before, int64_t first, idx_t[::1] begins not None,
           int64_t[::1] places not None):
    """Puts the numbers of a part's times, which count from ``before``, where they belong in the order of time."""
    cdef Py_ssize_t i, n = times.shape[0]
    cdef idx_t place
    with nogil:
        for i in range(n):
            if i + AHEAD < n:
                prefetch_to_write(&places[begins[times[i + AHEAD] - first]])
            place = begins[times[i] - first]
            places[place] = before + i
            begins[times[i] - first] = place + 1

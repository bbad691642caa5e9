"""Rows by end: runs of windows of many keys, each with neighbouring ends, put in order of their ends."""

import numpy as np

from fastwin.core.typedefs cimport idx_t, int64_t, uint64_t
from fastwin.core.memory.bounds cimport check_aligned, check_int64, check_length
from fastwin.core.timemath cimport between

__all__ = ["repeat_until", "rows_by_end"]

cdef enum:
    PLACE_BITS = 62             # places are within +-2**62: sums of one and of so many rows stay in int64
    ROW_BITS = 40


cdef Py_ssize_t count_rows(const int64_t[::1] firsts, const int64_t[::1] lasts) except -1:
    """Returns how many windows the runs have together. Raises ValueError for what is out of bounds."""
    cdef int64_t limit = (<int64_t> 1) << PLACE_BITS, most = (<int64_t> 1) << ROW_BITS, rows = 0
    cdef Py_ssize_t i
    for i in range(firsts.shape[0]):
        if not -limit <= firsts[i] <= lasts[i] <= limit:
            raise ValueError(
                f"firsts, lasts: must ascend within +-2**{PLACE_BITS}, got {firsts[i]} and {lasts[i]} for run {i}")
        if between(firsts[i], lasts[i]) >= <uint64_t> (most - rows):
            raise ValueError(f"firsts, lasts: runs must have at most 2**{ROW_BITS} windows together")
        rows += lasts[i] - firsts[i] + 1
    return rows


def rows_by_end(const idx_t[::1] keys not None, const int64_t[::1] firsts not None, const int64_t[::1] lasts not None):
    """Puts the windows of runs in order of their ends; those of one end stay in the order of the runs.

    Run i has a window of ``keys[i]`` at each place from ``firsts[i]`` to ``lasts[i]``, at least at one; the places of
    neighbouring ends differ by one. keys: int32[n]. firsts, lasts: int64[n], within +-2**62.

    Returns ``(ids, at, places, bounds)``: the key of each row, int32[rows]; the row of the first window of each run,
    int64[n]; the places that there are, ascending, and the row behind the last one of each, int64[places]. O(rows), and
    what it takes to put ``lasts`` in order, however far apart the runs are. Raises ValueError for unequal lengths and
    for what is out of bounds.

    >>> found = rows_by_end(np.array([7, 8], np.int32), np.array([1, 2]), np.array([2, 2]))
    >>> [each.tolist() for each in found]
    [[7, 7, 8], [0, 2], [1, 2], [1, 3]]
    """
    cdef Py_ssize_t n = keys.shape[0], j, d, first, behind, written, count = 0
    cdef int64_t i, low = 0, high = 0, active = 0, total = 0, row
    cdef idx_t key
    cdef idx_t[::1] id_of
    cdef int64_t[::1] place_of, bound_of, row_of, number
    cdef const int64_t[::1] by_last
    cdef idx_t* out
    cdef int64_t* nexts
    check_length("firsts", firsts.shape[0], n)
    check_length("lasts", lasts.shape[0], n)
    if n == 0:
        nothing = np.empty(0, dtype=np.int64)
        return np.empty(0, dtype=np.int32), nothing, nothing, nothing
    check_aligned("keys", &keys[0], sizeof(idx_t))
    check_int64("firsts", firsts)
    check_int64("lasts", lasts)
    ids = np.empty(count_rows(firsts, lasts), dtype=np.int32)
    at, numbers, order = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.argsort(lasts, kind="stable")
    id_of, row_of, number, by_last = ids, at, numbers, order
    with nogil:
        # Places are numbered from the last one back. Those that no run has get no number: the next run, of those whose
        # last place is lower, goes on behind the lowest one so far.
        for j in range(n - 1, -1, -1):
            i = by_last[j]
            if j == n - 1:
                low, high = firsts[i], lasts[i]
            elif lasts[i] < low - 1:
                count += high - low + 1
                low, high = firsts[i], lasts[i]
            elif firsts[i] < low:
                low = firsts[i]
            number[i] = -count - high
        count += high - low + 1
    places, bounds = np.empty(count, dtype=np.int64), np.zeros(count + 1, dtype=np.int64)
    place_of, bound_of = places, bounds
    out, nexts, written = &id_of[0], &bound_of[0], count
    with nogil:
        for j in range(n - 1, -1, -1):
            i = by_last[j]
            number[i] += count - 1              # place + number[i] ascends from 0 now
            first, behind = firsts[i] + number[i], lasts[i] + number[i] + 1
            nexts[first] += 1
            nexts[behind] -= 1
            for d in range(first, written):
                place_of[d] = d - number[i]
            written = min(written, first)
        for d in range(count):
            active += nexts[d]
            nexts[d] = total
            total += active
        for i in range(n):
            key, first, behind = keys[i], firsts[i] + number[i], lasts[i] + number[i] + 1
            row_of[i] = nexts[first]
            for d in range(first, behind):
                row = nexts[d]
                nexts[d] = row + 1
                out[row] = key
    return ids, at, places, bounds[:count]


def repeat_until(const int64_t[::1] values not None, const int64_t[::1] bounds not None):
    """Returns ``values[i]`` for the rows from ``bounds[i - 1]``, at first from 0, up to ``bounds[i]``: int64[rows].

    Raises ValueError for unequal lengths, and for bounds that descend or begin below 0.

    >>> repeat_until(np.array([5, 6]), np.array([1, 3])).tolist()
    [5, 6, 6]
    """
    cdef Py_ssize_t n = values.shape[0], i, row, first = 0, behind
    cdef int64_t value
    cdef int64_t[::1] repeated
    cdef int64_t* out
    check_length("bounds", bounds.shape[0], n)
    check_int64("values", values)
    check_int64("bounds", bounds)
    for i in range(n):
        if bounds[i] < first:
            raise ValueError(f"bounds: must ascend from 0 on, got {bounds[i]} after {first}")
        first = bounds[i]
    found = np.empty(first, dtype=np.int64)
    if first:
        repeated = found
        out, first = &repeated[0], 0
        with nogil:
            for i in range(n):
                value, behind = values[i], bounds[i]
                for row in range(first, behind):
                    out[row] = value
                first = behind
    return found

"""The order of rows by several columns of int64."""

import numpy as np

cimport cython
from libc.stdlib cimport free, malloc

from fastwin.core.typedefs cimport idx_t, int64_t, uint8_t, uint64_t
from fastwin.core.memory.bounds cimport check_int64, check_length
from fastwin.core.memory.radixsort cimport radix_sort

__all__ = ["ordered"]

cdef struct Placed:
    int64_t value
    int64_t place


def ordered(list columns not None):
    """Returns ``(places, ties)``: the places of rows in the order of their columns, the first one first, int32[n]; and
    how many of them have the same values as the one before. Stable.

    columns: int64[n] each, at least one. O(n). Raises ValueError for none, or for unequal lengths.
    """
    if not columns:
        raise ValueError("columns: at least one, got none")
    for column in columns:
        check_length("columns", len(column), len(columns[0]))
        check_int64("columns", column)
    packed = one_column(columns)
    return sorted_by(columns) if packed is None else sorted_by([packed])


cdef object one_column(list columns):
    """Returns one column of the same order as several: each has the bits that its values need; None: they need more
    than 63."""
    cdef list lows = [], widths = []
    cdef int64_t low, high
    cdef int width
    if not len(columns[0]):
        return None
    for column in columns:
        low, high = range_of(column)
        lows.append(low)
        widths.append((int(high) - int(low)).bit_length())
    if sum(widths) > 63:
        return None
    out = np.zeros(len(columns[0]), dtype=np.int64)
    for column, low, width in zip(columns, lows, widths):
        put_behind(out, column, low, width)
    return out


cdef tuple range_of(const int64_t[::1] values):
    """Returns the least and the greatest of values, at least one."""
    cdef int64_t low = values[0], high = values[0]
    cdef Py_ssize_t i
    for i in range(values.shape[0]):
        low = min(low, values[i])
        high = max(high, values[i])
    return low, high


@cython.overflowcheck(False)
cdef void put_behind(int64_t[::1] packed, const int64_t[::1] values, int64_t low, int width) noexcept:
    cdef Py_ssize_t i
    for i in range(values.shape[0]):
        packed[i] = packed[i] << width | <int64_t> (<uint64_t> values[i] - <uint64_t> low)


cdef tuple sorted_by(list columns):
    """Sorts by columns, see ordered()."""
    cdef const int64_t[::1] values
    cdef Py_ssize_t i, n = len(columns[0]), field = 0, ties = 0
    cdef Placed* rows
    cdef bint done = True
    out, alike = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.uint8)
    cdef idx_t[::1] places = out
    cdef uint8_t[::1] same = alike
    rows = <Placed*> malloc(max(n, 1) * sizeof(Placed))
    if rows == NULL:
        raise MemoryError(f"ordered: no memory for {n} rows")
    try:
        for i in range(n):
            rows[i].place = i
        for column in reversed(columns):        # each sort keeps what those before it have put in order
            values = column
            with nogil:
                for i in range(n):
                    rows[i].value = values[rows[i].place]
                done = radix_sort(rows, n, sizeof(Placed), &field, 1)
            if not done:
                raise MemoryError(f"ordered: no memory to sort {n} rows")
        for i in range(n):
            places[i] = <idx_t> rows[i].place
            same[i] = i > 0 and rows[i].value == rows[i - 1].value     # the first column came last
    finally:
        free(rows)
    for column in columns[1:]:
        values = column
        for i in range(1, n):
            same[i] &= values[places[i]] == values[places[i - 1]]
    for i in range(1, n):
        ties += same[i]
    return out, ties

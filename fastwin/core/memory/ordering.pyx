"""The order of rows by several columns of int64."""

import numpy as np

from libc.stdlib cimport free, malloc

from fastwin.core.typedefs cimport idx_t, int64_t, uint8_t
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
    cdef const int64_t[::1] values
    cdef Py_ssize_t i, n, field = 0, ties = 0
    cdef Placed* rows
    cdef bint done = True
    if not columns:
        raise ValueError("columns: at least one, got none")
    n = len(columns[0])
    out, alike = np.empty(n, dtype=np.int32), np.ones(n, dtype=np.uint8)
    cdef idx_t[::1] places = out
    cdef uint8_t[::1] same = alike
    for column in columns:
        check_length("columns", len(column), n)
        check_int64("columns", column)
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
    finally:
        free(rows)
    for column in columns:
        values = column
        for i in range(1, n):
            same[i] &= values[places[i]] == values[places[i - 1]]
    for i in range(1, n):
        ties += same[i]
    return out, ties

"""Columns of 8-byte values, read and written out of order: what is wanted next is fetched while the rest is copied."""

import numpy as np

from fastwin.core.typedefs cimport int64_t
from fastwin.core.memory.bounds cimport check_int64, check_length
from fastwin.core.memory.equal cimport whole
from fastwin.core.memory.pages cimport prefetch, prefetch_to_write
from fastwin.core.timemath cimport are_within

__all__ = ["put", "take"]

cdef enum:
    AHEAD = 64                  # values fetched before it is their turn


cdef int check_places(str name, const whole[::1] places, Py_ssize_t n) except -1:
    """Raises IndexError unless all places are in [0, n)."""
    cdef Py_ssize_t i
    cdef bint there = True
    if whole is int64_t:
        check_int64(name, places)
        there = are_within(places, 0, n - 1)
    else:
        for i in range(places.shape[0]):
            there &= 0 <= places[i] < n
    if not there:
        for i in range(places.shape[0]):
            if not 0 <= places[i] < n:
                raise IndexError(f"{name}: must be at least 0 and below {n}, got {places[i]}")
    return 0


def take(const int64_t[::1] values not None, const whole[::1] places not None):
    """Returns ``values[places]``: int64[n]. places: int64[n] or int32[n].

    Raises IndexError for a place that is not there; negative ones are not.
    """
    cdef Py_ssize_t i, n = places.shape[0], until = max(n - AHEAD, 0)
    check_places("places", places, values.shape[0])
    check_int64("values", values)
    out = np.empty(n, dtype=np.int64)
    cdef int64_t[::1] taken = out
    with nogil:
        for i in range(until):
            prefetch(&values[places[i + AHEAD]])
            taken[i] = values[places[i]]
        for i in range(until, n):
            taken[i] = values[places[i]]
    return out


def put(int64_t[::1] into not None, const int64_t[::1] places not None, const int64_t[::1] values not None):
    """Does ``into[places] = values``, one after the other.

    Raises ValueError for unequal lengths, IndexError for a place that is not there; negative ones are not.
    """
    cdef Py_ssize_t i, n = places.shape[0], until = max(n - AHEAD, 0)
    check_length("values", values.shape[0], n)
    check_places("places", places, into.shape[0])
    check_int64("values", values)
    check_int64("into", into)
    with nogil:
        for i in range(until):
            prefetch_to_write(&into[places[i + AHEAD]])
            into[places[i]] = values[i]
        for i in range(until, n):
            into[places[i]] = values[i]

# Runs of equal values, as where there is one key, or elements come in order of time.
from fastwin.core.typedefs cimport idx_t, int64_t, uint8_t
from fastwin.core.wide cimport all_are

ctypedef fused whole:
    idx_t
    int64_t


cdef inline bint are_one(const whole* values, Py_ssize_t n) noexcept nogil:
    """Whether all of n values are the same one; n: at least one."""
    cdef whole first = values[0], other = 0
    cdef Py_ssize_t i
    if values[n - 1] != first:
        return False
    if whole is int64_t:
        return all_are(values, n, first)
    else:
        for i in range(n):
            other |= values[i] ^ first
        return other == 0


cdef inline uint8_t differing(const uint8_t* values, Py_ssize_t n, uint8_t value) noexcept nogil:
    """Returns the bits in which any of n values is another one than ``value``."""
    cdef uint8_t other = 0
    cdef Py_ssize_t i
    for i in range(n):
        other |= values[i] ^ value
    return other

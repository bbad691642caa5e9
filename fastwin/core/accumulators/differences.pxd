# Differences of values that are kept as eight bytes.
cimport cython
from libc.string cimport memcpy

from fastwin.core.memory.int128 cimport int128
from fastwin.core.typedefs cimport int64_t


@cython.overflowcheck(False)
cdef inline double difference(int64_t a, int64_t b, bint is_float) noexcept nogil:
    # Exact for ints; for floats that lie close together as well, and so they lose nothing to lying far from zero.
    cdef double x, y
    if is_float:
        memcpy(&x, &a, 8)
        memcpy(&y, &b, 8)
        return x - y
    return <double> (<int128> a - <int128> b)

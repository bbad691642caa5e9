# Values as the words that records are ordered by.
cimport cython
from libc.math cimport isnan
from libc.stdint cimport INT64_MAX, INT64_MIN
from libc.string cimport memcpy

from fastwin.core.typedefs cimport int64_t, uint8_t, uint64_t

cdef extern from *:
    uint64_t turned_bytes "__builtin_bswap64"(uint64_t word) noexcept nogil


cdef inline int64_t turned_bits(int64_t bits) noexcept nogil:
    """The bits of a double as an int64 that sorts as the double does, and back."""
    return bits ^ ((bits >> 63) & INT64_MAX)


cdef inline int64_t code_of_float(double value) noexcept nogil:
    """An int64 in the order of floats: -0.0 is 0.0, and NaN is one value above all others."""
    cdef int64_t bits
    value = value + 0.0
    memcpy(&bits, &value, 8)
    return <int64_t> 0x7ff8000000000000 if isnan(value) else turned_bits(bits)


cdef inline double float_of_code(int64_t code) noexcept nogil:
    cdef double value
    code = turned_bits(code)
    memcpy(&value, &code, 8)
    return value


cdef inline int64_t code_of_text(const uint8_t* text, int64_t n) noexcept nogil:
    """The first eight bytes of a text as an int64: those of a smaller text are smaller, or the same."""
    cdef uint64_t word = 0
    if n:
        memcpy(&word, text, min(n, 8))
    return <int64_t> (turned_bytes(word) ^ ((<uint64_t> 1) << 63))

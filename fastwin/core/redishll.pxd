# Registers as the string that Redis keeps under a key: a header, and then all registers (dense) or runs (sparse).
from fastwin._typedefs cimport int64_t, uint8_t

cdef enum:
    HEADER_BYTES = 16
    DENSE_BYTES = 12288         # 16384 registers of 6 bits
    MOST_BYTES = 12304          # of a string

cdef int64_t write_sketch(const char* cell, uint8_t* out) noexcept nogil

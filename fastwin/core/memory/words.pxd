# Whole numbers of several 64-bit words, the low one first, in two's complement. Their number is a constant where they
# are inlined, so that loops over them are none.
cimport cython

from fastwin.core.typedefs cimport uint64_t
from fastwin.core.memory.int128 cimport uint128


@cython.overflowcheck(False)
cdef inline void add_words(uint64_t* total, const uint64_t* more, int words) noexcept nogil:
    cdef uint128 part = 0
    cdef int i
    for i in range(words):
        part = (part >> 64) + total[i] + more[i]
        total[i] = <uint64_t> part


@cython.overflowcheck(False)
cdef inline void negate(uint64_t* number, int words) noexcept nogil:
    cdef int i
    cdef uint64_t carry = 1
    for i in range(words):
        number[i] = ~number[i] + carry
        carry = carry and number[i] == 0


@cython.overflowcheck(False)
cdef inline void multiply(uint64_t* number, uint64_t by, int words) noexcept nogil:
    cdef int i
    cdef uint128 product = 0
    for i in range(words):
        product = <uint128> number[i] * by + (product >> 64)
        number[i] = <uint64_t> product

# One bit for each row, in words of 64.
from fastwin.core.typedefs cimport idx_t, uint64_t

cdef extern from *:
    int _popcount "__builtin_popcountll"(uint64_t word) noexcept nogil
    int _lowest_bit "__builtin_ctzll"(uint64_t word) noexcept nogil
    int _leading_zeros "__builtin_clzll"(uint64_t word) noexcept nogil


cdef inline bint has_bit(const uint64_t* bits, idx_t at) noexcept nogil:
    return bits[at >> 6] >> (at & 63) & 1


cdef inline void set_bit(uint64_t* bits, idx_t at) noexcept nogil:
    bits[at >> 6] |= (<uint64_t> 1) << (at & 63)


cdef inline void clear_bit(uint64_t* bits, idx_t at) noexcept nogil:
    bits[at >> 6] &= ~((<uint64_t> 1) << (at & 63))


cdef inline idx_t words_of(idx_t n) noexcept nogil:
    """Returns how many words n bits take."""
    return (n + 63) // 64


cdef inline Py_ssize_t count_bits(const uint64_t* bits, idx_t n) noexcept nogil:
    """Returns how many of n bits are set; those of the last word beyond n are not."""
    cdef Py_ssize_t found = 0
    cdef idx_t word
    for word in range(words_of(n)):
        found += _popcount(bits[word])
    return found


cdef inline void list_bits(const uint64_t* bits, idx_t n, idx_t* out) noexcept nogil:
    """Writes which of n bits are set, ascending."""
    cdef Py_ssize_t found = 0
    cdef uint64_t left
    cdef idx_t word
    for word in range(words_of(n)):
        left = bits[word]
        while left:
            out[found] = 64 * word + _lowest_bit(left)
            found += 1
            left &= left - 1


cdef inline int bit_length(uint64_t number) noexcept nogil:
    """Returns how many bits a number needs: 0 for 0."""
    return 64 - _leading_zeros(number) if number else 0

# The row hash, version 1: part of the key-group routing, so it never changes within a version.
cimport cython
from libc.string cimport memcpy

from fastwin.core.typedefs cimport uint8_t, uint32_t, uint64_t

cdef enum:
    HASH_VERSION = 1


@cython.overflowcheck(False)
cdef inline uint64_t mix(uint64_t x) noexcept nogil:
    # The finaliser of SplitMix64 (Steele, Lea, Flood, 2014): every bit of x moves every bit of the result.
    x += <uint64_t> 0x9E3779B97F4A7C15
    x = (x ^ (x >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t> 0x94D049BB133111EB
    return x ^ (x >> 31)


cdef inline uint64_t last_word(const uint8_t* data, Py_ssize_t n) noexcept nogil:
    """Returns the last n % 8 of n bytes, not 0, as a little-endian word padded with zeros. Loads of fixed sizes that
    overlap: copying a few bytes would make the load of the word wait for their stores."""
    cdef Py_ssize_t m = n & 7
    cdef uint64_t word
    cdef uint32_t low, high
    if n >= 8:
        memcpy(&word, data + n - 8, 8)
        return word >> (8 * (8 - m))
    if m >= 4:
        memcpy(&low, data, 4)
        memcpy(&high, data + m - 4, 4)
        return low | <uint64_t> high << (8 * (m - 4))
    return data[0] | <uint64_t> data[m >> 1] << (8 * (m >> 1)) | <uint64_t> data[m - 1] << (8 * (m - 1))


@cython.overflowcheck(False)
cdef inline uint64_t hash_bytes(const uint8_t* data, Py_ssize_t n) noexcept nogil:
    # Little-endian words of eight, the last one padded with zeros; the length tells them apart.
    cdef uint64_t h = <uint64_t> n * <uint64_t> 0x9FB21C651E98DF25, word
    cdef Py_ssize_t at = 0
    while at + 8 <= n:
        memcpy(&word, data + at, 8)
        h = (h ^ word) * <uint64_t> 0x9FB21C651E98DF25
        h ^= h >> 29
        at += 8
    if at < n:
        h = (h ^ last_word(data, n)) * <uint64_t> 0x9FB21C651E98DF25
        h ^= h >> 29
    return mix(h)

# The row hash, version 1: part of the key-group routing, so it never changes within a version.
cimport cython
from libc.string cimport memcpy

from fastwin._typedefs cimport uint8_t, uint64_t

cdef enum:
    HASH_VERSION = 1


@cython.overflowcheck(False)
cdef inline uint64_t mix(uint64_t x) noexcept nogil:
    # The finaliser of SplitMix64 (Steele, Lea, Flood, 2014): every bit of x moves every bit of the result.
    x += <uint64_t> 0x9E3779B97F4A7C15
    x = (x ^ (x >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t> 0x94D049BB133111EB
    return x ^ (x >> 31)


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
        word = 0
        memcpy(&word, data + at, n - at)
        h = (h ^ word) * <uint64_t> 0x9FB21C651E98DF25
        h ^= h >> 29
    return mix(h)

# The hash that Redis counts distinct values by, of text and of the decimal text of whole numbers.
cimport cython
from libc.string cimport memcpy

from fastwin.core.keys.hashing cimport last_word
from fastwin.core.typedefs cimport int64_t, uint8_t, uint64_t

cdef enum:
    EIGHT_DIGITS = 100000000    # numbers below have at most eight
    MINUS = 45                  # the character

# MurmurHash64A (Austin Appleby, public domain) with the seed that Redis gives it.
cdef extern from *:
    """
    #define FASTWIN_MURMUR_BY 0xc6a4a7935bd1e995ull
    #define FASTWIN_MURMUR_SEED 0xadc83b19ull
    #define FASTWIN_ZEROS 0x3030303030303030ull
    """
    uint64_t BY "FASTWIN_MURMUR_BY"
    uint64_t SEED "FASTWIN_MURMUR_SEED"
    uint64_t ZEROS "FASTWIN_ZEROS"      # eight characters
    int trailing_zeros "__builtin_ctzll"(uint64_t word) noexcept nogil


@cython.overflowcheck(False)
cdef inline uint64_t murmur_begun(int64_t n) noexcept nogil:
    return SEED ^ (<uint64_t> n * BY)


@cython.overflowcheck(False)
cdef inline uint64_t murmur_of_word(uint64_t h, uint64_t word) noexcept nogil:
    word *= BY
    word ^= word >> 47
    return (h ^ (word * BY)) * BY


@cython.overflowcheck(False)
cdef inline uint64_t murmur_of_rest(uint64_t h, uint64_t word) noexcept nogil:
    return (h ^ word) * BY


@cython.overflowcheck(False)
cdef inline uint64_t murmur_ended(uint64_t h) noexcept nogil:
    h = (h ^ (h >> 47)) * BY
    return h ^ (h >> 47)


@cython.overflowcheck(False)
cdef inline uint64_t murmur(const uint8_t* text, int64_t n) noexcept nogil:
    cdef uint64_t h = murmur_begun(n), word
    cdef int64_t at = 0
    while at + 8 <= n:
        memcpy(&word, text + at, 8)
        h = murmur_of_word(h, word)
        at += 8
    return murmur_ended(murmur_of_rest(h, last_word(text, n)) if at < n else h)


@cython.cdivision(True)
@cython.overflowcheck(False)
cdef inline uint64_t eight_digits(uint64_t number) noexcept nogil:
    """Returns the digits of a number below 10**8, a byte each, the first one in the lowest byte.

    Two halves, four pairs, eight digits, in all parts of a word at once: n / 100 is n * 10486 >> 20 below 10**4, n / 10
    is n * 103 >> 10 below 100.
    """
    cdef uint64_t halves = number // 10000 | (number % 10000) << 32
    cdef uint64_t hundreds = (halves * 10486 >> 20) & <uint64_t> 0x7f0000007f
    cdef uint64_t pairs = hundreds | (halves - 100 * hundreds) << 16
    cdef uint64_t tens = (pairs * 103 >> 10) & <uint64_t> 0xf000f000f000f
    return tens | (pairs - 10 * tens) << 8


cdef inline int bits_of_zeros(uint64_t digits) noexcept nogil:
    """Returns how many bits in front are digits that are 0; the last digit never counts."""
    return trailing_zeros(digits | <uint64_t> 1 << 56) & 56


@cython.overflowcheck(False)
cdef inline uint64_t hash_of_one(uint64_t size) noexcept nogil:
    """Returns the hash of a number of at most eight digits, whose text is one word."""
    cdef uint64_t digits, text
    cdef int skipped
    if size < 10:
        return murmur_ended(murmur_of_rest(murmur_begun(1), size + (ZEROS & 0xff)))
    digits = eight_digits(size)
    skipped = bits_of_zeros(digits)
    text = (digits + ZEROS) >> skipped
    if skipped == 0:
        return murmur_ended(murmur_of_word(murmur_begun(8), text))
    return murmur_ended(murmur_of_rest(murmur_begun(8 - (skipped >> 3)), text))


@cython.overflowcheck(False)
cdef inline uint64_t hash_of_two(uint64_t high, uint64_t low) noexcept nogil:
    """Returns the hash of ``high * 10**8 + low``, whose text is two words, the second one often not full."""
    cdef uint64_t first = eight_digits(high), second = eight_digits(low) + ZEROS, h
    cdef int skipped = bits_of_zeros(first)
    h = murmur_begun(16 - (skipped >> 3))
    h = murmur_of_word(h, (first + ZEROS) >> skipped | (second << 1) << (63 - skipped))  # a shift by 64 is none
    if skipped == 0:
        return murmur_ended(murmur_of_word(h, second))
    return murmur_ended(murmur_of_rest(h, second >> skipped))


@cython.cdivision(True)
@cython.overflowcheck(False)
cdef inline uint64_t hash_of_number(uint64_t size, bint negative) noexcept nogil:
    """Returns the hash of the decimal text of a number; negative: with a minus in front. In words, not in memory: a
    word that was stored in parts is slow to load."""
    cdef uint64_t[4] text
    cdef uint64_t high = size // EIGHT_DIGITS, h
    cdef Py_ssize_t words = 1, at
    cdef int skipped
    cdef int64_t length
    if high == 0 and not negative:
        return hash_of_one(size)
    if high < EIGHT_DIGITS and not negative:
        return hash_of_two(high, size % EIGHT_DIGITS)
    text[1] = text[2] = text[3] = 0
    text[0] = eight_digits(size % EIGHT_DIGITS)
    if high >= EIGHT_DIGITS:
        text[2], words = text[0], 3
        text[1] = eight_digits(high % EIGHT_DIGITS)
        text[0] = eight_digits(high // EIGHT_DIGITS)
    elif high:
        text[1], words = text[0], 2
        text[0] = eight_digits(high)
    skipped = bits_of_zeros(text[0])
    length = 8 * words - (skipped >> 3)
    for at in range(words):
        text[at] += ZEROS
    for at in range(3):
        text[at] = text[at] >> skipped | (text[at + 1] << 1) << (63 - skipped)
    if negative:
        length += 1
        for at in range(3, 0, -1):
            text[at] = text[at] << 8 | text[at - 1] >> 56
        text[0] = text[0] << 8 | MINUS
    h = murmur_begun(length)
    for at in range(length >> 3):
        h = murmur_of_word(h, text[at])
    return murmur_ended(murmur_of_rest(h, text[length >> 3]) if length & 7 else h)

"""The order of rows by several columns of int64, where equal rows begin, and which values a column has."""

import numpy as np

cimport cython
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from fastwin.core.typedefs cimport idx_t, int64_t, uint8_t, uint64_t
from fastwin.core.memory.bits cimport bit_length
from fastwin.core.memory.bounds cimport check_int64, check_length
from fastwin.core.memory.radixsort cimport radix_sort, sort_words

__all__ = ["begins_of", "distinct", "ordered", "unique"]

cdef enum:
    WORD_BITS = 64
    RECENT_BITS = 12
    RECENT = 4096               # values that distinct() remembers: 1 << RECENT_BITS

cdef struct Placed:
    int64_t value
    int64_t place


@cython.final
cdef class Column:
    """The values of a column, at least one, as numbers from 0 on: how many steps they are above the least one."""

    cdef const int64_t[::1] values
    cdef uint64_t low, most, step

    def __cinit__(self, const int64_t[::1] values not None):
        self.values, self.step = values, 1
        find_range(values, &self.low, &self.most)

    cdef int width(self) noexcept:
        """Returns how many bits its numbers need."""
        return bit_length(self.most // self.step)

    cdef void take_longest_steps(self) noexcept:
        """Counts in the longest steps that meet all values: the bounds of windows need few bits then."""
        self.step = longest_step(self.values, self.low)

    cdef void put_behind(self, uint64_t[::1] packed) noexcept:
        """Moves what is packed up, and puts the numbers below."""
        put_numbers(packed, self.values, self.low, self.step, self.width())


@cython.overflowcheck(False)
cdef inline uint64_t difference(uint64_t high, uint64_t low) noexcept nogil:
    return high - low


cdef void find_range(const int64_t[::1] values, uint64_t* least, uint64_t* most) noexcept nogil:
    """Finds the least value, and how far above it the greatest one is."""
    cdef int64_t low = values[0], high = values[0]
    cdef Py_ssize_t i
    for i in range(values.shape[0]):
        low = min(low, values[i])
        high = max(high, values[i])
    least[0], most[0] = <uint64_t> low, difference(<uint64_t> high, <uint64_t> low)


cdef uint64_t longest_step(const int64_t[::1] values, uint64_t low) noexcept nogil:
    cdef uint64_t step = 0, above
    cdef Py_ssize_t i
    for i in range(values.shape[0]):
        above = difference(<uint64_t> values[i], low)
        if step == 0 or above % step:
            step = common_divisor(above, step)
            if step == 1:
                break
    return step if step else 1


cdef uint64_t common_divisor(uint64_t a, uint64_t b) noexcept nogil:
    while b:
        a, b = b, a % b
    return a


@cython.overflowcheck(False)
cdef void put_numbers(uint64_t[::1] packed, const int64_t[::1] values, uint64_t low, uint64_t step,
                      int width) noexcept nogil:
    cdef Py_ssize_t i
    if step == 1:
        for i in range(packed.shape[0]):
            packed[i] = packed[i] << width | (<uint64_t> values[i] - low)
    else:
        for i in range(packed.shape[0]):
            packed[i] = packed[i] << width | (<uint64_t> values[i] - low) // step


def ordered(list columns not None):
    """Returns ``(places, ties)``: the places of rows in the order of their columns, the first one first, int32[n]; and
    how many of them have the same values as the one before. Stable.

    columns: int64[n] each, at least one. O(n). Raises ValueError for none, or for unequal lengths.
    """
    if not columns:
        raise ValueError("columns: at least one, got none")
    for column in columns:
        check_length("columns", len(column), len(columns[0]))
        check_int64("columns", column)
    cdef Py_ssize_t n = len(columns[0])
    if n == 0:
        return np.empty(0, dtype=np.int32), 0
    cdef list numbered = [Column(column) for column in columns]
    cdef int bits = bit_length(<uint64_t> (n - 1)), width = width_of(numbered)
    if width + bits > WORD_BITS:
        for one in sorted(numbered, key=width_alone, reverse=True):
            (<Column> one).take_longest_steps()
            if (<Column> one).width() >= WORD_BITS:
                break       # whatever the others' steps are
        width = width_of(numbered)
    if width >= WORD_BITS:
        return sorted_by(columns)
    packed = np.zeros(n, dtype=np.uint64)
    for one in numbered:
        (<Column> one).put_behind(packed)
    if width + bits > WORD_BITS:
        return sorted_by([packed.view(np.int64)])
    return sorted_words(packed, width, bits)


def width_alone(Column column not None):
    """Returns how many bits the numbers of a column need."""
    return column.width()


cdef int width_of(list numbered):
    cdef int width = 0
    for one in numbered:
        width += (<Column> one).width()
    return width


cdef tuple sorted_words(uint64_t[::1] packed, int width, int bits):
    """Sorts by numbers of ``width`` bits, each with its place, of ``bits`` bits, in one word: see ordered()."""
    cdef Py_ssize_t i, n = packed.shape[0], ties = 0, falls = 0
    cdef uint64_t mask = ((<uint64_t> 1) << bits) - 1
    cdef bint done = True
    out = np.empty(n, dtype=np.int32)
    cdef idx_t[::1] places = out
    with nogil:
        for i in range(1, n):
            falls += packed[i] < packed[i - 1]
        for i in range(n):
            packed[i] = packed[i] << bits | <uint64_t> i
        if falls:
            done = sort_words(&packed[0], n, bits, width)
        if done:
            for i in range(n):
                places[i] = <idx_t> (packed[i] & mask)
            for i in range(1, n):
                ties += packed[i] >> bits == packed[i - 1] >> bits
    if not done:
        raise MemoryError(f"ordered: no memory to sort {n} rows")
    return out, ties


cdef tuple sorted_by(list columns):
    """Sorts by columns that need more bits than a word has, see ordered()."""
    cdef const int64_t[::1] values
    cdef Py_ssize_t i, n = len(columns[0]), field = 0, ties = 0
    cdef Placed* rows
    cdef bint done = True
    out, alike = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.uint8)
    cdef idx_t[::1] places = out
    cdef uint8_t[::1] same = alike
    rows = <Placed*> malloc(max(n, 1) * sizeof(Placed))
    if rows == NULL:
        raise MemoryError(f"ordered: no memory for {n} rows")
    try:
        for i in range(n):
            rows[i].place = i
        for column in reversed(columns):        # each sort keeps what those before it have put in order
            values = column
            with nogil:
                for i in range(n):
                    rows[i].value = values[rows[i].place]
                done = radix_sort(rows, n, sizeof(Placed), &field, 1)
            if not done:
                raise MemoryError(f"ordered: no memory to sort {n} rows")
        for i in range(n):
            places[i] = <idx_t> rows[i].place
            same[i] = i > 0 and rows[i].value == rows[i - 1].value     # the first column came last
    finally:
        free(rows)
    for column in columns[1:]:
        values = column
        for i in range(1, n):
            same[i] &= values[places[i]] == values[places[i - 1]]
    for i in range(1, n):
        ties += same[i]
    return out, ties


@cython.overflowcheck(False)
cdef inline Py_ssize_t recent_place(int64_t value) noexcept nogil:
    return <Py_ssize_t> ((<uint64_t> value * <uint64_t> 0x9E3779B97F4A7C15) >> (WORD_BITS - RECENT_BITS))


def distinct(const int64_t[::1] values not None):
    """Returns the values that there are, each once, ascending: int64. O(n) where there are few."""
    cdef Py_ssize_t i, at, n = 0
    cdef int64_t[RECENT] recent
    cdef uint8_t[RECENT] known
    check_int64("values", values)
    out = np.empty(values.shape[0], dtype=np.int64)
    cdef int64_t[::1] found = out
    with nogil:
        memset(known, 0, sizeof(known))
        for i in range(values.shape[0]):
            at = recent_place(values[i])
            if not known[at] or recent[at] != values[i]:
                known[at], recent[at], found[n] = 1, values[i], values[i]
                n += 1
    return unique(out[:n])


def unique(values not None):
    """Returns the integers that there are, each once, ascending: int[m] of int[n]. O(n log n).

    As numpy's, which puts them into a table first: where most of a million differ, that takes many times as long.
    """
    found = np.sort(values, axis=None)
    first = np.ones(len(found), dtype=np.bool_)
    np.not_equal(found[1:], found[:-1], out=first[1:])
    return found[first]


def begins_of(*columns):
    """Returns marks of the rows that differ from the one before them in some column: bool[n].

    columns: arrays[n], at least one.
    """
    n = len(columns[0])
    found = np.zeros(n, dtype=np.bool_)
    found[:1] = True
    for column in columns:
        found[1:] |= column[1:] != column[:max(n - 1, 0)]
    return found

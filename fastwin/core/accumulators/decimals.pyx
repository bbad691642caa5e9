"""Sums and means of decimals, exact: 128-bit values in sums of 192 bits."""

import numpy as np

cimport cython
from libc.string cimport memcpy

from fastwin.core.typedefs cimport idx_t, int64_t, uint8_t, uint64_t
from fastwin.core.accumulators.accumulator_set cimport Accumulator as Base, Column, Merge
from fastwin.core.accumulators.accumulator_set cimport bits_of, check_column, has, into, taken
from fastwin.core.memory.int128 cimport uint128
from fastwin.core.memory.words cimport add_words, multiply, negate
from fastwin.core.rows.rowstore cimport RowStore
from fastwin.errors import AggregateOverflowError

__all__ = ["DecimalTotal"]

cdef enum:
    VALUE_BYTES = 16
    WORDS = 3                   # of a sum, the low one first, two's complement
    MAX_DIGITS = 38
    MAX_SHIFT = 4


cdef struct Words:
    uint64_t[WORDS] at


@cython.overflowcheck(False)
cdef inline Words widened(const uint8_t* value) noexcept nogil:
    cdef Words words
    memcpy(words.at, value, VALUE_BYTES)
    words.at[2] = <uint64_t> 0 - (words.at[1] >> 63)
    return words


@cython.cdivision(True)
@cython.overflowcheck(False)
cdef inline void divide(uint64_t* words, uint64_t by) noexcept nogil:
    """Divides a sum that is not negative, halves away from zero. by: below 2**63."""
    cdef int i
    cdef uint128 part
    cdef uint64_t rest = 0
    cdef Words one
    for i in range(WORDS - 1, -1, -1):
        part = (<uint128> rest << 64) | words[i]
        words[i] = <uint64_t> (part // by)
        rest = <uint64_t> (part % by)
    if 2 * rest >= by:
        one.at[0], one.at[1], one.at[2] = 1, 0, 0
        add_words(words, one.at, WORDS)


@cython.overflowcheck(False)
cdef inline uint128 power_of_ten(int digits) noexcept nogil:
    cdef uint128 power = 1
    cdef int _i
    for _i in range(digits):
        power *= 10
    return power


@cython.final
cdef class DecimalTotal(Base):
    """The sum or the mean of decimals, each value 16 bytes of text: Arrow's decimal128. Cells: four.

    column: of the values. digits: how many a result may have, at most 38. shift: a mean is rounded, halves away from
    zero, to this many more digits behind the point than the values have, at most 18; -1 for the sum. on_overflow: what
    becomes of a result of more digits, ``"raise"`` (AggregateOverflowError) or ``"null"``. name: how the error
    calls it.

    Raises ValueError for other arguments than these.
    """

    dtypes = ("text",)

    cdef int digits, shift
    cdef uint128 limit
    cdef bint null_on_overflow
    cdef readonly str name

    def __cinit__(self, dtype="text", int column=0, int digits=MAX_DIGITS, int shift=-1, on_overflow="raise",
                  name="Sum"):
        if not 1 <= digits <= MAX_DIGITS or not -1 <= shift <= MAX_SHIFT:
            raise ValueError(f"{name}: digits must be from 1 to {MAX_DIGITS} and shift from -1 to {MAX_SHIFT}, "
                             f"got {digits} and {shift}")
        if on_overflow not in ("raise", "null"):
            raise ValueError(f"{name}: on_overflow must be 'raise' or 'null', got {on_overflow!r}")
        self.cells = WORDS + 1          # the last one counts the values
        self.gives_bytes = True
        self.digits, self.shift, self.name = digits, shift, name
        self.limit = power_of_ten(digits)
        self.null_on_overflow = on_overflow == "null"

    cdef int check_columns(self, list held) except -1:
        check_column(self, held, self.column, "text")
        if (np.diff(held[self.column][0]) != VALUE_BYTES).any():
            raise ValueError(f"columns: column {self.column} holds values of other than {VALUE_BYTES} bytes")
        return 0

    cdef void add(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, Column column) noexcept nogil:
        cdef const int64_t* offsets = <const int64_t*> column.values
        cdef Py_ssize_t i
        cdef char* row
        cdef uint64_t* cells
        cdef Words value
        for i in range(n):
            if has(column.valid, i):
                row = rows + slots[i] * stride
                cells = <uint64_t*> (row + self.at)
                value = widened(column.text + offsets[i])
                add_words(cells, value.at, WORDS)
                cells[WORDS] += 1
                bits_of(row)[0] |= self.seen

    cdef void merge(self, Merge pairs) noexcept nogil:
        cdef Py_ssize_t i
        cdef uint64_t* cells
        cdef const uint64_t* others
        for i in range(pairs.n):
            cells = <uint64_t*> (into(&pairs, i) + self.at)
            others = <const uint64_t*> (taken(&pairs, i) + self.at)
            add_words(cells, others, WORDS)
            cells[WORDS] += others[WORDS]

    @cython.overflowcheck(False)
    cdef bint write(self, const uint64_t* cells, uint8_t* out) noexcept nogil:
        """Writes the result of a row whose count is not 0; returns False where it has too many digits."""
        cdef Words words
        cdef uint128 amount
        cdef bint negative = cells[2] >> 63
        memcpy(words.at, cells, sizeof(words))
        if negative:
            negate(words.at, WORDS)
        if self.shift >= 0:
            multiply(words.at, <uint64_t> power_of_ten(self.shift), WORDS)
            divide(words.at, cells[WORDS])
        amount = (<uint128> words.at[1] << 64) | words.at[0]
        if words.at[2] or amount >= self.limit:
            return False
        if negative:
            negate(words.at, WORDS)
        memcpy(out, words.at, VALUE_BYTES)
        return True

    cdef tuple blobs(self, RowStore rows, const idx_t[::1] slots):
        cdef Py_ssize_t i, n = slots.shape[0]
        cdef bint fits = True
        cdef const uint64_t* cells
        out, marks = np.zeros(n * VALUE_BYTES, dtype=np.uint8), np.zeros(n, dtype=np.uint8)
        cdef uint8_t[::1] data = out, valid = marks
        with nogil:
            for i in range(n):
                cells = <const uint64_t*> (<const char*> rows.head(slots[i]) + self.at)
                if cells[WORDS]:
                    valid[i] = self.write(cells, &data[i * VALUE_BYTES])
                    fits &= valid[i]
        if not fits and not self.null_on_overflow:
            raise AggregateOverflowError(
                f"{self.name}: the result of a window has more than {self.digits} digits; cast the column to fewer "
                "digits or to float64, or use on_overflow='null'"
            )
        offsets = np.arange(n + 1, dtype=np.int64) * VALUE_BYTES
        return offsets, out, None if marks.all() else marks.view(np.bool_)

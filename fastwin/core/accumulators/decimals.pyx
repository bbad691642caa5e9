"""Sums and means of decimals, exact: values of 128 or 256 bits in sums that have 64 bits more."""

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
    MOST_WORDS = 5              # of a sum, see memory/words.pxd; the values have one less
    MAX_SHIFT = 4

DIGITS = {16: 38, 32: 76}       # at most, by the bytes of a value


cdef struct Words:
    uint64_t[MOST_WORDS] at


@cython.overflowcheck(False)
cdef inline void add_value(uint64_t* cells, const uint8_t* value, int words) noexcept nogil:
    cdef Words wide
    memcpy(wide.at, value, (words - 1) * sizeof(uint64_t))
    wide.at[words - 1] = <uint64_t> 0 - (wide.at[words - 2] >> 63)
    add_words(cells, wide.at, words)


@cython.cdivision(True)
@cython.overflowcheck(False)
cdef inline void divide(uint64_t* number, uint64_t by, int words) noexcept nogil:
    """Divides a number that is not negative, halves away from zero. by: below 2**63."""
    cdef int i
    cdef uint128 part
    cdef uint64_t rest = 0
    for i in range(words - 1, -1, -1):
        part = (<uint128> rest << 64) | number[i]
        number[i] = <uint64_t> (part // by)
        rest = <uint64_t> (part % by)
    if 2 * rest >= by:
        for i in range(words):
            number[i] += 1
            if number[i]:
                break


@cython.overflowcheck(False)
cdef inline Words power_of_ten(int digits) noexcept nogil:
    cdef Words power
    cdef int _i
    power.at[0] = 1
    for _i in range(1, MOST_WORDS):
        power.at[_i] = 0
    for _i in range(digits):
        multiply(power.at, 10, MOST_WORDS)
    return power


@cython.final
cdef class DecimalTotal(Base):
    """The sum or the mean of decimals, each value as bytes of text: Arrow's decimal128 or decimal256. Cells: 4 or 6.

    column: of the values. width: bytes of a value, 16 or 32. digits: how many a result may have, at most 38 or 76.
    shift: a mean is rounded, halves away from zero, to this many more digits behind the point than the values have, at
    most 4; -1 for the sum. on_overflow: what becomes of a result of more digits, ``"raise"`` (AggregateOverflowError)
    or ``"null"``. name: how the error calls it.

    Raises ValueError for other arguments than these.
    """

    dtypes = ("text",)

    cdef int width, words, digits, shift
    cdef Words limit
    cdef bint null_on_overflow
    cdef readonly str name

    def __cinit__(self, dtype="text", int column=0, int width=16, int digits=38, int shift=-1, on_overflow="raise",
                  name="Sum"):
        if width not in DIGITS:
            raise ValueError(f"{name}: width must be 16 or 32, got {width}")
        if not 1 <= digits <= DIGITS[width] or not -1 <= shift <= MAX_SHIFT:
            raise ValueError(f"{name}: digits must be from 1 to {DIGITS[width]} and shift from -1 to {MAX_SHIFT}, "
                             f"got {digits} and {shift}")
        if on_overflow not in ("raise", "null"):
            raise ValueError(f"{name}: on_overflow must be 'raise' or 'null', got {on_overflow!r}")
        self.width, self.words = width, width // <int> sizeof(uint64_t) + 1
        self.cells = self.words + 1     # the last one counts the values
        self.gives_bytes = True
        self.digits, self.shift, self.name = digits, shift, name
        self.limit = power_of_ten(digits)
        self.null_on_overflow = on_overflow == "null"

    cdef int check_columns(self, list held) except -1:
        check_column(self, held, self.column, "text")
        if (np.diff(held[self.column][0]) != self.width).any():
            raise ValueError(f"columns: column {self.column} holds values of other than {self.width} bytes")
        return 0

    cdef void add(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, Column column) noexcept nogil:
        cdef const int64_t* offsets = <const int64_t*> column.values
        cdef Py_ssize_t i
        cdef int words = self.words
        cdef char* row
        cdef uint64_t* cells
        for i in range(n):
            if has(column.valid, i):
                row = rows + slots[i] * stride
                cells = <uint64_t*> (row + self.at)
                if words == 3:          # a constant, so that no loop is left
                    add_value(cells, column.text + offsets[i], 3)
                else:
                    add_value(cells, column.text + offsets[i], MOST_WORDS)
                cells[words] += 1
                bits_of(row)[0] |= self.seen

    cdef void merge(self, Merge pairs) noexcept nogil:
        cdef Py_ssize_t i
        cdef uint64_t* cells
        cdef const uint64_t* others
        for i in range(pairs.n):
            cells = <uint64_t*> (into(&pairs, i) + self.at)
            others = <const uint64_t*> (taken(&pairs, i) + self.at)
            add_words(cells, others, self.words)
            cells[self.words] += others[self.words]

    cdef bint fits(self, const uint64_t* number) noexcept nogil:
        """Whether a number that is not negative is below the limit."""
        cdef int i
        for i in range(self.words - 1, -1, -1):
            if number[i] != self.limit.at[i]:
                return number[i] < self.limit.at[i]
        return False

    @cython.overflowcheck(False)
    cdef bint write(self, const uint64_t* cells, uint8_t* out) noexcept nogil:
        """Writes the result of a row whose count is not 0; returns False where it has too many digits."""
        cdef Words amount
        cdef bint negative = cells[self.words - 1] >> 63
        memcpy(amount.at, cells, self.words * sizeof(uint64_t))
        if negative:
            negate(amount.at, self.words)
        if self.shift >= 0:
            multiply(amount.at, power_of_ten(self.shift).at[0], self.words)
            divide(amount.at, cells[self.words], self.words)
        if not self.fits(amount.at):
            return False
        if negative:
            negate(amount.at, self.words)
        memcpy(out, amount.at, self.width)
        return True

    cdef tuple blobs(self, RowStore rows, const idx_t[::1] slots):
        cdef Py_ssize_t i, n = slots.shape[0]
        cdef bint all_fit = True
        cdef const uint64_t* cells
        out, marks = np.zeros(n * self.width, dtype=np.uint8), np.zeros(n, dtype=np.uint8)
        cdef uint8_t[::1] data = out, valid = marks
        with nogil:
            for i in range(n):
                cells = <const uint64_t*> (<const char*> rows.head(slots[i]) + self.at)
                if cells[self.words]:
                    valid[i] = self.write(cells, &data[i * self.width])
                    all_fit &= valid[i]
        if not all_fit and not self.null_on_overflow:
            raise AggregateOverflowError(
                f"{self.name}: the result of a window has more than {self.digits} digits; cast the column to fewer "
                "digits or to float64, or use on_overflow='null'"
            )
        offsets = np.arange(n + 1, dtype=np.int64) * self.width
        return offsets, out, None if marks.all() else marks.view(np.bool_)

"""Sums of wide decimals, exact: 256-bit values in sums of 320 bits."""

import numpy as np

cimport cython
from libc.string cimport memcpy

from fastwin.core.typedefs cimport idx_t, int64_t, uint8_t, uint64_t
from fastwin.core.accumulators.accumulator_set cimport Accumulator as Base, Column, Merge
from fastwin.core.accumulators.accumulator_set cimport bits_of, check_column, has, into, taken
from fastwin.core.memory.words cimport add_words, multiply, negate
from fastwin.core.rows.rowstore cimport RowStore
from fastwin.errors import AggregateOverflowError

__all__ = ["WideTotal"]

cdef enum:
    VALUE_BYTES = 32
    WORDS = 5                   # of a sum, see memory/words.pxd
    MAX_DIGITS = 76


cdef struct Words:
    uint64_t[WORDS] at


@cython.overflowcheck(False)
cdef inline Words widened(const uint8_t* value) noexcept nogil:
    cdef Words words
    memcpy(words.at, value, VALUE_BYTES)
    words.at[WORDS - 1] = <uint64_t> 0 - (words.at[WORDS - 2] >> 63)
    return words


@cython.final
cdef class WideTotal(Base):
    """The sum of decimals, each value 32 bytes of text: Arrow's decimal256. Cells: six.

    column: of the values. digits: how many a result may have, at most 76. on_overflow: what becomes of a result of more
    digits, ``"raise"`` (AggregateOverflowError) or ``"null"``. name: how the error calls it.

    Raises ValueError for other arguments than these.
    """

    dtypes = ("text",)

    cdef int digits
    cdef Words limit
    cdef bint null_on_overflow
    cdef readonly str name

    def __cinit__(self, dtype="text", int column=0, int digits=MAX_DIGITS, on_overflow="raise", name="Sum"):
        cdef int _i
        if not 1 <= digits <= MAX_DIGITS:
            raise ValueError(f"{name}: digits must be from 1 to {MAX_DIGITS}, got {digits}")
        if on_overflow not in ("raise", "null"):
            raise ValueError(f"{name}: on_overflow must be 'raise' or 'null', got {on_overflow!r}")
        self.cells = WORDS + 1          # the last one counts the values
        self.gives_bytes = True
        self.digits, self.name = digits, name
        self.limit.at[0] = 1
        for _i in range(1, WORDS):
            self.limit.at[_i] = 0
        for _i in range(digits):
            multiply(self.limit.at, 10, WORDS)
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

    cdef bint fits(self, const uint64_t* words) noexcept nogil:
        """Whether a sum that is not negative is below the limit."""
        cdef int i
        for i in range(WORDS - 1, -1, -1):
            if words[i] != self.limit.at[i]:
                return words[i] < self.limit.at[i]
        return False

    cdef tuple blobs(self, RowStore rows, const idx_t[::1] slots):
        cdef Py_ssize_t i, n = slots.shape[0]
        cdef bint all_fit = True
        cdef const uint64_t* cells
        cdef Words amount
        out, marks = np.zeros(n * VALUE_BYTES, dtype=np.uint8), np.zeros(n, dtype=np.uint8)
        cdef uint8_t[::1] data = out, valid = marks
        with nogil:
            for i in range(n):
                cells = <const uint64_t*> (<const char*> rows.head(slots[i]) + self.at)
                if not cells[WORDS]:
                    continue
                memcpy(amount.at, cells, sizeof(amount))
                if amount.at[WORDS - 1] >> 63:
                    negate(amount.at, WORDS)
                valid[i] = self.fits(amount.at)
                all_fit &= valid[i]
                if valid[i]:
                    memcpy(&data[i * VALUE_BYTES], cells, VALUE_BYTES)
        if not all_fit and not self.null_on_overflow:
            raise AggregateOverflowError(
                f"{self.name}: the result of a window has more than {self.digits} digits; cast the column to fewer "
                "digits or to float64, or use on_overflow='null'"
            )
        offsets = np.arange(n + 1, dtype=np.int64) * VALUE_BYTES
        return offsets, out, None if marks.all() else marks.view(np.bool_)

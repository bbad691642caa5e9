"""Count, Sum, Min, Max, Mean over the cells of rows: add a column, merge two rows, give the results."""

import numpy as np

from fastwin.core.accumulators.accumulator_set import Accumulator, AccumulatorSet

from libc.math cimport INFINITY, NAN
from libc.stdint cimport INT64_MAX, INT64_MIN

from fastwin.core.typedefs cimport idx_t, int64_t, uint8_t, uint64_t
from fastwin.core.accumulators.accumulator_set cimport NO_VALUE, NULL_VALUE, VALUE, Accumulator as Base, Column, Merge
from fastwin.core.accumulators.accumulator_set cimport Take
from fastwin.core.accumulators.accumulator_set cimport bits_of, has, into, taken, wanted
from fastwin.core.accumulators.fused cimport (
    COUNT, HIGHEST, LOWEST, MEAN, OTHER, TOTAL, below, merge_total, number)
from fastwin.core.accumulators.totals cimport add_float, float_mean, float_sum, int_mean
from fastwin.core.memory.bounds cimport check_length
from fastwin.core.memory.int128 cimport add_int, add_unsigned, int128
from fastwin.errors import AggregateOverflowError

__all__ = ["Accumulator", "AccumulatorSet", "Count", "Extreme", "Max", "Mean", "Min", "Sum", "int_means"]


cdef class Count(Base):
    """Counts rows, or with a column the values that are not null. Cells: the count."""

    def __cinit__(self, dtype="int64", int column=0):
        self.takes_values = self.gives_float = False
        self.role = COUNT

    cdef void add(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, Column column) noexcept nogil:
        cdef Py_ssize_t i
        if column.valid == NULL:
            for i in range(n):
                (<int64_t*> (rows + slots[i] * stride + self.at))[0] += 1
        else:
            for i in range(n):
                (<int64_t*> (rows + slots[i] * stride + self.at))[0] += column.valid[i] != 0

    cdef void merge(self, Merge pairs) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(pairs.n):
            (<int64_t*> (into(&pairs, i) + self.at))[0] += (<const int64_t*> (taken(&pairs, i) + self.at))[0]

    cdef void take(self, const Take* rows, void* values, uint8_t* marks) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(rows.n):
            (<int64_t*> values)[i] = (<const int64_t*> (wanted(rows, i) + self.at))[0]
            marks[i] = VALUE            # a count is never null


cdef inline void merge_totals(const Merge* pairs, Py_ssize_t at, bint is_float) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(pairs.n):
        merge_total(is_float, into(pairs, i) + at, taken(pairs, i) + at)


cdef class Sum(Base):
    """Sums. int64: exact in 128 bits, so that only a result beyond int64 is an overflow, whatever
    the order; float64: with the rounding error carried along (Knuth's two-sum), also beyond the largest float64, so
    that only a result there is infinite. Cells: two.

    on_overflow: what result() makes of an int64 sum that does not fit, ``"raise"`` (AggregateOverflowError) or
        ``"null"``. name: how the error calls it. unsigned: whether values and results are the bits of uint64.
    """

    cdef bint null_on_overflow, unsigned
    cdef readonly str name

    def __cinit__(self, dtype="int64", int column=0, on_overflow="raise", name="Sum", bint unsigned=False):
        if on_overflow not in ("raise", "null"):
            raise ValueError(f"Sum: on_overflow must be 'raise' or 'null', got {on_overflow!r}")
        self.cells = 2
        self.role = OTHER if unsigned else TOTAL
        self.unsigned = unsigned
        self.null_on_overflow = on_overflow == "null"
        self.name = name

    cdef void add(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, Column column) noexcept nogil:
        cdef Py_ssize_t i
        cdef char* row
        cdef const int64_t* ints = <const int64_t*> column.values
        cdef const double* floats = <const double*> column.values
        if self.is_float:
            for i in range(n):
                if has(column.valid, i):
                    row = rows + slots[i] * stride
                    add_float(row + self.at, floats[i])
                    bits_of(row)[0] |= self.seen
        else:
            for i in range(n):
                if has(column.valid, i):
                    row = rows + slots[i] * stride
                    if self.unsigned:
                        add_unsigned(row + self.at, <uint64_t> ints[i])
                    else:
                        add_int(row + self.at, ints[i])
                    bits_of(row)[0] |= self.seen

    cdef void merge(self, Merge pairs) noexcept nogil:
        merge_totals(&pairs, self.at, self.is_float)

    cdef void take(self, const Take* rows, void* values, uint8_t* marks) noexcept nogil:
        cdef Py_ssize_t i
        cdef const char* cells
        for i in range(rows.n):
            cells = wanted(rows, i) + self.at
            if self.is_float:
                (<double*> values)[i] = float_sum(cells)
            else:
                (<int64_t*> values)[i] = <int64_t> (<const int128*> cells)[0]
                if (<const int128*> cells)[0] >> 64 != 0 if self.unsigned else (
                        (<int64_t*> values)[i] != (<const int128*> cells)[0]):
                    marks[i] = NULL_VALUE if self.null_on_overflow else NO_VALUE

    cdef int fail(self) except -1:
        raise AggregateOverflowError(
            f"{self.name}: the sum of a window is outside {'uint64' if self.unsigned else 'int64'}; use "
            "Sum(..., on_overflow='null') or a float column"
        )


cdef inline void keep_extreme(number* cell, number value, bint largest) noexcept nogil:
    if below(cell[0], value) if largest else below(value, cell[0]):
        cell[0] = value


cdef void add_extremes(Base self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n,
                       const number* values, const uint8_t* valid, bint largest) noexcept nogil:
    cdef Py_ssize_t i
    cdef char* row
    for i in range(n):
        if has(valid, i):
            row = rows + slots[i] * stride
            keep_extreme(<number*> (row + self.at), values[i], largest)
            bits_of(row)[0] |= self.seen


cdef class Extreme(Base):
    """The smallest or the largest value. Cells: the value. Use Min or Max."""

    cdef bint largest

    cdef void blank(self, char* row) noexcept nogil:
        # What any value replaces: the other end of the order.
        if self.is_float:
            (<double*> (row + self.at))[0] = -INFINITY if self.largest else NAN
        else:
            (<int64_t*> (row + self.at))[0] = INT64_MIN if self.largest else INT64_MAX

    cdef void add(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, Column column) noexcept nogil:
        if self.is_float:
            add_extremes(self, rows, stride, slots, n, <const double*> column.values, column.valid, self.largest)
        else:
            add_extremes(self, rows, stride, slots, n, <const int64_t*> column.values, column.valid, self.largest)

    cdef void merge(self, Merge pairs) noexcept nogil:
        cdef Py_ssize_t i
        if self.is_float:
            for i in range(pairs.n):
                keep_extreme(<double*> (into(&pairs, i) + self.at),
                             (<const double*> (taken(&pairs, i) + self.at))[0], self.largest)
        else:
            for i in range(pairs.n):
                keep_extreme(<int64_t*> (into(&pairs, i) + self.at),
                             (<const int64_t*> (taken(&pairs, i) + self.at))[0], self.largest)

    cdef void take(self, const Take* rows, void* values, uint8_t* marks) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(rows.n):
            (<int64_t*> values)[i] = (<const int64_t*> (wanted(rows, i) + self.at))[0]     # or a double: the bits


cdef class Min(Extreme):
    """The smallest value; NaN only where all values are NaN. -0.0 is below 0.0."""

    def __cinit__(self, dtype="int64", int column=0):
        self.role = LOWEST


cdef class Max(Extreme):
    """The largest value; NaN is above all others, and 0.0 above -0.0."""

    def __cinit__(self, dtype="int64", int column=0):
        self.largest = True
        self.role = HIGHEST


cdef class Mean(Base):
    """The mean, as float64. Cells: three.

    int64: the float64 nearest to the exact mean. float64: the sum, as in Sum, over the count; it is finite also where
    the sum is too large for a float64.
    """

    def __cinit__(self, dtype="int64", int column=0):
        self.cells = 3
        self.gives_float = True
        self.role = MEAN

    cdef void add(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, Column column) noexcept nogil:
        cdef Py_ssize_t i
        cdef char* cells
        cdef const int64_t* ints = <const int64_t*> column.values
        cdef const double* floats = <const double*> column.values
        for i in range(n):
            if has(column.valid, i):
                cells = rows + slots[i] * stride + self.at
                if self.is_float:
                    add_float(cells, floats[i])
                else:
                    add_int(cells, ints[i])
                (<int64_t*> cells)[2] += 1

    cdef void merge(self, Merge pairs) noexcept nogil:
        cdef Py_ssize_t i
        merge_totals(&pairs, self.at, self.is_float)
        for i in range(pairs.n):
            (<int64_t*> (into(&pairs, i) + self.at))[2] += (<const int64_t*> (taken(&pairs, i) + self.at))[2]

    cdef void take(self, const Take* rows, void* values, uint8_t* marks) noexcept nogil:
        cdef Py_ssize_t i
        cdef const char* cells
        cdef int64_t count
        for i in range(rows.n):
            cells = wanted(rows, i) + self.at
            count = (<const int64_t*> cells)[2]
            marks[i] = VALUE if count else NULL_VALUE
            if count == 0:
                (<double*> values)[i] = 0.0
            elif self.is_float:
                (<double*> values)[i] = float_mean(cells, count)
            else:
                (<double*> values)[i] = int_mean((<const int128*> cells)[0], <uint64_t> count)


def int_means(const int64_t[::1] sums not None, const int64_t[::1] counts not None):
    """Returns the float64 nearest to each mean, as Mean gives it: float64[n]; 0 where the count is not above 0.

    Raises ValueError for unequal lengths. O(n).
    """
    cdef Py_ssize_t i
    check_length("counts", counts.shape[0], sums.shape[0])
    out = np.zeros(sums.shape[0])
    cdef double[::1] means = out
    with nogil:
        for i in range(sums.shape[0]):
            if counts[i] > 0:
                means[i] = int_mean(sums[i], <uint64_t> counts[i])
    return out

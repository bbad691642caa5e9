"""Quantile: a sketch of counts in buckets that grow with the values, after DDSketch, and what it says of a rank.

Masson, Rim, Lee, "DDSketch: a fast and fully-mergeable quantile sketch with relative-error guarantees" (2019). Buckets
are never collapsed, so the error holds for all quantiles, and two sketches of the same values are always the same.
"""

cimport cython
from libc.math cimport INFINITY, NAN, ceil, exp, fabs, isnan, log, log1p
from libc.stdint cimport INT64_MAX, INT64_MIN

from fastwin.core.typedefs cimport idx_t, int64_t, uint8_t
from fastwin.core.accumulators.accumulator_set cimport NO_VALUE, NULL_VALUE, VALUE, Accumulator as Base, Column, Merge
from fastwin.core.accumulators.accumulator_set cimport Take, bits_of, check_column, has, into, taken, wanted
from fastwin.core.bags.records cimport MOST_WORDS, Shape
from fastwin.core.bags.runs cimport Run, add_record, is_run, merge_runs, run_in, settle

__all__ = ["Quantile"]

cdef extern from "<float.h>":
    const double SMALLEST "DBL_MIN"
    const double LARGEST "DBL_MAX"

# A bucket's number is a record's key: 0 for numbers nearer to zero than SMALLEST, from 1 up for larger ones, below for
# negative ones; and these.
cdef enum:
    HIGHEST_EXPONENT = 710      # of e, what a double has

cdef const uint8_t* NO_TEXT = <const uint8_t*> <const char*> b""


cdef struct Cells:
    void* buckets
    double least                # of the finite values; the first is above the second where there is none
    double most


@cython.final
cdef class Quantile(Base):
    """The value at a rank, within a relative error. Cells: the block of buckets, the least and the most value.

    column: of float64 values. q: from 0 to 1, of the ranks 0 to n - 1: floor(q (n - 1)) is looked for. error: above 0,
    below 1. source: another Quantile of the same column and error, whose cells are read; then it has none of its own.
    """

    cdef Shape shape
    cdef double q, scale, shrink
    cdef int64_t middle         # what is added to the number of a bucket of values above 0
    cdef Quantile source
    cdef bint reads

    dtypes = ("float64",)

    def __cinit__(self, dtype="float64", int column=0, double q=0.5, double error=0.01, Quantile source=None):
        if not 0 <= q <= 1 or not 0.00001 <= error < 1:
            raise ValueError(f"Quantile: q must be from 0 to 1 and error from 0.00001 to below 1, got {q}, {error}")
        self.q = q
        self.scale = 1 / log1p(2 * error / (1 - error))
        self.shrink = log(1 - error)            # from the upper end of a bucket to what stands for it
        self.middle = <int64_t> ceil(HIGHEST_EXPONENT * self.scale)
        self.shape.words, self.shape.keys, self.shape.counts = 2, 1, 1
        self.shape.distinct, self.shape.limit = True, INT64_MAX
        self.cells = 3
        self.owned = (0,)
        if source is not None:
            self.source, self.reads = source, True
            self.takes_values, self.column = False, -1
            self.cells, self.owned, self.fallible = 0, (), True

    cdef inline char* cell(self, const char* row) noexcept nogil:
        return <char*> row + (self.source.at if self.reads else self.at)

    cdef inline int64_t bucket_of(self, double value) noexcept nogil:
        cdef int64_t above
        if isnan(value):
            return INT64_MAX
        if fabs(value) > LARGEST:
            return INT64_MAX - 1 if value > 0 else INT64_MIN
        if fabs(value) < SMALLEST:
            return 0
        above = self.middle + <int64_t> ceil(log(fabs(value)) * self.scale)
        return above if value > 0 else -above

    @cython.cdivision(True)
    cdef inline double value_of(self, int64_t bucket, const Cells* cells) noexcept nogil:
        """What stands for the values of a bucket."""
        cdef double found
        if bucket == INT64_MAX:
            return NAN
        if bucket == INT64_MAX - 1 or bucket == INT64_MIN:
            return INFINITY if bucket > 0 else -INFINITY
        if bucket == 0:
            found = 0.0
        else:
            found = exp(<double> ((bucket if bucket > 0 else -bucket) - self.middle) / self.scale + self.shrink)
            found = found if bucket > 0 else -found
        return min(max(found, cells.least), cells.most)

    cdef void blank(self, char* row) noexcept nogil:
        cdef Cells* cells = <Cells*> (row + self.at)
        if not self.reads:
            cells.least, cells.most = INFINITY, -INFINITY

    cdef int check_columns(self, list held) except -1:
        if not self.reads:
            check_column(self, held, self.column, "float64")
        return 0

    cdef void add(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, Column column) noexcept nogil:
        cdef const double* values = <const double*> column.values
        cdef int64_t[MOST_WORDS] record
        cdef double value
        cdef Py_ssize_t i
        cdef char* row
        cdef Cells* cells
        for i in range(n if not self.reads else 0):
            if not has(column.valid, i):
                continue
            row = rows + slots[i] * stride
            cells = <Cells*> (row + self.at)
            value = values[i] + 0.0         # no -0.0
            if fabs(value) <= LARGEST:
                cells.least, cells.most = min(cells.least, value), max(cells.most, value)
            record[0], record[1] = self.bucket_of(value), 1
            if not add_record(<char*> cells, &self.shape, record, NO_TEXT):
                self.starved = True
            bits_of(row)[0] |= self.seen

    cdef void merge(self, Merge pairs) noexcept nogil:
        cdef Py_ssize_t i
        cdef Cells* cells
        cdef const Cells* others
        for i in range(pairs.n if not self.reads else 0):
            cells, others = <Cells*> (into(&pairs, i) + self.at), <const Cells*> (taken(&pairs, i) + self.at)
            cells.least, cells.most = min(cells.least, others.least), max(cells.most, others.most)
            # Putting the other run in order changes nothing of what it holds.
            if not merge_runs(<char*> cells, <char*> others, &self.shape):
                self.starved = True

    cdef void take(self, const Take* rows, void* values, uint8_t* marks) noexcept nogil:
        cdef Py_ssize_t i, k
        cdef int64_t total, rank, before, bucket
        cdef char* cell
        cdef const Cells* cells
        cdef Run run
        for i in range(rows.n):
            cell = self.cell(wanted(rows, i))
            marks[i] = VALUE if settle(cell, &self.shape) else NO_VALUE
            run = run_in(cell, &self.shape)
            total = 0
            for k in range(run.n):
                total += run.records[2 * k + 1]
            if total == 0:
                marks[i] = NULL_VALUE
                continue
            rank = <int64_t> (self.q * <double> (total - 1))
            k = 0
            before = 0
            while before + run.records[2 * k + 1] <= rank:
                before += run.records[2 * k + 1]
                k += 1
            bucket, cells = run.records[2 * k], <const Cells*> cell
            if INT64_MIN < bucket < INT64_MAX - 1 and rank in (0, total - 1):
                (<double*> values)[i] = cells.least if rank == 0 else cells.most
            else:
                (<double*> values)[i] = self.value_of(bucket, cells)

    cdef int fail(self) except -1:
        raise MemoryError("Quantile: no memory to put the buckets of a window in order")

    cdef bint tidy(self, char* row) noexcept nogil:
        return settle(row + self.at, &self.shape)

    cdef bint sound(self, const char* row) noexcept nogil:
        return is_run(row + self.at, &self.shape)

"""Quantile: a sketch of counts in buckets that grow with the values, after DDSketch, and what it says of a rank.

Masson, Rim, Lee, "DDSketch: a fast and fully-mergeable quantile sketch with relative-error guarantees" (2019). Buckets
are never collapsed, so the error holds for all quantiles, and two sketches of the same values are always the same.
"""

cimport cython
from libc.math cimport INFINITY, NAN, exp, fabs, log
from libc.stdint cimport INT64_MAX

from fastwin.core.typedefs cimport idx_t, int64_t, uint8_t, uint64_t
from fastwin.core.accumulators.accumulator_set cimport NO_VALUE, NULL_VALUE, VALUE, Accumulator as Base, Column, Merge
from fastwin.core.accumulators.accumulator_set cimport Take, bits_of, check_column, has, into, taken, wanted
from fastwin.core.bags.adding cimport AHEAD, fetch_cells
from fastwin.core.bags.buckets cimport (
    HIGHEST_BUCKET, LARGEST, LOWEST_BUCKET, NAN_BUCKET, Scale, find_buckets, set_scale)
from fastwin.core.bags.counters cimport (
    add_bucket, bucket_of_rank, count_values, counters_in, is_countable, is_counted, merge_counts, place_of,
    settle_counts, values_in)
from fastwin.core.bags.records cimport Shape
from fastwin.core.bags.runs cimport is_run, settle
from fastwin.core.memory.equal cimport are_one
from fastwin.core.memory.pages cimport prefetch_to_write

__all__ = ["Quantile"]

cdef enum:
    AT_ONCE = 256               # values whose buckets are found before they are counted


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
    cdef Scale scale
    cdef double q, shrink
    cdef Quantile source
    cdef bint reads

    dtypes = ("float64",)

    def __cinit__(self, dtype="float64", int column=0, double q=0.5, double error=0.01, Quantile source=None):
        if not 0 <= q <= 1 or not 0.00001 <= error < 1:
            raise ValueError(f"Quantile: q must be from 0 to 1 and error from 0.00001 to below 1, got {q}, {error}")
        self.q = q
        set_scale(&self.scale, error)
        self.shrink = log(1 - error)            # from the upper end of a bucket to what stands for it
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

    @cython.cdivision(True)
    cdef inline double value_of(self, int64_t bucket, const Cells* cells) noexcept nogil:
        """What stands for the values of a bucket."""
        cdef double found
        if bucket == NAN_BUCKET:
            return NAN
        if bucket in (HIGHEST_BUCKET, LOWEST_BUCKET):
            return INFINITY if bucket > 0 else -INFINITY
        if bucket == 0:
            found = 0.0
        else:
            found = exp(<double> ((bucket if bucket > 0 else -bucket) - self.scale.middle) / self.scale.scale
                        + self.shrink)
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
        cdef Py_ssize_t at = 0
        while at < n and not self.reads:
            self.add_some(rows, stride, slots + at, min(n - at, <Py_ssize_t> AT_ONCE), &column, at)
            at += AT_ONCE

    cdef void add_some(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, const Column* column,
                       Py_ssize_t offset) noexcept nogil:
        """Adds up to AT_ONCE values, at least one, from an offset of the column on."""
        cdef const double* values = <const double*> column.values + offset
        cdef const uint8_t* valid = column.valid + offset if column.valid != NULL else NULL
        cdef int64_t[AT_ONCE] buckets
        cdef double[AT_ONCE] places
        cdef const Shape* shape = &self.shape
        cdef Py_ssize_t at = self.at, i
        cdef uint64_t seen = self.seen
        cdef bint one = are_one(slots, n)
        cdef double value
        cdef char* row
        cdef Cells* cells
        find_buckets(&self.scale, values, n, places, buckets)
        for i in range(n):
            if not one and i + 3 * AHEAD < n:
                fetch_cells(rows, stride, slots + i, at)
                prefetch_to_write(<void*> place_of(rows + slots[i + AHEAD] * stride + at, buckets[i + AHEAD]))
            if not has(valid, i):
                continue
            row = rows + slots[i] * stride
            cells = <Cells*> (row + at)
            value = values[i] + 0.0         # no -0.0
            if fabs(value) <= LARGEST:
                if value < cells.least:
                    cells.least = value
                if value > cells.most:
                    cells.most = value
            if not (is_counted(<char*> cells) and count_values(counters_in(<char*> cells), buckets[i], 1)) and (
                    not add_bucket(<char*> cells, buckets[i], 1, shape)):
                self.starved = True
            bits_of(row)[0] |= seen

    cdef void merge(self, Merge pairs) noexcept nogil:
        cdef Py_ssize_t i
        cdef Cells* cells
        cdef const Cells* others
        for i in range(pairs.n if not self.reads else 0):
            cells, others = <Cells*> (into(&pairs, i) + self.at), <const Cells*> (taken(&pairs, i) + self.at)
            cells.least, cells.most = min(cells.least, others.least), max(cells.most, others.most)
            if not merge_counts(<char*> cells, <char*> others, &self.shape):
                self.starved = True

    cdef void take(self, const Take* rows, void* values, uint8_t* marks) noexcept nogil:
        cdef Py_ssize_t i
        cdef int64_t total, rank, bucket
        cdef char* cell
        cdef const Cells* cells
        for i in range(rows.n):
            cell = self.cell(wanted(rows, i))
            marks[i] = VALUE if is_counted(cell) or settle(cell, &self.shape) else NO_VALUE
            if marks[i] == NO_VALUE:
                continue
            total = values_in(cell, &self.shape)
            if total == 0:
                marks[i] = NULL_VALUE
                continue
            rank = <int64_t> (self.q * <double> (total - 1))
            bucket, cells = bucket_of_rank(cell, &self.shape, rank), <const Cells*> cell
            if LOWEST_BUCKET < bucket < HIGHEST_BUCKET and rank in (0, total - 1):
                (<double*> values)[i] = cells.least if rank == 0 else cells.most
            else:
                (<double*> values)[i] = self.value_of(bucket, cells)

    cdef int fail(self) except -1:
        raise MemoryError("Quantile: no memory to put the buckets of a window in order")

    cdef bint tidy(self, char* row) noexcept nogil:
        return settle_counts(row + self.at, &self.shape)

    cdef bint sound(self, const char* row) noexcept nogil:
        return is_run(row + self.at, &self.shape) and is_countable(row + self.at, &self.shape)

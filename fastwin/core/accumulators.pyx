"""Count, Sum, Min, Max, Mean over the cells of rows: add a column, merge two rows, give the results."""

import numpy as np

from libc.math cimport INFINITY, NAN, isfinite, isnan
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from fastwin._typedefs cimport idx_t, int64_t, uint8_t, uint64_t
from fastwin.core.rows cimport HEAD_BYTES, LIVE_BIT, RowStore
from fastwin.errors import AggregateOverflowError

cdef extern from *:
    """
    /* Rows are aligned to 8 bytes only. */
    typedef __int128 fastwin_int128 __attribute__((aligned(8)));
    """
    ctypedef long long int128 "fastwin_int128"

cdef enum:
    MAX_MEMBERS = LIVE_BIT      # one bit each

ctypedef fused number:
    int64_t
    double


cdef inline uint64_t* bits_of(char* row) noexcept nogil:
    return <uint64_t*> row


cdef inline char* into(const Merge* pairs, Py_ssize_t i) noexcept nogil:
    return pairs.rows + pairs.slots[i] * pairs.stride


cdef inline const char* taken(const Merge* pairs, Py_ssize_t i) noexcept nogil:
    return pairs.from_rows + pairs.from_slots[i] * pairs.stride


cdef inline bint has(const uint8_t* valid, Py_ssize_t i) noexcept nogil:
    return valid == NULL or valid[i]


cdef class Accumulator:
    """What one aggregate keeps in each row. The base of those below; it is not used by itself.

    dtype: ``"int64"`` or ``"float64"``, the type of the values it takes.
    column: index of the input column that feeds it, -1 for none.

    Null values are skipped, as SQL does; a result without a value is null.
    """

    dtypes = ("int64", "float64")

    def __cinit__(self, dtype="int64", int column=0, *args, **kwargs):
        if dtype not in self.dtypes:
            raise ValueError(f"{type(self).__name__}: dtype must be one of {self.dtypes}, got {dtype!r}")
        self.is_float = dtype == "float64"
        self.column = column
        self.cells = 1

    cdef void blank(self, char* row) noexcept nogil:
        pass

    cdef void add(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, Column column) noexcept nogil:
        pass

    cdef void merge(self, Merge pairs) noexcept nogil:
        pass

    def result(self, RowStore rows not None, const idx_t[::1] slots not None):
        """Returns ``(values, valid)`` of the rows; valid is None where no value is null."""
        raise NotImplementedError

    def _valid(self, RowStore rows, const idx_t[::1] slots):
        cdef Py_ssize_t i, nulls = 0
        out = np.empty(slots.shape[0], dtype=np.uint8)
        cdef uint8_t[::1] view = out
        for i in range(slots.shape[0]):
            view[i] = (bits_of(<char*> rows.head(slots[i]))[0] & self.seen) != 0
            nulls += not view[i]
        return out.view(np.bool_) if nulls else None


cdef class Count(Accumulator):
    """Counts rows, or with a column the values that are not null. Cells: the count."""

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

    def result(self, RowStore rows not None, const idx_t[::1] slots not None):
        """Returns ``(int64[n], None)``: a count is never null."""
        return rows.cells(slots, self.at // 8), None


cdef inline void add_exact(char* cells, double value) noexcept nogil:
    # Knuth's two-sum: the second cell gathers what rounding took from the first.
    cdef double* total = <double*> cells
    cdef double before = total[0], after = before + value, part = after - before
    total[0] = after
    total[1] += (before - (after - part)) + (value - part)


cdef inline double exact_total(const char* cells) noexcept nogil:
    cdef const double* total = <const double*> cells
    return total[0] + total[1] if isfinite(total[0]) else total[0]


cdef inline void merge_totals(const Merge* pairs, Py_ssize_t at, bint is_float) noexcept nogil:
    cdef Py_ssize_t i
    cdef char* cells
    cdef const char* other
    for i in range(pairs.n):
        cells = into(pairs, i) + at
        other = taken(pairs, i) + at
        if is_float:
            add_exact(cells, (<const double*> other)[0])
            (<double*> cells)[1] += (<const double*> other)[1]
        else:
            (<int128*> cells)[0] += (<const int128*> other)[0]


cdef class Sum(Accumulator):
    """Sums. int64: exact in 128 bits, so that only a result beyond int64 is an overflow, whatever
    the order; float64: with the rounding error carried along (Knuth's two-sum). Cells: two.

    on_overflow: ``"raise"`` (AggregateOverflowError) or ``"null"``.
    """

    cdef bint null_on_overflow
    cdef readonly str name

    def __cinit__(self, dtype="int64", int column=0, on_overflow="raise", name="Sum"):
        if on_overflow not in ("raise", "null"):
            raise ValueError(f"Sum: on_overflow must be 'raise' or 'null', got {on_overflow!r}")
        self.cells = 2
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
                    add_exact(row + self.at, floats[i])
                    bits_of(row)[0] |= self.seen
        else:
            for i in range(n):
                if has(column.valid, i):
                    row = rows + slots[i] * stride
                    (<int128*> (row + self.at))[0] += ints[i]
                    bits_of(row)[0] |= self.seen

    cdef void merge(self, Merge pairs) noexcept nogil:
        merge_totals(&pairs, self.at, self.is_float)

    def result(self, RowStore rows not None, const idx_t[::1] slots not None):
        """Returns ``(int64[n] or float64[n], valid)``.

        Raises AggregateOverflowError if an exact int64 sum does not fit and on_overflow is "raise".
        """
        cdef Py_ssize_t i, overflows = 0, n = slots.shape[0]
        valid = self._valid(rows, slots)
        out = np.empty(n, dtype=np.float64 if self.is_float else np.int64)
        cdef double[::1] floats
        cdef int64_t[::1] ints
        cdef int128 total
        if self.is_float:
            floats = out
            for i in range(n):
                floats[i] = exact_total(<char*> rows.head(slots[i]) + self.at)
            return out, valid
        fits = np.ones(n, dtype=np.uint8)
        cdef uint8_t[::1] fit = fits
        ints = out
        for i in range(n):
            total = (<int128*> (<char*> rows.head(slots[i]) + self.at))[0]
            ints[i] = <int64_t> total
            if ints[i] != total:
                fit[i] = 0
                overflows += 1
        if not overflows:
            return out, valid
        if not self.null_on_overflow:
            raise AggregateOverflowError(
                f"{self.name}: the sum of a window is outside int64; use Sum(..., on_overflow='null') or a float column"
            )
        return out, fits.view(np.bool_) if valid is None else valid & fits.view(np.bool_)


cdef inline bint below(number a, number b) noexcept nogil:
    # NaN is above all other values, as in Spark and PostgreSQL.
    if number is double:
        return a < b or (isnan(b) and not isnan(a))
    else:
        return a < b


cdef inline void keep_extreme(number* cell, number value, bint largest) noexcept nogil:
    if below(cell[0], value) if largest else below(value, cell[0]):
        cell[0] = value


cdef void add_extremes(Accumulator self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n,
                       const number* values, const uint8_t* valid, bint largest) noexcept nogil:
    cdef Py_ssize_t i
    cdef char* row
    for i in range(n):
        if has(valid, i):
            row = rows + slots[i] * stride
            keep_extreme(<number*> (row + self.at), values[i], largest)
            bits_of(row)[0] |= self.seen


cdef class Extreme(Accumulator):
    """The smallest or the largest value. Cells: the value. Use Min or Max."""

    cdef bint largest

    cdef void blank(self, char* row) noexcept nogil:
        # What any value replaces: the other end of the order.
        if self.is_float:
            (<double*> (row + self.at))[0] = -INFINITY if self.largest else NAN
        else:
            (<int64_t*> (row + self.at))[0] = -0x7fffffffffffffff - 1 if self.largest else 0x7fffffffffffffff

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

    def result(self, RowStore rows not None, const idx_t[::1] slots not None):
        """Returns ``(int64[n] or float64[n], valid)``."""
        values = rows.cells(slots, self.at // 8)
        return values.view(np.float64) if self.is_float else values, self._valid(rows, slots)


cdef class Min(Extreme):
    """The smallest value; NaN only where all values are NaN."""


cdef class Max(Extreme):
    """The largest value; NaN is above all others."""

    def __cinit__(self, dtype="int64", int column=0):
        self.largest = True


cdef class Mean(Accumulator):
    """The mean, as float64: exact sum (as in Sum) over count. Cells: three."""

    def __cinit__(self, dtype="int64", int column=0):
        self.cells = 3

    cdef void add(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, Column column) noexcept nogil:
        cdef Py_ssize_t i
        cdef char* cells
        cdef const int64_t* ints = <const int64_t*> column.values
        cdef const double* floats = <const double*> column.values
        for i in range(n):
            if has(column.valid, i):
                cells = rows + slots[i] * stride + self.at
                if self.is_float:
                    add_exact(cells, floats[i])
                else:
                    (<int128*> cells)[0] += ints[i]
                (<int64_t*> cells)[2] += 1

    cdef void merge(self, Merge pairs) noexcept nogil:
        cdef Py_ssize_t i
        merge_totals(&pairs, self.at, self.is_float)
        for i in range(pairs.n):
            (<int64_t*> (into(&pairs, i) + self.at))[2] += (<const int64_t*> (taken(&pairs, i) + self.at))[2]

    def result(self, RowStore rows not None, const idx_t[::1] slots not None):
        """Returns ``(float64[n], valid)``."""
        cdef Py_ssize_t i, n = slots.shape[0]
        counts = rows.cells(slots, self.at // 8 + 2)
        out = np.empty(n, dtype=np.float64)
        cdef double[::1] view = out
        cdef const int64_t[::1] count = counts
        cdef char* cells
        for i in range(n):
            cells = <char*> rows.head(slots[i]) + self.at
            if count[i] == 0:
                view[i] = 0.0
            elif self.is_float:
                view[i] = exact_total(cells) / <double> count[i]
            else:
                view[i] = <double> (<long double> (<int128*> cells)[0] / <long double> count[i])
        return out, None if counts.all() else counts != 0


cdef class AccumulatorSet:
    """The accumulators of a row, side by side.

    members: the accumulators, in the order of their cells; each belongs to one set only.
    head_cells: how many cells of a row are taken in front of them.

    Raises ValueError for more than 63 members.
    """

    def __cinit__(self, members, Py_ssize_t head_cells=HEAD_BYTES // 8):
        cdef Accumulator member
        cdef Py_ssize_t cell = head_cells
        self.members = tuple(members)
        self.head_cells = head_cells
        if len(self.members) > MAX_MEMBERS:
            raise ValueError(f"aggregates: at most {MAX_MEMBERS} in one spec, got {len(self.members)}")
        for i, member in enumerate(self.members):
            member.at = cell * 8
            member.seen = (<uint64_t> 1) << <int> i
            cell += member.cells
            self.columns = max(self.columns, member.column + 1)
        self._column = <Column*> calloc(max(self.columns, 1), sizeof(Column))
        if self._column == NULL:
            raise MemoryError("AccumulatorSet: no memory for the columns")

    def __dealloc__(self):
        free(self._column)

    @property
    def cells(self):
        """Cells of a row, the head's and the members'."""
        return self.head_cells + sum(member.cells for member in self.members)

    def blank(self):
        """Returns what a fresh row holds: int64[cells]."""
        out = np.zeros(self.cells, dtype=np.int64)
        cdef int64_t[::1] view = out
        cdef Accumulator member
        for member in self.members:
            member.blank(<char*> &view[0])
        return out

    cdef int hold(self, list columns, Py_ssize_t n) except -1:
        """Takes the columns that the next calls of add() read: ``(values, valid)`` pairs; see add_rows."""
        cdef const int64_t[::1] ints
        cdef const double[::1] floats
        cdef const uint8_t[::1] valid
        cdef Py_ssize_t i
        if len(columns) != self.columns:
            raise ValueError(f"columns: the accumulators read {self.columns}, got {len(columns)}")
        self._held = columns
        memset(self._column, 0, max(self.columns, 1) * sizeof(Column))
        for i in range(self.columns):
            values, mask = columns[i]
            if values is not None:
                if len(values) != n:
                    raise ValueError(f"columns: column {i} has {len(values)} values for {n} rows")
                if n and values.dtype == np.float64:
                    floats = values
                    self._column[i].values = &floats[0]
                elif n:
                    ints = values
                    self._column[i].values = &ints[0]
            if mask is not None and n:
                valid = mask.view(np.uint8)
                if valid.shape[0] != n:
                    raise ValueError(f"columns: column {i} has a mask of {valid.shape[0]} for {n} rows")
                self._column[i].valid = &valid[0]
        for member in self.members:
            if member.column >= 0 and not isinstance(member, Count):
                values = columns[member.column][0]
                if values is None or (values.dtype == np.float64) != member.is_float:
                    raise ValueError(f"columns: column {member.column} does not suit {type(member).__name__}")
        return 0

    cdef void add(self, RowStore rows, const idx_t* slots, Py_ssize_t n, Py_ssize_t offset) noexcept:
        """Adds values [offset, offset + n) of the held columns to the rows."""
        cdef Accumulator member
        cdef Column column
        for member in self.members:
            column.values = NULL
            column.valid = NULL
            if member.column >= 0:
                column = self._column[member.column]
                if column.values != NULL:
                    column.values = <const char*> column.values + offset * 8
                if column.valid != NULL:
                    column.valid = column.valid + offset
            member.add(rows.data, rows.stride, slots, n, column)

    cdef void merge(self, RowStore rows, const idx_t* slots, RowStore others, const idx_t* from_slots,
                    Py_ssize_t n) noexcept:
        """Merges rows of others into rows; both stores have the layout of this set."""
        cdef Accumulator member
        cdef Merge pairs
        cdef Py_ssize_t i
        pairs.rows = rows.data
        pairs.from_rows = others.data
        pairs.slots = slots
        pairs.from_slots = from_slots
        pairs.stride = rows.stride
        pairs.n = n
        for i in range(n):
            bits_of(into(&pairs, i))[0] |= (<const uint64_t*> taken(&pairs, i))[0]
        for member in self.members:
            member.merge(pairs)

    def add_rows(self, RowStore rows not None, const idx_t[::1] slots not None, list columns not None):
        """Adds one value a slot.

        columns: ``(values, valid)`` a column: int64[n] or float64[n] (None where only nulls are
            counted) and bool[n] (None: no nulls).
        Raises ValueError if the columns do not suit the members.
        """
        self.hold(columns, slots.shape[0])
        if slots.shape[0]:
            self.add(rows, &slots[0], slots.shape[0], 0)

    def merge_rows(self, RowStore rows not None, const idx_t[::1] slots not None,
                   RowStore others not None, const idx_t[::1] from_slots not None):
        """Merges row ``from_slots[i]`` of others into row ``slots[i]``, in order of i."""
        if slots.shape[0] != from_slots.shape[0]:
            raise ValueError(f"slots: {slots.shape[0]} rows to merge into, {from_slots.shape[0]} to merge")
        if rows.stride != others.stride or rows.stride != self.cells * 8:
            raise ValueError(f"rows: of {rows.stride} and {others.stride} bytes, but the set has {self.cells * 8}")
        if slots.shape[0]:
            self.merge(rows, &slots[0], others, &from_slots[0], slots.shape[0])

    def results(self, RowStore rows not None, const idx_t[::1] slots not None):
        """Returns ``(values, valid)`` of each member; see Accumulator.result."""
        return [member.result(rows, slots) for member in self.members]

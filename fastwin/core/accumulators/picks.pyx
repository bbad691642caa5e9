"""Pick: the value of one element of a row's, chosen by an order: the first or last in time, or at an extreme."""

import numpy as np

cimport cython
from libc.math cimport isnan
from libc.string cimport memcmp, memcpy

from fastwin.core.typedefs cimport idx_t, int64_t, uint8_t
from fastwin.core.accumulators.accumulator_set cimport NULL_VALUE, Accumulator as Base, Column, Merge, Take
from fastwin.core.accumulators.accumulator_set cimport bits_of, check_column, has, into, number_behind, taken
from fastwin.core.accumulators.accumulator_set cimport valid_at, values_at, wanted
from fastwin.core.memory.owned cimport bytes_in, put_block, size_in
from fastwin.core.rows.rowstore cimport RowStore

__all__ = ["Pick"]

cdef enum:
    NUMBER = 0
    FLOAT = 1
    TEXT = 2

cdef struct Cells:
    int64_t arrived             # which element of all it was, -1: none yet
    int64_t time
    int64_t value               # or a double, or a block of text
    int64_t order               # likewise, where an extreme is looked for; or whether the value is null

cdef struct Element:            # or a row's, to be compared with
    int64_t arrived
    int64_t time
    int64_t order               # or the bits of a double
    const uint8_t* text
    int64_t length

cdef dict KINDS = {"int64": NUMBER, "float64": FLOAT, "text": TEXT}


cdef inline int sign_of(bint above, bint below) noexcept nogil:
    return <int> above - <int> below


cdef inline int compare_floats(double a, double b) noexcept nogil:
    if isnan(a) or isnan(b):            # NaN is above all others
        return sign_of(isnan(a), isnan(b))
    return sign_of(a > b, a < b)


cdef inline int compare_text(const uint8_t* a, int64_t n, const uint8_t* b, int64_t m) noexcept nogil:
    cdef int found = memcmp(a, b, min(n, m)) if n and m else 0
    return found if found else sign_of(n > m, n < m)


cdef inline double as_float(int64_t bits) noexcept nogil:
    cdef double value
    memcpy(&value, &bits, 8)
    return value


@cython.final
cdef class Pick(Base):
    """Keeps the value of one element. Cells: three, and one more for an extreme, or where a null may be kept.

    dtype, column: of the values: int64, float64 or text. time: index of the column of event times, ms; -1: the time
    does not matter. arrival: index of the column of arrivals; -1: elements come as they have arrived. rows: index of
    the column that tells which elements count, null or not; -1: those that are not null. order_dtype,
    order: of the column whose extreme is looked for; None and -1: none, time alone decides.
    largest: whether the largest of that column wins. last: whether, among equals, the last one in time wins and, at
    the same time, the last to arrive; else the first.

    An element without value or order is passed over. NaN is above all other floats; text is compared by its bytes.
    """

    cdef int kind, order_kind, time, order, rows
    cdef bint largest, last

    def __cinit__(self, dtype="int64", int column=0, int time=-1, order_dtype=None, int order=-1, bint largest=False,
                  bint last=False, int arrival=-1, int rows=-1):
        if order_dtype not in (None, *KINDS) or (order_dtype is None) != (order < 0):
            raise ValueError(f"Pick: order_dtype must be one of {(*KINDS,)} and go with a column, got {order_dtype!r}")
        if column < 0 or (time < 0 and order >= 0) or (rows >= 0 and order >= 0):
            raise ValueError(f"Pick: needs a column of values, with an order also times, and then keeps no null, "
                             f"got {column}, {time} and {rows}")
        self.kind = KINDS[dtype]
        self.order_kind = NUMBER if order_dtype is None else KINDS[order_dtype]
        self.time, self.order, self.largest, self.last = time, order, largest, last
        self.arrival, self.rows = arrival, rows
        self.cells = 3 if order < 0 and rows < 0 else 4
        self.remembers = True
        self.gives_bytes = self.kind == TEXT
        self.owned = tuple([2] * (self.kind == TEXT) + [3] * (self.order_kind == TEXT))
        self.columns = tuple([index for index in (column, time, order, arrival, rows) if index >= 0])

    dtypes = ("int64", "float64", "text")

    cdef int check_columns(self, list held) except -1:
        check_column(self, held, self.column, self.dtypes[self.kind])
        for index in (self.time, self.arrival):
            if index >= 0:
                check_column(self, held, index, "int64")
        if self.order >= 0:
            check_column(self, held, self.order, self.dtypes[self.order_kind])
        return 0

    cdef void blank(self, char* row) noexcept nogil:
        (<Cells*> (row + self.at)).arrived = -1

    cdef inline Element element_of(self, const char* row) noexcept nogil:
        cdef const Cells* cells = <const Cells*> (row + self.at)
        cdef Element found
        found.arrived, found.time, found.order, found.text, found.length = cells.arrived, cells.time, 0, NULL, 0
        if self.order >= 0:
            if self.order_kind == TEXT:
                found.text, found.length = bytes_in(<const char*> &cells.order), size_in(<const char*> &cells.order)
            else:
                found.order = cells.order
        elif self.rows >= 0:
            found.order = cells.order
        return found

    cdef inline bint is_null(self, const char* row) noexcept nogil:
        return self.rows >= 0 and (<const Cells*> (row + self.at)).order

    cdef inline bint wins(self, const Element* one, const Element* other) noexcept nogil:
        """Whether the one is to be kept instead of the other."""
        cdef int found = 0
        if other.arrived < 0:
            return True
        if self.order >= 0:
            if self.order_kind == NUMBER:
                found = sign_of(one.order > other.order, one.order < other.order)
            elif self.order_kind == FLOAT:
                found = compare_floats(as_float(one.order), as_float(other.order))
            else:
                found = compare_text(one.text, one.length, other.text, other.length)
            if found:
                return (found > 0) == self.largest
        if one.time != other.time:
            return (one.time > other.time) == self.last
        return (one.arrived > other.arrived) == self.last

    cdef inline void keep(self, char* row, const Element* one, const void* value, int64_t length) noexcept nogil:
        """Keeps an element; value: a number, or ``length`` bytes of text."""
        cdef Cells* cells = <Cells*> (row + self.at)
        if self.kind != TEXT:
            cells.value = (<const int64_t*> value)[0]
        elif not put_block(<char*> &cells.value, <const uint8_t*> value, length):
            self.starved = True
        if self.order >= 0:
            if self.order_kind != TEXT:
                cells.order = one.order
            elif not put_block(<char*> &cells.order, one.text, one.length):
                self.starved = True
        elif self.rows >= 0:
            cells.order = one.order
        cells.arrived, cells.time = one.arrived, one.time
        bits_of(row)[0] |= self.seen

    cdef void add(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, Column column) noexcept nogil:
        cdef const int64_t* times = NULL
        cdef const int64_t* arrivals = NULL
        cdef const int64_t* values = <const int64_t*> column.values
        cdef const int64_t* orders = NULL
        cdef const uint8_t* valid = NULL
        cdef Py_ssize_t i
        cdef char* row
        cdef int64_t length
        cdef Element one, other
        one.order, one.text, one.length = 0, NULL, 0
        if self.order >= 0:
            orders = <const int64_t*> values_at(&column, self.order)
            valid = valid_at(&column, self.order)
        if self.rows >= 0:
            valid = valid_at(&column, self.rows)
        if self.time >= 0:
            times = <const int64_t*> values_at(&column, self.time)
        if self.arrival >= 0:
            arrivals = <const int64_t*> values_at(&column, self.arrival)
        for i in range(n):
            if not (has(valid, i) and (self.rows >= 0 or has(column.valid, i))):
                continue
            row = rows + slots[i] * stride
            one.arrived = column.arrived + i if arrivals == NULL else arrivals[i]
            one.time = 0 if times == NULL else times[i]
            if self.order >= 0:
                if self.order_kind == TEXT:
                    one.text, one.length = column.all[self.order].text + orders[i], orders[i + 1] - orders[i]
                else:
                    one.order = orders[i]
            elif self.rows >= 0:
                one.order = not has(column.valid, i)
            other = self.element_of(row)
            if not self.wins(&one, &other):
                continue
            if self.kind == TEXT:
                length = 0 if self.rows >= 0 and one.order else values[i + 1] - values[i]
                self.keep(row, &one, column.text + values[i], length)
            else:
                self.keep(row, &one, &values[i], 8)

    cdef void merge(self, Merge pairs) noexcept nogil:
        cdef Py_ssize_t i
        cdef char* row
        cdef const Cells* cells
        cdef const char* cell
        cdef Element one, other
        for i in range(pairs.n):
            cells = <const Cells*> (taken(&pairs, i) + self.at)
            if cells.arrived < 0:
                continue
            row = into(&pairs, i)
            one, other = self.element_of(taken(&pairs, i)), self.element_of(row)
            if self.wins(&one, &other):
                cell = <const char*> &cells.value
                if self.kind == TEXT:
                    self.keep(row, &one, bytes_in(cell), size_in(cell))
                else:
                    self.keep(row, &one, cell, 8)

    cdef void take(self, const Take* rows, void* values, uint8_t* marks) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(rows.n):
            (<int64_t*> values)[i] = (<const Cells*> (wanted(rows, i) + self.at)).value      # or a double: the bits
            if self.is_null(wanted(rows, i)):
                marks[i] = NULL_VALUE

    cdef tuple blobs(self, RowStore rows, const idx_t[::1] slots):
        cdef Py_ssize_t i
        cdef char* at
        offsets, data = rows.blobs(slots, self.at // 8 + 2)
        valid = np.empty(slots.shape[0], dtype=np.uint8)
        cdef uint8_t[::1] view = valid
        for i in range(slots.shape[0]):
            at = <char*> rows.head(slots[i])
            view[i] = (bits_of(at)[0] & self.seen) != 0 and not self.is_null(at)
        return offsets, data, None if valid.all() else valid.view(np.bool_)

    cdef int64_t arrived(self, const char* row) noexcept nogil:
        return number_behind((<const Cells*> (row + self.at)).arrived)

    cdef void shift(self, char* row, int64_t by) noexcept nogil:
        if (<Cells*> (row + self.at)).arrived >= 0:
            (<Cells*> (row + self.at)).arrived += by

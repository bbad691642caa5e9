# Accumulators: how the cells of a row take values, merge, and give a result.
from fastwin._typedefs cimport idx_t, uint8_t, uint64_t
from fastwin.core.rows cimport RowStore

cdef struct Column:
    const void* values          # int64_t or double, as the accumulator says; NULL: counts rows only
    const uint8_t* valid        # one byte a value, 0 for null; NULL: no nulls

cdef struct Merge:              # row from_slots[i] of from_rows goes into row slots[i] of rows, in order of i
    char* rows
    const char* from_rows
    const idx_t* slots
    const idx_t* from_slots
    Py_ssize_t stride           # of both
    Py_ssize_t n

cdef class Accumulator:
    cdef readonly Py_ssize_t cells      # how many cells of a row it takes
    cdef readonly bint is_float
    cdef readonly int column            # which column feeds it; -1: none
    cdef Py_ssize_t at                  # byte offset of its first cell
    cdef uint64_t seen                  # its bit in the head: a value has arrived

    cdef void blank(self, char* row) noexcept nogil
    cdef void add(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, Column column) noexcept nogil
    cdef void merge(self, Merge pairs) noexcept nogil

cdef class AccumulatorSet:
    cdef readonly tuple members
    cdef readonly Py_ssize_t head_cells
    cdef readonly Py_ssize_t columns    # how many columns the members read
    cdef list _held
    cdef Column* _column

    cdef int hold(self, list columns, Py_ssize_t n) except -1
    cdef void add(self, RowStore rows, const idx_t* slots, Py_ssize_t n, Py_ssize_t offset) noexcept
    cdef void merge(self, RowStore rows, const idx_t* slots, RowStore others, const idx_t* from_slots, Py_ssize_t n) noexcept

# What evictors leave of the elements that a window keeps.
from fastwin.core.accumulators.accumulator_set cimport AccumulatorSet
from fastwin.core.rows.rowstore cimport RowStore
from fastwin.core.typedefs cimport idx_t, int64_t, ts_t, uint8_t
from fastwin.operators.general.contents cimport Contents
from fastwin.operators.general.contexts cimport Clocks
from fastwin.operators.general.elements cimport Elements

cdef enum:
    ASKED = 0                   # what the evictor is: one that is asked, or one that is done here
    BY_COUNT = 1
    BY_TIME = 2


cdef class NotedColumn:
    cdef Py_ssize_t place               # of the column in rows
    cdef object kind
    cdef bint numbers, floats
    cdef Py_ssize_t at_hand             # which of the numbers that timed rows have by themselves; negative: none
    cdef object values_array, valid_array
    cdef int64_t[::1] values            # of numbers, or the bits of floats
    cdef uint8_t[::1] valid             # 0 for null
    cdef list objects                   # of other types: exact values
    cdef bint nulls                     # there is one

    cdef int fit(self, Py_ssize_t room) except -1
    cdef int put(self, Py_ssize_t at, list elements) except -1


cdef class Eviction:
    cdef Elements elements
    cdef object evictor
    cdef Clocks clocks
    cdef int kind
    cdef bint in_place                  # nobody but built-in parts sees the elements of a window
    cdef bint after                     # it evicts after the function has run, if it is done here
    cdef int64_t most                   # elements, or ms
    cdef AccumulatorSet scratch         # computes anew at each firing
    cdef object inputs, read            # what it is fed with, and of which columns
    cdef list columns                   # NotedColumn of these
    cdef object times_array, rows_array
    cdef ts_t[::1] times                # of the elements that are noted
    cdef idx_t[::1] noted_rows          # and the rows that they belong to
    cdef readonly Py_ssize_t noted_n
    cdef idx_t first_row, last_row      # of the rows that elements were noted for last
    cdef Py_ssize_t room

    cdef int tell(self, Contents contents) except -1
    cdef int evict(self, list elements, idx_t slot, bint before) except -1
    cdef int _evict_by_time(self, list elements, idx_t slot) except -1
    cdef bint has_room(self, Py_ssize_t n)
    cdef int note(self, idx_t row, list elements) except -1
    cdef int accumulate(self, RowStore store) except -1

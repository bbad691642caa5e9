# What the windows of the general operator hold.
from fastwin._typedefs cimport idx_t, ts_t
from fastwin.core.accumulator_set cimport AccumulatorSet
from fastwin.operators.keeper cimport Keeper
from fastwin.operators.usercode cimport Clocks
from fastwin.rowview cimport RowType

cdef class Contents:
    cdef Keeper keeper
    cdef readonly AccumulatorSet accumulators
    cdef bint built_in                  # rows carry built-in accumulators, fed as elements come
    cdef readonly bint in_python        # Python objects are fed as elements come
    cdef readonly bint keeps_rows       # all elements are kept
    cdef readonly bint folds            # there is something to aggregate or reduce
    cdef object evictor, reduce
    cdef bint timed                     # elements are kept with their timestamps
    cdef list adds, creates, gives, merges, whats
    cdef object reduced
    cdef Clocks clocks
    cdef list makers
    cdef AccumulatorSet scratch         # for elements that are kept: computes anew at each firing
    cdef list _columns

    cdef int add(self, idx_t slot, Py_ssize_t i, ts_t time) except -1
    cdef int clear(self, idx_t slot) except -1
    cdef int merge(self, idx_t slot, idx_t other) except -1
    cdef object _reduce(self, object a, object b, idx_t slot)
    cdef list python_results(self, idx_t slot, object held)
    cdef object held(self, idx_t slot)
    cdef object of_rows(self, list rows, idx_t slot)

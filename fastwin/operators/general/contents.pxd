# What the windows of the general operator hold.
from fastwin.core.typedefs cimport idx_t, int64_t, ts_t
from fastwin.core.accumulators.accumulator_set cimport AccumulatorSet
from fastwin.core.windows.windowtable cimport WindowTable
from fastwin.operators.general.elements cimport Elements
from fastwin.operators.general.runs cimport Runs
from fastwin.columns.row cimport AT_HAND, RowType, TimedRow
from fastwin.columns.handedrows cimport HandedRows
from fastwin.columns.rowrun cimport Picked

cdef class Contents:
    cdef Elements elements
    cdef WindowTable table
    cdef readonly list objects          # by slot: Python accumulators or elements; None for none
    cdef readonly dict saved_lists      # by slot: the list of elements that was saved, and how many there were
    cdef readonly AccumulatorSet accumulators
    cdef bint built_in                  # rows carry built-in accumulators, fed as elements come
    cdef readonly bint in_python        # Python objects are fed as elements come
    cdef readonly bint keeps_rows       # all elements are kept
    cdef readonly bint keeps_places     # as WindowRows, else as lists
    cdef readonly HandedRows handed     # what these make rows with
    cdef readonly bint folds            # there is something to aggregate or reduce
    cdef object reduce
    cdef bint timed                     # elements are kept with their timestamps
    cdef readonly bint numbered         # and with the numbers that tell in which order they have arrived
    cdef const int64_t[::1] arrivals    # the numbers of a call's elements
    cdef Py_ssize_t[AT_HAND] at_hand    # columns of numbers that timed rows have by themselves
    cdef Py_ssize_t at_hand_n
    cdef list adds, creates, gives, merges, whats
    cdef list manys                     # their add_many; None for those that have none
    cdef readonly bint takes_runs       # elements are handed over as runs, later in the call
    cdef Runs runs
    cdef object only_add, only_create, only_give        # of the aggregate in Python, if it is the only one
    cdef object reduced
    cdef list makers

    cdef int number(self, Py_ssize_t n, object order) except -1
    cdef void keep_at_hand(self, TimedRow timed, Py_ssize_t i) noexcept
    cdef int fit(self) except -1
    cdef int _drop(self, Py_ssize_t at) except -1
    cdef int forget(self, idx_t slot) except -1
    cdef int add(self, idx_t slot, Py_ssize_t i, ts_t time) except -1
    cdef int _keep_place(self, idx_t slot, Py_ssize_t i, bint first) except -1
    cdef int settle(self) except -1
    cdef int _fold(self, idx_t slot, object row, bint first) except -1
    cdef int _keep(self, idx_t slot, object held, object got, bint first) except -1
    cdef int hand_over(self, idx_t slot) except -1
    cdef int hand_over_all(self) except -1
    cdef int _hand_over(self, Py_ssize_t begin, Py_ssize_t end) except -1
    cdef int _fold_run(self, idx_t slot, Picked picked, Py_ssize_t at, Py_ssize_t n) except -1
    cdef int leave(self, idx_t slot, list elements, Py_ssize_t n) except -1
    cdef int clear(self, idx_t slot) except -1
    cdef int merge(self, idx_t slot, idx_t other) except -1
    cdef object _reduce(self, object a, object b, idx_t slot)
    cdef object python_results(self, idx_t slot, object held)
    cdef object held(self, idx_t slot)
    cdef object of_elements(self, list elements, idx_t slot)

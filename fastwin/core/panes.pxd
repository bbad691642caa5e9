# One row for each (key id, pane start), found through a table of its own in each pane.
from fastwin._typedefs cimport idx_t, ts_t
from fastwin.core.accumulators cimport AccumulatorSet
from fastwin.core.keys cimport KeyTable
from fastwin.core.rows cimport RowStore

cdef struct Pane:
    ts_t start
    idx_t* index                # open addressing by key id: slots
    Py_ssize_t index_size
    idx_t newest                # its rows are chained by `link`, newest first
    idx_t count

cdef class PaneTable:
    cdef readonly KeyTable keys
    cdef readonly AccumulatorSet accumulators
    cdef readonly RowStore rows
    cdef Pane** panes           # by start, ascending
    cdef readonly Py_ssize_t count
    cdef Py_ssize_t capacity
    cdef Py_ssize_t last        # position of the pane found last

    cdef Py_ssize_t lower_bound(self, ts_t start) noexcept nogil
    cdef Pane* find_pane(self, ts_t start) noexcept nogil
    cdef Pane* ensure_pane(self, ts_t start) except NULL nogil
    cdef int grow_index(self, Pane* pane) except -1 nogil
    cdef idx_t find_row(self, Pane* pane, idx_t key) noexcept nogil
    cdef idx_t ensure_row(self, Pane* pane, idx_t key) except -1 nogil

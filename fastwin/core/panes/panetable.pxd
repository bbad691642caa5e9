# One row for each (key id, pane start), found through a table of its own in each pane.
cimport cython

from fastwin.core.typedefs cimport NONE, idx_t, ts_t
from fastwin.core.accumulators.accumulator_set cimport AccumulatorSet
from fastwin.core.keys.keytable cimport KeyTable
from fastwin.core.panes.panelist cimport Pane, PaneList, order_panes, pane_at
from fastwin.core.panes.visits cimport place
from fastwin.core.rows.rowstore cimport RowStore


@cython.final
cdef class PaneTable:
    cdef readonly KeyTable keys
    cdef readonly AccumulatorSet accumulators
    cdef readonly RowStore rows
    cdef PaneList known         # by start, ascending, after lower_bound()

    cdef Pane* ensure_pane(self, ts_t start) except NULL nogil
    cdef int resize_index(self, Pane* pane, Py_ssize_t rows) except -1 nogil
    cdef idx_t ensure_row(self, Pane* pane, idx_t key) except -1 nogil
    cdef int ensure_in_pane(self, Pane* pane, const idx_t* keys, Py_ssize_t n, idx_t* slots) except -1 nogil
    cdef int ensure_rows(self, const idx_t* keys, const ts_t* starts, Py_ssize_t n, idx_t* slots) except -1 nogil

    cdef inline Py_ssize_t lower_bound(self, ts_t start) noexcept nogil:
        """Returns the position of the first pane at or after ``start``; all panes are in order then."""
        cdef Py_ssize_t low = 0, high = self.known.count, middle
        order_panes(&self.known)
        if high and self.known.panes[high - 1].start < start:
            return high
        while low < high:
            middle = (low + high) >> 1
            if self.known.panes[middle].start < start:
                low = middle + 1
            else:
                high = middle
        return low

    cdef inline Pane* find_pane(self, ts_t start) noexcept nogil:
        return pane_at(&self.known, start)

    cdef inline idx_t find_row(self, const Pane* pane, idx_t key) noexcept nogil:
        """Returns the slot of a key's row in the pane, or NONE."""
        cdef Py_ssize_t at
        cdef idx_t slot
        if pane.direct:
            return pane.index[key] if key < pane.index_size else <idx_t> NONE
        if pane.index_size == 0:
            return NONE
        at = place(key, pane.index_size)
        slot = pane.index[at]
        while slot != NONE and self.rows.head(slot).key != key:
            at = (at + 1) & (pane.index_size - 1)
            slot = pane.index[at]
        return slot

    cdef inline idx_t slot_of(self, idx_t key, ts_t start) noexcept nogil:
        """Returns the slot of a key's row in the pane at ``start``, or NONE."""
        cdef Pane* pane = self.find_pane(start)
        return <idx_t> NONE if pane == NULL else self.find_row(pane, key)

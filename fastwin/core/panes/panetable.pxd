# One row for each (key id, pane start), found through a table of its own in each pane.
cimport cython

from fastwin.core.typedefs cimport NONE, idx_t, ts_t, uint64_t
from fastwin.core.accumulators.accumulator_set cimport AccumulatorSet
from fastwin.core.keys.keytable cimport KeyTable
from fastwin.core.rows.rowstore cimport RowStore

cdef struct Pane:
    ts_t start
    idx_t* index                # slots by key id: directly, or by open addressing
    Py_ssize_t index_size
    bint direct                 # index[key]; else a power of two of places
    idx_t newest                # its rows are chained by `link`, newest first
    idx_t count


@cython.overflowcheck(False)
cdef inline Py_ssize_t place(idx_t key, Py_ssize_t size) noexcept nogil:
    # Fibonacci hashing: ids are dense, this spreads them.
    return <Py_ssize_t> ((<uint64_t> key * <uint64_t> 0x9E3779B97F4A7C15) >> 32) & (size - 1)


@cython.final
cdef class PaneTable:
    cdef readonly KeyTable keys
    cdef readonly AccumulatorSet accumulators
    cdef readonly RowStore rows
    cdef Pane** panes           # by start, ascending
    cdef readonly Py_ssize_t count
    cdef Py_ssize_t capacity
    cdef Py_ssize_t last        # position of the pane found last

    cdef Pane* ensure_pane(self, ts_t start) except NULL nogil
    cdef int resize_index(self, Pane* pane, Py_ssize_t rows) except -1 nogil
    cdef idx_t ensure_row(self, Pane* pane, idx_t key) except -1 nogil
    cdef int ensure_in_pane(self, Pane* pane, const idx_t* keys, Py_ssize_t n, idx_t* slots) except -1 nogil
    cdef int ensure_rows(self, const idx_t* keys, const ts_t* starts, Py_ssize_t n, idx_t* slots) except -1 nogil

    cdef inline Py_ssize_t lower_bound(self, ts_t start) noexcept nogil:
        # Position of the first pane at or after start.
        cdef Py_ssize_t low = 0, high = self.count, middle
        if self.count and self.panes[self.count - 1].start < start:
            return self.count
        while low < high:
            middle = (low + high) >> 1
            if self.panes[middle].start < start:
                low = middle + 1
            else:
                high = middle
        return low

    cdef inline Pane* find_pane(self, ts_t start) noexcept nogil:
        if self.last < self.count and self.panes[self.last].start == start:
            return self.panes[self.last]
        cdef Py_ssize_t at = self.lower_bound(start)
        if at == self.count or self.panes[at].start != start:
            return NULL
        self.last = at
        return self.panes[at]

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

"""WindowCombiner: the rows of windows put together from the panes they cover."""

cimport cython
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from fastwin._typedefs cimport NONE, idx_t, ts_t
from fastwin.core.panes cimport Pane, PaneTable
from fastwin.core.rows cimport RowStore

cdef enum:
    BLOCK = 512


@cython.final
cdef class WindowCombiner:
    """Collects fired windows, one row for each (key, window), in a store of their own.

    panes: where the windows' panes are read from; they are not changed.
    """

    cdef readonly PaneTable panes
    cdef readonly RowStore rows
    cdef idx_t* row_of          # by key id: the row of the window at hand, stale below `first`
    cdef Py_ssize_t capacity

    def __cinit__(self, PaneTable panes not None):
        self.panes = panes
        self.rows = panes.accumulators.new_rows()

    def __dealloc__(self):
        free(self.row_of)

    cdef int _reserve(self) except -1:
        cdef Py_ssize_t need = self.panes.keys.capacity
        cdef void* moved
        if need > self.capacity:
            moved = realloc(self.row_of, need * sizeof(idx_t))
            if moved == NULL:
                raise MemoryError(f"WindowCombiner: no memory for {need} keys")
            self.row_of = <idx_t*> moved
            memset(self.row_of + self.capacity, 0xFF, (need - self.capacity) * sizeof(idx_t))
            self.capacity = need
        return 0

    def fire(self, ts_t start, ts_t end):
        """Adds a row for each key with a pane in ``[start, end)``, holding the merge of those panes in time order.

        start, end: bounds of the window, ms; the rows' start is ``start``. Returns how many rows were added.
        O(rows in the panes).
        """
        cdef Py_ssize_t first = self.rows.top, at = self.panes.lower_bound(start), n
        cdef idx_t[BLOCK] into
        cdef idx_t[BLOCK] slots
        cdef idx_t slot, key, row
        cdef Pane* pane
        self._reserve()
        while at < self.panes.count and self.panes.panes[at].start < end:
            pane = self.panes.panes[at]
            slot = pane.newest
            while slot != NONE:
                n = 0
                with nogil:
                    self.rows.reserve(BLOCK)
                    while slot != NONE and n < BLOCK:
                        key = self.panes.rows.head(slot).key
                        row = self.row_of[key]
                        if row < first or row >= self.rows.top or self.rows.head(row).key != key:
                            row = self.rows.alloc(key, start)
                            self.row_of[key] = row
                        into[n] = row
                        slots[n] = slot
                        n += 1
                        slot = self.panes.rows.head(slot).link
                self.panes.accumulators.merge(self.rows, into, self.panes.rows, slots, n)
            at += 1
        return self.rows.top - first

    def fire_key(self, idx_t key, ts_t start, ts_t end):
        """Adds the row of one (key, window); returns whether the key has a pane in ``[start, end)``."""
        cdef Py_ssize_t at = self.panes.lower_bound(start)
        cdef idx_t slot, row = NONE
        while at < self.panes.count and self.panes.panes[at].start < end:
            slot = self.panes.find_row(self.panes.panes[at], key)
            if slot != NONE:
                if row == NONE:
                    self.rows.reserve(1)
                    row = self.rows.alloc(key, start)
                self.panes.accumulators.merge(self.rows, &row, self.panes.rows, &slot, 1)
            at += 1
        return row != NONE

    def clear(self):
        """Forgets the rows collected so far."""
        self.rows = self.panes.accumulators.new_rows()

"""Histogram: how many values lie between each two of some edges."""

import numpy as np

from fastwin.core.typedefs cimport idx_t, int64_t
from fastwin.core.accumulators.accumulator_set cimport Accumulator as Base, Column, Merge, has, into, taken
from fastwin.core.rows.rowstore cimport RowStore

__all__ = ["Histogram"]

ctypedef fused number:
    int64_t
    double


cdef inline Py_ssize_t edges_up_to(const number* edges, Py_ssize_t n, number value) noexcept nogil:
    """Returns how many edges are at or below a value; all, if it is NaN. O(log n)."""
    cdef Py_ssize_t low = 0, high = n, middle
    while low < high:
        middle = (low + high) // 2
        if value < edges[middle]:
            high = middle
        else:
            low = middle + 1
    return low


cdef class Histogram(Base):
    """Counts values by the number of edges that are at or below them. Cells: one more than there are edges.

    edges: ascending, int64[n] or float64[n] as dtype says. Results are the counts, as bytes of int64.
    """

    cdef const int64_t[::1] ints
    cdef const double[::1] floats
    cdef Py_ssize_t n

    def __cinit__(self, dtype="int64", int column=0, edges=None):
        self.n = len(edges)
        if self.n < 1 or edges.dtype != dtype:
            raise ValueError(f"Histogram: needs edges of {dtype}, at least one, got {edges!r}")
        if self.is_float:
            self.floats = edges
        else:
            self.ints = edges
        self.cells = self.n + 1
        self.gives_bytes = True

    cdef void add(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, Column column) noexcept nogil:
        cdef const int64_t* ints = <const int64_t*> column.values
        cdef const double* floats = <const double*> column.values
        cdef Py_ssize_t i, at
        for i in range(n):
            if has(column.valid, i):
                if self.is_float:
                    at = edges_up_to(&self.floats[0], self.n, floats[i])
                else:
                    at = edges_up_to(&self.ints[0], self.n, ints[i])
                (<int64_t*> (rows + slots[i] * stride + self.at))[at] += 1

    cdef void merge(self, Merge pairs) noexcept nogil:
        cdef const int64_t* others
        cdef int64_t* counts
        cdef Py_ssize_t i, k
        for i in range(pairs.n):
            counts = <int64_t*> (into(&pairs, i) + self.at)
            others = <const int64_t*> (taken(&pairs, i) + self.at)
            for k in range(self.n + 1):
                counts[k] += others[k]

    cdef tuple blobs(self, RowStore rows, const idx_t[::1] slots):
        cdef Py_ssize_t i, k, n = slots.shape[0]
        cdef const int64_t* counts
        out = np.empty((n, self.n + 1), dtype=np.int64)
        cdef int64_t[:, ::1] view = out
        with nogil:
            for i in range(n):
                counts = <const int64_t*> (<const char*> rows.head(slots[i]) + self.at)
                for k in range(self.n + 1):
                    view[i, k] = counts[k]
        offsets = np.arange(n + 1, dtype=np.int64) * 8 * (self.n + 1)
        return offsets, out.reshape(-1).view(np.uint8), None

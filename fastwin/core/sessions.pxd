# Disjoint intervals of each key, in time order, each with a row of accumulators.
cimport cython

from fastwin._typedefs cimport idx_t, int64_t, ts_t
from fastwin.core.accumulator_set cimport AccumulatorSet
from fastwin.core.keys cimport KeyTable
from fastwin.core.rows cimport Head, RowStore

cdef enum:
    BLOCK = 512                 # elements that find their sessions before their values are added
    FETCHED = 128               # keys whose sessions are fetched before they are looked for

cdef struct Session:
    Head head                   # link: the key's session before this one
    ts_t end
    ts_t saved                  # start at the last snapshot or delta; UNSAVED: in none of them
    idx_t later                 # the key's session after this one
    idx_t _unused

cdef struct Removal:            # a session saved once and merged into another since; it keeps its key retained
    ts_t start
    idx_t key

cdef struct Block:              # what a run of elements does to rows
    Py_ssize_t n, merges
    idx_t[BLOCK] into           # by element: the row that takes its values
    idx_t[BLOCK] target         # by merge, after that: the row that stays
    idx_t[BLOCK] source         # and the one that goes


@cython.final
cdef class SessionTable:
    cdef readonly KeyTable keys
    cdef readonly AccumulatorSet accumulators
    cdef readonly RowStore rows
    cdef idx_t* cursor          # by key id: the session touched last, or any other; NONE: the key has none
    cdef Py_ssize_t capacity
    cdef Removal* removed
    cdef Py_ssize_t removed_n, removed_capacity

    cdef int _reserve(self, Py_ssize_t extra) except -1 nogil
    cdef void _fetch(self, const idx_t* keys, Py_ssize_t n) noexcept nogil
    cdef idx_t _latest_until(self, idx_t key, ts_t end) noexcept nogil
    cdef idx_t _insert(self, idx_t key, ts_t start, ts_t end, idx_t before) noexcept nogil
    cdef bint _extend(self, idx_t slot, ts_t start, ts_t end, ts_t watermark, Block* block) noexcept nogil
    cdef void _unlink(self, idx_t slot) noexcept nogil
    cdef void _fetch_neighbours(self, idx_t slot, idx_t next) noexcept nogil
    cdef void _retire(self, idx_t slot) noexcept nogil

    cdef inline Session* at(self, idx_t slot) noexcept nogil:
        return <Session*> self.rows.head(slot)

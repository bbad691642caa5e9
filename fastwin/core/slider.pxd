# A window that slides over panes, with what each key has in it merged already.
cimport cython

from fastwin._typedefs cimport idx_t, ts_t
from fastwin.core.panes cimport Pane, PaneTable
from fastwin.core.rows cimport RowStore

cdef struct Run:                # of a key: its panes in the window, in three parts; rows, or NONE
    idx_t near                  # by slide, each with all behind it up to `near_end`; linked, the earliest first
    idx_t far                   # the same by block, up to `turn`
    idx_t back                  # from `turn` on
    idx_t place                 # in `active`


@cython.final
cdef class WindowSlider:
    cdef readonly PaneTable panes
    cdef readonly RowStore rows     # of the runs
    cdef RowStore _parts            # elements on their way into runs
    cdef ts_t slide, block, offset
    cdef ts_t start, near_end, turn
    cdef readonly ts_t end
    cdef Run* runs                  # by key id
    cdef Py_ssize_t capacity
    cdef idx_t* active              # keys with something in the window
    cdef readonly idx_t active_n

    cdef int _reserve(self) except -1
    cdef void _activate(self, idx_t key) noexcept nogil
    cdef void _deactivate(self, idx_t key) noexcept nogil
    cdef void _pop(self, idx_t* first, ts_t start) noexcept nogil
    cdef void _restart(self, ts_t start) noexcept
    cdef int _move(self, ts_t start, ts_t end) except -1
    cdef int _leave(self, ts_t start, ts_t end) except -1
    cdef int _turn_over(self, ts_t end) except -1
    cdef int _enter(self, ts_t start, ts_t end) except -1
    cdef int _stack(self, ts_t start, ts_t end, ts_t group) except -1
    cdef int _thread(self, idx_t key, ts_t start, idx_t* first, RowStore others, idx_t slot) except -1
    cdef Py_ssize_t _gather(self, idx_t* slot, idx_t* slots, idx_t* keys) noexcept nogil
    cdef idx_t* _first(self, idx_t key, ts_t start) noexcept nogil

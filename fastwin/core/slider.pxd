# A window that slides over panes, with what each key has in it merged already.
cimport cython

from fastwin._typedefs cimport idx_t, ts_t
from fastwin.core.panes cimport Pane, PaneTable
from fastwin.core.rows cimport RowStore

cdef enum:
    STACKS = 3                  # at most
    BACK = STACKS
    PARTS = STACKS + 1

cdef struct Run:                # of a key: its panes in the window, in parts; rows, or NONE
    # Of stack i: a row for each groups[i] ms up to ends[i], with all behind it up to there; linked, the earliest
    # first. [BACK]: one row for all from the last end on.
    idx_t[PARTS] parts
    idx_t place                 # in `active`


@cython.final
cdef class WindowSlider:
    cdef readonly PaneTable panes
    cdef readonly RowStore rows     # of the runs
    cdef RowStore _parts            # elements on their way into runs
    cdef int stacks                 # how many there are
    cdef ts_t[STACKS] groups        # ms; each is a multiple of the one before
    cdef ts_t[STACKS] ends          # ascending, from `start` to `end`
    cdef ts_t offset, start
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
    cdef void _shed(self, const ts_t* begins, int stacks) noexcept
    cdef ts_t _ceil(self, ts_t t, ts_t group) noexcept nogil
    cdef int _turn_over(self, ts_t start, ts_t end) except -1
    cdef int _enter(self, ts_t start, ts_t end) except -1
    cdef int _stack(self, int stack, ts_t start, ts_t end) except -1
    cdef int _thread(self, idx_t key, ts_t start, idx_t* first, RowStore others, idx_t slot) except -1
    cdef Py_ssize_t _gather(self, idx_t* slot, idx_t* slots, idx_t* keys) noexcept nogil
    cdef int _part_of(self, ts_t start) noexcept nogil

# A window that slides over panes, with what each key has in it merged already.
cimport cython

from fastwin.core.typedefs cimport NONE, idx_t, ts_t
from fastwin.core.memory.pages cimport prefetch
from fastwin.core.panes.panelist cimport Pane
from fastwin.core.panes.panetable cimport PaneTable
from fastwin.core.rows.rowstore cimport RowStore
from fastwin.core.timemath cimport floor_to

cdef enum:
    BLOCK = 512
    STACKS = 3                  # at most
    BACK = STACKS
    PARTS = 4                   # the stacks, and the back

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
    cdef void _restart(self, ts_t start) noexcept
    cdef int _move(self, ts_t start, ts_t end) except -1
    cdef int _leave(self, ts_t start, ts_t end) except -1
    cdef void _shed(self, const ts_t* begins, int stacks) noexcept
    cdef int _turn_over(self, ts_t start, ts_t end) except -1
    cdef int _enter(self, ts_t start, ts_t end) except -1
    cdef int _stack(self, int stack, ts_t start, ts_t end) except -1
    cdef int _thread(self, idx_t key, ts_t start, idx_t* first, RowStore others, idx_t slot) except -1

    cdef inline void _activate(self, idx_t key) noexcept nogil:
        if self.runs[key].place == NONE:
            self.runs[key].place = self.active_n
            self.active[self.active_n] = key
            self.active_n += 1

    cdef inline void _deactivate(self, idx_t key) noexcept nogil:
        """Forgets a key that has nothing in the window; others stay."""
        cdef Run* run = self.runs + key
        cdef idx_t moved
        cdef int part
        if run.place == NONE:
            return
        for part in range(PARTS):
            if run.parts[part] != NONE:
                return
        self.active_n -= 1
        moved = self.active[self.active_n]
        self.active[run.place] = moved
        self.runs[moved].place = run.place
        run.place = NONE

    cdef inline void _pop(self, idx_t* first, ts_t start) noexcept nogil:
        """Releases the rows of a stack that begin before ``start``."""
        cdef idx_t slot = first[0], after
        while slot != NONE and self.rows.head(slot).start < start:
            after = self.rows.head(slot).link
            self.rows.release(slot)
            slot = after
        first[0] = slot

    cdef inline ts_t _ceil(self, ts_t t, ts_t group) noexcept nogil:
        cdef ts_t first = floor_to(t, group, self.offset)
        return first if first == t else first + group

    cdef inline Py_ssize_t _gather(self, idx_t* slot, idx_t* slots, idx_t* keys) noexcept nogil:
        """Lists the next rows of a pane and their keys."""
        cdef Py_ssize_t n = 0
        while slot[0] != NONE and n < BLOCK:
            slots[n] = slot[0]
            keys[n] = self.panes.rows.head(slot[0]).key
            prefetch(self.runs + keys[n])
            slot[0] = self.panes.rows.head(slot[0]).link
            n += 1
        return n

    cdef inline int _part_of(self, ts_t start) noexcept nogil:
        # The part of a run that a pane of the window is in.
        cdef int part
        for part in range(self.stacks):
            if start < self.ends[part]:
                return part
        return BACK

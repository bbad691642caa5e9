"""Runs: elements of a call that windows have got and functions have not, those of each window one after the other.

A function that takes many at once (``add_many``) is handed them when somebody asks for what a window holds: when it
fires, is purged or merged, and at the end of the call.
"""

from libc.stdlib cimport free, realloc

from fastwin.columns.row cimport Rows
from fastwin.columns.rowrun cimport Picked, RowRun, new_run
from fastwin.core.memory.references cimport PyObject, references
from fastwin.core.typedefs cimport NONE, idx_t
from fastwin.core.windows.windowtable cimport Window

cdef enum:
    FIRST_ROOM = 256


cdef class Runs:
    """The runs of one call, in the order in which they began."""

    def __dealloc__(self):
        free(self.noted)
        free(self.runs)

    cdef int note(self, Window* window, idx_t slot, Py_ssize_t i) except -1:
        """Puts element i behind those of a window. Amortised O(1)."""
        cdef Run* run
        cdef idx_t at = <idx_t> self.noted_n
        if at == self.noted_room:
            self.noted = <Noted*> roomier(self.noted, &self.noted_room, sizeof(Noted))
        self.noted[at].i, self.noted[at].next = <idx_t> i, NONE
        if window.run == 0:
            if self.runs_n == self.runs_room:
                self.runs = <Run*> roomier(self.runs, &self.runs_room, sizeof(Run))
            run = self.runs + self.runs_n
            run.slot, run.first, run.n = slot, at, 0
            self.runs_n += 1
            window.run = <idx_t> self.runs_n
        else:
            run = self.runs + window.run - 1
            self.noted[run.last].next = at
        run.last = at
        run.n += 1
        self.noted_n += 1
        return 0

    cdef void move(self, Window* window, Window* to, idx_t slot) noexcept:
        """Makes the run of a window that of another one, which has none. slot: of the other one."""
        to.run, window.run = window.run, 0
        if to.run:
            self.runs[to.run - 1].slot = slot

    cdef Picked pick(self, Rows rows, Py_ssize_t begin, Py_ssize_t end):
        """Returns the elements of the runs from ``begin`` up to ``end``, one run after the other. O(elements)."""
        cdef Py_ssize_t r, n = 0
        cdef idx_t at
        cdef Picked picked
        for r in range(begin, end):
            n += self.runs[r].n
        picked = Picked(rows, n)
        n = 0
        for r in range(begin, end):
            if self.runs[r].n:
                at = self.runs[r].first
                while at != NONE:
                    picked.places[n] = self.noted[at].i
                    at = self.noted[at].next
                    n += 1
        return picked

    cdef RowRun handed(self, Picked picked, Py_ssize_t first, Py_ssize_t n):
        """Returns what a function is handed; taken_back() ends that."""
        if self.view is None:
            self.view = new_run(picked)
        self.view.picked = picked
        self.view.first, self.view.n = first, n
        return self.view

    cdef int taken_back(self) except -1:
        """Closes what a function was handed; if it has kept that, the next one is handed another."""
        self.view.picked = None
        if references(<PyObject*> self.view) > 1:
            self.view = None
        return 0

    cdef void done(self) noexcept:
        """Forgets runs that have all been handed over."""
        self.noted_n = self.runs_n = 0


cdef void* roomier(void* items, Py_ssize_t* room, size_t size) except NULL:
    """Returns room for twice as many items."""
    cdef Py_ssize_t wanted = max(2 * room[0], FIRST_ROOM)
    cdef void* moved = realloc(items, wanted * size)
    if moved == NULL:
        raise MemoryError(f"Runs: no memory for {wanted} elements")
    room[0] = wanted
    return moved

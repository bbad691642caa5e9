# What user code is handed, and the host over the rows of an operator.
from fastwin.core.typedefs cimport idx_t, int64_t
from fastwin.core.windows.timerservice cimport TimerService
from fastwin.core.windows.windowtable cimport Window
from fastwin.functions.keyedstate cimport StateHolder
from fastwin.operators.general.elements cimport Elements
from fastwin.operators.general.userstate cimport KeyStates, UserState, WindowStates
from fastwin.triggers.trigger cimport TriggerHost


cdef inline int64_t* cells_of(Window* window) noexcept:
    """Returns the cells of a row's triggers, which come first behind its head."""
    return <int64_t*> (window + 1)


cdef class RowHost(TriggerHost):
    cdef TimerService timers
    cdef Elements elements
    cdef UserState state
    cdef idx_t slot                     # the current window
    cdef Py_ssize_t i                   # the current element
    cdef idx_t* merged                  # the windows that on_merge() merges
    cdef Py_ssize_t merged_capacity

    cdef inline void move_to(self, idx_t slot) noexcept:
        self.slot = slot
        self.cells = cells_of(self.timers.at(slot))

    cdef int hold_merged(self, const idx_t* slots, Py_ssize_t n) except -1

cdef class TriggerContext:
    cdef TimerService timers
    cdef RowHost host
    cdef idx_t slot                     # NONE: no call is running
    cdef WindowStates holder
    cdef dict states
    cdef str prefix
    cdef bint merging

    cdef TriggerContext again(self)
    cdef idx_t here(self) except -1

cdef class Clocks:
    cdef TimerService timers

cdef class StateStore:
    cdef StateHolder holder
    cdef Py_ssize_t call                # that it was handed out in
    cdef dict states
    cdef str prefix

cdef class WindowContext:
    cdef Elements elements
    cdef TimerService timers
    cdef WindowStates window_holder
    cdef KeyStates key_holder
    cdef StateStore window_store, key_store
    cdef readonly object window
    cdef dict side                      # outputs by tag
    cdef str function                   # that runs
    cdef bint merging
    cdef bint is_open                   # a call is running

    cdef WindowContext again(self)
    cdef void enter(self, idx_t slot, object window, str function) noexcept
    cdef void leave(self) noexcept
    cdef int check_call(self) except -1

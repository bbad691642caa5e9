# What user code keeps.
from fastwin.core.typedefs cimport idx_t, ts_t
from fastwin.core.windows.timerservice cimport TimerService
from fastwin.core.windows.windowtable cimport WindowTable
from fastwin.functions.keyedstate cimport StateHolder


cdef class UserState:
    cdef WindowTable table
    cdef readonly list windows          # by slot: dicts by name; None for none
    cdef readonly dict keys             # by key id: dicts by name; these keys are retained
    cdef readonly set dirty_keys        # of keys, since the last snapshot or delta; retained, too
    cdef readonly set touched           # those of them that the last call has changed
    cdef readonly tuple lifetimes       # of state with a time to live: by processing time, by event time

    cdef int fit(self) except -1

cdef class WindowStates(StateHolder):
    cdef UserState state
    cdef idx_t slot

cdef class KeyStates(StateHolder):
    cdef UserState state
    cdef TimerService timers
    cdef idx_t key, slot                # of the current window

    cdef ts_t now(self, object descriptor_name, bint event) except? -2

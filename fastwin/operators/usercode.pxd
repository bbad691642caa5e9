# User-written triggers, and what user code is handed.
from fastwin._typedefs cimport idx_t
from fastwin.operators.keeper cimport Keeper, KeyStates, WindowStates
from fastwin.operators.triggernodes cimport TriggerNode

cdef class TriggerContext:
    cdef Keeper keeper
    cdef idx_t slot
    cdef WindowStates holder
    cdef dict states
    cdef str prefix
    cdef bint merging

cdef class UserTriggerNode(TriggerNode):
    cdef readonly object trigger
    cdef TriggerContext ctx
    cdef object _on_element, _on_event_time, _on_processing_time, _clear
    cdef str name

    cdef int _answer(self, object result, str method, idx_t slot) except -1

cdef class Clocks:
    cdef Keeper keeper

cdef class StateStore:
    cdef object holder
    cdef dict states
    cdef str prefix

cdef class WindowContext:
    cdef Keeper keeper
    cdef WindowStates window_holder
    cdef KeyStates key_holder
    cdef StateStore window_store, key_store
    cdef readonly object window
    cdef readonly dict side
    cdef bint merging

    cdef void move_to(self, idx_t slot, object window) noexcept

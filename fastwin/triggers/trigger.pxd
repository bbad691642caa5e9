# Triggers at C level: what they are bound to, and what they answer.
from fastwin.core.typedefs cimport int64_t, ts_t

cdef enum:
    CONTINUE = 0
    FIRE = 1
    PURGE = 2
    FIRE_AND_PURGE = 3


cdef class TriggerHost:
    cdef int64_t* cells             # of the current window: the state of built-in triggers
    cdef Py_ssize_t merged_n        # how many windows were merged into the current one, in on_merge
    cdef readonly list kept         # (trigger, blank, descriptor) for each cell
    cdef readonly Py_ssize_t written        # how many triggers are written in Python
    cdef Py_ssize_t deletions       # how often a timer may have been taken back, which others may wait for as well
    cdef str path                   # of the trigger that is being bound, among those of several
    cdef bint takes_endless         # triggers that wait for a window's end take one without an end

    cdef Py_ssize_t add_cell(self, Trigger trigger, int64_t blank, object descriptor) except -1
    cdef object new_context(self)
    cdef object next_context(self, object ctx)
    cdef ts_t last(self) except? -2
    cdef ts_t watermark(self) except? -2
    cdef ts_t clock(self) except? -2
    cdef int register_event(self, ts_t time) except -1
    cdef int register_processing(self, ts_t time) except -1
    cdef int delete_event(self, ts_t time) except -1
    cdef int delete_processing(self, ts_t time) except -1
    cdef int64_t* merged_cell(self, Py_ssize_t j, Py_ssize_t cell) noexcept
    cdef object element(self)
    cdef object window(self)
    cdef object enter(self, object ctx, bint merging)
    cdef int leave(self, object ctx) except -1
    cdef int failed(self, str what, object problem) except -1


cdef class Trigger:
    cdef int c_on_element(self, ts_t time) except -1
    cdef int c_on_event_time(self, ts_t time) except -1
    cdef int c_on_processing_time(self, ts_t time) except -1
    cdef int c_on_merge(self) except -1
    cdef int c_clear(self) except -1
    cdef bint c_keeps(self) except -1


cdef class WrittenTrigger(Trigger):
    cdef TriggerHost host
    cdef object trigger, ctx, on_element_, on_event_time_, on_processing_time_, clear_
    cdef str name

    cdef object enter(self, bint merging)
    cdef int answer(self, object result, str method) except -1


cdef bint is_inherited(object method, object trigger, object inherited)

# Triggers that ask others.
from fastwin.core.typedefs cimport ts_t
from fastwin.triggers.builtin cimport BuiltInTrigger

cdef enum:
    ELEMENT = 0                 # what a trigger is asked about
    EVENT_TIMER = 1
    PROCESSING_TIMER = 2


cdef class NestingTrigger(BuiltInTrigger):
    cdef list inner                 # what it asks, bound to its host

    cdef tuple asked(self)
    cdef int decide(self, int what, ts_t time) except -1
    cdef int ask(self, Py_ssize_t j, int what, ts_t time) except -1

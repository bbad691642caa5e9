# Built-in triggers at C level.
from fastwin.core.typedefs cimport int64_t, ts_t
from fastwin.triggers.trigger cimport Trigger, TriggerHost


cdef class BuiltInTrigger(Trigger):
    cdef tuple values               # of the fields; None in a dataclass that is derived from a built-in one
    cdef TriggerHost host           # what it is bound to; None: it is only described
    cdef Py_ssize_t cell
    cdef bint part                  # one of several triggers of a window, whose timers it is asked about as well
    cdef ContextHost spare

    cdef type own_class(self)
    cdef tuple fields(self)
    cdef int bind(self, TriggerHost host) except -1
    cdef bint waits(self) except -1
    cdef int renew(self, ts_t watermark, ts_t clock) except -1
    cdef object to_state(self, int64_t cell)
    cdef int64_t from_state(self, object value) except? -2
    cdef ContextHost borrowed(self, object window, object ctx, bint merging)
    cdef int given_back(self, ContextHost host) except -1


cdef class ContextHost(TriggerHost):
    cdef BuiltInTrigger trigger
    cdef object ctx, its_window, its_element
    cdef list states
    cdef int64_t* before

    cdef int open(self, object window, object ctx, bint merging) except -1
    cdef int close(self) except -1


cdef Trigger bound(Trigger trigger, TriggerHost host)

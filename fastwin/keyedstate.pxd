# State objects, as contexts hand them out.
cdef class StateHolder:
    cdef dict read(self)        # the values of the current window or key; None: there are none
    cdef dict write(self)       # the same, made if need be, and marked as changed

cdef class State:
    cdef StateHolder holder
    cdef str name
    cdef object descriptor
    cdef object function

    cdef object stored(self)
    cdef object merged(self, object a, object b)

cdef State new_state(object descriptor, StateHolder holder, str prefix)

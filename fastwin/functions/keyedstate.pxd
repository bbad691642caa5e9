# State objects, as contexts hand them out.
cdef class StateHolder:
    cdef Py_ssize_t call        # which one is running
    cdef dict read(self)        # the values of the current window or key; None: there are none
    cdef dict write(self)       # the same, made if need be, and marked as changed
    cdef tuple born(self, object descriptor, tuple kept)    # the lifetime of state that is written now; kept: its last
    cdef bint is_over(self, tuple lifetime) except -1

cdef class State:
    cdef StateHolder holder
    cdef str name
    cdef object descriptor
    cdef object function
    cdef Py_ssize_t call        # that it was handed out in
    cdef bint ends              # it has a time to live
    cdef str lifetime           # under which name that is kept

    cdef int check_call(self) except -1
    cdef dict read(self)
    cdef dict write(self)
    cdef State again(self)
    cdef int expire(self) except -1
    cdef object stored(self)
    cdef object merged(self, object a, object b)

cdef State new_state(object descriptor, StateHolder holder, str prefix)

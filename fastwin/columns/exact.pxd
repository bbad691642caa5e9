# Values that Python has no object for, or none that is the same.

cdef class Exact:
    cdef object shown               # what Python code sees
    cdef readonly object stored     # what it is: how many ns; or an array of one, of which Python code sees nothing

    cdef object show(self, object name)

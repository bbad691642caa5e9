# Rows that user code puts beside its results.
cdef class SideOutput:
    cdef object schema, make
    cdef str what               # names it in errors
    cdef list columns           # the values, a list for each column
    cdef list functions, keys, windows      # who has put each row there, and about which window

    cdef int add(self, object value, str function, object key, object window) except -1

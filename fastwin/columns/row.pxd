# Elements as user code sees them.
cdef class RowType:
    cdef object __weakref__
    cdef readonly tuple names
    cdef dict index

cdef class Rows:
    cdef readonly RowType type
    cdef list arrays            # Arrow arrays, until they are decoded
    cdef list decoded           # Python lists
    cdef readonly Py_ssize_t n

    cdef list column(self, Py_ssize_t j)
    cdef Row row(self, Py_ssize_t i)

cdef class Row:
    cdef RowType type
    cdef tuple values           # NULL-like None: read from rows
    cdef Rows rows
    cdef Py_ssize_t i

    cdef object value(self, Py_ssize_t j)
    cdef Row detached(self)
    cdef int cut_loose(self) except -1
    cdef tuple own_values(self)

cdef class TimedRow:
    cdef readonly object value
    cdef readonly object timestamp

cdef Row new_row(RowType type, tuple values)

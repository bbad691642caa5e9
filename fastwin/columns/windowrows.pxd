# The rows that a window keeps, as places in the calls that they came in.
from fastwin.columns.handedrows cimport HandedRows
from fastwin.columns.row cimport Row, Rows
from fastwin.core.typedefs cimport idx_t

cdef enum:
    FEW_PLACES = 4              # that need no memory of their own


cdef struct Found:              # in which part an element was
    Py_ssize_t part, begin, end     # the part; the first element in it, and the first one behind it


cdef class WindowRows:
    cdef HandedRows handed
    cdef list older             # what came before: WindowRows without older ones, and lists of rows with values
    cdef list ends              # how many elements there are up to the end of each; None: nobody has asked
    cdef Rows rows              # that the newest ones are in; None: there are none
    cdef idx_t* places          # of these
    cdef idx_t n, room
    cdef readonly Py_ssize_t total
    cdef idx_t[FEW_PLACES] few  # the places, as long as they fit

    cdef int add(self, Rows rows, idx_t i) except -1
    cdef int add_row(self, Row row) except -1
    cdef int extend(self, WindowRows others) except -1
    cdef int drop_behind(self, Py_ssize_t n) except -1
    cdef WindowRows copied(self)
    cdef int _reserve(self, Py_ssize_t n) except -1
    cdef void _leave(self) noexcept
    cdef WindowRows _newest(self)
    cdef int _shelve(self) except -1
    cdef list _list(self)
    cdef list _loose(self)
    cdef int _put(self, object part) except -1
    cdef list _parts(self)
    cdef Py_ssize_t _column(self, object name) except -1
    cdef object _array(self, Py_ssize_t j)
    cdef Row _row(self, Py_ssize_t at)
    cdef Row _at(self, Py_ssize_t k, Found* found)

cdef WindowRows new_window_rows(HandedRows handed)

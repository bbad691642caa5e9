# Elements as user code sees them.
from fastwin.core.typedefs cimport int64_t, ts_t, uint8_t

cdef struct Numbers:            # a column that is read where Arrow has it
    const char* values          # of 64 bits each; NULL for other columns
    const uint8_t* valid        # 0 for null; NULL where none is
    bint floats

cdef enum:
    FEWEST_ROWS = 64            # of a call, below which each that is kept gets values of its own
    AT_HAND = 3                 # numbers that a timed row has by itself: its row may be far

cdef class RowType:
    cdef object __weakref__
    cdef readonly tuple names
    cdef dict index

cdef class Rows:
    cdef readonly RowType type
    cdef list arrays            # Arrow arrays, until they are decoded
    cdef list decoded           # Python lists, as exact_values() gives them
    cdef readonly list kinds    # Arrow types
    cdef Numbers* numbers       # by column
    cdef list views             # the numpy arrays that these look into
    cdef dict counted           # by column: times as ints, as far as somebody has asked for them
    cdef dict wholes            # by column: numpy arrays, as far as somebody has asked for them
    cdef Py_ssize_t latest      # the column of numbers that was read last
    cdef readonly Py_ssize_t n
    cdef void** held            # by place: the rows that somebody keeps, which are not counted as references here
    cdef Py_ssize_t live        # how many these are
    cdef Py_ssize_t kept        # how many places windows keep: see WindowRows
    cdef list sparse            # where it says that few are left; None while the rows are those of the current call

    cdef list column(self, Py_ssize_t j)
    cdef object exact(self, Py_ssize_t j, Py_ssize_t i)
    cdef object value(self, Py_ssize_t j, Py_ssize_t i)
    cdef list counts(self, Py_ssize_t j)
    cdef Row row(self, Py_ssize_t i)
    cdef int hold(self, Row row) except -1
    cdef int close(self, list sparse) except -1
    cdef int thin_out(self) except -1
    cdef int scatter(self) except -1
    cdef list values_at(self, object places)
    cdef object whole(self, Py_ssize_t j)

cdef class Row:
    cdef RowType type
    cdef tuple values           # as exact_values() gives them; NULL-like None: read from rows
    cdef Rows rows
    cdef Py_ssize_t i
    cdef bint held              # by its rows

    cdef object exact(self, Py_ssize_t j)
    cdef object value(self, Py_ssize_t j)

cdef class TimedRow:
    cdef readonly object value
    cdef ts_t time                      # ms, NO_TIME for none
    cdef readonly int64_t arrival       # which of all elements it was, -1 where nobody asks for it
    cdef bint known                     # these are of the columns that its window was told of
    cdef uint8_t there                  # a bit for each: it is not null
    cdef int64_t[AT_HAND] values        # numbers, or the bits of floats

cdef Row new_row(RowType type, tuple values)

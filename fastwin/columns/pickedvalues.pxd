# What rows of a call have in a column, by their places in it.
from fastwin.columns.row cimport Numbers, Rows
from fastwin.core.typedefs cimport idx_t

cdef list picked_values(Rows rows, Py_ssize_t j, const idx_t* places, Py_ssize_t n)
cdef object picked_numbers(const Numbers* numbers, const idx_t* places, Py_ssize_t n)

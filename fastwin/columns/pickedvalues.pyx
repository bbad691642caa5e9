"""What rows of a call have in a column, by their places in it: as a list of Python values, or as a numpy array."""

import numpy as np
import pyarrow as pa

from fastwin.columns.exact cimport Exact
from fastwin.columns.row cimport Numbers, Rows
from fastwin.core.typedefs cimport idx_t, int64_t

__all__ = ["frozen", "has_numbers"]


cdef list picked_values(Rows rows, Py_ssize_t j, const idx_t* places, Py_ssize_t n):
    """Returns what Python code sees of n rows in a column."""
    cdef const Numbers* numbers = rows.numbers + j
    cdef list values
    cdef Py_ssize_t k
    if numbers.values == NULL:
        values = rows.column(j)
        return [shown(values[places[k]], rows, j) for k in range(n)]
    if numbers.valid != NULL:
        return [rows.value(j, places[k]) for k in range(n)]
    rows.latest = j
    if numbers.floats:
        return [(<const double*> numbers.values)[places[k]] for k in range(n)]
    return [(<const int64_t*> numbers.values)[places[k]] for k in range(n)]


cdef inline object shown(object value, Rows rows, Py_ssize_t j):
    """Returns what Python code sees of a value in a column."""
    return (<Exact> value).show(rows.type.names[j]) if type(value) is Exact else value


cdef object picked_numbers(const Numbers* numbers, const idx_t* places, Py_ssize_t n):
    """Returns the same as an array[n], read-only; None for what is no column of 64 bit numbers without nulls."""
    cdef const int64_t* values = <const int64_t*> numbers.values
    cdef int64_t[::1] view
    cdef Py_ssize_t k
    if values == NULL or numbers.valid != NULL:
        return None
    view = bits = np.empty(n, np.int64)
    for k in range(n):
        view[k] = values[places[k]]
    found = bits.view(np.float64) if numbers.floats else bits
    found.flags.writeable = False
    return found


def has_numbers(kind):
    """Tells whether numpy has a type for the values of an Arrow type, other than objects."""
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def frozen(list values not None, kind):
    """Returns values as an array[n], read-only: numbers and booleans with the dtype of their type, all else objects."""
    if has_numbers(kind) and None not in values:
        found = np.array(values, dtype=kind.to_pandas_dtype())
    else:
        found = np.empty(len(values), dtype=object)
        found[:] = values
    found.flags.writeable = False
    return found

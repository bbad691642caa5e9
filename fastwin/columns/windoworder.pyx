"""What the elements of a window are compared by: as Arrow has it, where Python would compare something else."""

import pyarrow as pa

from fastwin.columns.decoding import decoded_type
from fastwin.columns.pythonvalues import exact_array, time_counts
from fastwin.columns.row cimport Row
from fastwin.columns.windowrows cimport WindowRows

__all__ = ["order_values"]


def order_values(WindowRows elements not None, name):
    """Returns for each element what is in the order of a column, None for null. O(n).

    That is an int for a time: Python compares two of one zone by the clock on the wall, and has no nanoseconds.
    """
    cdef Py_ssize_t j = elements._column(name)
    if not pa.types.is_temporal(decoded_type(elements.handed.kinds[j])):
        return elements.to_list(name)
    values = []
    for part in elements._parts():
        if type(part) is list:
            values += time_counts(exact_array([(<Row> row).exact(j) for row in part], elements.handed.kinds[j]))
        else:
            values += counts_of(part, j)
    return values


cdef list counts_of(WindowRows part, Py_ssize_t j):
    """Returns the times that the newest elements have in a column as ints, None for null."""
    cdef list counts = part.rows.counts(j)
    cdef Py_ssize_t k
    return [counts[part.places[k]] for k in range(part.n)]

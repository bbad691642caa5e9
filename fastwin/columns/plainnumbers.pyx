"""Lists of Python numbers as columns: ints as int64 and floats as float64, many times faster than value by value."""

import numpy as np

from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact

from fastwin.core.typedefs cimport int64_t

__all__ = ["plain_floats", "plain_ints"]


def plain_ints(list values not None):
    """Returns a list as int64[n]; None where not all of it are ints, bool left out, that fit."""
    cdef Py_ssize_t i, n = len(values)
    cdef int overflow = 0
    out = np.empty(n, np.int64)
    cdef int64_t[::1] view = out
    for i in range(n):
        value = values[i]
        if not PyLong_CheckExact(value):
            return None
        view[i] = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow:
            return None
    return out


def plain_floats(list values not None):
    """Returns a list as float64[n]; None where not all of it are floats."""
    cdef Py_ssize_t i, n = len(values)
    out = np.empty(n, np.float64)
    cdef double[::1] view = out
    for i in range(n):
        value = values[i]
        if not PyFloat_CheckExact(value):
            return None
        view[i] = PyFloat_AS_DOUBLE(value)
    return out

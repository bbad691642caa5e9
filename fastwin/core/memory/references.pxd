# How many references there are to an object: tells whether user code has kept what it was handed.
cdef extern from *:
    ctypedef struct PyObject
    Py_ssize_t references "Py_REFCNT"(PyObject* counted) noexcept

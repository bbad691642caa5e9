# How many references there are to an object: tells whether user code has kept what it was handed.
cdef extern from *:
    ctypedef struct PyObject
    Py_ssize_t references "Py_REFCNT"(PyObject* counted) noexcept


# Takes a container out of Python's search for circles: one of which no circle can go through.
cdef extern from "Python.h":
    void untrack "PyObject_GC_UnTrack"(void* container) noexcept

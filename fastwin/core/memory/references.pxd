# How many references there are to an object: tells whether user code has kept what it was handed.
cdef extern from *:
    ctypedef struct PyObject
    Py_ssize_t references "Py_REFCNT"(PyObject* counted) noexcept


# Takes a container out of Python's search for circles: one of which no circle can go through, or that is in use anyway.
cdef extern from "Python.h":
    void untrack "PyObject_GC_UnTrack"(void* container) noexcept
    bint is_tracked "PyObject_GC_IsTracked"(PyObject* container) noexcept
    void track "PyObject_GC_Track"(void* container) noexcept


cdef inline bint is_plain_container(object held) noexcept:
    # Of these types, and not of all, an object may be taken out, and comes to its end all the same.
    return type(held) is list or type(held) is dict


cdef inline void set_apart(object held) noexcept:
    """Takes out what is going to be held for long and dropped by give_back(): the search costs more than all else where
    there are millions. What is in use is no garbage, so nothing is missed meanwhile."""
    if is_plain_container(held):
        untrack(<void*> held)


cdef inline void give_back(object held, Py_ssize_t ours) noexcept:
    """Ends set_apart() where others hold the object still. ours: how many references the caller has to it."""
    if is_plain_container(held) and references(<PyObject*> held) > ours and not is_tracked(<PyObject*> held):
        track(<void*> held)

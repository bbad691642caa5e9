"""TimeWindow.max_timestamp: triggers that are written in Python ask for it with every element, some of them twice.

It is a method as those of built-in types are, which Python calls in half of the time of one that Cython makes.
"""

cdef extern from *:
    """
    static PyObject *fastwin_max_timestamp(PyObject *self, PyObject *unused) {
        PyObject *end, *one, *last;
        long long ms;
        int overflow;
        (void)unused;
        if (PyTuple_Size(self) != 2)        /* which says so where it is no tuple */
            return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "max_timestamp: %R is no TimeWindow", self);
        end = PyTuple_GetItem(self, 1);
        if (end != NULL && PyLong_CheckExact(end)) {
            ms = PyLong_AsLongLongAndOverflow(end, &overflow);
            if (!overflow && ms != LLONG_MIN)
                return PyLong_FromLongLong(ms - 1);
        }
        one = PyLong_FromLong(1);
        last = end == NULL || one == NULL ? NULL : PyNumber_Subtract(end, one);
        Py_XDECREF(one);
        return last;
    }

    static PyMethodDef fastwin_last_ms = {
        "max_timestamp", fastwin_max_timestamp, METH_NOARGS,
        "max_timestamp($self, /)\\n--\\n\\nReturns the largest timestamp inside the window: ``end - 1``."};

    static PyObject *fastwin_method_of(PyObject *type) {
        return PyDescr_NewMethod((PyTypeObject *)type, &fastwin_last_ms);
    }
    """
    object fastwin_method_of(object type)


def method_of(kind):
    """Returns ``max_timestamp`` as a method of a class of windows: tuples of start and end."""
    if not isinstance(kind, type) or not issubclass(kind, tuple):
        raise TypeError(f"max_timestamp: is a method of tuples, got {kind!r}")
    return fastwin_method_of(kind)

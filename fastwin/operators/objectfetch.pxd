# Python objects fetched into the cache ahead of the code that reads them: those of a list, by their places in it, and
# what lists and tuples among them hold. Step by step, each reads what the one before it has fetched; nothing is owned
# here, so no Python code may run between reading a place and fetching from it.
from fastwin._typedefs cimport idx_t
from fastwin.core.memory cimport prefetch

cdef enum:
    MOST_ITEMS = 8              # of a list or a tuple that are fetched

cdef extern from *:
    """
    static inline PyObject **fastwin_items(PyObject *held) {
        if (PyList_CheckExact(held))
            return ((PyListObject *)held)->ob_item;
        return PyTuple_CheckExact(held) ? ((PyTupleObject *)held)->ob_item : NULL;
    }
    """
    ctypedef struct PyObject
    PyObject** items_of "fastwin_items"(PyObject* held) noexcept nogil
    Py_ssize_t size_of "Py_SIZE"(PyObject* held) noexcept nogil


cdef inline PyObject** place_in(list objects, idx_t at) noexcept:
    """Returns the place of an object; NULL where the list does not reach."""
    if at < 0 or at >= len(objects):
        return NULL
    return items_of(<PyObject*> objects) + at


cdef inline void fetch_items(PyObject* held) noexcept nogil:
    """Fetches where an object that has been fetched keeps its items."""
    cdef PyObject** items = items_of(held)
    if items != NULL:
        prefetch(items)


cdef inline void fetch_values(PyObject* held) noexcept nogil:
    """Fetches the items themselves."""
    cdef PyObject** items = items_of(held)
    cdef Py_ssize_t i
    if items != NULL:
        for i in range(min(size_of(held), MOST_ITEMS)):
            prefetch(items[i])


cdef inline void fetch_all(list objects, const idx_t* places, Py_ssize_t n) noexcept:
    """Takes all steps for some places of a list; negative ones are passed over."""
    cdef Py_ssize_t i
    cdef PyObject** place
    for i in range(n):
        place = place_in(objects, places[i])
        if place != NULL:
            prefetch(place)
    for i in range(n):
        place = place_in(objects, places[i])
        if place != NULL:
            prefetch(place[0])
    for i in range(n):
        place = place_in(objects, places[i])
        if place != NULL:
            fetch_items(place[0])
    for i in range(n):
        place = place_in(objects, places[i])
        if place != NULL:
            fetch_values(place[0])

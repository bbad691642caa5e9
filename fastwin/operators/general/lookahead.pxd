# Fetched into the cache ahead of the code that reads it: Python objects of a list, by their places in it, what lists
# and tuples among them hold, and the rows of timers. Step by step, each reads what the one before it has fetched.
# Nothing is owned here, so no Python code may run between reading a place and fetching from it.
from fastwin.columns.row cimport Numbers, Row, TimedRow
from fastwin.columns.windowrows cimport WindowRows
from fastwin.core.typedefs cimport idx_t
from fastwin.core.memory.pages cimport prefetch
from fastwin.core.timers.timer cimport Timer
from fastwin.core.timers.timerqueue cimport TimerQueue
from fastwin.core.windows.timerservice cimport slot_of
from fastwin.core.windows.windowtable cimport Window, WindowTable

cdef enum:
    MOST_ITEMS = 8              # of a list or a tuple that are fetched
    ROW_AHEAD = 16              # timers whose rows are fetched before they are due, and so on
    OBJECT_AHEAD = 12
    INDEX_AHEAD = 8
    ITEMS_AHEAD = 8
    VALUES_AHEAD = 4
    NUMBERS_AHEAD = 2
    TIMED_AHEAD = 16

cdef extern from *:
    """
    /* The stable ABI does not show where lists keep their items: nothing is fetched then. */
    static inline PyObject **fastwin_items(PyObject *held) {
    #ifdef Py_LIMITED_API
        (void)held;
        return NULL;
    #else
        if (PyList_CheckExact(held))
            return ((PyListObject *)held)->ob_item;
        return PyTuple_CheckExact(held) ? ((PyTupleObject *)held)->ob_item : NULL;
    #endif
    }
    """
    ctypedef struct PyObject
    PyObject** items_of "fastwin_items"(PyObject* held) noexcept nogil
    void* type_of "Py_TYPE"(PyObject* held) noexcept nogil
    Py_ssize_t size_of "Py_SIZE"(PyObject* held) noexcept nogil


cdef inline PyObject** place_in(list objects, idx_t at) noexcept:
    """Returns the place of an object; NULL where the list does not reach."""
    cdef PyObject** items = items_of(<PyObject*> objects)
    if items == NULL or at < 0 or at >= len(objects):
        return NULL
    return items + at


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


cdef inline void fetch_numbers(PyObject* held) noexcept:
    """Fetches what rows among the items will be asked for, if it is what others were asked for last."""
    cdef PyObject** items = items_of(held)
    cdef const Numbers* numbers
    cdef WindowRows window
    cdef Row row
    cdef Py_ssize_t i
    if type_of(held) == <void*> WindowRows:
        window = <WindowRows> held
        if window.rows is not None:
            numbers = window.rows.numbers + window.rows.latest
            for i in range(min(<Py_ssize_t> window.n, <Py_ssize_t> MOST_ITEMS) if numbers.values != NULL else 0):
                prefetch(numbers.values + 8 * <Py_ssize_t> window.places[i])
    if items == NULL:
        return
    for i in range(min(size_of(held), MOST_ITEMS)):
        if type_of(items[i]) != <void*> Row:
            return
        row = <Row> items[i]
        if row.rows is not None:
            numbers = row.rows.numbers + row.rows.latest
            if numbers.values != NULL:
                prefetch(numbers.values + 8 * row.i)


cdef inline void fetch_timed(PyObject** items, Py_ssize_t at, Py_ssize_t n, Py_ssize_t column) noexcept:
    """Fetches the timed rows among n items that come next but a few after place ``at``, and what they have in a column.

    items: NULL: nothing is fetched. column: negative: they have it by themselves.
    """
    cdef Row row
    if items == NULL:
        return
    if at + TIMED_AHEAD < n:
        prefetch(items[at + TIMED_AHEAD])
    if column < 0:
        return
    if at + INDEX_AHEAD < n:
        prefetch(<void*> (<TimedRow> items[at + INDEX_AHEAD]).value)
    if at + VALUES_AHEAD < n:
        row = <Row> (<TimedRow> items[at + VALUES_AHEAD]).value
        if row.values is not None:
            prefetch(<void*> row.values)
        elif row.rows.numbers[column].values != NULL:
            prefetch(row.rows.numbers[column].values + 8 * row.i)


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
            prefetch(<char*> place[0] + 64)
    for i in range(n):
        place = place_in(objects, places[i])
        if place != NULL:
            fetch_items(place[0])
    for i in range(n):
        place = place_in(objects, places[i])
        if place != NULL:
            fetch_values(place[0])


cdef inline void fetch_due_rows(TimerQueue timers, WindowTable table) noexcept:
    """Fetches the rows of timers that are due next but a few, and their places in the index."""
    cdef const Timer* timer = timers.coming(ROW_AHEAD)
    cdef const Window* window
    if timer != NULL:
        prefetch(table.at(slot_of(timer)))
        prefetch(<char*> table.at(slot_of(timer)) + table.rows.stride - 1)
    timer = timers.coming(INDEX_AHEAD)
    window = NULL if timer == NULL else table.living(slot_of(timer))
    if window != NULL:
        table.soon(table.hashed(window.head.key, window.head.start, window.end))


cdef inline void fetch_due(TimerQueue timers, list objects, list states) noexcept:
    """Fetches the Python objects of timers that are due next but a few."""
    cdef const Timer* timer = timers.coming(ROW_AHEAD)
    cdef PyObject** place
    if timer != NULL:
        prefetch(place_in(objects, slot_of(timer)))
        prefetch(place_in(states, slot_of(timer)))
        timers.soon(timer)
    timer = timers.coming(OBJECT_AHEAD)
    if timer != NULL:
        place = place_in(objects, slot_of(timer))
        if place != NULL:
            prefetch(place[0])
            prefetch(<char*> place[0] + 64)
    timer = timers.coming(ITEMS_AHEAD)
    if timer != NULL:
        place = place_in(objects, slot_of(timer))
        if place != NULL:
            fetch_items(place[0])
    timer = timers.coming(VALUES_AHEAD)
    if timer != NULL:
        place = place_in(objects, slot_of(timer))
        if place != NULL:
            fetch_values(place[0])
    timer = timers.coming(NUMBERS_AHEAD)
    if timer != NULL:
        place = place_in(objects, slot_of(timer))
        if place != NULL:
            fetch_numbers(place[0])

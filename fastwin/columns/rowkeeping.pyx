"""What is done with the rows that windows keep beside adding some: restored, cut, let go of by their calls."""

import numpy as np

from fastwin.columns.row cimport Rows, new_row
from fastwin.columns.windowrows cimport WindowRows

__all__ = ["keep_first", "keep_rows", "move_out"]


def keep_rows(WindowRows window not None, Rows rows not None, places):
    """Adds rows of a call, by their places in it, to those of a window."""
    for i in places:
        window.add(rows, i)


def keep_first(WindowRows window not None, Py_ssize_t n):
    """Leaves the first n elements of a window."""
    window.drop_behind(n)


def move_out(list objects not None, list sparse not None):
    """Gives values of their own to the elements that windows keep of calls of which few are left. O(windows).

    objects: the WindowRows of all windows, None for none. sparse: the Rows of these calls.
    """
    cdef dict wanted = {rows: {} for rows in sparse}
    cdef Rows rows
    for held in objects:
        if held is not None:
            (<WindowRows> held)._note(wanted)
    for found in wanted.items():
        rows, places = found
        values = rows.values_at(np.array(list(places), dtype=np.int64)) if places else ()
        places.update(zip(list(places), [new_row(rows.type, given) for given in values]))
    for held in objects:
        if held is not None:
            (<WindowRows> held)._move(wanted)

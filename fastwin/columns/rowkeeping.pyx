"""What is done with the rows that windows keep beside adding some: restored, cut, let go of by their calls."""

import numpy as np

from fastwin.columns.row cimport Rows, new_row
from fastwin.columns.windowrows cimport WindowRows
from fastwin.core.memory.references cimport untrack
from fastwin.core.typedefs cimport idx_t

__all__ = ["keep_first", "keep_rows", "move_out"]


def keep_rows(WindowRows window not None, Rows rows not None, places):
    """Adds rows of a call, by their places in it, to those of a window."""
    for i in places:
        window.add(rows, i)


def keep_first(WindowRows window not None, Py_ssize_t n):
    """Leaves the first n elements of a window."""
    window.drop_behind(n)


cdef int note(WindowRows window, dict wanted) except -1:
    """Notes the places of elements in these calls. wanted: by call, a dict of places. O(parts)."""
    cdef WindowRows part
    cdef idx_t k
    for held in (window,) if window.older is None else window._parts():
        if type(held) is not list:
            part = held
            if part.n and part.rows in wanted:
                for k in range(part.n):
                    wanted[part.rows][part.places[k]] = None
    return 0


cdef int move(WindowRows window, dict wanted) except -1:
    """Puts rows in the place of elements of these calls. wanted: by call, a dict of rows by place.

    O(parts, and elements that move): a list that is there grows at its end, or is joined to a longer one before it.
    """
    cdef WindowRows part
    cdef list older, joined, rows
    cdef Py_ssize_t at
    cdef idx_t k
    cdef bint moved = False
    if window.n and window.rows in wanted:
        window._shelve()
    older = window.older
    for at in range(0 if older is None else len(older)):
        if type(older[at]) is list or (<WindowRows> older[at]).rows not in wanted:
            continue
        part = older[at]
        made = wanted[part.rows]
        older[at] = rows = [made[part.places[k]] for k in range(part.n)]
        untrack(<void*> rows)
        moved = True
    if not moved:
        return 0
    joined = older[:1]
    untrack(<void*> joined)
    for held in older[1:]:
        last = joined[len(joined) - 1]
        if type(held) is list and type(last) is list and len(held) <= len(last):
            (<list> last).extend(held)
        else:
            joined.append(held)
    window.handed.parts += len(joined) - len(older)
    window.older, window.ends = joined, None
    return 0


def move_out(list objects not None, list sparse not None):
    """Gives values of their own to the elements that windows keep of calls of which few are left.

    O(windows, and their parts).

    objects: the WindowRows of all windows, None for none. sparse: the Rows of these calls.
    """
    cdef dict wanted = {rows: {} for rows in sparse}
    cdef Rows rows
    for held in objects:
        if held is not None:
            note(held, wanted)
    for found in wanted.items():
        rows, places = found
        values = rows.values_at(np.array(list(places), dtype=np.int64)) if places else ()
        places.update(zip(list(places), [new_row(rows.type, given) for given in values]))
    for held in objects:
        if held is not None:
            move(held, wanted)

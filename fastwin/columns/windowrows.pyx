"""WindowRows: the elements that a window keeps, as user code sees them: rows, lists, numpy columns.

A window keeps places in the columns of the calls that its elements came in. Rows, lists and arrays are made of them
when somebody asks.
"""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

cimport cython
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from fastwin.columns.handedrows cimport HandedRows, handed_by_themselves
from fastwin.columns.pickedvalues cimport picked_numbers, picked_values
from fastwin.columns.pickedvalues import frozen
from fastwin.columns.row cimport Row, Rows
from fastwin.core.memory.references cimport untrack
from fastwin.core.typedefs cimport idx_t

__all__ = ["WindowRows", "window_rows"]


@cython.final
@cython.no_gc
@cython.freelist(64)
cdef class WindowRows:
    """The elements of a window, in order of arrival: a read-only sequence of rows, and their columns."""

    def __cinit__(self):
        self.places, self.room = self.few, FEW_PLACES

    def __init__(self, HandedRows handed not None):
        self.handed = handed

    def __dealloc__(self):
        self._leave()
        if self.older is not None:
            self.handed.parts -= len(self.older)

    cdef void _leave(self) noexcept:
        """Gives the newest part up."""
        if self.rows is not None:
            self.rows.kept -= self.n
            self.rows.thin_out()
            self.rows = None
        if self.places != self.few:
            free(self.places)
        self.places, self.n, self.room = self.few, 0, FEW_PLACES

    cdef int _reserve(self, Py_ssize_t n) except -1:
        cdef Py_ssize_t room = max(2 * <Py_ssize_t> self.room, n)
        cdef bint few = self.places == self.few
        cdef void* moved
        if n <= self.room:
            return 0
        moved = realloc(NULL if few else self.places, room * sizeof(idx_t))
        if moved == NULL:
            raise MemoryError(f"WindowRows: no memory for {n} elements")
        if few:
            memcpy(moved, self.few, self.n * sizeof(idx_t))
        self.places, self.room = <idx_t*> moved, <idx_t> room
        return 0

    cdef int add(self, Rows rows, idx_t i) except -1:
        """Adds row i of the current call. Amortised O(1)."""
        if self.rows is not rows:
            self._shelve()
            self.rows = rows
        if self.n == self.room:
            self._reserve(self.n + 1)
        self.places[self.n] = i
        self.n += 1
        self.total += 1
        rows.kept += 1
        return 0

    cdef int add_row(self, Row row) except -1:
        """Adds a row that the rows of its call know of, or that has values of its own."""
        self._shelve()
        self._loose().append(row)
        self.total += 1
        return 0

    cdef list _list(self):
        """Returns the list of older parts, to change it."""
        cdef list made
        self.ends = None
        if self.older is None:
            self.older = made = []
            untrack(<void*> made)       # rows make no circles, and there may be millions of such lists
        return self.older

    cdef list _loose(self):
        """Returns the list of rows behind all others."""
        cdef list made, older = self._list()
        if older and type(older[len(older) - 1]) is list:
            return older[len(older) - 1]
        made = []
        untrack(<void*> made)
        self._put(made)
        return made

    cdef int _put(self, object part) except -1:
        """Puts a part behind the older ones."""
        self._list().append(part)
        self.handed.parts += 1
        return 0

    cdef WindowRows _newest(self):
        """Returns the newest part by itself."""
        cdef WindowRows part = new_window_rows(self.handed)
        part._reserve(self.n)
        memcpy(part.places, self.places, self.n * sizeof(idx_t))
        part.rows, part.n, part.total = self.rows, self.n, self.n
        self.rows.kept += self.n
        return part

    cdef int _shelve(self) except -1:
        """Makes the newest part one of the older ones."""
        if self.n:
            self._put(self._newest())
            self._leave()
        return 0

    cdef int extend(self, WindowRows others) except -1:
        """Adds the elements of another window behind these. O(parts)."""
        self._shelve()
        others._shelve()
        if others.older is not None:
            self._list().extend(others.older)
            self.handed.parts += len(others.older)
        self.total += others.total
        return 0

    cdef int drop_behind(self, Py_ssize_t n) except -1:
        """Leaves the first n elements."""
        cdef WindowRows part
        cdef Py_ssize_t left = n
        self._shelve()
        parts, self.older, self.ends, self.total = self.older or (), None, None, n
        self.handed.parts -= len(parts)
        for held in parts:
            if left == 0:
                break
            if type(held) is list:
                held = held[:left]
            elif (<WindowRows> held).n > left:
                part = (<WindowRows> held)._newest()
                part.rows.kept -= part.n - left
                part.n = part.total = left
                held = part
            self._put(held)
            left -= len(held)
        return 0

    cdef WindowRows copied(self):
        """Returns what does not change when elements are added here. O(elements of the newest part)."""
        cdef WindowRows copy = self._newest() if self.n else new_window_rows(self.handed)
        if self.older is not None:
            copy.older = [list(part) if type(part) is list else part for part in self.older]
            self.handed.parts += len(copy.older)
        copy.total = self.total
        return copy

    cdef list _parts(self):
        """Returns all parts in order: the older ones, and this object for the newest one."""
        cdef list parts = [] if self.older is None else list(self.older)
        if self.n:
            parts.append(self)
        return parts

    cdef Py_ssize_t _column(self, object name) except -1:
        """Returns the number of a column."""
        j = None if self.handed is None else self.handed.type.index.get(name)
        if j is None:
            names = "none" if self.handed is None else ', '.join(self.handed.type.names)
            raise KeyError(f"the rows have no column {name!r}; they have {names}")
        return j

    def to_list(self, name):
        """Returns a column as a list of Python values, None for null: what each row has. O(n)."""
        cdef Py_ssize_t j = self._column(name)
        cdef list values
        if self.older is None and self.n:
            return picked_values(self.rows, j, self.places, self.n)
        values = []
        for part in self._parts():
            if type(part) is list:
                values += [(<Row> row).value(j) for row in part]
            else:
                values += picked_values((<WindowRows> part).rows, j, (<WindowRows> part).places, (<WindowRows> part).n)
        return values

    def to_numpy(self, name):
        """Returns a column as an array[n], read-only: without a copy where the elements came one after the other.

        Numbers and booleans have the dtype of the column. Other values, and those among which there is a null, are an
        array of objects, with None for null: what each row has.
        """
        cdef Py_ssize_t j = self._column(name)
        cdef list arrays = [None if type(part) is list else (<WindowRows> part)._array(j) for part in self._parts()]
        if not arrays or any([array is None for array in arrays]):
            return frozen(self.to_list(name), self.handed.kinds[j])
        if len(arrays) == 1:
            return arrays[0]
        found = np.concatenate(arrays)
        found.flags.writeable = False
        return found

    cdef object _array(self, Py_ssize_t j):
        """Returns a column of the newest part; None where only lists can say what is in it."""
        cdef idx_t[::1] places
        cdef Py_ssize_t k
        cdef idx_t first = self.places[0]
        for k in range(1, self.n):
            if self.places[k] != first + k:
                break
        else:
            whole = self.rows.whole(j)
            return None if whole is None else whole[first:first + self.n]
        found = picked_numbers(self.rows.numbers + j, self.places, self.n)
        if found is None:
            whole = self.rows.whole(j)
            if whole is None:
                return None
            places = <idx_t[:self.n]> self.places
            found = whole[places]
            found.flags.writeable = False
        return found

    cdef Row _row(self, Py_ssize_t at):
        cdef Row row = self.rows.row(self.places[at])
        self.rows.hold(row)
        return row

    cdef Row _at(self, Py_ssize_t k, Found* found):
        """Returns element k. found: where another one was. O(log parts), O(1) where that was near.

        The first call for an object with older parts looks at all of them.
        """
        cdef Py_ssize_t end = 0, older = self.total - self.n
        if k >= older:
            return self._row(k - older)
        if not found.begin <= k < found.end:
            if self.ends is None:
                self.ends = []
                for part in self.older:
                    end += len(part)
                    self.ends.append(end)
            found.part = bisect_right(self.ends, k)
            found.begin = self.ends[found.part - 1] if found.part else 0
            found.end = self.ends[found.part]
        part = self.older[found.part]
        return part[k - found.begin] if type(part) is list else (<WindowRows> part)._row(k - found.begin)

    def __len__(self):
        return self.total

    def __iter__(self):
        cdef RowIterator found = RowIterator.__new__(RowIterator)
        found.handed = self.handed
        if self.older is None:
            found.part = self
        else:
            found.parts = self._parts()
        return found

    def __getitem__(self, at):
        cdef Found found
        cdef Py_ssize_t k
        found.part = found.begin = found.end = 0
        if isinstance(at, slice):
            return [self._at(k, &found) for k in range(*at.indices(self.total))]
        if not -self.total <= at < self.total:
            raise IndexError(f"elements: there are {self.total} of them, got index {at}")
        return self._at(at + self.total if at < 0 else at, &found)

    index, count = Sequence.index, Sequence.count

    def __eq__(self, other):
        if isinstance(other, (WindowRows, list)):
            return list(self) == list(other)
        return NotImplemented

    def __repr__(self):
        return repr(list(self))

    def __reduce__(self):
        return window_rows, (list(self), self.handed.arguments())


@cython.final
@cython.no_gc
@cython.freelist(8)
cdef class RowIterator:
    """The rows of a window, one after the other."""

    cdef HandedRows handed
    cdef WindowRows part        # that it is in; None: it is in a list, or has not begun
    cdef list rows, parts
    cdef Py_ssize_t at, next

    def __iter__(self):
        return self

    def __next__(self):
        while True:
            if self.part is not None:
                if self.at < self.part.n:
                    self.at += 1
                    return self.handed.row(self.part.rows, self.part.places[self.at - 1])
            elif self.rows is not None and self.at < len(self.rows):
                self.at += 1
                return self.rows[self.at - 1]
            if self.parts is None or self.next == len(self.parts):
                raise StopIteration
            part = self.parts[self.next]
            self.next, self.at = self.next + 1, 0
            self.part, self.rows = (None, part) if type(part) is list else (part, None)


Sequence.register(WindowRows)


cdef WindowRows new_window_rows(HandedRows handed):
    cdef WindowRows made = WindowRows.__new__(WindowRows)
    made.handed = handed
    return made


def window_rows(list rows not None, handed=None):
    """Returns rows as a window keeps them.

    handed: of the operator; or their type and the columns' Arrow types, as pickled rows have them; None: they are by
    themselves.
    """
    cdef WindowRows made
    if type(handed) is tuple:
        handed = HandedRows(*handed)
    made = new_window_rows(handed_by_themselves(rows) if handed is None else handed)
    if rows:
        made._loose().extend(rows)
        made.total = len(rows)
    return made

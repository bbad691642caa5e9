"""RowRun: elements of one window that came one after the other, as user code sees them: rows, lists, numpy columns."""

cimport cython
from libc.stdlib cimport free, malloc

from fastwin.columns.pickedvalues cimport picked_numbers, picked_values
from fastwin.columns.pickedvalues import frozen, has_numbers
from fastwin.columns.row cimport Row, Rows
from fastwin.core.typedefs cimport idx_t
from fastwin.errors import StateError

__all__ = ["RowRun"]


cdef class Picked:
    """Rows of a call in an order of their own. n: how many; ``places`` are for the owner to fill."""

    def __init__(self, Rows rows not None, Py_ssize_t n):
        self.rows = rows
        self.n = n
        self.places = <idx_t*> malloc(max(n, 1) * sizeof(idx_t))
        if self.places == NULL:
            raise MemoryError(f"Picked: no memory for {n} rows")
        self.arrays = [None] * len(rows.type.names)
        self.asked = [False] * len(rows.type.names)

    def __dealloc__(self):
        free(self.places)

    cdef object array(self, Py_ssize_t j):
        """Returns a column in this order, read-only; None where only lists can say what is in it."""
        if not self.asked[j]:
            found = picked_numbers(self.rows.numbers + j, self.places, self.n)
            if found is None:
                found = self._narrow(j)
            self.arrays[j], self.asked[j] = found, True
        return self.arrays[j]

    def _narrow(self, Py_ssize_t j):
        """The same for other columns than numbers of 64 bits without nulls."""
        cdef Py_ssize_t k
        if not has_numbers(self.rows.kinds[j]):
            return None
        values = [self.rows.value(j, self.places[k]) for k in range(self.n)]
        return None if None in values else frozen(values, self.rows.kinds[j])


@cython.binding(False)      # as plain methods: user code calls them for each run
cdef class RowRun:
    """Elements of one window that came one after the other: a sequence of rows, and their columns.

    It is there for the call that it was handed to; StateError is raised afterwards. What it gave out may be kept.
    """

    cdef int _check(self) except -1:
        if self.picked is None:
            raise StateError("values: the call that they were handed to is over; keep what you need of them")
        return 0

    cdef Py_ssize_t _column(self, object name) except -1:
        self._check()
        j = self.picked.rows.type.index.get(name)
        if j is None:
            names = ", ".join(self.picked.rows.type.names)
            raise KeyError(f"the rows have no column {name!r}; they have {names}")
        return j

    def to_list(self, name):
        """Returns a column as a list of Python values, None for null: what each row has. O(n)."""
        cdef Py_ssize_t j = self._column(name)
        return picked_values(self.picked.rows, j, self.picked.places + self.first, self.n)

    def to_numpy(self, name):
        """Returns a column as an array[n], read-only; copy it if it is to be kept: it is a part of a larger one.

        Numbers and booleans have the dtype of the column. Other values, and those among which there is a null, are an
        array of objects, with None for null: what each row has.
        """
        cdef Py_ssize_t j = self._column(name)
        whole = self.picked.array(j)
        if whole is None:
            return frozen(self.to_list(name), self.picked.rows.kinds[j])
        return whole[self.first:self.first + self.n]

    cdef Row _row(self, Py_ssize_t at):
        cdef Row row = self.picked.rows.row(self.picked.places[self.first + at])
        self.picked.rows.hold(row)
        return row

    def __len__(self):
        return self.n

    def __iter__(self):
        cdef Py_ssize_t at
        for at in range(self.n):
            self._check()
            yield self._row(at)

    def __getitem__(self, at):
        self._check()
        if isinstance(at, slice):
            return [self._row(k) for k in range(*at.indices(self.n))]
        if not -self.n <= at < self.n:
            raise IndexError(f"values: there are {self.n} of them, got index {at}")
        return self._row(at + self.n if at < 0 else at)

    def __repr__(self):
        return f"RowRun of {self.n} rows" if self.picked is not None else "RowRun of a call that is over"


cdef RowRun new_run(Picked picked):
    cdef RowRun run = RowRun.__new__(RowRun)
    run.picked = picked
    return run

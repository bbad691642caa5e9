"""HandedRows: rows that user code is handed one after the other, and most of which it does not keep."""

cimport cython

from fastwin.columns.row cimport Row, Rows, RowType
from fastwin.core.memory.references cimport PyObject, references
from fastwin.core.typedefs cimport idx_t

__all__ = ["HandedRows"]


@cython.final
cdef class HandedRows:
    """The rows that user code was handed last. One that nobody has kept is used again, for another element.

    kinds: Arrow types of the columns.
    """

    def __init__(self, RowType type not None, kinds):
        self.type = type
        self.kinds = list(kinds)

    cdef Row row(self, Rows rows, idx_t i):
        """Returns row i. It may change once two others have been asked for, if nobody but this object has it then."""
        cdef Row row
        if (self.spare is not None and references(<PyObject*> self.spare) == 1 and not self.spare.held
                and self.spare.rows is not None):
            row = self.spare
            row.type, row.rows, row.i = rows.type, rows, i
        else:
            if self.spare is not None and self.spare.rows is not None:
                self.spare.rows.hold(self.spare)
            row = rows.row(i)
        self.spare = self.last
        self.last = row
        return row

    cdef int settle(self) except -1:
        """Lets go of both; the rows of their call know of one that somebody has kept."""
        if self.last is not None and references(<PyObject*> self.last) > 1 and self.last.rows is not None:
            self.last.rows.hold(self.last)
        if self.spare is not None and references(<PyObject*> self.spare) > 1 and self.spare.rows is not None:
            self.spare.rows.hold(self.spare)
        self.last = self.spare = None
        return 0

"""HandedRows: rows that user code is handed one after the other, and most of which it does not keep."""

import pyarrow as pa

cimport cython

from fastwin.columns.row import row_type
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

    cdef tuple arguments(self):
        """Returns what one like this is made of: equal ones give the same objects, so that pickles are equal."""
        return self.type, _known(tuple([_known(kind) for kind in self.kinds]))


cdef HandedRows handed_by_themselves(list rows):
    """Returns what belongs to rows of no operator: their type, and the Arrow types of what they have."""
    cdef RowType type = (<Row> rows[0]).type if rows else row_type(())
    cdef Py_ssize_t j
    return HandedRows(type, [_inferred([(<Row> row).exact(j) for row in rows]) for j in range(len(type.names))])


cdef dict _KNOWN = {}


cdef object _known(object kinds):
    """Returns an Arrow type, or several, as the one object that the process has of it."""
    return _KNOWN.setdefault(kinds, kinds)


cdef object _inferred(list values):
    """Returns the Arrow type of values, and one that numpy has none for where there is none."""
    try:
        return pa.infer_type(values)
    except pa.ArrowException:
        return pa.null()

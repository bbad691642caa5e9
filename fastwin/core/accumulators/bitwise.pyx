"""Bitwise: the AND, OR or XOR of the bits of integers and booleans."""

from fastwin.core.typedefs cimport idx_t, int64_t, uint8_t
from fastwin.core.accumulators.accumulator_set cimport Accumulator as Base, Column, Merge, Take
from fastwin.core.accumulators.accumulator_set cimport bits_of, has, into, taken, wanted

__all__ = ["Bitwise"]

cdef enum:
    AND = 0
    OR = 1
    XOR = 2

cdef dict OPERATIONS = {"and": AND, "or": OR, "xor": XOR}


cdef inline int64_t joined(int operation, int64_t a, int64_t b) noexcept nogil:
    if operation == AND:
        return a & b
    return a | b if operation == OR else a ^ b


cdef class Bitwise(Base):
    """Joins the bits of all values, in any order. Cells: the value.

    operation: ``"and"``, ``"or"`` or ``"xor"``. Raises ValueError for another one, or for floats.
    """

    cdef int operation

    dtypes = ("int64",)

    def __cinit__(self, dtype="int64", int column=0, operation="and"):
        if operation not in OPERATIONS:
            raise ValueError(f"Bitwise: operation must be one of {(*OPERATIONS,)}, got {operation!r}")
        self.operation = OPERATIONS[operation]

    cdef void blank(self, char* row) noexcept nogil:
        (<int64_t*> (row + self.at))[0] = -1 if self.operation == AND else 0

    cdef void add(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, Column column) noexcept nogil:
        cdef const int64_t* values = <const int64_t*> column.values
        cdef int64_t* cell
        cdef char* row
        cdef Py_ssize_t i
        for i in range(n):
            if has(column.valid, i):
                row = rows + slots[i] * stride
                cell = <int64_t*> (row + self.at)
                cell[0] = joined(self.operation, cell[0], values[i])
                bits_of(row)[0] |= self.seen

    cdef void merge(self, Merge pairs) noexcept nogil:
        cdef int64_t* cell
        cdef Py_ssize_t i
        for i in range(pairs.n):
            cell = <int64_t*> (into(&pairs, i) + self.at)
            cell[0] = joined(self.operation, cell[0], (<const int64_t*> (taken(&pairs, i) + self.at))[0])

    cdef void take(self, const Take* rows, void* values, uint8_t* marks) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(rows.n):
            (<int64_t*> values)[i] = (<const int64_t*> (wanted(rows, i) + self.at))[0]

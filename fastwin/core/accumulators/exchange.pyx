"""Rows on their way to other sets and back: tidied to be saved, taken in when they were, renumbered to be merged."""

from fastwin.core.accumulators.accumulator_set cimport Accumulator, AccumulatorSet
from fastwin.core.rows.rowstore cimport RowStore
from fastwin.core.typedefs cimport idx_t, int64_t

__all__ = ["adopt_rows", "renumber_rows", "tidy_rows"]


def tidy_rows(AccumulatorSet accumulators not None, RowStore rows not None, const idx_t[::1] slots not None):
    """Puts what rows own into the form that follows from their values alone: equal rows have equal bytes then.

    O(values that have arrived since the last call, and text), amortised. Raises MemoryError.
    """
    cdef Accumulator member
    cdef Py_ssize_t i
    accumulators.check_rows(rows, slots)
    for member in accumulators.members:
        for i in range(slots.shape[0] if member.owned else 0):
            if not member.tidy(<char*> rows.head(slots[i])):
                raise MemoryError(f"{type(member).__name__}: no memory to put what its rows hold in order")


def adopt_rows(AccumulatorSet accumulators not None, RowStore rows not None, const idx_t[::1] slots not None):
    """Takes in rows that a restore has filled: what arrives from now on comes behind what they hold.

    Raises ValueError if what they own cannot be what these accumulators keep; any cells can.
    """
    cdef Accumulator member
    cdef Py_ssize_t i
    accumulators.check_rows(rows, slots)
    for member in accumulators.members:
        for i in range(slots.shape[0] if member.owned else 0):
            if not member.sound(<const char*> rows.head(slots[i])):
                raise ValueError(f"{type(member).__name__}: a row holds what is none of its forms")
        for i in range(slots.shape[0] if member.remembers else 0):
            accumulators.arrived = max(accumulators.arrived, member.arrived(<const char*> rows.head(slots[i])))


def renumber_rows(AccumulatorSet accumulators not None, RowStore rows not None, const idx_t[::1] slots not None):
    """Makes what rows of another set remember arrive now, behind all that this set has been fed.

    To be called once for rows that were put together elsewhere, before they are merged into rows of this set.
    """
    cdef Accumulator member
    cdef Py_ssize_t i
    cdef int64_t before = accumulators.arrived
    accumulators.check_rows(rows, slots)
    for member in accumulators.members:
        for i in range(slots.shape[0] if member.remembers else 0):
            member.shift(<char*> rows.head(slots[i]), before)
            accumulators.arrived = max(accumulators.arrived, member.arrived(<const char*> rows.head(slots[i])))

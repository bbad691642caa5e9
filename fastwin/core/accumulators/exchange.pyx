"""Rows on their way to other sets and back: measured and tidied to be saved, taken in, renumbered to be merged."""

import numpy as np

from fastwin.core.accumulators.accumulator_set cimport Accumulator, AccumulatorSet
from fastwin.core.memory.bounds cimport check_ids
from fastwin.core.memory.owned cimport size_in
from fastwin.core.rows.rowstore cimport RowStore
from fastwin.core.typedefs cimport idx_t, int64_t

__all__ = ["adopt_rows", "owned_sizes", "renumber_rows", "tidy_rows"]


def owned_sizes(RowStore rows not None, const idx_t[::1] slots not None, cells):
    """Returns how many bytes the blocks of some cells take in each row: int64[n]. O(n) for each of the cells.

    Raises IndexError for a slot never used or a cell that owns no blocks.
    """
    cdef Py_ssize_t i, at
    check_ids("slots", slots, rows.top)
    out = np.zeros(slots.shape[0], dtype=np.int64)
    cdef int64_t[::1] sizes = out
    for cell in cells:
        if cell not in rows.owned_cells:
            raise IndexError(f"cells: {cell} owns no blocks, those that do are {rows.owned_cells}")
        at = 8 * cell
        for i in range(slots.shape[0]):
            sizes[i] += size_in(<char*> rows.head(slots[i]) + at)
    return out


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

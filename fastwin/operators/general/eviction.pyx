"""Eviction: what evictors leave of the elements that a window keeps, and what built-in aggregates make of them."""

from operator import attrgetter, index

import numpy as np
import pyarrow as pa

from fastwin.columns.pythonvalues import exact_array
from fastwin.columns.row cimport Row, TimedRow
from fastwin.core.accumulators.accumulator_set cimport AccumulatorSet
from fastwin.core.timemath cimport NO_TIME
from fastwin.core.typedefs cimport idx_t
from fastwin.operators.general.contexts cimport Clocks
from fastwin.operators.general.elements cimport Elements


cdef object as_index(object i, Py_ssize_t n):
    """Returns an index that an evictor has named; raises TypeError for what is none of n elements."""
    told = i
    if not isinstance(i, (bool, np.bool_)):     # a mask is no list of indices
        try:
            i = index(i)
            if 0 <= i < n:
                return i
        except TypeError:
            pass
    raise TypeError(f"must return indices of the {n} elements, returned {told!r}")


_arrival = attrgetter("arrival")


cdef class Eviction:
    """The evictor of one operator, if it has one.

    accumulators: of the built-in aggregates, which are computed anew at each firing. program: what else there is.
    """

    def __init__(self, Elements elements not None, AccumulatorSet accumulators not None, program, config):
        self.elements = elements
        self.evictor = program.evictor
        self.clocks = Clocks(elements.timers)
        if len(accumulators.members):
            self.scratch = config.new_accumulators(accumulators.head_cells)
            self.inputs = program.inputs
            names = self.inputs.names or program.rows.names[:1]     # one tells how many there are
            self.read = pa.schema([program.rows.field(name) for name in names])
            self.places = [program.rows.names.index(name) for name in names]

    def evict(self, list elements not None, idx_t slot, bint before):
        """Asks the evictor; removes what it names from the elements, which have been told in order of arrival."""
        method = self.evictor.evict_before if before else self.evictor.evict_after
        what = f"{type(self.evictor).__qualname__}.{'evict_before' if before else 'evict_after'}"
        try:
            gone = method(tuple(elements), len(elements), self.elements.window_of(slot), self.clocks)
            if gone is None:
                return
            gone = {as_index(i, len(elements)) for i in gone}
        except Exception as problem:
            raise self.elements.blame(what, slot, problem) from problem
        if gone:
            elements[:] = [element for i, element in enumerate(elements) if i not in gone]

    def accumulate(self, rows_store, idx_t slot, list elements not None):
        """Computes the built-in aggregates of elements that are kept, in a fresh row of another store."""
        if not elements:
            return
        if self.scratch.remembers:      # windows that merge have theirs one behind the other
            elements = sorted(elements, key=_arrival)
        times = [NO_TIME if element.timestamp is None else element.timestamp for element in elements]
        columns = []
        for j, kind in zip(self.places, self.read.types):
            columns.append(exact_array([(<Row> (<TimedRow> element).value).exact(j) for element in elements], kind))
        batch = pa.RecordBatch.from_arrays(columns, schema=self.read)
        fed = self.inputs.read(batch, np.array(times, dtype=np.int64))
        self.scratch.add_rows(rows_store, np.full(len(elements), slot, dtype=np.int32), fed)

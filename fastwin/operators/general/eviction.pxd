# What evictors leave of the elements that a window keeps.
from fastwin.core.accumulators.accumulator_set cimport AccumulatorSet
from fastwin.operators.general.contexts cimport Clocks
from fastwin.operators.general.elements cimport Elements

cdef class Eviction:
    cdef Elements elements
    cdef object evictor
    cdef Clocks clocks
    cdef AccumulatorSet scratch         # computes anew at each firing
    cdef object inputs, read            # what it is fed with, and of which columns
    cdef list places                    # of these in rows

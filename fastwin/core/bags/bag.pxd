# Bag: the values of a row in a run, for the aggregates that keep them.
from fastwin.core.typedefs cimport int64_t
from fastwin.core.accumulators.accumulator_set cimport Accumulator as Base, Take
from fastwin.core.bags.records cimport Shape

cdef enum:
    NUMBER = 0
    FLOAT = 1
    TEXT = 2


cdef class Bag(Base):
    cdef Shape shape
    cdef int kind               # of the values
    cdef int time               # the column of event times, -1: the order of values alone counts
    cdef bint hashed            # text is ordered by a hash of it
    cdef Bag source             # whose cells it reads; None: it has its own
    cdef bint reads

    cdef int _lay_out(self, str keeps, object limit, bint largest, Bag source) except -1
    cdef inline char* cell(self, const char* row) noexcept nogil:
        return <char*> row + (self.source.at if self.reads else self.at)

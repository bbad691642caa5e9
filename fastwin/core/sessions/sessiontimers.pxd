# When sessions are due: timers in buckets of time, set once and looked at again when they go off.
cimport cython

from fastwin.core.typedefs cimport idx_t, int64_t, ts_t, uint64_t
from fastwin.core.memory.hashindex cimport HashIndex, is_empty, stir
from fastwin.core.sessions.sessiontable cimport SessionTable
from fastwin.core.sessions.timebucket cimport Bucket, Entry

cdef struct Slots:
    idx_t* found
    Py_ssize_t n, capacity

cdef struct Advance:            # of the watermark
    ts_t before, now, lateness
    uint64_t* fired             # by slot: one bit, which is set for those in `due`
    uint64_t* gone              # and for those in `over`
    Slots due, over             # sessions that fire, in order of their ends, and those that are over for good


@cython.final
cdef class SessionTimers:
    cdef readonly SessionTable sessions
    cdef ts_t width
    cdef Bucket** heap          # the first bucket on top
    cdef Py_ssize_t heap_n, heap_capacity
    cdef HashIndex index        # of pointers to buckets, by start
    cdef Bucket* last           # found last
    cdef Py_ssize_t entries_n, bytes_n
    cdef uint64_t* marks        # by slot, for an advance: none is set before and after it
    cdef Py_ssize_t marks_n     # words of them for each of two
    cdef readonly Py_ssize_t looked     # how many timers have gone off so far, or were looked at by peek()

    cdef Py_ssize_t _place(self, ts_t start) noexcept nogil
    cdef Bucket* _bucket(self, ts_t start) except NULL nogil
    cdef int _grow(self) except -1 nogil
    cdef int _push(self, ts_t time, idx_t key, idx_t slot) except -1 nogil
    cdef Bucket* _take_first(self) noexcept nogil
    cdef void _sift_down(self) noexcept nogil
    cdef bint _is_current(self, const Entry* entry) noexcept nogil
    cdef int _reserve_marks(self) except -1
    cdef int _order(self, Bucket* bucket) except -1 nogil
    cdef int _run(self, Entry* entries, Py_ssize_t entries_n, ts_t limit, Advance* step) except -1 nogil
    cdef int _run_due(self, Bucket* bucket, Advance* step) except -1 nogil
    cdef int _pop(self, Advance* step) except -1 nogil
    cdef int _renew(self, Bucket* bucket, ts_t watermark, ts_t lateness) except -1 nogil

    cdef inline ts_t _next_due(self, idx_t slot, ts_t watermark, ts_t lateness) noexcept nogil:
        cdef ts_t last = self.sessions.at(slot).end - 1
        return last + (lateness if last <= watermark else 0)

    cdef inline uint64_t _hash(self, ts_t start) noexcept nogil:
        return stir(self.index.start, <uint64_t> start, self.index.factor)

    cdef inline Bucket* _bucket_at(self, Py_ssize_t at) noexcept nogil:
        # What is in a place of the index, or NULL.
        return NULL if is_empty(<Bucket**> self.index.places + at) else (<Bucket**> self.index.places)[at]

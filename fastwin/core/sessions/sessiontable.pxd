# Disjoint intervals of each key, in time order, each with a row of accumulators.
cimport cython

from libc.stdint cimport INT64_MIN

from fastwin.core.typedefs cimport NONE, idx_t, int64_t, ts_t
from fastwin.core.accumulators.accumulator_set cimport AccumulatorSet
from fastwin.core.keys.keytable cimport KeyTable
from fastwin.core.memory.pages cimport prefetch
from fastwin.core.rows.rowstore cimport RowStore
from fastwin.core.sessions.removals cimport Removals, put_removal
from fastwin.core.sessions.sessionlist cimport NEAR, Guides, Session, drop_guide, search_far

cdef enum:
    BLOCK = 512                 # elements that find their sessions before their values are added
    FETCHED = 128               # keys whose sessions are fetched before they are looked for
    END = 3                     # the cell of a session's end

cdef struct Intervals:          # elements or sessions from elsewhere, on their way into the table
    Py_ssize_t n
    const idx_t* keys
    const ts_t* starts
    const ts_t* ends            # NULL: all are `gap` long
    ts_t gap
    ts_t watermark, lateness

cdef struct Work:               # what intervals do to rows, to be done for a block of them
    Py_ssize_t at, n            # the first of them, and how many there are
    Py_ssize_t merges
    Py_ssize_t armed            # in all blocks so far
    Py_ssize_t retired
    idx_t[BLOCK] into           # by interval: the row that takes its values
    idx_t[BLOCK] target         # by merge, after that: the row that stays
    idx_t[BLOCK] source         # and the one that goes


@cython.final
cdef class SessionTable:
    cdef readonly KeyTable keys
    cdef readonly AccumulatorSet accumulators
    cdef readonly RowStore rows
    cdef idx_t* cursor          # by key id: the session touched last, or any other; NONE: the key has none
    cdef Py_ssize_t capacity
    cdef Guides guides          # to the sessions of keys that have many
    cdef Removals removed

    cdef int _reserve(self, Py_ssize_t extra) except -1 nogil
    cdef int _settle(self, Work* work, RowStore others, const idx_t* from_slots) except -1 nogil
    cdef int _merge_all(self, const Intervals* new, Work* work, RowStore others, const idx_t* from_slots, idx_t* slots,
                        idx_t* armed, RowStore fired) except -1 nogil
    cdef tuple _merged(self, const Intervals* new, RowStore others, const idx_t[::1] from_slots, RowStore fired=?)
    cdef int _fill(self, Intervals* new, const idx_t[::1] keys, str name, const int64_t[::1] starts,
                   int64_t watermark, int64_t lateness) except -1

    cdef inline Session* at(self, idx_t slot) noexcept nogil:
        return <Session*> self.rows.head(slot)

    cdef inline void _fetch(self, const idx_t* keys, Py_ssize_t n) noexcept nogil:
        """Fetches what looking for the keys' sessions will touch, so that the cache misses overlap."""
        cdef Py_ssize_t i
        cdef idx_t slot
        for i in range(n):
            prefetch(self.cursor + keys[i])
        for i in range(n):
            slot = self.cursor[keys[i]]
            if slot != NONE:
                prefetch(self.rows.head(slot))
                prefetch(<char*> self.rows.head(slot) + self.rows.stride - 1)

    cdef inline void _fetch_neighbours(self, idx_t slot, idx_t next) noexcept nogil:
        """Fetches the sessions beside one about to be unlinked, and one whose turn comes after that."""
        cdef Session* session
        if 0 <= next < self.rows.top:
            prefetch(self.rows.head(next))
        if 0 <= slot < self.rows.top:
            session = self.at(slot)
            prefetch(self.cursor + session.head.key)
            if session.later != NONE:
                prefetch(self.rows.head(session.later))

    cdef inline idx_t _latest_until(self, idx_t key, ts_t end) noexcept nogil:
        """Returns the key's latest session that starts at or before ``end``, or NONE."""
        cdef idx_t slot = self.cursor[key], later
        cdef Py_ssize_t _i
        if slot == NONE:
            return NONE
        if self.at(slot).head.start > end:
            for _i in range(NEAR):
                slot = self.at(slot).head.link
                if slot == NONE or self.at(slot).head.start <= end:
                    return slot
        else:
            for _i in range(NEAR):
                later = self.at(slot).later
                if later == NONE or self.at(later).head.start > end:
                    return slot
                slot = later
        slot = search_far(self.rows, &self.guides, slot, end)
        self.cursor[key] = slot     # or the caller, who inserts in front of all, would go there again
        return slot if self.at(slot).head.start <= end else <idx_t> NONE

    cdef inline idx_t _insert(self, idx_t key, ts_t start, ts_t end, idx_t before) noexcept nogil:
        """Returns a fresh row linked behind ``before``; NONE: in front of all sessions of the key."""
        cdef idx_t slot = self.rows.alloc(key, start), later = NONE, first
        cdef Session* session = self.at(slot)
        session.end = end
        if before != NONE:
            later = self.at(before).later
            self.at(before).later = slot
            session.guide = self.at(before).guide
        else:
            first = self.cursor[key]
            while first != NONE:        # walk to the front, where the caller's search has ended
                later = first
                first = self.at(first).head.link
        session.head.link = before
        session.later = later
        if later != NONE:
            self.at(later).head.link = slot
            session.guide = self.at(later).guide
        self.keys.retain(key)
        return slot

    cdef inline void _unlink(self, idx_t slot) noexcept nogil:
        """Takes a row out of its key's list; the row itself stays until it is released."""
        cdef Session* session = self.at(slot)
        cdef idx_t before = session.head.link, later = session.later, guide = session.guide
        session.guide = 0
        if before != NONE:
            self.at(before).later = later
        if later != NONE:
            self.at(later).head.link = before
        if self.cursor[session.head.key] == slot:
            self.cursor[session.head.key] = later if later != NONE else before
            if guide and later == NONE and before == NONE:
                drop_guide(&self.guides, guide)

    cdef inline void _retire(self, idx_t slot) noexcept nogil:
        """Frees an unlinked row that was merged into another; room for its removal is there."""
        cdef Session* session = self.at(slot)
        if session.saved != INT64_MIN:
            put_removal(&self.removed, session.head.key, session.saved)
        else:
            self.keys.release(session.head.key)
        self.rows.release(slot)

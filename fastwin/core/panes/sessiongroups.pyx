"""SessionGroups: the accumulators of every (key, session) of a bounded table whose elements come in order of time.

Then an element only ever makes the last session of its key longer, or begins another one. So a key has one row, that of
its open session, which moves out when the next one begins.
"""

import numpy as np

cimport cython
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from fastwin.core.accumulators.accumulator_set cimport AccumulatorSet
from fastwin.core.keys.keyblocks cimport hold_keys, is_one_key
from fastwin.core.memory.bounds cimport check_length
from fastwin.core.memory.ordering import ordered
from fastwin.core.memory.tagindex cimport no_entry, slot_in
from fastwin.core.panes.grouptable cimport GroupTable
from fastwin.core.rows.appended cimport clear_rows
from fastwin.core.rows.rowstore cimport Head, RowStore, live_mask
from fastwin.core.timemath cimport MAX_TIME, NO_TIME, check_duration, check_time
from fastwin.core.typedefs cimport idx_t, int64_t, ts_t, uint64_t

__all__ = ["SessionGroups", "are_in_order"]

cdef enum:
    BLOCK = 512                 # rows found, then updated, while they are in the cache
    COUNTED = 65536             # ends within so many ms are counted, not sorted; or twice as many as sessions


def are_in_order(const int64_t[::1] times not None):
    """Tells whether no time is below the one before it. O(n), or less where one is."""
    cdef Py_ssize_t at = 1, n = times.shape[0]
    cdef bint found = True
    with nogil:
        while at < n and found:
            found = ascend(&times[at], min(<Py_ssize_t> BLOCK, n - at))
            at += BLOCK
    return found


@cython.overflowcheck(False)
cdef bint ascend(const int64_t* times, Py_ssize_t n) noexcept nogil:
    """Whether none of n times is below the one before it; there is one before the first, too."""
    cdef uint64_t signs = 0, a, b
    cdef Py_ssize_t i
    for i in range(n):      # the sign of the difference, or where that overflows, of the second: no comparisons, so
        a, b = <uint64_t> times[i], <uint64_t> times[i - 1]         # that several are looked at together
        signs |= (a & ~b) | (~(a ^ b) & (a - b))
    return signs >> 63 == 0


cdef class SessionGroups(GroupTable):
    """Rows of accumulators by key, each for the open session of its key, for elements that are all at hand.

    A GroupTable whose ``starts`` are the ends of the open sessions, the times of their last elements and a gap; NO_TIME
    for a key without one, whose row is blank. What is over waits in ``ended`` until ``forget_ended``.
    """

    def __cinit__(self, AccumulatorSet accumulators not None, *args, **kwargs):
        self.ended = accumulators.new_rows()

    def __dealloc__(self):
        free(self.ends)

    cdef int make_room(self, Py_ssize_t n) except -1 nogil:
        """Makes room for n more sessions that are over."""
        cdef void* moved
        self.ended.reserve(n)
        if self.ends_room < self.ended.capacity:
            moved = realloc(self.ends, self.ended.capacity * sizeof(ts_t))
            if moved == NULL:
                with gil:
                    raise MemoryError(f"SessionGroups: no memory for the ends of {self.ended.capacity} sessions")
            self.ends = <ts_t*> moved
            self.ends_room = self.ended.capacity
        return 0

    cdef void begin(self, const idx_t* slots, const ts_t* ends, const ts_t* starts, Py_ssize_t n) noexcept nogil:
        """Moves the open sessions out of rows, and begins others there; make_room() has made room for n.

        ends: of those that were open; NO_TIME: there was none. starts: of the others.
        """
        cdef Py_ssize_t i, stride = self.rows.stride, first = 8 * self.accumulators.head_cells
        cdef const char* blank = self.rows.blank
        cdef char* data = self.rows.data
        cdef char* over = self.ended.data
        cdef ts_t* over_ends = self.ends
        cdef idx_t top = self.ended.top
        cdef char* row
        for i in range(n):
            row = data + slots[i] * stride
            memcpy(over + top * stride, row, stride)
            over_ends[top] = ends[i]
            top += ends[i] != NO_TIME           # else the next one is written over it
            memcpy(row + first, blank + first, stride - first)
            (<Head*> row).bits = live_mask()
            (<Head*> row).start = starts[i]
        self.ended.top = self.ended.live = top

    cdef Py_ssize_t extend(self, const idx_t* slots, const ts_t* starts, const ts_t* ends,
                           Py_ssize_t n) noexcept nogil:
        """Makes the sessions in rows longer by up to BLOCK others, or begins these. Returns how many are taken: not one
        that begins a session where the open one may have some among those before it, not added yet.

        starts, ends: of the others, those of a key each begin one after the other. make_room() has made room for n.
        """
        cdef idx_t[BLOCK] begun
        cdef ts_t[BLOCK] over, begins
        cdef Py_ssize_t i, found = 0
        cdef ts_t* open_ends = self.starts
        cdef ts_t end, waiting = ends[0]
        cdef bint fresh = False
        for i in range(n):
            fresh |= starts[i] > open_ends[slots[i]]
            waiting = min(waiting, ends[i])
        if not fresh:                           # mostly, where keys are few
            for i in range(n):
                open_ends[slots[i]] = max(open_ends[slots[i]], ends[i])
            return n
        for i in range(n):
            end = open_ends[slots[i]]
            fresh = starts[i] > end
            if fresh & (end >= waiting) & (i != 0):
                n = i
                break
            begun[found], over[found], begins[found] = slots[i], end, starts[i]
            found += fresh                      # no branch: every other element may begin a session
            open_ends[slots[i]] = max(end, ends[i])
        self.begin(begun, over, begins, found)
        return n

    cdef int add(self, Py_ssize_t at, Py_ssize_t n, const idx_t* slots, const ts_t* times,
                 const ts_t* ends) except -1 nogil:
        """Adds n elements from ``at`` on, up to BLOCK, to the sessions in rows. ends: their times and a gap."""
        cdef Py_ssize_t i = 0, some
        while i < n:
            some = self.extend(slots + i, times + i, ends + i, n - i)
            self.accumulators.add(self.rows, slots + i, some, at + i)
            i += some
        return 0

    def feed_sessions(self, list keys not None, const int64_t[::1] times not None, int64_t gap, list columns not None):
        """Adds element i to the session of its key that it touches, or to a new one.

        keys, columns: see GroupTable.feed. times: ms, within +-2**61, none below one before it or fed before. gap: 1 to
        2**61 ms. Raises ValueError for what does not suit; elements before a time that is not in order may have been
        added then. O(n) expected.
        """
        cdef Py_ssize_t n = times.shape[0], at = 0, m, i, few
        cdef idx_t[BLOCK] picked, slots
        cdef ts_t[BLOCK] alike, ends
        cdef uint64_t[BLOCK] hashes
        check_duration("gap", gap, 1)
        if n:
            check_time("times", times[0])
            check_time("times", times[n - 1])
        _keys = hold_keys(self.columns, self.texts, keys, n)
        _held = self.accumulators.hold(columns, n)
        memset(alike, 0, sizeof(alike))
        for i in range(BLOCK):
            picked[i] = <idx_t> i
        with nogil:
            while at < n:
                m = min(BLOCK, n - at)
                # Up to the last one too: blocks that are in order one by one must not go back between them.
                if not ascend(&times[at] + (at == 0), m - (at == 0)) or times[at + m - 1] > times[n - 1]:
                    break
                few = 1 if times[at + m - 1] - times[at] <= gap and is_one_key(self.columns, self.width, at, m) else m
                self.reserve(few, self.text_bytes(at, few))
                self.make_room(few)
                self.hash_block(at, few, alike, hashes)
                self.find_block(at, picked, few, NULL, hashes, slots)
                for i in range(m):
                    ends[i] = times[at + i] + gap
                if few == m:
                    self.add(at, m, slots, &times[at], ends)
                else:                           # all are in the first one's session
                    self.extend(slots, &times[at], ends, 1)
                    self.starts[slots[0]] = ends[m - 1]
                    for i in range(m):
                        slots[i] = slots[0]
                    self.accumulators.add(self.rows, slots, m, at)
                at += m
        if at < n:
            raise ValueError("times: must be in order")

    def absorb_sessions(self, list keys not None, const int64_t[::1] starts not None, const int64_t[::1] ends not None,
                        RowStore others not None, const idx_t[::1] slots not None):
        """Merges sessions in rows of others into those of their keys that they touch, or begins new ones.

        keys: see GroupTable.feed. starts, ends: of the sessions, ms; those of a key begin one after the other, and not
        before one that was fed. slots: of their rows, of the layout of this table. Raises ValueError for unequal
        lengths, IndexError for other slots. O(n) expected.
        """
        cdef Py_ssize_t n = starts.shape[0], at = 0, m, i, some
        cdef idx_t[BLOCK] picked, here
        cdef ts_t[BLOCK] alike
        cdef uint64_t[BLOCK] hashes
        check_length("ends", ends.shape[0], n)
        check_length("slots", slots.shape[0], n)
        self.accumulators.check_rows(others, slots)
        _keys = hold_keys(self.columns, self.texts, keys, n)
        memset(alike, 0, sizeof(alike))
        for i in range(BLOCK):
            picked[i] = <idx_t> i
        with nogil:
            while at < n:
                m = min(BLOCK, n - at)
                self.reserve(m, self.text_bytes(at, m))
                self.make_room(m)
                self.hash_block(at, m, alike, hashes)
                self.find_block(at, picked, m, NULL, hashes, here)
                i = 0
                while i < m:
                    some = self.extend(here + i, &starts[at + i], &ends[at + i], m - i)
                    self.accumulators.merge(self.rows, here + i, others, &slots[at + i], some)
                    i += some
                at += m

    def end_before(self, ts_t time):
        """Ends the open sessions whose ends, ms, are before ``time``: no element to come is. O(rows)."""
        cdef idx_t[BLOCK] over
        cdef ts_t[BLOCK] ends, none
        cdef Py_ssize_t i, at = 0, stop, found
        cdef ts_t* open_ends = self.starts
        cdef ts_t end
        cdef bint gone
        for i in range(BLOCK):
            none[i] = NO_TIME
        with nogil:
            while at < self.rows.top:
                stop, found = min(at + BLOCK, <Py_ssize_t> self.rows.top), 0
                for i in range(at, stop):       # no branch: every other session may be over
                    end = open_ends[i]
                    gone = (end < time) & (end != NO_TIME)
                    over[found], ends[found] = <idx_t> i, end
                    open_ends[i] = NO_TIME if gone else end
                    found += gone
                self.make_room(found)
                self.begin(over, ends, none, found)
                at = stop

    def ended_sessions(self):
        """Returns where the sessions that are over are in ``ended``, and their ends: ``(slots, ends)``, int32[n] and
        int64[n], ms; in the order of their ends, and of one end in that in which it was seen that they are over. O(n).
        """
        cdef Py_ssize_t n = self.ended.top, i
        cdef ts_t first = self.ends[0] if n else 0, last = first, end
        cdef idx_t before = 0, many
        cdef idx_t* counts
        cdef idx_t[::1] slots
        cdef int64_t[::1] ends
        for i in range(n):
            first, last = min(first, self.ends[i]), max(last, self.ends[i])
        if last // 2 - first // 2 >= max(COUNTED // 2, n):      # halved: the difference itself may not fit
            out_ends = np.empty(n, dtype=np.int64)
            ends = out_ends
            memcpy(&ends[0], self.ends, n * sizeof(ts_t))
            out = ordered([out_ends])[0]
            return out, out_ends[out]
        out, out_ends = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int64)
        slots, ends = out, out_ends
        counts = <idx_t*> calloc(last - first + 1, sizeof(idx_t))
        if counts == NULL:
            raise MemoryError(f"SessionGroups: no memory to order {n} sessions")
        with nogil:
            for i in range(n):
                counts[self.ends[i] - first] += 1
            for end in range(last - first + 1):
                many = counts[end]
                counts[end] = before
                before += many
            for i in range(n):
                before = counts[self.ends[i] - first]
                counts[self.ends[i] - first] = before + 1
                slots[before], ends[before] = <idx_t> i, self.ends[i]
            free(counts)
        return out, out_ends

    def ended_heads(self, const idx_t[::1] slots not None):
        """Returns when sessions that are over start, and their key columns as feed() takes them: ``(starts, keys)``,
        int64[n], ms, and a list. Raises IndexError for a slot that is not in use."""
        starts, *words = self.ended.gather(slots, self.cells_from(1))
        return starts, self.keys_in(words)

    def forget_ended(self):
        """Forgets what is over, and the keys without a session once they are many. O(rows)."""
        clear_rows(self.ended)
        self.drop_before(NO_TIME + 1)

    def open_sessions(self):
        """Returns the rows with an open session, and its end: ``(slots, ends)``, int32[n] and int64[n], ms. O(rows)."""
        return self.slots_before(MAX_TIME, NO_TIME + 1)

    def _check(self):
        """Raises AssertionError where an invariant does not hold. O(rows)."""
        cdef idx_t slot
        self.rows._check()
        self.ended._check()
        entries = [slot_in(self.index.places[i]) for i in range(self.index.size) if self.index.places[i] != no_entry()]
        assert sorted(entries) == list(range(self.rows.top)), "the index does not hold each row once"
        for slot in range(self.rows.top):
            assert self.starts[slot] == NO_TIME or self.rows.head(slot).start < self.starts[slot], (
                f"session {slot} ends before it starts")
        for slot in range(self.ended.top):
            assert self.ended.head(slot).start < self.ends[slot], f"session {slot} of ended ends before it starts"

"""SessionGroups: the accumulators of every (key, session) of a bounded table whose elements come in order of time.

Then an element only ever makes the last session of its key longer, or begins another one. So the index leads to that
one alone, and what it has led to before is over.
"""

from libc.string cimport memset

from fastwin.core.keys.keyblocks cimport hold_keys, is_key, is_one_key
from fastwin.core.memory.tagindex cimport entry_of, no_entry, slot_in
from fastwin.core.panes.grouptable cimport WORD, GroupTable
from fastwin.core.timemath cimport check_duration, check_times
from fastwin.core.typedefs cimport idx_t, int64_t, ts_t, uint32_t, uint64_t

__all__ = ["SessionGroups", "are_in_order"]

cdef enum:
    BLOCK = 512                 # rows found, then updated, while they are in the cache


def are_in_order(const int64_t[::1] times not None):
    """Tells whether no time is below the one before it. O(n), or less where one is."""
    cdef Py_ssize_t i, at = 1, n = times.shape[0], stop
    cdef bint below = False
    with nogil:
        while at < n and not below:
            stop = min(at + BLOCK, n)
            for i in range(at, stop):
                below |= times[i] < times[i - 1]
            at = stop
    return not below


cdef class SessionGroups(GroupTable):
    """Rows of accumulators by (key, session), for elements that are all at hand.

    A GroupTable in all else; ``slots_before`` and ``drop_before`` go by the ends of sessions, which are the times of
    their last elements and a gap. A session that ends before an element to come is over.
    """

    cdef void find_sessions(self, Py_ssize_t at, const idx_t* picked, Py_ssize_t n, const ts_t* times, int64_t gap,
                            const uint64_t* hashes, idx_t* slots) noexcept nogil:
        """Fills the slots of the sessions of up to BLOCK elements, of the keys ``at + picked[i]``, and makes these
        longer; reserve() has made room."""
        cdef uint64_t* places = self.index.places
        cdef uint64_t entry, tag
        cdef Py_ssize_t i, place, mask = self.index.size - 1, stride = self.rows.stride
        cdef int shift = self.index.shift
        cdef char* data = self.rows.data
        cdef const char* row
        cdef const int64_t* values = self.columns[0].values if self.width == 1 else NULL
        cdef ts_t* ends = self.starts
        cdef idx_t slot
        self.fetch(n, hashes, True)
        for i in range(n):
            tag = hashes[i] >> 32
            place = hashes[i] >> shift
            while True:
                entry = places[place]
                if entry == no_entry():
                    slot = self.append(at + picked[i], times[i])
                    places[place] = entry_of(hashes[i], slot)
                    break
                if entry >> 32 == tag:
                    slot = slot_in(entry)
                    row = data + slot * stride
                    if ((<const int64_t*> row)[WORD // 8] == values[at + picked[i]] if values != NULL else
                            is_key(self.columns, self.width, at + picked[i], row + WORD, self.arena)):
                        if times[i] > ends[slot]:
                            slot = self.append(at + picked[i], times[i])
                            places[place] = entry_of(hashes[i], slot)
                        break
                place = (place + 1) & mask
            ends[slot] = times[i] + gap
            slots[i] = slot

    def feed_sessions(self, list keys not None, const int64_t[::1] times not None, int64_t gap, list columns not None,
                      uint32_t share=0, uint32_t shares=1):
        """Adds element i to the session of its key that it touches, or to a new one.

        keys, columns, share: see GroupTable.feed. times: ms, within +-2**61, none below one before it or fed before.
        gap: 1 to 2**61 ms. Raises ValueError for what does not suit. O(n) expected.
        """
        cdef Py_ssize_t n = times.shape[0], at = 0, m, i, few, found
        cdef idx_t[BLOCK] picked, slots
        cdef ts_t[BLOCK] some
        cdef uint64_t[BLOCK] hashes
        check_duration("gap", gap, 1)
        if share >= shares:
            raise ValueError(f"share: must be below {shares}, got {share}")
        check_times("times", times)
        if not are_in_order(times):
            raise ValueError("times: must be in order")
        _keys = hold_keys(self.columns, self.texts, keys, n)
        _held = self.accumulators.hold(columns, n)
        with nogil:
            while at < n:
                m = min(BLOCK, n - at)
                few = 1 if times[at + m - 1] - times[at] <= gap and is_one_key(self.columns, self.width, at, m) else m
                self.reserve(m, self.text_bytes(at, m))
                memset(some, 0, sizeof(some))
                self.hash_block(at, few, some, hashes)
                found = 0
                for i in range(few):
                    picked[found], some[found], hashes[found] = <idx_t> i, times[at + i], hashes[i]
                    found += shares == 1 or (<uint64_t> <uint32_t> hashes[i] * shares) >> 32 == share
                self.find_sessions(at, picked, found, some, gap, hashes, slots)
                if few < m and found:           # all are in the first one's session
                    self.starts[slots[0]] = times[at + m - 1] + gap
                    for i in range(m):
                        slots[i] = slots[0]
                    found = m
                if found == m:
                    self.accumulators.add(self.rows, slots, m, at)
                elif found:
                    self.accumulators.add_some(self.rows, slots, found, at, picked)
                at += m

    def _check(self):
        """Raises AssertionError where an invariant does not hold. O(rows)."""
        cdef idx_t slot
        self.rows._check()
        entries = [slot_in(self.index.places[i]) for i in range(self.index.size) if self.index.places[i] != no_entry()]
        assert len(set(entries)) == len(entries), "the index holds a row twice"
        assert all(0 <= slot < self.rows.top for slot in entries), "the index holds a row that is not there"
        for slot in range(self.rows.top):
            assert self.rows.head(slot).start < self.starts[slot], f"session {slot} ends before it starts"

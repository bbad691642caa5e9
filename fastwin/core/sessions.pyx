"""SessionTable: the open sessions of every key, merged as elements arrive in any order."""

import numpy as np

from libc.stdint cimport INT64_MIN
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from fastwin._typedefs cimport NONE, idx_t, int64_t, ts_t, uint8_t, uint64_t
from fastwin.core.accumulator_set cimport AccumulatorSet
from fastwin.core.bounds cimport check_ids, check_length
from fastwin.core.keys cimport KeyTable
from fastwin.core.memory cimport prefetch
from fastwin.core.rows cimport RowStore
from fastwin.core.timemath cimport check_duration, check_times, is_past

cdef enum:
    AHEAD = 16                  # sessions fetched before it is their turn to be dropped

HEAD_CELLS = sizeof(Session) // 8

cdef ts_t UNSAVED = INT64_MIN


cdef class SessionTable:
    """Per key, sessions ``[start, end)`` that neither overlap nor touch, each with a row of accumulators.

    keys: the KeyTable whose ids the rows hold and retain.
    accumulators: what each row carries, behind HEAD_CELLS cells of head; ValueError for another head.

    Finding a session walks from the one that the key touched last: O(1) for input that is
    nearly in order within a key, O(sessions of the key) at worst.
    """

    def __cinit__(self, KeyTable keys not None, AccumulatorSet accumulators not None):
        if accumulators.head_cells != HEAD_CELLS:
            raise ValueError(f"accumulators: need head_cells={HEAD_CELLS}, got {accumulators.head_cells}")
        self.keys = keys
        self.accumulators = accumulators
        blank = accumulators.blank()
        blank[4] = UNSAVED
        self.rows = RowStore(blank, accumulators.owned)

    def __dealloc__(self):
        free(self.cursor)
        free(self.removed)

    def __len__(self):
        return self.rows.live

    @property
    def nbytes(self):
        """Bytes allocated, the keys left out."""
        return self.rows.nbytes + self.capacity * sizeof(idx_t) + self.removed_capacity * sizeof(Removal)

    cdef int _reserve(self, Py_ssize_t extra) except -1 nogil:
        cdef Py_ssize_t need = self.keys.capacity, room
        cdef void* moved
        if need > self.capacity:
            moved = realloc(self.cursor, need * sizeof(idx_t))
            if moved == NULL:
                with gil:
                    raise MemoryError(f"SessionTable: no memory for {need} keys")
            self.cursor = <idx_t*> moved
            memset(self.cursor + self.capacity, 0xFF, (need - self.capacity) * sizeof(idx_t))
            self.capacity = need
        if self.removed_n + extra > self.removed_capacity:
            room = 2 * (self.removed_n + extra)
            moved = realloc(self.removed, room * sizeof(Removal))
            if moved == NULL:
                with gil:
                    raise MemoryError(f"SessionTable: no memory for {room} removals")
            self.removed = <Removal*> moved
            self.removed_capacity = room
        self.rows.reserve(extra)
        return 0

    cdef void _fetch(self, const idx_t* keys, Py_ssize_t n) noexcept nogil:
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

    cdef idx_t _latest_until(self, idx_t key, ts_t end) noexcept nogil:
        """Returns the key's latest session that starts at or before ``end``, or NONE."""
        cdef idx_t slot = self.cursor[key], later
        if slot == NONE:
            return NONE
        if self.at(slot).head.start > end:
            while slot != NONE and self.at(slot).head.start > end:
                slot = self.at(slot).head.link
            return slot
        later = self.at(slot).later
        while later != NONE and self.at(later).head.start <= end:
            slot = later
            later = self.at(slot).later
        return slot

    cdef idx_t _insert(self, idx_t key, ts_t start, ts_t end, idx_t before) noexcept nogil:
        """Returns a fresh row linked behind ``before``; NONE: in front of all sessions of the key."""
        cdef idx_t slot = self.rows.alloc(key, start), later = NONE, first
        cdef Session* session = self.at(slot)
        session.end = end
        if before != NONE:
            later = self.at(before).later
            self.at(before).later = slot
        else:
            first = self.cursor[key]
            while first != NONE:        # walk to the front, where the caller's search has ended
                later = first
                first = self.at(first).head.link
        session.head.link = before
        session.later = later
        if later != NONE:
            self.at(later).head.link = slot
        self.keys.retain(key)
        return slot

    cdef void _unlink(self, idx_t slot) noexcept nogil:
        """Takes a row out of its key's list; the row itself stays until it is released."""
        cdef Session* session = self.at(slot)
        cdef idx_t before = session.head.link, later = session.later
        if before != NONE:
            self.at(before).later = later
        if later != NONE:
            self.at(later).head.link = before
        if self.cursor[session.head.key] == slot:
            self.cursor[session.head.key] = later if later != NONE else before

    cdef bint _extend(self, idx_t slot, ts_t start, ts_t end, ts_t watermark, Block* block) noexcept nogil:
        """Widens a session by an interval that touches it, and notes a merge with the session before it if need be.

        Returns whether the session had ended at the watermark and has another end now.
        """
        cdef Session* session = self.at(slot)
        cdef idx_t older = session.head.link
        cdef bint arm = end > session.end and session.end - 1 <= watermark
        session.end = max(end, session.end)
        if start < session.head.start:
            session.head.start = start
            if older != NONE and self.at(older).end >= start:
                session.head.start = self.at(older).head.start
                block.target[block.merges] = slot
                block.source[block.merges] = older
                block.merges += 1
                self._unlink(older)
        self.rows.mark(slot)
        return arm

    def add(self, const idx_t[::1] keys not None, const int64_t[::1] times not None, int64_t gap,
            int64_t watermark, int64_t lateness, list columns not None):
        """Adds element i to the session that ``[times[i], times[i] + gap)`` makes, merging what it touches.

        keys: ids in use, of ``self.keys``. times: ms, within +-2**61. gap: 1 to 2**61 ms, the same in all
        calls. watermark: ms, int64 min for none. lateness: at least 0 ms. columns: see AccumulatorSet.add_rows.
        An element that touches no session and whose own window is late, ``times[i] + gap - 1 +
        lateness <= watermark``, is not taken. Elements are taken in order of i.

        Returns ``(slots, armed)``. slots: int32[n], the row each element went to (it may have been merged into
        another since), -1 for late ones. armed: int32, rows that need a timer at their end - 1, because
        they are new or had ended at the watermark; a row may be named twice. Raises ValueError for what
        is out of bounds or does not suit, IndexError for an id that was never handed out.
        O(n) for input nearly in order, see the class.
        """
        cdef Py_ssize_t n = keys.shape[0], at = 0, i, armed_n = 0, retired = 0
        cdef idx_t slot
        cdef ts_t end
        cdef bint arm
        cdef Block block
        check_length("times", times.shape[0], n)
        check_ids("keys", keys, self.keys.top)
        check_times("times", times)
        check_duration("gap", gap, 1)
        if lateness < 0:
            raise ValueError(f"lateness: must be at least 0 ms, got {lateness}")
        _held = self.accumulators.hold(columns, n)
        out, armed_out = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
        cdef idx_t[::1] slots = out, armed = armed_out
        with nogil:
            while at < n:
                block.n = block.merges = 0
                # Sessions are at least a gap long and apart, so an element joins two at most: one merge each.
                self._reserve(BLOCK)
                self._fetch(&keys[at], min(n - at, BLOCK))
                while at + block.n < n and block.n < BLOCK:
                    i = at + block.n
                    end = times[i] + gap
                    slot = self._latest_until(keys[i], end)
                    if slot == NONE or self.at(slot).end < times[i]:
                        if is_past(end - 1, lateness, watermark):
                            slots[i] = NONE
                            if block.n:
                                break           # the values of a block lie side by side: begin another one
                            at += 1
                            continue
                        slot = self._insert(keys[i], times[i], end, slot)
                        arm = True
                    else:
                        arm = self._extend(slot, times[i], end, watermark, &block)
                    if arm:
                        armed[armed_n] = slot
                        armed_n += 1
                    self.cursor[keys[i]] = slot
                    slots[i] = slot
                    block.into[block.n] = slot
                    block.n += 1
                if block.n:
                    self.accumulators.add(self.rows, block.into, block.n, at)
                if block.merges:
                    self.accumulators.merge(self.rows, block.target, self.rows, block.source, block.merges)
                    for i in range(block.merges):
                        self._retire(block.source[i])
                retired += block.merges
                at += block.n
        armed_out = armed_out[:armed_n]
        return out, armed_out[self.rows.live_marks(armed_out)] if retired else armed_out

    cdef void _retire(self, idx_t slot) noexcept nogil:
        """Frees an unlinked row that was merged into another; room for its removal is there."""
        cdef Session* session = self.at(slot)
        if session.saved != UNSAVED:
            self.removed[self.removed_n].key = session.head.key
            self.removed[self.removed_n].start = session.saved
            self.removed_n += 1
        else:
            self.keys.release(session.head.key)
        self.rows.release(slot)

    def drop(self, const idx_t[::1] slots not None):
        """Frees sessions that are over for good, and the keys that no row holds any more. O(n).

        They are none of the removals(), and a key without sessions has none: who keeps a copy knows from
        the watermark. Raises IndexError for a slot that holds no session; those before it are freed.
        """
        cdef Py_ssize_t i, kept = 0, n = slots.shape[0]
        cdef idx_t key
        try:
            for i in range(n):
                if not 0 <= slots[i] < self.rows.top or not self.rows.is_live(slots[i]):
                    raise IndexError(f"slots: {slots[i]} holds no session")
                if i + AHEAD < n:
                    self._fetch_neighbours(slots[i + AHEAD // 2], slots[i + AHEAD])
                key = self.at(slots[i]).head.key
                self._unlink(slots[i])
                self.rows.release(slots[i])
                self.keys.release_later(key)
            for i in range(self.removed_n):
                if self.cursor[self.removed[i].key] == NONE:
                    self.keys.release_later(self.removed[i].key)
                else:
                    self.removed[kept] = self.removed[i]
                    kept += 1
            self.removed_n = kept
        finally:
            self.keys.bury()
        self.rows.trim()

    cdef void _fetch_neighbours(self, idx_t slot, idx_t next) noexcept nogil:
        """Fetches the sessions beside one about to be unlinked, and one whose turn comes after that."""
        cdef Session* session
        if 0 <= next < self.rows.top:
            prefetch(self.rows.head(next))
        if 0 <= slot < self.rows.top:
            session = self.at(slot)
            prefetch(self.cursor + session.head.key)
            if session.later != NONE:
                prefetch(self.rows.head(session.later))

    def current(self, const idx_t[::1] slots not None, const idx_t[::1] keys not None):
        """Tells which slots still hold a session of the given key: bool[n].

        A slot counts once, where it comes first; slots out of range do not count. O(n + rows / 64).
        """
        cdef Py_ssize_t i, n = slots.shape[0]
        cdef idx_t slot
        cdef uint64_t bit
        check_length("keys", keys.shape[0], n)
        out = np.zeros(n, dtype=np.uint8)
        cdef uint8_t[::1] view = out
        cdef uint64_t* seen = <uint64_t*> calloc(self.rows.top // 64 + 1, 8)
        if seen == NULL:
            raise MemoryError(f"SessionTable: no memory for the marks of {self.rows.top} sessions")
        with nogil:
            for i in range(n):
                slot = slots[i]
                if 0 <= slot < self.rows.top and self.rows.is_live(slot) and self.at(slot).head.key == keys[i]:
                    bit = (<uint64_t> 1) << (slot & 63)
                    view[i] = not seen[slot >> 6] & bit
                    seen[slot >> 6] |= bit
        free(seen)
        return out.view(np.bool_)

    def ends(self, const idx_t[::1] slots not None):
        """Returns the end of each session, ms: int64[n]. Raises IndexError for a slot that was never used."""
        return self.rows.cells(slots, 3)

    def insert(self, const idx_t[::1] keys not None, const int64_t[::1] starts not None,
               const int64_t[::1] ends not None):
        """Adds sessions as they are, for a restore; returns their slots: int32[n].

        Raises ValueError for one that is empty, or overlaps or touches another of its key (those before
        it are in); otherwise as add().
        """
        cdef Py_ssize_t i, n = keys.shape[0]
        cdef idx_t before
        self._check_keys(keys, "starts", starts)
        check_length("ends", ends.shape[0], n)
        out = np.empty(n, dtype=np.int32)
        cdef idx_t[::1] slots = out
        self._reserve(n)
        for i in range(n):
            if i % FETCHED == 0:
                self._fetch(&keys[i], min(n - i, FETCHED))
            before = self._latest_until(keys[i], ends[i])
            if ends[i] <= starts[i] or (before != NONE and self.at(before).end >= starts[i]):
                raise ValueError(f"sessions: [{starts[i]}, {ends[i]}) is empty or touches another session of its key")
            slots[i] = self._insert(keys[i], starts[i], ends[i], before)
            self.cursor[keys[i]] = slots[i]
        return out

    def _check_keys(self, const idx_t[::1] keys, str name, const int64_t[::1] times):
        check_length(name, times.shape[0], keys.shape[0])
        check_ids("keys", keys, self.keys.top)
        self._reserve(0)

    def find(self, const idx_t[::1] keys not None, const int64_t[::1] starts not None):
        """Returns the slots of the sessions of keys[i] that start at starts[i], -1 for none: int32[n].

        Raises ValueError for unequal lengths, IndexError for an id that was never handed out.
        """
        cdef Py_ssize_t i
        cdef idx_t slot
        self._check_keys(keys, "starts", starts)
        out = np.empty(keys.shape[0], dtype=np.int32)
        cdef idx_t[::1] slots = out
        for i in range(keys.shape[0]):
            if i % FETCHED == 0:
                self._fetch(&keys[i], min(keys.shape[0] - i, FETCHED))
            slot = self._latest_until(keys[i], starts[i])
            slots[i] = slot if slot != NONE and self.at(slot).head.start == starts[i] else <idx_t> NONE
        return out

    def covering(self, const idx_t[::1] keys not None, const int64_t[::1] times not None):
        """Returns the slots of the sessions of keys[i] that hold times[i], -1 for none: int32[n]. Raises as find()."""
        cdef Py_ssize_t i
        cdef idx_t slot
        self._check_keys(keys, "times", times)
        out = np.empty(keys.shape[0], dtype=np.int32)
        cdef idx_t[::1] slots = out
        for i in range(keys.shape[0]):
            slot = self._latest_until(keys[i], times[i])
            slots[i] = slot if slot != NONE and self.at(slot).end > times[i] else <idx_t> NONE
        return out

    def removals(self, const idx_t[::1] changed not None):
        """Returns ``(key ids, starts)`` of sessions that were saved once and are no longer there as such.

        changed: the rows about to be saved again; one whose start moved was saved under another name.
        Sessions that drop() has freed are not among them. To be taken out of a copy before the changed
        rows are put in. Raises IndexError for a slot that was never used.
        """
        cdef Py_ssize_t i
        cdef Session* session
        check_ids("changed", changed, self.rows.top)
        keys, starts = [], []
        for i in range(self.removed_n):
            keys.append(self.removed[i].key)
            starts.append(self.removed[i].start)
        for i in range(changed.shape[0]):
            session = self.at(changed[i])
            if session.saved != UNSAVED and session.saved != session.head.start:
                keys.append(session.head.key)
                starts.append(session.saved)
        return np.array(keys, dtype=np.int32), np.array(starts, dtype=np.int64)

    def saved(self, const idx_t[::1] slots not None):
        """Remembers that the rows are saved as they stand, and that all removals are; clears all dirty marks.

        Raises IndexError for a slot that was never used.
        """
        cdef Py_ssize_t i
        check_ids("slots", slots, self.rows.top)
        for i in range(slots.shape[0]):
            self.at(slots[i]).saved = self.at(slots[i]).head.start
        for i in range(self.removed_n):
            self.keys.release(self.removed[i].key)
        self.removed_n = 0
        self.rows.clear_dirty()

    def _check(self):
        """Raises AssertionError where an invariant does not hold. O(sessions)."""
        cdef idx_t slot, key, before, later
        self.rows._check()
        self.keys._check()
        held = np.zeros(self.keys.top, dtype=np.int64)
        for slot in self.rows.slots():
            key = self.at(slot).head.key
            held[key] += 1
            assert key < self.capacity and self.cursor[key] != NONE, f"key {key} has no cursor"
            assert self.at(slot).head.start < self.at(slot).end, f"session {slot} is empty"
            before, later = self.at(slot).head.link, self.at(slot).later
            assert later == NONE or self.at(later).head.link == slot, f"session {slot}: broken link to {later}"
            if before != NONE:
                assert self.at(before).head.key == key and self.at(before).later == slot, f"session {slot}: broken link"
                assert self.at(before).end < self.at(slot).head.start, f"sessions {before} and {slot} touch"
        for key in range(self.capacity):
            slot = self.cursor[key]
            if slot != NONE:
                assert self.rows.is_live(slot) and self.at(slot).head.key == key, f"key {key}: stale cursor"
        for i in range(self.removed_n):
            held[self.removed[i].key] += 1
        for key in range(self.keys.top):
            assert held[key] <= self.keys.refs[key] or held[key] == 0, f"key {key}: {held[key]} rows hold it unasked"

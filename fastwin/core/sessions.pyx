"""SessionTable: the open sessions of every key, merged as elements arrive in any order."""

import numpy as np

from libc.stdlib cimport free, realloc
from libc.string cimport memset

from fastwin._typedefs cimport NONE, idx_t, int64_t, ts_t, uint64_t
from fastwin.core.accumulators cimport AccumulatorSet
from fastwin.core.keys cimport KeyTable
from fastwin.core.rows cimport LIVE_BIT, RowStore

HEAD_CELLS = sizeof(Session) // 8

cdef enum:
    BLOCK = 512

cdef ts_t UNSAVED = -0x7fffffffffffffff - 1


cdef class SessionTable:
    """Per key, sessions ``[start, end)`` that neither overlap nor touch, each with a row of accumulators.

    keys: the KeyTable whose ids the rows hold and retain.
    accumulators: what each row carries, behind HEAD_CELLS cells of head.

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
        self.rows = RowStore(blank)

    def __dealloc__(self):
        free(self.cursor)
        free(self.removed_key)
        free(self.removed_start)

    def __len__(self):
        return self.rows.live

    @property
    def nbytes(self):
        """Bytes allocated, the keys left out."""
        return self.rows.nbytes + self.capacity * sizeof(idx_t) + self.removed_capacity * 12

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
            moved = realloc(self.removed_key, room * sizeof(idx_t))
            if moved != NULL:
                self.removed_key = <idx_t*> moved
                moved = realloc(self.removed_start, room * sizeof(ts_t))
            if moved == NULL:
                with gil:
                    raise MemoryError(f"SessionTable: no memory for {room} removals")
            self.removed_start = <ts_t*> moved
            self.removed_capacity = room
        self.rows.reserve(extra)
        return 0

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

    def add(self, const idx_t[::1] keys not None, const int64_t[::1] times not None, int64_t gap,
            int64_t watermark, int64_t lateness, list columns not None):
        """Adds element i to the session that ``[times[i], times[i] + gap)`` makes, merging what it touches.

        keys: key ids. times: ms. gap > 0, lateness >= 0: ms. watermark: ms, int64 min for none.
        columns: see AccumulatorSet.add_rows.
        An element that touches no session and whose own window is late, ``times[i] + gap - 1 +
        lateness <= watermark``, is not taken. Elements are taken in order of i.

        Returns ``(slots, armed)``. slots: int32[n], the row each element went to (it may have been merged into
        another since), -1 for late ones. armed: int32, rows that need a timer at their end - 1, because
        they are new or had ended at the watermark. Raises ValueError for columns that do not suit.
        """
        cdef Py_ssize_t n = keys.shape[0], at = 0, i, m, merges, armed_n = 0, late = 0
        cdef idx_t slot, older, key
        cdef ts_t start, end
        cdef idx_t[BLOCK] into
        cdef idx_t[BLOCK] gone
        cdef idx_t[BLOCK] target
        cdef idx_t[BLOCK] source
        cdef Session* session
        if times.shape[0] != n:
            raise ValueError(f"times: {times.shape[0]} for {n} keys")
        if gap < 1 or lateness < 0:
            raise ValueError(f"gap: at least 1 ms and lateness: at least 0 ms, got {gap} and {lateness}")
        self.accumulators.hold(columns, n)
        out, armed_out = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
        cdef idx_t[::1] slots = out, armed = armed_out
        while at < n:
            m = 0
            merges = 0
            with nogil:
                # Sessions are at least a gap long and apart, so an element joins two at most: one merge each.
                self._reserve(BLOCK)
                while at + m < n and m < BLOCK:
                    i = at + m
                    key = keys[i]
                    start = times[i]
                    end = start + gap
                    slot = self._latest_until(key, end)
                    if slot == NONE or self.at(slot).end < start:
                        if watermark >= end - 1 and watermark - (end - 1) >= lateness:
                            slots[i] = NONE
                            late += 1
                            break
                        slot = self._insert(key, start, end, slot)
                        armed[armed_n] = slot
                        armed_n += 1
                    else:
                        session = self.at(slot)
                        if end > session.end:
                            if session.end - 1 <= watermark:
                                armed[armed_n] = slot
                                armed_n += 1
                            session.end = end
                        older = session.head.link
                        if start < session.head.start:
                            session.head.start = start
                        if older != NONE and self.at(older).end >= start:
                            session.head.start = self.at(older).head.start
                            target[merges] = slot
                            source[merges] = older
                            merges += 1
                            self._unlink(older)
                        self.rows.mark(slot)
                    self.cursor[key] = slot
                    slots[i] = slot
                    into[m] = slot
                    m += 1
            if m:
                self.accumulators.add(self.rows, into, m, at)
            if merges:
                self.accumulators.merge(self.rows, target, self.rows, source, merges)
                with nogil:
                    for i in range(merges):
                        self._retire(source[i])
            at += m
            if at < n and m < BLOCK:        # stopped at a late element: pass over it
                at += 1
        return out, armed_out[:armed_n]

    cdef void _retire(self, idx_t slot) noexcept nogil:
        """Frees an unlinked row that was merged into another; room for its removal is there."""
        cdef Session* session = self.at(slot)
        if session.saved != UNSAVED:
            self.removed_key[self.removed_n] = session.head.key     # and keeps the key retained
            self.removed_start[self.removed_n] = session.saved
            self.removed_n += 1
        else:
            self.keys.release(session.head.key)
        self.rows.release(slot)

    def drop(self, const idx_t[::1] slots not None):
        """Frees sessions that are over for good, and the keys that no row holds any more. O(n)."""
        cdef Py_ssize_t i
        cdef idx_t key
        with nogil:
            for i in range(slots.shape[0]):
                self._unlink(slots[i])
                key = self.at(slots[i]).head.key
                self.rows.release(slots[i])
                self.keys.release(key)

    def current(self, const idx_t[::1] slots not None, const idx_t[::1] keys not None):
        """Tells which slots still hold a session of the given key: bool[n]. Slots out of range do not."""
        cdef Py_ssize_t i
        out = np.zeros(slots.shape[0], dtype=np.uint8)
        cdef unsigned char[::1] view = out
        for i in range(slots.shape[0]):
            if 0 <= slots[i] < self.rows.top:
                view[i] = self.at(slots[i]).head.bits >> LIVE_BIT and self.at(slots[i]).head.key == keys[i]
        return out.view(np.bool_)

    def ends(self, const idx_t[::1] slots not None):
        """Returns the end of each session, ms: int64[n]."""
        return self.rows.cells(slots, 3)

    def insert(self, const idx_t[::1] keys not None, const int64_t[::1] starts not None,
               const int64_t[::1] ends not None):
        """Adds sessions as they are, for a restore; returns their slots: int32[n].

        Raises ValueError for one that is empty, or overlaps or touches another of its key.
        """
        cdef Py_ssize_t i
        cdef idx_t before, later
        out = np.empty(keys.shape[0], dtype=np.int32)
        cdef idx_t[::1] slots = out
        self._reserve(keys.shape[0])
        for i in range(keys.shape[0]):
            before = self._latest_until(keys[i], ends[i])
            if ends[i] <= starts[i] or (before != NONE and self.at(before).end >= starts[i]):
                raise ValueError(f"sessions: [{starts[i]}, {ends[i]}) is empty or touches another session of its key")
            slots[i] = self._insert(keys[i], starts[i], ends[i], before)
            self.cursor[keys[i]] = slots[i]
        return out

    def find(self, const idx_t[::1] keys not None, const int64_t[::1] starts not None):
        """Returns the slots of the sessions of keys[i] that start at starts[i], -1 for none: int32[n]."""
        cdef Py_ssize_t i
        cdef idx_t slot
        out = np.empty(keys.shape[0], dtype=np.int32)
        cdef idx_t[::1] slots = out
        self._reserve(0)
        for i in range(keys.shape[0]):
            slot = self._latest_until(keys[i], starts[i])
            slots[i] = slot if slot != NONE and self.at(slot).head.start == starts[i] else NONE
        return out

    def covering(self, const idx_t[::1] keys not None, const int64_t[::1] times not None):
        """Returns the slots of the sessions of keys[i] that hold times[i], -1 for none: int32[n]."""
        cdef Py_ssize_t i
        cdef idx_t slot
        out = np.empty(keys.shape[0], dtype=np.int32)
        cdef idx_t[::1] slots = out
        self._reserve(0)
        for i in range(keys.shape[0]):
            slot = self._latest_until(keys[i], times[i])
            slots[i] = slot if slot != NONE and self.at(slot).end > times[i] else NONE
        return out

    def removals(self, const idx_t[::1] changed not None):
        """Returns ``(key ids, starts)`` of sessions that were saved once and are no longer there as such.

        changed: the rows about to be saved again; one whose start moved was saved under another name.
        """
        cdef Py_ssize_t i
        cdef list keys = [self.removed_key[i] for i in range(self.removed_n)]
        cdef list starts = [self.removed_start[i] for i in range(self.removed_n)]
        cdef Session* session
        for i in range(changed.shape[0]):
            session = self.at(changed[i])
            if session.saved != UNSAVED and session.saved != session.head.start:
                keys.append(session.head.key)
                starts.append(session.saved)
        return np.array(keys, dtype=np.int32), np.array(starts, dtype=np.int64)

    def saved(self, const idx_t[::1] slots not None):
        """Remembers that the rows are saved as they stand, and that all removals are."""
        cdef Py_ssize_t i
        for i in range(slots.shape[0]):
            self.at(slots[i]).saved = self.at(slots[i]).head.start
        for i in range(self.removed_n):
            self.keys.release(self.removed_key[i])
        self.removed_n = 0
        self.rows.clear_dirty()

    def _check(self):
        """Raises AssertionError where an invariant does not hold. O(sessions)."""
        cdef idx_t slot, key, before
        self.rows._check()
        self.keys._check()
        for slot in self.rows.slots():
            key = self.at(slot).head.key
            assert key < self.capacity and self.cursor[key] != NONE, f"key {key} has no cursor"
            assert self.at(slot).head.start < self.at(slot).end, f"session {slot} is empty"
            before = self.at(slot).head.link
            if before != NONE:
                assert self.at(before).head.key == key and self.at(before).later == slot, f"session {slot}: broken links"
                assert self.at(before).end < self.at(slot).head.start, f"sessions {before} and {slot} touch"
        for key in range(self.capacity):
            slot = self.cursor[key]
            if slot != NONE:
                assert self.at(slot).head.bits >> LIVE_BIT and self.at(slot).head.key == key, f"key {key}: stale cursor"

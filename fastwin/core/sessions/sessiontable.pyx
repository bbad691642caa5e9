"""SessionTable: the open sessions of every key, merged as elements arrive in any order."""

import numpy as np

from libc.stdint cimport INT64_MIN
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from fastwin.core.typedefs cimport NONE, idx_t, int64_t, ts_t
from fastwin.core.accumulators.accumulator_set cimport AccumulatorSet
from fastwin.core.memory.bounds cimport check_ids, check_length
from fastwin.core.keys.keytable cimport KeyTable
from fastwin.core.rows.rowstore cimport RowStore
from fastwin.core.sessions.removals cimport bytes_of_removals, drop_removal, free_removals, reserve_removals
from fastwin.core.sessions.sessionlist cimport Guide, Session, Stop, free_guides, guide_at, is_there
from fastwin.core.timemath cimport check_duration, check_times, is_past

cdef enum:
    AHEAD = 16                  # sessions fetched before it is their turn to be dropped

HEAD_CELLS = sizeof(Session) // 8


cdef class SessionTable:
    """Per key, sessions ``[start, end)`` that neither overlap nor touch, each with a row of accumulators.

    keys: the KeyTable whose ids the rows hold and retain.
    accumulators: what each row carries, behind HEAD_CELLS cells of head; ValueError for another head.

    Finding a session walks from the one that the key touched last: O(1) for input that is nearly in order within a
    key. Where that is far, of keys with more than 64 sessions, it begins at one that is nearer: O(log(sessions)), and
    a few hundred sessions at most. It takes 16 bytes for every 32nd session of such a key to know of these.
    """

    def __cinit__(self, KeyTable keys not None, AccumulatorSet accumulators not None):
        if accumulators.head_cells != HEAD_CELLS:
            raise ValueError(f"accumulators: need head_cells={HEAD_CELLS}, got {accumulators.head_cells}")
        self.keys = keys
        self.accumulators = accumulators
        blank = accumulators.blank()
        blank[4] = INT64_MIN
        self.rows = RowStore(blank, accumulators.owned)
        self.removed.free = NONE

    def __dealloc__(self):
        free(self.cursor)
        free_removals(&self.removed)
        free_guides(&self.guides)

    def __len__(self):
        return self.rows.live

    @property
    def nbytes(self):
        """Bytes allocated, the keys left out."""
        guides = self.guides.capacity * sizeof(Guide) + self.guides.stops_n * sizeof(Stop)
        return self.rows.nbytes + self.capacity * sizeof(idx_t) + bytes_of_removals(&self.removed) + guides

    @property
    def looked(self):
        """How many removals have been looked at so far, to forget them."""
        return self.removed.looked

    cdef int _reserve(self, Py_ssize_t extra) except -1 nogil:
        cdef Py_ssize_t need = self.keys.capacity
        cdef void* moved
        if need > self.capacity:
            moved = realloc(self.cursor, need * sizeof(idx_t))
            if moved == NULL:
                with gil:
                    raise MemoryError(f"SessionTable: no memory for {need} keys")
            self.cursor = <idx_t*> moved
            memset(self.cursor + self.capacity, 0xFF, (need - self.capacity) * sizeof(idx_t))
            self.capacity = need
        if not reserve_removals(&self.removed, extra, need):
            with gil:
                raise MemoryError(f"SessionTable: no memory for {self.removed.n + extra} removals of {need} keys")
        self.rows.reserve(extra)
        return 0

    cdef int _settle(self, Work* work, RowStore others, const idx_t* from_slots) except -1 nogil:
        """Brings intervals' values to their rows, merges rows as noted, and makes room for as many intervals again."""
        cdef Py_ssize_t i
        if work.n and others is None:
            self.accumulators.add(self.rows, work.into, work.n, work.at)
        elif work.n:
            self.accumulators.merge(self.rows, work.into, others, from_slots + work.at, work.n)
        if work.merges:
            self.accumulators.merge(self.rows, work.target, self.rows, work.source, work.merges)
            for i in range(work.merges):
                self._retire(work.source[i])
        work.retired += work.merges
        work.at += work.n
        work.n = work.merges = 0
        return self._reserve(BLOCK)

    cdef int _merge_all(self, const Intervals* new, Work* work, RowStore others, const idx_t* from_slots, idx_t* slots,
                        idx_t* armed, RowStore fired) except -1 nogil:
        """Takes intervals in their order: each becomes a session, together with all those that it touches.

        others, from_slots: rows to merge into those of the sessions; None: the held columns are added. slots and armed
        are filled as add() returns them. fired: gets a copy of each session that has passed, with every interval that
        it takes; None: there are none.
        """
        cdef Py_ssize_t i
        cdef idx_t slot, older, key
        cdef ts_t start, end
        cdef Session* session
        cdef bint arm
        self._settle(work, others, from_slots)
        for i in range(new.n):
            if i % BLOCK == 0:
                self._fetch(new.keys + i, min(new.n - i, BLOCK))
            key, start = new.keys[i], new.starts[i]
            end = start + new.gap if new.ends == NULL else new.ends[i]
            slot = self._latest_until(key, end)
            if slot == NONE or self.at(slot).end < start:
                if is_past(end - 1, new.lateness, new.watermark):
                    slots[i] = NONE
                    if work.n:
                        self._settle(work, others, from_slots)
                    work.at = i + 1             # the values of a block lie side by side: another one begins
                    continue
                slot = self._insert(key, start, end, slot)
                arm = True
            else:
                session = self.at(slot)
                arm = end > session.end and session.end - 1 <= new.watermark
                session.end = max(end, session.end)
                if start < session.head.start:
                    session.head.start = start
                    older = session.head.link
                    while older != NONE and self.at(older).end >= start:
                        if work.merges == BLOCK:
                            self._settle(work, others, from_slots)
                        self.at(slot).head.start = min(self.at(older).head.start, start)
                        work.target[work.merges] = slot
                        work.source[work.merges] = older
                        work.merges += 1
                        self._unlink(older)
                        older = self.at(slot).head.link
                self.rows.mark(slot)
            if arm:
                armed[work.armed] = slot
                work.armed += 1
            self.cursor[key] = slots[i] = work.into[work.n] = slot
            work.n += 1
            if fired is not None and self.at(slot).end - 1 <= new.watermark:
                self._settle(work, others, from_slots)
                fired.reserve(1)
                fired.copy(fired.alloc(key, self.at(slot).head.start), self.rows, slot, END)
            elif work.n == BLOCK:
                self._settle(work, others, from_slots)
        return self._settle(work, others, from_slots)

    cdef tuple _merged(self, const Intervals* new, RowStore others, const idx_t[::1] from_slots, RowStore fired=None):
        """Merges intervals; returns what add() does."""
        cdef const idx_t* sources = NULL
        cdef Work work
        out, armed_out = np.empty(new.n, dtype=np.int32), np.empty(new.n, dtype=np.int32)
        cdef idx_t[::1] slots = out, armed = armed_out
        work.at = work.n = work.merges = work.armed = work.retired = 0
        if new.n:
            if others is not None:
                sources = &from_slots[0]
            with nogil:
                self._merge_all(new, &work, others, sources, &slots[0], &armed[0], fired)
        armed_out = armed_out[:work.armed]
        return out, armed_out[self.rows.live_marks(armed_out)] if work.retired else armed_out

    def add(self, const idx_t[::1] keys not None, const int64_t[::1] times not None, int64_t gap,
            int64_t watermark, int64_t lateness, list columns not None, RowStore fired=None):
        """Adds element i to the session that ``[times[i], times[i] + gap)`` makes, merging what it touches.

        keys: ids in use, of ``self.keys``. times: ms, within +-2**61. gap: 1 to 2**61 ms, the same in all
        calls. watermark: ms, int64 min for none. lateness: at least 0 ms. columns: see AccumulatorSet.add_rows.
        An element that touches no session and whose own window is late, ``times[i] + gap - 1 +
        lateness <= watermark``, is not taken. Elements are taken in order of i. fired: rows of this layout; each
        element whose session has passed, ``end - 1 <= watermark``, adds a copy of the session as it leaves it.

        Returns ``(slots, armed)``. slots: int32[n], the row each element went to (it may have been merged into
        another since), -1 for late ones. armed: int32, rows that need a timer at their end - 1, because
        they are new or had ended at the watermark; a row may be named twice. Raises ValueError for what
        is out of bounds or does not suit, IndexError for an id that was never handed out.
        O(n) for input nearly in order, see the class.
        """
        cdef Intervals new
        check_times("times", times)
        check_duration("gap", gap, 1)
        self._fill(&new, keys, "times", times, watermark, lateness)
        new.ends, new.gap = NULL, gap
        if fired is not None and fired.stride != self.rows.stride:
            raise ValueError(f"fired: rows of {fired.stride} bytes, the sessions' have {self.rows.stride}")
        _held = self.accumulators.hold(columns, new.n)
        return self._merged(&new, None, None, fired)

    def absorb(self, const idx_t[::1] keys not None, const int64_t[::1] starts not None,
               const int64_t[::1] ends not None, int64_t watermark, int64_t lateness,
               RowStore others not None, const idx_t[::1] from_slots not None):
        """Merges sessions from elsewhere: ``[starts[i], ends[i])``, not empty, with row ``from_slots[i]`` of others.

        Each may join any number of sessions here. The rest is as in add().
        """
        cdef Intervals new
        check_length("ends", ends.shape[0], keys.shape[0])
        check_length("from_slots", from_slots.shape[0], keys.shape[0])
        self.accumulators.check_rows(others, from_slots)
        self._fill(&new, keys, "starts", starts, watermark, lateness)
        new.ends, new.gap = NULL, 0
        if new.n:
            new.ends = &ends[0]
        return self._merged(&new, others, from_slots)

    cdef int _fill(self, Intervals* new, const idx_t[::1] keys, str name, const int64_t[::1] starts,
                   int64_t watermark, int64_t lateness) except -1:
        self._check_keys(keys, name, starts)
        if lateness < 0:
            raise ValueError(f"lateness: must be at least 0 ms, got {lateness}")
        new.n, new.watermark, new.lateness = keys.shape[0], watermark, lateness
        if new.n:
            new.keys, new.starts = &keys[0], &starts[0]
        return 0

    def drop(self, const idx_t[::1] slots not None):
        """Frees sessions that are over for good, and the keys that no row holds any more. Amortised O(n).

        They are none of the removals(), and a key without sessions has none: who keeps a copy knows from
        the watermark. Raises IndexError for a slot that holds no session; those before it are freed.
        """
        cdef Py_ssize_t i, n = slots.shape[0]
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
                while self.cursor[key] == NONE and drop_removal(&self.removed, key):
                    self.keys.release_later(key)
        finally:
            self.keys.bury()
        self.rows.trim()

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
        for i in range(self.removed.top):
            if self.removed.places[i].key != NONE:
                keys.append(self.removed.places[i].key)
                starts.append(self.removed.places[i].start)
        for i in range(changed.shape[0]):
            session = self.at(changed[i])
            if session.saved != INT64_MIN and session.saved != session.head.start:
                keys.append(session.head.key)
                starts.append(session.saved)
        return np.array(keys, dtype=np.int32), np.array(starts, dtype=np.int64)

    def saved(self, const idx_t[::1] slots not None):
        """Remembers that the rows are saved as they stand, and that all removals are; clears all dirty marks.

        Raises IndexError for a slot that was never used.
        """
        cdef Py_ssize_t i
        cdef idx_t key
        check_ids("slots", slots, self.rows.top)
        for i in range(slots.shape[0]):
            self.at(slots[i]).saved = self.at(slots[i]).head.start
        for i in range(self.removed.top):
            key = self.removed.places[i].key
            while key != NONE and drop_removal(&self.removed, key):
                self.keys.release(key)
        self.removed.top, self.removed.free = 0, NONE
        self.rows.clear_dirty()

    def _farthest(self):
        """Returns how many sessions of a key lie between two where a search can begin, at most. O(sessions)."""
        cdef idx_t slot, number, key
        cdef Py_ssize_t i, passed, found = 0
        for key in range(self.capacity):
            slot, passed, stops = self.cursor[key], 0, set()
            number = self.at(slot).guide if slot != NONE else 0
            for i in range(guide_at(&self.guides, number).n if number else 0):
                if is_there(self.rows, guide_at(&self.guides, number).stops + i, number):
                    stops.add(guide_at(&self.guides, number).stops[i].slot)
            while slot != NONE and self.at(slot).head.link != NONE:
                slot = self.at(slot).head.link
            while slot != NONE:
                passed = 0 if slot in stops else passed + 1
                found = max(found, passed)
                slot = self.at(slot).later
        return found

    def _check(self):
        """Raises AssertionError where an invariant does not hold. O(sessions)."""
        cdef idx_t slot, key, before, later, removals = 0
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
            assert self.at(slot).guide == self.at(self.cursor[key]).guide, f"key {key}: two guides"
            if before != NONE:
                assert self.at(before).head.key == key and self.at(before).later == slot, f"session {slot}: broken link"
                assert self.at(before).end < self.at(slot).head.start, f"sessions {before} and {slot} touch"
        for key in range(self.capacity):
            slot = self.cursor[key]
            if slot != NONE:
                assert self.rows.is_live(slot) and self.at(slot).head.key == key, f"key {key}: stale cursor"
        for i in range(self.removed.top):
            key = self.removed.places[i].key
            if key != NONE:
                removals += 1
                held[key] += 1
                assert self.cursor[key] != NONE, f"key {key} has removals, and no session"
        assert removals == self.removed.n, f"{removals} removals, counted {self.removed.n}"
        for key in range(self.keys.top):
            assert held[key] <= self.keys.refs[key] or held[key] == 0, f"key {key}: {held[key]} rows hold it unasked"

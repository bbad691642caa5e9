"""OpenEnds: how many windows are open where they share panes, without a look at the rows that were counted before."""

import numpy as np

from libc.stdint cimport INT64_MIN
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from fastwin.core.typedefs cimport NONE, idx_t, int64_t, ts_t, uint64_t
from fastwin.core.memory.bits cimport clear_bit, has_bit, set_bit
from fastwin.core.memory.bounds cimport check_length
from fastwin.core.memory.pages cimport prefetch
from fastwin.core.panes.panelist cimport Pane, order_panes
from fastwin.core.panes.panetable cimport PaneTable
from fastwin.core.rows.rowstore cimport Head

__all__ = ["OpenEnds"]

cdef enum:
    LOWS = 256


cdef class OpenEnds:
    """Counts distinct pairs of a key and an end of a window over one of its panes.

    panes: only grows by rows, and only loses its first panes. step: between ends, ms.

    A row counts those ends that the key's rows before and behind it do not reach: a run of them, since ends ascend from
    pane to pane. ``changes`` says by how much more keys have a window with an end than with the end before.
    """

    cdef PaneTable panes
    cdef int64_t step
    cdef dict changes               # by end, of those after `since`
    cdef int64_t total              # pairs with an end not before `since`
    cdef int64_t level              # keys that have the end `since`
    cdef int64_t since
    cdef object places              # what the ends are counted by; None: by themselves
    cdef object counted             # starts and counts of the panes as they were last seen: int64[panes] each
    cdef uint64_t* marks            # while counting: rows that have not been counted; NULL: nobody has asked
    cdef object latest              # by key id: the start of its last pane that was counted; int64[]
    cdef readonly int64_t looked    # rows and neighbours that were looked at so far

    def __cinit__(self, PaneTable panes not None, int64_t step):
        if step < 1:
            raise ValueError(f"step: must be at least 1, got {step}")
        self.panes = panes
        self.step = step
        self.since = INT64_MIN
        self._start_over()

    cdef _start_over(self):
        self.changes = {}
        self.total = self.level = 0
        self.counted = np.empty((2, 0), dtype=np.int64)
        self.latest = np.empty(0, dtype=np.int64)

    @property
    def nbytes(self):
        """Bytes that it takes, about."""
        return self.counted.nbytes + self.latest.nbytes + 100 * len(self.changes)

    def go_by(self, object places):
        """Says by which table ends are told, as their places there; what was counted by another one is forgotten."""
        if places is not self.places:
            self.places = places
            self.since = INT64_MIN
            self._start_over()

    def count(self, const int64_t[::1] first not None, const int64_t[::1] last not None, int64_t since):
        """Returns how many pairs there are with an end not before ``since``, which never goes back.

        first, last: int64[panes], the first and the last end over each pane in order, multiples of ``step`` apart;
        neither descends, and a pane that goes has its last end before ``since``. O(panes + rows made since the last
        call), and of rows that come before others of their key, the panes that share a window with them; at most
        O(rows).
        """
        check_length("first", first.shape[0], self.panes.known.count)
        check_length("last", last.shape[0], self.panes.known.count)
        if since > self.since:
            self._pass(since)
        if self.panes.known.count == 0:
            self._start_over()
        elif not self._add_new(first, last, self.panes.rows.live):
            self._start_over()
            self._add_new(first, last, -1)
        return self.total

    cdef _pass(self, int64_t since):
        """Leaves out the ends before ``since``."""
        cdef int64_t at = self.since, end
        for end in sorted([end for end in self.changes if end <= since]):
            if self.level:
                self.total -= self.level * ((end - at) // self.step)
            self.level += self.changes.pop(end)
            at = end
        if self.level:
            self.total -= self.level * ((since - at) // self.step)
        self.since = since

    cdef bint _add_new(self, const int64_t[::1] first, const int64_t[::1] last, Py_ssize_t most) except -1:
        """Counts the rows made since the last call. Returns whether that took at most ``most`` looks at neighbours.

        If it took more, nothing is right any more. most: -1 where all rows are new, and none comes before others.
        """
        cdef PaneTable panes = self.panes
        cdef Py_ssize_t i, n = panes.known.count, seen = 0
        cdef int64_t[:, ::1] before = self.counted
        cdef bint done = True
        order_panes(&panes.known)
        now = np.empty((2, n), dtype=np.int64)
        cdef int64_t[:, ::1] counts = now
        fresh = np.zeros(n, dtype=np.int64)
        cdef int64_t[::1] new = fresh
        try:
            for i in range(n):
                counts[0, i] = panes.known.panes[i].start
                counts[1, i] = new[i] = panes.known.panes[i].count
                while seen < before.shape[1] and before[0, seen] < counts[0, i]:
                    seen += 1
                if seen < before.shape[1] and before[0, seen] == counts[0, i]:
                    new[i] -= before[1, seen]
            if panes.keys.top > len(self.latest):
                more = np.full(panes.keys.capacity - len(self.latest), INT64_MIN, dtype=np.int64)
                self.latest = np.concatenate([self.latest, more])
            for i in range(n):
                if new[i] and done:
                    done = self._add_of_pane(i, new, first, last, &most)
        except BaseException:
            self._start_over()
            raise
        finally:
            free(self.marks)
            self.marks = NULL
        self.counted = now
        return done

    cdef int _mark(self, Py_ssize_t at, const int64_t[::1] new) except -1:
        """Marks the rows that have not been counted in the panes from ``at`` on."""
        cdef PaneTable panes = self.panes
        cdef Py_ssize_t i, _row
        cdef idx_t slot
        self.marks = <uint64_t*> calloc(panes.rows.top // 64 + 1, sizeof(uint64_t))
        if self.marks == NULL:
            raise MemoryError(f"OpenEnds: no memory to mark {panes.rows.top} rows")
        for i in range(at, panes.known.count):
            slot = panes.known.panes[i].newest
            for _row in range(new[i]):
                set_bit(self.marks, slot)
                slot = panes.rows.head(slot).link
        return 0

    cdef bint _add_of_pane(self, Py_ssize_t at, const int64_t[::1] new, const int64_t[::1] first,
                           const int64_t[::1] last, Py_ssize_t* most) except -1:
        """Counts the new rows of a pane; see _add_new()."""
        cdef PaneTable panes = self.panes
        cdef ts_t[::1] latest = self.latest
        cdef Pane* pane = panes.known.panes[at]
        cdef Head* head
        cdef idx_t slot = pane.newest
        cdef int64_t low, high, reach = INT64_MIN, step = self.step
        cdef ts_t reached = INT64_MIN
        cdef int64_t[LOWS] lows, tally          # keys by their first new end, as long as no other wants the place
        cdef Py_ssize_t i, _row
        memset(tally, 0, sizeof(tally))
        self.looked += new[at]
        for _row in range(new[at]):
            head = panes.rows.head(slot)
            slot = head.link
            if slot != NONE:
                prefetch(panes.rows.head(slot))
            low, high = first[at], last[at]
            if latest[head.key] <= pane.start:
                if latest[head.key] != reached:         # many keys were last seen in the same pane
                    reached = latest[head.key]
                    i = panes.lower_bound(reached)
                    reach = last[i] if reached > INT64_MIN and panes.known.panes[i].start == reached else INT64_MIN
                if reach >= low:
                    low = reach + step
                latest[head.key] = pane.start
            else:
                if self.marks == NULL:
                    self._mark(at + 1, new)
                i = at - 1
                while i >= 0 and last[i] >= low:
                    most[0] -= 1
                    self.looked += 1
                    if self._is_counted(panes.known.panes[i], head.key):
                        low = last[i] + step
                        break
                    i -= 1
                i = at + 1
                while i < panes.known.count and first[i] <= high:
                    most[0] -= 1
                    self.looked += 1
                    if self._is_counted(panes.known.panes[i], head.key):
                        high = first[i] - step
                        break
                    i += 1
                if most[0] < 0:
                    return False
            if self.marks != NULL:
                clear_bit(self.marks, <idx_t> ((<char*> head - panes.rows.data) // panes.rows.stride))
            if high == last[at] and low <= high:
                i = (low - first[at]) // step % LOWS
                if tally[i] and lows[i] != low:
                    self._add_ends(lows[i], high, tally[i])
                    tally[i] = 0
                lows[i] = low
                tally[i] += 1
            else:
                self._add_ends(low, high, 1)
        for i in range(LOWS):
            if tally[i]:
                self._add_ends(lows[i], last[at], tally[i])
        return True

    cdef inline bint _is_counted(self, const Pane* pane, idx_t key) noexcept:
        cdef idx_t slot = self.panes.find_row(pane, key)
        return slot != NONE and not has_bit(self.marks, slot)

    cdef _add_ends(self, int64_t low, int64_t high, int64_t keys):
        """Counts the ends from ``low`` to ``high`` for so many keys."""
        low = max(low, self.since)
        if keys == 0 or high < low:
            return
        self.total += keys * ((high - low) // self.step + 1)
        if low == self.since:
            self.level += keys
        else:
            self.changes[low] = self.changes.get(low, 0) + keys
        self.changes[high + self.step] = self.changes.get(high + self.step, 0) - keys

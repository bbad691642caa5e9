"""WindowSlider: the merge of each key's panes in a window, kept up while the window slides."""

cimport cython
from libc.stdint cimport INT64_MIN
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from fastwin._typedefs cimport NONE, idx_t, int64_t, ts_t
from fastwin.core.bounds cimport check_ids, check_length
from fastwin.core.memory cimport prefetch
from fastwin.core.panes cimport PaneTable
from fastwin.core.rows cimport RowStore
from fastwin.core.timemath cimport check_duration, floor_to

cdef enum:
    BLOCK = 512
    PER_KEY = 3                 # rows that a key's result is merged from


@cython.final
cdef class WindowSlider:
    """Fires windows ``[start, end)`` one after another, both bounds ascending, for all keys at once.

    panes: where the windows' panes are read from; they are not changed.
    slide: ms by which starts advance. offset: ms; starts are offset + k * slide. blocks: how many slides make a block.

    A pane is merged three times at most, however many windows cover it, and a fired row is merged from three rows:
    two stacks (Tangwongsan, Hirzel, Schneider, "In-Order Sliding-Window Aggregation in Worst-Case Constant Time",
    2021), their front in two levels, so that it holds rows for the blocks of a window and for the slides of one
    block, not for all slides. So firing is O(1) amortised for a (key, window), whatever the aggregates; keys without
    a pane in the window are not touched. Merging alone is needed, and nothing is ever subtracted: float sums do not
    drift. With blocks near the root of the slides in a window, the rows held beside the panes are fewest.

    All of it is derived from the panes. It follows late elements by add() and absorb().
    """

    def __cinit__(self, PaneTable panes not None, int64_t slide, int64_t offset=0, int64_t blocks=1):
        check_duration("slide", slide, 1)
        check_duration("blocks", blocks, 1)
        check_duration("blocks * slide", blocks * slide if blocks <= (1 << 61) // slide else -1, 1)
        self.panes = panes
        self.rows = panes.accumulators.new_rows()
        self._parts = panes.accumulators.new_rows()
        self.slide, self.block, self.offset = slide, blocks * slide, offset
        self.start = self.near_end = self.turn = self.end = INT64_MIN

    def __dealloc__(self):
        free(self.runs)
        free(self.active)

    @property
    def nbytes(self):
        """Bytes allocated."""
        return self.rows.nbytes + self.capacity * <Py_ssize_t> (sizeof(Run) + sizeof(idx_t))

    cdef int _reserve(self) except -1:
        cdef Py_ssize_t need = self.panes.keys.capacity
        cdef void* moved
        if need > self.capacity:
            moved = realloc(self.active, need * sizeof(idx_t))
            if moved == NULL:
                raise MemoryError(f"WindowSlider: no memory for {need} keys")
            self.active = <idx_t*> moved
            moved = realloc(self.runs, need * sizeof(Run))
            if moved == NULL:
                raise MemoryError(f"WindowSlider: no memory for {need} keys")
            self.runs = <Run*> moved
            memset(self.runs + self.capacity, 0xFF, (need - self.capacity) * sizeof(Run))
            self.capacity = need
        return 0

    cdef void _activate(self, idx_t key) noexcept nogil:
        if self.runs[key].place == NONE:
            self.runs[key].place = self.active_n
            self.active[self.active_n] = key
            self.active_n += 1

    cdef void _deactivate(self, idx_t key) noexcept nogil:
        """Forgets a key that has nothing in the window; others stay."""
        cdef Run* run = self.runs + key
        cdef idx_t moved
        if run.place == NONE or run.near != NONE or run.far != NONE or run.back != NONE:
            return
        self.active_n -= 1
        moved = self.active[self.active_n]
        self.active[run.place] = moved
        self.runs[moved].place = run.place
        run.place = NONE

    cdef void _pop(self, idx_t* first, ts_t start) noexcept nogil:
        """Releases the rows of a stack that begin before ``start``."""
        cdef idx_t slot = first[0], after
        while slot != NONE and self.rows.head(slot).start < start:
            after = self.rows.head(slot).link
            self.rows.release(slot)
            slot = after
        first[0] = slot

    cdef void _restart(self, ts_t start) noexcept:
        """Empties the window, which goes on at ``start``."""
        cdef idx_t i
        cdef Run* run
        for i in range(self.active_n):
            run = self.runs + self.active[i]
            self._pop(&run.near, self.near_end)
            self._pop(&run.far, self.turn)
            if run.back != NONE:
                self.rows.release(run.back)
            run.back = run.place = NONE
        self.active_n = 0
        self.rows.trim()
        self.start = self.near_end = self.turn = self.end = start

    cdef int _move(self, ts_t start, ts_t end) except -1:
        self._reserve()
        if start >= self.end:
            self._restart(start)
        self._enter(max(self.end, start), end)
        self.end = end
        if start > self.start:
            self._leave(start, end)
        return 0

    cdef int _leave(self, ts_t start, ts_t end) except -1:
        """Moves the start, with all panes up to ``end`` entered."""
        cdef ts_t near_end = self.near_end, limit = start
        cdef Py_ssize_t at = self.panes.lower_bound(self.start)
        cdef idx_t slot, key
        if start >= near_end:               # another block is the first one
            near_end = floor_to(start, self.block, self.offset)
            near_end += self.block if near_end < start else 0
            if near_end > end:              # hardly anything is left: all of it goes to the back
                self._restart(start)
                self._enter(start, end)
                self.end = end
                return 0
            limit = near_end
        with nogil:
            while at < self.panes.count and self.panes.panes[at].start < limit:
                slot = self.panes.panes[at].newest
                while slot != NONE:
                    key = self.panes.rows.head(slot).key
                    self._pop(&self.runs[key].near, start)
                    if near_end > self.near_end:
                        self._pop(&self.runs[key].far, near_end)
                    self._deactivate(key)
                    slot = self.panes.rows.head(slot).link
                at += 1
        self.start = start
        if near_end > self.near_end:
            self.near_end = near_end
            self._stack(start, near_end, self.slide)
            if near_end > self.turn:
                self._turn_over(end)
        return 0

    cdef int _turn_over(self, ts_t end) except -1:
        """The far stack is empty: makes one of the back."""
        cdef idx_t i
        cdef Run* run
        for i in range(self.active_n):
            run = self.runs + self.active[i]
            if run.back != NONE:
                self.rows.release(run.back)
                run.back = NONE
        self.turn = max(self.near_end, floor_to(end, self.block, self.offset))
        self._stack(self.near_end, self.turn, self.block)
        self._enter(self.turn, end)
        i = self.active_n
        while i > 0:
            i -= 1
            self._deactivate(self.active[i])
        self.rows.trim()
        return 0

    cdef int _enter(self, ts_t start, ts_t end) except -1:
        """Merges the panes in ``[start, end)`` into the keys' backs."""
        cdef Py_ssize_t at = self.panes.lower_bound(start), n, i
        cdef idx_t[BLOCK] into, slots
        cdef idx_t slot, key
        cdef Run* run
        while at < self.panes.count and self.panes.panes[at].start < end:
            slot = self.panes.panes[at].newest
            while slot != NONE:
                with nogil:
                    self.rows.reserve(BLOCK)
                    n = self._gather(&slot, slots, into)
                    for i in range(n):
                        key = into[i]
                        run = self.runs + key
                        if run.back == NONE:
                            run.back = self.rows.alloc(key, start)
                            self._activate(key)
                        else:
                            prefetch(self.rows.head(run.back))
                        into[i] = run.back
                self.panes.accumulators.merge(self.rows, into, self.panes.rows, slots, n)
            at += 1
        return 0

    cdef Py_ssize_t _gather(self, idx_t* slot, idx_t* slots, idx_t* keys) noexcept nogil:
        """Lists the next rows of a pane and their keys."""
        cdef Py_ssize_t n = 0
        while slot[0] != NONE and n < BLOCK:
            slots[n] = slot[0]
            keys[n] = self.panes.rows.head(slot[0]).key
            prefetch(self.runs + keys[n])
            slot[0] = self.panes.rows.head(slot[0]).link
            n += 1
        return n

    cdef int _stack(self, ts_t start, ts_t end, ts_t group) except -1:
        """Builds the near or the far stacks over the panes in ``[start, end)``, from the last one back: a row for
        each ``group`` ms, which holds all from its start to the end."""
        cdef Py_ssize_t at = self.panes.lower_bound(end), n, i, fresh
        cdef idx_t[BLOCK] into, slots, target, source
        cdef idx_t slot, key, row
        cdef idx_t* first
        cdef ts_t begin
        while at > 0 and self.panes.panes[at - 1].start >= start:
            at -= 1
            begin = floor_to(self.panes.panes[at].start, group, self.offset)
            slot = self.panes.panes[at].newest
            while slot != NONE:
                fresh = 0
                with nogil:
                    self.rows.reserve(BLOCK)
                    n = self._gather(&slot, slots, into)
                    for i in range(n):
                        key = into[i]
                        first = self._first(key, start)
                        row = first[0]
                        if row == NONE or self.rows.head(row).start != begin:
                            row = self.rows.alloc(key, begin)
                            self.rows.head(row).link = first[0]
                            if first[0] != NONE:
                                target[fresh] = row
                                source[fresh] = first[0]
                                fresh += 1
                            first[0] = row
                        self._activate(key)
                        into[i] = row
                self.panes.accumulators.merge(self.rows, target, self.rows, source, fresh)
                self.panes.accumulators.merge(self.rows, into, self.panes.rows, slots, n)
        return 0

    cdef idx_t* _first(self, idx_t key, ts_t start) noexcept nogil:
        # The stack of a key that holds what begins at `start`.
        return &self.runs[key].near if start < self.near_end else &self.runs[key].far

    def fire(self, int64_t start, int64_t end, RowStore fired not None):
        """Moves the window to ``[start, end)`` and adds a row of each key with a pane in it to ``fired``.

        fired: rows of the panes' layout, which get the merge of the key's panes and ``start``. Returns how many rows
        were added. Raises ValueError for a window that goes back, or for rows of another layout. Amortised O(rows in
        the panes that enter and leave + rows fired).
        """
        cdef Py_ssize_t n, at = 0, count
        cdef idx_t[BLOCK * PER_KEY] target, source
        cdef idx_t row
        cdef idx_t* part
        cdef int k
        if start < self.start or end < self.end or end <= start:
            raise ValueError(f"window: [{start}, {end}) does not follow [{self.start}, {self.end})")
        if fired.stride != self.rows.stride:
            raise ValueError(f"fired: rows of {fired.stride} bytes, the panes' have {self.rows.stride}")
        self._move(start, end)
        while at < self.active_n:
            n = min(BLOCK, self.active_n - at)
            count = 0
            with nogil:
                fired.reserve(n)
                for at in range(at, at + n):
                    row = fired.alloc(self.active[at], start)
                    part = &self.runs[self.active[at]].near
                    for k in range(PER_KEY):
                        if part[k] != NONE:
                            prefetch(self.rows.head(part[k]))
                            target[count] = row
                            source[count] = part[k]
                            count += 1
            at += 1
            self.panes.accumulators.merge(fired, target, self.rows, source, count)
        return self.active_n

    def leave(self, int64_t start):
        """Takes the panes before ``start``, a start of windows, out of the window: they may be dropped then."""
        if start > self.start:
            self._move(start, max(self.end, start))

    def add(self, const idx_t[::1] keys not None, const int64_t[::1] starts not None, list columns not None):
        """Follows elements that were added to panes in the window: element i to (keys[i], starts[i]).

        keys: ids in use. starts: pane starts, ms; what is not in the window does not matter. columns: see
        AccumulatorSet.add_rows. Raises as PaneTable.add() does. O(1) for an element at the end of the window, at
        worst O(blocks).
        """
        cdef Py_ssize_t n = keys.shape[0], at = 0, m, i
        cdef idx_t[BLOCK] slots
        check_length("starts", starts.shape[0], n)
        check_ids("keys", keys, self.panes.keys.top)
        _held = self.panes.accumulators.hold(columns, n)
        while at < n:
            m = min(BLOCK, n - at)
            with nogil:
                self._parts.reserve(m)
                for i in range(m):
                    slots[i] = self._parts.alloc(keys[at + i], starts[at + i])
            self.panes.accumulators.add(self._parts, slots, m, at)
            self.absorb(self._parts, <idx_t[:m]> slots)
            for i in range(m):
                self._parts.release(slots[i])
            at += m

    def absorb(self, RowStore others not None, const idx_t[::1] slots not None):
        """Follows rows that were merged into panes in the window: each into the pane of its own key and start.

        others: rows of the panes' layout. slots: of live rows. Raises IndexError for a slot that was never used,
        ValueError for rows of another layout.
        """
        cdef Py_ssize_t i, count = 0
        cdef idx_t[BLOCK] into, source
        cdef idx_t key
        cdef ts_t start
        cdef Run* run
        if others.stride != self.rows.stride:
            raise ValueError(f"others: rows of {others.stride} bytes, the panes' have {self.rows.stride}")
        check_ids("slots", slots, others.top)
        self._reserve()
        for i in range(slots.shape[0]):
            key, start = others.head(slots[i]).key, others.head(slots[i]).start
            if not self.start <= start < self.end:
                continue
            self.rows.reserve(2)
            run = self.runs + key
            self._activate(key)
            if start < self.near_end:
                self._thread(key, floor_to(start, self.slide, self.offset), &run.near, others, slots[i])
            elif start < self.turn:
                self._thread(key, floor_to(start, self.block, self.offset), &run.far, others, slots[i])
            else:
                if run.back == NONE:
                    run.back = self.rows.alloc(key, self.turn)
                into[count], source[count] = run.back, slots[i]
                count += 1
                if count == BLOCK:
                    self.panes.accumulators.merge(self.rows, into, others, source, count)
                    count = 0
        self.panes.accumulators.merge(self.rows, into, others, source, count)

    cdef int _thread(self, idx_t key, ts_t start, idx_t* first, RowStore others, idx_t slot) except -1:
        """Merges a row into all rows of a stack that hold its time, one of them new if need be."""
        cdef idx_t row = first[0], before = NONE, fresh
        while row != NONE and self.rows.head(row).start <= start:
            self.panes.accumulators.merge(self.rows, &row, others, &slot, 1)
            before, row = row, self.rows.head(row).link
        if before != NONE and self.rows.head(before).start == start:
            return 0
        fresh = self.rows.alloc(key, start)
        if before == NONE:
            first[0] = fresh
        else:
            self.rows.head(before).link = fresh
        self.rows.head(fresh).link = row
        if row != NONE:
            self.panes.accumulators.merge(self.rows, &fresh, self.rows, &row, 1)
        self.panes.accumulators.merge(self.rows, &fresh, others, &slot, 1)
        return 0

    def _check(self):
        """Raises AssertionError where an invariant does not hold. O(keys + rows)."""
        cdef idx_t key, active = 0, slot
        cdef Py_ssize_t held = 0, part
        cdef Run* run
        self.rows._check()
        assert self.start <= self.near_end <= self.turn <= self.end, "the parts of the window are out of order"
        for key in range(self.capacity):
            run = self.runs + key
            filled = run.near != NONE or run.far != NONE or run.back != NONE
            assert filled == (run.place != NONE), f"key {key}: its place among the active ones is {run.place}"
            if not filled:
                continue
            active += 1
            assert self.active[run.place] == key, f"key {key} is not where it should be"
            held += run.back != NONE
            for part in range(2):
                slot = (&run.near)[part]
                begin, end = (self.start, self.near_end) if part == 0 else (self.near_end, self.turn)
                while slot != NONE:
                    start = self.rows.head(slot).start
                    assert begin <= start < end, f"key {key}: a row of [{start}, ...) outside [{begin}, {end})"
                    assert self.rows.head(slot).key == key, f"key {key}: a row of another key"
                    begin = start + 1
                    held += 1
                    slot = self.rows.head(slot).link
        assert active == self.active_n, f"{active} keys are active, counted {self.active_n}"
        assert held == self.rows.live, f"{held} rows belong to keys, {self.rows.live} are held"
